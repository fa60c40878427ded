"""Detects the framing of messages with Spark SQL functions, and counts messages by topic, partition and framing.

No row passes through Python. One Spark job groups all topics of a slice; a Tally adds up the slices of a scan.

A key or value names its writer schema in one of three places: its first bytes (a zero byte and the schema id, or a byte
1 and the GUID's 16 bytes); the header `__key_schema_id` or `__value_schema_id` (a byte 1, the GUID's 16 bytes, and for
Protobuf the message indexes), in which case all its bytes are the body; or, for values, Spring's content type
`application/[prefix].[subject].v[n]+avro` in the header `contentType`, in quotes if it was written as JSON. A header
takes precedence over the first bytes, as in the established deserializers.

Framings of other registries are recognised, but name no schema of this one: AWS Glue's (a byte 3, one for the compression,
a UUID), Azure's (a content type `avro/binary+` and 32 digits) and Avro's single-object encoding (C3 01, a fingerprint).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as f

from registry.observations import (
    FramedMessages,
    FramedTwice,
    Framing,
    Hint,
    NullMessages,
    Observation,
    OtherGroups,
    Side,
    Span,
    UnframedMessages,
    WriterSchema,
)

SIDES: Final[tuple[Side, Side]] = ("key", "value")
FRAMINGS: Final[tuple[Framing, ...]] = ("id", "guid", "content_type")


def _matches(part: str, pattern: str) -> str:
    """Return an SQL condition on a part of the column `{0}`; the pattern is in hexadecimal, so it needs no quoting."""
    return f"CAST(substring({{0}}, {part}) AS STRING) RLIKE CAST(X'{pattern.encode().hex()}' AS STRING)"


def _json(first: str, last: str, beginning: str) -> str:
    """Return an SQL condition for bytes that look like JSON: in brackets, or starting as only JSON does.

    A truncated body has no last bracket. A log line or a template may also start with a bracket.
    """
    is_whole = f"{_matches('1, 20', f'^{_SPACE}{first}')} AND {_matches('-20', f'{last}{_SPACE}$')}"
    return f"{_BRACKET_OR_SPACE} AND ({is_whole} OR {_matches('1, 100', f'^{_SPACE}{first}{_SPACE}({beginning})')})"


_FRAMED_BY_ID: Final = "length({0}) >= 5 AND substring({0}, 1, 1) = X'00'"
_FRAMED_BY_GUID: Final = "length({0}) >= 17 AND substring({0}, 1, 1) = X'01'"
_SPACE: Final = "[ \\t\\r\\n]*"
_BRACKET_OR_SPACE: Final = "substring({0}, 1, 1) IN (X'7B', X'5B', X'20', X'09', X'0A', X'0D')"
_SCALAR: Final = "(true|false|null|-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?)"
# `{0}` is the side's column. The first condition that holds gives the class of its bytes.
CLASSES: Final = (
    ("null", "{0} IS NULL"),
    ("guid", "{0}_guid IS NOT NULL"),
    ("content_type", "{0}_content_type IS NOT NULL"),
    ("azure", "{0}_azure"),
    ("id", _FRAMED_BY_ID),
    ("guid", _FRAMED_BY_GUID),
    ("glue", "length({0}) >= 18 AND substring({0}, 1, 2) IN (X'0300', X'0305')"),
    ("single_object", "length({0}) >= 10 AND substring({0}, 1, 2) = X'C301'"),
    ("empty", "length({0}) = 0"),
    ("cut_frame", "substring({0}, 1, 1) = X'00'"),
    ("json_object", _json(r"\{", r"\}", '$|"')),
    ("json_array", _json(r"\[", r"\]", rf'$|["{{\[]|{_SCALAR}{_SPACE}($|,)')),
    ("xml", "substring({0}, 1, 1) = X'3C'"),
    ("avro_file", "substring({0}, 1, 4) = X'4F626A01'"),
    ("gzip", "substring({0}, 1, 2) = X'1F8B'"),
    ("text", "substring({0}, 1, 1) BETWEEN X'20' AND X'7E'"),
    ("binary", "true"),
)
# No lambda: with one, Spark doesn't compile the query, and each step copies every message.
_HEADER: Final = "get(headers.value, CAST(array_position(headers.key, '{0}') AS INT) - 1)"
_CONTENT_TYPE: Final = '^"?application/([A-Za-z0-9_.$-]{1,400}[.]v[0-9]{1,9})[+]avro *(?:;[^"]*)?"?$'
_AZURE: Final = '^"?avro/binary[+][0-9a-fA-F]{32}"?$'
_MARKS: Final = {
    "guid": "substring({0}_guid, 2, 16)",
    "content_type": "encode({0}_content_type, 'UTF-8')",
    "id": "substring({0}, 2, 4)",
}


def with_framing(messages: DataFrame, *columns: str) -> DataFrame:
    """Return `columns`, and the class (a name in CLASSES), raw mark and header indexes of each side.

    `{side}_indexes` has the bytes after a GUID in its header: the message indexes of Protobuf. Null without such a
    header.
    """
    headers = {
        **{f"{side}_header": _header(f"__{side}_schema_id") for side in SIDES},
        "content_type_header": _header("contentType", "content-type"),
    }
    markers = {f"{side}_guid": f.expr(_guid(f"{side}_header")) for side in SIDES}
    markers["value_content_type"] = f.expr(
        "nullif(CASE WHEN content_type_header IS NOT NULL THEN "
        f"regexp_extract(CAST(content_type_header AS STRING), '{_CONTENT_TYPE}', 1) END, '')"
    )
    markers["key_content_type"] = f.lit(None).cast("string")
    markers["value_azure"] = f.expr(f"CAST(content_type_header AS STRING) RLIKE '{_AZURE}'")
    markers["key_azure"] = f.lit(False)
    sides = {
        name: column
        for side in SIDES
        for name, column in (
            (f"{side}_class", _side_class(side)),
            (f"{side}_mark", _mark(side)),
            (f"{side}_indexes", f.expr(f"substring({side}_guid, 18)")),
        )
    }
    return messages.withColumns(headers).withColumns(markers).withColumns(sides).select(*columns, *sides)


def without_large(messages: DataFrame, largest: int) -> DataFrame:
    """Add `key_size` and `value_size`, and keep only both ends of sides that are larger than `largest` bytes.

    The ends suffice to detect the framing, and a step that copies messages doesn't fill the server's memory.
    """
    sizes = {f"{side}_size": f.expr(f"length({side})") for side in SIDES}
    ends = "concat(substring({0}, 1, 200), substring({0}, -200))"
    small = {
        side: f.expr(f"CASE WHEN length({side}) > {largest} THEN {ends.format(side)} ELSE {side} END") for side in SIDES
    }
    return messages.withColumns(sizes | small)


def body(side: Side) -> str:
    """Return an SQL expression over `with_framing` for the bytes of a side that its schema describes."""
    return (
        f"CASE WHEN {side}_class = 'id' THEN substring({side}, 6) "
        f"WHEN {side}_class = 'guid' AND {side}_indexes IS NULL THEN substring({side}, 18) ELSE {side} END"
    )


def mark_of(framing: str, raw: bytes) -> str:
    """Convert a raw mark to the text that observations use."""
    if framing == "id":
        return str(int.from_bytes(raw, "big"))
    return str(uuid.UUID(bytes=bytes(raw))) if framing == "guid" else bytes(raw).decode("utf-8", "replace")


def raw_mark(framing: Framing, mark: str) -> bytes:
    """Convert a mark to its bytes in a message; raises ValueError if it is invalid."""
    if framing == "id":
        number = int(mark)
        if not 0 <= number < 2**32:
            raise ValueError(f"{mark[:40]} is not a schema id of four bytes")
        return number.to_bytes(4, "big")
    return uuid.UUID(mark).bytes if framing == "guid" else mark.encode("utf-8")


def is_one_of(side: Side, marks: dict[Framing, list[bytes]]) -> str:
    """Return an SQL condition: the side's writer schema is one of these."""
    conditions = [
        f"({side}_class = '{framing}' AND {side}_mark IN ({', '.join(binary(raw) for raw in sorted(raws))}))"
        for framing, raws in marks.items()
        if raws
    ]
    return f"({' OR '.join(conditions)})" if conditions else "false"


