"""Deployments that programs reported, and what else was done shortly before a finding began."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import ADMIN, READER, Actor, Grant, TokenLimit, system_actor
from registry.access.services import issue_token
from registry.audit.models import AuditEvent
from registry.drift.findings import suspicions
from registry.drift.findings.suspicions import MAX_TOLD, began_at, suspicions_of
from registry.drift.models import Deployment, Finding, Source
from registry.drift.selectors import list_deployments
from registry.drift.services.scans import KEPT, RETRY_WINDOW, prune_deployments, report_deployment
from registry.drift.tasks import prune_deployments as prune_task
from registry.errors import FindingNotFound, InvalidInput, NotAllowed
from registry.subjects.models import Registry
from registry.subjects.services import delete_version, register_version, set_config
from registry.subjects.usage.clients import declare_client
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.drift.scans import judged, make_source, scan

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-3")]
NASTY = '<img src=x onerror="alert(1)">'
MINUTE = timedelta(minutes=1)


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


def tell(by: Actor, label: str = "billing 4.2.0", **values: Any) -> bool:
    return report_deployment(**{"registry": "dev", "label": label, "by": by, **values}).is_new


def found(source: Source, by: Actor, **values: Any) -> Finding:
    """A finding that begins now."""
    scan(source, by, judged("a", **values))
    return Finding.objects.get()


def test_two_deliveries_have_one_effect(registries: None, system: Actor) -> None:
    at = timezone.now() - 3 * MINUTE
    assert tell(system, at=at, subjects="orders-*")
    count = AuditEvent.objects.count()
    assert not tell(system, at=at, subjects="orders-*")
    assert not tell(system, subjects="orders-*"), "a delivery without a time is the one of minutes ago"
    assert AuditEvent.objects.count() == count, "and it leaves no trace of its own"
    assert not tell(system, at=at, url="https://ci.example/1"), "what is said otherwise holds"
    row = Deployment.objects.get()
    assert (row.at, row.url, row.subjects) == (at, "https://ci.example/1", "")
    event = AuditEvent.objects.filter(table="drift_deployment").first()
    assert event is not None
    assert (event.operation, event.why) == ("UPDATE", "report deployment billing 4.2.0 in dev")


def test_the_same_label_later_or_elsewhere_is_another(registries: None, system: Actor) -> None:
    assert tell(system)
    assert tell(system, registry="staging")
    Deployment.objects.update(told_at=timezone.now() - RETRY_WINDOW - MINUTE)
    assert tell(system), "a roll back to a version that was there before"


def test_a_time_of_long_ago_is_not_the_one_that_is_reported_now(registries: None, system: Actor) -> None:
    assert tell(system, at=timezone.now() - timedelta(days=60))
    assert tell(system), "told a moment ago, but it began two months ago"


def test_nobody_takes_over_what_was_reported_for_other_subjects(registries: None, system: Actor) -> None:
    orders = Actor(name="orders", channel="api", user_id=1, grants=(Grant(READER, subject_pattern="orders-*"),))
    assert tell(system, subjects="payments-*", url="https://ci.example/1")
    with pytest.raises(NotAllowed):
        tell(orders, subjects="orders-x", url="https://evil.example/")
    row = Deployment.objects.get()
    assert (row.subjects, row.url, row.told_by) == ("payments-*", "https://ci.example/1", system.name)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"label": " "}, "label"),
        ({"label": "x" * 201}, "label"),
        ({"label": "a\u202eb"}, "label"),
        ({"at": datetime(2999, 1, 1, tzinfo=UTC)}, "at"),
        ({"at": datetime(2001, 1, 1, tzinfo=UTC)}, "at"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"url": "https://user:secret@ci/1"}, "url"),
        ({"url": "https://[ci/1"}, "url"),
        ({"subjects": "*a" * 11}, "subjects"),
        ({"topics": "o" * 250}, "topics"),
        ({"client": "c" * 129}, "client"),
    ],
)
def test_what_cannot_be_used_is_refused(registries: None, system: Actor, values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tell(system, **values)
    assert refused.value.details["field"] == field


def test_the_database_keeps_one_of_a_label_and_a_time(registries: None, system: Actor) -> None:
    tell(system)
    row = Deployment.objects.get()
    for values in ({"label": row.label, "at": row.at}, {"label": "", "at": row.at}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Deployment.objects.create(registry=row.registry, told_by="x", **values)


READS = Grant(READER)
ORDERS = Grant(READER, subject_pattern="orders-*")


@pytest.mark.parametrize(
    ("grant", "limit", "values", "may"),
    [
        (READS, None, {}, True),
        (READS, TokenLimit(scope="register"), {}, True),
        (READS, TokenLimit(scope="promote"), {}, True),
        (READS, TokenLimit(scope="read"), {}, False),
        (READS, TokenLimit(scope="register", registry="prod"), {}, False),
        (READS, TokenLimit(scope="register", subject_pattern="orders-*"), {}, False),
        (READS, TokenLimit(scope="register", subject_pattern="orders-*"), {"subjects": "orders-*"}, True),
        (ORDERS, None, {"subjects": "orders-eu-*"}, True),
        (ORDERS, None, {"subjects": "*"}, False),
        (ORDERS, None, {"topics": "orders"}, False),
        (Grant(READER, subject_pattern="orders-?"), None, {"subjects": "orders-*"}, False),
        (Grant(READER, subject_pattern="orders-??"), None, {"subjects": "orders-**"}, False),
        (Grant(READER, subject_pattern="orders-[!a]"), None, {"subjects": "orders-*"}, False),
        (Grant(READER, subject_pattern="orders-?"), None, {"subjects": "orders-?"}, True),
        (Grant(ADMIN, registry="prod"), None, {}, False),
    ],
)
def test_who_may_tell(
    registries: None, grant: Grant, limit: TokenLimit | None, values: dict[str, Any], may: bool
) -> None:
    actor = Actor(name="ci", channel="product", user_id=1, grants=(grant,), limit=limit)
    if may:
        assert tell(actor, **values)
        return
    with pytest.raises(NotAllowed):
        tell(actor, **values)


def register(system: Actor, name: str) -> None:
    register_version(registry="dev", subject=SubjectName(".", name), text='"string"', by=system)


def test_what_was_deployed_in_the_hour_before_is_suspected(source: Source, system: Actor) -> None:
    register(system, "orders-value")
    now = timezone.now()
    declare_client(registry="dev", subject=SubjectName(".", "orders-value"), name="billing", writes=True, by=system)
    for label, minutes, values in (
        ("all 1", 3, {}),
        ("long ago", 61, {}),
        ("elsewhere", 2, {"registry": "staging"}),
        ("its subject", 4, {"subjects": "orders-*"}),
        ("another subject", 4, {"subjects": "customers-*"}),
        ("another topic", 4, {"subjects": "orders-*", "topics": "customers"}),
        ("its client", 5, {"client": "billing"}),
        ("another client", 5, {"client": "shipping"}),
    ):
        tell(system, label, at=now - minutes * MINUTE, **values)
    finding = found(source, system)
    Finding.objects.update(first_seen=now)
    suspected = suspicions_of(finding.pk).found
    assert [(item.name, item.seconds_before) for item in suspected if item.kind == "deployed"] == [
        ("all 1", 180), ("its subject", 240), ("its client", 300),
    ]  # fmt: skip


def test_many_deployments_take_as_many_queries_and_some_are_reported(source: Source, system: Actor) -> None:
    tell(system, "a 0", client="none")
    finding = found(source, system)
    with CaptureQueriesContext(connection) as few:
        suspicions_of(finding.pk)
    for number in range(12):
        tell(system, f"b {number}", client="" if number % 2 else "none")
    Finding.objects.update(first_seen=timezone.now())
    with CaptureQueriesContext(connection) as many:
        suspected = suspicions_of(finding.pk).found
    assert len(many) == len(few)
    assert [item.name for item in suspected] == [f"b {number}" for number in (11, 9, 7)], (
        "the rest is left to what the audit proves"
    )


def test_the_page_says_it_and_marks_the_hour(source: Source, system: Actor, look: Callable[[str], Client]) -> None:
    at = timezone.now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    first = int(at.timestamp() * 1000) + 45 * 60_000
    part = {"partition": 0, "messages": 3, "first_time": first, "last_time": first + 1000, "first_offset": 0, "last_offset": 2}  # fmt: skip
    tell(system, f"billing {NASTY}", at=at, url="https://ci.example/runs/7?a=1&b=2")
    tell(system, "no address", at=at + MINUTE)
    finding = found(source, system, evidence={"topic": "orders", "partitions": [part]})
    response = look("reader").get(f"/ui/findings/{finding.pk}")
    text = response.content.decode()
    rows = response.context["page"].suspected.rows
    assert [(row.before, row.sentence) for row in rows] == [
        ("44 minutes before", "no address was deployed"), ("45 minutes before", f"billing {NASTY} was deployed"),
    ]  # fmt: skip
    assert NASTY not in text
    assert 'href="https://ci.example/runs/7?a=1&amp;b=2"' in text and 'rel="noopener noreferrer"' in text
    (table, *_) = response.context["page"].bars
    assert [(bar.label, bar.count, bar.marks) for bar in table.bars] == [
        (f"{at:%Y-%m-%d %H}:00", 0, (f"{at:%H}:30 billing {NASTY}", f"{at:%H}:31 no address")),
        (f"{at + timedelta(hours=1):%Y-%m-%d %H}:00", 3, ()),
    ]  # fmt: skip


@pytest.mark.parametrize("time", [-1, 0, 253_402_300_799_999, 1_763_000_000_000_000])
def test_a_producer_with_a_wrong_clock_leaves_the_page(
    source: Source, system: Actor, look: Callable[[str], Client], time: int
) -> None:
    part = {"partition": 0, "messages": 3, "first_time": time, "last_time": time, "first_offset": 0, "last_offset": 2}
    finding = found(source, system, evidence={"topic": "orders", "partitions": [part]})
    assert sum(finding.evidence["ids_by_hour"].values()) == 3
    assert look("reader").get(f"/ui/findings/{finding.pk}").status_code == 200


def test_a_pipeline_tells_and_pages_through_them(registries: None, system: Actor, person: Callable[..., Actor]) -> None:
    person("reader")
    token = issue_token(username="reader", name="ci", scope="register", by=system)
    api = RawClient(HTTP_AUTHORIZATION=f"Bearer {token}")
    body = {"registry": "dev", "label": "billing 4.2.0", "at": timezone.now().isoformat(), "subjects": "orders-*"}

    def post(**more: Any) -> Any:
        return api.post("/api/v1/deployments", json.dumps(body | more), content_type="application/json")

    assert [post().status_code, post().status_code, post(registry="no").status_code] == [201, 200, 404]
    register_version(registry="dev", subject=ORDERS_VALUE, text='"string"', by=system)
    declare_client(registry="dev", subject=ORDERS_VALUE, name="billing", by=system)
    notes = [post(client=client).json()["note"] for client in ("", "billing", "nobody")]
    assert notes == ["", "", "No client nobody is declared in dev: no finding names this deployment until one is."]
    assert post(label="").status_code == post(url="ftp://x").status_code == 422
    for number in range(4):
        assert post(label=f"shipping {number}").status_code == 201  # all at one time: numbers decide
    labels: list[str] = []
    address = "/api/v1/deployments?registry=dev&limit=2"
    page = api.get(address).json()
    while page["before"]:
        labels += [row["label"] for row in page["deployments"]]
        page = api.get(f"{address}&before={page['before']}").json()
    labels += [row["label"] for row in page["deployments"]]
    assert labels == ["shipping 3", "shipping 2", "shipping 1", "shipping 0", "billing 4.2.0"]
    assert [row["label"] for row in api.get("/api/v1/deployments?label=shipping 1").json()["deployments"]] == [
        "shipping 1"
    ]
    for query in ("before=x", "before=1", "before=-1-1", f"before={'9' * 18}-1", "limit=0", "colour=red"):
        assert api.get(f"/api/v1/deployments?{query}").status_code == 422, query


def test_a_page_is_one_query(registries: None, system: Actor) -> None:
    tell(system)
    with CaptureQueriesContext(connection) as queries:
        assert len(list_deployments(registry="dev").rows) == 1
    assert len(queries) == 1


def test_they_are_kept_for_a_time(registries: None, system: Actor) -> None:
    tell(system, "new")
    registry = Registry.objects.get(name="dev")
    for number in range(3):
        old = timezone.now() - KEPT - (number + 1) * MINUTE
        Deployment.objects.create(registry=registry, label=f"old {number}", at=old, told_by="x")
    assert prune_deployments(by=system_actor("schedule")) == 3
    prune_task()
    assert list(Deployment.objects.values_list("label", flat=True)) == ["new"]
    assert AuditEvent.objects.filter(table="drift_deployment", operation="DELETE", actor="schedule").count() == 3


ORDERS_VALUE = SubjectName(".", "orders-value")


def new_finding(source: Source, system: Actor, **values: Any) -> Finding:
    """A finding that begins now."""
    scan(source, system, judged("a", **values))
    return Finding.objects.get()


def register_fields(system: Actor, subject: SubjectName = ORDERS_VALUE, *fields: str) -> None:
    text = {"type": "record", "name": "R", "fields": [{"name": name, "type": "long", "default": 0} for name in fields]}
    register_version(registry="dev", subject=subject, text=json.dumps(text), by=system)


def kinds(finding: Finding) -> list[tuple[str, str]]:
    return [(item.kind, item.name or str(item.version or "")) for item in suspicions_of(finding.pk).found]


def test_what_was_done_to_the_subject_is_reported_the_nearest_first(source: Source, system: Actor) -> None:
    register_fields(system)
    register_fields(system, ORDERS_VALUE, "a")
    register_fields(system, SubjectName(".", "other-value"))
    set_config(registry="dev", subject=ORDERS_VALUE, by=system, level="NONE")
    set_config(registry="dev", subject=SubjectName(".", "other-value"), by=system, level="FULL")
    declare_client(registry="dev", subject=ORDERS_VALUE, name="billing", by=system)
    delete_version(registry="dev", subject=ORDERS_VALUE, version=1, by=system)
    assert kinds(new_finding(source, system)) == [
        ("deleted", "1"), ("client", "billing"), ("level", "NONE"), ("registered", "2"), ("registered", "1"),
    ]  # fmt: skip


def test_what_holds_for_the_whole_registry_is_reported_too(source: Source, system: Actor) -> None:
    register_fields(system)
    set_config(registry="dev", subject=None, by=system, level="FORWARD")
    set_config(registry="staging", subject=None, by=system, level="FULL")
    item = suspicions_of(new_finding(source, system).pk).found[0]
    assert (item.kind, item.name, item.subject) == ("level", "FORWARD", "")


def test_how_the_source_is_scanned_may_be_it(source: Source, system: Actor) -> None:
    Source.objects.filter(pk=source.pk).update(mode="full")
    Source.objects.filter(pk=make_source(name="another").pk).update(mode="full")
    assert kinds(new_finding(source, system, subject="")) == [("source", "")]


def test_nothing_is_reported_where_nothing_was_done(
    source: Source, system: Actor, look: Callable[[str], Client]
) -> None:
    finding = new_finding(source, system)
    assert suspicions_of(finding.pk).found == ()
    page = look("reader").get(f"/ui/findings/{finding.pk}")
    assert page.context["page"].suspected is None
    assert "Suspected causes" not in page.content.decode()
    with pytest.raises(FindingNotFound):
        suspicions_of(finding.pk + 1)


def test_what_was_done_after_it_began_or_long_before_is_none(source: Source, system: Actor) -> None:
    register_fields(system)
    finding = new_finding(source, system)
    for moved in (timedelta(hours=2), -timedelta(hours=2)):
        Finding.objects.filter(pk=finding.pk).update(first_seen=timezone.now() + moved)
        assert suspicions_of(finding.pk).found == ()


SEEN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("evidence", "minutes"),
    [
        ({}, 0),
        ({"partitions": [{"first_time": 1_795_262_040_000}, {"first_time": 1_795_262_400_000}]}, -6),
        ({"partitions": [{"first_time": 0}]}, 0),
        ({"partitions": [{"first_time": 10**18}]}, 0),
        ({"partitions": [{"first_time": "x"}, "y", {}]}, 0),
        ({"partitions": [{"first_time": 1_795_300_000_000}]}, 0),
    ],
)
def test_it_began_with_its_first_message_where_that_has_a_time(evidence: dict[str, Any], minutes: int) -> None:
    assert began_at(SEEN, evidence) == SEEN + timedelta(minutes=minutes)


def test_a_release_stands_for_its_registration(source: Source, system: Actor) -> None:
    scope = suspicions._FindingScope(Registry.objects.get(name="dev"), source.pk, "orders-value", 7, 1, 3)
    at = SEEN - timedelta(minutes=3)
    release = {"environment_id": 3, "context_name": ".", "subject_name": "orders-value", "version_number": 4, "request_id": 9}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"at": at, "table": "promotions_release", "operation": "INSERT", "row_id": "1", "before": None, "after": release},
        {
            "at": at, "table": "subjects_schemaversion", "operation": "INSERT", "row_id": "5", "before": None,
            "after": {"subject_id": 7, "version": 4},
        },
    ]  # fmt: skip
    suspected = suspicions._suspicions(
        [(event, suspicions._kind(event, scope) or "source") for event in events], scope, SEEN
    )
    assert [(item.kind, item.version, item.request, item.seconds_before) for item in suspected] == [
        ("released", 4, 9, 180)
    ]
    events[0]["after"] = release | {"environment_id": 4}
    assert suspicions._kind(events[0], scope) is None, "a release elsewhere is none here"


def test_a_version_without_the_request_that_it_needed_is_said_to_be_that(
    source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_fields(system)
    from django.db.models import Q

    monkeypatch.setattr(suspicions, "unrequested", lambda _registry: Q(version=1))
    assert kinds(new_finding(source, system)) == [("unapproved", "1")]


def test_many_changes_take_as_many_queries_and_some_are_reported(source: Source, system: Actor) -> None:
    register_fields(system)
    finding = new_finding(source, system)
    Finding.objects.update(first_seen=timezone.now() + timedelta(seconds=30))
    with CaptureQueriesContext(connection) as few:
        suspicions_of(finding.pk)
    for number in range(12):
        register_fields(system, ORDERS_VALUE, f"f{number}")
    with CaptureQueriesContext(connection) as many:
        suspected = suspicions_of(finding.pk).found
    assert len(many) == len(few) <= 6
    assert len(suspected) == MAX_TOLD


def test_the_page_tells_them_with_links(source: Source, system: Actor, look: Callable[[str], Client]) -> None:
    register_fields(system)
    set_config(registry="dev", subject=None, by=system, level="FORWARD")
    finding = new_finding(source, system)
    response = look("reader").get(f"/ui/findings/{finding.pk}")
    rows = response.context["page"].suspected.rows
    assert [row.sentence for row in rows] == [
        "the compatibility level was set to FORWARD", "version 1 was registered",
    ]  # fmt: skip
    assert rows[1].url == "/ui/registries/dev/subjects/orders-value/?version=1"
    for row in rows:
        assert look("reader").get(row.url).status_code == 200
    assert "Suspected, not proven" in response.content.decode()
