"""Maximum matching of two sides, as few augmenting paths as needed; without recursion."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


def maximum_matching(cells: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The most pairs of a row and a column that can be taken at once, as row → column; each is used once."""
    columns_of: dict[int, list[int]] = {}
    for row, column in cells:
        columns_of.setdefault(row, []).append(column)
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for row, columns in columns_of.items():
        free = next((column for column in columns if column not in row_of), None)
        if free is not None:
            row_of[free], column_of[row] = row, free
    for row in columns_of:
        if row not in column_of:
            _augment(row, columns_of, row_of, column_of)
    return column_of


def _augment(start: int, columns_of: dict[int, list[int]], row_of: dict[int, int], column_of: dict[int, int]) -> None:
    """Gives `start` a column by moving others along the shortest path, if there is one."""
    came_from: dict[int, int] = {}
    todo = deque([start])
    while todo:
        row = todo.popleft()
        for column in columns_of.get(row, ()):
            if column in came_from:
                continue
            came_from[column] = row
            if column not in row_of:
                _shift(column, came_from, row_of, column_of)
                return
            todo.append(row_of[column])


def _shift(end: int, came_from: dict[int, int], row_of: dict[int, int], column_of: dict[int, int]) -> None:
    """Takes the path that ends at a free column, from its end to its start."""
    column: int | None = end
    while column is not None:
        taker = came_from[column]
        previous = column_of.get(taker)
        row_of[column], column_of[taker] = taker, column
        column = previous
