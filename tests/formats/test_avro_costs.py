"""Large and tangled schemas: whatever is asked of a pair of them takes a second or two; all paths of it take minutes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.errors import SchemadeskError
from registry.formats.avro import AVRO
from tests.waiting import costs_little


def record(name: str, types: list[Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{i}", "type": type_} for i, type_ in enumerate(types)],
    }


def tangled(kind: str) -> Any:
    inner = [record(f"M{i}", [["null", "M0", *(f"M{j}" for j in range(1, i))]]) for i in range(1, 40)]
    return record("M0", [kind, *(["null", item] for item in inner)])


PAIRS: dict[str, tuple[Any, Any]] = {
    "a union of 2,000 records": tuple([record(f"A{i}", [kind]) for i in range(2_000)] for kind in ("int", "string")),
    "2,000 fields without defaults": (record("R", ["int"] * 2_000), record("R", [])),
    "2,000 fields of other types": (record("R", ["int"] * 2_000), record("R", ["string"] * 2_000)),
    "5,000 symbols": tuple({"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(n)]} for n in (1, 5_000)),
    "records that refer to each other": (tangled("int"), tangled("string")),
}


@pytest.mark.parametrize("name", PAIRS)
def test_everything_asked_of_a_large_pair_ends_soon(name: str) -> None:
    reader, writer = (AVRO.parse(json.dumps(value)) for value in PAIRS[name])
    found = AVRO.judge(reader, writer).breaks
    asked = {
        "truth": lambda: AVRO.truth(reader, writer),
        "witness": lambda: AVRO.witness(reader, writer, found[-1]),
        "repair": lambda: AVRO.repair(reader, writer, found[0], is_reader=True),
        "example": lambda: AVRO.example(writer),
        "resolve": lambda: AVRO.resolve(reader, writer, AVRO.example(writer)),
    }
    for what, ask in asked.items():
        with costs_little(what=what):
            try:
                answer = ask()
            except SchemadeskError as error:
                answer = error.message
        assert answer is not None or what == "repair"
    assert AVRO.truth(reader, writer).answer == "no"
