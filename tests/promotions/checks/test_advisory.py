"""What a reviewer decides from: lint, the whole schema of a first release, and findings at the source."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard.components.badges import Verdict
from dashboard.promotions.plan import worst
from registry.access.models import Ownership, RoleGrant, User
from registry.drift.models import Finding
from registry.errors import InvalidInput, PlanChanged, SchemaTooCostly
from registry.formats.base import ParsedSchema, Reference
from registry.promotions import selectors, services
from registry.promotions.board.readiness import can_promote
from registry.promotions.plan.types import ADVICE, SOURCE_DRIFT
from registry.promotions.requests.evidence_pack import evidence_of
from registry.promotions.reviews.decisions import why_alone
from registry.subjects.engine import schema_engine
from registry.subjects.lifecycle.notes import set_note
from registry.subjects.models import SchemaVersion, VersionStatus
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in
from tests.promotions.factories import BROKEN, CUSTOMERS, ORDERS, V1, V2, Cast, approve_shown, ask, register, state_of
from tests.promotions.plan.test_builder import finding

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
TIDY: dict[str, Any] = {
    "type": "record", "name": "Order", "namespace": "com.example", "doc": "An order of the shop.",
    "fields": [{"name": "id", "type": "long", "doc": "Its number."}],
}  # fmt: skip
#: without a namespace, and with an optional field that has no default
UNTIDY = {"type": "record", "name": "Order", "fields": [{"name": "note", "type": ["null", "string"]}]}


def advice(number: int) -> dict[str, dict[str, Any]]:
    """The checks that advise, by code."""
    return {check["code"]: check for check in selectors.get_request(number).checks if check["code"] in ADVICE}


def owned(username: str, pattern: str) -> None:
    Ownership.objects.create(subject_pattern=pattern, user=User.objects.get(username=username))


def test_what_is_seen_to_passes(cast: Cast) -> None:
    register(TIDY, cast["steward"])
    owned("steward", "orders-*")
    set_note(registry="dev", subject=ORDERS, tags=(), doc="What was bought.", expected="*", by=cast["steward"])
    found = advice(ask(cast))
    assert {code: check["verdict"] for code, check in found.items()} == dict.fromkeys(ADVICE, "pass"), found


def test_what_nobody_saw_to_is_named_and_stops_nothing(cast: Cast) -> None:
    register(UNTIDY, cast["steward"])
    register({**TIDY, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    owned("steward", "customers-*")
    number = services.request_promotion(
        source="dev", target="prod", items=[(ORDERS, 1), (CUSTOMERS, 1)], by=cast["steward"]
    )
    found = advice(number)
    assert {code: check["verdict"] for code, check in found.items()} == dict.fromkeys(ADVICE, "warn")
    assert "orders-value: " in found["lint"]["sentence"] and "customers-value: " not in found["lint"]["sentence"]
    assert found["owners"]["sentence"] == "No owner in prod: orders-value."
    assert "customers-value, orders-value" in found["descriptions"]["sentence"]
    assert all(check["cure"] and not check["overridable"] for check in found.values())
    info = selectors.get_request(number)
    assert worst(list(found.values())) is Verdict.OK and why_alone({"checks": list(found.values())}) == ""
    services.approve(request_id=number, by=cast["approver"], plan_hash=info.plan_hash)
    owned("steward", "orders-*")
    services.recheck(request_id=number, by=cast["steward"])
    assert state_of(number) == "approved", "advice that changes voids no approval"
    assert advice(number)["owners"]["verdict"] == "pass"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


MONEY = SubjectName(".", "money-value")
MONEY_TEXT: dict[str, Any] = {"type": "record", "name": "Money", "fields": [{"name": "amount", "type": "long"}]}
PRICED: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long", "doc": "Its number."}, {"name": "price", "type": "Money"}],
}


def check(number: int, code: str) -> dict[str, Any] | None:
    return next((item for item in selectors.get_request(number).checks if item["code"] == code), None)


# -- the first release ------------------------------------------------------------------------------------------------


def test_the_first_release_shows_its_whole_schema_everywhere(cast: Cast, api: Callable[[str], Client]) -> None:
    register(MONEY_TEXT, cast["steward"], subject=MONEY)
    register(PRICED, cast["steward"], references=[Reference("Money", "money-value", 1)])
    number = ask(cast)
    page = signed_in("approver").get(f"/ui/promotions/{number}?item=orders-value")
    new = page.context["page"].changes.new
    assert json.loads(new.schema.text) == PRICED
    assert [(row.path, row.type) for row in new.schema.fields][:1] == [("Order.id", "long")]
    assert [(row.name, row.subject, row.version) for row in new.schema.references] == [("Money", "money-value", 1)]
    text = page.content.decode()
    assert "The whole schema" in text and "Its number." in text
    steps = api("approver").get(f"/api/v1/promotions/{number}").json()["plan"]["steps"]
    shown = {step["subject"]: step for step in steps}
    assert json.loads(shown["orders-value"]["text"]) == PRICED
    assert shown["orders-value"]["references"] == [{"name": "Money", "subject": "money-value", "version": 1}]
    pack = evidence_of(number, cast["approver"])
    whole = {item["subject"]: item["schema"] for item in pack["changes"]}
    assert json.loads(whole["orders-value"]["text"]) == PRICED
    assert [row["path"] for row in whole["money-value"]["fields"]] == ["Money.amount"]
    html = signed_in("approver").get(f"/ui/promotions/{number}/evidence.html").content.decode()
    assert "refers to" in html and "money-value" in html


def test_a_first_release_whose_fields_are_too_costly_is_shown_by_its_text(
    cast: Cast, api: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    register(V1, cast["steward"])
    number = ask(cast)

    def refuse(schema: ParsedSchema) -> None:
        raise SchemaTooCostly("the fields take more than 2 s to list")

    monkeypatch.setattr(schema_engine, "outline", refuse)
    for path in (f"/ui/promotions/{number}", f"/ui/promotions/{number}/evidence.html"):
        answer = signed_in("approver").get(path)
        assert answer.status_code == 200, path
        assert "Order" in answer.content.decode(), path
    pack = api("approver").get(f"/api/v1/promotions/{number}/evidence")
    assert pack.status_code == 200
    (change,) = pack.json()["changes"]
    assert (json.loads(change["schema"]["text"]), change["schema"]["fields"]) == (V1, [])


def test_a_proposed_first_schema_is_shown_and_a_later_one_compared(cast: Cast) -> None:
    number = services.propose_version(
        target="prod", subject=ORDERS, text=json.dumps(V1), schema_type="AVRO", reason="new", by=cast["steward"]
    )
    page = signed_in("approver").get(f"/ui/promotions/{number}").context["page"]
    assert json.loads(page.changes.new.schema.text) == V1
    register(V1, cast["admin"], registry="staging")
    register(V2, cast["steward"])
    later = signed_in("approver").get(f"/ui/promotions/{ask(cast, target='staging')}").context["page"]
    assert later.changes.comparison is not None and later.changes.new is None


# -- the source -------------------------------------------------------------------------------------------------------


def test_open_breaks_at_the_source_are_never_green(cast: Cast, api: Callable[[str], Client]) -> None:
    register(V1, cast["steward"])
    found = finding("dev", "break")
    register(V2, cast["steward"])
    number = ask(cast)
    told = check(number, SOURCE_DRIFT)
    assert told is not None and told["verdict"] == "warn"
    assert told["sentence"] == "1 open break finding for orders-value in dev."
    assert why_alone(selectors.get_request(number).plan).startswith("A check warns")
    answer = can_promote(subject=ORDERS, source="dev", target="prod", by=cast["approver"], version=1)
    assert {SOURCE_DRIFT, "newer-version"} <= {reason.code for reason in answer.reasons}
    page = signed_in("approver").get(f"/ui/promotions/{number}")
    assert page.context["page"].verdict.code != "ok"
    (link,) = page.context["page"].source_findings
    assert link.url == "/ui/findings?registry=dev&subject=orders-value"
    assert f"/ui/findings/{found.pk}" in signed_in("approver").get(link.url).content.decode()
    assert "Open break findings in the source" in page.content.decode()
    (shown,) = api("approver").get(f"/api/v1/promotions/{number}").json()["source_findings"]
    assert shown["id"] == found.pk
    (left,) = services.approve_together(plans=[(number, selectors.get_request(number).plan_hash)], by=cast["approver"])
    assert "A check warns" in left.refused
    with pytest.raises(InvalidInput, match="1 open break finding"):
        approve_shown(request_id=number, by=cast["approver"])
    assert approve_shown(request_id=number, by=cast["approver"], comment="the consumer is gone") == "approved"
    assert "Approving this needs a comment." in page.content.decode()
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    page = signed_in("approver").get(f"/ui/promotions/{number}")
    assert "Approving this needs a comment." not in page.content.decode(), "nobody approves it any more"


def test_a_break_that_opens_later_is_seen_at_once(cast: Cast, api: Callable[[str], Client]) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    waiting = "/ui/promotions?who=waiting"
    assert signed_in("approver").get(waiting).context["page"].rows[0].verdict.code == "ok"
    finding("dev", "break")
    (row,) = signed_in("approver").get(waiting).context["page"].rows
    assert row.verdict.code == "care" and "1 open break finding" in row.alone
    assert signed_in("approver").get(f"/ui/promotions/{number}").context["page"].verdict.code == "care"
    several = signed_in("approver").get(f"/ui/promotions/approve?request={number}").context["page"]
    assert not several.rows and "1 open break finding" in several.left[0].reason
    checks = api("approver").get(f"/api/v1/promotions/{number}").json()["plan"]["checks"]
    assert {item["code"]: item["verdict"] for item in checks}[SOURCE_DRIFT] == "warn"
    Finding.objects.update(state="resolved")
    assert signed_in("approver").get(waiting).context["page"].rows[0].verdict.code == "ok"


def test_a_break_that_opens_later_voids_the_approval(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"
    finding("dev", "break")
    with pytest.raises(PlanChanged, match="drift of orders-value in the source"):
        services.apply(request_id=number, by=cast["approver"])
    assert state_of(number) == "in review"


@pytest.mark.parametrize(
    "harmless",
    [
        {"severity": "risk"},
        {"state": "acknowledged", "acknowledged_reason": "known"},
        {"state": "resolved"},
        {"muted": True},
    ],
)
def test_what_is_decided_or_no_break_is_not_said(cast: Cast, harmless: dict[str, Any]) -> None:
    register(V1, cast["steward"])
    found = finding("dev", "break")
    Finding.objects.filter(pk=found.pk).update(**harmless)
    assert check(ask(cast), SOURCE_DRIFT) is None


def test_a_newer_version_alone_is_said_and_weighs_nothing(cast: Cast) -> None:
    register(V1, cast["steward"])
    register(V2, cast["steward"])
    number = ask(cast)
    told = check(number, "newer-version")
    assert told is not None
    assert told["sentence"] == "dev has version 2 of orders-value. This request promotes version 1."
    assert why_alone(selectors.get_request(number).plan) == ""
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"
    register({**V2, "doc": "Later."}, cast["steward"])
    assert services.apply(request_id=number, by=cast["approver"]) == "applied", "a newer one voids nothing"


def test_findings_of_a_source_out_of_sight_are_counted_alone(cast: Cast, api: Callable[[str], Client]) -> None:
    register(V1, cast["steward"])
    found = finding("dev", "break")
    number = ask(cast)
    user = User.objects.get(username="approver")
    RoleGrant.objects.filter(user=user).delete()
    RoleGrant.objects.create(user=user, role="approver", registry="prod")
    answer = api("approver").get(f"/api/v1/promotions/{number}")
    assert answer.json()["source_findings"] == []
    assert found.sentence not in answer.content.decode()
    page = signed_in("approver").get(f"/ui/promotions/{number}").content.decode()
    assert "1 open break finding" in page and f"/ui/findings/{found.pk}" not in page


def test_the_board_hears_of_a_break_at_the_source(cast: Cast) -> None:
    from registry.promotions.board.readiness_fingerprint import bases, pairs_of
    from registry.promotions.environments.selectors import environment_rows

    register(V1, cast["steward"])

    def basis() -> set[str]:
        return {text for _, name, text in bases(pairs_of(environment_rows())) if name == ORDERS}

    before = basis()
    finding("dev", "break")
    assert basis() != before


def test_what_comes_from_nowhere_has_no_source(cast: Cast) -> None:
    finding("prod", "risk")
    number = services.propose_version(
        target="prod", subject=ORDERS, text=json.dumps(BROKEN), schema_type="AVRO", reason="new", by=cast["steward"]
    )
    assert check(number, SOURCE_DRIFT) is None and check(number, "newer-version") is None


def test_a_newer_version_that_is_quarantined_is_not_advised(cast: Cast) -> None:
    register(V1, cast["steward"])
    register(V2, cast["steward"])
    newest = SchemaVersion.objects.get(version=2)
    VersionStatus.objects.create(version=newest, status="quarantined", message="?", decided_by="tests")
    assert check(ask(cast), "newer-version") is None
