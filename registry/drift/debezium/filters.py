"""The tables and columns that a connector captures, and the columns of its keys, from the lists in its configuration.

A list is separated by commas (a comma in a pattern has a backslash before it). A pattern must match the whole name,
ignoring case. If a pattern isn't understood, the answer is None: unknown, never a guess.

Patterns are Java regular expressions from an untrusted configuration, so no backtracking engine may run them: each is
compiled to a small program, and each instruction is tried at most once at each position of the text. Features that
can't be matched that way (back references, possessive and atomic groups, look-behind) or are rare in names (classes
with `&&`, Unicode categories) are reported as not understood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from registry.drift.debezium.java_regex_parser import PatternNotUnderstood, RegexStep, compile_steps

__all__ = ["Pattern", "PatternNotUnderstood", "StepBudget", "compile_pattern"]


MAX_TEXT: Final = 1_000
MAX_STEPS: Final = 400_000  # per match
MAX_ALL_STEPS: Final = 20_000_000  # for all matches with one budget: about ten seconds


@dataclass
class StepBudget:
    """The steps that all patterns of one setting may take together."""

    left: int = MAX_ALL_STEPS


@dataclass
class Pattern:
    """A compiled pattern; `text` is its source."""

    text: str
    steps: tuple[RegexStep, ...]
    names: dict[str, int]
    groups: int
    budget: StepBudget = field(default_factory=StepBudget)
    _known: dict[str, bool] = field(default_factory=dict)

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches, as Java's `matches()`. Raises PatternNotUnderstood at the budget."""
        if text not in self._known:
            self._known[text] = self._run(text, 0, whole=True) is not None
        return self._known[text]

    def replace_first(self, text: str, replacement: str) -> str:
        """Replace the first match, like Java's `replaceFirst`: `$1`, `${name}`, `\\` before any character.

        Raises PatternNotUnderstood for a replacement that Java rejects, or if it costs too much.
        """
        for start in range(len(text) + 1):
            match = self._run(text, start, whole=False)
            if match is not None:
                return text[:start] + self._filled(replacement, text, match) + text[match[1] :]
        return text

    def _filled(self, replacement: str, text: str, match: dict[int, int]) -> str:
        out, position = [], 0
        while position < len(replacement):
            char = replacement[position]
            position += 1
            if char == "\\" and position < len(replacement):
                out.append(replacement[position])
                position += 1
            elif char == "$":
                group, position = self._group(replacement, position)
                if 2 * group in match and 2 * group + 1 in match:
                    out.append(text[match[2 * group] : match[2 * group + 1]])
            else:
                out.append(char)
        return "".join(out)

    def _group(self, replacement: str, position: int) -> tuple[int, int]:
        """Return the group after a `$` and where it ends; digits count as long as a group with that number exists."""
        if replacement[position : position + 1] == "{":
            end = replacement.find("}", position)
            name = replacement[position + 1 : end]
            if end < 0 or name not in self.names:
                raise PatternNotUnderstood(f"the replacement refers to group {name!r}, which doesn't exist")
            return self.names[name], end + 1
        if not ("0" <= replacement[position : position + 1] <= "9"):
            raise PatternNotUnderstood("a $ without a group number in the replacement")
        group, position = int(replacement[position]), position + 1
        if group > self.groups:
            raise PatternNotUnderstood(f"the replacement refers to group {group}, which doesn't exist")
        while (
            "0" <= replacement[position : position + 1] <= "9"
            and group * 10 + int(replacement[position]) <= self.groups
        ):
            group, position = group * 10 + int(replacement[position]), position + 1
        return group, position

    def _run(self, text: str, start: int, *, whole: bool) -> dict[int, int] | None:
        """Return the group positions of a match at `start` (2n: start of group n, 2n+1: its end); None without one."""
        if len(text) > MAX_TEXT:
            raise PatternNotUnderstood(f"a name of more than {MAX_TEXT} characters")
        budget = StepBudget(min(MAX_STEPS, self.budget.left))
        before = budget.left
        try:
            match = _search(self.steps, text, start, whole, budget)
        finally:
            self.budget.left -= before - max(0, budget.left)
        return None if match is None else {**match, 0: start}


def compile_pattern(text: str, *, ignore_case: bool = False, budget: StepBudget | None = None) -> Pattern:
    """Compile a text in Java's syntax. Raises PatternNotUnderstood, which names the unsupported part."""
    steps, names, groups = compile_steps(text, ignore_case=ignore_case)
    return Pattern(text, steps, names, groups, budget or StepBudget())


def _search(
    steps: tuple[RegexStep, ...], text: str, start: int, whole: bool, budget: StepBudget
) -> dict[int, int] | None:
    """Return the first match in the order of a backtracking engine; each (step, position) is visited once."""
    visited: set[tuple[int, int]] = set()
    stack: list[tuple[int, int, dict[int, int]]] = [(0, start, {})]
    while stack:
        at, position, groups = stack.pop()
        while (at, position) not in visited:
            visited.add((at, position))
            budget.left -= 1
            if budget.left < 0:
                raise PatternNotUnderstood("it is too costly to match")
            step = steps[at]
            if step.kind == "end":
                if whole and position != len(text):
                    break
                return {**groups, 1: position}
            if step.kind == "split":
                stack.append((step.other, position, groups))
                at = step.next
                continue
            if step.kind == "char":
                if position >= len(text) or not step.takes(text[position]):
                    break
                position += 1
            elif step.kind == "save":
                groups = {**groups, step.other: position}
            elif step.kind == "look":
                inside = _search(step.inside, text, position, False, budget)
                if (inside is not None) != step.positive:
                    break
            elif step.kind == "start":
                if position != 0:
                    break
            elif step.kind == "finish" and position != len(text) and not (step.positive and text[position:] == "\n"):
                break
            at = step.next
    return None


