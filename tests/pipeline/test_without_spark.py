"""What the pipeline decides without Spark: slices, addresses, connection options, wrapped schemas, reasons for unreadable state."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from registry.drift.scan.persistence import LARGEST_FIRST, first_slice_after
from registry.errors import InvalidSource, ScanInterrupted, SparkUnavailable
from registry.observations import (
    FIRST_SLICE,
    Bounds,
    Framing,
    KafkaConnection,
    PartitionRange,
    PartitionRead,
    ScanTotals,
    TopicRead,
    TopicScan,
    TopicTotals,
    WriterSchema,
)
from registry.pipeline import kafka_reader, probe_remote, run
from registry.pipeline.avro_schemas import SchemaNotUsable, bare
from registry.pipeline.framing import MOST_HOURS, Tally, newest_hours
from registry.pipeline.kafka_reader import check_topic, check_topics, connection_options
from registry.pipeline.profile_result import LONGEST_PATH, short_path
from registry.pipeline.session import parse_remote
from registry.pipeline.state_store import CLIENT_NEEDED, why_unreadable
from tests.waiting import ends_soon


def ranges(*spans: tuple[int, int]) -> list[PartitionRange]:
    return [PartitionRange(number, start, end, 0, 10**9) for number, (start, end) in enumerate(spans)]


def pieces(*spans: tuple[int, int]) -> list[kafka_reader.Piece]:
    """Of two topics by turns."""
    return [kafka_reader.Piece(f"t{part.partition % 2}", part) for part in ranges(*spans)]


def places(some: list[kafka_reader.Piece]) -> list[tuple[str, int, int]]:
    return [
        (piece.topic, piece.range.partition, o) for piece in some for o in range(piece.range.start, piece.range.end)
    ]


def test_slices_cover_everything_once_whatever_their_size() -> None:
    all_pieces = pieces((0, 7), (100, 100), (5, 1_000), (0, 1))
    for size in (1, 2, 3, 10, 500, 5_000):
        rest, read, rounds = [part for part in all_pieces if part.size], [], 0
        while rest:
            piece, rest = kafka_reader.cut(rest, size)
            assert 0 < kafka_reader.left(piece) <= size
            read += places(piece)
            rounds += 1
        assert sorted(read) == sorted(places(all_pieces))
        assert rounds == -(-1_003 // size)


@pytest.mark.parametrize(
    ("sizes", "room", "shares"),
    [
        ([600_000, 450, 450], 3_000, [2_100, 450, 450]),
        ([450, 600_000, 700_000], 3_000, [450, 1_275, 1_275]),
        ([10, 10, 10], 100, [10, 10, 10]),
        ([9, 9, 9], 2, [1, 1, 0]),
        ([], 5, []),
    ],
)
def test_a_backlog_leaves_the_others_their_share(sizes: list[int], room: int, shares: list[int]) -> None:
    assert kafka_reader.even_shares(sizes, room) == shares


def test_slices_stay_within_both_bounds() -> None:
    assert kafka_reader.next_size(0, 0, Bounds(1_000_000, 10**9)) == FIRST_SLICE
    assert kafka_reader.next_size(0, 0, Bounds(10, 10**9)) == 10
    assert kafka_reader.next_size(0, 0, Bounds(first_slice=700)) == 700
    fast = {"last": 50_000, "seconds": 0.5, "seconds_left": 300.0}
    assert kafka_reader.next_size(50_000, 5_000_000, Bounds(1_000_000, 10**12), **fast) == 950_000
    assert kafka_reader.next_size(50_000, 5_000_000, Bounds(1_000_000, 6_000_000), **fast) == 10_001
    assert kafka_reader.next_size(50_000, 5_000_000, Bounds(50_000, 10**12), **fast) == 0
    assert kafka_reader.next_size(50_000, 5_000_000, Bounds(10**9, 5_000_000), **fast) == 0


def test_a_slice_takes_half_of_the_time_that_is_left() -> None:
    size = partial(kafka_reader.next_size, 50_000, 5_000_000, Bounds(10**9, 10**15))
    assert size(last=1_000, seconds=2.0, seconds_left=100.0) == 25_000
    assert size(last=1_000, seconds=2.0, seconds_left=0.1) == kafka_reader.SMALLEST_SLICE, "smaller ones aren't faster"
    assert size(last=1, seconds=20.0, seconds_left=200.0) == 10, "a single message is mostly the cost of a query"
    assert size(last=1_000_000, seconds=1.0, seconds_left=1e6) == kafka_reader.LARGEST_SLICE


class Clock:
    """A control whose time passes by what slices cost: seconds for each, and for each message."""

    def __init__(self, seconds: float, each: float, message: float) -> None:
        self.seconds_left, self.each, self.message = seconds, each, message
        self.inner: float | None = None

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        self.inner = seconds
        try:
            yield
        finally:
            self.inner = None

    def read(self, size: int) -> None:
        """Raises at the deadline."""
        cost = self.each + size * self.message
        allowed = self.seconds_left if self.inner is None else self.inner
        self.seconds_left -= min(cost, max(0.0, allowed))
        if cost > allowed:
            raise ScanInterrupted("too late", reason="deadline")


@pytest.mark.requirement("CARD-3")
@given(
    deadline=st.integers(5, 1_000),
    each=st.floats(0.1, 20),
    message=st.floats(1e-6, 9),
    first=st.integers(1, LARGEST_FIRST),
    messages=st.integers(1, 3_000),
)
@settings(max_examples=300, deadline=None)
def test_every_scan_reads_something_whatever_messages_cost(
    deadline: int, each: float, message: float, first: int, messages: int
) -> None:
    """One message takes up to 29 s here: less than the 30 s that a first slice always has."""
    position, scans = 0, 0
    while position < messages and scans < 30:
        clock, before = Clock(deadline, each, message), position
        done, bound = slices(clock, Bounds(first_slice=first, deadline_seconds=deadline), position, messages)
        position, scans = position + done, scans + 1
        assert position > before, f"scan {scans} read nothing, beginning with {first}"
        assert bound == (None if position == messages else "deadline")
        assert clock.seconds_left >= min(0, deadline / 2 - 60), "and hardly takes longer than it may"
        read = {"messages": done, "bound_reached": bound, "seconds": deadline - clock.seconds_left}
        first = first_slice_after(first, read, deadline)
        assert 1 <= first <= LARGEST_FIRST


def slices(clock: Clock, bounds: Bounds, start: int, end: int) -> tuple[int, str | None]:
    """What the real loop over slices reads by the clock, and the bound that it reached."""
    module = import_module("registry.pipeline.run")  # the package has a function of that name
    reading = module._ScanProgress([kafka_reader.Piece("t", PartitionRange(0, start, end, 0, end))])

    def read(*args: Any) -> tuple[list[Any], None]:
        clock.read(kafka_reader.left(args[3]))
        return [], None

    session, profiler = SimpleNamespace(client=SimpleNamespace(is_closed=False)), SimpleNamespace(add=lambda _: None)
    with patch.object(module, "_read_slice", read):
        spec = TopicScan(KafkaConnection("b:1"), (), bounds=bounds)
        module._read_slices(session, spec, clock, reading=reading, tally=Tally(), profiler=profiler)
    return reading.done, reading.bound


def test_ranges_are_clamped_to_the_watermarks() -> None:
    ranges = [PartitionRange(0, 0, 50, 10, 40), PartitionRange(1, 60, 90, 0, 40), PartitionRange(2, 5, 5, 0, 9)]
    assert [(part.start, part.end) for part in kafka_reader.clamp(ranges)] == [(10, 40), (40, 40), (5, 5)]


def test_a_scan_of_nothing_needs_no_spark() -> None:
    read = TopicRead("orders", (PartitionRange(0, 9, 9, 0, 9),))
    assert run(TopicScan(KafkaConnection("127.0.0.1:1"), (read,)), remote="sc://127.0.0.1:1") == [
        PartitionRead("orders", 0, 9, 9, 0, 9, 0),
        TopicTotals("orders", 0, 0, None),
        ScanTotals(1, 0, 0, None, 0.0),
    ]


@pytest.mark.parametrize(("framing", "mark"), [("id", "x"), ("id", "-1"), ("id", str(2**32)), ("guid", "7")])
def test_what_is_no_mark_is_refused(framing: Framing, mark: str) -> None:
    spec = TopicScan(KafkaConnection("127.0.0.1:1"), (), (WriterSchema(framing, mark, "AVRO", '"int"'),))
    with pytest.raises(InvalidSource, match="not a mark of a schema"):
        run(spec, remote="sc://127.0.0.1:1")


def test_a_topic_is_named_once() -> None:
    reads = [TopicRead("orders", ()), TopicRead("orders", ())]
    with pytest.raises(InvalidSource, match="twice"):
        check_topics(reads)


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("sc://spark.example.com", "sc://spark.example.com:15002"),
        ("sc://127.0.0.1:1234/;token=abc", "sc://localhost:1234/;token=abc"),
        ("sc://127.0.0.1:1234", "sc://127.0.0.1:1234"),
        ("sc://10.0.0.7:1234/;token=abc;use_ssl=true", "sc://10.0.0.7:1234/;token=abc;use_ssl=true"),
        ("sc://127.0.0.1:1234/;use_ssl=true;token=abc", "sc://127.0.0.1:1234/;use_ssl=true;token=abc"),
    ],
)
def test_addresses(remote: str, url: str) -> None:
    assert parse_remote(remote).url() == url
    assert "abc" not in parse_remote(remote).shown


@pytest.mark.parametrize(
    "remote", ["", "http://x:1", "sc://", "sc://:15002", "sc://h:0", "sc://h:99999", "sc://h:1/;token"]
)
def test_what_is_no_address_is_refused(remote: str) -> None:
    with pytest.raises(InvalidSource):
        parse_remote(remote)


def test_no_server_is_said_at_once_and_without_the_token() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        remote = f"sc://127.0.0.1:{listener.getsockname()[1]}/;token=geheim"
    with ends_soon(30):
        with pytest.raises(SparkUnavailable, match="no Spark Connect server answers") as caught:
            probe_remote(remote)
    assert "geheim" not in caught.value.message


@pytest.mark.parametrize(
    "bootstrap", ["", "host", "host:0", "host:70000", "a:1,,b:2", "a:1;x=y", "a b:1", "a:1\nkafka.x:2"]
)
def test_bootstrap_servers_are_addresses_and_nothing_else(bootstrap: str) -> None:
    with pytest.raises(InvalidSource, match="bootstrap servers are host:port"):
        connection_options(KafkaConnection(bootstrap))


def test_credentials_cannot_leave_their_quotes() -> None:
    connection = KafkaConnection("a:1", "SASL_SSL", "PLAIN", 'u" x="', 'p\\"; evil')
    jaas = connection_options(connection)["kafka.sasl.jaas.config"]
    assert jaas.endswith('username="u\\" x=\\"" password="p\\\\\\"; evil";')
    with pytest.raises(InvalidSource, match="control characters"):
        connection_options(KafkaConnection("a:1", "SASL_SSL", "PLAIN", "u", "p\nq"))
    with pytest.raises(InvalidSource, match="needs a SASL mechanism"):
        connection_options(KafkaConnection("a:1", "SASL_SSL", "PLAIN", "u"))


@pytest.mark.parametrize("topic", ["", ".", "..", "a b", "a,b", "x" * 250, "ä", 'a"'])
def test_what_no_topic_is_called_is_refused(topic: str) -> None:
    with pytest.raises(InvalidSource):
        check_topic(topic, [])


@pytest.mark.parametrize(
    "bad", [[PartitionRange(0, 5, 4, 0, 9)], [PartitionRange(-1, 0, 1, 0, 9)], ranges((0, 1)) + ranges((0, 2))]
)
def test_ranges_that_make_no_sense_are_refused(bad: list[PartitionRange]) -> None:
    with pytest.raises(InvalidSource):
        check_topic("orders", bad)


def body_of(schema: object) -> object:
    return bare(json.dumps(schema))


def test_a_wrapped_schema_keeps_only_what_its_bytes_depend_on() -> None:
    day = {"type": "int", "logicalType": "date"}
    schema = {
        "type": "record",
        "name": "A",
        "namespace": "n",
        "doc": "x",
        "aliases": ["B"],
        "fields": [
            {"name": "d", "type": day, "default": "not even valid", "order": "ignore"},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"], "default": "X"}},
            {"name": "f", "type": ["null", {"type": "array", "items": day}], "default": None},
            {"name": "again", "type": "E"},
        ],
    }
    assert body_of(schema) == {
        "type": "record",
        "name": "A",
        "namespace": "n",
        "fields": [
            {"name": "d", "type": {"type": "int", "calendar": "date"}},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"]}},
            {"name": "f", "type": ["null", {"type": "array", "items": {"type": "int", "calendar": "date"}}]},
            {"name": "again", "type": "E"},
        ],
    }
    assert body_of("string") == "string"
    assert body_of({"type": {"type": "string"}}) == {"type": "string"}


EMPTY = {"type": "record", "name": "Nothing", "fields": []}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        EMPTY,
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}, {"name": "b", "type": EMPTY}]},
    ],
)
def test_lists_of_things_without_bytes_are_not_decoded(items: object) -> None:
    for schema in ({"type": "array", "items": items}, {"type": "map", "values": {"type": "array", "items": items}}):
        with pytest.raises(SchemaNotUsable, match="take no bytes"):
            bare(json.dumps(schema))
    named = {"type": "record", "name": "Outer", "namespace": "n", "fields": [{"name": "one", "type": EMPTY}]}
    named["fields"].append({"name": "many", "type": {"type": "array", "items": "Nothing"}})  # type: ignore[attr-defined]
    with pytest.raises(SchemaNotUsable, match="take no bytes"):
        bare(json.dumps(named))


def test_lists_of_unions_and_of_records_with_bytes_are_decoded() -> None:
    bare(json.dumps({"type": "array", "items": ["null", "int"]}))
    node = {"type": "record", "name": "Node", "fields": [{"name": "n", "type": "int"}]}
    bare(json.dumps({"type": "array", "items": node}))


@pytest.mark.parametrize(
    "text", ["", "{", "7", "{}", '{"type":"record","name":"A","fields":[{"name":"x"}]}', "[" * 10_000]
)
def test_what_is_no_schema_is_not_usable(text: str) -> None:
    with pytest.raises(SchemaNotUsable):
        bare(text)


def test_a_schema_nested_very_deep_is_not_usable() -> None:
    with pytest.raises(SchemaNotUsable, match="nested"):
        bare('{"type":"array","items":' * 300 + '"int"' + "}" * 300)


@pytest.mark.requirement("DBX-1")
def test_paths_of_any_length_are_kept_short_and_stay_different() -> None:
    long = [f"{'字' * 5_000}.{end}" for end in ("a", "b")]
    short = [short_path(path) for path in long]
    assert len(set(short)) == 2
    assert all(len(path.encode()) <= LONGEST_PATH and path.startswith("字" * 100) for path in short)
    assert short_path("customer.address[].zip") == "customer.address[].zip"
    assert len(short_path("\ud800" * 5_000)) < LONGEST_PATH


@dataclass(frozen=True)
class Counted:
    hour: int
    messages: int


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=300), st.integers(1, 40))
def test_the_newest_hours_are_counted_whole(messages: list[tuple[int, int]], size: int) -> None:
    """However the messages are cut into slices, each with its newest hours alone."""
    hours: dict[int, int] = {}
    for start in range(0, len(messages), size):
        slice_ = newest_hours({}, [Counted(*message) for message in messages[start : start + size]])
        hours = newest_hours(hours, [Counted(*message) for message in slice_.items()])
    whole: dict[int, int] = {}
    for hour, number in messages:
        whole[hour] = whole.get(hour, 0) + number
    assert hours == dict(sorted(whole.items(), reverse=True)[:MOST_HOURS])


@pytest.mark.requirement("CARD-3")
@pytest.mark.parametrize(
    ("message", "lacks_client"),
    [
        (
            "(java.lang.RuntimeException) java.lang.ClassNotFoundException: Class "
            "org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            True,
        ),
        ('(org.apache.hadoop.fs.UnsupportedFileSystemException) No FileSystem for scheme "s3"', True),
        ("[STDS_COMMITTED_BATCH_UNAVAILABLE] No committed batch found", False),
    ],
)
def test_a_spark_without_a_client_for_the_address_is_said_to_lack_it(message: str, lacks_client: bool) -> None:
    reason = why_unreadable(PySparkException(message))
    assert reason == (f"{CLIENT_NEEDED} ({message})" if lacks_client else message)
