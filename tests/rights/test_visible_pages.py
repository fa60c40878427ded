"""Whoever's role is in one registry, or for some subjects, gets every page, with what is theirs and nothing of the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.access.services import grant, issue_token
from registry.audit.models import AuditEvent
from registry.audit.selectors import AuditFilter, list_events, newest_event, stream_events
from registry.drift import selectors
from registry.drift.models import Cluster, Finding, Mute, Scan, Source
from registry.promotions.models import Environment, PromotionRequest, ReviewRule
from registry.promotions.requests.selectors import may_see
from registry.promotions.selectors import list_requests
from registry.promotions.services import ensure_environment, request_promotion
from registry.search.audit_filter import TABLES, events_for, events_shown
from registry.streams.models import StreamQuery
from registry.subjects.models import Registry
from registry.subjects.services import ensure_registry, register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient, signed_in
from tests.dashboard.test_every_page import ORDERS, content  # noqa: F401 - a fixture
from tests.markup import compact

pytestmark = pytest.mark.requirement("CARD-4")

#: stands in every name of what nobody of these may read: the other registry's, and for whoever has some subjects the rest
HIDDEN = "zebra"
PAGES = (
    "/ui/", "/ui/findings", "/ui/findings?state=all&muted=all", "/ui/findings?q=zebr", "/ui/findings?source={zebra_source}", "/ui/mutes",
    "/ui/mutes?location=*", "/ui/sources", "/ui/sources/add", "/ui/sources/add?kind=state_store", "/ui/sources/discover", "/ui/audit",
    "/ui/audit?q=zebr", "/ui/audit?table=access_user", "/ui/environments", "/ui/proposals/new", "/ui/promotions/request",
    "/ui/audit/export?as=jsonl", "/ui/audit/export?as=csv", "/ui/jobs", "/ui/queries", "/ui/registries", "/ui/promotions", "/ui/unapproved-versions", "/ui/tokens",
)  # fmt: skip
READS = (
    "/api/v1/findings", "/api/v1/findings?state=&muted=", "/api/v1/findings?text=zebr", "/api/v1/sources", "/api/v1/clusters", "/api/v1/mutes",
    "/api/v1/audit", "/api/v1/audit?as=csv", "/api/v1/audit?table=access_rolegrant", "/api/v1/queries", "/api/v1/promotions",
    "/api/v1/unapproved-versions",
)  # fmt: skip
#: of the other registry by its name or number: the same answer as for one that isn't there
OTHERS = (
    "/ui/findings?registry=%s", "/ui/sources?registry=%s", "/ui/audit?registry=%s", "/ui/mutes?registry=%s",
    "/api/v1/findings?registry=%s", "/api/v1/sources?registry=%s", "/api/v1/audit?registry=%s", "/api/v1/mutes?registry=%s",
    "/api/v1/findings?fail_on=break&registry=%s", "/ui/environments/%s",
)  # fmt: skip
NUMBERED = (
    ("/ui/findings/%s", "zebra_finding"), ("/api/v1/findings/%s", "zebra_finding"), ("/ui/sources/%s", "zebra_source"),
    ("/api/v1/sources/%s", "zebra_source"), ("/api/v1/sources/%s/scans", "zebra_source"), ("/ui/sources/%s/edit", "zebra_source"),
    ("/ui/sources/%s/remove", "zebra_source"), ("/api/v1/scans/%s", "zebra_scan"), ("/ui/scans/%s/progress", "zebra_scan"),
    ("/ui/queries/%s", "zebra_query"), ("/api/v1/queries/%s/variables", "zebra_query"), ("/ui/promotions/%s", "zebra_request"),
)  # fmt: skip
ZEBRA = SubjectName(".", "zebra-value")
GRANTS: dict[str, dict[str, str]] = {
    "of the registry": {"registry": "dev"},
    "of subjects": {"subject_pattern": "orders*"},
    "of subjects of the registry": {"registry": "dev", "subject_pattern": "orders-*"},
}
#: of what they may read the names that have the sign: the role for subjects is for those of every registry
OWN: dict[str, tuple[str, ...]] = {
    "of the registry": ("zebra-in-dev",),
    "of subjects": ("zebra-land",),
    "of subjects of the registry": (),
}


class Caller(NamedTuple):
    """Somebody with a session and a token."""

    actor: Actor
    session: Client
    token: str

    def get(self, path: str) -> tuple[int, str]:
        """Status and text, whole where it streams."""
        if path.startswith("/ui/"):
            answer: Any = self.session.get(path)
        else:
            answer = RawClient(headers={"authorization": f"Bearer {self.token}"}).get(path)
        body = b"".join(answer.streaming_content) if getattr(answer, "streaming", False) else answer.content
        return answer.status_code, body.decode()


@pytest.fixture
def world(content: dict[str, int], person: Callable[[str], Actor], system: Actor) -> dict[str, int]:  # noqa: F811
    """What they may read, in dev, and as much of another registry, with a name of its own on everything."""
    ensure_registry(name="zebra-land", by=system)
    place = Registry.objects.get(name="zebra-land")
    ensure_environment(registry_id=place.pk, position=99, is_closed=False, by=system)
    for registry, subject in (("zebra-land", ZEBRA), ("dev", SubjectName(".", "zebra-in-dev"))):
        register_version(registry=registry, subject=subject, text='"string"', by=system)
    cluster = Cluster.objects.create(name="zebra-cluster", bootstrap="zebra:9092", created_by="zebra-person")
    source = Source.objects.create(registry=place, kind="kafka", name="zebra-topics", cluster=cluster, created_by="x")
    now = timezone.now()
    scan = Scan.objects.create(source=source, state="failed", queued_by="x", error="zebra is away", finished_at=now)
    finding = a_finding(source, "zebra-value", 0)
    a_finding(Source.objects.get(pk=content["source"]), "zebra-in-dev", 0)
    Mute.objects.create(registry=place, rule="X", reason="zebra", created_by="zebra-person")
    query = StreamQuery.objects.create(
        source=source, registry=place, path="/zebra", query_id="0", encoding="avro", allowed_value_schemas=1,
        allowed_schema_files=1, scanned_at=now,
    )  # fmt: skip
    request = request_promotion(
        source="dev", target="zebra-land", subject=ORDERS, version=1, by=person("approver2"), reason="why"
    )
    User.objects.create(username="zebra-person")
    grant(username="zebra-person", role="reader", registry="dev", by=system)
    return {
        **content, "zebra_source": source.pk, "zebra_scan": scan.pk, "zebra_finding": finding.pk, "zebra_query": query.pk,
        "zebra_request": request,
    }  # fmt: skip


def a_finding(source: Source, subject: str, number: int, *, severity: str = "break") -> Finding:
    """An open finding that says the subject's name everywhere, newer than all others."""
    now = timezone.now() + timedelta(hours=1)
    return Finding.objects.create(
        source=source, fingerprint=f"{number}-{subject}", rule=f"X_{subject}", severity=severity, sentence=f"{subject} drifts",
        remedy="x", location=f"{subject}:0", subject_name=subject, evidence={}, first_seen=now, last_seen=now, assigned_to=subject,
    )  # fmt: skip