MAX_PATTERNS: Final = 2_000
#: PostgreSQL's system schemas, which are never captured
SYSTEM_SCHEMAS: Final = ("pg_catalog", "information_schema")


def split_list(text: str) -> list[str]:
    """Split a list at commas without a backslash before them, trimmed and without empty parts."""
    parts, current, position = [], "", 0
    while position < len(text):
        char = text[position]
        if char == "\\" and position + 1 < len(text):
            current += text[position : position + 2]
            position += 2
            continue
        if char == ",":
            parts.append(current)
            current = ""
        else:
            current += char
        position += 1
    parts.append(current)
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


@dataclass(frozen=True)
class NameList:
    """The patterns of one property, as an include or exclude list."""

    patterns: tuple[Pattern, ...] = ()
    unread: bool = False

    def has(self, name: str) -> bool | None:
        """Return whether a pattern matches the name; None if none does but not all are understood."""
        unknown = self.unread
        for pattern in self.patterns:
            try:
                if pattern.matches(name):
                    return True
            except PatternNotUnderstood:
                unknown = True
        return None if unknown else False


def read_list(config: Mapping[str, str], name: str, doubts: list[str]) -> NameList | None:
    """Return the list of a property, None if it isn't set; adds what isn't understood to `doubts`."""
    text = config.get(name, "").strip()
    if not text:
        return None
    parts = split_list(text)
    if len(parts) > MAX_PATTERNS:
        doubts.append(f"{name}: more than {MAX_PATTERNS} patterns")
        return NameList((), unread=True)
    patterns, unread, budget = [], False, StepBudget()
    for part in parts:
        try:
            patterns.append(compile_pattern(part, ignore_case=True, budget=budget))
        except PatternNotUnderstood as error:
            doubts.append(f"{name}={part[:80]}: {error}")
            unread = True
    return NameList(tuple(patterns), unread)


def _is_included(include: NameList | None, exclude: NameList | None, name: str) -> bool | None:
    """Return whether a name is included; an include list wins, as in the connector, which doesn't allow both."""
    if include is not None:
        return include.has(name)
    if exclude is not None:
        is_excluded = exclude.has(name)
        return None if is_excluded is None else not is_excluded
    return True


@dataclass(frozen=True)
class TableFilter:
    """The captured tables: by schema, then by `schema.table`."""

    schema_include: NameList | None = None
    schema_exclude: NameList | None = None
    include: NameList | None = None
    exclude: NameList | None = None
    doubts: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, str]) -> TableFilter:
        """Read the filter from a configuration."""
        doubts: list[str] = []
        names = ("schema.include.list", "schema.exclude.list", "table.include.list", "table.exclude.list")
        lists = [read_list(config, name, doubts) for name in names]
        return cls(lists[0], lists[1], lists[2], lists[3], tuple(doubts))

    def takes(self, schema: str, table: str) -> bool | None:
        """Return whether the table is captured; None if a pattern isn't understood."""
        if schema in SYSTEM_SCHEMAS:
            return False
        answers = (
            _is_included(self.schema_include, self.schema_exclude, schema),
            _is_included(self.include, self.exclude, f"{schema}.{table}"),
        )
        if False in answers:
            return False
        return None if None in answers else True


@dataclass(frozen=True)
class ColumnFilter:
    """The captured columns, by `schema.table.column`; key columns are always in the key."""

    include: NameList | None = None
    exclude: NameList | None = None
    doubts: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, str]) -> ColumnFilter:
        """Read the filter from a configuration."""
        doubts: list[str] = []
        lists = [read_list(config, name, doubts) for name in ("column.include.list", "column.exclude.list")]
        return cls(lists[0], lists[1], tuple(doubts))

    def takes(self, schema: str, table: str, column: str) -> bool | None:
        """Return whether the column is in the value; None if a pattern isn't understood."""
        return _is_included(self.include, self.exclude, f"{schema}.{table}.{column}")


@dataclass(frozen=True)
class KeyColumns:
    """`message.key.columns`: the key columns of tables, in the order listed."""

    lists: tuple[NameList, ...] = ()
    doubts: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, str]) -> KeyColumns:
        """Read the setting `table:column,column;table:column`, with tables as patterns."""
        doubts: list[str] = []
        lists = []
        for part in filter(str.strip, config.get("message.key.columns", "").split(";")[:MAX_PATTERNS]):
            table, _, columns = part.strip().partition(":")
            for column in columns.split(","):
                # The connector matches table and column as one pattern, ignoring case.
                names = read_list({"message.key.columns": f"{table}.{column.strip()}"}, "message.key.columns", doubts)
                lists.append(names or NameList())
        return cls(tuple(lists), tuple(doubts))

    def of(
        self, schema: str, table: str, columns: Sequence[str], primary_key: tuple[str, ...]
    ) -> tuple[str, ...] | None:
        """Return the columns of the table's key, by default the primary key's; None if the setting isn't understood."""
        chosen: list[str] = []
        for listed in self.lists:
            for column in columns:
                is_key = listed.has(f"{schema}.{table}.{column}")
                if is_key is None:
                    return None
                if is_key and column not in chosen:
                    chosen.append(column)
        return tuple(chosen) or primary_key
