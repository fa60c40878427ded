"""What a table's own definition means for its events: replica identity, key, columns that don't arrive."""

from __future__ import annotations

from collections.abc import Iterator

from registry.drift.debezium.expected import Expected, expected_of, key_of
from registry.drift.debezium.facts import World
from registry.drift.debezium.finding import finding, listed
from registry.drift.debezium.identity import IdentityOf, identity_of
from registry.drift.debezium.tables import Index, Table
from registry.drift.judge.model import JudgedFinding


def judge_tables(world: World) -> Iterator[JudgedFinding]:
    """The findings of every captured table of the catalog."""
    for table in world.captured:
        topic = world.topic_of(table.schema, table.name) or ""
        yield from _identity(world, table, topic)
        yield from _columns(table, expected_of(table, world.config), topic)


def identity_in(world: World, table: Table) -> IdentityOf:
    """The table's replica identity, with what any publication of it publishes."""
    publications = world.catalog.publications if world.catalog else {}
    own = [publications[name] for name in table.publications if name in publications]
    return identity_of(
        table,
        key_of(table, world.config) or (),
        updates=any(publication.updates for publication in own),
        deletes=any(publication.deletes for publication in own),
    )


def _identity(world: World, table: Table, topic: str) -> Iterator[JudgedFinding]:
    key = key_of(table, world.config)
    if key is None:  # message.key.columns isn't understood
        return
    identity = identity_in(world, table)
    names = {"table": table.full_name, "topic": topic or "its topic"}
    evidence = {"table": table.full_name, "identity": table.identity, "key": list(key), "meaning": identity.sentence}
    if identity.refuses:
        written = "REPLICA IDENTITY " + {"index": "USING INDEX"}.get(table.identity, table.identity.upper())
        without = ", and no primary key" if identity.case == "default_without_key" else ""
        dropped = " of an index that was dropped" if table.identity == "index" else ""
        yield finding(
            "WRITES_REFUSED",
            {**names, "statements": listed(identity.refuses), "identity": f"{written}{dropped}{without}"},
            (table.full_name,),
            location=table.full_name,
            evidence={**evidence, "refused": list(identity.refuses), "publications": list(table.publications)},
        )
    if identity.case == "index_outside_key" and key and table.identity_index is not None:
        index = table.identity_index
        yield finding(
            "KEYS_WRONG",
            {**names, "index": index.name, "columns": listed(index.columns), "key": listed(key)},
            (table.full_name,),
            location=table.full_name,
            evidence={**evidence, "index": index.name, "index_columns": list(index.columns)},
        )
    if weak := _weak_key(table, key):
        index, why = weak
        yield finding(
            "KEY_WEAK",
            {**names, "index": index.name, "key": listed(key), "why": why},
            (table.full_name,),
            location=table.full_name,
            evidence={**evidence, "index": index.name, "why": why},
        )
    if not key:
        yield finding("KEY_MISSING", names, (table.full_name,), location=table.full_name, evidence=evidence)


def _weak_key(table: Table, key: tuple[str, ...]) -> tuple[Index, str] | None:
    """The unique index that stands in for a primary key, where it doesn't tell all rows apart, and why not."""
    if table.primary_key or not key:
        return None
    index = next((each for each in table.unique if each.columns == key), None)
    if index is None:  # message.key.columns
        return None
    if index.partial:
        return index, "which holds for some rows alone"
    nullable = [column.name for column in table.columns if column.name in key and column.nullable]
    return (index, f"of which {listed(nullable)} may be null") if nullable else None


def _columns(table: Table, expected: Expected, topic: str) -> Iterator[JudgedFinding]:
    columns = {column.name: column for column in table.columns}
    for each in expected.left_out:
        if each.lost:
            yield finding(
                "COLUMN_NOT_CARRIED",
                {
                    "table": table.full_name,
                    "column": each.column,
                    "type": columns[each.column].declared,
                    "why": each.why,
                },
                (table.full_name, each.column),
                location=f"{table.full_name}.{each.column}",
                evidence={"table": table.full_name, "column": each.column, "why": each.why},
            )
    carried = set(expected.columns.values())
    for column in table.columns:
        if column.dimensions > 1 and column.name in carried:
            yield finding(
                "ARRAY_LOST",
                {
                    "table": table.full_name,
                    "column": column.name,
                    "type": column.declared,
                    "dimensions": column.dimensions,
                },
                (table.full_name, column.name),
                location=f"{table.full_name}.{column.name}",
                evidence={"table": table.full_name, "column": column.name, "dimensions": column.dimensions},
            )