@pytest.fixture
def caller(world: dict[str, int], system: Actor) -> Callable[[str], Caller]:
    """Somebody with one of the roles, as a reader."""

    def make(name: str) -> Caller:
        user = User.objects.create(username="narrow")
        grant(username="narrow", role="reader", by=system, **GRANTS[name])
        session = RawClient()
        session.force_login(user)
        token = issue_token(username="narrow", name="tests", by=system)
        return Caller(actor_of_user(user, channel="ui"), session, token)

    return make


def hidden_in(text: str, name: str) -> bool:
    """Whether a text has something of what they may not read."""
    for own in OWN[name]:
        text = text.replace(own, "")
    return HIDDEN in text.lower()


def every_page_and_read_is_there_and_has_nothing_of_the_rest(world: dict[str, int], who: Caller, name: str) -> None:
    wrong = []
    for path in (*PAGES, *READS):
        status, text = who.get(path.format(**world))
        if status != 200 or hidden_in(text, name):
            place = text.lower().find(HIDDEN)
            wrong.append(f"{status} {path}: {text[max(0, place - 120) : place + 80] if place >= 0 else text[:200]}")
    assert wrong == []


def their_own_is_there(world: dict[str, int], who: Caller, name: str) -> None:
    shown = {path: who.get(path)[1] for path in ("/ui/", "/ui/findings", "/ui/audit", "/api/v1/findings")}
    assert [path for path, text in shown.items() if "900001" not in text and path != "/ui/audit"] == []
    assert "orders-value" in shown["/ui/audit"]
    assert "No activity yet." not in shown["/ui/"], "what was done recently"
    assert "900001" in who.get(f"/ui/findings/{world['finding']}")[1]
    assert "900001" in who.get(f"/api/v1/findings/{world['finding']}")[1]
    assert who.get("/ui/audit?registry=dev&subject=orders-value")[0] == 200, "the tab Activity of a subject"
    assert "orders-value" in who.get("/api/v1/audit?registry=dev&subject=orders-value")[1]
    sees_sources = name == "of the registry"
    assert (who.get(f"/ui/sources/{world['source']}")[0] == 200) is sees_sources
    assert ("localhost:9092" in who.get("/ui/sources")[1]) is sees_sources
    assert (len(json.loads(who.get("/api/v1/sources")[1])), len(json.loads(who.get("/api/v1/clusters")[1]))) == (
        (1, 1) if sees_sources else (0, 0)
    )
    counted = 2 if sees_sources else 1
    assert selectors.open_findings_of(who.actor).count() == selectors.count_findings(who.actor)["open"] == counted
    assert sum(selectors.open_counts(by=who.actor).by(0).values()) == counted
    assert f">{counted}<span" in shown["/ui/findings"], "the number in the navigation"


