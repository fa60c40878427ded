"""Runs one scan: of a checkpoint's state, or of topics, slice by slice, with a grouping and a profile of each slice."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from registry.errors import BrokerUnavailable, InvalidSource, ScanInterrupted
from registry.observations import (
    Bound,
    Bounds,
    Observation,
    PartitionRead,
    ScanSpec,
    ScanTotals,
    TopicLost,
    TopicScan,
    TopicTotals,
)
from registry.pipeline import kafka_reader, too_large
from registry.pipeline.framing import Tally, group_messages, raw_mark
from registry.pipeline.kafka_reader import Loss, Piece, broker_error, loss_of, lost_topics
from registry.pipeline.profile import Profiled, Profiler
from registry.pipeline.session import USER_ID, Control, OnProgress, session_for
from registry.pipeline.state_store import scan_state

logger = logging.getLogger(__name__)

MOST_TRIES: Final = 3  # for a slice that can't be read although its topics seem to exist
CLOSING_SECONDS: Final = 30.0  # for merging the slices, even after the deadline


@dataclass
class _ScanProgress:
    """The progress of a scan: what is left, what was lost, and the bound that ended it.

    `kept_away` has the unread pieces of topics whose broker is away, `beyond` those behind messages that are too large,
    which are read once what precedes these is; `tries` counts failures of the current slice. The `last` slice took
    `seconds`. `is_slow` means that a first slice didn't finish in its time.
    """

    rest: list[Piece]
    kept_away: list[Piece] = field(default_factory=list)
    beyond: list[Piece] = field(default_factory=list)
    tries: int = 0
    done: int = 0
    last: int = 0
    seconds: float = 0.0
    is_slow: bool = False
    bound: Bound | None = None
    lost: dict[str, Loss] = field(default_factory=dict)
    gaps: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)

    def note_gaps(self, piece: Sequence[Piece], rows: Sequence[Any]) -> None:
        """Record the offsets without a message at the start of each part of a slice."""
        first: dict[tuple[str, int], int] = {}
        for row in rows:
            partition = (row.topic, row.partition)
            first[partition] = min(row.first_offset, first.get(partition, row.first_offset))
        for part in piece:
            partition = (part.topic, part.range.partition)
            end = min(first.get(partition, part.range.end), part.range.end)
            gaps = self.gaps.setdefault(partition, [])
            if end > part.range.start:
                gaps.append((part.range.start, end))

    def next_size(self, read_bytes: int, bounds: Bounds, control: Control) -> int:
        """Return the size of the next slice in messages: 0 if a bound is reached, 1 if the first slice was too slow."""
        size = kafka_reader.next_size(
            self.done, read_bytes, bounds, last=self.last, seconds=self.seconds, seconds_left=control.seconds_left
        )
        return min(size, 1) if self.is_slow and not self.done else size

    def limit(self, bounds: Bounds, control: Control) -> AbstractContextManager[None]:
        """Limit the time of the next slice. A first one gets half of it, so that a smaller one can follow."""
        if self.done:
            return nullcontext()
        left = control.seconds_left
        return control.within(
            max(2 * bounds.first_seconds, left) if self.is_slow else max(bounds.first_seconds, left / 2)
        )

    def note_slice(self, size: int, seconds: float, rest: list[Piece]) -> None:
        """Record a slice that was read."""
        self.done, self.last, self.seconds, self.rest, self.tries = self.done + size, size, seconds, rest, 0
        self.resume()

    def note_deadline(self, error: ScanInterrupted, size: int, *, is_closed: bool) -> None:
        """End the scan with what was read, or retry with a smaller first slice; raises the error if neither works."""
        if error.details.get("reason") != "deadline":
            raise error
        if self.done:
            self.bound = "deadline"
        elif size > 1 and not is_closed:
            self.is_slow = True
        else:
            error.details["slice"] = size
            raise error

    def skip(self, skipped: Sequence[Piece]) -> None:
        """Read on up to and after these ranges, of which a partition has at most one."""
        for gap in skipped:
            (whole,) = [piece for piece in self.rest if _is_of(piece, gap)]
            before = replace(whole, range=replace(whole.range, end=gap.range.start))
            after = replace(whole, range=replace(whole.range, start=gap.range.end))
            self.rest = [piece for piece in (*self.rest, before) if piece is not whole and piece.size]
            self.beyond += [after] if after.size else []
        self.resume()

    def resume(self) -> None:
        """Go on behind what was skipped: a query reads one range of a partition."""
        for piece in sorted(self.beyond, key=lambda piece: piece.range.start):
            if not any(_is_of(piece, other) for other in self.rest):
                self.beyond.remove(piece)
                self.rest.append(piece)

    @property
    def unread(self) -> list[Piece]:
        """Return what is left, in the order of a partition's offsets."""
        return [*self.rest, *sorted(self.beyond, key=lambda piece: piece.range.start)]

    def lose(self, lost: dict[str, Loss]) -> None:
        """Stop reading these topics."""
        self.lost |= lost
        self.kept_away += [piece for piece in self.unread if piece.topic in lost and lost[piece.topic].may_pass]
        self.rest = [piece for piece in self.rest if piece.topic not in lost]
        self.beyond = [piece for piece in self.beyond if piece.topic not in lost]


