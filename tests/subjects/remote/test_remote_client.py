"""Other servers as they may be: old, broken, or out to harm; and the connection test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from registry.access.egress import EgressPolicy, parse_connection
from registry.access.http_client import HttpLimits
from registry.access.roles import Actor
from registry.errors import RemoteUnavailable
from registry.subjects.import_export.registry_import import import_snapshot
from registry.subjects.import_export.snapshot import Problem, Snapshot
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.remote.connection_test import Probe, probe
from registry.subjects.remote.remote_client import RemoteRegistry
from registry.subjects.selectors import list_versions
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.access.fake_server import Call, Raw, Told, serving
from tests.amounts import how_many
from tests.subjects.import_export.import_fixtures import record

POLICY = EgressPolicy(allow=("127.0.0.1",))


def entry(subject: str, version: int = 1, schema_id: int = 1, schema: str = "", **more: Any) -> dict[str, Any]:
    text = schema or record(f"R{schema_id}", "a")
    return {"subject": subject, "version": version, "id": schema_id, "schema": text, "deleted": False, **more}


def answering(entries: list[Any], **more: Any) -> Callable[[Call], Any]:
    """A server of today with those entries of `GET /schemas`; `more` are other answers by path."""
    answers = {
        "/contexts": ["."],
        "/config": {"compatibilityLevel": "BACKWARD"},
        "/mode": {"mode": "READWRITE"},
        **more,
    }

    def answer(call: Call) -> Any:
        if call.path != "/schemas":
            return answers.get(call.path)
        offset, limit = int(call.query["offset"]), int(call.query["limit"])
        wanted = [item for item in entries if call.query["deleted"] == "true" or not item["deleted"]]
        return wanted[offset : offset + limit]

    return answer


def read(answer: Callable[[Call], Any], **options: Any) -> tuple[Snapshot, list[Problem]]:
    with serving(answer) as server:
        connection = parse_connection(f"http://127.0.0.1:{server.port}")
        return RemoteRegistry(connection, policy=POLICY, **options).read()


def brought(answer: Callable[[Call], Any], by: Actor) -> list[str]:
    """The problems of copying all that the server gives into `dev`, passing over them."""
    snapshot, problems = read(answer)
    done = import_snapshot(registry="dev", snapshot=snapshot, by=by, keep_going=True)
    return [str(problem) for problem in (*problems, *done.problems)]


def subjects() -> list[tuple[str, int]]:
    rows = SchemaVersion.objects.filter(subject__context__registry__name="dev")
    return sorted(rows.values_list("subject__name", "version"))


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"subject": "a"}, "/version is None"),
        (entry("a", version=True), "/version is True"),
        (entry("a", version=0), "/version is 0"),
        (entry("a", version=2**31), "/version is 2147483648"),
        (entry("a", schema_id=-1), "/id is -1"),
        (entry("a", schemaType="THRIFT"), "/schemaType is 'THRIFT'"),
        (entry("a", schemaType=7), "/schemaType is not a string"),
        (entry("a\x00b"), "contains an invalid character"),
        (entry("a", metadata={"properties": {"k": "\x00"}}), "contains an invalid character"),
        (entry("a", metadata={"properties": {"\ud800": "v"}}), "contains an invalid character"),
        (entry("a", schema_id=2**31 - 1), "the database rejects it: integer out of range"),
        (entry("a\x1fb"), "control character"),
        (entry("\ud800"), "contains an invalid character"),
        (entry(""), "/subject is empty"),
        (entry("x" * 2000), "too long"),
        (entry(":.broken"), "starts like a context"),
        (entry("a", references={}) | {"references": "x"}, "/references is not an array"),
        (entry("a", references=[1]), "/references/0 is not an object"),
        (entry("a", references=[{"name": "n", "subject": "s"}]), "/version is None"),
        (entry("a", references=[{"name": "n", "subject": "s", "version": 1}] * 1001), "/references is not an array"),
        (entry("a", metadata=7), "/metadata must be an object"),
        (entry("a", ruleSet={"domainRules": [{"name": "1"}]}), "Illegal initial character"),
        (entry("a", schema="{"), "a version 1"),
        (entry("a", schema="[" * 100_000), "a version 1"),
        (entry("a", schema="x" * 1_100_000), "too large"),
        (entry("a", references=[{"name": "n", "subject": "nowhere", "version": 1}]), "No schema reference found"),
        (entry("a", references=[{"name": "n", "subject": "a", "version": 1}]), "are circular"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
@pytest.mark.django_db
def test_an_entry_that_cannot_be_is_reported_and_the_rest_comes(
    registries: None, system: Actor, item: dict[str, Any], why: str
) -> None:
    problems = brought(answering([item, entry("good", schema_id=9)]), system)
    assert len(problems) == 1
    assert why in problems[0]
    assert subjects() == [("good", 1)]


@pytest.mark.django_db
def test_references_in_a_circle_are_reported_each(registries: None, system: Actor) -> None:
    def refers(subject: str, schema_id: int, to: str) -> dict[str, Any]:
        return entry(subject, schema_id=schema_id, references=[{"name": "n", "subject": to, "version": 1}])

    items = [
        refers("a", 1, "b"),
        refers("b", 2, "c"),
        refers("c", 3, "a"),
        refers("d", 4, "a"),
        entry("e", schema_id=5),
    ]
    problems = brought(answering(items), system)
    assert [problem.partition(" ")[0] for problem in problems] == ["a", "b", "c", "d"]
    assert subjects() == [("e", 1)]


@pytest.mark.django_db
def test_clashing_ids_are_reported_and_the_rest_comes(registries: None, system: Actor) -> None:
    text = record("Taken", "x")
    problems = brought(
        answering([entry("a", schema_id=5), entry("b", schema_id=5, schema=text), entry("c", schema_id=6)]), system
    )
    assert problems == ["b version 1: schema id 5 is used by another schema (a version 1) here."]
    assert subjects() == [("a", 1), ("c", 1)]
    again = brought(answering([entry("a", schema_id=5, schema=text), entry("c", schema_id=7)]), system)
    assert again == [
        "a version 1: it is another schema here with the same id 5.",
        "c version 1: it has schema id 6 here and 7 there.",
    ]


@pytest.mark.django_db
def test_without_keep_going_the_first_problem_ends_it(registries: None, system: Actor) -> None:
    snapshot, _ = read(answering([entry("a", schema="{"), entry("b", schema_id=2)]))
    done = import_snapshot(registry="dev", snapshot=snapshot, by=system)
    assert [problem.what for problem in done.problems] == ["a version 1"]
    assert get_registry("dev").pk
    from registry.subjects.policy.effective_policy import effective_mode

    assert effective_mode(get_registry("dev")).mode == "IMPORT"
    done = import_snapshot(registry="dev", snapshot=snapshot, by=system, keep_going=True)
    assert effective_mode(get_registry("dev")).mode == "READWRITE"
    assert subjects() == [("b", 1)]


@pytest.mark.parametrize(
    ("path", "told", "why"),
    [
        ("/schemas", Told(200, b"<html>"), "is not valid JSON"),
        ("/schemas", Told(200, b"[" * 100_000), "is not valid JSON"),
        ("/schemas", Told(200, b'{"a": 1}'), "is not an array"),
        ("/schemas", Told(500, b"{}"), "has status 500"),
        ("/schemas", Told(302, b"", {"Location": "http://169.254.169.254/"}), "Redirects are not followed"),
        ("/contexts", Told(401, b"{}"), "rejects the sign-in"),
        ("/config", Told(200, b"nonsense"), "is not valid JSON"),
    ],
)
def test_a_broken_server_is_one_error(path: str, told: Told, why: str) -> None:
    whole = answering([entry("a")])
    with pytest.raises(RemoteUnavailable, match=why):
        read(lambda call: told if call.path == path else whole(call))


def test_settings_that_are_not_known_are_reported() -> None:
    config = {"compatibilityLevel": "FULL", "somethingNew": 1}
    snapshot, problems = read(
        answering([entry("a")], **{"/config": config, "/mode": {"mode": "SIDEWAYS"}, "/config/a": 7})
    )
    assert snapshot.configs == {None: {"level": "FULL"}}
    assert [str(problem) for problem in problems] == [
        "config of the registry: somethingNew: no such setting here.",
        "config of a: it is not an object.",
        "mode of the registry: 'SIDEWAYS' is not a supported mode. The modes are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD.",
    ]


def test_a_server_that_is_always_slow_is_given_up() -> None:
    whole = answering([entry("a")])

    def slow(call: Call) -> Any:
        time.sleep(0.2)
        return whole(call)

    with pytest.raises(RemoteUnavailable, match="too slow"):
        read(slow, seconds=0.5)


def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones() -> None:
    items = [entry(f"s{number:03}", schema_id=number + 1) for number in range(300)]
    snapshot, problems = read(answering(items), limits=HttpLimits(max_bytes=8000))
    assert (len(snapshot.versions), problems) == (300, [])


def test_a_server_that_repeats_itself_for_ever_comes_to_an_end() -> None:
    """It minds neither offset nor limit, and sends the same thousand each time."""
    items = [entry(f"s{number % 10}", 1 + number // 10, number + 1) for number in range(1000)]
    snapshot, _ = read(lambda call: items if call.path == "/schemas" else answering(items)(call))
    assert len(snapshot.versions) == 1000


def test_an_old_server_without_contexts_and_listing_is_walked() -> None:
    """Its deleted versions are those that it lists only when they are asked for."""
    texts = {1: record("R", "a"), 2: record("R", "a", "b")}
    answers: dict[tuple[str, str], Any] = {
        ("/subjects", "true"): ["team/x"],
        ("/subjects/team/x/versions", ""): [2],
        ("/subjects/team/x/versions", "true"): [1, 2],
    }
    for number, text in texts.items():
        answers[f"/subjects/team/x/versions/{number}", "true"] = {
            "subject": "team/x", "version": number, "id": number + 6, "schema": text,
        }  # fmt: skip
    config = {"/config": {"compatibilityLevel": "full"}, "/config/team/x": {"compatibility": "NONE"}}
    snapshot, problems = read(
        lambda call: answers.get((call.path, call.query.get("deleted", "")), config.get(call.path))
    )
    assert problems == []
    assert [(item.version, item.schema_id, item.deleted) for item in snapshot.versions] == [(1, 7, True), (2, 8, False)]
    assert snapshot.configs == {None: {"level": "FULL"}, SubjectName(".", "team/x"): {"level": "NONE"}}
    assert snapshot.contexts == {".": 9}


def test_a_server_that_does_not_say_which_are_deleted_is_asked_twice() -> None:
    items = [{**entry("a"), "gone": True}, {**entry("a", 2, 2), "gone": False}]

    def answer(call: Call) -> Any:
        if call.path != "/schemas":
            return answering([])(call)
        wanted = items if call.query["deleted"] == "true" else items[1:]
        return [{name: item[name] for name in ("subject", "version", "id", "schema")} for item in wanted]

    snapshot, _ = read(answer)
    assert [(item.version, item.deleted) for item in snapshot.versions] == [(1, True), (2, False)]


def test_the_highest_id_that_was_ever_given_is_kept() -> None:
    told = {"/schemas/ids/3": {"schema": "x", "maxId": 17}}
    assert read(answering([entry("a", schema_id=3)], **told))[0].contexts == {".": 18}
    for nonsense in (-5, True, "17", 2**40, None):
        told = {"/schemas/ids/3": {"schema": "x", "maxId": nonsense}}
        assert read(answering([entry("a", schema_id=3)], **told))[0].contexts == {".": 4}


@pytest.mark.slow
@pytest.mark.django_db
def test_thousands_of_versions(registries: None, system: Actor) -> None:
    """Read in pages, brought in batches; the second run changes nothing and asks for many versions at once.

    `SCHEMADESK_LONG=1` brings 10,000 (see amounts.py).
    """
    many = how_many("versions that move in")
    items = [
        entry(f"s{number % 500:03}", 1 + number // 500, number + 1, record("R", f"f{number}")) for number in range(many)
    ]
    snapshot, problems = read(answering(items))
    done = import_snapshot(registry="dev", snapshot=snapshot, by=system)
    assert (done.added, done.problems, problems) == (many, (), [])
    assert list_versions(get_registry("dev"), SubjectName(".", "s007")) == list(range(1, many // 500 + 1))
    sent: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        sent.append(sql)
        return execute(sql, *more)

    with connection.execute_wrapper(note):
        again = import_snapshot(registry="dev", snapshot=snapshot, by=system)
    assert (again.added, again.changed, again.same) == (0, 0, many)
    assert len(sent) < many / 10


@pytest.mark.django_db
def test_a_mirror_takes_no_import(registries: None, system: Actor) -> None:
    from registry.errors import OperationNotPermitted

    Registry.objects.filter(name="dev").update(kind="remote", url="http://a.example")
    snapshot, _ = read(answering([entry("a")]))
    with pytest.raises(OperationNotPermitted, match="is a mirror of"):
        import_snapshot(registry="dev", snapshot=snapshot, by=system)


def test_nothing_is_followed_or_fetched_but_the_registry() -> None:
    """A schema, an alias or a reference may name any address: none of them is asked."""
    evil = entry("a", schema=json.dumps({"$ref": "http://169.254.169.254/x"}), schemaType="JSON")
    with serving(answering([evil], **{"/config/a": {"alias": "http://169.254.169.254/"}})) as server:
        RemoteRegistry(parse_connection(f"http://127.0.0.1:{server.port}"), policy=POLICY).read()
        assert {call.path for call in server.calls} == {
            "/subjects",
            "/contexts",
            "/schemas",
            "/config",
            "/config/a",
            "/mode",
            "/mode/a",
            "/schemas/ids/1",
        }


def test_an_endless_answer_is_cut() -> None:
    def endless(call: Call) -> None:
        call.write(b"HTTP/1.1 200 OK\r\n\r\n[")
        while True:
            call.write(b'"x",' * 1000)

    with pytest.raises(RemoteUnavailable, match="more than 50000 bytes"):
        read(lambda call: Raw(endless), limits=HttpLimits(max_bytes=50_000))


def test_a_server_with_a_lower_limit_of_its_own_is_read_to_the_end() -> None:
    items = [entry(f"s{number:02}", schema_id=number + 1) for number in range(25)]
    whole = answering(items)

    def answer(call: Call) -> Any:
        return whole(call)[:10] if call.path == "/schemas" else whole(call)

    assert len(read(answer)[0].versions) == 25


def test_an_address_that_is_no_registry_is_said() -> None:
    with pytest.raises(RemoteUnavailable, match="is not a schema registry"):
        read(lambda call: None)


def test_an_old_server_is_asked_by_subject_what_is_still_there() -> None:
    from registry.subjects.import_export.snapshot import VersionRecord

    gone, there = (VersionRecord(SubjectName(".team", "a/b"), number, number, "AVRO", "") for number in (1, 2))
    answers = {"/subjects/:.team:a/b/versions": [2, "x", None]}
    with serving(lambda call: answers.get(call.path)) as server:
        remote = RemoteRegistry(parse_connection(f"http://127.0.0.1:{server.port}"), policy=POLICY)
        assert remote.still_there([gone, there]) == {there.key}


MODERN = {
    "/subjects": ["a", "b"],
    "/contexts": [".", ".x"],
    "/mode": {"mode": "READWRITE"},
    "/schemas": [{"subject": "a", "version": 1, "deleted": False}],
    "/schemas/types": ["AVRO", "JSON"],
    "/subjects/schemadesk-connection-test/versions/1/referencedby": Told(
        404, b'{"error_code": 40401, "message": "no"}'
    ),
}


def tried(answers: dict[str, Any], *, policy: EgressPolicy = POLICY, secret: str = "") -> tuple[Probe, list[Call]]:
    with serving(lambda call: answers.get(call.path)) as server:
        return probe(f"http://127.0.0.1:{server.port}", policy=policy, secret=secret), server.calls


def outcome(found: Probe) -> list[bool | None]:
    return [step.ok for step in found.steps]


def known(found: Probe) -> dict[str, bool | None]:
    return {each.name: each.known for each in found.capabilities}


def test_a_server_of_today_passes_and_only_reading_calls_are_made() -> None:
    found, calls = tried(MODERN)
    assert found.ok and outcome(found) == [True] * 4
    assert known(found) == {
        "contexts": True, "import_mode": None, "references": True, "deleted": True,
        "format:AVRO": True, "format:PROTOBUF": False, "format:JSON": True,
    }  # fmt: skip
    assert calls and "2 subjects" in found.steps[3].said


def test_a_server_of_the_first_years_lacks_what_it_lacks() -> None:
    found, _ = tried({"/subjects": []})
    assert found.ok
    assert known(found) == {
        "contexts": False, "import_mode": False, "references": False, "deleted": None,
        "format:AVRO": True, "format:PROTOBUF": None, "format:JSON": None,
    }  # fmt: skip
    assert all(each.said for each in found.capabilities if not each.known)


def test_the_mode_import_and_deleted_subjects_are_seen() -> None:
    found, _ = tried({**MODERN, "/mode": {"mode": "IMPORT"}})
    assert known(found)["import_mode"] is True
    with serving(
        lambda call: ["a", "b"] if "deleted" in call.query else ["a"] if call.path == "/subjects" else None
    ) as it:
        assert known(probe(f"http://127.0.0.1:{it.port}", policy=POLICY))["deleted"] is True


@pytest.mark.parametrize(
    ("answers", "outcomes", "said"),
    [
        ({"/subjects": Told(401, b"")}, [True, True, False, None], "rejects the sign-in"),
        ({"/subjects": Told(200, b"<html>")}, [True, True, True, False], "not be a schema registry"),
        ({"/subjects": Told(302, b"", {"Location": "http://elsewhere"})}, [True, True, None, False], "redirect"),
    ],
)
def test_a_step_that_fails_says_why_and_stops_the_rest(answers: Any, outcomes: list[bool | None], said: str) -> None:
    found, _ = tried(answers)
    assert (outcome(found), found.ok, found.capabilities) == (outcomes, False, ())
    assert said in next(step.said for step in found.steps if step.ok is False)


def test_what_the_policy_refuses_is_never_called() -> None:
    found, calls = tried(MODERN, policy=EgressPolicy())
    assert outcome(found) == [False, None, None, None]
    assert not calls and "SCHEMADESK_EGRESS_ALLOW" in found.steps[0].said


def test_a_secret_that_is_not_there_is_no_call() -> None:
    found, calls = tried(MODERN, secret="nowhere")
    assert outcome(found) == [True, None, False, None]
    assert not calls and "not found. Put it in a file" in found.steps[2].said


def test_nobody_answers() -> None:
    with serving(lambda call: None) as server:
        port = server.port
    found = probe(f"http://127.0.0.1:{port}", policy=POLICY)
    assert outcome(found)[:2] == [True, False]
    assert "can't be reached" in found.steps[1].said