def binary(raw: bytes) -> str:
    """Return the bytes as an SQL literal."""
    return f"X'{raw.hex()}'"


def text(value: str) -> str:
    """Return any text as an SQL literal."""
    return f"CAST({binary(value.encode('utf-8'))} AS STRING)"


def as_framing(name: str) -> Framing | None:
    """Return the framing of a class; None for the classes of unframed bytes."""
    return name if name in FRAMINGS else None


def _header(*names: str) -> Column:
    """Return the first header with one of these names; null if there is none."""
    candidates = ", ".join(_HEADER.format(name) for name in names)
    return f.expr(f"CASE WHEN headers IS NOT NULL THEN coalesce({candidates}) END")


def _guid(header: str) -> str:
    return f"CASE WHEN {_FRAMED_BY_GUID.format(header)} THEN {header} END"


def _side_class(side: Side) -> Column:
    whens = " ".join(f"WHEN {condition.format(side)} THEN '{name}'" for name, condition in CLASSES)
    return f.expr(f"CASE {whens} END")


def _mark(side: Side) -> Column:
    whens = [
        f"WHEN {{0}} IS NOT NULL AND {{0}}_{name} IS NOT NULL THEN {_MARKS[name]}" for name in ("guid", "content_type")
    ]
    whens.append(f"WHEN {_FRAMED_BY_ID} THEN {_MARKS['id']} WHEN {_FRAMED_BY_GUID} THEN substring({{0}}, 2, 16)")
    return f.expr(f"CASE {' '.join(whens)} END".format(side))