def _is_of(one: Piece, other: Piece) -> bool:
    return (one.topic, one.range.partition) == (other.topic, other.range.partition)


def scan_topics(session: SparkSession, spec: TopicScan, control: Control) -> Iterator[Observation]:
    """Observe the messages of the topics' ranges, until they end or a bound is reached.

    A topic that is deleted during the scan or refused is observed as lost; the scan continues without it. If a topic's
    broker goes away, what was read before is observed too. Raises InvalidSource, BrokerUnavailable, ScanInterrupted (if
    not even one message could be read in time), SparkUnavailable, and what the caller's `on_progress` raised.
    """
    started = time.monotonic()
    kafka_reader.check_topics(spec.topics)
    pieces = kafka_reader.pieces(spec.topics)
    tally, profiler = Tally(), Profiler(session, spec, control)
    reading = _ScanProgress([piece for piece in pieces if piece.size])
    _read_slices(session, spec, control, reading=reading, tally=tally, profiler=profiler)
    marks = frozenset((writer.framing, writer.mark) for writer in spec.writers)
    tally.fold_beyond(spec.bounds.max_groups, marks)
    control.allow(CLOSING_SECONDS)
    yield from _read_so_far(pieces, reading, tally)
    yield from tally.observations()
    yield from profiler.observations()
    yield from _totals(spec, reading, tally, round(time.monotonic() - started, 3))


def nothing_to_read(spec: TopicScan) -> list[Observation]:
    """Return the observations of a scan whose ranges are all empty."""
    pieces = kafka_reader.pieces(spec.topics)
    return [*_read_so_far(pieces, _ScanProgress([]), Tally()), *_totals(spec, _ScanProgress([]), Tally(), 0.0)]


def _read_slices(
    session: SparkSession,
    spec: TopicScan,
    control: Control,
    *,
    reading: _ScanProgress,
    tally: Tally,
    profiler: Profiler,
) -> None:
    """Read slices into `tally` and `profiler`; `reading` keeps what is left unread, and the bound that was reached."""
    bounds, total = spec.bounds, kafka_reader.left(reading.rest)
    while reading.rest and not reading.bound:
        size = reading.next_size(tally.total_bytes, bounds, control)
        if size == 0:
            reading.bound = "bytes" if tally.total_bytes >= bounds.max_bytes else "messages"
            return
        piece, after = kafka_reader.cut(reading.rest, size)
        left = control.seconds_left
        try:
            with reading.limit(bounds, control):
                rows, profiled = _read_slice(session, spec, control, piece, f"{reading.done + 1:,}", total, profiler)
        except ScanInterrupted as error:
            reading.note_deadline(error, kafka_reader.left(piece), is_closed=session.client.is_closed)
            continue
        except PySparkException as error:
            try:
                if not too_large.is_exhausted(error):
                    lost = _blamed(session, spec, control, piece, error, reading)
                elif spec.connection.is_one_by_one:
                    lost = _skip_too_large(session, spec, control, piece, reading=reading, profiler=profiler)
                else:  # several messages may be too large together
                    spec, lost = profiler.read_one_by_one(), {}
            except BrokerUnavailable as away:
                if not reading.done:
                    raise
                lost = {unread.topic: Loss(away.message, may_pass=True) for unread in reading.unread}
            except ScanInterrupted as late:
                reading.note_deadline(late, kafka_reader.left(piece), is_closed=session.client.is_closed)
                continue
            reading.lose(lost)
            for topic in (topic for topic, loss in lost.items() if not loss.may_pass):
                tally.forget(topic)  # never report half-read topics: the next scan rereads them
                profiler.forget(topic)
            continue
        for row in rows:
            tally.add(row)
        reading.note_gaps(piece, rows)
        profiler.add(profiled)
        reading.note_slice(kafka_reader.left(piece), left - control.seconds_left, after)


