"""Converts evidence that earlier releases stored to the current form. Evidence in another form stays unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

from registry.drift.evidence.value_types import FailureRow, mismatch


class FailureRows(TypedDict):
    """The first messages of a partition that couldn't be read, and why: of the first of them."""

    partition: int
    offsets: list[int]
    reason: str


def _failures(stored: object) -> object:
    """A row a message, with the reason for the first of a partition alone: of the others it wasn't kept."""
    if not isinstance(stored, list):
        return stored
    rows: list[object] = []
    for row in stored:
        if mismatch(row, FailureRows):
            rows.append(row)
            continue
        for number, offset in enumerate(row["offsets"]):
            reason = {"reason": row["reason"]} if number == 0 else {}
            rows.append({"partition": row["partition"], "offset": offset, **reason})
    return rows


#: the type that a form gives a field → how it is made of what earlier releases kept
RENEWED: Final[Mapping[Any, Callable[[object], object]]] = {list[FailureRow]: _failures}


def without_false_noughts(rule: str, stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """The evidence without a number that was kept as 0 because nobody had counted."""
    if rule == "SCHEMA_NOT_DECODED" and stored.get("messages") == 0:
        return {name: value for name, value in stored.items() if name != "messages"}
    return stored
