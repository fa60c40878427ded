"""The door to the engines: the same answers from here and from a child, and what is costly never runs here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.signals import request_finished, request_started

from benchmarks.engines import GENERATORS
from registry.errors import InvalidSchema, SchemaTooCostly
from registry.formats import FORMATS
from registry.formats.base import ParsedSchema, ResolvedReference
from registry.formats.policies import POLICIES
from registry.sandbox.pool import Pool
from registry.sandbox.process import Limits
from registry.subjects.engine import schema_engine, schema_workers
from tests.waiting import ends_soon, until

FIXED = json.dumps({"type": "fixed", "name": "Line", "size": 4})
LINE = ResolvedReference("Line", "line", 3, FIXED)
USER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "line", "type": "Line"}]})


@pytest.fixture(scope="module")
def children() -> Iterator[Pool]:
    pool = Pool(Limits(children=1, seconds=10.0))
    yield pool
    pool.close()


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    schema_engine.forget()


@pytest.fixture
def in_child(monkeypatch: pytest.MonkeyPatch, children: Pool) -> None:
    """Everything is costly, and no engine may be called here."""
    monkeypatch.setattr(schema_workers, "pool", lambda: children)
    monkeypatch.setattr(schema_engine, "place_of", lambda cost: "child")
    monkeypatch.setattr(schema_engine, "FORMATS", dict.fromkeys(FORMATS))
    schema_engine.forget()


def pair(name: str) -> tuple[ParsedSchema, ParsedSchema]:
    """A schema and a later one that breaks it somewhere."""
    text = GENERATORS[name]
    return schema_engine.parse(name, text(8, 4)), schema_engine.parse(name, text(9, 0).replace("field_1", "renamed_1"))


def _rename(old: ParsedSchema, new: ParsedSchema) -> Any:
    suspected = [item for item in schema_engine.diff(old, new) if item.score is not None]
    return [schema_engine.accept_rename(old, new, item) for item in suspected]


def _repair(old: ParsedSchema, new: ParsedSchema) -> Any:
    return [
        schema_engine.repair(new, old, found, is_reader=True) for found in schema_engine.incompatibilities(new, old)
    ]


VERBS: dict[str, Callable[[ParsedSchema, ParsedSchema], Any]] = {
    "parse": lambda old, new: (old, new, new.text),
    "normalize": lambda old, new: schema_engine.normalize(new),
    "outline": lambda old, new: schema_engine.outline(new),
    "self_contained": lambda old, new: schema_engine.self_contained(new),
    "example": lambda old, new: schema_engine.example(new),
    "position": lambda old, new: schema_engine.position(new, "/fields/3"),
    "diff": schema_engine.diff,
    "judge": lambda old, new: schema_engine.judge(new, old),
    "incompatibilities": schema_engine.incompatibilities,
    "truth": lambda old, new: schema_engine.truth(new, old),
    "witness": lambda old, new: [schema_engine.witness(new, old), *(schema_engine.witness(new, old, found) for found in schema_engine.incompatibilities(new, old))],
    "resolve": lambda old, new: schema_engine.resolve(old, old, schema_engine.example(old)),
    "repair": _repair,
    "accept_rename": _rename,
    "check": lambda old, new: [schema_engine.check(new, [(1, old), (2, new)], level) for level in ("NONE", "BACKWARD", "FULL_TRANSITIVE")],
    "check by the data": lambda old, new: schema_engine.check(new, [(1, old)], "FULL", profile="semantic"),
    "check_all_levels": lambda old, new: schema_engine.check_all_levels(new, [(1, old), (2, new)]),
    "assess": lambda old, new: schema_engine.assess(new, [(1, old)], "FULL").to_dict(),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_child_answers_as_the_engine_does(verb: str, name: str, request: pytest.FixtureRequest) -> None:
    here = VERBS[verb](*pair(name))
    request.getfixturevalue("in_child")
    old, new = pair(name)
    assert new.model is None
    there = VERBS[verb](old, new)
    assert there == here
    assert type(there) is type(here)


def test_a_policy_answers_the_same(request: pytest.FixtureRequest) -> None:
    old, new = pair("AVRO")
    here = {policy: schema_engine.check_policy(policy, new, [(1, old)]) for policy in POLICIES}
    request.getfixturevalue("in_child")
    assert {policy: schema_engine.check_policy(policy, new, [(1, old)]) for policy in POLICIES} == here


def test_references_go_along(request: pytest.FixtureRequest) -> None:
    here = schema_engine.parse("AVRO", USER, [LINE])
    request.getfixturevalue("in_child")
    there = schema_engine.parse("AVRO", USER, [LINE])
    assert (there, there.model, there.references) == (here, None, here.references)
    assert schema_engine.self_contained(there) == schema_engine.self_contained(here)
    assert '"size":4' in schema_engine.self_contained(there)
    assert schema_engine.assess(there, [(1, there)], "FULL").is_compatible


def test_a_schema_that_was_parsed_elsewhere_does_as_well(request: pytest.FixtureRequest) -> None:
    plain = FORMATS["AVRO"].parse(FIXED)
    with_references = FORMATS["AVRO"].parse(USER, [LINE])
    here = schema_engine.outline(with_references)
    assert schema_engine.check(plain, [(1, plain)], "FULL").is_compatible
    request.getfixturevalue("in_child")
    assert schema_engine.check(plain, [(1, plain)], "FULL").is_compatible
    with pytest.raises(TypeError, match="keeps what they lead to"):
        schema_engine.outline(with_references)
    assert here


def test_errors_come_through_with_their_place(in_child: None) -> None:
    with pytest.raises(InvalidSchema) as caught:
        schema_engine.parse("AVRO", '{\n  "type": "recor"\n}')
    assert caught.value.line == 2
    with pytest.raises(InvalidSchema, match="this server knows"):
        schema_engine.parse("XML", "<a/>")


def test_cheap_schemas_start_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_workers, "pool", lambda: pytest.fail("a child was asked"))
    for name in FORMATS:
        old, new = pair(name)
        assert not schema_engine.check(new, [(1, old)], "FULL").is_compatible
        assert schema_engine.diff(old, new)


def test_one_costly_version_sends_the_check_to_a_child(monkeypatch: pytest.MonkeyPatch, children: Pool) -> None:
    monkeypatch.setattr(schema_workers, "pool", lambda: children)
    wide = json.dumps([{"type": "enum", "name": f"n{i}.E", "symbols": ["A"]} for i in range(300)])
    costly, cheap = schema_engine.parse("AVRO", wide), schema_engine.parse("AVRO", FIXED)
    assert costly.model is None
    assert cheap.model is not None
    report = schema_engine.check(cheap, [(1, costly), (2, cheap)], "BACKWARD_TRANSITIVE")
    here = FORMATS["AVRO"].parse(wide)
    assert len(report.breaks) == len(FORMATS["AVRO"].judge(cheap, here).breaks) > 0
    assert report.versions == (2, 1)


def test_a_report_that_compares_too_much_with_data_is_made_in_a_child(
    monkeypatch: pytest.MonkeyPatch, children: Pool
) -> None:
    schema = schema_engine.parse("AVRO", GENERATORS["AVRO"](20, 0))
    history = [(number, schema) for number in range(1, 4)]
    here = schema_engine.assess(schema, history, "FULL")
    asked: list[str] = []

    def run(verb: str, *given: Any, **options: Any) -> Any:
        asked.append(verb)
        return Pool.run(children, verb, *given, **options)

    monkeypatch.setattr(schema_engine, "_PROVED_HERE", len(schema.text) * 5)
    monkeypatch.setattr(schema_workers, "pool", lambda: children)
    monkeypatch.setattr(children, "run", run)
    assert schema_engine.assess(schema, history, "FULL") == here
    assert not asked, "it is kept"
    schema_engine.forget()
    assert schema_engine.assess(schema, history, "FULL") == here
    assert schema_engine.assess(schema, history[:2], "FULL").is_compatible
    assert asked == ["assess"]


@pytest.mark.slow
@pytest.mark.django_db  # a signal of a request's beginning looks at the connections that there are
def test_a_request_has_one_allowance_for_all_that_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(Limits(children=1, seconds=3.0), program="tests.sandbox.bombs")
    monkeypatch.setattr(schema_workers, "pool", lambda: pool)
    schema = schema_engine.parse("AVRO", FIXED)
    try:
        pool.start()
        until(lambda: len(pool.pids) == 1)
        request_started.send(None)
        assert schema_engine._ask("burn", [schema], [1.6], {}) == 1.6
        with ends_soon(), pytest.raises(SchemaTooCostly, match='"Line" takes more than 3 s of processor time'):
            schema_engine._ask("burn", [schema], [60.0], {})
        with pytest.raises(SchemaTooCostly, match=r'limit of 3 s of processor time before it reaches .*"Line"'):
            schema_engine._ask("echo", [schema], [1], {})
        with ThreadPoolExecutor(1) as other:
            assert other.submit(schema_engine._ask, "sleep", [schema], [0.1], {}).result() == 0.1
        request_finished.send(None)
        assert [schema_engine._ask("burn", [schema], [1.6], {}) for _ in range(2)] == [
            1.6,
            1.6,
        ]  # nobody waits: a task
    finally:
        request_finished.send(None)
        pool.close()


def test_the_pool_has_the_limits_of_the_settings(settings: Any) -> None:
    settings.SCHEMA_SECONDS = 7.0
    settings.SCHEMA_CHILDREN = 3
    schema_workers.pool.cache_clear()
    try:
        assert (schema_workers.pool().limits.seconds, schema_workers.pool().limits.children) == (7.0, 3)
        assert schema_workers.pool().pids == ()
        assert schema_workers.pool() is schema_workers.pool()
    finally:
        schema_workers.pool.cache_clear()


def test_what_pages_ask_again_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = pair("AVRO")

    def asked() -> tuple[Any, ...]:
        return (
            schema_engine.diff(old, new),
            schema_engine.diff(new, old),
            schema_engine.outline(new),
            schema_engine.find_resets([(1, old), (2, new)]),
            schema_engine.judge(new, old),
            schema_engine.truth(new, old),
            schema_engine.lint(new),
        )

    first = asked()
    monkeypatch.setattr(schema_engine, "FORMATS", dict.fromkeys(FORMATS))
    assert asked() == first
    assert first[0] != first[1]
    schema_engine.forget()
    with pytest.raises(AttributeError):
        asked()


def test_a_report_asked_for_again_is_made_of_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = pair("AVRO")
    schema_engine.forget()
    first, asked = schema_engine.assess(new, [(1, old)], "FULL"), list[str]()

    class Counted:
        def __getattr__(self, verb: str) -> Any:
            asked.append(verb)
            return getattr(FORMATS["AVRO"], verb)

    monkeypatch.setattr(schema_engine, "FORMATS", {"AVRO": Counted()})
    assert schema_engine.assess(new, [(1, old)], "FULL") == first
    assert not {"judge", "truth", "diff", "lint", "outline", "accept_rename"} & set(asked)
    schema_engine.forget()
    assert schema_engine.assess(new, [(1, old)], "FULL") == first
    assert {"judge", "truth", "diff", "lint"} <= set(asked)


def test_what_is_kept_knows_what_a_schema_refers_to() -> None:
    text = '{"type": "record", "name": "Order", "fields": [{"name": "at", "type": "Place"}]}'
    place = '{"type": "record", "name": "Place", "fields": [{"name": "code", "type": "%s"}]}'
    old, same, other = (
        schema_engine.parse("AVRO", text, [ResolvedReference("Place", "place", version, place % kind)])
        for version, kind in enumerate(("int", "int", "string"), start=1)
    )
    for judged in (schema_engine.judge, schema_engine.truth):
        assert judged(same, old) == judged(old, old)
        assert judged(other, old) != judged(same, old)


def test_texts_that_differ_in_comments_alone_are_kept_apart() -> None:
    docs = []
    for comment in ("one", "two"):
        schema = schema_engine.parse(
            "PROTOBUF", f'syntax = "proto3";\nmessage M {{\n  // {comment}\n  string a = 1;\n}}\n'
        )
        docs.append((schema.fingerprint, schema_engine.outline(schema)))
    (first, ours), (second, theirs) = docs
    assert first == second
    assert ours is not theirs


@dataclass(frozen=True)
class Rows:
    """Something that was made of a pair."""

    weight: int


def test_what_is_made_of_a_pair_is_kept_by_content_and_way_unless_it_is_too_heavy() -> None:
    old, new = pair("AVRO")
    again = schema_engine.parse("AVRO", old.text)
    light = schema_engine.of_pair(old, new, 1, lambda: Rows(10))
    assert schema_engine.of_pair(again, new, 1, lambda: Rows(10)) is light
    assert schema_engine.of_pair(old, new, 2, lambda: Rows(10)) is not light
    assert schema_engine.of_pair(new, old, 1, lambda: Rows(10)) is not light
    heavy = schema_engine.of_pair(old, old, 1, lambda: Rows(sys.maxsize))
    assert schema_engine.of_pair(old, old, 1, lambda: Rows(sys.maxsize)) is not heavy
    schema_engine.forget()
    assert schema_engine.of_pair(old, new, 1, lambda: Rows(10)) is not light
