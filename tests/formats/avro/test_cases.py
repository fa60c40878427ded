"""Each rule of the Avro engine by its cases, the hand-made judgements, examples of value changes, and large schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.errors import SchemadeskError
from registry.formats import FORMATS
from registry.formats.avro import AVRO
from registry.formats.avro.rules import DIFFERENCE_RULES, RULES
from registry.formats.base import ParsedSchema
from registry.formats.compatibility import check
from tests.waiting import costs_little

AVRO_FORMAT = FORMATS["AVRO"]
FOLDER = Path(__file__).parents[1] / "cases" / "avro"


def load_cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


CASES = load_cases()


def reports_all_differences(case, old, new) -> None:
    found = [[item.rule, item.path, item.pointer_old, item.pointer_new] for item in AVRO_FORMAT.diff(old, new)]
    assert found == case.get("differences", [])


def reports_all_breaks(case, old, new, direction) -> None:
    reader, writer = (new, old) if direction == "backward" else (old, new)
    found = AVRO_FORMAT.incompatibilities(reader, writer)
    places = [[item.rule, item.path, item.reader_pointer, item.writer_pointer] for item in found]
    assert places == case.get(direction, [])
    if direction == "backward":
        causes = [[cause.rule, cause.path] for item in found for cause in item.causes]
        assert causes == case.get("causes", causes if "causes" not in case else [])
        assert [item.kind for item in found] == case.get("kinds", [item.kind for item in found])


def reports_all_hazards(case, old, new, direction) -> None:
    reader, writer = (new, old) if direction == "backward" else (old, new)
    found = [[item.rule, item.path] for item in AVRO_FORMAT.judge(reader, writer).hazards]
    assert found == case.get(f"{direction}_hazards", [])


def has_a_witness_that_really_breaks(case, old, new, direction) -> None:
    reader, writer = (new, old) if direction == "backward" else (old, new)
    witness = AVRO_FORMAT.witness(reader, writer)
    if not case.get(direction):
        known = {"FIELD_ALIASED_TWICE", "UNION_BRANCH_AMBIGUOUS", "UNION_BRANCH_ORDER", "BYTES_READ_AS_STRING"}
        rules = {rule for rule, _ in case.get(f"{direction}_hazards", [])}
        assert not witness.found or rules & known
    elif case.get("no_witness") and direction == "backward":
        assert not witness.found
        assert "ALIAS_AMBIGUOUS" in witness.reason
    else:
        assert witness.found, witness.reason
        assert witness.error
        assert bytes.fromhex(witness.encoded) is not None


def has_the_verdict_of_each_level(case, old, new) -> None:
    verdicts = {level: check(AVRO_FORMAT, new, [(1, old)], level).is_compatible for level in case["levels"]}
    assert verdicts == case["levels"]


def test_every_rule_has_a_case() -> None:
    told = {item[0] for case in (param.values[0] for param in CASES) for item in case.get("differences", [])}
    assert told == set(DIFFERENCE_RULES)
    found = {
        item[0]
        for case in (param.values[0] for param in CASES)
        for key in ("backward", "forward", "backward_hazards", "forward_hazards")
        for item in case.get(key, [])
    }
    assert found == set(RULES) - {"NOT_DECODED", "SCHEMA_REFUSED"}


def fills_every_sentence(case, old, new) -> None:
    texts = [item.message for item in AVRO_FORMAT.diff(old, new)]
    for reader, writer in ((new, old), (old, new)):
        judgement = AVRO_FORMAT.judge(reader, writer)
        for item in judgement.breaks + judgement.hazards:
            texts += [item.message, item.remedy_in_reader, item.remedy_in_writer, item.why]
    assert all(text and "{" not in text.replace("{}", "") for text in texts)


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize("case", CASES)
def test_each_rule_holds(case: dict[str, Any]) -> None:
    old, new = (AVRO_FORMAT.parse(json.dumps(case[side])) for side in ("old", "new"))
    for check_pair in (reports_all_differences, has_the_verdict_of_each_level, fills_every_sentence):
        check_pair(case, old, new)
    for direction in ("backward", "forward"):
        for check_direction in (reports_all_breaks, reports_all_hazards, has_a_witness_that_really_breaks):
            check_direction(case, old, new, direction)


ROWS = yaml.safe_load((Path(__file__).parents[1] / "cases" / "avro_judgements.yaml").read_text())


@pytest.fixture(params=ROWS, ids=[row["name"] for row in ROWS])
def row(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def sides(row: dict[str, Any]) -> tuple[ParsedSchema, ParsedSchema]:
    return AVRO.parse(json.dumps(row["reader"])), AVRO.parse(json.dumps(row["writer"]))


def test_the_verdict_the_kinds_and_the_places(row: dict[str, Any]) -> None:
    judgement = AVRO.judge(*sides(row))
    assert judgement.is_compatible == row["compatible"]
    assert [[item.kind, item.location, item.detail] for item in judgement.breaks] == row.get("breaks", [])
    assert [item.rule for item in judgement.hazards] == row.get("hazards", [])


def test_the_truth_is_what_the_data_say(row: dict[str, Any]) -> None:
    truth = AVRO.truth(*sides(row))
    assert truth.answer == row["truth"]
    assert "covering records" in truth.how
    for item in truth.findings:
        assert item.rule in RULES
        assert item.severity in ("break", "value loss")
        assert item.witness is not None
        assert item.witness.found
        assert bool(item.witness.error) == (item.severity == "break")
        assert bytes.fromhex(item.witness.encoded) is not None
    after = {"STRING_READ_AS_UUID", "BYTES_READ_AS_DECIMAL", "DECIMAL_PRECISION_NARROWED"}
    assert [item.rule for item in truth.warnings] == [rule for rule in row.get("hazards", []) if rule in after]
    assert {item.severity for item in truth.warnings} <= {"warning"}


def test_where_the_table_and_the_data_part_the_truth_says_why(row: dict[str, Any]) -> None:
    truth = AVRO.truth(*sides(row))
    if not row["compatible"] and row["truth"] == "yes":
        assert "Java's rules also reject" in truth.how
    for found in AVRO.judge(*sides(row)).breaks:
        witness = AVRO.witness(*sides(row), found)
        assert witness.found == (row["truth"] != "yes")
        assert witness.found or witness.reason


def test_there_are_enough_judgement_calls_of_every_kind() -> None:
    assert len(ROWS) >= 40
    kinds = {item[0] for row in ROWS for item in row.get("breaks", [])}
    assert kinds == {rule.kind for rule in RULES.values() if rule.kind}


def decimal(scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}


def long(logical: str) -> dict[str, Any]:
    return {"type": "long", "logicalType": logical}


@pytest.mark.parametrize(
    ("writer", "reader", "example"),
    [
        (
            decimal(2),
            decimal(3),
            "the encoded number 12345 means 123.45 in the writer schema and 12.345 in the reader schema",
        ),
        (
            long("timestamp-millis"),
            long("timestamp-micros"),
            "the encoded number 1700000000000 means 2023-11-14T22:13:20+00:00 in the writer schema and "
            "1970-01-20T16:13:20+00:00 in the reader schema",
        ),
        (
            long("timestamp-nanos"),
            long("timestamp-millis"),
            "the encoded number 1700000000000000000 means 2023-11-14T22:13:20+00:00 in the writer schema and "
            "a time after the year 9999 in the reader schema",
        ),
        (
            {"type": "int", "logicalType": "date"},
            {"type": "int", "logicalType": "time-millis"},
            "the encoded number 19675 means 2023-11-14 in the writer schema and 00:00:19.675 in the reader schema",
        ),
        ("long", "double", "9007199254740993 is read as 9007199254740992"),
        ("int", "float", "16777217 is read as 16777216"),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
            "B is read as A",
        ),
        ("bytes", "string", ""),
        (long("timestamp-millis"), "long", ""),
    ],
)
def test_the_changed_value(writer: Any, reader: Any, example: str) -> None:
    old, new = (
        AVRO.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}]}))
        for type_ in (writer, reader)
    )
    report = check(AVRO, new, [(1, old)], "BACKWARD")
    assert report.is_compatible
    assert [item.example for item in report.hazards] == [example]
    assert report.to_dict()["items"][0]["example"] == example


TIMES = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    long("time-micros"),
    *(long(f"{kind}-{unit}") for kind in ("timestamp", "local-timestamp") for unit in ("millis", "micros", "nanos")),
)


@pytest.mark.parametrize("writer", TIMES, ids=[item["logicalType"] for item in TIMES])
@pytest.mark.parametrize("reader", TIMES, ids=[item["logicalType"] for item in TIMES])
def test_every_pair_of_times_is_judged(writer: dict[str, Any], reader: dict[str, Any]) -> None:
    judgement = AVRO.judge(AVRO.parse(json.dumps(reader)), AVRO.parse(json.dumps(writer)))
    for item in judgement.hazards:
        assert item.example or item.rule == "LOGICAL_TYPE_CHANGED"
    if judgement.is_compatible and writer != reader:
        assert judgement.hazards


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
