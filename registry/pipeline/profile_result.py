"""Merges the profiles of a scan's slices and yields them as observations."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from registry.observations import (
    BodyProblem,
    ChangeEvents,
    ConnectSchema,
    ContractRule,
    ContractRuleResult,
    FieldProfile,
    Framing,
    Limit,
    LimitExceeded,
    MessageIndexes,
    Observation,
    RankedMessages,
    Sample,
    SchemaNotUsed,
    Side,
    Span,
    UndecodableMessages,
)
from registry.pipeline.framing import as_framing, joined, mark_of
from registry.pipeline.workers.fields import HASHES, SKETCH
from registry.pipeline.workers.message_reader import MOST_RANGES
from registry.pipeline.workers.value_ranks import lot_of, smallest

MOST_OFFSETS: Final = 5
MOST_BROKEN: Final = 1_000  # positions of messages that break a rule
MOST_SHAPES: Final = 200
MOST_REASONS: Final = 20  # per place of bad bodies; more are counted without their reason
LONGEST_REASON: Final = 700  # characters: a schema's names may have any length
LONGEST_PATH: Final = 400  # bytes: a message's names may have any length, and statistics are kept by path
_CONTAINERS: Final = frozenset({"record", "error", "object", "message"})
# topic, side, framing or None, mark
Owner = tuple[str, Side, Framing | None, str]
Estimates = Mapping[tuple[Owner, str], int]


@dataclass
class FieldSum:
    """The counts of a path so far. `sketches` are Spark's, `hashes` the smallest that the workers saw."""

    messages: int | None = None  # None: the number of messages of its owner
    present: int = 0
    nulls: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    sketches: list[bytes] = field(default_factory=list)
    hashes: set[int] = field(default_factory=set)
    low: list[Any] | None = None
    high: list[Any] | None = None
    undeclared: list[int] | None = None
    declared: str = ""
    first_of_kind: dict[str, list[int]] = field(default_factory=dict)
    absent: list[int] | None = None
    places: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    message_types: set[str] = field(default_factory=set)  # the Protobuf message types in which the path was found

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row in the form of `workers.fields.Node.row`."""
        self.present += row["present"]
        self.nulls += row["nulls"]
        for mine, theirs in ((self.kinds, row["kinds"]), (self.values, row["values"])):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.hashes = set(sorted(self.hashes.union(row.get("hashes", ())))[:SKETCH])
        if row.get("sketch") is not None:
            self.sketches.append(row["sketch"])
        self.undeclared = _earlier(self.undeclared, row.get("undeclared"))
        self.absent = _earlier(self.absent, row.get("absent"))
        for kind, place in row.get("first_of_kind", {}).items():
            self.first_of_kind[kind] = min(self.first_of_kind.get(kind, place), place)
        for what, ranges in row.get("places", {}).items():
            self.places[what] = sorted([*self.places.get(what, ()), *map(tuple, ranges)])[:MOST_RANGES]
        self.declared = self.declared or row.get("declared", "")
        if row.get("low") is not None:
            self.low = row["low"] if self.low is None else _first(self.low, row["low"])
            self.high = row["high"] if self.high is None else _last(self.high, row["high"])

    def distinct(self, estimate: int | None) -> int | None:
        """Return the number of distinct values; None if not counted.

        `estimate` is that of Spark's sketches. Values that only the workers saw may be others: the larger one counts.
        """
        if self.sketches:
            return max(estimate, self._hashed()) if estimate is not None else None
        if self.values:
            return len(self.values)
        return self._hashed() or None

    def _hashed(self) -> int:
        if len(self.hashes) < SKETCH:
            return len(self.hashes)
        return round((SKETCH - 1) / (max(self.hashes) / HASHES))


@dataclass
class BadBodies:
    """Bodies of one place that their schema doesn't decode.

    `offsets` are the first ones with the reason of each, empty if unknown. `counts` are bodies by reason. `unexplained`
    are offsets of bodies that were counted without a reason, which may still be found.
    """

    span: Span | None = None
    offsets: dict[int, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    unexplained: set[int] = field(default_factory=set)
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def add(
        self, span: Span, offsets: Mapping[int, str], counts: Mapping[str, int], ranges: Iterable[Sequence[int]] = ()
    ) -> None:
        """Add bodies: their span, the first offsets with reasons, counts by reason, and first and last offsets."""
        self._extend(span, ranges)
        self._keep(offsets)
        for reason, number in counts.items():
            short = short_reason(reason)
            self.counts[short] = self.counts.get(short, 0) + number

    def add_unexplained(self, span: Span, offsets: Iterable[int], ranges: Iterable[Sequence[int]] = ()) -> None:
        """Add bodies whose reasons are unknown."""
        self._extend(span, ranges)
        self._keep(dict.fromkeys(offsets, ""))
        self.unexplained = {*self.unexplained, *offsets} & self.offsets.keys()

    def explain(self, offsets: Mapping[int, str]) -> None:
        """Set the reasons of offsets that were counted without one."""
        for offset in self.unexplained & offsets.keys():
            self.offsets[offset] = short_reason(offsets[offset])

    def by_reason(self) -> dict[str, int]:
        """Return the number of messages by known reason; at most MOST_REASONS, the most frequent."""
        counts = dict(self.counts)
        for offset in self.unexplained & self.offsets.keys():
            reason = self.offsets[offset]
            if reason:
                counts[reason] = counts.get(reason, 0) + 1
        most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_REASONS]
        return dict(sorted(most))

    def _extend(self, span: Span, ranges: Iterable[Sequence[int]]) -> None:
        self.span = joined(self.span, span)
        self.ranges = sorted({*self.ranges, *((first, last) for first, last in ranges)})[:MOST_RANGES]

    def _keep(self, offsets: Mapping[int, str]) -> None:
        reasons = {**{offset: short_reason(reason) for offset, reason in offsets.items()}, **self.offsets}
        self.offsets = {offset: reasons[offset] for offset in sorted(reasons)[:MOST_OFFSETS]}


@dataclass
class RuleSum:
    """The counts of a data contract's rule so far, in the form of `workers.contract_rules.Condition.row`."""

    messages: int = 0
    broken: int = 0
    first: list[tuple[int, int]] = field(default_factory=list)
    paths: Counter[str] = field(default_factory=Counter)
    not_checked: Counter[str] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the counts of one task."""
        self.messages += row["messages"]
        self.broken += row["broken"]
        self.first += [(partition, offset) for partition, offset in row["first"]]
        self.paths.update(row["paths"])
        self.not_checked.update(row["not_checked"])


@dataclass
class Profiles:
    """All counts of bodies; keys begin with the topic, so that a lost topic can be dropped."""

    fields: dict[tuple[Owner, str], FieldSum] = field(default_factory=dict)
    messages: dict[Owner, dict[str, int]] = field(default_factory=dict)  # by Protobuf message type, else empty
    bad: dict[tuple[Owner, int, BodyProblem], BadBodies] = field(default_factory=dict)
    indexes: dict[tuple[Owner, int, str], Span] = field(default_factory=dict)
    changes: dict[tuple[Any, ...], tuple[Span, list[int]]] = field(default_factory=dict)
    shapes: dict[tuple[str, Side, int, str], Span] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    samples: dict[Owner, list[tuple[Sample, bool]]] = field(default_factory=dict)
    unusable: dict[tuple[Framing, str], str] = field(default_factory=dict)
    given_up: dict[Owner, str] = field(default_factory=dict)
    ranked: dict[Owner, list[tuple[int, int, int, dict[str, int]]]] = field(default_factory=dict)
    rules: dict[tuple[Owner, ContractRule], RuleSum] = field(default_factory=dict)
    # what a limit left out: the limit, and the number of fields or symbols and of messages, if known
    left_out: dict[tuple[Owner, Limit], tuple[int, int | None, int | None]] = field(default_factory=dict)

    def forget(self, topic: str) -> None:
        """Drop all counts of a topic."""
        self.fields = {key: value for key, value in self.fields.items() if key[0][0] != topic}
        self.bad = {key: value for key, value in self.bad.items() if key[0][0] != topic}
        self.indexes = {key: value for key, value in self.indexes.items() if key[0][0] != topic}
        self.changes = {key: value for key, value in self.changes.items() if key[0] != topic}
        self.shapes = {key: value for key, value in self.shapes.items() if key[0] != topic}
        self.samples = {key: value for key, value in self.samples.items() if key[0] != topic}
        self.given_up = {key: value for key, value in self.given_up.items() if key[0] != topic}
        self.ranked = {key: value for key, value in self.ranked.items() if key[0] != topic}
        self.left_out = {key: value for key, value in self.left_out.items() if key[0][0] != topic}
        self.rules = {key: value for key, value in self.rules.items() if key[0][0] != topic}

    def add_field(
        self, owner: Owner, path: str, row: Mapping[str, Any], *, natively: bool, message_type: str = ""
    ) -> None:
        """Add the counts of a path. Counts from the workers refer to all messages of their owner's root.

        If the path is also counted natively, the workers' counts are dropped: they only add the insides of lists and
        maps.
        """
        if natively:
            counted = self.fields.setdefault((owner, path), FieldSum(0))
            counted.messages = (counted.messages or 0) + row["messages"]
            counted.add(row)
            return
        if not path:
            messages = self.messages.setdefault(owner, {})
            messages[message_type] = messages.get(message_type, 0) + row["messages"]
        total = self.fields.setdefault((owner, path), FieldSum())
        total.message_types.add(message_type)
        if total.messages is None:
            total.add(row)

    def add_ranks(self, owner: Owner, paths: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add rows of `workers.value_ranks`; of all tasks and slices, those with the smallest lots are kept."""
        added = (
            (
                lot_of(partition, offset),
                partition,
                offset,
                {p: r for p, r in zip(paths, ranks, strict=True) if r is not None},
            )
            for partition, offset, *ranks in rows
        )
        self.ranked[owner] = smallest([*self.ranked.get(owner, ()), *added])

    def leave_out(
        self, key: tuple[Owner, Limit], most: int, *, number: int | None = None, messages: int | None = None
    ) -> None:
        """Record what a slice left out: the same fields or symbols as before, in more messages."""
        _, before, messages_before = self.left_out.get(key, (most, None, None))
        if messages is not None:
            messages += messages_before or 0
        self.left_out[key] = (most, max(number, before or 0) if number is not None else before, messages)

    def sketches(self) -> dict[tuple[Owner, str], list[bytes]]:
        """Return Spark's sketches to merge, by owner and path."""
        return {key: field.sketches for key, field in self.fields.items() if field.sketches}

    def observations(self, estimates: Estimates) -> Iterator[Observation]:
        """Yield all of it, sorted; `estimates` are the numbers of distinct values from the merged sketches."""
        for (owner, partition, problem), bad in sorted(self.bad.items(), key=_by_text):
            topic, side, framing, mark = owner
            if bad.span is not None:
                first = sorted(bad.offsets.items())
                yield UndecodableMessages(
                    *(topic, side, partition, framing, mark, bad.span),
                    offsets=tuple(offset for offset, _ in first),
                    reasons=tuple(reason for _, reason in first),
                    problem=problem,
                    by_reason=bad.by_reason(),
                    ranges=tuple(bad.ranges),
                )
        for (owner, partition, shown), span in sorted(self.indexes.items(), key=_by_text):
            topic, side, framing, mark = owner
            if framing is not None:
                yield MessageIndexes(topic, side, partition, framing, mark, shown, span)
        yield from self._field_profiles(estimates)
        yield from self._ranked_messages()
        for (topic, partition, op, database, schema, table), (span, marks) in sorted(
            self.changes.items(), key=_by_text
        ):
            yield ChangeEvents(topic, partition, op, database, schema, table, span, *marks)
        yield from self._change_shapes()
        for _, of_owner in sorted(self.samples.items(), key=_by_text):
            yield from (sample for sample, _ in of_owner)
        for (framing, mark), reason in sorted(self.unusable.items()):
            yield SchemaNotUsed(framing, mark, reason)
        for (topic, side, given_framing, mark), reason in sorted(self.given_up.items(), key=_by_text):
            if given_framing is not None:
                yield SchemaNotUsed(given_framing, mark, reason, topic, side)
        yield from self._left_out()
        for (owner, rule), total in sorted(self.rules.items(), key=_by_text):
            topic, side, framing, mark = owner
            if framing is not None:
                counts = (dict(sorted(total.paths.items())), dict(sorted(total.not_checked.items())))
                places = tuple(sorted(total.first)[:MOST_BROKEN])
                yield ContractRuleResult(
                    topic, side, framing, mark, rule, total.messages, total.broken, places, *counts
                )

    def _ranked_messages(self) -> Iterator[RankedMessages]:
        for owner, ranked in sorted(self.ranked.items(), key=_by_text):
            paths = sorted({path for row in ranked for path in row[3]})
            rows = (
                (partition, offset, tuple(ranks.get(path) for path in paths))
                for _, partition, offset, ranks in sorted(ranked, key=lambda row: row[1:3])
            )
            yield RankedMessages(*owner, tuple(map(short_path, paths)), tuple(rows))

    def _change_shapes(self) -> Iterator[ConnectSchema | LimitExceeded]:
        shapes = sorted(self.shapes.items())
        for (topic, side, partition, digest), span in shapes[:MOST_SHAPES]:
            yield ConnectSchema(topic, side, digest, self.texts.get(digest, ""), span, partition)
        rest: dict[tuple[str, Side], list[int]] = {}
        for (topic, side, _, _), span in shapes[MOST_SHAPES:]:
            rest.setdefault((topic, side), []).append(span.messages)
        for (topic, side), counts in rest.items():
            yield LimitExceeded(topic, side, None, "", "connect_schemas", MOST_SHAPES, len(counts), sum(counts))

    def _left_out(self) -> Iterator[LimitExceeded]:
        for ((topic, side, framing, mark), limit), (most, number, messages) in sorted(
            self.left_out.items(), key=_by_text
        ):
            yield LimitExceeded(topic, side, framing, mark, limit, most, number, messages)

    def _field_profiles(self, estimates: Estimates) -> Iterator[FieldProfile]:
        for (owner, path), counted in sorted(self.fields.items(), key=_by_text):
            if not path and counted.kinds.keys() <= _CONTAINERS:
                continue
            topic, side, framing, mark = owner
            by_type = self.messages.get(owner, {})
            messages = counted.messages if counted.messages is not None else sum(by_type.values())
            of_types = sum(by_type.get(name, 0) for name in counted.message_types) or messages
            low = counted.low[1] if counted.low is not None else None
            high = counted.high[1] if counted.high is not None else None
            yield FieldProfile(
                *(topic, side, framing, mark, short_path(path), messages, counted.present, counted.nulls),
                kinds=counted.kinds,
                distinct=counted.distinct(estimates.get((owner, path))),
                minimum=low,
                maximum=high,
                values=counted.values,
                undeclared=tuple(counted.undeclared or ()),
                declared=counted.declared,
                first_of_kind={kind: tuple(place) for kind, place in counted.first_of_kind.items()},
                absent=tuple(counted.absent or ()),
                other_types=messages - of_types if counted.messages is None else 0,
                places={what: tuple(ranges) for what, ranges in counted.places.items()},
            )