def what_is_not_theirs_is_as_if_it_were_not_there(world: dict[str, int], who: Caller, name: str) -> None:
    wrong = []
    for path, what in NUMBERED:
        if what == "zebra_request" and name == "of subjects":
            continue  # all that it asks for is theirs
        number = str(world[what])
        there, absent = who.get(path % number), who.get(path % 999999)
        # tokens of forms and numbers of requests differ anyway
        if there[0] not in (403, 404) or there[0] != absent[0] or hidden_in(there[1], name):
            wrong.append(f"{path}: {there[0]}, {absent[0]}")
    if "registry" in GRANTS[name]:
        for path in OTHERS:
            there, absent = who.get(path % "zebra-land"), who.get(path % "nowhere")
            if (there[0], absent[0]) != (403, 403):
                wrong.append(f"{path}: {there[0]}, {absent[0]}")
    assert wrong == []


def the_audit_has_no_event_of_people_and_none_of_other_registries(
    world: dict[str, int], who: Caller, name: str
) -> None:
    found = list_events(chosen=AuditFilter(about=events_for(who.actor)), limit=500)
    assert found
    assert {entry.table for entry in found} <= set(TABLES)
    assert not [table for table in TABLES if table.startswith(("access_", "auth_", "notifications_", "drift_cluster"))]
    assert [entry for entry in found if hidden_in(json.dumps([entry.before, entry.after, entry.why]), name)] == []
    assert list_events(chosen=AuditFilter(about=events_shown(who.actor, subject="zebra-value"))) == []


def test_the_audit_of_a_registry_has_what_belongs_to_it(world: dict[str, int], caller: Callable[[str], Caller]) -> None:
    who = caller("of the registry")
    found = {entry.table for entry in list_events(chosen=AuditFilter(about=events_for(who.actor)), limit=500)}
    assert found >= {
        "subjects_registry", "subjects_context", "subjects_subject", "subjects_schema", "subjects_schemaversion",
        "promotions_environment", "drift_source", "drift_finding",
    }  # fmt: skip
    assert "promotions_promotionrequest" not in found, "a request is for whoever may read its target"


