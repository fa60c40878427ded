"""A connector's captured tables from PostgreSQL's catalog: their replica identities, and their names in Kafka.

The replica identity determines `before`, the key, what consumers miss, and which statements fail.

Names of tables and columns become topics, Avro full names and fields, and different names may become the same. There
are two alphabets: a topic has letters, digits, `.`, `_` and `-`; an Avro name has letters, digits and `_`. Topics are
always adjusted; full names and fields only by the connector's `schema.name.adjustment.mode` and
`field.name.adjustment.mode`. Full names derive from the topic, so they lose what the topic's alphabet lost. The rules
are those of connector 3.7; tests compare them with the results of its own classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

Identity = Literal["default", "nothing", "full", "index"]
WalStatus = Literal["reserved", "extended", "unreserved", "lost", ""]


@dataclass(frozen=True)
class Column:
    """A column. `type` is its base type's name (`numeric`, `_int4` for arrays), `declared` is the type in SQL.

    `required_by_domain`: only its domain is NOT NULL. `length`, `scale` and `precision` come from its type modifier, None without one; `dimensions` are those of an array
    as declared. `default` is the SQL expression; `labels` are those of an enum.
    """

    name: str
    type: str
    declared: str
    nullable: bool
    default: str | None = None
    generated: bool = False
    identity: bool = False
    length: int | None = None
    scale: int | None = None
    precision: int | None = None
    dimensions: int = 0
    kind: Literal["base", "enum", "domain", "composite", "range", "other"] = "base"
    labels: tuple[str, ...] = ()
    number: int = 0
    required_by_domain: bool = False


@dataclass(frozen=True)
class Index:
    """A unique index; `columns` in order, empty for an index on an expression. A `partial` one covers some rows."""

    name: str
    columns: tuple[str, ...]
    primary: bool = False
    replica_identity: bool = False
    partial: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the catalog. `dropped_columns` counts columns dropped since its creation.

    `ancestors` are the partitioned tables that it is a partition of, as `schema.table`, the nearest first. `published_columns` and `row_filters` are by publication, if the server supports them.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    unique: tuple[Index, ...] = ()
    identity: Identity = "default"
    publications: tuple[str, ...] = ()
    dropped_columns: int = 0
    partitioned: bool = False
    oid: int = 0
    ancestors: tuple[str, ...] = ()
    published_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    row_filters: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """Return `schema.table`, as the connector's filters use it."""
        return f"{self.schema}.{self.name}"

    @property
    def identity_index(self) -> Index | None:
        """Return the index of replica identity USING INDEX; None if it was dropped."""
        return next((index for index in self.unique if index.replica_identity), None)


@dataclass(frozen=True)
class Publication:
    """A publication, the operations that it publishes, and under which tables' names, as `schema.table`."""

    name: str
    inserts: bool
    updates: bool
    deletes: bool
    truncates: bool
    tables: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Slot:
    """A replication slot: the log it retains, in bytes, and how much more it may retain before it is lost."""

    name: str
    plugin: str
    active: bool
    wal_status: WalStatus
    lag_bytes: int | None
    safe_bytes: int | None


@dataclass(frozen=True)
class Catalog:
    """What was read of one database; `cut` describes the limit that cut the list of tables, empty without one."""

    database: str
    server_version: int
    wal_level: str
    tables: tuple[Table, ...]
    publications: Mapping[str, Publication] = field(default_factory=dict)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    cut: str = ""


Case = Literal["default", "default_without_key", "nothing", "full", "full_without_key", "index", "index_outside_key"]


@dataclass(frozen=True)
class IdentityRow:
    """The meaning of a replica identity. `refuses`: PostgreSQL rejects UPDATE and DELETE on a published table."""

    before: str
    key: str
    missing: str
    refuses: bool = False