def short_path(path: str) -> str:
    """Return the path, or the start of a very long one with a digest of all of it: different paths stay different."""
    whole = path.encode(errors="replace")
    if len(whole) <= LONGEST_PATH:
        return path
    return f"{whole[:300].decode(errors='ignore')}…{hashlib.sha256(whole).hexdigest()[:16]}"


def short_reason(reason: str) -> str:
    """Return the reason, truncated with `…` if it is very long."""
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"


def owner_of(topic: str, side: Side, framing: str, raw: str) -> Owner:
    """Return the owner of a worker's line: its framing may be empty, its mark is in hexadecimal."""
    name = as_framing(framing)
    return topic, side, name, mark_of(name, bytes.fromhex(raw)) if name is not None else ""


def _by_text(item: tuple[Any, Any]) -> str:
    return repr(item[0])


def _earlier(one: list[int] | None, other: list[int] | None) -> list[int] | None:
    """Return the earlier of two message positions, either of which may be None."""
    return min(one, other) if one is not None and other is not None else one or other


def _first(one: list[Any], other: list[Any]) -> list[Any]:
    return min(one, other, key=_rank)


def _last(one: list[Any], other: list[Any]) -> list[Any]:
    return max(one, other, key=_rank)


def _rank(pair: list[Any]) -> tuple[bool, Any]:
    """Sort numbers before texts, if a path has both."""
    return isinstance(pair[0], str), pair[0]
