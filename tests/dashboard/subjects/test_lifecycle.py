"""A subject's page with the life of its versions, the forms that change it, and home as one inbox; without JavaScript."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift.models import Scan, Source
from registry.notifications.services import notify
from registry.promotions import services
from registry.promotions.models import PromotionRequest
from registry.subjects.models import Registry
from registry.subjects.services import register_version, set_version_status
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import list_version_statuses
from tests.markup import compact
from tests.promotions.factories import approve_shown

ORDERS = SubjectName(".", "orders-value")
DEV, STAGING = (f"/ui/registries/{name}/subjects/orders-value/" for name in ("dev", "staging"))

QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())

pytestmark = pytest.mark.requirement("ORA-1")


def text(*fields: str) -> str:
    columns = [{"name": name, "type": "long", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": columns})


@pytest.fixture
def versions(registries: None, system: Actor) -> None:
    """Two versions in dev, the first of them in staging too, where nobody asked for it."""
    for registry, fields in (("dev", "a"), ("dev", "ab"), ("staging", "a")):
        register_version(registry=registry, subject=ORDERS, text=text(*fields), by=system)


def seen(client: Client, path: str) -> str:
    response = client.get(path, follow=True)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode()))


def test_a_version_is_deprecated_and_brought_back_by_forms(versions: None, look: Callable[[str], Client]) -> None:
    client = look("steward")
    form = {"version": "1", "status": "deprecated", "message": "Use <b>2</b>.", "ends_at": "2099-12-31"}
    response = client.post(f"{DEV}status", form)
    assert response["Location"] == f"{DEV}?version=1#status"
    html = client.get(f"{DEV}?version=1", follow=True).content.decode()
    assert "Deprecated until 2099-12-31" in html
    assert "Use &lt;b&gt;2&lt;/b&gt;." in html
    assert "<b>2</b>" not in html
    client.post(f"{DEV}reactivate", {"version": "1"})
    assert list_version_statuses(get_registry("dev"), subject=ORDERS) == []
    assert "Deprecated until" not in seen(client, f"{DEV}?version=1")


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"version": "1", "status": "deprecated", "message": ""}, "This field is required"),
        ({"version": "1", "status": "worse", "message": "x"}, "worse is not one of the available choices"),
        ({"version": "x", "status": "retired", "message": "x"}, "not a valid version"),
        ({"version": "1", "status": "retired", "message": "x", "ends_at": "2099-01-01"}, "Only a deprecated version"),
        ({"version": "1", "status": "deprecated", "message": "x", "ends_at": "soon"}, "Write the date as 2026-12-31"),
    ],
)
def test_what_cannot_be_is_said_on_the_page(
    versions: None, look: Callable[[str], Client], form: dict[str, str], sentence: str
) -> None:
    client = look("steward")
    response = client.post(f"{DEV}status", form)
    assert response.status_code == 302
    assert sentence in seen(client, DEV)
    assert list_version_statuses(get_registry("dev"), subject=ORDERS) == []


def test_a_reader_sees_it_and_changes_nothing(versions: None, look: Callable[[str], Client], system: Actor) -> None:
    set_version_status(registry="dev", subject=ORDERS, version=2, status="retired", message="Over.", by=system)
    client = look("reader")
    page = seen(client, DEV)
    assert "Retired since" in page
    assert "You need the admin or steward role" in page
    assert client.post(f"{DEV}reactivate", {"version": "2"}).status_code == 403
    assert client.post(f"{STAGING}adopt", {"version": "1", "reason": "x"}).status_code == 403
    assert client.get(f"{DEV}status").status_code == 405


def test_an_unapproved_version_is_marked_and_adopted_from_its_page(
    versions: None, look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    client = look("steward")
    page = seen(client, STAGING)
    assert "Unapproved : It was registered without a request." in page
    assert "Request adoption" in page
    assert client.post(f"{STAGING}adopt", {"version": "1", "reason": ""})["Location"].endswith("#status")
    response = client.post(f"{STAGING}adopt", {"version": "1", "reason": "It was urgent."})
    number = PromotionRequest.objects.get().pk
    assert response["Location"] == f"/ui/promotions/{number}"
    page = seen(client, STAGING)
    assert "In review for staging" in page
    assert "Request adoption" not in page
    approve_shown(request_id=number, by=person("approver"))
    services.apply(request_id=number, by=person("approver"))
    page = seen(client, STAGING)
    assert "Released to staging" in page
    assert "Ghost" not in page


def test_an_earlier_version_is_asked_back_from_its_page(
    versions: None, look: Callable[[str], Client], system: Actor
) -> None:
    register_version(registry="staging", subject=ORDERS, text=text(*"ab"), by=system)
    client, first = look("steward"), f"{STAGING}?version=1"
    assert "Request rollback" not in seen(client, STAGING), "it is current"
    assert "Request rollback to version 1" in seen(client, first)
    assert client.post(f"{STAGING}roll-back", {"version": "1", "reason": " "})["Location"].endswith("#status")
    assert client.post(f"{STAGING}roll-back", {"version": "2", "reason": "x"})["Location"].endswith("#status")
    assert not PromotionRequest.objects.exists()
    response = client.post(f"{STAGING}roll-back", {"version": "1", "reason": "Version 2 loses orders."})
    request = PromotionRequest.objects.get()
    assert response["Location"] == f"/ui/promotions/{request.pk}"
    assert (request.kind, request.reason) == (PromotionRequest.ROLL_BACK, "Version 2 loses orders.")
    assert "Roll orders-value back to version 1 in staging" in seen(client, f"/ui/promotions/{request.pk}")
    assert "Request rollback" not in seen(client, first), "it is asked for already"
    reader = look("reader")
    assert reader.post(f"{STAGING}roll-back", {"version": "1", "reason": "x"}).status_code == 403


@pytest.mark.parametrize("count", [1, 6])
def test_the_page_takes_the_same_queries_however_many_versions(
    registries: None, system: Actor, look: Callable[[str], Client], count: int
) -> None:
    for number in range(1, count + 1):
        register_version(registry="staging", subject=ORDERS, text=text(*"abcdefgh"[:number]), by=system)
        set_version_status(registry="staging", subject=ORDERS, version=number, status="retired", message="x", by=system)
    client = look("reader")
    client.get(STAGING)
    with CaptureQueriesContext(connection) as queries:
        client.get(STAGING)
    assert len(queries) <= QUERIES["subject"]


# ---- home ---------------------------------------------------------------------------------------------------------


def tell(user: Actor, **more: Any) -> None:
    happening = {
        "event": "config.changed",
        "registry": "dev",
        "subject": "a",
        "text": "The level moved.",
        "url": "/ui/x",
    }
    with transaction.atomic():
        notify(**{**happening, **more}, to=[user.user_id])


def test_home_shows_what_was_reported_until_it_is_read(
    versions: None, look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    client, reader = look("reader"), person("reader")
    assert "not read yet" not in seen(client, "/ui/")
    tell(reader)
    assert "The level moved." in seen(client, "/ui/")
    html = client.get("/ui/").content.decode()
    entry = re.findall(r'name="entry" value="(\d+)"', compact(html))
    client.post("/ui/inbox/read", {"entry": entry[0], "next": "/ui/"})
    assert "The level moved." not in seen(client, "/ui/")


def test_a_request_that_waits_is_shown_once_and_an_empty_inbox_says_what_was_decided_last(
    versions: None, look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    approver, client = person("approver"), look("approver")
    assert "No requests are waiting for you. All requests" in seen(client, "/ui/").replace("  ", " ")
    number = services.request_promotion(
        source="dev", target="staging", subject=ORDERS, version=2, by=person("steward"), reason="needed"
    )
    page = seen(client, "/ui/")
    assert f"#{number}" in page
    assert "Unread notices" not in page, "the notice that tells of it leads to the same request"
    services.reject(request_id=number, by=approver, comment="Not now.")
    page = seen(client, "/ui/")
    assert f"Last decision: request {number} (orders-value to staging) was rejected on" in page


def test_what_cannot_be_read_is_a_red_line_with_its_message(
    versions: None, look: Callable[[str], Client], system: Actor
) -> None:
    now = timezone.now()
    Registry.objects.filter(name="staging").update(
        kind=Registry.REMOTE, url="https://r.example", sync_error="r.example: status <500>", failing_since=now
    )
    source = Source.objects.create(
        registry=get_registry("dev"), kind="registry", name="the tables of dev", created_by="tests"
    )
    Scan.objects.create(source=source, state="failed", finished_at=now, error="Spark said no.", queued_by="tests")
    html = look("reader").get("/ui/").content.decode()
    for sentence in ("r.example: status &lt;500&gt;", "Spark said no.", "2 jobs failed", "The mirror staging"):
        assert sentence in html, sentence


@pytest.mark.parametrize("count", [1, 9])
def test_home_takes_the_same_queries_whatever_there_is(
    versions: None, look: Callable[[str], Client], person: Callable[[str], Actor], system: Actor, count: int
) -> None:
    reader, client = person("approver"), look("approver")
    for number in range(count):
        subject = SubjectName(".", f"s{number}")
        register_version(registry="dev", subject=subject, text=text("a"), by=system)
        services.request_promotion(
            source="dev", target="staging", subject=subject, version=1, by=person("steward"), reason="needed"
        )
        tell(reader, text=f"notice {number}")
    client.get("/ui/")
    with CaptureQueriesContext(connection) as queries:
        client.get("/ui/")
    assert len(queries) <= QUERIES["home"], "\n".join(query["sql"][:160] for query in queries)
