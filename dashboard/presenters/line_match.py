"""Which lines of two texts are the same line: patience matching, in bounded time whatever the texts.

Lines that occur once in both texts are anchors; between two anchors the search goes on with what is unique there.
What has no anchor is matched exactly only while small (`BUDGET`): beyond, it counts as replaced, which is true if
not the shortest way to say it. Schema texts have such anchors everywhere (names), and lines like "}," mislead nobody.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

BUDGET = 160_000
"""Products of line counts that one comparison may match without anchors; about a third of a second at worst."""

Span = tuple[int, int, int, int]


def match_lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs (line of `before`, line of `after`) of equal lines, both rising; lines count from 0."""
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
    """Stretches in order: (equal, from, to, from, to), the lines of `before` and of `after`, ends exclusive."""
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
    """The longest rising row of lines that occur once on each side of the span."""
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
