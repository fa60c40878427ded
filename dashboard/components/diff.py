"""Line diffs of two texts, as rows for a unified or side-by-side view; formatting of JSON.

Lines are matched by patience diff in bounded time for any text.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final

from registry.sandbox import WeighedCache

BUDGET = 160_000
"""Products of line counts that one comparison may match without anchors; about a third of a second at worst."""

Span = tuple[int, int, int, int]


def match_lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs (line of `before`, line of `after`) of equal lines, both ascending; lines count from 0."""
    pairs: list[tuple[int, int]] = []
    budget = BUDGET
    todo: list[Span] = [(0, len(before), 0, len(after))]
    while todo:
        i1, i2, j1, j2 = todo.pop()
        while i1 < i2 and j1 < j2 and before[i1] == after[j1]:
            pairs.append((i1, j1))
            i1, j1 = i1 + 1, j1 + 1
        while i1 < i2 and j1 < j2 and before[i2 - 1] == after[j2 - 1]:
            i2, j2 = i2 - 1, j2 - 1
            pairs.append((i2, j2))
        if i1 == i2 or j1 == j2:
            continue
        anchors = _anchors(before, after, (i1, i2, j1, j2))
        if anchors:
            pairs.extend(anchors)
            todo.extend(_between(anchors, (i1, i2, j1, j2)))
        elif set(before[i1:i2]).isdisjoint(after[j1:j2]):
            continue
        elif (i2 - i1) * (j2 - j1) <= budget:
            budget -= (i2 - i1) * (j2 - j1)
            pairs.extend(_exact(before, after, (i1, i2, j1, j2)))
    return sorted(pairs)