GROUPED = ("topic", "partition", *(f"{side}_{part}" for side in SIDES for part in ("class", "mark", "inner")))
_FRAMED = f"IN ({', '.join(repr(name) for name in FRAMINGS)})"
#: the newest hours counted per group; a producer may write any time
MOST_HOURS: Final = 24
_HOUR = "greatest(0, unix_millis(timestamp)) DIV 3600000"
SIZE = "coalesce(length(key), 0) + coalesce(length(value), 0)"


def group_messages(messages: DataFrame, writers: Iterable[WriterSchema], max_groups: int) -> DataFrame:
    """Count messages by partition and by class and mark of both sides.

    At most `max_groups` groups keep their marks: known schemas first, then by size. The others of a partition become
    one row with `folded`, so that foreign bytes that look like ids can't make millions of rows.
    """
    marks = marks_of(writers)
    columns = ("topic", "partition", "offset", "timestamp", "size", *SIDES)
    framed = with_framing(messages.withColumn("size", f.expr(SIZE)), *columns)
    inner = {f"{side}_inner": f.expr(_inner(side, marks.get("id", []))) for side in SIDES}
    framed = framed.withColumns(inner).select(*GROUPED, "offset", "timestamp", "size")
    groups = _with_hours(framed)
    is_known = " AND ".join(_is_known_sql(side, marks) for side in SIDES)
    order = f"ORDER BY ({is_known}) DESC, messages DESC"
    ranked = groups.withColumn("folded", f.expr(f"row_number() OVER ({order}) > {int(max_groups)}"))
    whole = [f.expr(f"CASE WHEN NOT folded THEN {name} END").alias(name) for name in GROUPED[2:]]
    return ranked.groupBy("topic", "partition", "folded", *whole).agg(
        f.count("*").alias("groups"),
        *_together(),
        f.expr("first(hours) FILTER (WHERE NOT folded)").alias("hours"),
    )


