"""Decodes and counts the messages of one task, including Debezium's change events, and returns lines of JSON."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from registry.pipeline.workers.bodies import AvroBodies, JsonBodies, JsonSchemaBodies, ProtobufBodies
from registry.pipeline.workers.contract_rules import Conditions
from registry.pipeline.workers.fields import Tree, sample_text
from registry.pipeline.workers.schema_shapes import Undecodable

OPERATIONS = frozenset("cudrtm")
UNAVAILABLE = "__debezium_unavailable_value"
UNAVAILABLE_FORMS = frozenset(
    {UNAVAILABLE, UNAVAILABLE.encode(), base64.b64encode(UNAVAILABLE.encode()).decode("ascii")}
)
LONGEST_NAME = 255


class ChangeEvent(NamedTuple):
    """A change event: its operation, its table (empty for a message) and its flags."""

    op: str
    database: str
    schema: str
    table: str
    with_before: bool
    snapshot: bool
    in_transaction: bool
    unavailable: bool


def change_of(value: Any) -> ChangeEvent | None:
    """Return the change event in a decoded value; None if it isn't one.

    Its `source` names the connector: every Debezium connector writes that.
    """
    if not isinstance(value, dict):
        return None
    op, source = value.get("op"), value.get("source")
    if op not in OPERATIONS or not isinstance(source, dict) or not isinstance(source.get("connector"), str):
        return None
    rows = (value.get("before"), value.get("after"))
    return ChangeEvent(
        op=op,
        database=_name(source, "db"),
        schema=_name(source, "schema"),
        table="" if op == "m" else _name(source, "table", "collection"),
        with_before=rows[0] is not None,
        snapshot=source.get("snapshot") not in (None, False, "", "false"),
        in_transaction=_is_transactional(op, value, source),
        unavailable=any(_is_unavailable(inner) for row in rows if isinstance(row, dict) for inner in row.values()),
    )


def _is_transactional(op: str, value: dict[str, Any], source: dict[str, Any]) -> bool:
    """Return whether a row has transaction metadata, or a message was written in a transaction."""
    if value.get("transaction") is not None:
        return True
    return op == "m" and source.get("txId") is not None


def _is_unavailable(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, (str, bytes)) and value in UNAVAILABLE_FORMS


def _name(source: dict[str, Any], *keys: str) -> str:
    for key in keys:
        if isinstance(source.get(key), str):
            return str(source[key])[:LONGEST_NAME]
    return ""


BODIES: dict[str, Any] = {"AVRO": AvroBodies, "PROTOBUF": ProtobufBodies, "JSON": JsonSchemaBodies}
MOST_GROUPS = 2_000  # per task: places of undecodable bodies with reasons, tables of change events
TOO_LARGE = "it is larger than the bodies that a scan decodes"
MOST_SAMPLED = 200  # per task: schemas on sides of topics with samples
MOST_FIRSTS = 20  # samples kept because they were the first with a field, per schema on a side
FIRST_OFFSETS = 5
MOST_REASONS = 20  # per place of undecodable bodies in a task
MOST_RANGES = 10_000  # per task: ranges of offsets of undecodable bodies


def too_large(size: int) -> str:
    """Return the reason for one body that is too large, with its size in bytes."""
    return f"{TOO_LARGE}: {size:,} bytes"


# Nested values are decoded by recursive calls in C, about 1.6 KB per level: that needs a large stack.
STACKS = (64 * 1024 * 1024, 16 * 1024 * 1024)


@dataclass
class DecodingPlan:
    """What a task reads: writers (kind, text) by (framing, raw mark), and what it counts of the bodies.

    `rules` has, by the same key, the data contract rules of a writer (observations.ContractRule as an object) and the
    tags of its fields.
    """

    writers: dict[tuple[str, bytes], tuple[str, str]]
    fields: bool = True
    changes: bool = False
    samples: int = 0
    reveal: bool = False
    rules: dict[tuple[str, bytes], tuple[list[dict[str, Any]], dict[str, tuple[str, ...]]]] = field(
        default_factory=dict
    )


@dataclass
class MessageCounts:
    """The counts of a task; every key begins with the topic."""

    trees: dict[tuple[str, ...], Tree] = field(default_factory=dict)
    undecodable: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    indexes: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)
    changes: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    shapes: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    samples: dict[tuple[str, ...], list[list[Any]]] = field(default_factory=dict)
    unusable: dict[tuple[str, str], str] = field(default_factory=dict)
    left_out: dict[tuple[str, ...], int] = field(default_factory=dict)
    conditions: dict[tuple[str, ...], Conditions] = field(default_factory=dict)


class Reader:
    """Reads the rows of one task. Columns: see `registry.pipeline.body_decoding`."""

    def __init__(self, plan: DecodingPlan) -> None:
        self.plan, self.counts = plan, MessageCounts()
        self._decoders: dict[tuple[str, bytes | None], Any] = {}
        self._json = JsonBodies()
        self._unexplained: set[tuple[Any, ...]] = set()
        self._ranges = 0

    def read(self, batch: Any) -> None:
        """Count the messages of an Arrow batch."""
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            topic, partition, offset, time, size, newkey, oldkey, *sides = row
            position = (partition, offset, time, size, newkey, oldkey)
            self._side(topic, "key", position, *sides[:4])
            self._side(topic, "value", position, *sides[4:])

    def _side(
        self,
        topic: str,
        side: str,
        position: tuple[Any, ...],
        kind: str,
        raw: bytes | None,
        body: bytes | None,
        large: int | None = None,
    ) -> None:
        """Count a side: decode its body, or record that it is too large (`large` bytes)."""
        if body is None and large is None:
            return
        framing = kind if raw is not None else ""
        decoder = self._decoder(framing, raw)
        if decoder is None:
            return
        where = (topic, side, framing, raw.hex() if raw is not None else "")
        if large is not None:
            self._undecodable(where, position, "not_read", TOO_LARGE, at=too_large(large))
            return
        try:
            self._count(where, position, decoder.decode(body))
        except Undecodable as reason:
            self._undecodable(where, position, reason.problem, str(reason))
        except Exception as error:  # noqa: BLE001  whatever one message causes, the others are read
            self._undecodable(where, position, "not_read", f"reading it failed ({type(error).__name__})")

    def _count(self, where: tuple[str, str, str, str], position: tuple[Any, ...], decoded: Any) -> None:
        """Count a decoded body in everything that the plan asks for."""
        topic, side, framing, mark = where
        partition, offset, time, size, *_ = position
        if decoded.violation:
            self._undecodable(where, position, "violates", decoded.violation)
        if decoded.unchecked:
            self._undecodable(where, position, "not_read", decoded.unchecked)
        if decoded.indexes:
            span = self.counts.indexes.setdefault((topic, side, partition, framing, mark, decoded.indexes), [])
            _extend(span, offset, time, size)
        if decoded.digest:
            _extend(self.counts.shapes.setdefault((topic, side, partition, decoded.digest), []), offset, time, size)
        is_first = False
        if self.plan.fields:
            owner = (topic, side, framing, mark, decoded.indexes)
            if owner not in self.counts.trees:
                self.counts.trees[owner] = Tree(decoded.shape, self.plan.reveal)
            tree = self.counts.trees[owner]
            before = tree.firsts
            tree.add(decoded.value, (partition, offset))
            is_first = tree.firsts > before
        if self.plan.changes and side == "value":
            self._change(topic, position, decoded.value)
        is_first = self._check_rules(where, (partition, offset), decoded, size) or is_first
        self._sample((topic, side, framing, mark), [partition, offset, time], decoded.value, is_first=is_first)

    def _check_rules(self, where: tuple[str, str, str, str], place: tuple[int, int], decoded: Any, size: int) -> bool:
        """Evaluate the data contract's rules; return whether the message is the first that breaks one."""
        rules = self.plan.rules.get((where[2], bytes.fromhex(where[3]))) if self.plan.rules else None
        if rules is None:
            return False
        if where not in self.counts.conditions:
            self.counts.conditions[where] = Conditions(*rules)
        return self.counts.conditions[where].check(decoded, place, size)

    def _decoder(self, framing: str, raw: bytes | None) -> Any:
        if raw is None:
            return self._json
        if (framing, raw) not in self._decoders:
            kind, text = self.plan.writers.get((framing, raw), ("", ""))
            made = None
            try:
                made = BODIES[kind](text) if kind else None
            except ImportError as error:
                self.counts.unusable[framing, raw.hex()] = f"the Spark workers' Python has no {error.name}; install it"
            except ValueError as error:
                self.counts.unusable[framing, raw.hex()] = str(error)
            self._decoders[framing, raw] = made
        return self._decoders[framing, raw]

    def _undecodable(
        self, where: tuple[str, str, str, str], position: tuple[Any, ...], problem: str, reason: str, *, at: str = ""
    ) -> None:
        """Count a body under its reason; `at` is the more detailed reason of this one.

        Beyond MOST_GROUPS places, bodies are counted without their reasons.
        """
        topic, side, framing, mark = where
        partition, offset, time, size, *_ = position
        key = (topic, side, partition, framing, mark, problem)
        group = self.counts.undecodable.get(key)
        if group is None:
            is_explained = len(self.counts.undecodable) < MOST_GROUPS
            group = self.counts.undecodable[key] = {"span": [], "offsets": [], "reasons": {}, "ranges": []}
            self._unexplained |= set() if is_explained else {key}
        _extend(group["span"], offset, time, size)
        self._list_offset(group["ranges"], offset)
        if key in self._unexplained:
            return
        if len(group["offsets"]) < FIRST_OFFSETS:
            group["offsets"].append([offset, at or reason])
        reasons = group["reasons"]
        if reason in reasons or len(reasons) < MOST_REASONS:
            reasons[reason] = reasons.get(reason, 0) + 1

    def _list_offset(self, ranges: list[list[int]], offset: int) -> None:
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1][1] = offset
        elif self._ranges < MOST_RANGES:
            ranges.append([offset, offset])
            self._ranges += 1

    def _change(self, topic: str, position: tuple[Any, ...], value: Any) -> None:
        change = change_of(value)
        if change is None:
            return
        partition, offset, time, size, newkey, oldkey = position
        key = (topic, partition, change.op, change.database, change.schema, change.table)
        group = self.counts.changes.get(key)
        if group is None:
            if len(self.counts.changes) >= MOST_GROUPS:
                self._leave_out((topic, "value", "", ""), "tables", 1)
                return
            group = self.counts.changes[key] = {"span": [], "marks": [0] * 6}
        _extend(group["span"], offset, time, size)
        marks = (change.with_before, newkey, oldkey, change.snapshot, change.in_transaction, change.unavailable)
        group["marks"] = [count + bool(mark) for count, mark in zip(group["marks"], marks, strict=True)]

    def _leave_out(self, where: tuple[str, ...], limit: str, messages: int) -> None:
        key = (*where, limit)
        self.counts.left_out[key] = self.counts.left_out.get(key, 0) + messages

    def _sample(self, key: tuple[str, ...], where: list[Any], value: Any, *, is_first: bool) -> None:
        """Keep the first messages of a key, and some that were the first with a field: findings name those."""
        if not self.plan.samples or (key not in self.counts.samples and len(self.counts.samples) >= MOST_SAMPLED):
            return
        samples = self.counts.samples.setdefault(key, [])
        if len(samples) < self.plan.samples + (MOST_FIRSTS if is_first else 0):
            samples.append([*where, sample_text(value, self.plan.reveal), is_first])

    def lines(self) -> Iterator[str]:
        """Yield the counts as lines of JSON: a list of kind, key, and counts."""
        counts = self.counts
        counts.texts |= self._json.texts
        for key, tree in counts.trees.items():
            for limit, messages in tree.left_out.items():
                self._leave_out(key[:4], limit, messages)
            for row in tree.rows():
                yield json.dumps(["field", key, row])
            if (table := tree.ranked.table()) is not None:
                yield json.dumps(["ranks", key, table])
        for name in ("undecodable", "indexes", "changes", "shapes", "samples", "unusable", "left_out"):
            for entry_key, what in getattr(counts, name).items():
                yield json.dumps([name, entry_key, what])
        for key, conditions in counts.conditions.items():
            yield from (json.dumps(["rule", key, row]) for row in conditions.rows())
        for digest, text in counts.texts.items():
            yield json.dumps(["text", digest, text])