def test_every_event_is_for_whoever_may_read_all(world: dict[str, int], person: Callable[[str], Actor]) -> None:
    assert events_for(person("reader")) is None
    assert AuditEvent.objects.filter(table="access_rolegrant").exists()


def requests_are_those_that_may_see_allows(world: dict[str, int], who: Caller, name: str) -> None:
    everything = list_requests(state="open", limit=200)
    assert len(everything) == PromotionRequest.objects.count() == 2
    assert list_requests(by=who.actor) == [info for info in everything if may_see(who.actor, info)]


@pytest.mark.parametrize("name", GRANTS)
def test_whoever_may_read_a_part_sees_it_and_nothing_else(
    world: dict[str, int], caller: Callable[[str], Caller], name: str
) -> None:
    who = caller(name)
    for check in (
        every_page_and_read_is_there_and_has_nothing_of_the_rest,
        their_own_is_there,
        what_is_not_theirs_is_as_if_it_were_not_there,
        the_audit_has_no_event_of_people_and_none_of_other_registries,
        requests_are_those_that_may_see_allows,
    ):
        check(world, who, name)


@pytest.mark.parametrize("name", GRANTS)
def test_a_page_is_filled_after_filtering_and_by_no_more_queries(
    world: dict[str, int], caller: Callable[[str], Caller], name: str, django_assert_max_num_queries: Any
) -> None:
    who = caller(name)
    addresses = ("/ui/", "/ui/findings", "/ui/audit", "/ui/sources", "/api/v1/findings", "/api/v1/sources")
    with CaptureQueriesContext(connection) as before:
        answers = [who.get(path) for path in addresses]
    source = Source.objects.get(pk=world["zebra_source"])
    for number in range(1, 121):
        a_finding(source, "zebra-value", number)
    with django_assert_max_num_queries(len(before)):
        assert [status for status, _ in map(who.get, addresses)] == [status for status, _ in answers]
    assert "900001" in who.get("/ui/")[1]
    assert "900001" in who.get("/ui/findings")[1]
    limited = json.loads(who.get("/api/v1/findings?limit=1")[1])
    assert len(limited) == 1


