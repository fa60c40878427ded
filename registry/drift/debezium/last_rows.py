"""What later scans need to know of the newest events of a topic: their fields, and the columns of their table.

The registry has the newest schema of Avro. JSON's fields are only in the messages, so a scan without messages would
know nothing of them, and one with messages from before and after a change couldn't order them.

PostgreSQL numbers the columns of a table once; the numbers survive renames and aren't used again. If a name has another
number than before, its values are those of another column, although no schema shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from registry.drift.debezium.columns import FieldShape, RowShape
from registry.drift.debezium.tables import Table
from registry.observations import Side

SIDES: Final[tuple[Side, ...]] = ("key", "value")
MAX_STORED: Final = 200_000  # characters of a schema


@dataclass(frozen=True)
class TableColumns:
    """The names of a table's columns by number, as of its newest events.

    `is_reported`: an earlier scan found other names. They replace these with the next row that a scan reads.
    """

    table: str
    oid: int
    names: Mapping[int, str]
    is_reported: bool = False


@dataclass(frozen=True)
class LastRows:
    """The newest events of a topic: by side, the Connect schema next to JSON (time, offset, text), or the JSON fields."""

    schemas: Mapping[Side, tuple[int, int, str]] = field(default_factory=dict)
    rows: Mapping[Side, RowShape] = field(default_factory=dict)
    columns: TableColumns | None = None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> LastRows:
        """Return what `stored` stored."""
        schemas = {side: values[side]["schema"] for side in SIDES if "schema" in values.get(side, ())}
        columns = values.get("columns")
        return cls(
            {side: (time, offset, text) for side, (time, offset, text) in schemas.items()},
            {side: _row(values[side]) for side in SIDES if "kinds" in values.get(side, ())},
            None if columns is None else TableColumns(**{**columns, "names": _numbered(columns["names"])}),
        )

    def stored(self) -> dict[str, Any]:
        """Return it as JSON values; a schema that is too long is left out."""
        values: dict[str, Any] = {
            side: {
                "kinds": {name: shape.kind for name, shape in row.fields.items()},
                "partly": sorted(row.partly),
                "exact": row.exact,
            }
            for side, row in self.rows.items()
        }
        values |= {side: {"schema": list(found)} for side, found in self.schemas.items() if len(found[2]) <= MAX_STORED}
        if self.columns is not None:
            names = {str(number): name for number, name in self.columns.names.items()}
            values["columns"] = {**vars(self.columns), "names": names}
        return values


def _row(values: Mapping[str, Any]) -> RowShape:
    fields = {name: FieldShape(name, kind, None) for name, kind in values["kinds"].items()}
    return RowShape(fields, values["exact"], frozenset(values["partly"]))


def _numbered(names: Mapping[str, str]) -> dict[int, str]:
    return {int(number): name for number, name in names.items()}


def columns_of(table: Table) -> TableColumns:
    """Return the table's columns now."""
    return TableColumns(table.full_name, table.oid, {column.number: column.name for column in table.columns})


def replaced_columns(before: TableColumns | None, table: Table) -> dict[str, str]:
    """Return the columns that kept their name and became another column, with that one's name before.

    Empty if there was none: it was added. A table that was recreated is another table, and isn't compared.
    """
    if before is None or before.oid != table.oid:
        return {}
    there = set(before.names.values())
    moved = [column for column in table.columns if column.name in there]
    return {
        column.name: before.names.get(column.number, "")
        for column in moved
        if before.names.get(column.number) != column.name
    }


def columns_after(before: TableColumns | None, table: Table, *, is_newer: bool) -> TableColumns:
    """Return the columns to compare the next scan's with; `is_newer`: this scan read rows of the table.

    These rows may be from before the change that this scan finds, so it is compared with once more.
    """
    now = columns_of(table)
    if before is None or before.oid != now.oid or before.names == now.names:
        return now
    if is_newer and (before.is_reported or not replaced_columns(before, table)):
        return now
    return replace(before, is_reported=True)