def _with_hours(framed: DataFrame) -> DataFrame:
    """Group the messages and add the counts by hour: only the newest hours, each complete."""
    by_hour = framed.groupBy(*GROUPED, f.expr(_HOUR).alias("hour")).agg(
        f.count("*").alias("messages"),
        f.sum("size").alias("bytes"),
        f.max("size").alias("largest"),
        f.min("offset").alias("first_offset"),
        f.max("offset").alias("last_offset"),
        f.expr("unix_millis(min(timestamp))").alias("first_time"),
        f.expr("unix_millis(max(timestamp))").alias("last_time"),
    )
    newest = f"slice(sort_array(collect_list(struct(hour, messages)), false), 1, {MOST_HOURS})"
    return by_hour.groupBy(*GROUPED).agg(
        *_together(),
        f.expr(newest).alias("hours"),
    )


def _together() -> list[Column]:
    """Return the aggregates that merge several groups into one."""
    return [
        f.sum("messages").alias("messages"),
        f.sum("bytes").alias("bytes"),
        f.max("largest").alias("largest"),
        f.min("first_offset").alias("first_offset"),
        f.max("last_offset").alias("last_offset"),
        f.min("first_time").alias("first_time"),
        f.max("last_time").alias("last_time"),
    ]


def marks_of(writers: Iterable[WriterSchema]) -> dict[Framing, list[bytes]]:
    """Return the raw marks of the writers by framing."""
    marks: dict[Framing, list[bytes]] = {}
    for writer in writers:
        marks.setdefault(writer.framing, []).append(raw_mark(writer.framing, writer.mark))
    return marks


def _inner(side: Side, ids: Iterable[bytes]) -> str:
    """Return SQL for the known schema id at the start of the bytes although a header has a GUID: framed twice."""
    listed = ", ".join(binary(raw) for raw in sorted(set(ids)))
    if not listed:
        return "CAST(NULL AS BINARY)"
    framed = f"{side}_class = 'guid' AND substring({side}, 1, 1) = X'00' AND substring({side}, 2, 4) IN ({listed})"
    return f"CASE WHEN {framed} THEN substring({side}, 2, 4) END"


def _is_known_sql(side: Side, marks: dict[Framing, list[bytes]]) -> str:
    return f"({side}_class NOT {_FRAMED} OR {is_one_of(side, marks)})"


# topic, partition, side, class, mark ("" for unframed bytes)
GroupKey = tuple[str, int, Side, str, str]