def _skip_too_large(
    session: SparkSession,
    spec: TopicScan,
    control: Control,
    slice_: Sequence[Piece],
    *,
    reading: _ScanProgress,
    profiler: Profiler,
) -> dict[str, Loss]:
    """Skip what exhausts Spark's memory. If everything can be read now, return the topics that are given up."""

    def is_readable(some: Sequence[Piece]) -> bool:
        messages = kafka_reader.read_messages(session, spec.connection, some)
        grouped = group_messages(messages, spec.writers, spec.bounds.max_groups)
        try:
            control.run("looking for messages that are too large", grouped.collect)
        except PySparkException as refused:
            if not too_large.is_exhausted(refused):
                topics = [part.topic for part in some]
                raise broker_error(refused, spec.connection.bootstrap, topics) or refused from refused
            return False
        return True

    skipped = too_large.find_too_large(slice_, is_readable)
    if not skipped:  # another scan may have used the memory
        reading.tries += 1
        return {} if reading.tries < MOST_TRIES else {part.topic: too_large.LOSS for part in slice_}
    for gap in skipped:
        logger.warning("%s:%d@%d is larger than Spark's memory", gap.topic, gap.range.partition, gap.range.start)
    profiler.add(Profiled(lines=too_large.lines(skipped, int(time.time() * 1000))))
    reading.skip(skipped)
    return {}


def _read_slice(
    session: SparkSession,
    spec: TopicScan,
    control: Control,
    piece: Sequence[Piece],
    first: str,
    total: int,
    profiler: Profiler,
) -> tuple[list[Any], Any]:
    """Read one slice: its groups, and its profile if requested; neither counts until both are complete."""
    topics = sorted({part.topic for part in piece})
    shown = topics[0] if len(topics) == 1 else f"{len(topics)} topics"
    last = int(first.replace(",", "")) + kafka_reader.left(piece) - 1
    phase = f"reading messages {first} to {last:,} of {total:,} from {shown}"
    messages = kafka_reader.read_messages(session, spec.connection, piece)
    grouped = group_messages(messages, spec.writers, spec.bounds.max_groups)
    rows: list[Any] = control.run(phase, grouped.collect)
    return rows, profiler.profile(piece, rows)


def _blamed(
    session: SparkSession,
    spec: TopicScan,
    control: Control,
    piece: Sequence[Piece],
    error: PySparkException,
    reading: _ScanProgress,
) -> dict[str, Loss]:
    """Return the topics that made the slice fail; empty if it should be read again.

    Raises BrokerUnavailable, or the error again if no topic is the cause.
    """

    def readable(some: Sequence[Piece]) -> PySparkException | None:
        try:
            messages = kafka_reader.read_messages(session, spec.connection, some)
            control.run("looking for topics that can't be read", messages.select("offset").limit(1).collect)
        except PySparkException as refused:
            return refused
        return None

    lost = lost_topics(error, piece, readable)
    lasting = {topic: loss for topic, loss in lost.items() if not loss.may_pass}
    if lasting:
        return lasting
    loss = loss_of(error)
    if loss is None:
        whole = broker_error(error, spec.connection.bootstrap, sorted({part.topic for part in piece}))
        raise whole or error from error
    reading.tries += 1
    suspected = [part for part in piece if part.topic in lost] or list(piece)
    if reading.tries < MOST_TRIES and readable(suspected) is None:
        return {}  # what failed can be read now: retry the slice
    return lost or {part.topic: loss._replace(may_pass=True) for part in piece}


