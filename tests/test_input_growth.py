"""Work in proportion to the input: twice as much input takes about twice the processor time, never four times."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

import pytest

from dashboard.compare.change_details import places_of
from dashboard.components.diff import text_diff
from registry.checkpoints.plans import parse_python
from registry.drift.debezium.columns import NO_DEFAULT, FieldShape, RowShape
from registry.drift.debezium.compatibility_prediction import predict_schema
from registry.drift.debezium.facts import Guard
from registry.drift.debezium.row_schemas import SchemaText
from registry.errors import InvalidSchema
from registry.formats import format_of
from registry.formats.base import ParsedSchema
from registry.formats.compatibility import Checker
from registry.formats.json_schema import empirical_check
from registry.formats.json_schema.proof import Proof
from registry.formats.schema_format import SchemaFormat
from registry.promotions.plan.steps import in_order
from registry.promotions.plan.types import IncomingVersion

#: by how much the work may grow from n to 4n: n log n gives less than 5, n² gives 16
MOST_GROWTH: Final = 9
#: measurements of which one has to show it, as other processes take their share of the caches
TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class Case:
    """What is made of an input of size n, which isn't measured, and what is done with it."""

    name: str
    make: Callable[[int], Any]
    work: Callable[..., object]
    size: int


Pair = tuple[str, str, str]


def avro(old: Any, new: Any) -> Pair:
    return "AVRO", json.dumps(old), json.dumps(new)


def json_schema(old: Any, new: Any) -> Pair:
    return "JSON", json.dumps(old), json.dumps(new)


def protobuf(old: str, new: str) -> Pair:
    return "PROTOBUF", f'syntax = "proto3";\n{old}', f'syntax = "proto3";\n{new}'


def record(count: int, name: str = "f{}", type_: Any = "int", **more: Any) -> dict[str, Any]:
    fields = [{"name": name.format(i), "type": type_, **more} for i in range(count)]
    return {"type": "record", "name": "R", "fields": fields}


def aliased_fields(count: int) -> dict[str, Any]:
    fields = [{"name": f"g{i}", "type": "int", "aliases": [f"f{i}"]} for i in range(count)]
    return {"type": "record", "name": "R", "fields": fields}


def reversed_fields(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "fields": schema["fields"][::-1]}


def enum(count: int, letter: str) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": [f"{letter}{i}" for i in range(count)]}


def union(count: int, type_: str, letter: str = "R") -> list[Any]:
    return [{"type": "record", "name": f"{letter}{i}", "fields": [{"name": "a", "type": type_}]} for i in range(count)]


def nested_uses(count: int, type_: str) -> dict[str, Any]:
    """Each record refers to the one before, and all to the outermost."""
    fields = []
    for i in range(count):
        before = [{"name": "before", "type": f"Q{i - 1}"}] if i else []
        inner = [{"name": "x", "type": type_}, {"name": "root", "type": ["null", "R"]}, *before]
        fields.append({"name": f"f{i}", "type": {"type": "record", "name": f"Q{i}", "fields": inner}})
    return {"type": "record", "name": "R", "fields": fields}


def properties(count: int, type_: str, name: str = "p{}", **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name.format(i): {"type": type_} for i in range(count)}, **more}


def chained_references(count: int, type_: str, *, is_cycle: bool = False) -> dict[str, Any]:
    last = {"$ref": "#/definitions/d0"} if is_cycle else {"type": type_}
    definitions: dict[str, Any] = {
        f"d{i}": {"properties": {"next": {"$ref": f"#/definitions/d{i + 1}"}, "v": {"type": type_}}}
        for i in range(count)
    }
    return {"definitions": {**definitions, f"d{count}": last}, "properties": {"a": {"$ref": "#/definitions/d0"}}}


def referring(count: int, type_: str) -> dict[str, Any]:
    """A union of references to objects that a constant tells apart."""
    definitions = {
        f"d{i}": {"type": "object", "properties": {"v": {"type": type_}, "k": {"const": f"k{i}"}}, "required": ["k"]}
        for i in range(count)
    }
    return {"$defs": definitions, "anyOf": [{"$ref": f"#/$defs/d{i}"} for i in range(count)]}


def patterns(count: int, type_: str) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {f"^k{i}$": {"type": type_} for i in range(count)}}


def combined(keyword: str, count: int, letter: str) -> dict[str, Any]:
    return {keyword: [{"const": f"{letter}{i}"} for i in range(count)]}


def message(count: int, type_: str, name: str = "f{}", *, first: int = 1, end: str = "\n") -> str:
    fields = "".join(f"{type_} {name.format(i)} = {i + first};{end}" for i in range(count))
    return f"message M {{{end}{fields}}}{end}"


def messages(count: int, type_: str) -> str:
    return "".join(f"message M{i} {{ {type_} a = 1; M{i * 7 % count} b = 2; }}\n" for i in range(count))


def oneof(count: int, type_: str) -> str:
    return message(count, type_).replace("{", "{ oneof o {", 1) + "}"


