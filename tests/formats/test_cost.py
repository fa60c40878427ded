"""The estimate of a schema's cost: what is cheap stays in the process, what explodes doesn't, and it is quick to say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.errors import SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.cost import LIMITS, Cost, estimate, pair_cost, place_of, place_of_pair
from tests.waiting import costs_little


def record(count: int, type_: Any = "int") -> str:
    fields = [{"name": f"f{number}", "type": type_} for number in range(count)]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def objects(count: int, **more: Any) -> str:
    return json.dumps({"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(count)}, **more})


def message(count: int) -> str:
    return "message M {\n" + "".join(f"  string field_{i} = {i + 1};\n" for i in range(count)) + "}"


def blocks(count: int, keyword: str = "anyOf") -> str:
    return json.dumps({"allOf": [{keyword: [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(count)]})


def referred(count: int) -> str:
    return json.dumps(
        {
            "definitions": {"d": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "properties": {f"p{i}": {"$ref": "#/definitions/d"} for i in range(count)},
        }
    )


CHEAP = {
    "200 fields": ("AVRO", record(200)),
    "200 nullable fields": ("AVRO", record(200, ["null", "string"])),
    "3,000 fields": ("AVRO", record(3_000, ["null", "string"])),
    "an enum of 2,000": ("AVRO", json.dumps({"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(2_000)]})),
    "200 properties": ("JSON", objects(200)),
    "200 properties, all required": ("JSON", objects(200, required=[f"p{i}" for i in range(200)])),
    "a few alternatives": ("JSON", blocks(2)),
    "a plain pattern": ("JSON", json.dumps({"pattern": "^[a-z]{1,20}-[0-9]+$"})),
    "a few references": ("JSON", referred(5)),
    "a message of 200": ("PROTOBUF", message(200)),
}
COSTLY = {
    "a long text": ("AVRO", record(10_000)),
    "a long text of properties": ("JSON", objects(3_000)),
    "deep": ("AVRO", '{"type":"array","items":' * 100 + '"int"' + "}" * 100),
    "a wide union": ("AVRO", json.dumps(["null", *(f"n.R{i}" for i in range(400))])),
    "a wide union in a field": ("AVRO", record(1, ["null", *(f"n.R{i}" for i in range(400))])),
    "one name everywhere": ("AVRO", record(400, "Q")),
    "13 blocks": ("JSON", blocks(13)),
    "13 blocks of oneOf": ("JSON", blocks(13, "oneOf")),
    "13 blocks with escaped keys": ("JSON", blocks(13).replace("anyOf", "any\\u004ff").replace("allOf", "\\u0061llOf")),
    "13 blocks, not closed": ("JSON", blocks(13).rstrip("]}")),
    "alternatives behind references": ("JSON", referred(10)),
    "one oneOf of many": ("JSON", json.dumps({"oneOf": [{"required": [f"a{i}"]} for i in range(20)]})),
    "many conditions": ("JSON", json.dumps({"allOf": [{"if": {}, "then": {}, "else": {}} for _ in range(13)]})),
    "patterns over names": ("JSON", json.dumps({"patternProperties": {f"^{i}": {} for i in range(12)}})),
    "counts in counts": ("JSON", json.dumps({"pattern": "((a{100}){100}){100}"})),
    "counts in escapes": ("JSON", '{"pattern": "((a\\u007b100}){100}){100}"}'),
    "repeated groups": ("JSON", json.dumps({"pattern": "^((a+)+)+$"})),
    "a wide enum": ("JSON", json.dumps({"enum": list(range(5_000))})),
    "a message of 2,000": ("PROTOBUF", message(2_000)),
    "many imports": ("PROTOBUF", "".join(f'import "a{i}.proto";' for i in range(60))),
    "nested messages": ("PROTOBUF", "message M {" * 70 + "}" * 70),
    "a format that nobody knows": ("XML", "<a/>"),
}
ABSURD = {
    "a text": ("AVRO", record(60_000), "1,048,576 characters"),
    "a depth": ("AVRO", "[" * 500_000, "1,000 levels of nesting"),
    "a union": ("AVRO", json.dumps([""] * 150_000), "100,000 branches"),
    "a schema": ("JSON", '{"not":' * 50_000, "1,000 levels of nesting"),
    "a message": ("PROTOBUF", "{" * 50_000, "1,000 levels of nesting"),
    "fields": ("PROTOBUF", "a=1;" * 80_000, "65,535 fields"),
    "a proto": ("PROTOBUF", "message M {}" * 100_000, "1,048,576 characters"),
}


@pytest.mark.parametrize("case", CHEAP)
def test_what_people_write_is_cheap(case: str) -> None:
    cost = estimate(*CHEAP[case])
    assert (place_of(cost), place_of_pair(cost, cost)) == ("process", "process"), cost.measures


@pytest.mark.parametrize("case", COSTLY)
def test_what_may_explode_is_not(case: str) -> None:
    cost = estimate(*COSTLY[case])
    assert place_of(cost) == "child", cost.measures


@pytest.mark.parametrize("case", ABSURD)
def test_what_no_process_takes_on_is_refused_by_name_and_limit(case: str) -> None:
    """Before it is read, which would take minutes or all memory."""
    schema_type, text, label = ABSURD[case]
    with costs_little():
        with pytest.raises(SchemaTooCostly, match=f"more than {label}.*, which is the limit: "):
            estimate(schema_type, text)


HOSTILE_TEXTS = {
    "escapes in an open string": '"' + '\\"' * 500_000,
    "open strings": '"a\\' * 250_000,
    "open comments": "/*" * 500_000,
    "line comments": "//" * 500_000,
    "blanks after a string": '"a"' + " " * 1_000_000,
    "strings and blanks": '"a"  ' * 200_000,
    "counts": "{1," * 300_000,
    "open counts": "{" + " " * 1_000_000,
    "digits": "{" + "1" * 1_000_000,
    "groups": ")*" * 500_000,
    "escapes": "\\u0061" * 170_000,
    "closing brackets": "]}" * 500_000,
    "commas": "[" + "," * 90_000,
    "keys": '{"anyOf":[{},{}],' * 900,
    "quotes": "'" * 1_000_000,
    "lines": '"\n' * 500_000,
    "angles": "<>" * 500_000,
    "surrogates": "\ud800" * 1_000_000,
    "nothing": "",
}


@pytest.mark.parametrize("schema_type", [*LIMITS, "XML"])
@pytest.mark.parametrize("what", HOSTILE_TEXTS)
def test_an_estimate_takes_time_in_proportion_to_the_text(what: str, schema_type: str) -> None:
    """Below a second for a megabyte; a quadratic walk takes hours."""
    with costs_little():
        try:
            cost = estimate(schema_type, HOSTILE_TEXTS[what])
        except SchemaTooCostly as refusal:
            assert refusal.details["value"] > refusal.details["limit"]
        else:
            assert all(isinstance(value, int) and value >= 0 for value in cost.measures.values())


def test_two_cheap_schemas_may_be_a_costly_pair() -> None:
    union = json.dumps([{"type": "enum", "name": f"n{i}.E", "symbols": ["A"]} for i in range(150)])
    cost = estimate("AVRO", union)
    assert place_of(cost) == "process"
    assert pair_cost(cost, cost).measures["branches"] == 150 * 150
    assert place_of_pair(cost, cost) == "child"
    assert place_of_pair(cost, estimate("AVRO", record(3))) == "process"
    assert place_of_pair(cost, estimate("JSON", "{}")) == "process"
    assert place_of_pair(cost, estimate("AVRO", record(10_000))) == "child"


def test_what_is_referred_to_counts_and_each_text_once() -> None:
    leaf = ResolvedReference("d", "d", 1, blocks(3))
    nodes = (leaf,)
    for number in range(100):
        nodes = (
            ResolvedReference("a", f"s{number}", 1, "{}", nodes),
            ResolvedReference("b", f"s{number}", 1, "{}", nodes),
        )
    cost = estimate("JSON", blocks(3), nodes)
    assert cost.measures["references"] == 101
    assert cost.measures["combinations"] == estimate("JSON", blocks(3)).measures["combinations"] ** 2
    many = tuple(ResolvedReference(f"r{i}", f"s{i}", 1, "{}") for i in range(1_001))
    with pytest.raises(SchemaTooCostly, match="1,000 referenced schemas"):
        estimate("AVRO", "{}", many)


def test_every_limit_is_one_that_a_format_measures() -> None:
    for schema_type, rows in LIMITS.items():
        measured = estimate(schema_type, "").measures
        assert {row.measure for row in rows} <= set(measured)
        assert all(row.in_process <= (row.at_most or row.in_process) for row in rows)
        assert place_of(Cost(schema_type, {row.measure: row.in_process for row in rows})) == "process"
        for row in rows:
            assert place_of(Cost(schema_type, {row.measure: row.in_process + 1})) == "child"
