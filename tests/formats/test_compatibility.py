"""The seven levels over a history of versions, the report, its Confluent messages, the strip and the matrix."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from registry.errors import InvalidCompatibility
from registry.formats.avro import AVRO, AvroFormat
from registry.formats.base import Judgement, ParsedSchema
from registry.formats.compatibility import LEVELS, LevelOverview, check, check_all_levels, level_named


def record(*fields: str) -> ParsedSchema:
    return AVRO.parse('{"type":"record","name":"Order",\n "fields":[' + ",\n".join(fields) + "]}")


ID = '{"name":"id","type":"int"}'
LONG_ID = '{"name":"id","type":"long"}'
NOTE = '{"name":"note","type":"string"}'
NOTE_WITH_DEFAULT = '{"name":"note","type":"string","default":""}'
V1, V2, V3 = record(ID), record(ID, NOTE_WITH_DEFAULT), record(LONG_ID, NOTE_WITH_DEFAULT)
HISTORY = [(1, V1), (2, V2)]


class CountingFormat(AvroFormat):
    """Avro that counts how often it judges."""

    def __init__(self) -> None:
        self.judged = 0

    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        self.judged += 1
        return super().judge(reader, writer)


@pytest.mark.requirement("GOO-2")
def test_the_seven_levels() -> None:
    assert list(LEVELS) == [
        "NONE",
        "BACKWARD",
        "BACKWARD_TRANSITIVE",
        "FORWARD",
        "FORWARD_TRANSITIVE",
        "FULL",
        "FULL_TRANSITIVE",
    ]
    orders = {name: level.upgrade_order.split(":")[0] for name, level in LEVELS.items()}
    assert {orders["BACKWARD"], orders["BACKWARD_TRANSITIVE"]} == {"consumers first"}
    assert {orders["FORWARD"], orders["FORWARD_TRANSITIVE"]} == {"producers first"}
    assert {orders["FULL"], orders["FULL_TRANSITIVE"]} == {"any order"}
    assert orders["NONE"] == "no safe order"


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize("level", LEVELS)
def test_latest_looks_at_the_latest_and_transitive_at_all(level: str) -> None:
    report = check(AVRO, V3, HISTORY, level)
    expected = () if level == "NONE" else (2, 1) if level.endswith("TRANSITIVE") else (2,)
    assert report.versions == expected
    assert report.is_compatible == (level in {"NONE", "BACKWARD", "BACKWARD_TRANSITIVE"})
    assert report.upgrade_order == LEVELS[level].upgrade_order


def test_what_breaks_only_against_an_older_version() -> None:
    history = [(1, record(ID, NOTE)), (2, record(ID))]
    text_as_number = record(ID, '{"name":"note","type":"int","default":0}')
    assert check(AVRO, text_as_number, history, "BACKWARD").is_compatible
    report = check(AVRO, text_as_number, history, "BACKWARD_TRANSITIVE")
    assert [(item.against_version, item.named_path) for item in report.breaks] == [(1, "Order.note")]


def test_all_problems_of_all_versions_are_in_the_report() -> None:
    report = check(
        AVRO, record('{"name":"id","type":"string"}', '{"name":"x","type":"int"}'), HISTORY, "FULL_TRANSITIVE"
    )
    assert [(item.against_version, item.direction, item.rule, item.named_path) for item in report.breaks] == [
        (2, "FORWARD", "TYPE_CHANGED", "Order.id"),
        (2, "BACKWARD", "TYPE_CHANGED", "Order.id"),
        (2, "BACKWARD", "FIELD_WITHOUT_DEFAULT", "Order.x"),
        (1, "FORWARD", "TYPE_CHANGED", "Order.id"),
        (1, "BACKWARD", "TYPE_CHANGED", "Order.id"),
        (1, "BACKWARD", "FIELD_WITHOUT_DEFAULT", "Order.x"),
    ]


def test_an_item_is_described_by_the_new_schema() -> None:
    backward = check(AVRO, record(ID, NOTE), [(4, V1)], "BACKWARD").items[0]
    assert (backward.json_pointer_new, backward.line, backward.column) == ("/fields/1", 3, 1)
    assert (backward.before, backward.after, backward.against_version) == (None, "string", 4)
    assert backward.remedy.startswith('give "note" a default')
    forward = check(AVRO, V1, [(4, record(ID, NOTE))], "FORWARD").items[0]
    assert (forward.json_pointer_old, forward.old_line, forward.old_column) == ("/fields/1", 3, 1)
    assert (forward.before, forward.after) == ("string", None)
    assert forward.remedy.startswith('keep "note"')


def test_the_messages_are_of_the_established_shape() -> None:
    report = check(AVRO, record(ID, NOTE), [(1, V1)], "BACKWARD")
    assert report.messages() == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'note' at path '/fields/1' in the new "
        "schema has no default value and is missing in the old schema', additionalInfo:'note'}",
        "{oldSchemaVersion: 1}",
        "{oldSchema: '" + V1.canonical + "'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]
    assert check(AVRO, V2, [(1, V1)], "BACKWARD").messages() == []


@pytest.mark.parametrize(
    ("old", "new", "error_type", "location"),
    [
        ("int", "string", "TYPE_MISMATCH", "/fields/0/type"),
        ({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}, "FIXED_SIZE_MISMATCH", "/fields/0/type/size"),
        ({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "G", "size": 1}, "NAME_MISMATCH", "/fields/0/type/name"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, {"type": "enum", "name": "E", "symbols": ["A"]}, "MISSING_ENUM_SYMBOLS", "/fields/0/type/symbols"),
        (["null", "int", "string"], ["null", "int"], "MISSING_UNION_BRANCH", "/fields/0/type/2"),
    ],
)  # fmt: skip
def test_every_kind_has_its_message(old: object, new: object, error_type: str, location: str) -> None:
    before, after = (record(json.dumps({"name": "f", "type": type_})) for type_ in (old, new))
    message = check(AVRO, after, [(1, before)], "BACKWARD").messages()[0]
    assert message.startswith(f"{{errorType:'{error_type}', description:'")
    assert f"'{location}'" in message


def test_another_type_of_schema_is_incompatible_and_not_judged() -> None:
    other = replace(V1, schema_type="JSON", model=None)
    report = check(AVRO, V2, [(1, other)], "BACKWARD")
    assert not report.is_compatible
    assert report.messages()[0] == "Incompatible because of different schema type"


def compatible_levels(strip: LevelOverview) -> list[str]:
    return [name for name, report in strip.reports.items() if report.is_compatible]


@pytest.mark.requirement("GOO-2")
def test_the_strip_and_the_matrix() -> None:
    counting = CountingFormat()
    strip = check_all_levels(counting, V3, HISTORY)
    assert counting.judged == 4
    assert compatible_levels(strip) == ["NONE", "BACKWARD", "BACKWARD_TRANSITIVE"]
    assert [(row.version, row.is_backward, row.is_forward) for row in strip.matrix] == [
        (2, True, False),
        (1, True, False),
    ]
    assert strip.upgrade_order == "consumers first"
    for level, report in strip.reports.items():
        assert report == check(AVRO, V3, HISTORY, level)


@pytest.mark.parametrize(
    ("new", "order"),
    [
        (record(ID, NOTE_WITH_DEFAULT), "any order"),
        (record(ID, NOTE), "producers first"),
        (record(LONG_ID), "consumers first"),
        (record(LONG_ID, NOTE), "needs a new topic"),
    ],
)
def test_the_upgrade_order(new: ParsedSchema, order: str) -> None:
    assert check_all_levels(AVRO, new, [(1, V1)]).upgrade_order == order


def test_without_a_history_everything_is_compatible() -> None:
    strip = check_all_levels(AVRO, V1, [])
    assert len(compatible_levels(strip)) == 7
    assert strip.matrix == ()


def test_reports_become_json() -> None:
    report = check(AVRO, record('{"name":"id","type":["null","string"]}'), HISTORY, "FULL_TRANSITIVE")
    again = json.loads(json.dumps(report.to_dict()))
    assert again["is_compatible"] is False
    assert len(again["items"]) == len(report.items)
    assert {"rule", "direction", "against_version", "named_path", "line", "severity", "why", "remedy"} <= set(
        again["items"][0]
    )


def test_an_unknown_level_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidCompatibility, match="BACKWARD_TRANSITIVE"):
        level_named("backward")
    with pytest.raises(InvalidCompatibility):
        check(AVRO, V1, [], "SIDEWAYS")
