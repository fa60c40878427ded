"""The four replica identities: what `before` holds, what the key has, what consumers miss, where statements fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from registry.drift.debezium.tables import Table

Case = Literal["default", "default_without_key", "nothing", "full", "full_without_key", "index", "index_outside_key"]


@dataclass(frozen=True)
class IdentityRow:
    """What a replica identity means. `refuses` says that PostgreSQL refuses UPDATE and DELETE of a published table."""

    before: str
    key: str
    missing: str
    refuses: bool = False
    wrong_keys: bool = False


#: PostgreSQL's documentation of ALTER TABLE … REPLICA IDENTITY, and what the connector 3.7 did with each
IDENTITIES: Final[dict[Case, IdentityRow]] = {
    "default": IdentityRow(
        before="null on updates; on deletes the key's columns, all others empty (null, or a placeholder where never null)",
        key="the primary key",
        missing="Consumers don't see what an update changed, nor the values of a deleted row.",
    ),
    "default_without_key": IdentityRow(
        before="never there",
        key="null",
        missing="Consumers see inserts alone. Events have no key, so compaction can't keep the last one of a row.",
        refuses=True,
    ),
    "nothing": IdentityRow(
        before="never there",
        key="the primary key, of inserts",
        missing="Consumers see inserts alone.",
        refuses=True,
    ),
    "full": IdentityRow(
        before="the whole row, on updates and deletes",
        key="the primary key",
        missing="Consumers miss nothing. Each update writes the whole old row to the log.",
    ),
    "full_without_key": IdentityRow(
        before="the whole row, on updates and deletes",
        key="null",
        missing="Events and tombstones have no key: rows can't be told apart, and compaction can't keep the last one.",
    ),
    "index": IdentityRow(
        before="on deletes the index's columns, all others empty (null, or a placeholder where never null)",
        key="the primary key",
        missing="Consumers don't see what an update changed outside the index, nor those values of a deleted row.",
    ),
    "index_outside_key": IdentityRow(
        before="the index's columns; the key's own come as placeholders (0 or empty)",
        key="the primary key, with wrong values on deletes",
        missing="Deletes carry placeholders for the key, so consumers delete the wrong row or none. A change of the"
        " indexed columns looks like a change of the key, a change of the key doesn't.",
        wrong_keys=True,
    ),
}


@dataclass(frozen=True)
class IdentityOf:
    """A table's replica identity: its row of IDENTITIES and where the application's own statements fail.

    `refuses` names the statements that PostgreSQL refuses: those that a publication of the table publishes.
    """

    case: Case
    row: IdentityRow
    refuses: tuple[str, ...]
    sentence: str


def case_of(table: Table, key: tuple[str, ...]) -> Case:
    """Which row is the table's; `key` are the columns of the events' key."""
    if table.identity == "nothing":
        return "nothing"
    if table.identity == "full":
        return "full" if key else "full_without_key"
    if table.identity == "index":
        index = table.identity_index
        if index is None:  # the index was dropped: PostgreSQL then treats it as NOTHING
            return "nothing"
        return "index" if key and set(key) <= set(index.columns) else "index_outside_key"
    return "default" if table.primary_key else "default_without_key"


def identity_of(table: Table, key: tuple[str, ...], *, updates: bool, deletes: bool) -> IdentityOf:
    """What the table's replica identity means; `updates` and `deletes` say whether a publication publishes them."""
    case = case_of(table, key)
    row = IDENTITIES[case]
    published = (("UPDATE", updates), ("DELETE", deletes))
    refuses = tuple(statement for statement, yes in published if yes) if row.refuses else ()
    fails = ""
    if refuses:
        fails = f" PostgreSQL refuses the application's own {' and '.join(refuses)} on it."
    name = {"index": "USING INDEX"}.get(table.identity, table.identity.upper())
    sentence = f"Replica identity {name}: before is {row.before}. Key: {row.key}. {row.missing}{fails}"
    return IdentityOf(case, row, refuses, sentence)