def test_a_page_looks_at_so_many_events_and_leads_further_back(
    world: dict[str, int], caller: Callable[[str], Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    who = caller("of subjects of the registry")
    wanted = {entry.id for entry in list_events(chosen=AuditFilter(about=events_for(who.actor)), limit=100_000)}
    # what other tests left in the audit is looked at too: some pages are enough for all of it
    monkeypatch.setattr("dashboard.audit.views.LOOKED_AT", newest_event() // 3)
    monkeypatch.setattr("dashboard.home.views.LOOKED_AT", 1)
    found: list[int] = []
    address, pages = "/ui/audit", 0
    while address:
        page = who.session.get(address).context["page"]
        shown = [change.entry.id for row in page.rows for change in (row, *row.others)]
        found, address, pages = [*found, *shown], page.paging.next_url, pages + 1
    assert (set(found), len(found)) == (wanted, len(wanted))
    assert pages > 2
    monkeypatch.setattr("dashboard.audit.views.LOOKED_AT", 7)
    assert "Search older entries" in who.get("/ui/audit")[1], "the newest are of people"
    assert who.session.get("/ui/audit?registry=dev&subject=orders-value").context["page"].rows, "found by the subject"
    assert who.get("/ui/")[0] == 200


@pytest.mark.parametrize("seconds", [0.0, 0.2, 9.0])
def test_a_file_has_all_of_it_and_each_statement_looks_at_a_part(
    world: dict[str, int], caller: Callable[[str], Caller], monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    who = caller("of subjects of the registry")
    chosen = AuditFilter(about=events_for(who.actor))
    wanted = sorted(entry.id for entry in list_events(chosen=chosen, limit=100_000))
    moment = iter(range(1_000_000))
    monkeypatch.setattr("registry.audit.selectors.monotonic", lambda: next(moment) * seconds)
    monkeypatch.setattr("registry.audit.selectors.CHUNK", 2)
    monkeypatch.setattr("registry.audit.selectors.LOOKED_AT", 4)
    with CaptureQueriesContext(connection) as asked:
        found = [event["id"] for event in stream_events(chosen)]
    assert found == wanted != []
    parts = [re.search(r'"id" > (-?\d+) AND "audit_auditevent"."id" <= (\d+)', query["sql"]) for query in asked]
    widths = [int(part[2]) - int(part[1]) for part in parts[2:] if part]
    assert len(widths) == len(asked) - 2 > 2, "the first and the last number, then parts"
    assert widths[0] == 4 and (max(widths) > 4) is (seconds == 0), "more where that was quick"
    assert (min(widths[:-1]) < 4) is (seconds == 9), "fewer where it was slow"


def test_the_gate_asks_for_all_that_it_is_about(world: dict[str, int], caller: Callable[[str], Caller]) -> None:
    who = caller("of subjects of the registry")
    assert who.get("/api/v1/findings?fail_on=break")[0] == 403
    assert who.get("/api/v1/findings?fail_on=break&registry=dev")[0] == 403
    Scan.objects.update(state="failed")
    status, text = who.get("/api/v1/findings?fail_on=break&registry=dev&subject=orders-value")
    gate = json.loads(text)
    assert (status, gate["passed"], [row["subject"] for row in gate["findings"]]) == (409, False, ["orders-value"])
    unscanned = ["a source of the registry (last scan: failed)", "orders-value in dev (no scan reads a topic of it)"]
    assert gate["unscanned"] == unscanned, "it holds, and names no source"


def test_whoever_has_no_role_is_refused_everywhere(world: dict[str, int], person: Callable[[str], Actor]) -> None:
    person("stranger")
    session = signed_in("stranger")
    skipped = ("/ui/tokens", "/ui/sources/add", "/ui/sources/discover", "/ui/proposals/new", "/ui/promotions/request")
    answers = {path: session.get(path.format(**world)) for path in PAGES if not path.startswith(skipped)}
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code != 403} == {}
    assert [path for path, answer in answers.items() if HIDDEN in answer.content.decode()] == []


def test_a_refusal_says_what_to_ask_for_and_leads_somewhere(
    world: dict[str, int], caller: Callable[[str], Caller], person: Callable[[str], Actor]
) -> None:
    person("admin7")
    status, text = caller("of the registry").get("/ui/audit?registry=prod")
    assert status == 403
    assert "admin7" in text
    assert "reader, steward, approver" in text
    assert '<a class="button" href="/ui/">' in compact(text), "home, which is open to them"
    person("stranger")
    session = signed_in("stranger")
    said = compact(session.get("/ui/").content.decode())
    assert "Your account has no role yet" in said
    assert '<a class="button" href="/ui/">' not in said
    assert said.count('action="/ui/accounts/logout/"') == 2, "in the menu, and beside what is said"
    assert "admin7" not in said, "nobody is named to whoever has no role"


@pytest.mark.parametrize(
    ("path", "buttons"),
    [
        ("/ui/sources", ["Scan now"]),
        ("/ui/environments/prod", []),
    ],
)
def test_what_is_not_allowed_is_said_with_the_reason(
    world: dict[str, int], person: Callable[[str], Actor], path: str, buttons: list[str]
) -> None:
    person("reader")
    ReviewRule.objects.create(environment=Environment.objects.get(registry__name="prod"), reviewers="owners")
    session = signed_in("reader")
    text = compact(session.get(path).content.decode())
    off = re.findall(r"<button[^>]* disabled>(?:<svg.*?</svg>)?([^<]*)</button>", text)
    assert set(buttons) <= set(off)
    assert "You need the" in text
    for action in ("Save rules", "Add rule", "Add freeze window", "Add recurring freeze"):
        assert f">{action}</button>" not in text