#: from PostgreSQL's documentation of ALTER TABLE … REPLICA IDENTITY, and the behaviour of connector 3.7
IDENTITIES: Final[dict[Case, IdentityRow]] = {
    "default": IdentityRow(
        before="null on updates; on deletes, only the key columns (others are null, or a placeholder if NOT NULL)",
        key="the primary key",
        missing="Consumers see neither what an update changed nor the values of a deleted row.",
    ),
    "default_without_key": IdentityRow(
        before="never present",
        key="null",
        missing="Consumers see only inserts. Events have no key, so compaction can't keep the latest event of a row.",
        refuses=True,
    ),
    "nothing": IdentityRow(
        before="never present", key="the primary key, on inserts", missing="Consumers see only inserts.", refuses=True
    ),
    "full": IdentityRow(
        before="the full row on updates and deletes",
        key="the primary key",
        missing="Consumers see everything. Each update writes the full old row to the log.",
    ),
    "full_without_key": IdentityRow(
        before="the full row on updates and deletes",
        key="null",
        missing="Events and tombstones have no key: rows can't be distinguished, and compaction can't keep the latest "
        "event of each.",
    ),
    "index": IdentityRow(
        before="on deletes, only the index columns (others are null, or a placeholder if NOT NULL)",
        key="the primary key",
        missing="Consumers see neither what an update changed outside the index nor those values of a deleted row.",
    ),
    "index_outside_key": IdentityRow(
        before="the index columns; key columns are placeholders (0 or empty)",
        key="the primary key, with wrong values on deletes",
        missing="Deletes carry placeholders for the key, so consumers delete the wrong row or none. A change to "
        "the indexed columns looks like a key change; a change to the key doesn't.",
    ),
}


@dataclass(frozen=True)
class IdentityOf:
    """A table's replica identity: its row of IDENTITIES, and the application's statements that fail.

    `refuses` names the statements that PostgreSQL rejects because a publication of the table publishes them.
    """

    case: Case
    row: IdentityRow
    refuses: tuple[str, ...]
    sentence: str


def case_of(table: Table, key: tuple[str, ...]) -> Case:
    """Return the table's case; `key` are the columns of the events' key."""
    if table.identity == "nothing":
        return "nothing"
    if table.identity == "full":
        return "full" if key else "full_without_key"
    if table.identity == "index":
        index = table.identity_index
        if index is None:  # PostgreSQL treats a dropped index as NOTHING
            return "nothing"
        return "index" if key and set(key) <= set(index.columns) else "index_outside_key"
    return "default" if table.primary_key else "default_without_key"


def identity_of(table: Table, key: tuple[str, ...], *, updates: bool, deletes: bool) -> IdentityOf:
    """Return the meaning of the replica identity; `updates` and `deletes`: whether a publication publishes them."""
    case = case_of(table, key)
    row = IDENTITIES[case]
    published = (("UPDATE", updates), ("DELETE", deletes))
    refuses = tuple(statement for statement, yes in published if yes) if row.refuses else ()
    fails = ""
    if refuses:
        fails = f" PostgreSQL rejects the application's own {' and '.join(refuses)} on it."
    name = {"index": "USING INDEX"}.get(table.identity, table.identity.upper())
    sentence = f"Replica identity {name}: before is {row.before}. Key: {row.key}. {row.missing}{fails}"
    return IdentityOf(case, row, refuses, sentence)


Mode = Literal["none", "avro", "avro_unicode"]
T = TypeVar("T")

MAX_TOPIC: Final = 249
_NOT_IN_TOPICS: Final = re.compile(r"[^A-Za-z0-9._-]")
_AVRO_FULL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTER: Final = re.compile(r"[A-Za-z]")
_LETTER_OR_UNDERSCORE: Final = re.compile(r"[A-Za-z_]")
_DIGIT: Final = re.compile(r"[0-9]")


def topic_name(text: str) -> str:
    """Return the topic for a name: other characters become `_` (one per UTF-16 unit), truncated to 249 characters."""
    # Java counts UTF-16 units: a character beyond the BMP becomes two underscores.
    name = "".join(_NOT_IN_TOPICS.sub("_" * len(_units(char)), char) for char in text)[:MAX_TOPIC]
    return {".": "_", "..": "__"}.get(name, name)


def schema_name(text: str, mode: Mode) -> str:
    """Return a Connect schema's full name under `schema.name.adjustment.mode`; dots are kept."""
    return _adjusted(text, mode, dots=True)


