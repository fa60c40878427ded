"""Counts of how a reader schema decodes messages; pure, so that Spark workers and tests can run it.

A tally holds no values of messages: only paths of schemas, reasons from decoders, and numbers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from registry.errors import InvalidDatum, InvalidInput
from registry.formats import format_of
from registry.formats.base import MAX_BODY, BodyReplay, FieldOutcome, ParsedSchema
from registry.formats.protobuf.decoding import split_indexes

FIRST: Final = 5
MAX_PATHS: Final = 1_000
MAX_REASON: Final = 300
#: the possible outcomes of a value
KINDS: Final[tuple[str, ...]] = ("kept", "converted", "changed", "lost", "dropped", "filled")
_CHANGES: Final = ("the value changes", " is read as ", "as returned by the decoder")
Key = tuple[str, str]


@dataclass(frozen=True)
class ReplaySchema:
    """A self-contained schema text; `kind` is its format."""

    kind: str
    text: str


@dataclass
class WriterTally:
    """The messages with one framing and schema id: how many the reader `read` or `failed` to read, or are `unreadable`.

    Unreadable messages aren't valid for their writer schema. `failures` and `foreign` (the unreadable ones) hold the
    first few as (partition, offset, reason). `fields` counts messages by path and kind.
    """

    messages: int = 0
    read: int = 0
    failed: int = 0
    unreadable: int = 0
    failures: list[tuple[int, int, str]] = field(default_factory=list)
    foreign: list[tuple[int, int, str]] = field(default_factory=list)
    fields: dict[str, dict[str, int]] = field(default_factory=dict)

    def count(self, outcomes: Iterable[FieldOutcome]) -> None:
        """Count one decoded message: each path and kind once."""
        self.read += 1
        for path, kind in dict.fromkeys((item.path, kind_of(item)) for item in outcomes):
            kinds = self.fields.get(path)
            if kinds is None:
                if len(self.fields) >= MAX_PATHS:
                    continue
                kinds = self.fields[path] = {}
            kinds[kind] = kinds.get(kind, 0) + 1

    def merge(self, other: WriterTally) -> None:
        """Add another task's tally."""
        for name in ("messages", "read", "failed", "unreadable"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in ((self.failures, other.failures), (self.foreign, other.foreign)):
            mine[:] = sorted([*mine, *theirs])[:FIRST]
        for path, kinds in other.fields.items():
            if path in self.fields or len(self.fields) < MAX_PATHS:
                counts = self.fields.setdefault(path, {})
                for kind, count in kinds.items():
                    counts[kind] = counts.get(kind, 0) + count


@dataclass
class ReplayTally:
    """The counts of all examined messages: by framing and schema id if known, otherwise by reason."""

    writers: dict[Key, WriterTally] = field(default_factory=dict)
    looked_at: int = 0
    no_value: int = 0
    unframed: int = 0
    unknown: int = 0
    too_large: int = 0
    not_tried: int = 0

    def merge(self, other: ReplayTally) -> None:
        """Add another task's tally."""
        for name in ("looked_at", "no_value", "unframed", "unknown", "too_large", "not_tried"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for key, tally in other.writers.items():
            self.writers.setdefault(key, WriterTally()).merge(tally)

    def to_json(self) -> str:
        """Return the tally as one line of JSON."""
        values = {name: value for name, value in vars(self).items() if name != "writers"}
        return json.dumps({**values, "writers": [[*key, asdict(tally)] for key, tally in self.writers.items()]})

    @classmethod
    def from_json(cls, line: str) -> ReplayTally:
        """Read what `to_json` wrote."""
        values = json.loads(line)
        writers = {(framing, mark): _writer_tally(tally) for framing, mark, tally in values.pop("writers")}
        return cls(writers=writers, **values)


def _writer_tally(values: Mapping[str, Any]) -> WriterTally:
    lists = {name: [(part, at, why) for part, at, why in values[name]] for name in ("failures", "foreign")}
    return WriterTally(**{**values, **lists})


def kind_of(outcome: FieldOutcome) -> str:
    """Return one of KINDS: a dropped value is `lost` if it was set, and `dropped` if it was null or empty."""
    if outcome.outcome == "dropped":
        return "dropped" if outcome.written in (None, "", [], {}) else "lost"
    if outcome.outcome == "converted" and any(sign in outcome.note for sign in _CHANGES):
        return "changed"
    return outcome.outcome


class Replayer:
    """A decoder of several writers' messages with one reader; a schema is parsed when its first message arrives.

    After `seconds`, messages are counted as not tried.
    """

    def __init__(self, reader: ReplaySchema, writers: Mapping[Key, ReplaySchema], seconds: float) -> None:
        self._reader = reader
        self._schemas = writers
        self._replays: dict[Key, BodyReplay | str] = {}
        self._parsed: ParsedSchema | None = None
        self._ends = time.monotonic() + seconds
        self.tally = ReplayTally()

    def count_without_value(self) -> None:
        """Count a message without a value."""
        self.tally.looked_at += 1
        self.tally.no_value += 1

    def add(
        self, framing: str | None, mark: str, body: bytes | None, size: int, header: bytes | None, at: tuple[int, int]
    ) -> None:
        """Add one message; `framing` is None if it names no schema, `body` is None if it is larger than the limit.

        `header` is the Kafka header that named the schema, which holds Protobuf's indexes; `at` is (partition, offset).
        """
        tally = self.tally
        tally.looked_at += 1
        if framing is None:
            tally.unframed += 1
            return
        if (framing, mark) not in self._schemas:
            tally.unknown += 1
            return
        if body is None or size > MAX_BODY:
            tally.too_large += 1
            return
        if time.monotonic() > self._ends:
            tally.not_tried += 1
            return
        self._read(tally.writers.setdefault((framing, mark), WriterTally()), (framing, mark), body, header, at)

    def _read(self, writer: WriterTally, key: Key, body: bytes, header: bytes | None, at: tuple[int, int]) -> None:
        writer.messages += 1
        replay = self._replay(key)
        try:
            if isinstance(replay, str):
                raise InvalidDatum(replay)
            resolution = replay(body, _indexes(header))
        except InvalidDatum as error:
            writer.unreadable += 1
            _note(writer.foreign, at, error.message)
            return
        if resolution.error:
            writer.failed += 1
            _note(writer.failures, at, resolution.error)
        else:
            writer.count(resolution.fields)

    def _replay(self, key: Key) -> BodyReplay | str:
        """Return the replay for a writer, or the reason why there isn't one."""
        if key not in self._replays:
            self._replays[key] = self._made(self._schemas[key])
        return self._replays[key]

    def _made(self, schema: ReplaySchema) -> BodyReplay | str:
        if schema.kind != self._reader.kind:
            return f"they are written in {schema.kind}, but the reader schema is {self._reader.kind}"
        engine = format_of(schema.kind)
        try:
            if self._parsed is None:
                self._parsed = engine.parse(self._reader.text)
            return engine.replay_of(self._parsed, engine.parse(schema.text))
        except InvalidInput as error:
            return f"its schema can't be used here: {error.placed}"


def _indexes(header: bytes | None) -> tuple[int, ...] | None:
    """Return Protobuf's message indexes after a header's GUID; None if the body starts with them."""
    if header is None or len(header) <= 17:
        return None
    return split_indexes(header[17:])[0]


def _note(failures: list[tuple[int, int, str]], at: tuple[int, int], reason: str) -> None:
    """Keep the first few, by partition and offset."""
    failures.append((*at, " ".join(reason.split())[:MAX_REASON]))
    if len(failures) > FIRST:
        failures.sort()
        failures.pop()


def merged(lines: Sequence[str]) -> ReplayTally:
    """Return the combined tallies of all tasks."""
    total = ReplayTally()
    for line in lines:
        total.merge(ReplayTally.from_json(line))
    return total
