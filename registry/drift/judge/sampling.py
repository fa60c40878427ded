"""Samples as evidence: what Spark masked of some of the messages that a finding is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from registry.drift.judge.reading import Part, Reading, parts_of
from registry.observations import Side

MOST: Final = 3
LONGEST: Final = 1_000  # characters of one
#: about bytes that nobody could read: their offsets are told, and nothing of what they hold
OFFSETS_ALONE: Final = frozenset(
    {"UNFRAMED_DATA", "FRAME_CUT", "UNDECODABLE", "SCHEMA_VIOLATED", "MESSAGE_NOT_READ", "NOT_JSON", "FRAMED_TWICE"}
)


def samples_of(rule: str, reading: Reading, side: Side | None, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """At most MOST of the finding's messages, masked, the first ones first.

    A sample is one of its messages if its schema is what the parts are of and it lies in one of them. Revealed ones are
    never kept.
    """
    if rule in OFFSETS_ALONE or not parts:
        return []
    marks = _marks_of(reading, side, parts)
    chosen = [
        each
        for each in reading.samples.get(side, ())
        if not each.revealed
        and (each.framing or "", each.mark) in marks
        and any(
            part.partition == each.partition and part.first_offset <= each.offset <= part.last_offset for part in parts
        )
    ]
    chosen.sort(key=lambda each: (each.partition, each.offset))
    return [
        {"partition": each.partition, "offset": each.offset, "time": each.time, "value": _cut(each.text)}
        for each in chosen[:MOST]
    ]


def _marks_of(reading: Reading, side: Side | None, parts: Sequence[Part]) -> set[tuple[str, str]]:
    """The marks that the parts are of; bytes without one have an empty one."""
    wanted = frozenset(parts)
    marks: set[tuple[str, str]] = {
        mark for (of, mark), own in reading.framed.items() if of == side and not wanted.isdisjoint(own)
    }
    if not wanted.isdisjoint(parts_of(reading.unframed.get(side, ()))):
        marks.add(("", ""))
    return marks


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