def _read_so_far(pieces: Sequence[Piece], reading: _ScanProgress, tally: Tally) -> Iterator[Observation]:
    """Yield how far each partition was read, without lost topics."""
    left = (*reading.unread, *reading.kept_away)
    stopped = {(piece.topic, piece.range.partition): piece.range.start for piece in reversed(left)}
    for piece in pieces:
        part, partition = piece.range, (piece.topic, piece.range.partition)
        count = tally.partitions.get(partition, 0)
        if piece.topic in reading.lost and not _counts(piece.topic, reading, tally):
            continue
        end = stopped.get(partition, part.end)
        gaps = tuple(reading.gaps.get(partition, ()))
        yield PartitionRead(piece.topic, part.partition, part.start, end, part.low, part.high, count, gaps)


def _counts(topic: str, reading: _ScanProgress, tally: Tally) -> bool:
    """Return whether the messages read of a lost topic count."""
    return reading.lost[topic].may_pass and tally.messages.get(topic, 0) > 0


def _totals(spec: TopicScan, reading: _ScanProgress, tally: Tally, seconds: float) -> Iterator[Observation]:
    unread = {piece.topic for piece in reading.unread}
    folded = {topic for topic, _ in tally.folded}
    reached: Bound | None = reading.bound or ("groups" if folded else None)
    for read in spec.topics:
        bound: Bound | None = reading.bound if read.topic in unread else "groups" if read.topic in folded else None
        if read.topic in reading.lost:
            yield TopicLost(read.topic, *reading.lost[read.topic])
            if not _counts(read.topic, reading, tally):
                continue
            bound = "broker"
        yield TopicTotals(read.topic, tally.messages.get(read.topic, 0), tally.bytes.get(read.topic, 0), bound)
    yield ScanTotals(len(spec.topics), sum(tally.messages.values()), tally.total_bytes, reached, seconds)


def run(
    spec: ScanSpec,
    *,
    remote: str,
    deadline: float | None = None,
    on_progress: OnProgress | None = None,
    tag: str | None = None,
    session_id: str | None = None,
    user_id: str = USER_ID,
) -> list[Observation]:
    """Execute `spec` on the Spark Connect server at `remote` (`sc://…`) and return all observations.

    `deadline` is in seconds (None: the specification's own). `on_progress(done, total, phase)` counts Spark tasks and
    may be called from another thread; an exception in it ends the scan and is raised from here. With `tag`,
    `session_id` (a UUID) and `user_id`, another process can end the scan through `interrupt`. The session with that id
    is kept for the next scan with it (`session_for`). Raises InvalidSource, BrokerUnavailable, SparkUnavailable and
    ScanInterrupted.
    """
    if isinstance(spec, TopicScan):
        kafka_reader.check_topics(spec.topics)
        kafka_reader.connection_options(spec.connection)
        _check_marks(spec)
        if kafka_reader.left(kafka_reader.pieces(spec.topics)) == 0:
            return nothing_to_read(spec)
    seconds = deadline if deadline is not None else spec.bounds.deadline_seconds
    with (
        session_for(remote, session_id, user_id) as session,
        Control(session, seconds=seconds, tag=tag, on_progress=on_progress) as control,
    ):
        if isinstance(spec, TopicScan):
            return list(scan_topics(session, spec, control))
        return list(scan_state(session, spec, control))


def _check_marks(spec: TopicScan) -> None:
    for writer in spec.writers:
        try:
            raw_mark(writer.framing, writer.mark)
        except ValueError as error:
            raise InvalidSource(f"{writer.mark[:80]!r} is not a mark of a schema: {error}") from error
