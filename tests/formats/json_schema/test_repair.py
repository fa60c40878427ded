"""Suggested edits of JSON Schemas: each is applied and judged again, for renames in every kind of object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.formats.assessment import Assessment, assess
from registry.formats.compatibility import check
from registry.formats.json_schema import JSON_SCHEMA, JsonSchemaFormat
from registry.formats.report import Profile, Report
from tests.formats.json_schema.random_schemas import random_pair

LENIENT = JsonSchemaFormat("lenient")
DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
STRING = {"type": "string"}
LEVELS = ("BACKWARD", "FORWARD", "FULL")
PROFILES: tuple[Profile, ...] = ("confluent", "semantic")


def customer(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "integer"}, name: STRING}, "required": ["id", name], **more}


def around(schema: dict[str, Any], shape: str) -> dict[str, Any]:
    """A document that holds the object in some place."""
    if shape == "root":
        return {**DRAFT, **schema}
    if shape == "allOf":
        return {**DRAFT, "allOf": [schema, {"type": "object", "properties": {"note": STRING}}]}
    holder = {
        "nested": schema,
        "array": {"type": "array", "items": schema},
        "$defs": {"$ref": "#/$defs/Customer"},
    }[shape]
    document = {**DRAFT, "type": "object", "properties": {"customer": holder}, "required": ["customer"]}
    return {**document, "$defs": {"Customer": schema}} if shape == "$defs" else document


#: the place that titles name, and where a customer stands in a datum
TITLE_ENDS = {
    "root": "",
    "nested": " in /properties/customer",
    "array": " in /properties/customer/items",
    "$defs": " in /$defs/Customer",
    "allOf": " in /allOf/0",
}
HOLDERS = {
    "root": lambda value: value,
    "allOf": lambda value: value,
    "nested": lambda value: {"customer": value},
    "$defs": lambda value: {"customer": value},
    "array": lambda value: {"customer": [value]},
}


def assessed(
    old: object, new: object, level: str, profile: Profile = "confluent", engine: JsonSchemaFormat = JSON_SCHEMA
) -> Assessment:
    before, after = engine.parse(json.dumps(old)), engine.parse(json.dumps(new))
    return assess(engine, after, [(1, before)], level, parse=engine.parse, profile=profile)


def reported(old: object, text: str, level: str, profile: Profile) -> Report:
    history = [(1, JSON_SCHEMA.parse(json.dumps(old)))]
    return check(JSON_SCHEMA, JSON_SCHEMA.parse(text), history, level, profile=profile)


def holder_of(document: dict[str, Any], shape: str) -> dict[str, Any]:
    holder: dict[str, Any] = {
        "root": lambda: document,
        "allOf": lambda: document["allOf"][0],
        "nested": lambda: document["properties"]["customer"],
        "array": lambda: document["properties"]["customer"]["items"],
        "$defs": lambda: document["$defs"]["Customer"],
    }[shape]()
    return holder


def takes(schema: str, datum: object) -> bool:
    parsed = JSON_SCHEMA.parse(schema)
    any_value = JSON_SCHEMA.parse("{}")
    return not JSON_SCHEMA.resolve(parsed, any_value, datum).error


@pytest.mark.slow
@pytest.mark.requirement("ORA-5")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("shape", TITLE_ENDS)
def test_in_an_open_object_a_rename_keeps_the_old_property_beside_the_new_one(shape: str, profile: Profile) -> None:
    old, new = around(customer("email"), shape), around(customer("mail"), shape)
    for level in LEVELS:
        patch = assessed(old, new, level, profile).patch
        assert patch is not None
        assert patch.passes, (level, patch)
        assert patch.titles[0] == (
            f'keep "email" as deprecated beside "mail"{TITLE_ENDS[shape]}, and required as before: '
            "JSON Schema has no aliases"
        )
        edited = holder_of(json.loads(patch.text), shape)
        assert edited["properties"]["email"] == {**STRING, "deprecated": True}
        # Where old data are to be read, they may hold any value under the new name.
        is_read = level != "FORWARD"
        assert edited["properties"]["mail"] == ({} if is_read else STRING)
        assert edited["required"] == (["id", "email"] if is_read else ["id", "mail", "email"])
        written, other_type = {"id": 1, "email": "a@b"}, {"id": 1, "email": "a@b", "mail": 5}
        if is_read:
            assert takes(patch.text, HOLDERS[shape](written))
            assert takes(patch.text, HOLDERS[shape](other_type))
        assert not takes(patch.text, HOLDERS[shape]({"id": 1, "mail": "a@b"})), "old readers look for email"
        assert not [title for title in patch.titles if title.startswith(("set ", "remove "))]
        assert reported(old, patch.text, level, profile).is_compatible
        if is_read:
            last = patch.titles[-1]
            assert last.startswith(f'let "mail"{TITLE_ENDS[shape]} be any value')
            assert last.endswith("the other side takes any value under that name")


def test_the_lenient_policy_keeps_the_type_of_the_new_property() -> None:
    for level in ("BACKWARD", "FULL"):
        patch = assessed(customer("email"), customer("mail"), level, engine=LENIENT).patch
        assert patch is not None
        assert patch.passes
        assert patch.titles[1] == 'make "mail" optional'
        assert json.loads(patch.text)["properties"]["mail"] == STRING


def test_a_property_that_may_be_any_value_keeps_what_is_said_of_it() -> None:
    new = customer("mail")
    new["properties"]["mail"] = {"type": "string", "description": "where they are written to", "maxLength": 5}
    patch = assessed(customer("email"), new, "BACKWARD").patch
    assert patch is not None
    assert json.loads(patch.text)["properties"]["mail"] == {"description": "where they are written to"}


@pytest.mark.parametrize("profile", PROFILES)
def test_in_a_closed_object_the_type_stays_and_old_readers_get_no_new_name(profile: Profile) -> None:
    old, new = (customer(name, additionalProperties=False) for name in ("email", "mail"))
    patch = assessed(old, new, "BACKWARD", profile).patch
    assert patch is not None
    assert patch.passes
    assert patch.titles[1] == 'make "mail" optional'
    assert json.loads(patch.text)["properties"]["mail"] == STRING
    for level in ("FORWARD", "FULL"):
        patch = assessed(old, new, level, profile).patch
        assert patch is not None
        assert patch.passes
        assert sorted(patch.titles) == [
            'declare the property "email" as the other side does, and require it',
            'remove the property "mail"',
        ]
        assert json.loads(patch.text) == old


def test_a_rename_of_optional_properties_requires_nothing() -> None:
    old, new = customer("email"), customer("mail")
    old["required"], new["required"] = ["id"], ["id"]
    patch = assessed(old, new, "BACKWARD").patch
    assert patch is not None
    assert patch.passes
    assert patch.titles[0] == 'keep "email" as deprecated beside "mail": JSON Schema has no aliases'
    assert json.loads(patch.text)["required"] == ["id"]


def test_a_property_that_was_forbidden_is_not_brought_back() -> None:
    old = {"properties": {"customer_mail": False}}
    new = {"properties": {"customerMail": False}}
    assert [rename.edit for rename in assessed(old, new, "NONE").renames] == [None]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(8))
def test_a_patch_passes_where_it_says_so_and_adds_no_problems(seed: int, profile: Profile) -> None:
    old, new = (json.loads(text) for text in random_pair(seed + 40_000))
    for level in ("BACKWARD", "FORWARD"):
        assessment = assessed(old, new, level, profile)
        if assessment.patch is None:
            continue
        after = reported(old, assessment.patch.text, level, profile)
        assert after.is_compatible == assessment.patch.passes
        assert len(after.breaks) <= len(assessment.report.breaks)
        assert len(set(assessment.patch.titles)) == len(assessment.patch.titles), assessment.patch.titles


def test_a_property_that_is_covered_by_the_rest_is_declared_and_the_rest_stays() -> None:
    rest = {"type": ["string", "integer"]}
    old = {"type": "object", "properties": {"city": {"type": "integer"}}, "additionalProperties": rest}
    new = {"type": "object", "additionalProperties": rest}
    reader, writer = JSON_SCHEMA.parse(json.dumps(old)), JSON_SCHEMA.parse(json.dumps(new))
    edits = [
        JSON_SCHEMA.repair(writer, reader, item, is_reader=False) for item in JSON_SCHEMA.judge(reader, writer).breaks
    ]
    assert edits
    for edit in edits:
        assert edit is not None
        assert edit.title == 'declare the property "city" as the other side does'
        assert json.loads(edit.text) == old


def test_a_property_that_readers_require_is_restored_as_required_even_with_a_default() -> None:
    old = {"type": "object", "properties": {"a": {"type": "string", "default": ""}}, "required": ["a"]}
    patch = assessed(old, {"type": "object"}, "FORWARD").patch
    assert patch is not None
    assert patch.passes
    assert json.loads(patch.text)["required"] == ["a"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_default_of_a_required_property_is_explained_once(is_known: bool) -> None:
    """Whatever the verdict, no finding says that the default helps."""
    declaration = {"a": {"type": "string", "default": ""}}
    old = {"type": "object", "properties": declaration if is_known else {}}
    new = {"type": "object", "properties": declaration, "required": ["a"]}
    report = assessed(old, new, "BACKWARD").report
    assert report.is_compatible is is_known
    [item] = report.items
    assert "gives it a default" in item.message
    assert "a default is only an annotation: validators don't fill it in" in item.why.replace("A default", "a default")
