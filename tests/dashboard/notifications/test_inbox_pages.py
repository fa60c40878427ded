"""The inbox and the findings: what a review costs and when it is due, what resolves drift, what "no drift" rests on."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.sources.coverage import clean_of
from registry.access.roles import Actor, Grant
from registry.drift.models import Finding, Scan, Source
from registry.drift.selectors import ScanInfo
from registry.promotions import services
from registry.promotions.models import PromotionRequest
from registry.promotions.reviews.reviewers import freezes_soon, waits_long, worked
from registry.promotions.selectors import resolving
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import make_source
from tests.markup import compact
from tests.promotions.factories import BROKEN, CUSTOMERS, ORDERS, V1, V2, Cast, ask, register

pytestmark = pytest.mark.requirement("CARD-3", "CARD-4")
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> Cast:
    """Everybody who takes part, by name."""
    return {name: person(name) for name in ("reader", "steward", "approver", "approver2", "admin")}


@pytest.fixture
def source() -> Source:
    """Topics of dev."""
    return make_source()


@pytest.fixture
def find(source: Source) -> Callable[..., Finding]:
    """A finding of orders in dev; what is given replaces its fields."""

    def make(**fields: Any) -> Finding:
        now = timezone.now()
        values = {
            "rule": "FIELD_UNDECLARED", "severity": "risk", "sentence": "Field coupon appears in 10 of 40.",
            "remedy": "Declare it.", "location": "orders", "subject_name": "orders-value", "evidence": {}, "first_seen": now,
            "last_seen": now, "fingerprint": f"{Finding.objects.count():064}",
        }  # fmt: skip
        return Finding.objects.create(source=source, **(values | fields))

    return make


def propose(cast: Cast, finding: Finding, subject: SubjectName = ORDERS, **more: Any) -> int:
    """A request that answers a finding."""
    schema = {**V1, "doc": f"for {finding.pk} {subject.subject}"}
    return services.propose_version(
        target="staging", subject=subject, text=json.dumps(schema), by=cast["steward"], finding=finding.pk, **more
    )


def seen(answer: Any) -> str:
    """What a person reads of a page: without markup, white space folded."""
    assert answer.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


# --- the inbox ---------------------------------------------------------------------------------------------------


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        ("2026-11-23T09:00", "2026-11-23T10:00", 1),  # a Monday
        ("2026-11-23T09:00", "2026-11-25T09:00", 48),
        ("2026-11-20T12:00", "2026-11-23T12:00", 24),  # over a weekend
        ("2026-11-21T00:00", "2026-11-22T23:00", 0),  # within one
        ("2026-11-21T13:00", "2026-11-23T01:00", 1),
        ("2026-11-23T00:00", "2026-12-07T00:00", 240),  # two weeks
        ("2026-11-20T12:00", "2026-12-01T12:00", 168),
        ("2026-11-23T10:00", "2026-11-23T10:00", 0),
        ("2026-11-24T10:00", "2026-11-23T10:00", 0),
    ],
)
def test_working_time_leaves_weekends_out(since: str, until: str, hours: int) -> None:
    assert worked(at(since), at(until)) == timedelta(hours=hours)


def test_a_review_is_due_after_two_working_days() -> None:
    asked = at("2026-11-20T12:00")  # a Friday
    assert not waits_long(asked, at("2026-11-24T12:00"))
    assert waits_long(asked, at("2026-11-24T12:01"))


def test_only_a_freeze_that_begins_soon_makes_a_review_due(cast: Cast) -> None:
    now = timezone.now()
    for begins, reason in (
        (timedelta(days=3), "later"),
        (timedelta(hours=-1), "holds already"),
        (timedelta(hours=5), "a sale"),
    ):
        services.add_freeze(
            environment="staging", starts_at=now + begins, ends_at=now + begins + timedelta(hours=2), reason=reason,
            by=cast["admin"],
        )  # fmt: skip
    with CaptureQueriesContext(connection) as queries:
        found = freezes_soon({"staging", "prod"}, now)
    assert {name: window.reason for name, window in found.items()} == {"staging": "a sale"}
    assert len(queries) == 1
    assert freezes_soon(set(), now) == {}


def test_what_waits_says_what_it_costs_and_whether_it_is_due(look: Callable[[str], Client], cast: Cast) -> None:
    register(V1, cast["steward"])
    register(V1, cast["steward"], registry="staging")
    register(BROKEN, cast["admin"], force="tests")
    breaking = ask(cast, version=2, target="staging")
    text = seen(look("approver").get("/ui/"))
    assert "Breaking change, 1 failed check" in text
    assert "Review due" not in text and "Approve several" not in text
    PromotionRequest.objects.filter(pk=breaking).update(requested_at=timezone.now() - timedelta(days=8))
    text = seen(look("approver").get("/ui/"))
    assert "Review due Waiting for more than 2 working days." in text
    now = timezone.now()
    services.add_freeze(
        environment="prod", starts_at=now + timedelta(hours=3), ends_at=now + timedelta(days=1), reason="a sale",
        by=cast["admin"],
    )  # fmt: skip
    safe = [ask(cast, version=1, target="prod")]
    assert "Approve several" not in seen(look("approver").get("/ui/"))
    register(V1, cast["steward"], subject=CUSTOMERS)
    safe.insert(0, services.request_promotion(source="dev", target="prod", subject=CUSTOMERS, by=cast["steward"]))
    page = look("approver").get("/ui/")
    assert "Review due A freeze of prod starts at " in seen(page) and "UTC: a sale" in seen(page)
    several = f"/ui/promotions/approve?request={safe[0]}&amp;request={safe[1]}"
    assert f'<a href="{several}">Approve several</a>' in compact(page.content.decode())


def test_more_that_waits_takes_no_more_queries(
    look: Callable[[str], Client], cast: Cast, find: Callable[..., Finding]
) -> None:
    client = look("approver")

    def add(number: int) -> None:
        name = SubjectName(".", f"s{number}-value")
        register(V1, cast["steward"], subject=name)
        ask(cast, subject=name, target="staging")
        propose(cast, find(), name)

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/ui/").status_code == 200
        return len(queries)

    add(0)
    add(1)
    few = count()
    for number in range(2, 7):
        add(number)
    assert count() == few


def test_drift_is_put_off_from_the_inbox(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    row = find()
    client = look("approver")
    page = client.get("/ui/").content.decode()
    form = re.search(
        rf'<form class="inline-form" method="post" action="/ui/findings/{row.pk}/acknowledge">.*?</form>',
        compact(page),
        re.S,
    )
    assert form is not None
    until = re.search(r'name="until" value="(\d{4}-\d\d-\d\d)" min="(\d{4}-\d\d-\d\d)" required', form[0])
    assert until is not None and until[1] > until[2] > f"{timezone.now():%Y-%m-%d}"
    sent = {"reason": "the producer is being mended", "until": until[1], "next": "/ui/"}
    answer = client.post(f"/ui/findings/{row.pk}/acknowledge", sent)
    assert (answer.status_code, answer["Location"]) == (302, "/ui/")
    row.refresh_from_db()
    assert (row.state, row.acknowledged_reason) == ("acknowledged", "the producer is being mended")
    assert row.acknowledged_until is not None and f"{row.acknowledged_until:%Y-%m-%d}" == until[1]
    assert f'href="/ui/findings/{row.pk}"' not in client.get("/ui/").content.decode()


@pytest.mark.parametrize("away", ["//evil.example", "https://evil.example/ui/", "/ui/../x", "", "/ui/findings"])
def test_it_leads_home_or_to_the_finding_and_nowhere_else(
    look: Callable[[str], Client], find: Callable[..., Finding], away: str
) -> None:
    row = find()
    answer = look("approver").post(f"/ui/findings/{row.pk}/acknowledge", {"reason": "x", "next": away})
    assert answer["Location"] == f"/ui/findings/{row.pk}"


def test_home_says_the_same_word_for_the_same_act(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    row = find()
    home, finding = (look("approver").get(url).content.decode() for url in ("/ui/", f"/ui/findings/{row.pk}"))
    assert "Snooze" not in home
    assert all(re.search(r"Acknowledge\s*</button>", page) for page in (home, finding))


def test_home_has_a_line_for_each_source_that_was_not_scanned_the_worst_first(
    look: Callable[[str], Client], source: Source
) -> None:
    registry, now, old = source.registry, timezone.now(), timezone.now() - timedelta(days=3)

    def add(name: str, **scan: Any) -> None:
        row = Source.objects.create(registry=registry, kind="state_store", name=name, created_by="x")
        if scan:
            Scan.objects.create(source=row, queued_by="beat", **{"started_at": now, "finished_at": now, **scan})

    add("well", state="done", read={"nothing": False, "messages": 1})
    add("long ago", state="done", read={"nothing": False, "messages": 1}, finished_at=old)
    add("ended", state="cancelled")
    add("nothing read", state="done", read={"nothing": True})
    add(HOSTILE, state="failed", error="no right")
    add("under way", state="queued", started_at=None, finished_at=None)
    client = look("reader")
    with CaptureQueriesContext(connection) as few:
        item = next(item for item in client.get("/ui/").context["page"].health if item.lines)
    assert [(line.name, line.state.code) for line in item.lines] == [
        (HOSTILE, "failed"),
        (source.name, "never"),
        ("nothing read", "not scanned"),
        ("ended", "cancelled"),
        ("long ago", "never"),
    ]
    assert (item.more, item.lines[-1].word) == (0, "Not in the last 24 hours")
    for number in range(4):
        add(f"new {number}", state="failed", error="no answer")
    with CaptureQueriesContext(connection) as many:
        answer = client.get("/ui/")
    assert len(many) == len(few), "however many sources there are"
    assert HOSTILE not in answer.content.decode() and "4 more sources" in seen(answer)


def test_who_may_not_decide_is_offered_no_snooze(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    row = find()
    page = look("reader").get("/ui/").content.decode()
    assert f'href="/ui/findings/{row.pk}"' in page and "/acknowledge" not in page


# --- what resolves a finding -------------------------------------------------------------------------------------


def test_an_open_request_is_a_chip_at_what_it_answers(
    look: Callable[[str], Client], cast: Cast, find: Callable[..., Finding]
) -> None:
    answered, left = find(sentence="answered one"), find(sentence="left alone")
    number = propose(cast, answered)
    client = look("reader")
    for address in ("/ui/findings", f"/ui/findings/{answered.pk}", "/ui/"):
        page = client.get(address)
        assert f"Resolving #{number}" in seen(page), address
        assert f'href="/ui/promotions/{number}"' in page.content.decode()
    assert "Resolving #" not in seen(client.get(f"/ui/findings/{left.pk}"))
    listed = seen(client.get("/ui/findings?state=resolving"))
    assert "answered one" in listed and "left alone" not in listed
    services.withdraw(request_id=number, by=cast["steward"])
    assert "Resolving #" not in seen(client.get(f"/ui/findings/{answered.pk}"))
    assert "No matching findings" in seen(client.get("/ui/findings?state=resolving"))


def test_a_draft_and_a_resolved_finding_are_not_resolving(
    look: Callable[[str], Client], cast: Cast, find: Callable[..., Finding]
) -> None:
    row = find()
    services.save_draft(registry="staging", subject=ORDERS, text=json.dumps(V2), by=cast["steward"], finding=row.pk)
    assert resolving(cast["steward"]) == {}
    number = propose(cast, row)
    assert resolving(cast["steward"]) == {row.pk: (number,)}
    Finding.objects.filter(pk=row.pk).update(state="resolved", resolved_at=timezone.now())
    assert "No matching findings" in seen(look("steward").get("/ui/findings?state=resolving"))
    assert "Resolving #" not in seen(look("steward").get("/ui/findings?state=resolved"))


def test_a_request_that_one_may_not_read_is_no_chip(cast: Cast, find: Callable[..., Finding]) -> None:
    row = find()
    propose(cast, row)
    narrow = Actor("narrow", "ui", grants=(Grant("reader", "staging", "other-*"), Grant("reader", "dev", "*")))
    assert resolving(narrow, [row.pk]) == {}
    assert list(resolving(cast["reader"], [row.pk])) == [row.pk]


def test_the_chips_of_a_list_take_one_query(cast: Cast, find: Callable[..., Finding]) -> None:
    rows = [find() for _ in range(6)]
    for number, row in enumerate(rows):
        propose(cast, row, SubjectName(".", f"s{number}-value"))
    with CaptureQueriesContext(connection) as queries:
        found = resolving(cast["reader"], [row.pk for row in rows])
    assert (len(found), len(queries)) == (6, 1)
    with CaptureQueriesContext(connection) as queries:
        assert resolving(cast["reader"], []) == {}
    assert len(queries) == 0


# --- what "no drift" rests on --------------------------------------------------------------------------------------

BEGUN = at("2026-11-23T10:02")


def scan(read: dict[str, Any] | None, minutes: int = 5, **more: Any) -> ScanInfo:
    values = {
        "id": 1, "source_id": 1, "state": "done", "queued_at": BEGUN, "queued_by": "beat", "started_at": BEGUN,
        "finished_at": BEGUN + timedelta(minutes=minutes), "phase": "", "progress_done": 0, "progress_total": 0, "read": read,
        "error": "",
    }  # fmt: skip
    return ScanInfo(**(values | more))


PARTITIONS = [{"partition": number} for number in range(8)]


@pytest.mark.parametrize(
    ("scans", "said"),
    [
        ([], ""),
        (
            [scan({"messages": 5000, "partitions": PARTITIONS}), scan({"messages": 120, "partitions": PARTITIONS[:4]})],
            "No drift in 5,120 messages in 12 partitions, 2026-11-23 10:02–10:07 UTC.",
        ),
        (
            [scan({"messages": 9, "partitions": PARTITIONS, "left_out": {"partitions": 92}})],
            "No drift in 9 messages in 100 partitions, 2026-11-23 10:02–10:07 UTC.",
        ),
        (
            [scan({"messages": 1, "partitions": PARTITIONS[:1]}), scan({"rows": 40, "variables": [{}, {}]}, 24 * 60)],
            "No drift in 1 message in 1 partition and 40 rows of 2 state variables, 2026-11-23 10:02–2026-11-24 10:02 UTC.",
        ),
        ([scan({"advice": []})], "No drift in the data of 1 source, 2026-11-23 10:02–10:07 UTC."),
        (
            [scan({"messages": HOSTILE, "partitions": 7, "left_out": []}, finished_at=None)],
            "No drift in the data of 1 source.",
        ),
    ],
)
def test_no_drift_says_in_what_and_when(scans: list[ScanInfo], said: str) -> None:
    assert clean_of(scans) == said


def test_the_green_page_says_what_was_read_and_when_it_is_next(look: Callable[[str], Client], source: Source) -> None:
    now = timezone.now()
    Scan.objects.create(
        source=source, state="done", queued_by="beat", started_at=now, finished_at=now,
        read={"nothing": False, "messages": 5120, "partitions": PARTITIONS},
    )  # fmt: skip
    Source.objects.update(next_scan_at=None)
    text = seen(look("reader").get("/ui/findings"))
    assert "No drift in 5,120 messages in 8 partitions" in text and "No scan is scheduled." in text
    Source.objects.update(next_scan_at=now + timedelta(hours=1, minutes=1))
    assert re.search(
        r"The next scan is in 1 h|The next scan is in 60 min|The next scan is in 61 min",
        seen(look("reader").get("/ui/findings")),
    )


def test_people_and_groups_is_in_the_menu_of_who_may_open_it(look: Callable[[str], Client]) -> None:
    for name, there in (("admin", True), ("approver", False), ("reader", False)):
        client = look(name)
        assert ('href="/ui/people"' in client.get("/ui/").content.decode()) == there, name
        assert (client.get("/ui/people").status_code == 200) == there, name
