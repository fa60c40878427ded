"""What we expect of a table, held against what the real connector wrote for it, before and after every ALTER TABLE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.drift.debezium.columns import RowShape, TableComparison, compare
from registry.drift.debezium.compatibility_prediction import next_schema
from registry.drift.debezium.expected_columns import ExpectedShape, expected_of
from registry.drift.debezium.row_schemas import AvroReader, SchemaText, row_of
from registry.drift.debezium.tables import Catalog
from tests.drift.debezium.worlds import CONVERTERS, config_of, events_of, schema_of, shapes_of

pytestmark = [pytest.mark.slow]

ALTERED: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "altered_cases.yaml").read_text("utf-8"))
STEADY = (
    ("inventory", "customers"),
    ("key_change", "orders"),
    ("truncated", "alone"),
    ("identities", "by_default"),
    ("identities", "by_full"),
    ("identities", "by_index"),
    ("identities", "by_nothing"),
    ("keyless", "log"),
    ("keyless", "log_full"),
    ("names", "letters"),
)


def expected(catalog: Catalog, schema: str, table: str, converter: str) -> ExpectedShape:
    captured = next(item for item in catalog.tables if (item.schema, item.name) == (schema, table))
    return expected_of(captured, config_of(converter))


def held(
    shape: ExpectedShape, events: tuple[RowShape, RowShape], registered: tuple[RowShape, RowShape]
) -> TableComparison:
    assert shape.row is not None
    assert shape.key is not None
    return compare(
        {"table": shape.row, "events": events[0], "registered": registered[0]},
        ignore=shape.either,
        keys={"table": shape.key, "events": events[1], "registered": registered[1]},
    )


@pytest.mark.requirement("DEB-2", "DEB-7")
@pytest.mark.parametrize("converter", CONVERTERS)
@pytest.mark.parametrize(("schema", "table"), STEADY)
def test_a_table_that_nobody_changed_is_in_step(
    catalogs: tuple[Catalog, Catalog], schema: str, table: str, converter: str
) -> None:
    for catalog in catalogs:
        shape = expected(catalog, schema, table, converter)
        shapes = list(shapes_of(schema, converter, table))
        assert shapes
        for events in shapes:
            assert held(shape, events, events) == TableComparison(frozenset({"table", "events", "registered"}))


@pytest.mark.requirement("DEB-7")
@pytest.mark.parametrize("converter", CONVERTERS)
def test_every_type_is_what_the_connector_wrote(catalogs: tuple[Catalog, Catalog], converter: str) -> None:
    first, *_, last = shapes_of("types", converter, "everything")
    for catalog, events in zip(catalogs, (first, last), strict=True):
        shape = expected(catalog, "types", "everything", converter)
        assert shape.row is not None
        assert shape.row.fields.keys() - shape.either == events[0].fields.keys() - shape.either
        assert shape.either == {"doubled"}
        for name, field in shape.row.fields.items():
            written = events[0].fields[name]
            assert (field.kind, field.logical, field.optional) == (written.kind, written.logical, written.optional), (
                name
            )
            assert field.parameters == written.parameters, name
        assert held(shape, events, events).in_step
    (grown,) = held(expected(catalogs[1], "types", "everything", converter), first, first).columns
    assert (grown.change, grown.column, grown.says["table"]) == ("relabelled", "feeling", "labels sad,ok,happy")


@pytest.mark.requirement("DEB-7")
@pytest.mark.parametrize("converter", CONVERTERS)
@pytest.mark.parametrize("table", ALTERED)
def test_alter_table_shows_until_the_next_row(catalogs: tuple[Catalog, Catalog], table: str, converter: str) -> None:
    """The registered schema and the events are behind after the ALTER TABLE, and in step with the next row."""
    case = ALTERED[table]
    old, new = shapes_of("altered", converter, table)
    assert held(expected(catalogs[0], "altered", table, converter), old, old).in_step
    shape = expected(catalogs[1], "altered", table, converter)
    assert held(shape, new, new).in_step

    both = held(shape, old, old)
    assert [(change.change, change.column) for change in both.columns] == [tuple(pair) for pair in case["columns"]]
    assert [change.becomes for change in both.columns if change.becomes] == case.get("becomes", [])
    assert (both.key is not None) == ("key" in case)
    if both.key is not None:
        assert {side: list(columns) for side, columns in both.key.says.items()} == case["key"]
    changed = bool(case["columns"] or "key" in case)
    assert both.behind == (frozenset({"events", "registered"}) if changed else frozenset())

    # A row was written since, but the registered schema stayed; or it was made ahead of the rows.
    assert held(shape, new, old).behind == (frozenset({"registered"}) if changed else frozenset())
    assert held(shape, old, new).behind == (frozenset({"events"}) if changed else frozenset())


@pytest.mark.requirement("DEB-7")
@pytest.mark.parametrize("table", [table for table in ALTERED if ALTERED[table]["columns"]])
def test_the_predicted_schema_is_the_one_that_came(catalogs: tuple[Catalog, Catalog], table: str) -> None:
    """Made from the first version and the catalog: the fields of the version that the real converter registered."""
    first, second = (schema for event in events_of("altered", "avro", table) if (schema := schema_of(event, "value")))
    shape = expected(catalogs[1], "altered", table, "avro")
    assert shape.row is not None
    made = SchemaText("AVRO", next_schema(first.text, shape.row, shape.either))
    assert row_of(made, "value") == row_of(second, "value")
    assert fields_of(made) == fields_of(second)


def fields_of(schema: SchemaText) -> list[dict[str, Any]]:
    """The fields of the row, as they stand in the Avro text; Connect's version numbers aside."""
    document = json.loads(schema.text)
    reader = AvroReader(document)
    row = reader.envelope_row(reader.record(document) or {})
    assert row is not None
    text = json.dumps(row["fields"]).replace('"connect.version": 1, ', "")
    return json.loads(text)
