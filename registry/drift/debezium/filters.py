"""Which tables and columns a connector captures, and which columns make its keys: the lists of its configuration.

A list is divided by commas (one that belongs to a pattern has a backslash before it), a pattern must match the whole
name, letter case doesn't count. A pattern that isn't understood makes the answer None: unknown, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from registry.drift.debezium.patterns import Pattern, PatternNotUnderstood, Purse, compile_pattern

MAX_PATTERNS: Final = 2_000
#: PostgreSQL's own schemas, which are never captured
SYSTEM_SCHEMAS: Final = ("pg_catalog", "information_schema")


def split_list(text: str) -> list[str]:
    """The patterns of a list: at commas without a backslash before them, trimmed, empty ones left out."""
    parts, current, place = [], "", 0
    while place < len(text):
        char = text[place]
        if char == "\\" and place + 1 < len(text):
            current += text[place : place + 2]
            place += 2
            continue
        if char == ",":
            parts.append(current)
            current = ""
        else:
            current += char
        place += 1
    parts.append(current)
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


@dataclass(frozen=True)
class NameList:
    """The patterns of one property, as an include or exclude list."""

    patterns: tuple[Pattern, ...] = ()
    unread: bool = False

    def has(self, name: str) -> bool | None:
        """Whether one of the patterns matches the name; None where none does but not all are understood."""
        unknown = self.unread
        for pattern in self.patterns:
            try:
                if pattern.matches(name):
                    return True
            except PatternNotUnderstood:
                unknown = True
        return None if unknown else False


def read_list(config: Mapping[str, str], name: str, doubts: list[str]) -> NameList | None:
    """The list of a property, None where it isn't set; what isn't understood is added to `doubts`."""
    text = config.get(name, "").strip()
    if not text:
        return None
    parts = split_list(text)
    if len(parts) > MAX_PATTERNS:
        doubts.append(f"{name}: more than {MAX_PATTERNS} patterns")
        return NameList((), unread=True)
    patterns, unread, purse = [], False, Purse()
    for part in parts:
        try:
            patterns.append(compile_pattern(part, ignore_case=True, purse=purse))
        except PatternNotUnderstood as error:
            doubts.append(f"{name}={part[:80]}: {error}")
            unread = True
    return NameList(tuple(patterns), unread)


def _kept(include: NameList | None, exclude: NameList | None, name: str) -> bool | None:
    """An include list wins over an exclude list, as in the connector, which doesn't allow both."""
    if include is not None:
        return include.has(name)
    if exclude is not None:
        found = exclude.has(name)
        return None if found is None else not found
    return True


@dataclass(frozen=True)
class TableFilter:
    """Which tables are captured: by schema, then by `schema.table`."""

    schema_include: NameList | None = None
    schema_exclude: NameList | None = None
    include: NameList | None = None
    exclude: NameList | None = None
    doubts: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, str]) -> TableFilter:
        """The filter of a configuration."""
        doubts: list[str] = []
        names = ("schema.include.list", "schema.exclude.list", "table.include.list", "table.exclude.list")
        lists = [read_list(config, name, doubts) for name in names]
        return cls(lists[0], lists[1], lists[2], lists[3], tuple(doubts))

    def takes(self, schema: str, table: str) -> bool | None:
        """Whether the table is captured; None where a pattern isn't understood."""
        if schema in SYSTEM_SCHEMAS:
            return False
        answers = (
            _kept(self.schema_include, self.schema_exclude, schema),
            _kept(self.include, self.exclude, f"{schema}.{table}"),
        )
        if False in answers:
            return False
        return None if None in answers else True


@dataclass(frozen=True)
class ColumnFilter:
    """Which columns are captured, by `schema.table.column`; the key has its columns whatever the filter says."""

    include: NameList | None = None
    exclude: NameList | None = None
    doubts: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, str]) -> ColumnFilter:
        """The filter of a configuration."""
        doubts: list[str] = []
        lists = [read_list(config, name, doubts) for name in ("column.include.list", "column.exclude.list")]
        return cls(lists[0], lists[1], tuple(doubts))

    def takes(self, schema: str, table: str, column: str) -> bool | None:
        """Whether the column stands in the value; None where a pattern isn't understood."""
        return _kept(self.include, self.exclude, f"{schema}.{table}.{column}")


@dataclass(frozen=True)
class KeyColumns:
    """`message.key.columns`: which columns make the key of which tables, in the order they are listed."""

    lists: tuple[NameList, ...] = ()
    doubts: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, str]) -> KeyColumns:
        """The setting `table:column,column;table:column`, its tables as patterns."""
        doubts: list[str] = []
        lists = []
        for part in filter(str.strip, config.get("message.key.columns", "").split(";")[:MAX_PATTERNS]):
            table, _, columns = part.strip().partition(":")
            for column in columns.split(","):
                # The connector matches table and column as one pattern, letter case aside.
                found = read_list({"message.key.columns": f"{table}.{column.strip()}"}, "message.key.columns", doubts)
                lists.append(found or NameList())
        return cls(tuple(lists), tuple(doubts))

    def of(
        self, schema: str, table: str, columns: Sequence[str], primary_key: tuple[str, ...]
    ) -> tuple[str, ...] | None:
        """The columns of the table's key; its primary key's where the setting names none. None: not understood."""
        chosen: list[str] = []
        for listed in self.lists:
            for column in columns:
                found = listed.has(f"{schema}.{table}.{column}")
                if found is None:
                    return None
                if found and column not in chosen:
                    chosen.append(column)
        return tuple(chosen) or primary_key