def reserving(count: int, shift: int) -> str:
    ranges = "".join(f"  reserved {3 * i + shift} to {3 * i + shift + 1};\n" for i in range(count))
    return f"message M {{\n{ranges}}}\n"


def parsed(pair: Pair) -> tuple[SchemaFormat, ParsedSchema, ParsedSchema]:
    format = format_of(pair[0])
    return format, format.parse(pair[1]), format.parse(pair[2])


def compare(pair: Pair) -> None:
    """What the page of a comparison and all levels of a check ask of the rules."""
    format, old, new = parsed(pair)
    differences = format.diff(old, new)
    for item in differences:
        for schema, pointer in ((old, item.pointer_old), (new, item.pointer_new)):
            if pointer is not None:
                format.position(schema, pointer)
    reports = Checker(format, new, [(1, old)], "confluent").strip().reports
    for report in reports.values():
        report.messages()
    comparison: Any = None  # asked for the renames that a page has beside the differences
    places_of(comparison, differences, reports["BACKWARD"], reports["FORWARD"])
    format.lint(new)
    format.tags(new)
    format.outline(new)


def differ(pair: Pair) -> None:
    """The comparison alone: what may pair in too many ways is refused by the checks."""
    format, old, new = parsed(pair)
    format.diff(old, new)


def prove(pair: Pair) -> None:
    """What a report asks of the data."""
    format, old, new = parsed(pair)
    format.truth(new, old)
    for finding in format.judge(new, old).breaks[:20]:
        format.witness(new, old, finding)


def prove_union(count: int) -> None:
    """The proof alone, without the data that the validator refuses."""
    writer, reader = referring(count, "integer"), referring(count, "string")
    assert not Proof(reader, writer, lambda value, schema: False, lambda value, schema: True).holds()


def lines(count: int) -> tuple[str, str]:
    """Texts whose lines are the same in another order, and many more than once."""
    texts = [f"line {i % (count // 2)}" for i in range(count)]
    return "\n".join(texts), "\n".join(sorted(texts, key=lambda text: text[::-1]))


def columns(count: int) -> tuple[SchemaText, RowShape, Guard]:
    fields = [{"name": f"c{i}", "type": ["null", "int"], "default": None} for i in range(count)]
    text = json.dumps({"type": "record", "name": "Key", "fields": fields})
    row = RowShape({f"c{i}": FieldShape(f"c{i}", "string", optional=False, default=NO_DEFAULT) for i in range(count)})
    return SchemaText("AVRO", text), row, Guard("FULL", (text,))


def incoming(count: int) -> list[IncomingVersion]:
    """Three versions of each subject, which refer to the subject before."""
    return [
        IncomingVersion(f"s{i}", version, None, "", "AVRO", needs=((f"s{i - 1}", version),) if i else ())
        for i in range(count)
        for version in (1, 2, 3)
    ]


def streaming_query(declarations: str, *, before: str = "", after: str = "") -> str:
    return (
        f"from pyspark.sql.types import *\n{before}class P(StatefulProcessor):\n"
        f"    def init(self, handle):\n{declarations}{after}"
    )


def declared(count: int) -> str:
    return streaming_query(
        "".join(f"        self.v{i} = handle.getValueState('v{i}', 'a INT')\n" for i in range(count))
    )


def declared_with_kept_handle(count: int) -> str:
    uses = "".join(f"        self.v{i} = self.kept.getValueState('v{i}', 'a INT')\n" for i in range(count))
    return streaming_query(f"        self.kept = handle\n{uses}")


def aliased(count: int) -> str:
    """Names that stand for each other, the last first."""
    names = "".join(f"S{i + 1} = S{i}\n" for i in reversed(range(count)))
    first = "S0 = StructType([StructField('a', LongType())])\n"
    return streaming_query("        self.v = handle.getValueState('v', S0)\n", before=first + names)


def ending(count: int) -> str:
    """Functions that call each other, of which the last ends the run."""
    functions = "".join(f"def f{i}():\n    f{i + 1}()\n" for i in range(count)) + f"def f{count}():\n    exit()\n"
    return streaming_query("        self.v = handle.getValueState('v', 'a INT')\n", before=functions)


def operators(count: int) -> str:
    calls = "".join(f"df{i}.transformWithState(p, 'a INT', 'Update', 'None')\n" for i in range(count))
    return streaming_query("        self.v = handle.getValueState('v', 'a INT')\n", after=f"p = P()\n{calls}")


def read_plan(source: str) -> None:
    with suppress(InvalidSchema):
        parse_python(source, "P")


