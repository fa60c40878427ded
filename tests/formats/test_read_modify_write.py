"""The read-modify-write hazard: the document's two examples, sets of versions, and what avoids it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.errors import InvalidDatum, InvalidInput
from registry.formats.avro import AVRO
from registry.formats.base import ParsedSchema
from registry.formats.json_change import Change, apply_change, different_value, scalar_places
from registry.formats.read_modify_write import MAX_VERSIONS, find_resets, remedies, simulate_read_modify_write

WITHOUT_AGE = """
{
    "type" : "record",
    "name" : "userInfo",
    "namespace" : "my.example",
    "fields" : [{"name" : "name", "type" : "string", "default" : ""}]
}
"""
WITH_AGE = """
{
    "type" : "record",
    "name" : "userInfo",
    "namespace" : "my.example",
    "fields" : [{"name" : "name", "type" : "string", "default" : ""},
                {"name" : "age", "type" : "int" , "default" : -1}]

}
"""


@pytest.fixture
def without_age() -> ParsedSchema:
    return AVRO.parse(WITHOUT_AGE)


@pytest.fixture
def with_age() -> ParsedSchema:
    return AVRO.parse(WITH_AGE)


@pytest.mark.requirement("ORA-6")
def test_each_one_version_what_the_other_wrote(without_age: ParsedSchema, with_age: ParsedSchema) -> None:
    filled = AVRO.resolve(with_age, without_age, {"name": "Ann"})
    assert filled.value == {"name": "Ann", "age": -1}
    assert [(item.path, item.outcome) for item in filled.fields] == [
        ("userInfo.name", "kept"),
        ("userInfo.age", "filled"),
    ]
    dropped = AVRO.resolve(without_age, with_age, {"name": "Ann", "age": 38})
    assert dropped.value == {"name": "Ann"}
    assert [(item.path, item.outcome) for item in dropped.fields] == [
        ("userInfo.name", "kept"),
        ("userInfo.age", "dropped"),
    ]


@pytest.mark.requirement("ORA-7")
def test_equal_versions_reset_nothing(with_age: ParsedSchema) -> None:
    datum, change = {"name": "Ann", "age": 38}, Change("/name", "Bea")
    simulation = simulate_read_modify_write(AVRO, with_age, with_age, with_age, datum, change)
    assert simulation.steps[-1].value == {"name": "Bea", "age": 38}
    assert simulation.resets == ()
    assert find_resets(AVRO, [(1, with_age), (2, AVRO.parse(WITH_AGE + " "))]) == ()


@pytest.mark.requirement("ORA-8")
@pytest.mark.parametrize("example", ["age added", "age deleted"])
def test_the_documents_examples_end_with_exactly_minus_one(
    example: str, without_age: ParsedSchema, with_age: ParsedSchema
) -> None:
    # Added: version 2 has the field and version 1 modifies. Deleted: version 1 has it and version 2 modifies.
    numbers = {"age added": (2, 1), "age deleted": (1, 2)}[example]
    knows, lacks = with_age, without_age
    simulation = simulate_read_modify_write(
        AVRO, knows, lacks, knows, {"name": "Ann", "age": 38}, Change("/name", "Bea")
    )
    write, modify, read = simulation.steps
    assert (write.value, write.encoded) == ({"name": "Ann", "age": 38}, "06416e6e4c")
    assert (modify.value, modify.encoded) == ({"name": "Bea"}, "06426561")
    assert [(item.path, item.outcome) for item in modify.fields] == [
        ("userInfo.name", "kept"),
        ("userInfo.age", "dropped"),
    ]
    assert read.value == {"name": "Bea", "age": -1}
    assert [(item.path, item.outcome, item.read) for item in read.fields] == [
        ("userInfo.name", "kept", "Bea"),
        ("userInfo.age", "filled", -1),
    ]
    assert [(item.path, item.before, item.after, item.is_default) for item in simulation.resets] == [
        ("userInfo.age", 38, -1, True)
    ]
    (reset,) = find_resets(AVRO, sorted([(numbers[0], knows), (numbers[1], lacks)], key=lambda item: item[0]))
    assert (reset.path, reset.field, reset.known_in, reset.lost_in) == ("userInfo.age", "age", *numbers)
    assert reset.after == -1 != reset.before
    assert reset.simulation.steps[-1].value["age"] == -1


@pytest.mark.requirement("ORA-8")
def test_the_remedies_name_the_fields_and_the_order(without_age: ParsedSchema, with_age: ParsedSchema) -> None:
    added = remedies(find_resets(AVRO, [(1, without_age), (2, with_age)]))
    assert [item.id for item in added] == ["UPGRADE_ORDER", "FREEZE_WRITERS", "FIELD_OWNERSHIP"]
    assert "from version 1 to version 2 before any client sets" in added[0].text
    assert "clients on version 1 must only read" in added[1].text
    removed = remedies(find_resets(AVRO, [(1, with_age), (2, without_age)]))
    assert "stop relying on" in removed[0].text
    assert "clients on version 2 must only read" in removed[1].text
    for item in (*added, *removed):
        assert '"userInfo.age"' in item.text
        assert "{" not in item.text
    assert remedies(()) == ()


def record(*fields: dict[str, Any], name: str = "R") -> ParsedSchema:
    return AVRO.parse(json.dumps({"type": "record", "name": name, "fields": list(fields)}))


def field(name: str, type_: Any = "int", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


@pytest.mark.requirement("ORA-8")
def test_every_field_of_every_pair_of_versions_is_found() -> None:
    one = record(field("a"), field("x", default=1))
    two = record(field("a"), field("x", default=1), field("y", "string", default="text"))
    three = record(field("a"), field("y", "string", default="text"))
    resets = find_resets(AVRO, [(1, one), (2, two), (3, three)])
    assert {(item.field, item.known_in, item.lost_in) for item in resets} == {
        ("y", 2, 1),
        ("x", 2, 3),
        ("x", 1, 3),
        ("y", 3, 1),
    }
    assert all(item.is_default and item.before != item.after for item in resets)


def test_fields_inside_of_arrays_maps_and_records_are_found() -> None:
    def versions(*more: dict[str, Any]) -> ParsedSchema:
        item = {"type": "record", "name": "Item", "fields": [field("price"), *more]}
        address = {"type": "record", "name": "Place", "fields": [field("zip", "string")]}
        return record(
            field("items", {"type": "array", "items": item}),
            field("by", {"type": "map", "values": "Item"}),
            *([field("home", address, default={"zip": "-"})] if more else []),
        )

    resets = find_resets(AVRO, [(1, versions()), (2, versions(field("tax", default=0)))])
    assert [(item.path, item.before, item.after) for item in resets] == [
        ("R.items[].tax", 1, 0),
        ("R.by{}.tax", 1, 0),
        ("R.home.zip", "text", {"zip": "-"}),
    ]


def test_a_value_that_another_version_cannot_hold_is_found() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}
    writer = record(field("e", enum, default="A"))
    other = record(field("e", {**enum, "symbols": ["A"]}, default="A"))
    (reset,) = find_resets(AVRO, [(1, writer), (2, other)])
    assert (reset.path, reset.before, reset.after, reset.is_default) == ("R.e", "B", "A", False)
    assert "all" not in remedies([reset])[0].id
    assert "can't represent" in remedies([reset])[0].text


def test_values_are_varied_though_one_beside_them_has_no_other() -> None:
    only = {"type": "enum", "name": "Only", "symbols": ["A"]}
    fields = [field(f"f{number}", default=0) for number in range(5)]
    writer, other = record(field("e", only, default="A"), *fields, field("a")), record(field("a"))
    resets = find_resets(AVRO, [(1, writer), (2, other)])
    assert [(item.path, item.before, item.after) for item in resets] == [(f"R.f{number}", 2, 0) for number in range(5)]


def test_a_version_that_cannot_read_the_other_is_reported_and_resets_nothing() -> None:
    one, two = record(field("a")), record(field("b", "string"))
    simulation = simulate_read_modify_write(AVRO, one, two, one, {"a": 1})
    assert "No default value" in simulation.error
    assert len(simulation.steps) == 2
    assert simulation.resets == ()
    assert find_resets(AVRO, [(1, one), (2, two)]) == ()


def test_a_third_one_version_last() -> None:
    one = record(field("a"), field("x", default=1))
    three = record(field("a"), field("x", default=9))
    simulation = simulate_read_modify_write(AVRO, one, record(field("a")), three, {"a": 1, "x": 5})
    assert [(item.path, item.before, item.after) for item in simulation.resets] == [("R.x", 5, 9)]


def test_a_datum_without_an_end_and_too_many_versions_are_refused() -> None:
    endless = record(field("next", "R"))
    assert find_resets(AVRO, [(1, endless), (2, record(field("a", default=1)))]) == ()
    many = [(number, record(field(f"f{number}", default=0))) for number in range(MAX_VERSIONS + 1)]
    with pytest.raises(InvalidInput, match="too many"):
        find_resets(AVRO, many)


def test_a_change_that_leads_nowhere_is_refused(with_age: ParsedSchema, without_age: ParsedSchema) -> None:
    with pytest.raises(InvalidDatum, match="points to a missing value"):
        simulate_read_modify_write(
            AVRO, with_age, without_age, with_age, {"name": "Ann", "age": 38}, Change("/age", 39)
        )


@pytest.mark.parametrize(
    ("pointer", "value", "expected"),
    [
        ("", 5, 5),
        ("/a", 5, {"a": 5, "b~/": [1, {"c": True}]}),
        ("/b~0~1/1/c", None, {"a": "x", "b~/": [1, {"c": None}]}),
    ],
)
def test_changes_of_json(pointer: str, value: Any, expected: Any) -> None:
    before = {"a": "x", "b~/": [1, {"c": True}]}
    assert apply_change(before, Change(pointer, value)) == expected
    assert before == {"a": "x", "b~/": [1, {"c": True}]}


def test_places_and_variations_of_json() -> None:
    value = {"a": "x", "b~/": [1, {"c": True}, None, 0.5]}
    scalars = dict(scalar_places(value))
    assert scalars == {"/a": "x", "/b~0~1/0": 1, "/b~0~1/1/c": True, "/b~0~1/2": None, "/b~0~1/3": 0.5}
    assert [different_value(item) for item in scalars.values()] == ["x changed", 2, False, None, 2.0]
