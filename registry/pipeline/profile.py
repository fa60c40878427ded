"""What a scan counts beyond framing, slice by slice.

Spark SQL functions count plain Avro (`native_profile`). Everything else goes through Python: JSON, Protobuf, change
events, Avro without a common reader, and topics with few messages in the slice, because Spark takes seconds to compile
the functions of one topic. Of plain Avro, the first messages of every slice go through Python too: for the insides of
lists and maps, reasons, and samples.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, cast

from pyspark.errors import PySparkException
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession

from registry.errors import ScanInterrupted, SparkUnavailable
from registry.formats import format_of
from registry.observations import (
    BodyProblem,
    ContractRule,
    Framing,
    Observation,
    Sample,
    Side,
    Span,
    TopicScan,
    WriterSchema,
)
from registry.pipeline import avro_schemas, kafka_reader
from registry.pipeline.avro_schemas import NotMergeable, TypeNode
from registry.pipeline.body_decoding import JSON_CLASSES, LARGEST_BODY, BodySelection, Decoding, Marks
from registry.pipeline.framing import as_framing, joined, keys_of, raw_mark
from registry.pipeline.kafka_reader import Piece
from registry.pipeline.native_profile import (
    CountedBad,
    CountedField,
    Mark,
    ProfileGroup,
    counted,
    profile_query,
    runs_of,
)
from registry.pipeline.profile_result import MOST_OFFSETS, BadBodies, Owner, Profiles, RuleSum, owner_of
from registry.pipeline.session import Control, first_line
from registry.pipeline.workers.fields import DEEPEST, LIMITS, MOST_PATHS
from registry.pipeline.workers.message_reader import BODIES, MOST_FIRSTS, MOST_GROUPS, TOO_LARGE, too_large

logger = logging.getLogger(__name__)

SHARE: Final = 20_000  # messages of plain Avro in a slice that also go through Python
FEW: Final = 100_000  # messages of a topic in a slice that go through Python only: above 150,000, it takes more CPU
GROUPS_IN_MEMORY: Final = 2_000
MOST_REREAD: Final = 10  # undecodable bodies of a partition in a slice that are read again for the reason


@dataclass
class Profiled:
    """The profile of one slice: facts of the native pass by group, and the lines of the pass through Python.

    `small` has the sides of topics whose plain Avro went through Python only.
    """

    small: frozenset[tuple[str, Side]] = frozenset()
    counted: list[tuple[ProfileGroup, list[CountedField | CountedBad]]] = field(default_factory=list)
    lines: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class _ProfileWriter:
    """A schema to decode with; has a `tree` if Spark SQL functions can decode it."""

    kind: str
    text: str
    tree: TypeNode | None = None
    rules: tuple[ContractRule, ...] = ()


class Profiler:
    """Profiles the slices of one scan."""

    def __init__(self, session: SparkSession, spec: TopicScan, control: Control) -> None:
        self._session, self._spec, self._control = session, spec, control
        self._profiles = Profiles()
        self._profiles_fields = spec.profile.fields or spec.profile.changes or spec.profile.samples > 0
        self._writers: dict[Mark, _ProfileWriter] = {}
        # By topic and side: the schemas counted natively, in the order they were found, and those that can't be.
        self._native: dict[tuple[str, Side], dict[Mark, TypeNode]] = {}
        self._apart: set[tuple[str, Side, Mark]] = set()
        self._small: frozenset[tuple[str, Side]] = frozenset()  # those of the slice that is added
        for writer in spec.writers if self._profiles_fields else ():
            try:
                self._writers[writer.framing, writer.mark] = _writer(writer, changes=spec.profile.changes)
            except avro_schemas.SchemaNotUsable as error:
                self._profiles.unusable[writer.framing, writer.mark] = str(error)
        by_raw = {
            (framing, raw_mark(framing, mark)): profile_writer
            for (framing, mark), profile_writer in self._writers.items()
        }
        texts = {key: (profile_writer.kind, profile_writer.text) for key, profile_writer in by_raw.items()}
        rules = {
            (writer.framing, raw_mark(writer.framing, writer.mark)): (
                [asdict(rule) for rule in writer.rules],
                dict(writer.tags),
            )
            for writer in spec.writers
            if writer.rules
        }
        self._decoding = Decoding(session, spec, control, texts, rules)

    def read_one_by_one(self) -> TopicScan:
        """Fetch the messages of the next slices one by one; return the specification for it."""
        spec = replace(self._spec, connection=replace(self._spec.connection, is_one_by_one=True))
        self._spec = self._decoding.spec = spec
        return spec

    def profile(self, pieces: Sequence[Piece], rows: Sequence[Any]) -> Profiled:
        """Profile a slice with the groups `rows`; it doesn't count until passed to `add`."""
        marks = {(key[0], *key[2:]) for row in rows for key in keys_of(row)} if self._profiles_fields else set()
        groups = self._groups(marks)
        ruled = {mark for mark, writer in self._writers.items() if writer.rules}
        profiled = Profiled(_small(groups, pieces, rows, ruled))
        groups = [group for group in groups if (group.topic, group.side) not in profiled.small]
        if groups:  # otherwise Spark sorts a grouping of more than 128 keys, with all its sketches
            self._session.conf.set("spark.sql.objectHashAggregate.sortBased.fallbackThreshold", str(GROUPS_IN_MEMORY))
        query = profile_query(self._session, self._spec.connection, groups, pieces, self._spec.profile.reveal)
        if query is not None:
            counts = self._control.run("profiling fields", query.collect)
            for number, group in enumerate(groups):
                own = [row for row in counts if row["group"] == number]
                profiled.counted.append((group, list(counted(group, own, self._spec.profile.reveal))))
        share = self._share(pieces, groups)
        selections = [self._whole(pieces, marks, profiled.small), share, *self._unexplained(profiled, pieces, share)]
        profiled.lines = self._decoding.lines(selections)
        return profiled

    def _groups(self, groups_met: set[tuple[str, Side, str, str]]) -> list[ProfileGroup]:
        """Return the groups that are counted natively; that decision is made once per schema and side."""
        now: dict[tuple[str, Side], set[Mark]] = {}
        for topic, side, kind, mark in sorted(groups_met):
            framing = as_framing(kind)
            writer = self._writers.get((framing, mark)) if framing is not None else None
            if framing is None or writer is None or writer.tree is None:
                continue
            if (topic, side, (framing, mark)) not in self._apart:
                now.setdefault((topic, side), set()).add((framing, mark))
                self._native.setdefault((topic, side), {}).setdefault((framing, mark), writer.tree)
        groups = []
        for (topic, side), marks in sorted(now.items()):
            native = self._native[topic, side]
            reader, readable = avro_schemas.common(native)
            for apart in native.keys() - set(readable):
                self._apart.add((topic, side, apart))
                del native[apart]
            trees = {mine: native[mine] for mine in sorted(marks & native.keys())}
            if reader is not None and trees:
                groups.append(ProfileGroup(topic, side, reader, trees, {mine: raw_mark(*mine) for mine in trees}))
        return groups

    def _whole(
        self,
        pieces: Sequence[Piece],
        groups_met: set[tuple[str, Side, str, str]],
        small: frozenset[tuple[str, Side]],
    ) -> BodySelection:
        """Select the bodies that all go through Python: JSON without a schema, and schemas not counted natively."""
        marks: Marks = {}
        indexed: dict[Framing, list[bytes]] = {}
        plain: set[tuple[str, Side]] = set()
        for topic, side, kind, mark in groups_met:
            framing = as_framing(kind)
            if framing is None:
                plain |= {(topic, side)} if kind in JSON_CLASSES else set()
                continue
            writer = self._writers.get((framing, mark))
            if writer is not None and not self._is_native((topic, side, framing, mark), small):
                raw = raw_mark(framing, mark)
                marks.setdefault((topic, side), {}).setdefault(framing, []).append(raw)
                if format_of(writer.kind).has_message_indexes:
                    indexed.setdefault(framing, []).append(raw)
        topics = {topic for topic, _ in (*marks, *plain)}
        some = tuple(piece for piece in pieces if piece.topic in topics)
        return BodySelection(some, marks, indexed, frozenset(plain))

    def _share(self, pieces: Sequence[Piece], groups: Sequence[ProfileGroup]) -> BodySelection:
        """Select the first messages of the slice with natively counted schemas."""
        topics = {group.topic for group in groups}
        some, _ = kafka_reader.cut([piece for piece in pieces if piece.topic in topics], SHARE)
        marks: Marks = {(group.topic, group.side): _by_framing(group.raws) for group in groups}
        return BodySelection(tuple(some), marks, is_share=True)

    def _unexplained(
        self, profiled: Profiled, pieces: Sequence[Piece], share: BodySelection
    ) -> Iterator[BodySelection]:
        """Select undecodable bodies whose offsets will be kept, to find their reasons.

        Only those: a good body would be counted twice. Bodies that the share decodes anyway are left out.
        """
        by_partition = {(piece.topic, piece.range.partition): piece for piece in pieces}
        share_ranges = {(piece.topic, piece.range.partition): piece.range for piece in share.pieces}
        for group, facts in profiled.counted:
            candidates: dict[int, list[tuple[int, int]]] = {}  # by partition: rank and offset
            for fact in facts:
                if isinstance(fact, CountedBad) and not fact.is_large:
                    before = self._profiles.bad.get(
                        ((group.topic, group.side, *fact.mark), fact.partition, "malformed")
                    )
                    room = MOST_OFFSETS - (len(before.offsets) if before is not None else 0)
                    share_range = share_ranges.get((group.topic, fact.partition))
                    candidates.setdefault(fact.partition, []).extend(
                        (rank, offset)
                        for rank, offset in enumerate(list(fact.sizes)[:room])
                        if share_range is None or not share_range.start <= offset < share_range.end
                    )
            marks: Marks = {(group.topic, group.side): _by_framing(group.raws)}
            # If there are many, the first ones of every schema come first.
            runs = {
                partition: runs_of(offset for _, offset in sorted(ranked)[:MOST_REREAD])
                for partition, ranked in candidates.items()
            }
            for number in range(max(map(len, runs.values()), default=0)):
                some = [
                    replace(piece, range=replace(piece.range, start=ranges[number][0], end=ranges[number][1]))
                    for partition, ranges in sorted(runs.items())
                    if number < len(ranges) and (piece := by_partition.get((group.topic, partition))) is not None
                ]
                if some:
                    yield BodySelection(tuple(some), marks, is_share=True)

    def add(self, profiled: Profiled) -> None:
        """Add a slice's profile."""
        for group, facts in profiled.counted:
            for limit, most, number in group.left_out():
                self._profiles.leave_out(((group.topic, group.side, None, ""), limit), most, number=number)
            for fact in facts:
                owner = (group.topic, group.side, *fact.mark)
                if isinstance(fact, CountedField):
                    self._profiles.add_field(owner, fact.path, fact.row, natively=True)
                elif fact.is_large:
                    reasons = {offset: too_large(size) for offset, size in fact.sizes.items()}
                    bad = self._profiles.bad.setdefault((owner, fact.partition, "not_read"), BadBodies())
                    bad.add(fact.span, reasons, {TOO_LARGE: fact.span.messages}, fact.ranges)
                else:
                    bad = self._profiles.bad.setdefault((owner, fact.partition, "malformed"), BadBodies())
                    bad.add_unexplained(fact.span, fact.sizes, fact.ranges)
        self._small = profiled.small
        self._add_small_fields(profiled.lines)
        for name, key, what in profiled.lines:
            getattr(self, f"_add_{name}")(key, what)

    def _add_small_fields(self, lines: Sequence[Any]) -> None:
        """Add plain Avro that went through Python only as the native pass does: at every path that its schema declares."""
        messages: Counter[Owner] = Counter()
        paths: dict[Owner, Mapping[str, TypeNode]] = {}
        for name, key, row in lines:
            if name != "field" or (key[0], key[1]) not in self._small:
                continue
            owner = owner_of(*key[:4])
            tree = self._native.get(owner[:2], {}).get(cast("Mark", owner[2:]))
            if tree is None:
                continue
            if not row["path"]:
                messages[owner] += row["messages"]
            if row["path"] in paths.setdefault(owner, avro_schemas.kinds_below(tree)):
                counts = {name: row[name] for name in _COUNTS if name in row} | {"messages": 0}
                self._profiles.add_field(owner, row["path"], counts, natively=True)
        for owner, number in messages.items():
            for path in paths[owner]:
                self._profiles.add_field(owner, path, _NOTHING | {"messages": number}, natively=True)

    def forget(self, topic: str) -> None:
        """Drop all counts of a lost topic."""
        self._profiles.forget(topic)

    def observations(self) -> Iterator[Observation]:
        """Return everything found in the slices."""
        return self._profiles.observations(self._estimates())

    def _estimates(self) -> dict[tuple[Owner, str], int]:
        """Return the numbers of distinct values from Spark's sketches, merged over all slices.

        Nothing else depends on them: if Spark has no time left, they stay unknown.
        """
        sketches = list(self._profiles.sketches().items())
        if not sketches:
            return {}
        rows = [(number, bytearray(sketch)) for number, (_, some) in enumerate(sketches) for sketch in some]
        try:
            merged = self._session.createDataFrame(rows, "number int, sketch binary").groupBy("number")
            query = merged.agg(f.expr("hll_sketch_estimate(hll_union_agg(sketch))").alias("estimate"))
            estimates = self._control.run("counting distinct values", query.collect)
        except (
            ScanInterrupted,
            SparkUnavailable,
            PySparkException,
            ValueError,
        ) as error:  # ValueError: a closed session
            if isinstance(error, ScanInterrupted) and error.details.get("reason") != "deadline":
                raise
            logger.warning("distinct values weren't counted: %s", first_line(error))
            return {}
        return {sketches[row.number][0]: row.estimate for row in estimates}

    def _is_native(self, owner: Owner, small: frozenset[tuple[str, Side]]) -> bool:
        """Return whether the native pass counts these bodies in a slice whose `small` sides go through Python only."""
        topic, side, framing, mark = owner
        is_mark = framing is not None and (framing, mark) in self._native.get((topic, side), {})
        return is_mark and (topic, side) not in small

    def _add_field(self, key: list[Any], row: dict[str, Any]) -> None:
        topic, side, framing, raw, message_type = key
        owner = owner_of(topic, side, framing, raw)
        self._profiles.add_field(owner, row["path"], row, natively=False, message_type=message_type)

    def _add_ranks(self, key: list[Any], table: dict[str, Any]) -> None:
        self._profiles.add_ranks(owner_of(*key[:4]), table["paths"], table["rows"])

    def _add_undecodable(self, key: list[Any], what: dict[str, Any]) -> None:
        topic, side, partition, framing, raw, problem = key
        owner, offsets = owner_of(topic, side, framing, raw), dict(what["offsets"])
        is_counted = self._is_native(owner, self._small)
        kind = cast("BodyProblem", "malformed" if is_counted else problem)
        bad = self._profiles.bad.setdefault((owner, partition, kind), BadBodies())
        if is_counted:  # counted natively, as it didn't decode there
            bad.explain(offsets)
        else:
            bad.add(Span(*what["span"]), offsets, what["reasons"], what["ranges"])

    def _add_indexes(self, key: list[Any], span: list[int]) -> None:
        topic, side, partition, framing, raw, shown = key
        group_key = (owner_of(topic, side, framing, raw), partition, shown)
        self._profiles.indexes[group_key] = joined(self._profiles.indexes.get(group_key), Span(*span))

    def _add_changes(self, key: list[Any], what: dict[str, Any]) -> None:
        span, marks = self._profiles.changes.get(tuple(key), (None, [0] * 6))
        added = [one + other for one, other in zip(marks, what["marks"], strict=True)]
        self._profiles.changes[tuple(key)] = (joined(span, Span(*what["span"])), added)

    def _add_shapes(self, key: list[Any], span: list[int]) -> None:
        shape_key = cast("tuple[str, Side, int, str]", tuple(key))
        self._profiles.shapes[shape_key] = joined(self._profiles.shapes.get(shape_key), Span(*span))

    def _add_text(self, digest: str, text: str) -> None:
        self._profiles.texts[digest] = text

    def _add_samples(self, key: list[Any], samples: list[list[Any]]) -> None:
        owner = owner_of(*key)
        topic, side, framing, mark = owner
        topic_samples = self._profiles.samples.setdefault(owner, [])
        for partition, offset, time, text, is_first in samples:
            place = (partition, offset, time)
            sample = Sample(topic, side, *place, framing, mark, text, self._spec.profile.reveal)
            topic_samples.append((sample, is_first))
        topic_samples.sort(key=lambda item: (item[0].partition, item[0].offset))
        most = self._spec.profile.samples
        topic_samples[most:] = [item for item in topic_samples[most:] if item[1]][:MOST_FIRSTS]

    def _add_unusable(self, key: list[str], reason: str) -> None:
        framing, raw = key
        _, _, known_framing, mark = owner_of("", "value", framing, raw)
        if known_framing is not None:
            self._profiles.unusable[known_framing, mark] = reason

    def _add_left_out(self, key: list[Any], messages: int) -> None:
        topic, side, framing, raw, limit = key
        most = MOST_GROUPS if limit == "tables" else LIMITS[limit]
        self._profiles.leave_out((owner_of(topic, side, framing, raw), limit), most, messages=messages)

    def _add_rule(self, key: list[Any], row: dict[str, Any]) -> None:
        owner = owner_of(*key)
        writer = self._writers[cast("Mark", owner[2:])]
        rule = next(rule for rule in writer.rules if rule.name == row["name"])
        self._profiles.rules.setdefault((owner, rule), RuleSum()).add(row)

    def _add_given_up(self, key: list[Any], reason: str) -> None:
        self._profiles.given_up[owner_of(*key)] = reason