def _extend(span: list[int], offset: int, time: int, size: int) -> None:
    """Add one message to a span: messages, bytes, first and last offset, first and last time."""
    if not span:
        span[:] = [1, size, offset, offset, time, time]
        return
    span[0] += 1
    span[1] += size
    span[2], span[3] = min(span[2], offset), max(span[3], offset)
    span[4], span[5] = min(span[4], time), max(span[5], time)


def reading(plan: DecodingPlan) -> Any:
    """Return the function for `mapInArrow`: batches of messages → one batch of lines."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow  # type: ignore[import-untyped]

        reader = Reader(plan)
        for batch in batches:
            _with_room(lambda batch=batch: reader.read(batch))  # type: ignore[misc]
        yield pyarrow.RecordBatch.from_pydict({"line": pyarrow.array(list(reader.lines()), pyarrow.string())})

    return read


def _with_room(work: Any) -> None:
    """Run `work` on a sufficiently deep stack; raises what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  raised again below, in the waiting thread
            raised.append(error)

    usual = threading.stack_size()
    for size in STACKS:
        try:
            threading.stack_size(size)
            thread = threading.Thread(target=run)
            thread.start()
        except (RuntimeError, ValueError):
            continue
        finally:
            threading.stack_size(usual)
        thread.join()
        break
    else:
        run()
    if raised:
        raise raised[0]
