"""What tells: requests from the first to the last step, and scans that find, lose and find again."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from registry.access.roles import Actor
from registry.drift import services
from registry.drift.events import MOST
from registry.drift.models import Finding
from registry.drift.selectors import get_finding
from registry.notifications import services as inbox
from registry.notifications.models import InboxEntry, Notice
from registry.promotions import services as promotions
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import judged, make_source, scan, topic
from tests.promotions.factories import approve_shown

ORDERS = SubjectName(".", "orders-value")


def schema(*names: str) -> str:
    """A record with these fields, each of which may be left out."""
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def told(event: str) -> list[str]:
    """Who has a notice of the event."""
    return sorted(InboxEntry.objects.filter(notice__event=event).values_list("user__username", flat=True))


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> dict[str, Actor]:
    return {name: person(name) for name in ("reader", "steward", "approver", "admin")}


def ask(by: Actor) -> int:
    """A request for the only version."""
    return promotions.request_promotion(source="dev", target="staging", subject=ORDERS, version=1, by=by)


@pytest.mark.requirement("ORA-1", "CARD-4")
def test_a_request_tells_reviewers_and_then_its_requester(cast: dict[str, Actor]) -> None:
    register_version(registry="dev", subject=ORDERS, text=schema("id"), by=cast["steward"])
    number = ask(cast["steward"])
    assert told("promotion.requested") == ["admin", "approver"]
    approve_shown(request_id=number, by=cast["approver"])
    promotions.apply(request_id=number, by=cast["admin"])
    assert told("promotion.reviewed") == ["steward"]
    assert told("promotion.applied") == ["steward"]
    notice = Notice.objects.get(event="promotion.applied")
    assert (notice.registry, notice.subject, notice.url) == ("staging", "orders-value", f"/ui/promotions/{number}")


@pytest.mark.requirement("ORA-1")
def test_turned_down_and_withdrawn(cast: dict[str, Actor]) -> None:
    register_version(registry="dev", subject=ORDERS, text=schema("id"), by=cast["steward"])
    promotions.reject(request_id=ask(cast["steward"]), comment="no", by=cast["approver"])
    assert told("promotion.reviewed") == ["steward"]
    promotions.withdraw(request_id=ask(cast["steward"]), by=cast["steward"])
    assert told("promotion.withdrawn") == []  # their own act; nobody subscribed


def test_a_change_that_fails_tells_nobody(cast: dict[str, Actor]) -> None:
    register_version(registry="dev", subject=ORDERS, text=schema("id"), by=cast["steward"])
    ask(cast["steward"])
    with pytest.raises(Exception, match="already open"):
        ask(cast["approver"])
    assert Notice.objects.filter(event="promotion.requested").count() == 1


@pytest.mark.requirement("CARD-3")
def test_a_breaking_finding_is_notified_when_it_opens_and_when_it_comes_back(
    cast: dict[str, Actor], system: Actor
) -> None:
    source = make_source()
    scan(source, system, judged(severity="break"))
    scan(source, system, judged(severity="break"))
    assert told("finding.opened") == ["admin", "approver", "steward"]
    for _ in range(source.clean_scans):
        scan(source, system, topics=(topic(clean=True),))
    assert Notice.objects.filter(event="finding.resolved").count() == 0  # nobody subscribed
    scan(source, system, judged(severity="break"))
    assert told("finding.reopened") == ["admin", "approver", "steward"]


@pytest.mark.requirement("CARD-3")
def test_a_notice_says_the_total_where_it_is_not_that_of_its_sentence(cast: dict[str, Actor], system: Actor) -> None:
    """The sentence is about the last scan that saw the finding, its count about all scans: so on the page and in the API."""
    inbox.subscribe(event="finding.resolved", by=cast["reader"])
    source = make_source()
    found = judged(severity="break", topic="orders", count=5, evidence={"topic": "orders", "messages": 5})
    for _ in range(2):
        scan(source, system, found, topics=(topic(),))
    for _ in range(source.clean_scans):
        scan(source, system, topics=(topic(clean=True),))
    row = Finding.objects.get()
    opened, resolved = (Notice.objects.filter(event=f"finding.{turn}").first() for turn in ("opened", "resolved"))
    assert opened is not None and resolved is not None
    assert opened.text == row.sentence
    assert resolved.text == f"Resolved: {row.sentence} In all scans since {row.first_seen:%Y-%m-%d %H:%M} UTC: 10."
    assert (resolved.data["count"], resolved.data["last_scan_count"]) == (10, 5)
    info = get_finding(row.pk)
    assert (info.count, info.last_scan_count, info.evidence["messages"]) == (10, 5, 5)


def test_what_is_muted_or_less_than_a_break_is_not_notified(cast: dict[str, Actor], system: Actor) -> None:
    source = make_source()
    services.mute(registry="dev", subject="orders-*", reason="a migration", by=system)
    scan(source, system, judged(severity="break"), judged("b", severity="risk", subject="other-value"))
    assert Notice.objects.count() == 0


def test_subscribers_get_risks_from_their_opening_to_their_end(cast: dict[str, Actor], system: Actor) -> None:
    inbox.subscribe(event="*", by=cast["reader"])
    source = make_source()
    scan(source, system, judged(severity="risk"), judged("b", severity="notice"))
    for _ in range(source.clean_scans):
        scan(source, system, topics=(topic(clean=True),))
    scan(source, system, judged(severity="risk"))
    for turn in ("opened", "resolved", "reopened"):
        assert told(f"finding.{turn}") == ["reader"]


def test_many_findings_of_one_scan_end_in_one_sentence(cast: dict[str, Actor], system: Actor) -> None:
    inbox.subscribe(event="finding.resolved", by=cast["reader"])
    source = make_source()
    scan(source, system, *(judged(f"{number:064}"[:64], fingerprint=f"{number:064}") for number in range(MOST + 5)))
    notices = Notice.objects.filter(event="finding.opened").order_by("id")
    assert notices.count() == MOST + 1
    assert notices.last().text == "5 more breaking findings of topics were found."  # type: ignore[union-attr]
    for _ in range(source.clean_scans):
        scan(source, system, topics=(topic(clean=True),))
    assert told("finding.resolved") == ["reader"] * (MOST + 1)
