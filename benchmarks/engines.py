"""How quick the engines are on generated schemas: parsing, checking, comparing, proving; and their memory."""

from __future__ import annotations

import importlib
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from benchmarks.measurement import Timing, machine, resident_bytes, timed, timing_of
from registry.formats import FORMATS
from registry.formats.base import ParsedSchema
from registry.formats.compatibility import check
from registry.formats.cost import estimate
from registry.formats.schema_format import SchemaFormat

#: the text of a version with so many fields; each version widens one field more and adds an optional one
Generator = Callable[[int, int], str]

_AVRO_TYPES: Final[tuple[Any, ...]] = (
    "string",
    "long",
    ["null", "string"],
    {"type": "array", "items": "string"},
    {"type": "int", "logicalType": "date"},
    {"type": "map", "values": "double"},
    "boolean",
)
_JSON_TYPES: Final[tuple[Any, ...]] = (
    {"type": "string", "maxLength": 200},
    {"type": "integer", "minimum": 0},
    {"type": ["null", "string"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "string", "format": "date"},
    {"type": "object", "additionalProperties": {"type": "number"}},
    {"type": "boolean"},
)
_PROTO_TYPES: Final = ("string", "int64", "optional string", "repeated string", "int32", "map<string, double>", "bool")


def _avro(fields: int, version: int) -> str:
    rows: list[dict[str, Any]] = []
    for number in range(fields):
        type_ = _AVRO_TYPES[number % len(_AVRO_TYPES)]
        if type_ == "long" and number >= version:
            type_ = "int"
        rows.append({"name": f"field_{number}", "type": type_, "doc": f"The field number {number}."})
        if isinstance(type_, list):
            rows[-1]["default"] = None
    rows += [{"name": f"added_{number}", "type": ["null", "string"], "default": None} for number in range(version)]
    return json.dumps({"type": "record", "name": "Order", "namespace": "bench", "fields": rows})


def _json(fields: int, version: int) -> str:
    properties: dict[str, Any] = {}
    for number in range(fields):
        type_ = _JSON_TYPES[number % len(_JSON_TYPES)]
        if "maxLength" in type_ and number < version:
            type_ = {**type_, "maxLength": 300}
        properties[f"field_{number}"] = type_
    properties |= {f"added_{number}": {"type": "string"} for number in range(version)}
    return json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Order",
            "type": "object",
            "properties": properties,
            "required": [f"field_{number}" for number in range(0, fields, 3)],
            "additionalProperties": False,
        }
    )


def _protobuf(fields: int, version: int) -> str:
    rows = []
    for number in range(fields):
        type_ = _PROTO_TYPES[number % len(_PROTO_TYPES)]
        if type_ == "int64" and number >= version:
            type_ = "int32"
        rows.append(f"  {type_} field_{number} = {number + 1};")
    rows += [f"  string added_{number} = {fields + number + 1};" for number in range(version)]
    return "\n".join(['syntax = "proto3";', "package bench;", "message Order {", *rows, "}", ""])


GENERATORS: Final[Mapping[str, Generator]] = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}


_LATER: Final = 5  # versions between the two of a pair
_SMALL: Final = 20  # fields of the schemas of the memory row


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: fields of a pair and of a diff, versions, calls and seconds a row, checks for memory."""

    fields: int = 200
    diff_fields: int = 2_000
    versions: int = 100
    calls: int = 300
    seconds: float = 8.0
    checks: int = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; `goal` in seconds, None without one; `other` is what an independent implementation took."""

    format: str
    what: str
    timing: Timing
    goal: float | None = None
    other: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Generated schemas of one format, read."""

    engine: SchemaFormat
    text: Generator
    size: Size
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def parsed(self, fields: int, version: int) -> ParsedSchema:
        """One version."""
        return self.engine.parse(self.text(fields, version))


#: one call, and what makes it ready: with schemas read anew, so that nothing an engine keeps of a pair helps
Work = Callable[[], object]
Measure = Callable[[Inputs], Work]


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table for every format: its words, how it is set up, and its goals in milliseconds by format."""

    what: str
    measure: Measure
    goals: Mapping[str, float]


def _read(inputs: Inputs) -> Work:
    text = inputs.text(inputs.size.fields, 0)
    return lambda: inputs.engine.parse(text)


def _estimate(inputs: Inputs) -> Work:
    # Another text each time: the estimates of texts are remembered.
    text = inputs.text(inputs.size.fields, 0) + " " * next(inputs.numbers)
    return lambda: estimate(inputs.engine.name, text)


def _check(inputs: Inputs) -> Work:
    old, new = inputs.parsed(inputs.size.fields, 0), inputs.parsed(inputs.size.fields, _LATER)
    return lambda: check(inputs.engine, new, [(1, old)], "BACKWARD")


def _check_all(inputs: Inputs) -> Work:
    history = [(number + 1, inputs.parsed(inputs.size.fields, number)) for number in range(inputs.size.versions)]
    new = inputs.parsed(inputs.size.fields, inputs.size.versions)
    return lambda: check(inputs.engine, new, history, "BACKWARD_TRANSITIVE")


