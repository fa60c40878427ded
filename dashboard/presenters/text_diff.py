"""Two texts compared line by line, ready to be drawn unified or side by side."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from dashboard.presenters.line_match import changes
from registry.sandbox.cache import WeighedCache

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
    """A piece of a line; `changed` is drawn stronger."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One side's line: its number from 1 and its pieces."""

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
    """A whole comparison: the rows side by side, and the same rows unified (removed lines before added ones).

    `hidden_rows` are the unified lines that aren't drawn, besides those that are skipped for being far from a change.
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


#: what was compared last, by the rows that are drawn
_kept = WeighedCache[TextDiff](20_000, lambda diff: len(diff.rows) + 1)


def lines_of(text: str) -> list[str]:
    """The lines of a text as parsers count them: broken at newlines alone, not at what Unicode calls a line's end."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def text_diff(old: str, new: str, *, context: int = CONTEXT, limit: int = MAX_ROWS) -> TextDiff:
    """The difference of two texts, `context` unchanged lines around each change, at most `limit` rows."""
    before, after = lines_of(old), lines_of(new)
    rows: list[Row] = []
    added = removed = kept = 0
    blocks = list(changes(before, after))
    for index, (equal, i1, i2, j1, j2) in enumerate(blocks):
        drawn: Iterator[Row]
        if equal:
            head, tail = 0 if index == 0 else context, 0 if index == len(blocks) - 1 else context
            skipped = _skipped(i2 - i1, head, tail)
            kept += i2 - i1 - skipped
            drawn = _equal(before, i1, i2, j1, head, skipped)
        else:
            removed += i2 - i1
            added += j2 - j1
            drawn = _changed(before[i1:i2], after[j1:j2], i1, j1)
        if len(rows) < limit:  # what isn't drawn isn't compared word by word
            rows.extend(islice(drawn, limit - len(rows)))
    unified = tuple(_unified(rows))
    hidden = added + removed + kept - sum(row.kind != "skip" for row in unified)
    return TextDiff(rows=tuple(rows), unified=unified, added=added, removed=removed, hidden_rows=hidden)


def laid_out_diff(old: str, new: str, lay_out: Callable[[str], str], *, limit: int = MAX_ROWS) -> TextDiff:
    """The difference of two texts as `lay_out`, a function of a module, writes them; texts compared before aren't again."""
    key = (_digest(old), _digest(new), lay_out, limit)
    return _kept.get(key, lambda: text_diff(lay_out(old), lay_out(new), limit=limit))


def differing_lines(old: str, new: str) -> int:
    """How many lines are removed and added from one text to the other."""
    spans = changes(lines_of(old), lines_of(new))
    return sum(i2 - i1 + j2 - j1 for equal, i1, i2, j1, j2 in spans if not equal)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _skipped(count: int, head: int, tail: int) -> int:
    """How many of so many equal lines aren't shown: none where that would be a single one."""
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
    """Which changed line became which: alike lines face each other in order, the others stand alone."""
    if len(before) * len(after) > MAX_PAIRED:
        for index in range(max(len(before), len(after))):
            yield index if index < len(before) else None, index if index < len(after) else None
        return
    words = [set(_WORD.findall(line)) for line in before], [set(_WORD.findall(line)) for line in after]
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in range(len(before) - 1, -1, -1):
        for j in range(len(after) - 1, -1, -1):
            together = best[i + 1][j + 1] + _alike(words[0][i], words[1][j])
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
    """The share of words in common, 0 where too few to call it the same line."""
    share = len(left & right) / (len(left | right) or 1)
    return share if share >= ALIKE else 0.0


def _inside(left: str, right: str) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Two lines with the words that differ marked, where the lines aren't too long for that."""
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
