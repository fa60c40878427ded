"""What a running query sends of itself is kept, is what restarts are compared with, and decides about promotions."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import ManagementUtility
from django.db import connections
from django.test import Client
from django.utils import timezone

from registry.access.roles import Actor, TokenLimit
from registry.audit.models import AuditEvent
from registry.checkpoints import read_checkpoint
from registry.checkpoints.plans import read_plan
from registry.drift.models import Source
from registry.errors import InvalidInput, InvalidSchema, NotAllowed, NotFound
from registry.promotions.board.readiness import can_promote
from registry.promotions.hook_points import JobRelease
from registry.promotions.services import request_promotion
from registry.streams import descriptions
from registry.streams.descriptions import KEPT, find_query, keep_description, list_descriptions
from registry.streams.models import QueryRun, RunningDescription, StateCheck, StreamQuery
from registry.streams.scan_result import ScannedInput, scanned_query
from registry.streams.services import check_document, checked_restart, known_checkpoint_location
from registry.streams.state_history import keep_query
from registry.subjects.models import Registry
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.dashboard.streams.test_restart_check import seen
from tests.promotions.factories import record
from tests.state.test_query_check import FIXTURES, described

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("DBX-4")]

ORDERS = SubjectName(".", "orders-value")
NAME = "aggregation_hdfs"
ADDRESS = "/api/v1/query-descriptions"
RUNNING = described(NAME)
Change = Callable[[dict[str, Any]], Any]


def changed(change: Change) -> dict[str, Any]:
    """The description of the next version: the running one with a change of its operator."""
    query = copy.deepcopy(RUNNING)
    change(query["operators"][0])
    return query


def value(operator: dict[str, Any]) -> list[Any]:
    fields: list[Any] = operator["stores"]["default"]["value"]["fields"]
    return fields


SAME = changed(lambda each: None)
WRONG = changed(lambda each: each["values"][1].update(expression="min(v)"))
LOST = changed(lambda each: value(each).append(value(each)[0]))
UNKNOWN = changed(lambda each: each["values"][1].update(expression="cast(of max as bigint)"))


@pytest.fixture
def query(settings: Any, registries: None) -> StreamQuery:
    """A query that aggregates orders in the environment `staging`, as a scan found it."""
    settings.CHECKPOINT_ROOTS = [FIXTURES]
    path, registry = str(FIXTURES / NAME), Registry.objects.get(name="staging")
    source = Source.objects.create(registry=registry, kind="state_store", name=path, created_by="tests")
    inputs = (ScannedInput("orders", "value", ".", "orders-value"),)
    scanned = scanned_query(read_checkpoint(path, [FIXTURES]), inputs, {})
    return StreamQuery.objects.get(pk=keep_query(source_id=source.pk, registry=registry, scanned=scanned))


@pytest.fixture
def promoted(query: StreamQuery, system: Actor) -> None:
    """The subject is in staging already, so that only the state decides."""
    for registry in ("dev", "staging"):
        register_version(registry=registry, subject=ORDERS, text=record(id="long"), by=system, release=True)


def send(client: Client, description: Any = RUNNING, **more: Any) -> Any:
    body = json.dumps({"query": NAME, "description": description, **more})
    return client.post(ADDRESS, body, content_type="application/json")


def test_a_description_is_kept_once_with_time_and_sender(query: StreamQuery, api: Callable[[str], Client]) -> None:
    client = api("steward")
    first, again = send(client), send(client)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == {
        "query": query.pk,
        "id": first.json()["id"],
        "is_new": True,
        "url": f"/ui/queries/{query.pk}",
    }
    assert again.json() == {**first.json(), "is_new": False}
    (listed,) = api("reader").get(ADDRESS, {"query": NAME, "registry": "staging"}).json()
    assert (listed["sent_by"], listed["description"]) == ("steward", RUNNING)
    event = AuditEvent.objects.filter(table="streams_runningdescription").get()
    assert (event.actor, event.after["text"]) == ("steward", "(hidden)")


def test_a_late_delivery_of_a_run_that_ended_changes_nothing(
    query: StreamQuery, person: Callable[[str], Actor]
) -> None:
    steward = person("steward")
    first, second = ({**RUNNING, "query_id": query.query_id, "run_id": run} for run in ("a", "b"))
    sent = [keep_description(description=each, by=steward) for each in (first, second, first)]
    assert [each.is_new for each in sent] == [True, True, False]
    assert list_descriptions(query.pk)[0].values == second
    # Without a run, going back to an earlier version is new.
    back = [keep_description(description=each, by=steward, query=NAME).is_new for each in (RUNNING, WRONG, RUNNING)]
    assert back == [True, True, True]


def test_a_token_of_a_job_may_describe_and_a_reader_may_not(query: StreamQuery, person: Callable[[str], Actor]) -> None:
    job = replace(person("steward"), limit=TokenLimit(scope="report"))
    assert keep_description(description=RUNNING, by=job, query=NAME).is_new
    with pytest.raises(NotAllowed):
        keep_description(description=RUNNING, by=person("reader"), query=NAME)


def test_the_newest_are_kept(query: StreamQuery, system: Actor) -> None:
    for number in range(KEPT + 3):
        keep_description(description={**RUNNING, "run_id": str(number)}, by=system, query=query.path)
    runs = [each.values["run_id"] for each in list_descriptions(query.pk)]
    assert runs == [str(number) for number in range(KEPT + 2, 2, -1)]


def test_what_is_no_description_is_refused(
    query: StreamQuery, system: Actor, api: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api("steward")
    assert send(client, {"operators": []}).status_code == 422
    assert send(client, [1]).status_code == 422
    assert send(client, query="nowhere").status_code == 404
    unnamed = send(client, query="")
    assert (unnamed.status_code, "Name the query" in unnamed.json()["message"]) == (422, True)
    monkeypatch.setattr(descriptions, "MAX_DESCRIPTION", 100)
    assert "may have up to 100 characters" in send(client).json()["message"]
    assert not RunningDescription.objects.exists()


def test_a_name_that_several_have_is_not_guessed(query: StreamQuery, system: Actor) -> None:
    registry = Registry.objects.get(name="prod")
    source = Source.objects.create(registry=registry, kind="state_store", name="/other", created_by="tests")
    other = StreamQuery.objects.get(pk=query.pk)
    other.pk, other.source, other.registry, other.path, other.query_id = None, source, registry, f"/other/{NAME}", "x"
    other.save()
    with pytest.raises(InvalidInput, match="Give the path"):
        find_query(NAME, by=system)
    assert find_query(NAME, by=system, registry="staging") == query
    for name in (query.path, query.query_id, str(query.pk)):
        assert find_query(name, by=system) == query
    with pytest.raises(NotFound):
        find_query("%", by=system)


def test_the_check_compares_with_what_was_sent(
    query: StreamQuery, system: Actor, look: Callable[[str], Client], api: Callable[[str], Client]
) -> None:
    client = api("steward")

    def check(plan: Any) -> Any:
        body = json.dumps({"checkpoint": query.path, "plan": plan})
        return client.post("/api/v1/state-checks", body, content_type="application/json").json()["report"]

    before = check(SAME)
    assert before["verdict"] == "not checked"
    assert "No running query of this checkpoint has sent its description" in before["notes"][0]
    keep_description(description=RUNNING, by=system, query=NAME)
    assert [check(plan)["verdict"] for plan in (SAME, WRONG)] == ["safe", "silently wrong"]
    assert "Compared with the description of the running query that tests sent at 20" in check(SAME)["notes"][0]
    assert check({"query": WRONG, "running": WRONG})["verdict"] == "safe"  # what the plan says itself counts
    page = seen(look("steward").get("/ui/state-checks/new", {"checkpoint": query.path}))
    assert "The description of the next version is enough" in page
    other = check({"query": SAME, "running": {**RUNNING, "query_id": "another"}})
    assert other["verdict"] == "not checked"
    assert "it is of query another" in other["notes"][-1]


def test_a_later_run_that_described_nothing_is_no_reason_for_safe(query: StreamQuery, system: Actor) -> None:
    def verdict() -> tuple[str, str]:
        report = checked_restart(known_checkpoint_location(query.path), read_plan(SAME))
        return report.verdict, report.notes[0]

    keep_description(description={**RUNNING, "run_id": str(UUID(int=1))}, by=system, query=NAME)
    seen_at = timezone.now() - timedelta(minutes=1)
    QueryRun.objects.create(query=query, run_id=UUID(int=1), is_restart=False, started_at=seen_at, seen_at=seen_at)
    assert verdict()[0] == "safe"
    later = timezone.now() + timedelta(minutes=1)
    QueryRun.objects.create(query=query, run_id=UUID(int=2), is_restart=True, started_at=later, seen_at=later)
    assert (verdict()[0], "Not compared with" in verdict()[1]) == ("not checked", True)
    # A pipeline describes a version once, and restarts of the same version send nothing.
    keep_description(description=RUNNING, by=system, query=NAME)
    assert verdict()[0] == "safe"
    assert "and that run sent none" in verdict()[1]


def test_a_description_of_another_query_is_refused(query: StreamQuery, system: Actor) -> None:
    with pytest.raises(InvalidInput, match="is of query another, but"):
        keep_description(description={**RUNNING, "query_id": "another", "run_id": "1"}, by=system, query=NAME)
    assert not RunningDescription.objects.exists()


def test_a_pipeline_does_not_outvote_what_the_run_says_of_itself(query: StreamQuery, system: Actor) -> None:
    def verdict(plan: Any) -> tuple[str, str]:
        report = checked_restart(known_checkpoint_location(query.path), read_plan(plan))
        return report.verdict, report.notes[0]

    keep_description(description={**RUNNING, "query_id": query.query_id, "run_id": "1"}, by=system)
    keep_description(description=RUNNING, by=system, query=NAME)  # the same version
    assert verdict(SAME)[0] == "safe"
    keep_description(description=WRONG, by=system, query=NAME)  # the next version, too early
    assert verdict(WRONG)[0] == "not checked"
    assert "The query sent another one of itself at 20" in verdict(WRONG)[1]
    later = timezone.now() + timedelta(minutes=1)
    QueryRun.objects.create(query=query, run_id=UUID(int=2), is_restart=True, started_at=later, seen_at=later)
    assert verdict(WRONG)[0] == "safe"


def test_the_page_of_the_query_shows_it(query: StreamQuery, system: Actor, look: Callable[[str], Client]) -> None:
    reader = look("reader")
    assert "No description was sent" in seen(reader.get(f"/ui/queries/{query.pk}"))
    for description in (RUNNING, {**RUNNING, "sink": "</pre><script>"}):
        keep_description(description=description, by=system, query=NAME)
    page = reader.get(f"/ui/queries/{query.pk}")
    assert "Restart checks compare the next version with it." in seen(page)
    assert "Earlier:" in seen(page)
    assert b"</pre><script>" not in page.content


@pytest.mark.parametrize(
    ("description", "verdict", "sentence", "cure"),
    [
        (SAME, "yes", "Safe. The query starts.", ""),
        (WRONG, "no", "Silently wrong. The query starts without an error, but uses its old state", "Keep the old expression"),
        (LOST, "no", "Spark's error: STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE.", "use a new checkpoint"),
        (UNKNOWN, "needs approval", "Not checked", "Run the restart check"),
        ({"query": SAME, "running": WRONG}, "no", "Silently wrong", "Keep the old expression"),
    ],
)  # fmt: skip
def test_a_promotion_is_answered_for_the_state_too(
    promoted: None,
    system: Actor,
    api: Callable[[str], Client],
    description: Any,
    verdict: str,
    sentence: str,
    cure: str,
) -> None:
    keep_description(description=RUNNING, by=system, query=NAME)
    body = {
        "subject": "orders-value",
        "from": "dev",
        "to": "staging",
        "queries": [{"query": NAME, "description": description}],
    }
    answer = api("steward").post("/api/v1/can-promote", json.dumps(body), content_type="application/json").json()
    assert answer["verdict"] == verdict, answer
    (reason,) = [each for each in answer["reasons"] if each["code"] == "restart"]
    assert sentence in reason["sentence"]
    assert cure in reason["cure"]
    assert (answer["reasons"][0] == reason) is (verdict != "yes")
    assert not StateCheck.objects.exists()


def test_a_release_does_not_outvote_the_query(promoted: None, query: StreamQuery, system: Actor) -> None:
    def ask(plan: Any) -> tuple[str, str]:
        answer = can_promote(
            subject=ORDERS, source="dev", target="staging", by=system, releases=[JobRelease(NAME, plan)]
        )
        return answer.verdict, next(each.sentence for each in answer.reasons if each.code == "restart")

    keep_description(description=RUNNING, by=system, query=NAME)
    verdict, sentence = ask({"query": WRONG, "running": WRONG})
    assert verdict == "no"
    assert "Silently wrong" in sentence
    assert "Compared with the description of the running query that tests sent" in sentence
    assert ask({"query": SAME, "running": RUNNING})[0] == "yes"


def test_what_was_sent_in_another_registry_does_not_count(promoted: None, query: StreamQuery, system: Actor) -> None:
    registry = Registry.objects.get(name="dev")
    source = Source.objects.create(registry=registry, kind="state_store", name=query.path, created_by="tests")
    other = StreamQuery.objects.get(pk=query.pk)
    other.pk, other.source, other.registry = None, source, registry
    other.save()
    keep_description(description=WRONG, by=system, query=query.path, registry="dev")
    answer = can_promote(
        subject=ORDERS, source="dev", target="staging", by=system, releases=[JobRelease(query.path, WRONG)]
    )
    assert answer.verdict == "needs approval"


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_texts_that_no_database_stores_are_no_error(query: StreamQuery, system: Actor, text: str) -> None:
    plan = changed(lambda each: each["values"][1].update(expression=text))
    number = check_document(checkpoint=query.path, plan={"query": plan, "running": RUNNING}, by=system)
    assert StateCheck.objects.get(pk=number).verdict == "silently wrong"


def test_not_checked_is_never_yes(promoted: None, query: StreamQuery, system: Actor, settings: Any) -> None:
    def ask(*releases: JobRelease, by: Actor = system) -> Any:
        return can_promote(subject=ORDERS, source="dev", target="staging", by=by, releases=releases)

    assert ask().verdict == "yes"
    never_sent = ask(JobRelease(NAME, SAME))
    assert never_sent.verdict == "needs approval"
    assert "No running query of this checkpoint has sent its description" in never_sent.reasons[0].sentence
    keep_description(description=RUNNING, by=system, query=NAME)
    both = ask(JobRelease(NAME, SAME), JobRelease(str(query.pk), WRONG))
    assert (both.verdict, [each.code for each in both.reasons]) == ("no", ["restart", "already-there", "restart"])
    settings.CHECKPOINT_ROOTS = []
    unread = ask(JobRelease(NAME, SAME))
    assert unread.verdict == "needs approval"
    assert "Not checked." in unread.reasons[0].sentence


def test_who_may_not_check_state_gets_no_answer_about_it(
    promoted: None, person: Callable[[str], Actor], system: Actor
) -> None:
    def ask(by: Actor, release: JobRelease) -> Any:
        return can_promote(subject=ORDERS, source="dev", target="staging", by=by, releases=[release])

    with pytest.raises(NotAllowed):
        ask(person("reader"), JobRelease(NAME, SAME))
    with pytest.raises(NotFound):
        ask(system, JobRelease("nowhere", SAME))
    with pytest.raises(InvalidSchema, match=f"The description of {NAME}"):
        ask(system, JobRelease(NAME, {"operators": []}))


def test_the_command_takes_descriptions(
    promoted: None, system: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "close_all", lambda: None)
    keep_description(description=RUNNING, by=system, query=NAME)
    files = {name: tmp_path / f"{name}.json" for name in ("same", "wrong", "broken")}
    for name, text in (("same", json.dumps(SAME)), ("wrong", json.dumps(WRONG)), ("broken", "{")):
        files[name].write_text(text)

    def run(*more: str) -> int:
        try:
            ManagementUtility(["manage.py", "can_promote", "orders-value", "dev", "staging", *more]).execute()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    codes = [run("--query", NAME, "--description", str(files[name])) for name in files]
    assert codes == [0, 2, 3]
    assert run("--query", NAME) == 64
    printed = capsys.readouterr()
    assert "restart: " in printed.out
    assert "can't be read as a description" in printed.err


@pytest.mark.requirement("DBX-4", "CARD-4")
def test_the_request_leads_to_the_check_of_the_queries_that_read_the_subject(
    query: StreamQuery, system: Actor, person: Callable[[str], Actor], look: Callable[[str], Client]
) -> None:
    register_version(registry="dev", subject=ORDERS, text=record(id="long"), by=system)
    number = request_promotion(source="dev", target="staging", subject=ORDERS, version=1, by=person("steward"))
    page = look("steward").get(f"/ui/promotions/{number}")
    assert f"Check the restart of {NAME}" in seen(page)
    assert b"/ui/state-checks/new?checkpoint=" in page.content
    assert "Check the restart of" not in seen(look("reader").get(f"/ui/promotions/{number}"))
