"""Replay: decode real messages of a topic with a proposed schema as the reader, in Spark's Python workers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession

from registry.errors import BrokerUnavailable, InvalidSource
from registry.formats.base import MAX_BODY
from registry.formats.replay_tally import Key, ReplaySchema, ReplayTally, merged
from registry.observations import Framing, KafkaConnection, Side, TopicRead
from registry.pipeline import kafka_reader, replay_worker
from registry.pipeline.framing import body, raw_mark, with_framing
from registry.pipeline.kafka_reader import broker_error, loss_of
from registry.pipeline.replay_worker import archive_of_engines, counting
from registry.pipeline.session import Control, OnProgress, kept_session
from registry.pipeline.too_large import LOSS, is_exhausted

MAX_MESSAGES: Final = 20_000
#: rows per batch of a worker, each with a body of at most MAX_BODY
_BATCH_ROWS: Final = 128

# The function is sent to the workers with the query: a remote server needs no copy of this package.
cloudpickle.register_pickle_by_value(replay_worker)


@dataclass(frozen=True)
class TopicReplay:
    """The ranges of a topic to read (at most MAX_MESSAGES offsets), the writer schemas and the reader schema.

    Each worker stops decoding after `seconds`. The replay ends after `deadline_seconds`: the first query of a server
    that has just started takes half a minute.
    """

    connection: KafkaConnection
    read: TopicRead
    side: Side
    reader: ReplaySchema
    writers: Mapping[Key, ReplaySchema]
    seconds: float = 20.0
    deadline_seconds: float = 90.0


@dataclass(frozen=True)
class Replayed:
    """The result of a replay, and its duration in seconds."""

    tally: ReplayTally
    seconds: float


def replay(
    spec: TopicReplay, *, remote: str, on_progress: OnProgress | None = None, tag: str | None = None
) -> Replayed:
    """Read the messages with the reader schema, on the Spark Connect server at `remote`.

    Raises InvalidSource, BrokerUnavailable, SparkUnavailable, and ScanInterrupted at the deadline.
    """
    began = time.monotonic()
    kafka_reader.check_topics([spec.read])
    try:
        _by_raw_mark(spec.writers)
    except ValueError as error:
        raise InvalidSource(f"The mark of a writer is invalid: {error}") from error
    pieces = [piece for piece in kafka_reader.pieces([spec.read]) if piece.size]
    if kafka_reader.left(pieces) > MAX_MESSAGES:
        raise InvalidSource(f"A replay reads at most {MAX_MESSAGES:,} messages, not {kafka_reader.left(pieces):,}.")
    if not pieces:
        return Replayed(ReplayTally(), 0.0)
    try:
        with (
            kept_session(remote) as session,
            Control(session, seconds=spec.deadline_seconds, tag=tag, on_progress=on_progress) as control,
        ):
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_BATCH_ROWS))
            rows = control.run(f"replaying {spec.read.topic}", lambda: _collect(session, spec, pieces))
    except PySparkException as error:
        raise _kafka_error(error, spec) or error from error
    return Replayed(merged([row.tally for row in rows]), round(time.monotonic() - began, 3))


def _kafka_error(error: PySparkException, spec: TopicReplay) -> Exception | None:
    if is_exhausted(error):
        return InvalidSource(f"{spec.read.topic} can't be read: {LOSS.reason}")
    loss = loss_of(error)
    if loss is not None and loss.may_pass:
        return BrokerUnavailable(f"{spec.read.topic} can't be read: {loss.reason}; if it is still there, try again")
    if loss is not None:
        return InvalidSource(f"{spec.read.topic} can't be read: {loss.reason}")
    return broker_error(error, spec.connection.bootstrap, [spec.read.topic])


def _collect(session: SparkSession, spec: TopicReplay, pieces: list[kafka_reader.Piece]) -> list[Any]:
    side = spec.side
    messages = kafka_reader.read_messages(session, spec.connection, pieces)
    framed = with_framing(messages, "partition", "offset", "headers", side)
    bounded = framed.select(
        "partition",
        "offset",
        f.expr(f"{side}_class").alias("class"),
        f.expr(f"{side}_mark").alias("mark"),
        f.expr(f"coalesce(length({body(side)}), 0)").alias("size"),
        f.expr(f"CASE WHEN length({body(side)}) <= {MAX_BODY} THEN {body(side)} END").alias("body"),
        f.expr(
            f"CASE WHEN {side}_indexes IS NOT NULL "
            f"THEN get(filter(headers, h -> h.key = '__{side}_schema_id'), 0).value END"
        ).alias("header"),
    )
    reader = (spec.reader.kind, spec.reader.text)
    count = counting(archive_of_engines(), reader, _by_raw_mark(spec.writers), spec.seconds)
    return list(bounded.mapInArrow(count, "tally string").collect())


def _by_raw_mark(writers: Mapping[Key, ReplaySchema]) -> dict[tuple[str, bytes], tuple[str, str, str]]:
    """Return the writers by framing and by the mark's bytes in a message."""
    return {
        (framing, raw_mark(cast("Framing", framing), mark)): (mark, schema.kind, schema.text)
        for (framing, mark), schema in writers.items()
    }
