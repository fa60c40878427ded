"""What somebody decided of fields that look renamed: kept, reused wherever the pair is met, taken back, audited."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, SubjectNotFound, WrongState
from registry.promotions.models import RenameDecision
from registry.promotions.requests import schema_changes
from registry.promotions.requests.schema_changes import decide_rename, decided_renames, renames_of, undecide_rename
from registry.subjects.services import set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in
from tests.promotions.factories import ORDERS, Cast, ask, register

pytestmark = pytest.mark.requirement("CARD-2", "CARD-4")
HOSTILE = '<img src=x onerror="alert(1)">'


def order(name: str) -> dict[str, Any]:
    field = {"name": name, "type": "string", "default": ""}
    return {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, field]}


PAIR = {"from_path": "Order.customer_mail", "to_path": "Order.customer_email"}


@pytest.fixture
def versions(cast: Cast) -> None:
    """In dev a field gets another name, without an alias; prod has the first version, by a request."""
    set_config(registry="dev", subject=ORDERS, level="NONE", by=cast["admin"])
    register(order("customer_mail"), cast["steward"])
    register(order("customer_email"), cast["steward"])


def decide(cast: Cast, who: str = "steward", **more: Any) -> bool:
    given = {"registry": "dev", "subject": ORDERS, "is_rename": True, **PAIR, **more}
    return decide_rename(by=cast[who], **given)


COMPARE = "/ui/registries/dev/subjects/orders-value/compare?from=1&to=2"


def test_it_is_kept_replaced_and_taken_back_under_audit(cast: Cast, versions: None) -> None:
    assert decide(cast, reason="one mailbox")
    assert not decide(cast, reason="one mailbox")
    (kept,) = renames_of(get_registry("dev"), ORDERS)
    assert (kept.is_rename, kept.reason, kept.decided_by) == (True, "one mailbox", "steward")
    assert decide(cast, "admin", is_rename=False)
    (kept,) = renames_of(get_registry("dev"), ORDERS)
    assert (kept.is_rename, kept.reason, kept.decided_by) == (False, "", "admin")
    back = {"registry": "dev", "subject": ORDERS, **PAIR}
    assert undecide_rename(by=cast["steward"], **back)
    assert not undecide_rename(by=cast["steward"], **back)
    events = AuditEvent.objects.filter(table="promotions_renamedecision").order_by("id")
    assert [(event.operation, event.actor) for event in events] == [
        ("INSERT", "steward"),
        ("UPDATE", "admin"),
        ("DELETE", "steward"),
    ]
    assert events[0].why == (
        "decide that Order.customer_mail was renamed to Order.customer_email in orders-value in dev: one mailbox"
    )


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"to_path": "Order.customer_mail"}, InvalidInput),
        ({"from_path": ""}, InvalidInput),
        ({"from_path": "x" * 1025}, InvalidInput),
        ({"from_path": "a\nb"}, InvalidInput),
        ({"reason": "x" * 2001}, InvalidInput),
        ({"subject": SubjectName(".", "no-such")}, SubjectNotFound),
    ],
)
def test_what_is_no_decision_is_refused(
    cast: Cast, versions: None, more: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        decide(cast, **more)
    assert not RenameDecision.objects.exists()


@pytest.mark.parametrize("who", ["reader", "stranger"])
def test_who_does_not_describe_subjects_decides_nothing(cast: Cast, versions: None, who: str) -> None:
    with pytest.raises(NotAllowed):
        decide(cast, who)
    with pytest.raises(NotAllowed):
        undecide_rename(registry="dev", subject=ORDERS, by=cast[who], **PAIR)


def test_a_subject_has_so_many_of_them(cast: Cast, versions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_changes, "MAX_DECISIONS", 1)
    decide(cast)
    decide(cast, is_rename=False)
    with pytest.raises(WrongState):
        decide(cast, to_path="Order.other")


@pytest.mark.parametrize(
    ("constraint", "change"),
    [
        ("rename_has_two_paths", "UPDATE promotions_renamedecision SET to_path = from_path"),
        ("rename_has_two_paths", "UPDATE promotions_renamedecision SET to_path = ''"),
        (
            "one_decision_a_rename",
            "INSERT INTO promotions_renamedecision (subject_id, from_path, to_path, is_rename, reason, decided_by,"
            " decided_at) SELECT subject_id, from_path, to_path, false, '', 'x', now() FROM promotions_renamedecision",
        ),
    ],
)
def test_the_database_keeps_them_whole(cast: Cast, versions: None, constraint: str, change: str) -> None:
    decide(cast)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change)


def test_the_page_suspects_it_keeps_what_is_decided_and_follows_it(cast: Cast, versions: None) -> None:
    steward = signed_in("steward")
    page = steward.get(COMPARE).content.decode()
    assert "Mark as rename" in page and "If it was renamed:" in page
    sent = {**PAIR, "decision": "no", "reason": HOSTILE, "next": COMPARE}
    answer = steward.post("/ui/registries/dev/subjects/orders-value/renames", sent)
    assert answer.headers["Location"] == f"{COMPARE}#renames-title"
    page = steward.get(COMPARE).content.decode()
    assert "Not a rename" in page and "decided by" in page and HOSTILE not in page
    assert "add the alias" not in page, "what is no rename gets no alias"
    assert "Withdraw decision" in page and "Mark as rename" not in page
    steward.post("/ui/registries/dev/subjects/orders-value/renames", {**sent, "decision": "back"})
    steward.post("/ui/registries/dev/subjects/orders-value/renames", {**sent, "decision": "yes", "reason": ""})
    page = steward.get(COMPARE).content.decode()
    assert "Rename" in page and "To let readers know:" in page and "add the alias" in page
    reader = signed_in("reader").get(COMPARE).content.decode()
    assert "Rename" in reader and "Withdraw decision" not in reader
    away = steward.post(
        "/ui/registries/dev/subjects/orders-value/renames",
        {**sent, "decision": "maybe", "next": "https://evil.example/"},
    )
    assert away.headers["Location"].startswith("/ui/registries/dev/")


def test_it_is_reused_at_the_report_and_at_a_request_to_another_environment(cast: Cast, versions: None) -> None:
    change_to_prod = ask(cast, version=1)
    page = signed_in("approver").get(f"/ui/promotions/{change_to_prod}").content.decode()
    assert "renames-title" not in page
    register(order("customer_mail"), cast["steward"], registry="staging")
    number = ask(cast, version=2, target="staging")
    decide(cast, reason="one mailbox")
    page = signed_in("approver").get(f"/ui/promotions/{number}").content.decode()
    assert "Rename" in page and "one mailbox" in page
    sent = {"text": json.dumps(order("customer_email")), "schema_type": "AVRO"}
    register(order("customer_mail"), cast["steward"])
    report = signed_in("steward").post("/ui/registries/staging/subjects/orders-value/report", sent).content.decode()
    assert "If it was renamed:" in report, "it was decided in dev, and this is a report of staging alone"
    decide(cast, registry="staging", is_rename=False)
    report = signed_in("steward").post("/ui/registries/staging/subjects/orders-value/report", sent).content.decode()
    assert "Not a rename" in report and "Mark as rename" not in report
    newest = decided_renames({"dev", "staging"}, ORDERS)
    assert [(info.registry, info.is_rename) for info in newest.values()] == [("staging", False)]


def test_the_api_decides_lists_and_takes_back(cast: Cast, versions: None, api: Callable[[str], Client]) -> None:
    path = "/api/v1/registries/dev/subjects/orders-value/renames"
    client = api("steward")

    def send(method: str, body: dict[str, Any]) -> int:
        return client.generic(method, path, json.dumps(body), content_type="application/json").status_code

    assert send("PUT", {**PAIR, "is_rename": True, "reason": "one mailbox"}) == 204
    (found,) = json.loads(api("reader").get(path).content)
    assert {name: found[name] for name in ("from_path", "to_path", "is_rename", "reason", "decided_by")} == {
        **PAIR,
        "is_rename": True,
        "reason": "one mailbox",
        "decided_by": "steward",
    }
    assert send("PUT", {"from_path": "a", "is_rename": True}) == 422
    assert send("DELETE", PAIR) == 204
    assert json.loads(api("reader").get(path).content) == []