def _diff(inputs: Inputs) -> Work:
    old, new = inputs.parsed(inputs.size.diff_fields, 0), inputs.parsed(inputs.size.diff_fields, _LATER)
    return lambda: inputs.engine.diff(old, new)


def _truth(inputs: Inputs) -> Work:
    old, new = inputs.parsed(inputs.size.fields, 0), inputs.parsed(inputs.size.fields, _LATER)
    return lambda: inputs.engine.truth(new, old)


def kinds(size: Size) -> tuple[Kind, ...]:
    """The rows, in their order."""
    every = dict.fromkeys(GENERATORS, 1.0)
    return (
        Kind(f"read a schema of {size.fields:,} fields", _read, {}),
        Kind("estimate its cost", _estimate, {}),
        Kind(f"check a pair of {size.fields:,} fields", _check, {"AVRO": 1, "PROTOBUF": 2, "JSON": 10}),
        Kind(
            f"check against {size.versions:,} versions of {size.fields:,} fields",
            _check_all,
            {name: 150 * one for name, one in every.items()},
        ),
        Kind(f"compare {size.diff_fields:,} fields", _diff, {name: 100 * one for name, one in every.items()}),
        Kind(f"prove a pair of {size.fields:,} fields by its data", _truth, {}),
    )


def measure(size: Size) -> Iterator[Row]:
    """All rows of all formats, each as soon as it is known."""
    for name, engine in FORMATS.items():
        inputs = Inputs(engine, GENERATORS[name], size)
        for kind in kinds(size):
            timing = timed(partial(kind.measure, inputs), most_calls=size.calls, most_seconds=size.seconds)
            goal = kind.goals.get(name)
            other = INDEPENDENT.get((name, kind.measure))
            yield Row(
                format=name,
                what=kind.what,
                timing=timing,
                goal=None if goal is None else goal / 1000,
                other=other(inputs) if other else None,
            )
        yield _memory(inputs)


def _memory(inputs: Inputs) -> Row:
    """The process's memory over very many checks, each of a schema read for it; after a tenth, what is kept is full."""
    old = inputs.parsed(_SMALL, 0)
    text = inputs.text(_SMALL, _LATER)
    taken: list[float] = []
    before = 0
    for number in range(inputs.size.checks):
        if number == inputs.size.checks // 10:
            before = resident_bytes()
        new = inputs.engine.parse(text.replace("added_1", f"added_by_{number}"))
        begin = time.perf_counter()
        check(inputs.engine, new, [(1, old)], "FULL")
        if number < inputs.size.calls:
            taken.append(time.perf_counter() - begin)
    note = f"{before / 2**20:.1f} MiB, then {resident_bytes() / 2**20:.1f} MiB"
    return Row(inputs.engine.name, f"memory over {inputs.size.checks:,} checks", timing_of(taken), note=note)


def _python_avro(inputs: Inputs) -> float | None:
    """Seconds of Python's `avro` for the same pair; None where it isn't installed."""
    try:
        compatibility: Any = importlib.import_module("avro.compatibility")
        schema: Any = importlib.import_module("avro.schema")
    except ImportError:
        return None
    size = inputs.size

    def prepared() -> Work:
        reader, writer = (schema.parse(inputs.text(size.fields, version)) for version in (_LATER, 0))
        checker = compatibility.ReaderWriterCompatibilityChecker()
        return lambda: checker.get_compatibility(reader=reader, writer=writer)

    return timed(prepared, most_calls=size.calls, most_seconds=size.seconds).median


#: another implementation of the same row, if one is installed
INDEPENDENT: Final[Mapping[tuple[str, Measure], Callable[[Inputs], float | None]]] = {("AVRO", _check): _python_avro}
OTHERS: Final = "Python's `avro`"


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| format | what | median | 99 % | goal | |", "|---|---|---|---|---|---|"]
    lines += [f"| {row.format} | {row.what} | {' | '.join(cells(row))} |" for row in rows]
    return "\n".join(lines)


def cells(row: Row) -> list[str]:
    """Median, 99 %, goal and what else is to say, for people."""
    goal, note = "", row.note
    if row.goal is not None:
        goal = f"{milliseconds(row.goal)}{'' if row.timing.median <= row.goal else ' (missed)'}"
    if row.other is not None:
        note = f"{OTHERS} {milliseconds(row.other)}: {row.other / row.timing.median:.1f} times as long"
    elif ("AVRO", row.what) == (row.format, row.what) and row.what.startswith("check a pair"):
        note = f"{OTHERS} isn't installed: left out"
    return [milliseconds(row.timing.median), milliseconds(row.timing.p99), goal, note]


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds, with as many digits as say something."""
    value = seconds * 1000
    return f"{value:.3f} ms" if value < 1 else f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"


def section(rows: list[Row]) -> str:
    """The text of the engines' section on the page of measurements."""
    day = datetime.now(UTC).date().isoformat()
    return (
        f"Measured on {day} with {machine()}.\n\n"
        "One thread; each check is of schemas that were read for it and never compared before. The fields are of seven kinds; the later version of a pair widens fields and adds "
        "optional ones.\n\n" + table(rows)
    )
