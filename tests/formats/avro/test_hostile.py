"""Schemas made to hurt: each goes through the whole engine, or is refused, in a few seconds of the processor.

A walk over all pairs or all paths takes minutes, or has no end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from registry.errors import InvalidSchema
from registry.formats.avro import AVRO
from registry.formats.compatibility import check_all_levels
from tests.waiting import costs_little

pytestmark = pytest.mark.slow


def enums(count: int, symbols: list[str], *, same_simple_name: bool = False) -> list[Any]:
    names = (f"n{number}.E" if same_simple_name else f"n.E{number}" for number in range(count))
    return [{"type": "enum", "name": name, "symbols": symbols} for name in names]


def record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": type_} for key, type_ in fields.items()]}


def ring(length: int, leaf: str) -> Any:
    """Records that hold one another in a ring: r0 → r1 → … → r0."""
    schema: Any = "R0"
    for number in reversed(range(length)):
        schema = record(
            f"R{number}", {"next": ["null", schema], "leaf": leaf} if number == 0 else {"next": ["null", schema]}
        )
    return schema


def ladder(height: int, leaf: str) -> Any:
    """Each record holds the one before twice: a datum doubles with every step."""
    fields: dict[str, Any] = {"a0": record("R0", {"leaf": leaf})}
    for number in range(1, height):
        fields[f"a{number}"] = record(f"R{number}", {"x": f"R{number - 1}", "y": f"R{number - 1}"})
    return record("Top", fields)


def defaulted(depth: int) -> Any:
    """A default whose unions could be tried in two ways on every level."""
    value: Any = {"x": 1}
    for _ in range(depth):
        value = {"x": value}
    branches = [record("A", {"x": ["null", "A"]}), record("B", {"x": ["A", "null", "B"]})]
    return {"type": "record", "name": "Top", "fields": [{"name": "f", "type": branches, "default": value}]}


SHAPES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "wide unions that break": (lambda: enums(4_000, ["A", "B"]), lambda: enums(4_000, ["A"])),
    "wide unions of one simple name": (
        lambda: enums(900, ["A", "B"], same_simple_name=True),
        lambda: enums(900, ["A"], same_simple_name=True),
    ),
    "wide unions of one simple name that hold": (
        lambda: enums(200, ["A"], same_simple_name=True),
        lambda: enums(200, ["A", "B"], same_simple_name=True),
    ),
    "rings of two lengths": (lambda: ring(40, "int"), lambda: ring(39, "string")),
    "a ladder that doubles": (lambda: ladder(60, "int"), lambda: ladder(60, "string")),
    "many fields of one broken record": (
        lambda: record("T", {"a": record("R", {f"f{i}": "int" for i in range(300)}), **{f"x{i}": ["null", "R"] for i in range(2_000)}}),
        lambda: record("T", {"a": record("R", {f"f{i}": "string" for i in range(300)}), **{f"x{i}": ["null", "R"] for i in range(2_000)}}),
    ),
    "recursive fields": (
        lambda: record("R", {**{f"x{i}": ["null", "R"] for i in range(3_000)}, "leaf": "int"}),
        lambda: record("R", {**{f"x{i}": ["null", "R"] for i in range(3_000)}, "leaf": "string"}),
    ),
    "many symbols": (
        lambda: {"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(30_000)]},
        lambda: {"type": "enum", "name": "E", "symbols": [f"T{i}" for i in range(30_000)]},
    ),
    "many aliases": (
        lambda: {"type": "record", "name": "R", "aliases": [f"A{i}" for i in range(30_000)], "fields": []},
        lambda: {"type": "record", "name": "S", "aliases": [f"B{i}" for i in range(30_000)], "fields": []},
    ),
    "renames everywhere": (
        lambda: record("R", {f"customer_address_line_{i}": "string" for i in range(3_000)}),
        lambda: record("R", {f"customerAddressLine{i}x": "string" for i in range(3_000)}),
    ),
    "a huge fixed": (
        lambda: {"type": "fixed", "name": "F", "size": 2**31 - 1},
        lambda: {"type": "fixed", "name": "F", "size": 2**31 - 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_everything_ends_soon(shape: str) -> None:
    old_text, new_text = (json.dumps(make()) for make in SHAPES[shape])
    with costs_little(30):
        try:
            old, new = AVRO.parse(old_text), AVRO.parse(new_text)
            strip = check_all_levels(AVRO, new, [(1, old)])
            assert strip.reports["NONE"].is_compatible
            assert len(json.dumps([row.to_dict() for row in strip.matrix])) < 100_000_000
            assert AVRO.diff(old, new)
            AVRO.witness(new, old)
            AVRO.normalize(new)
        except InvalidSchema as error:
            assert error.message


def test_a_default_with_many_readings_is_checked_once_each() -> None:
    with costs_little():
        with pytest.raises(InvalidSchema, match="doesn't match its type"):
            AVRO.parse(json.dumps(defaulted(60)))