PAIRS: Final[tuple[tuple[str, Callable[[int], Pair], Callable[[Pair], None], int], ...]] = (
    ("Avro: types change", lambda n: avro(record(n), record(n, type_="string")), compare, 400),
    ("Avro: fields are renamed", lambda n: avro(record(n, "old_{}_name"), record(n, "new_{}_name")), compare, 400),
    ("Avro: fields with an alias", lambda n: avro(record(n, "f{}"), aliased_fields(n)), compare, 400),
    ("Avro: another order", lambda n: avro(record(n), reversed_fields(record(n))), compare, 600),
    ("Avro: records in a union", lambda n: avro(union(n, "int"), union(n, "long")), compare, 250),
    ("Avro: other records in a union", lambda n: avro(union(n, "int", "R"), union(n, "int", "S")), compare, 150),
    ("Avro: other symbols", lambda n: avro(enum(n, "S"), enum(n, "T")), compare, 1_000),
    ("Avro: names of names", lambda n: avro(nested_uses(n, "int"), nested_uses(n, "string")), compare, 150),
    ("JSON: types change", lambda n: json_schema(properties(n, "integer"), properties(n, "string")), compare, 300),
    ("JSON: other names", lambda n: json_schema(properties(n, "integer", "a_{}_x"), properties(n, "integer", "b_{}_x")), compare, 300),
    ("JSON: other values", lambda n: json_schema({"enum": [f"a{i}" for i in range(n)]}, {"enum": [f"b{i}" for i in range(n)]}), compare, 1_000),
    ("JSON: patterns", lambda n: json_schema(patterns(n, "integer"), patterns(n, "string")), compare, 150),
    ("JSON: chained references", lambda n: json_schema(chained_references(n, "integer"), chained_references(n, "string")), compare, 40),
    ("JSON: a circle of references", lambda n: json_schema(chained_references(n, "integer", is_cycle=True), chained_references(n, "string", is_cycle=True)), compare, 40),
    ("Protobuf: types change", lambda n: protobuf(message(n, "int32"), message(n, "string")), compare, 400),
    ("Protobuf: one line", lambda n: protobuf(message(n, "int32", end=" "), message(n, "string", end=" ")), compare, 400),
    ("Protobuf: fields are renamed", lambda n: protobuf(message(n, "string", "old_{}_name"), message(n, "string", "new_{}_name")), compare, 400),
    ("Protobuf: messages", lambda n: protobuf(messages(n, "int32"), messages(n, "string")), compare, 150),
    ("Protobuf: a oneof", lambda n: protobuf(oneof(n, "int32"), oneof(n, "string")), compare, 400),
    ("Protobuf: reserved ranges", lambda n: protobuf(reserving(n, 1), reserving(n, 2)), compare, 300),
    ("Avro data: other symbols", lambda n: avro(enum(n, "S"), enum(n, "T")), prove, 300),
    ("Avro data: records in a union", lambda n: avro(union(n, "int"), union(n, "long")), prove, 100),
    ("Avro data: types change", lambda n: avro(record(n), record(n, type_="long")), prove, 300),
    ("JSON data: patterns", lambda n: json_schema(patterns(n, "integer"), patterns(n, "string")), prove, 250),
    ("JSON data: types change", lambda n: json_schema(properties(n, "integer"), properties(n, "string")), prove, 300),
    ("Protobuf data: other numbers", lambda n: protobuf(message(n, "string"), message(n, "string", first=n + 1)), prove, 250),
)  # fmt: skip
CASES: Final = (
    *(Case(*row) for row in PAIRS),
    Case(
        "JSON: alternatives", lambda n: json_schema(combined("oneOf", n, "a"), combined("oneOf", n, "b")), differ, 400
    ),
    Case("JSON data: references in a union", int, prove_union, 700),
    Case("lines of a text", lines, lambda texts: text_diff(*texts), 2_000),
    Case("versions of a plan", incoming, in_order, 400),
    Case("columns of a table", columns, lambda made: predict_schema(*made, side="key"), 200),
    Case("declarations of state", declared, read_plan, 120),
    Case("declarations with a kept handle", declared_with_kept_handle, read_plan, 120),
    Case("names for each other", aliased, read_plan, 400),
    Case("functions that end the run", ending, read_plan, 400),
    Case("stateful operators", operators, read_plan, 200),
)


def test_few_data_are_refused_by_a_wide_union(monkeypatch: pytest.MonkeyPatch) -> None:
    """The validator lists for each datum why it refuses every member."""
    format, old, new = parsed(json_schema(referring(1_000, "integer"), referring(1_000, "string")))
    refused = mock.Mock(side_effect=empirical_check.validation_failures)
    monkeypatch.setattr(empirical_check, "validation_failures", refused)
    assert format.truth(new, old).answer == "no"
    assert 0 < refused.call_count <= 25


@pytest.fixture(autouse=True)
def without_garbage_collection() -> Iterator[None]:
    """A collection looks at all that the process holds, which is more than what is measured."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def growth(case: Case) -> float:
    """How many times as much work 4n is as n."""
    took = []
    for factor in (1, 4):
        made = case.make(case.size * factor)
        began = time.process_time()
        case.work(made)
        took.append(time.process_time() - began)
    return took[1] / took[0]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_four_times_the_input_takes_no_more_than_in_proportion(case: Case) -> None:
    grown = []
    while not grown or (min(grown) > MOST_GROWTH and len(grown) < TRIES):
        grown.append(growth(case))
    assert min(grown) <= MOST_GROWTH, f"from {case.size} to {4 * case.size}: {min(grown):.1f} times the work"