def changes(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Yield ranges in order: (equal, from, to, from, to), lines of `before` and of `after`, ends exclusive."""
    i = j = 0
    start = (0, 0)
    for left, right in [*match_lines(before, after), (len(before), len(after))]:
        if (left, right) == (i, j) and left < len(before) and right < len(after):
            i, j = i + 1, j + 1
            continue
        if (i, j) != start:
            yield True, start[0], i, start[1], j
        if (left, right) != (i, j):
            yield False, i, left, j, right
        start = (left, right)
        i, j = left + 1, right + 1


def _anchors(before: Sequence[str], after: Sequence[str], span: Span) -> list[tuple[int, int]]:
    """Return the longest ascending sequence of lines that occur once on each side of the span."""
    i1, i2, j1, j2 = span
    once_before = {line for line, count in Counter(before[i1:i2]).items() if count == 1}
    once_after = {line for line, count in Counter(after[j1:j2]).items() if count == 1}
    both = once_before & once_after
    where = {after[j]: j for j in range(j1, j2) if after[j] in both}
    candidates = [(i, where[before[i]]) for i in range(i1, i2) if before[i] in both]
    ends: list[int] = []
    lasts: list[int] = []
    previous: list[int] = []
    for index, (_, right) in enumerate(candidates):
        at = bisect_left(ends, right)
        previous.append(lasts[at - 1] if at else -1)
        if at == len(ends):
            ends.append(right)
            lasts.append(index)
        else:
            ends[at], lasts[at] = right, index
    row: list[tuple[int, int]] = []
    at = lasts[-1] if lasts else -1
    while at >= 0:
        row.append(candidates[at])
        at = previous[at]
    return row[::-1]


def _between(anchors: Sequence[tuple[int, int]], span: Span) -> Iterator[Span]:
    i, j = span[0], span[2]
    for left, right in [*anchors, (span[1], span[3])]:
        if i < left and j < right:
            yield i, left, j, right
        i, j = left + 1, right + 1


def _exact(before: Sequence[str], after: Sequence[str], span: Span) -> Iterator[tuple[int, int]]:
    i1, i2, j1, j2 = span
    for block in SequenceMatcher(None, before[i1:i2], after[j1:j2], autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            yield i1 + block.a + offset, j1 + block.b + offset


CONTEXT = 3
"""Unchanged lines kept around a change."""
MAX_ROWS = 4000
"""Rows that are ever drawn; the lines beyond are counted in `hidden_rows`."""
MAX_WORDWISE = 400
"""Longest line (characters) whose inside is compared too: beyond, the whole line counts as changed."""

MAX_PAIRED = 2_500
"""Product of removed and added lines of one change up to which the alike ones are looked for."""
MAX_PIECES = 900
"""Product of the two lines' words that are compared one by one: beyond, all between the equal ends is marked."""
ALIKE = 0.4
"""Share of words in common from which two lines count as one that changed."""
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a line; a `changed` one is emphasised."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one side: its number from 1 and its pieces."""

    number: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the side-by-side view; `kind` is "same", "changed", "added", "removed" or "skip" (`skipped` lines)."""

    kind: str
    old: Line | None = None
    new: Line | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class TextDiff:
    """A diff: the rows side by side, and the same rows unified (removed lines before added ones).

    `hidden_rows` counts the omitted unified lines, without those that are skipped for being far from a change.
    """

    rows: tuple[Row, ...]
    unified: tuple[Row, ...]
    added: int
    removed: int
    hidden_rows: int = 0

    @property
    def identical(self) -> bool:
        """Whether the texts are equal line for line."""
        return not self.added and not self.removed


#: the last diffs, weighed by their rows
_diffs = WeighedCache[TextDiff](20_000, lambda diff: len(diff.rows) + 1)


def lines_of(text: str) -> list[str]:
    """Split a text into lines as parsers count them: only at newlines, not at other Unicode line breaks."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def text_diff(old: str, new: str, *, context: int = CONTEXT, limit: int = MAX_ROWS) -> TextDiff:
    """Return the diff of two texts, with `context` unchanged lines around each change, and at most `limit` rows."""
    before, after = lines_of(old), lines_of(new)
    rows: list[Row] = []
    added = removed = unchanged = 0
    blocks = list(changes(before, after))
    for index, (equal, i1, i2, j1, j2) in enumerate(blocks):
        drawn: Iterator[Row]
        if equal:
            head, tail = 0 if index == 0 else context, 0 if index == len(blocks) - 1 else context
            skipped = _skipped(i2 - i1, head, tail)
            unchanged += i2 - i1 - skipped
            drawn = _equal(before, i1, i2, j1, head, skipped)
        else:
            removed += i2 - i1
            added += j2 - j1
            drawn = _changed(before[i1:i2], after[j1:j2], i1, j1)
        if len(rows) < limit:  # omitted rows aren't compared word by word
            rows.extend(islice(drawn, limit - len(rows)))
    unified = tuple(_unified(rows))
    hidden = added + removed + unchanged - sum(row.kind != "skip" for row in unified)
    return TextDiff(rows=tuple(rows), unified=unified, added=added, removed=removed, hidden_rows=hidden)


def laid_out_diff(old: str, new: str, lay_out: Callable[[str], str], *, limit: int = MAX_ROWS) -> TextDiff:
    """Return the cached diff of two texts formatted by `lay_out`, a module-level function."""
    key = (_digest(old), _digest(new), lay_out, limit)
    return _diffs.get(key, lambda: text_diff(lay_out(old), lay_out(new), limit=limit))


def differing_lines(old: str, new: str) -> int:
    """Count the removed and added lines."""
    spans = changes(lines_of(old), lines_of(new))
    return sum(i2 - i1 + j2 - j1 for equal, i1, i2, j1, j2 in spans if not equal)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _skipped(count: int, head: int, tail: int) -> int:
    """Return how many of `count` equal lines to skip; a single line isn't skipped."""
    return count - head - tail if count - head - tail > 1 else 0


def _equal(lines: Sequence[str], i1: int, i2: int, j1: int, head: int, skipped: int) -> Iterator[Row]:
    for offset in range(i2 - i1 if not skipped else head):
        yield _same(lines, i1, j1, offset)
    if skipped:
        yield Row("skip", skipped=skipped)
        for offset in range(head + skipped, i2 - i1):
            yield _same(lines, i1, j1, offset)


def _same(lines: Sequence[str], i1: int, j1: int, offset: int) -> Row:
    text = (Segment(lines[i1 + offset]),)
    return Row("same", Line(i1 + offset + 1, text), Line(j1 + offset + 1, text))


def _changed(before: Sequence[str], after: Sequence[str], i1: int, j1: int) -> Iterator[Row]:
    for left, right in _pairs(before, after):
        if left is not None and right is not None:
            old, new = _inside(before[left], after[right])
            yield Row("changed", Line(i1 + left + 1, old), Line(j1 + right + 1, new))
        elif left is not None:
            yield Row("removed", Line(i1 + left + 1, (Segment(before[left]),)))
        elif right is not None:
            yield Row("added", None, Line(j1 + right + 1, (Segment(after[right]),)))


def _pairs(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of changed lines: similar lines are paired in order, others are alone."""
    if len(before) * len(after) > MAX_PAIRED:
        for index in range(max(len(before), len(after))):
            yield index if index < len(before) else None, index if index < len(after) else None
        return
    word_sets = [set(_WORD.findall(line)) for line in before], [set(_WORD.findall(line)) for line in after]
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in range(len(before) - 1, -1, -1):
        for j in range(len(after) - 1, -1, -1):
            together = best[i + 1][j + 1] + _alike(word_sets[0][i], word_sets[1][j])
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < len(before) or j < len(after):
        if i < len(before) and best[i][j] == best[i + 1][j]:
            yield i, None
            i += 1
        elif j < len(after) and best[i][j] == best[i][j + 1]:
            yield None, j
            j += 1
        else:
            yield i, j
            i, j = i + 1, j + 1


def _alike(left: set[str], right: set[str]) -> float:
    """Return the share of common words; 0 if too small for a pair."""
    share = len(left & right) / (len(left | right) or 1)
    return share if share >= ALIKE else 0.0


def _inside(left: str, right: str) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Mark the different words of two lines, unless the lines are too long."""
    if max(len(left), len(right)) > MAX_WORDWISE:
        return (Segment(left),), (Segment(right),)
    before, after = _PIECE.findall(left), _PIECE.findall(right)
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    tail = next((at for at in range(shorter - head) if before[-1 - at] != after[-1 - at]), shorter - head)
    old, new = [Segment("".join(before[:head]))], [Segment("".join(before[:head]))]
    middle = before[head : len(before) - tail], after[head : len(after) - tail]
    blocks = SequenceMatcher(None, *middle, autojunk=False) if len(middle[0]) * len(middle[1]) <= MAX_PIECES else None
    whole = [("replace", 0, len(middle[0]), 0, len(middle[1]))]
    for tag, i1, i2, j1, j2 in blocks.get_opcodes() if blocks else whole:
        old.append(Segment("".join(middle[0][i1:i2]), tag != "equal"))
        new.append(Segment("".join(middle[1][j1:j2]), tag != "equal"))
    old.append(Segment("".join(before[len(before) - tail :])))
    new.append(Segment("".join(before[len(before) - tail :])))
    return tuple(piece for piece in old if piece.text), tuple(piece for piece in new if piece.text)


def _unified(rows: Sequence[Row]) -> Iterator[Row]:
    pending: list[Row] = []
    for row in rows:
        if row.kind in ("same", "skip"):
            yield from _flush(pending)
            pending = []
            yield row
        else:
            pending.append(row)
    yield from _flush(pending)


def _flush(pending: Sequence[Row]) -> Iterator[Row]:
    for row in pending:
        if row.old is not None:
            yield Row("removed", row.old, None)
    for row in pending:
        if row.new is not None:
            yield Row("added", None, row.new)


_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode

#: the last formatted texts, weighed by characters: every page of a version shows its text
_json_layouts = WeighedCache[str](4_000_000, len)


def laid_out(text: str, *, width: int = 0) -> str:
    """Format a JSON text like `json.dumps` with an indent of 2, in a third of the time.

    `json.dumps` handles each value once per level. What fits into `width` characters stays on one line. Raises
    ValueError if the text isn't JSON, RecursionError if it is nested too deeply.
    """
    return _json_layouts.get((text, width), lambda: _written(json.loads(text), "\n", width))


def laid_out_if_json(text: str) -> str:
    """Format a JSON text; return any other unchanged."""
    try:
        return laid_out(text)
    except (ValueError, RecursionError):
        return text


def _written(value: Any, indent: str, width: int) -> str:
    if isinstance(value, dict) and value:
        inner = f"{indent}  "
        members = []
        for key, item in value.items():
            members.append(f"{_ENCODE(key)}: {_written(item, inner, width)}")
        return _line(members, indent, width, "{ %s }") or f"{{{inner}{f',{inner}'.join(members)}{indent}}}"
    if isinstance(value, list) and value:
        inner = f"{indent}  "
        items = []
        for item in value:
            items.append(_written(item, inner, width))  # noqa: PERF401  a comprehension adds a frame per level
        return _line(items, indent, width, "[%s]") or f"[{inner}{f',{inner}'.join(items)}{indent}]"
    return _ENCODE(value)


def _line(parts: Sequence[str], indent: str, width: int, around: str) -> str:
    """Join the parts on one line; "" if they don't fit."""
    if not width or len(indent) + sum(len(part) + 2 for part in parts) > width or any("\n" in part for part in parts):
        return ""
    return around % ", ".join(parts)