def field_name(column: str, mode: Mode) -> str:
    """Return a column's field name under `field.name.adjustment.mode`."""
    return _adjusted(column, mode, dots=False)


def is_avro_full_name(text: str) -> bool:
    """Return whether every part of a full name is an Avro name."""
    return _AVRO_FULL_NAME.fullmatch(text) is not None


def is_avro_name(text: str) -> bool:
    """Return whether a field's name is an Avro name."""
    return _AVRO_NAME.fullmatch(text) is not None


def _adjusted(text: str, mode: Mode, *, dots: bool) -> str:
    if mode == "none" or not text:
        return text
    first_fits = _LETTER if mode == "avro_unicode" else _LETTER_OR_UNDERSCORE
    out = []
    for position, unit in enumerate(_units(text)):
        fits = bool(first_fits.fullmatch(unit)) or (
            position > 0 and (_DIGIT.fullmatch(unit) is not None or (dots and unit == "."))
        )
        if fits:
            out.append(unit)
        elif mode == "avro_unicode":
            out.append(_escaped(unit))
        else:
            # A first character that is a digit is kept after the underscore, even one of another script, which Avro
            # rejects.
            out.append("_" + (unit if position == 0 and unit.isdecimal() else ""))
    return "".join(out)


def _escaped(unit: str) -> str:
    """Return `_u` and the character's hexadecimal code as Java prints it, with `00` before one or two digits."""
    number = f"{ord(unit):x}"
    return f"_u{'00' if len(number) <= 2 else ''}{number}"


def _units(text: str) -> list[str]:
    """Return the characters of a text as Java counts them, with surrogates separate."""
    if all(ord(char) <= 0xFFFF for char in text):
        return list(text)
    data = text.encode("utf-16-be", "surrogatepass")
    return [chr(int.from_bytes(data[position : position + 2], "big")) for position in range(0, len(data), 2)]


# ---- name collisions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NamedTable:
    """A captured table, with the connector's names for it."""

    table: str
    topic: str
    full_name: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class NameCollision:
    """Names that collide: `kind` is the type of collision, `becomes` the common name, `names` the colliding names.

    `topic`: several tables share a topic. `broker`: topics that differ only in `.` and `_`; the broker rejects the
    second. `full_name`: tables with separate topics whose schemas have the same Avro name. `field`: columns of one
    table (`table`) that become one field. `case`: columns of a table that differ only in case.
    """

    kind: Literal["topic", "broker", "full_name", "field", "case"]
    becomes: str
    names: tuple[str, ...]
    table: str = ""


def name_collisions(tables: Sequence[NamedTable]) -> list[NameCollision]:
    """Return the collisions among the names of the captured tables; in linear time."""
    collisions = [
        NameCollision("topic", topic, tuple(sorted(table.table for table in group)))
        for topic, group in _grouped(tables, lambda table: table.topic)
    ]
    topics = sorted({table.topic for table in tables})
    collisions += [
        NameCollision("broker", becomes, tuple(group))
        for becomes, group in _grouped(topics, lambda topic: topic.replace(".", "_"))
    ]
    by_topic = {table.topic: table for table in tables}
    collisions += [
        NameCollision("full_name", name, tuple(sorted(table.table for table in group)))
        for name, group in _grouped(list(by_topic.values()), lambda table: table.full_name)
    ]
    for table in tables:
        collisions += [
            NameCollision("field", field, tuple(sorted(columns)), table.table)
            for field, columns in _grouped(sorted(table.fields), lambda column, made=table.fields: made[column])  # type: ignore[misc]
        ]
        collisions += [
            NameCollision("case", column, tuple(columns), table.table)
            for column, columns in _grouped(sorted(table.fields), str.lower)
        ]
    return collisions


def _grouped(things: Iterable[T], name: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    groups: dict[str, list[T]] = {}
    for thing in things:
        groups.setdefault(name(thing), []).append(thing)
    return [(becomes, group) for becomes, group in sorted(groups.items()) if len(group) > 1]
