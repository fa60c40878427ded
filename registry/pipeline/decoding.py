"""The pass through Python, kept going: a message that ends its worker's process is found, blamed, and left out.

What is known to be dangerous is refused before it is decoded (`workers.avro_extent`). Should a message end the process
all the same, the messages are halved until it stands alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from registry.observations import Framing, Side, TopicScan
from registry.pipeline.bodies import Marks, Wanted, parsed, read_bodies, read_marks
from registry.pipeline.control import Control
from registry.pipeline.framing import SIDES
from registry.pipeline.workers.reading import Plan

logger = logging.getLogger(__name__)

#: what Spark says of a task whose Python process ended, by itself or by the operating system
_DIED: Final = ("Python worker exited unexpectedly", "ExecutorLostFailure", "Python worker failed to connect back")
#: messages of one schema on a topic's side that may end a process before the others aren't decoded any more
MOST_DEATHS: Final = 3
ENDED: Final = "decoding it ended the process that did"
GIVEN_UP: Final = f"decoding ended the process that did, {MOST_DEATHS} times; no further message of it is decoded"
#: topic, side, framing and raw mark; both empty for JSON without a schema
_Group = tuple[str, Side, str, bytes]


class Decoding:
    """Decodes bodies of one scan; `writers` are kind and text by framing and raw mark."""

    def __init__(
        self,
        session: SparkSession,
        spec: TopicScan,
        control: Control,
        writers: Mapping[tuple[Framing, bytes], tuple[str, str]],
    ) -> None:
        self._session, self._spec, self._control, self._writers = session, spec, control, writers
        self._deaths: Counter[_Group] = Counter()

    def lines(self, wanted: Sequence[Wanted]) -> list[Any]:
        """The lines of `workers.reading` about all that is wanted, with those of messages that ended a process."""
        left = [part for each in wanted if (part := self._without_deadly(each)).pieces]
        try:
            return self._decode(left)
        except PySparkException as error:
            if not any(mark in str(error) for mark in _DIED):
                raise
            logger.warning("a Spark worker's Python process ended; looking for the message in %d", _size(left))
        halves = _halves(left)
        if halves is None:
            return self._blame(left)
        return [line for half in halves for line in self.lines(half)]

    def _decode(self, wanted: Sequence[Wanted]) -> list[Any]:
        messages = read_bodies(self._session, self._spec.connection, wanted, self._plan(wanted))
        return parsed(self._control.run("decoding messages", messages.collect)) if messages is not None else []

    def _plan(self, wanted: Sequence[Wanted]) -> Plan:
        profile = self._spec.profile
        keys = {
            (framing, raw)
            for each in wanted
            for marks in each.marks.values()
            for framing, raws in marks.items()
            for raw in raws
        }
        writers: dict[tuple[str, bytes], tuple[str, str]] = {key: self._writers[key] for key in keys}
        return Plan(writers, profile.fields, profile.changes, profile.samples, profile.reveal)

    def _blame(self, wanted: Sequence[Wanted]) -> list[Any]:
        """The lines of a single message that ended the process: of the side that did it, and of the other one."""
        found: list[Any] = []
        for each in wanted:
            for side in SIDES:
                alone = _of_side(each, side)
                if not alone.marks and not alone.plain:
                    continue
                try:
                    found += self._decode([alone])
                except PySparkException as error:
                    if not any(mark in str(error) for mark in _DIED):
                        raise
                    found += self._blamed(alone, side)
        return found

    def _blamed(self, wanted: Wanted, side: Side) -> Iterator[Any]:
        query = read_marks(self._session, self._spec.connection, wanted)
        for row in self._control.run("looking for what ended a process", query.collect):
            raw = row[f"{side}_mark"]
            framing = row[f"{side}_class"] if raw is not None else ""
            group = (row.topic, side, framing, bytes(raw or b""))
            self._deaths[group] += 1
            logger.warning(
                "decoding the %s at %s:%d@%d ended its process", side, *(row.topic, row.partition, row.offset)
            )
            span = [1, row.size, row.offset, row.offset, row.time, row.time]
            key = [row.topic, side, row.partition, framing, group[3].hex(), "not_read"]
            yield ["undecodable", key, {"span": span, "offsets": [[row.offset, ENDED]]}]
            if self._deaths[group] == MOST_DEATHS:
                if framing:
                    yield ["unusable", [framing, group[3].hex()], GIVEN_UP]
                logger.warning("%s: %s", group[:3], GIVEN_UP)

    def _without_deadly(self, wanted: Wanted) -> Wanted:
        """What is wanted but for the schemas of which too many messages ended the process."""
        deadly = {group for group, deaths in self._deaths.items() if deaths >= MOST_DEATHS}
        if not deadly:
            return wanted
        marks: Marks = {
            (topic, side): {
                framing: [raw for raw in raws if (topic, side, framing, raw) not in deadly]
                for framing, raws in by_framing.items()
            }
            for (topic, side), by_framing in wanted.marks.items()
        }
        plain = frozenset((topic, side) for topic, side in wanted.plain if (topic, side, "", b"") not in deadly)
        return replace(wanted, marks=marks, plain=plain)


def _size(wanted: Sequence[Wanted]) -> int:
    return sum(piece.size for each in wanted for piece in each.pieces)


def _of_side(wanted: Wanted, side: Side) -> Wanted:
    marks = {place: some for place, some in wanted.marks.items() if place[1] == side and any(some.values())}
    return replace(wanted, marks=marks, plain=frozenset(place for place in wanted.plain if place[1] == side))


def _halves(wanted: Sequence[Wanted]) -> tuple[list[Wanted], list[Wanted]] | None:
    """The messages in two halves; None for a single one."""
    total = _size(wanted)
    if total < 2:
        return None
    first: list[Wanted] = []
    second: list[Wanted] = []
    room = total // 2
    for each in wanted:
        before, after = [], []
        for piece in each.pieces:
            taken = min(piece.size, room)
            room -= taken
            middle = piece.range.start + taken
            if taken:
                before.append(replace(piece, range=replace(piece.range, end=middle)))
            if taken < piece.size:
                after.append(replace(piece, range=replace(piece.range, start=middle)))
        for half, pieces in ((first, before), (second, after)):
            if pieces:
                half.append(replace(each, pieces=tuple(pieces)))
    return first, second
