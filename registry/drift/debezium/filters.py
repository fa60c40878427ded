"""Which tables and columns a connector captures, and which columns make its keys: the lists of its configuration.

A list is divided by commas (one that belongs to a pattern has a backslash before it), a pattern must match the whole
name, letter case doesn't count. A pattern that isn't understood makes the answer None: unknown, never a guess.

Patterns are Java's regular expressions and come from somebody else's configuration, so no backtracking engine may run
them: each is compiled to a small program, of which each instruction is tried at most once at each place of the text.
What can't be matched that way (back references, possessive and atomic groups, look-behind) and what is rare in names
(classes with `&&`, Unicode categories) is reported as not understood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from registry.drift.debezium.java_regex_parser import PatternNotUnderstood, Step, compile_steps

__all__ = ["Pattern", "PatternNotUnderstood", "Purse", "compile_pattern"]


MAX_TEXT: Final = 1_000
MAX_STEPS: Final = 400_000  # of one match
MAX_ALL_STEPS: Final = 20_000_000  # of all matches out of one purse: some ten seconds


@dataclass
class Purse:
    """The steps that the patterns of one setting may take together, however many they are."""

    left: int = MAX_ALL_STEPS


@dataclass
class Pattern:
    """A compiled pattern; `text` is what it was made of."""

    text: str
    steps: tuple[Step, ...]
    names: dict[str, int]
    groups: int
    purse: Purse = field(default_factory=Purse)
    _known: dict[str, bool] = field(default_factory=dict)

    def matches(self, text: str) -> bool:
        """Whether the whole text matches, as Java's `matches()`. Raises PatternNotUnderstood when it costs too much."""
        if text not in self._known:
            self._known[text] = self._run(text, 0, whole=True) is not None
        return self._known[text]

    def replace_first(self, text: str, replacement: str) -> str:
        """The text with the first match replaced, as Java's `replaceFirst`: `$1`, `${name}`, `\\` before any character.

        Raises PatternNotUnderstood for a replacement that Java refuses, and when it costs too much.
        """
        for start in range(len(text) + 1):
            found = self._run(text, start, whole=False)
            if found is not None:
                return text[:start] + self._filled(replacement, text, found) + text[found[1] :]
        return text

    def _filled(self, replacement: str, text: str, found: dict[int, int]) -> str:
        out, place = [], 0
        while place < len(replacement):
            char = replacement[place]
            place += 1
            if char == "\\" and place < len(replacement):
                out.append(replacement[place])
                place += 1
            elif char == "$":
                group, place = self._group(replacement, place)
                if 2 * group in found and 2 * group + 1 in found:
                    out.append(text[found[2 * group] : found[2 * group + 1]])
            else:
                out.append(char)
        return "".join(out)

    def _group(self, replacement: str, place: int) -> tuple[int, int]:
        """The group that stands after a `$`, and where it ends; digits are taken as long as there is such a group."""
        if replacement[place : place + 1] == "{":
            end = replacement.find("}", place)
            name = replacement[place + 1 : end]
            if end < 0 or name not in self.names:
                raise PatternNotUnderstood(f"the replacement names a group {name!r} that isn't there")
            return self.names[name], end + 1
        if not ("0" <= replacement[place : place + 1] <= "9"):
            raise PatternNotUnderstood("a $ in the replacement without a group's number")
        group, place = int(replacement[place]), place + 1
        if group > self.groups:
            raise PatternNotUnderstood(f"the replacement names group {group}, which isn't there")
        while "0" <= replacement[place : place + 1] <= "9" and group * 10 + int(replacement[place]) <= self.groups:
            group, place = group * 10 + int(replacement[place]), place + 1
        return group, place

    def _run(self, text: str, start: int, *, whole: bool) -> dict[int, int] | None:
        """Where the groups of a match at `start` lie (2n: start of group n, 2n+1: its end), None without a match."""
        if len(text) > MAX_TEXT:
            raise PatternNotUnderstood(f"a name of more than {MAX_TEXT} characters")
        budget = Purse(min(MAX_STEPS, self.purse.left))
        before = budget.left
        try:
            found = _search(self.steps, text, start, whole, budget)
        finally:
            self.purse.left -= before - max(0, budget.left)
        return None if found is None else {**found, 0: start}


def compile_pattern(text: str, *, ignore_case: bool = False, purse: Purse | None = None) -> Pattern:
    """The pattern of a text in Java's syntax. Raises PatternNotUnderstood, which says what isn't understood."""
    steps, names, groups = compile_steps(text, ignore_case=ignore_case)
    return Pattern(text, steps, names, groups, purse or Purse())


def _search(steps: tuple[Step, ...], text: str, start: int, whole: bool, budget: Purse) -> dict[int, int] | None:
    """The first match in the order of a backtracking engine; each pair of step and place is visited once."""
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[int, int, dict[int, int]]] = [(0, start, {})]
    while stack:
        at, place, groups = stack.pop()
        while (at, place) not in seen:
            seen.add((at, place))
            budget.left -= 1
            if budget.left < 0:
                raise PatternNotUnderstood("it costs too much to match")
            step = steps[at]
            if step.kind == "end":
                if whole and place != len(text):
                    break
                return {**groups, 1: place}
            if step.kind == "split":
                stack.append((step.other, place, groups))
                at = step.next
                continue
            if step.kind == "char":
                if place >= len(text) or not step.takes(text[place]):
                    break
                place += 1
            elif step.kind == "save":
                groups = {**groups, step.other: place}
            elif step.kind == "look":
                inside = _search(step.inside, text, place, False, budget)
                if (inside is not None) != step.positive:
                    break
            elif step.kind == "start":
                if place != 0:
                    break
            elif step.kind == "finish" and place != len(text) and not (step.positive and text[place:] == "\n"):
                break
            at = step.next
    return None


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
