"""Tags inside schemas: read, added and removed, by the cases of each format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidSchema, SchemaTooCostly
from registry.formats import FORMATS
from registry.formats.base import ResolvedReference
from registry.formats.tags import EntityTags, TagChange, changes_of, with_any_of
from tests.waiting import costs_little

FOLDER = Path(__file__).parent / "cases"
KINDS = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}


def cases() -> list[Any]:
    return [
        pytest.param(KINDS[path.stem], case, id=f"{path.stem}: {case['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


def entities(written: Mapping[str, Sequence[str]]) -> tuple[EntityTags, ...]:
    """The entities of a case: with a `#` before its name a field, else a record."""
    return tuple(
        EntityTags("sr_field" if "#" in path else "sr_record", path.replace("#", "."), tuple(tags))
        for path, tags in written.items()
    )


@pytest.mark.parametrize(("kind", "case"), cases())
def test_a_case(kind: str, case: dict[str, Any]) -> None:
    engine = FORMATS[kind]
    text = case["schema"] if isinstance(case["schema"], str) else json.dumps(case["schema"])
    schema = engine.parse(text)
    changes = changes_of(entities(case.get("add", {})), entities(case.get("remove", {})))
    if "refused" in case:
        with pytest.raises(InvalidSchema) as refusal:
            engine.with_tags(schema, changes)
        assert case["refused"] in refusal.value.message
        return
    changed = engine.with_tags(schema, changes)
    if "text" in case:
        assert changed == case["text"]
    found = engine.tags(engine.parse(changed))
    assert {(item.entity, item.tags) for item in found} == {(item.entity, item.tags) for item in entities(case["tags"])}
    if "ordered" in case:
        assert [item.entity for item in found] == [item.entity for item in entities(dict.fromkeys(case["ordered"], ()))]


def test_what_a_schema_refers_to_is_found_but_not_changed() -> None:
    inner = '{"type":"record","name":"I","fields":[{"name":"f","type":"int","confluent:tags":["PII"]}]}'
    schema = FORMATS["AVRO"].parse(
        '{"type":"record","name":"R","fields":[{"name":"i","type":"I"}]}', (ResolvedReference("I", "i", 1, inner, ()),)
    )
    assert FORMATS["AVRO"].tags(schema) == (EntityTags("sr_field", "I.f", ("PII",)),)
    with pytest.raises(InvalidSchema):
        FORMATS["AVRO"].with_tags(schema, changes_of([EntityTags("sr_record", "I", ("A",))], ()))


def test_a_file_of_that_name_that_declares_nothing_is_reported() -> None:
    own = 'syntax = "proto3"; package confluent; message Other { }'
    schema = FORMATS["PROTOBUF"].parse(
        'syntax = "proto3"; import "confluent/meta.proto"; message A { confluent.Other o = 1; }',
        (ResolvedReference("confluent/meta.proto", "meta", 1, own, ()),),
    )
    with pytest.raises(InvalidSchema, match="declares no option"):
        FORMATS["PROTOBUF"].with_tags(schema, changes_of([EntityTags("sr_record", "A", ("A",))], ()))


def test_a_search_takes_any_of_the_tags() -> None:
    found = [EntityTags("sr_record", "R", ("A", "B")), EntityTags("sr_field", "R.f", ("C",))]
    assert with_any_of(found, ["B", "X"]) == (found[0],)
    assert with_any_of(found, ["*"]) == tuple(found)
    assert with_any_of(found, ["X"]) == ()


WORDS = st.lists(st.sampled_from("ABCDE"), max_size=6)


@given(WORDS, WORDS, WORDS)
@settings(max_examples=60, deadline=None)
def test_after_a_change_all_that_was_added_is_there_and_nothing_that_was_removed(
    before: list[str], add: list[str], remove: list[str]
) -> None:
    after = TagChange(("sr_record", "R"), tuple(add), tuple(remove)).apply(before)
    assert set(after) == (set(before) | set(add)) - set(remove)
    assert len(after) == len(set(after))
    schema = {"type": "record", "name": "R", "fields": [], **({"confluent:tags": before} if before else {})}
    engine = FORMATS["AVRO"]
    change = changes_of([EntityTags("sr_record", "R", tuple(add))], [EntityTags("sr_record", "R", tuple(remove))])
    found = engine.tags(engine.parse(engine.with_tags(engine.parse(json.dumps(schema)), change)))
    assert [item.tags for item in found] == ([after] if after else [])


@pytest.mark.slow
def test_hostile_schemas_end_soon() -> None:
    """Many entities at once, names that are beginnings of each other, paths longer than all memory."""
    with costs_little(60):
        wide = {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "int"} for n in range(8_000)]}
        schema = FORMATS["AVRO"].parse(json.dumps(wide))
        every = [EntityTags("sr_field", f"R.f{n}", ("A",)) for n in range(8_000)]
        changed = FORMATS["AVRO"].with_tags(schema, changes_of(every, ()))
        assert len(FORMATS["AVRO"].tags(FORMATS["AVRO"].parse(changed))) == 8_000
        nested: Any = {"type": "object", "properties": {"x" * 4_000: {"confluent:tags": ["A"]}}}
        for _ in range(30):
            nested = {"type": "object", "properties": {"x" * 4_000: {**nested, "confluent:tags": ["A"]}}}
        assert FORMATS["JSON"].tags(FORMATS["JSON"].parse(json.dumps(nested)))
        many = {"type": "object", "properties": {f"p{n}": {"confluent:tags": ["A"]} for n in range(5_000)}}
        deep = {"type": "object", "properties": {"y" * 100_000: many}}
        with pytest.raises(SchemaTooCostly):
            FORMATS["JSON"].tags(FORMATS["JSON"].parse(json.dumps(deep)))
        dots: Any = {"type": "object", "properties": {}}
        for _ in range(20):
            dots = (
                {"type": "object", "properties": {"a": dots, "a.object.a": dots}}
                if len(json.dumps(dots)) < 90_000
                else dots
            )
        with pytest.raises(InvalidSchema):
            FORMATS["JSON"].with_tags(
                FORMATS["JSON"].parse(json.dumps(dots)),
                changes_of([EntityTags("sr_field", "object.a." * 40 + "b", ("A",))], ()),
            )
