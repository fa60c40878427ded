"""Ranks of the values of some messages, chosen at random: how large each number and how long each text is, masked.

Minima and maxima are of all messages. Ranks say which values are in one message, so that swapped fields can be found.
"""

from __future__ import annotations

import math
from typing import Any

MOST_ROWS = 1_000  # messages of one schema on a side of a topic
MOST_FIELDS = 40  # of a message
LOTS = 2**61


def lot_of(partition: int, offset: int) -> int:
    """Return a number that is as good as random, and the same for a message in every task and slice."""
    return hash((partition, offset)) % LOTS  # of whole numbers, it is the same in every process


def rank_of(value: Any) -> int | None:
    """Return the rank of a value; None if it has none.

    For a number, ten times its decimal logarithm plus 4,000, with its sign. For a text, its length times 10,000, plus
    its tenths of digits times 100, plus its tenths of capitals. For bytes, their length times 10,000.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if value == 0:
            return 0
        size = math.floor(math.log10(abs(value)) * 10) + 4_000
        return size if value > 0 else -size
    if isinstance(value, str):
        part = value[:100]
        return min(len(value), 99_999) * 10_000 + 100 * _tenths(part, str.isdigit) + _tenths(part, str.isupper)
    return min(len(value), 99_999) * 10_000 if isinstance(value, bytes) else None


def _tenths(text: str, belongs: Any) -> int:
    return sum(map(belongs, text)) * 10 // len(text) if text else 0


class RankedRows:
    """The messages with the smallest lots, each as its partition, its offset and the ranks of its values by path."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, dict[str, int]]] = []
        self._limit = LOTS

    def start(self, place: tuple[int, int]) -> dict[str, int] | None:
        """Return the row of a message for its ranks; None if the message isn't chosen."""
        lot = lot_of(*place)
        if lot >= self._limit:
            return None
        row: dict[str, int] = {}
        self._rows.append((lot, *place, row))
        if len(self._rows) >= 2 * MOST_ROWS:
            self._rows = smallest(self._rows)
            self._limit = self._rows[-1][0]
        return row

    def table(self) -> dict[str, Any] | None:
        """Return the paths, and the rows with the ranks in their order; None with fewer than two paths."""
        rows = smallest(self._rows)
        paths = list(dict.fromkeys(path for row in rows for path in row[3]))
        if len(paths) < 2:
            return None
        return {"paths": paths, "rows": [[*row[1:3], *(row[3].get(path) for path in paths)] for row in rows]}


def smallest(rows: list[Any]) -> list[Any]:
    """Return the rows with the MOST_ROWS smallest lots, which come first in each."""
    return sorted(rows, key=lambda row: row[0])[:MOST_ROWS]