#: what the native pass counts at a path
_COUNTS: Final = ("present", "nulls", "kinds", "values", "hashes", "low", "high")
_NOTHING: Final[dict[str, Any]] = {"present": 0, "nulls": 0, "kinds": {}, "values": {}}


def _small(
    groups: Iterable[ProfileGroup], pieces: Iterable[Piece], rows: Iterable[Any], ruled: Collection[Mark]
) -> frozenset[tuple[str, Side]]:
    """Return the sides of topics with so few messages that Python counts them in less time than Spark compiles.

    Messages with a mark in `ruled`, whose schema has data contract rules, go through Python in any number.
    """
    offsets: Counter[str] = Counter()
    for piece in pieces:
        offsets[piece.topic] += piece.size
    large = {row.topic for row in rows if row.largest > LARGEST_BODY}
    return frozenset(
        (group.topic, group.side)
        for group in groups
        if (offsets[group.topic] <= FEW or not group.trees.keys().isdisjoint(ruled))
        and group.topic not in large
        and _fits_python(group)
    )


def _fits_python(group: ProfileGroup) -> bool:
    """Return whether the limits of the workers leave out nothing that the native pass would count."""
    sizes = [avro_schemas.size_of(tree) for tree in group.trees.values()]
    return max(number for number, _ in sizes) <= MOST_PATHS and max(depth for _, depth in sizes) <= DEEPEST


def _writer(writer: WriterSchema, *, changes: bool) -> _ProfileWriter:
    """Return a schema to decode with; raises SchemaNotUsable. Debezium's envelopes go through Python if `changes`."""
    if writer.kind not in BODIES:
        raise avro_schemas.SchemaNotUsable(format_of(writer.kind).unavailable.removesuffix("."))
    if writer.kind != "AVRO":
        return _ProfileWriter(writer.kind, writer.text, rules=writer.rules)
    schema = avro_schemas.bare(writer.text)
    try:
        tree: TypeNode | None = avro_schemas.tree_of(schema)
    except NotMergeable:
        tree = None
    if tree is not None and changes and {"op", "source"} <= tree.fields.keys():
        tree = None
    return _ProfileWriter("AVRO", json.dumps(schema), tree, writer.rules)


def _by_framing(raws: Mapping[Mark, bytes]) -> dict[Framing, list[bytes]]:
    by_framing: dict[Framing, list[bytes]] = {}
    for (framing, _), raw in raws.items():
        by_framing.setdefault(framing, []).append(raw)
    return by_framing
