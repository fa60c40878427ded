"""What PostgreSQL's catalog says of the tables that a connector captures, and of what it reads them through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Identity = Literal["default", "nothing", "full", "index"]
WalStatus = Literal["reserved", "extended", "unreserved", "lost", ""]


@dataclass(frozen=True)
class Column:
    """A column. `type` is its base type's name (`numeric`, `_int4` for arrays), `declared` as SQL writes it.

    `length`, `scale` and `precision` are those of its type modifier, None without one; `dimensions` those of an array
    as declared. `default` is the expression as SQL writes it, `labels` are an enum's.
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


@dataclass(frozen=True)
class Index:
    """A unique index; `columns` in its order, empty for one on an expression. A `partial` one holds for some rows."""

    name: str
    columns: tuple[str, ...]
    primary: bool = False
    replica_identity: bool = False
    partial: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the catalog. `dropped_columns` counts columns that were dropped since it was made.

    `published_columns` and `row_filters` are those of each publication, where the server tells them.
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
    published_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    row_filters: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """`schema.table`, as the connector's filters see it."""
        return f"{self.schema}.{self.name}"

    @property
    def identity_index(self) -> Index | None:
        """The index that replica identity USING INDEX names, None where it was dropped."""
        return next((index for index in self.unique if index.replica_identity), None)


@dataclass(frozen=True)
class Publication:
    """A publication and the operations that it publishes."""

    name: str
    all_tables: bool
    inserts: bool
    updates: bool
    deletes: bool
    truncates: bool


@dataclass(frozen=True)
class Slot:
    """A replication slot: what it retains of the log, in bytes, and how far it may still go before it is lost."""

    name: str
    plugin: str
    active: bool
    wal_status: WalStatus
    lag_bytes: int | None
    safe_bytes: int | None


@dataclass(frozen=True)
class Catalog:
    """What was read of one database; `cut` says which bound cut the list of tables, if one did."""

    database: str
    server_version: int
    wal_level: str
    tables: tuple[Table, ...]
    publications: Mapping[str, Publication] = field(default_factory=dict)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    cut: str = ""
