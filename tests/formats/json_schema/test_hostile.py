"""Schemas made to hurt: each goes through the whole engine, or is refused, in two seconds of the processor and less.

Without the bounds they take minutes, or have no end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from registry.errors import InvalidDatum, InvalidSchema
from registry.formats.base import ResolvedReference
from registry.formats.compatibility import check_all_levels
from registry.formats.json_schema import JSON_SCHEMA
from tests.waiting import costs_little

pytestmark = pytest.mark.slow
D2020 = "https://json-schema.org/draft/2020-12/schema"


def nested(depth: int, wrap: Callable[[Any], Any], leaf: Any) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


def branches(count: int, kind: str) -> dict[str, Any]:
    return {
        "oneOf": [
            {"type": "object", "properties": {"k": {"const": f"{kind}{number}"}}, "required": ["k"]}
            for number in range(count)
        ]
    }


def exploding(count: int, kind: str) -> dict[str, Any]:
    return {
        "allOf": [{"anyOf": [{"required": [f"{kind}{number}"]}, {"minProperties": number}]} for number in range(count)]
    }


def ladder(height: int, leaf: str) -> dict[str, Any]:
    """Each definition holds the one before twice: what is unfolded doubles with every step."""
    definitions: dict[str, Any] = {"d0": {"type": leaf}}
    for number in range(1, height):
        step = {"$ref": f"#/definitions/d{number - 1}"}
        definitions[f"d{number}"] = {"type": "object", "properties": {"x": step, "y": step}}
    return {"$ref": f"#/definitions/d{height - 1}", "definitions": definitions}


def in_place_ladder(height: int, leaf: str, keyword: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {"d0": {"type": leaf}}
    for number in range(1, height):
        step = {"$ref": f"#/definitions/d{number - 1}"}
        definitions[f"d{number}"] = {keyword: [step, {**step, "title": "x"}]}
    return {"$ref": f"#/definitions/d{height - 1}", "definitions": definitions}


def chain(length: int, leaf: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"d{number}": {"$ref": f"#/definitions/d{number + 1}"} for number in range(length)}
    return {"$ref": "#/definitions/d0", "definitions": {**definitions, f"d{length}": {"type": leaf}}}


def object_chain(length: int, leaf: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{number}": {"properties": {"n": {"$ref": f"#/definitions/d{number + 1}"}}} for number in range(length)
    }
    return {"$ref": "#/definitions/d0", "definitions": {**definitions, f"d{length}": {"type": leaf}}}


def ring(length: int, leaf: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{number}": {"properties": {"n": {"$ref": f"#/definitions/d{(number + 1) % length}"}, "v": {"type": leaf}}}
        for number in range(length)
    }
    return {"$ref": "#/definitions/d0", "definitions": definitions}


def all_meet(count: int, leaf: str) -> dict[str, Any]:
    """Every definition offers every other: the pairs of definitions are many."""
    options = [{"$ref": f"#/definitions/d{number}"} for number in range(count)]
    definitions = {
        f"d{number}": {"properties": {"n": {"anyOf": options}, f"v{number}": {"type": leaf}}} for number in range(count)
    }
    return {"$ref": "#/definitions/d0", "definitions": definitions}


def wide(count: int, **changes: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"p{number}": {"type": "string", "maxLength": 5} for number in range(count)},
        **changes,
    }


def renamed(count: int, style: str) -> dict[str, Any]:
    return {"properties": {style.format(number): {"type": "string"} for number in range(count)}}


def pattern(text: str) -> dict[str, Any]:
    return {
        "properties": {"a": {"type": "string", "pattern": text, "maxLength": 60}},
        "patternProperties": {text: {"type": "string"}},
    }


SHAPES: dict[str, tuple[Any, Any]] = {
    "deep properties": (nested(98, lambda s: {"properties": {"a": s}}, {"type": "integer"}), nested(98, lambda s: {"properties": {"a": s}}, {"type": "string"})),
    "deep allOf": (nested(60, lambda s: {"allOf": [s, {"minLength": 1}]}, {"type": "integer"}), nested(60, lambda s: {"allOf": [s, {"minLength": 2}]}, {"type": "string"})),
    "deep anyOf": (nested(60, lambda s: {"anyOf": [s, {"minLength": 1}]}, {"type": "integer"}), nested(60, lambda s: {"anyOf": [s, {"minLength": 2}]}, {"type": "string"})),
    "deep not": (nested(90, lambda s: {"not": s}, {"type": "integer"}), nested(90, lambda s: {"not": s}, {"type": "string"})),
    "too deep": (nested(5_000, lambda s: [s], 1) and '{"a":' * 50_000, {"type": "string"}),
    "a union of 10,000": (branches(10_000, "a"), branches(9_999, "a")),
    "unions of 10,000 others": (branches(10_000, "a"), branches(10_000, "b")),
    "unions of 300 others": (branches(300, "a"), branches(300, "b")),
    "an enum of 20,000": ({"enum": list(range(20_000))}, {"enum": list(range(1, 20_001))}),
    "13 blocks that multiply": (exploding(13, "a"), exploding(13, "b")),
    "60 blocks that multiply": (exploding(60, "a"), exploding(60, "b")),
    "a ladder that doubles": (ladder(60, "string"), ladder(60, "integer")),
    "a ladder of anyOf": (in_place_ladder(40, "string", "anyOf"), in_place_ladder(40, "integer", "anyOf")),
    "a ladder of allOf": (in_place_ladder(40, "string", "allOf"), in_place_ladder(40, "integer", "allOf")),
    "a chain of 5,000 references": (chain(5_000, "string"), chain(5_000, "integer")),
    "a chain of 1,000 objects": (object_chain(1_000, "string"), object_chain(1_000, "integer")),
    "rings of two lengths": (ring(40, "string"), ring(39, "integer")),
    "everything meets everything": (all_meet(40, "string"), all_meet(40, "integer")),
    "references in a circle": ({"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}, {"type": "string"}),
    "a schema that is not itself": ({"not": {"$ref": "#"}}, {"type": "string"}),
    "5,000 properties": (wide(5_000), wide(5_000, required=["p7"])),
    "3,000 renames": (renamed(3_000, "customer_address_line_{}"), renamed(3_000, "customerAddressLine{}x")),
    "catastrophic patterns": (pattern("^(a+)+$"), pattern("^((a|aa)+)*$")),
    "patterns with backtracking": (pattern(r"^(a+)+\1$"), pattern(r"^(?=(a+)+b)(a|aa)+$")),
    "patterns that grow": (pattern("((a{1,100}){1,100}){1,100}"), pattern("(a{5000}){5000}")),
    "large bounds": ({"minItems": 10**300, "items": {"minLength": 10**300}}, {"maxItems": 10**300, "minProperties": 10**18}),
    "fine multiples": ({"type": "number", "multipleOf": 1e-300}, {"type": "number", "multipleOf": 1e300}),
    "many names required": ({"required": [f"n{i}" for i in range(20_000)]}, {"required": [f"n{i}" for i in range(20_001)]}),
}  # fmt: skip


def text_of(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


@pytest.mark.parametrize("shape", SHAPES)
def test_everything_ends_soon(shape: str) -> None:
    texts = [text_of(schema) for schema in SHAPES[shape]]
    for step in ("judge", "truth", "diff", "rest"):
        with costs_little(what=step):
            try:
                old, new = (JSON_SCHEMA.parse(text) for text in texts)
                run(step, old, new)
            except InvalidSchema as error:
                assert error.message


def run(step: str, old: Any, new: Any) -> None:
    if step == "judge":
        rows = [row.to_dict() for row in check_all_levels(JSON_SCHEMA, new, [(1, old)]).matrix]
        assert len(json.dumps(rows)) < 100_000_000
    elif step == "truth":
        truth = JSON_SCHEMA.truth(new, old)
        assert truth.answer in ("yes", "no", "unknown")
        assert all(item.witness is not None and item.witness.found for item in truth.findings)
    elif step == "diff":
        assert isinstance(json.dumps([item.to_dict() for item in JSON_SCHEMA.diff(old, new)]), str)
    else:
        assert JSON_SCHEMA.normalize(new)
        assert JSON_SCHEMA.self_contained(new)
        assert len(JSON_SCHEMA.outline(new)) <= 2_000
        try:
            json.dumps(JSON_SCHEMA.example(new))
        except InvalidDatum as error:
            assert error.message


@pytest.mark.parametrize(
    "text",
    [
        '{"maximum": 1e400}', '{"maximum": 1e999999999}', '{"maximum": ' + "9" * 5_000 + "}", '{"maximum": 1.' + "0" * 5_000 + "}",
        '{"title": "\\udc00"}', '{"properties": {"\\ud800": {}}}', '{"a": 1, "a": 1}', '{"$ref": "file:///etc/passwd"}',
        '{"$ref": "http://169.254.169.254/latest"}', '{"$ref": "//[x"}', '{"$id": "http://[", "$ref": "a"}', '{"$ref": "#/%ZZ"}',
        '{"$ref": "' + "a" * 100_000 + '"}', "[" * 100_000, '{"title": "' + "x" * 1_100_000 + '"}', "\x00", '{"$schema": 1}',
        '{"$schema": "urn:x"}', '{"pattern": "(?P<a>"}', "nul", "﻿{}",
    ],
)  # fmt: skip
def test_broken_texts_are_refused_soon(text: str) -> None:
    with costs_little():
        with pytest.raises(InvalidSchema) as caught:
            JSON_SCHEMA.parse(text)
        assert caught.value.message
        assert len(caught.value.message) < 2_000


def test_a_nul_is_a_character_like_any_other() -> None:
    parsed = JSON_SCHEMA.parse('{"properties": {"a\\u0000": {"const": "\\u0000"}}, "required": ["a\\u0000"]}')
    assert JSON_SCHEMA.example(parsed)["a\x00"] == "\x00"
    assert "\x00" not in parsed.canonical


def test_references_are_bounded() -> None:
    many = [ResolvedReference(f"r{i}", f"r{i}", 1, "{}") for i in range(1_001)]
    with pytest.raises(InvalidSchema, match="more than 1,000 others"):
        JSON_SCHEMA.parse("{}", many)
    large = [ResolvedReference(f"r{i}", f"r{i}", 1, json.dumps({"title": "x" * 1_000_000})) for i in range(9)]
    with pytest.raises(InvalidSchema, match="characters in total"):
        JSON_SCHEMA.parse("{}", large)


def test_a_costly_pair_is_compared_only_with_a_larger_budget() -> None:
    # ten blocks: no keyword-by-keyword proof, and far above the default limit
    old = JSON_SCHEMA.parse(json.dumps({"$schema": D2020, **exploding(10, "a"), "maxProperties": 0}))
    new = JSON_SCHEMA.parse(json.dumps({"$schema": D2020, **exploding(10, "b"), "maxProperties": 0, "type": "object"}))
    assert JSON_SCHEMA.cost(old) > 1_000_000
    assert JSON_SCHEMA.truth(new, old).answer in ("no", "unknown")