@dataclass
class Tally:
    """The groups found so far; groups beyond the limit are folded into one per partition."""

    groups: dict[GroupKey, Span] = field(default_factory=dict)
    # hour since 1970 → messages; only the newest hours of each group
    hours: dict[GroupKey, dict[int, int]] = field(default_factory=dict)
    folded: dict[tuple[str, int], tuple[int, Span]] = field(default_factory=dict)
    # topic, partition, side, GUID, schema id
    twice: dict[tuple[str, int, Side, str, int], Span] = field(default_factory=dict)
    partitions: dict[tuple[str, int], int] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)

    @property
    def total_bytes(self) -> int:
        """Return the size in bytes of all counted keys and values."""
        return sum(self.bytes.values())

    def add(self, row: Any) -> None:
        """Add one row of the grouping to its partition and to both of its sides."""
        partition, span = (row.topic, row.partition), span_of(row)
        self.partitions[partition] = self.partitions.get(partition, 0) + span.messages
        self.messages[row.topic] = self.messages.get(row.topic, 0) + span.messages
        self.bytes[row.topic] = self.bytes.get(row.topic, 0) + span.bytes
        if row.folded:
            groups, before = self.folded.get(partition, (0, None))
            self.folded[partition] = (groups + row.groups, joined(before, span))
            return
        for key in keys_of(row):
            self.groups[key] = joined(self.groups.get(key), span)
            self.hours[key] = newest_hours(self.hours.get(key, {}), row.hours or ())
            inner = row[f"{key[2]}_inner"]
            if inner is not None:
                twice = (*partition, key[2], key[4], int.from_bytes(inner, "big"))
                self.twice[twice] = joined(self.twice.get(twice), span)

    def forget(self, topic: str) -> None:
        """Drop all counts of a lost topic."""
        self.groups = {key: span for key, span in self.groups.items() if key[0] != topic}
        self.hours = {key: hours for key, hours in self.hours.items() if key[0] != topic}
        self.twice = {key: span for key, span in self.twice.items() if key[0] != topic}
        self.folded = {partition: some for partition, some in self.folded.items() if partition[0] != topic}
        self.partitions = {partition: count for partition, count in self.partitions.items() if partition[0] != topic}
        self.messages.pop(topic, None)
        self.bytes.pop(topic, None)

    def fold_beyond(self, most: int, marks: frozenset[tuple[str, str]]) -> None:
        """Keep `most` groups: known marks first, then by size. Fold the others.

        Each slice respects the limit, but together the slices may have more groups.
        """
        ranked = sorted(self.groups.items(), key=lambda item: (_is_foreign(item[0], marks), -item[1].messages))
        for key, span in ranked[most:]:
            partition = key[:2]
            groups, before = self.folded.get(partition, (0, None))
            self.folded[partition] = (groups + 1, joined(before, span))
            del self.groups[key]
            self.hours.pop(key, None)

    def observations(self) -> Iterator[Observation]:
        """Yield the groups as observations, sorted."""
        for (topic, partition, side, kind, mark), span in sorted(self.groups.items()):
            framing = as_framing(kind)
            if kind == "null":
                yield NullMessages(topic, side, partition, span)
            elif framing is None:
                yield UnframedMessages(topic, side, partition, cast("Hint", kind), span)
            else:
                hours = self.hours.get((topic, partition, side, kind, mark), {})
                counted = {str(hour): number for hour, number in sorted(hours.items())}
                yield FramedMessages(topic, side, partition, framing, mark, span, counted)
        for (topic, partition, side, guid, schema_id), span in sorted(self.twice.items()):
            yield FramedTwice(topic, side, partition, guid, schema_id, span)
        for (topic, partition), (groups, span) in sorted(self.folded.items()):
            yield OtherGroups(topic, partition, groups, span)


def keys_of(row: Any) -> Iterator[GroupKey]:
    """Yield the group of each side of a row of the grouping; nothing for a folded row."""
    if row.folded:
        return
    for side in SIDES:
        raw, kind = row[f"{side}_mark"], row[f"{side}_class"]
        yield row.topic, row.partition, side, kind, mark_of(kind, raw) if raw is not None else ""


def newest_hours(before: Mapping[int, int], more: Iterable[Any]) -> dict[int, int]:
    """Add the hours of one more row and return only the newest.

    An hour missing from a row is older than the newest hours of that row, so it is dropped here too. The hours that
    remain are complete.
    """
    hours = dict(before)
    for row in more:
        hours[row.hour] = hours.get(row.hour, 0) + row.messages
    return dict(sorted(hours.items(), reverse=True)[:MOST_HOURS])


def span_of(row: Any) -> Span:
    """Return the span in the columns of a row."""
    return Span(row.messages, row.bytes, row.first_offset, row.last_offset, row.first_time, row.last_time)


def joined(one: Span | None, other: Span) -> Span:
    """Merge two spans of one partition."""
    if one is None:
        return other
    return Span(
        one.messages + other.messages,
        one.bytes + other.bytes,
        min(one.first_offset, other.first_offset),
        max(one.last_offset, other.last_offset),
        min(one.first_time, other.first_time),
        max(one.last_time, other.last_time),
    )


def _is_foreign(key: GroupKey, marks: frozenset[tuple[str, str]]) -> bool:
    return as_framing(key[3]) is not None and (key[3], key[4]) not in marks
