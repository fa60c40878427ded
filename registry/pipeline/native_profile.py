"""The field profile of plain Avro in Spark SQL functions: one decoding pass for all schemas of a topic's side.

All bodies of a side are read with one reader schema (`avro_schemas.common`), then counted by writer schema. There are
two groupings: by partition, which reports undecodable bodies with their offsets, and over all partitions, which merges
the sketches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.avro.functions import from_avro
from pyspark.sql.connect.session import SparkSession

from registry.observations import Framing, KafkaConnection, Limit, Side, Span
from registry.pipeline import avro_schemas, kafka_reader
from registry.pipeline.avro_schemas import MOST_SYMBOLS, Path, TypeNode
from registry.pipeline.framing import SIZE, binary, body, is_one_of, text, with_framing, without_large
from registry.pipeline.kafka_reader import Piece
from registry.pipeline.workers.fields import SECONDS, SHOWN, YEAR, shown_magnitude
from registry.pipeline.workers.message_reader import MOST_RANGES

CHUNK: Final = 50  # paths counted in one grouping
MOST_PATHS: Final = 600
#: bytes; larger bodies aren't decoded but observed as not read: a few of them fill a server's memory
LARGEST_BODY: Final = 16 * 1024 * 1024
SKETCH: Final = 10  # log2 of a sketch's size; the number of distinct values is within about 3 %
MOST_OFFSETS: Final = 5
UNREAD: Final = ("bad", "large")  # bodies that don't decode, and bodies too large to decode
Mark = tuple[Framing, str]


@dataclass(frozen=True)
class ProfileGroup:
    """The plain schemas of one side of a topic, and their common reader."""

    topic: str
    side: Side
    reader: TypeNode
    trees: Mapping[Mark, TypeNode]
    raws: Mapping[Mark, bytes]

    def left_out(self) -> Iterator[tuple[Limit, int, int]]:
        """Yield each limit that keeps fields or symbols from being counted, its value, and how many are left out."""
        paths = avro_schemas.paths(self.reader)
        symbols = sum(max(0, len(path.node.symbols) - MOST_SYMBOLS) for path in paths if path.node.kind == "enum")
        if len(paths) > MOST_PATHS:
            yield "fields", MOST_PATHS, len(paths) - MOST_PATHS
        if symbols:
            yield "symbols", MOST_SYMBOLS, symbols

    def chunks(self) -> list[list[Path]]:
        """Return the paths in groups of at most CHUNK; a record at a group's end moves to the group of its fields."""
        left, path_groups = avro_schemas.paths(self.reader)[:MOST_PATHS], []
        while left:
            end = min(CHUNK, len(left))
            while end < len(left) and end > 1 and left[end - 1].node.kind == "record":
                end -= 1
            path_groups.append(left[:end])
            left = left[end:]
        return path_groups


def profile_query(
    session: SparkSession,
    connection: KafkaConnection,
    groups: Sequence[ProfileGroup],
    pieces: Sequence[Piece],
    reveal: bool,
) -> DataFrame | None:
    """Return one query over all groups, whose rows are for `counted`; None if there is nothing to decode."""
    query: DataFrame | None = None
    for number, group in enumerate(groups):
        own = [piece for piece in pieces if piece.topic == group.topic]
        for chunk, paths in enumerate(group.chunks() if own else ()):
            part = _chunk(kafka_reader.read_messages(session, connection, own), group, paths, reveal, first=chunk == 0)
            part = part.select(f.lit(number).alias("group"), f.lit(chunk).alias("chunk"), "*")
            query = part if query is None else query.unionAll(part)
    return query


def _chunk(messages: DataFrame, group: ProfileGroup, paths: Sequence[Path], reveal: bool, *, first: bool) -> DataFrame:
    side = group.side
    columns = ("partition", "offset", "timestamp", "size", side, f"{side}_size")
    framed = with_framing(without_large(messages.withColumn("size", f.expr(SIZE)), LARGEST_BODY), *columns)
    own: dict[Framing, list[bytes]] = {}
    for (framing, _), raw in {mark: group.raws[mark] for mark in group.trees}.items():
        own.setdefault(framing, []).append(raw)
    # Only the first chunk reads all texts and checks that they are UTF-8; the others read only their own paths.
    texts = avro_schemas.strings(group.reader) if first else set()
    read = frozenset({path.path for path in paths} | texts)
    small = f"{side}_size <= {LARGEST_BODY}"
    # Only the first chunk reports bodies that are too large.
    wanted = framed.where(is_one_of(side, own) if first else f"{is_one_of(side, own)} AND {small}")
    decoded = wanted.withColumn("d", f.when(f.expr(small), _decoded(group, read)))
    is_valid = f"d.e = {binary(avro_schemas.END)}"
    if texts:
        is_valid += f" AND {avro_schemas.valid_texts(group.reader, 'd.b')}"
    decoded = decoded.withColumn("d", f.expr(f"CASE WHEN {is_valid} THEN d END"))
    counted = [column for number, path in enumerate(paths) for column in _counts(number, path, reveal)]
    by_partition = decoded.groupBy("partition", f"{side}_class", f"{side}_mark").agg(
        f.count("*").alias("messages"), *_unread(side, small, first=first), *counted
    )
    merged = [column for number, path in enumerate(paths) for column in _merges(number, path, reveal)]
    places = [
        f.expr(f"filter(collect_list(struct(partition, {name}.*)), each -> each.messages > 0)").alias(name)
        for name in UNREAD
    ]
    total = by_partition.groupBy(f"{side}_class", f"{side}_mark").agg(
        f.sum("messages").alias("messages"), *places, *merged
    )
    stats = f.array(*(f.expr(_stat(number, path, reveal)) for number, path in enumerate(paths)))
    return total.select(
        f.col(f"{side}_class").alias("class"),
        f.col(f"{side}_mark").alias("mark"),
        "messages",
        *UNREAD,
        stats.alias("stats"),
    )


def _decoded(group: ProfileGroup, paths: frozenset[str]) -> Column:
    """Return the body read with the reader of these paths, whatever schema wrote it; `ok` isn't true if that failed.

    Spark ignores bytes that are left over, so END is appended to each body and must be what is read there.
    """
    reader = avro_schemas.reader_text(group.reader, paths)
    by_text: dict[str, dict[Framing, list[bytes]]] = {}
    for (framing, mark), tree in group.trees.items():
        marks = by_text.setdefault(avro_schemas.writer_text(tree, group.reader), {})
        marks.setdefault(framing, []).append(group.raws[framing, mark])
    ended = f"concat({body(group.side)}, {binary(avro_schemas.END)})"
    body_column: Column | None = None
    for writer, marks in by_text.items():
        read = from_avro(f.expr(ended), writer, {"mode": "PERMISSIVE", "avroSchema": reader})
        condition = f.expr(is_one_of(group.side, marks))
        body_column = f.when(condition, read) if body_column is None else body_column.when(condition, read)
    if body_column is None:
        raise ValueError("a group has a schema")
    return body_column


def _unread(side: Side, small: str, *, first: bool) -> Iterator[Column]:
    """Count messages that don't decode or are too large, and where; only the first chunk reports them."""
    conditions = (f"{small} AND NOT coalesce(d.ok, false)", f"NOT {small}") if first else ("false", "false")
    for name, condition in zip(UNREAD, conditions, strict=True):
        place = f"CASE WHEN {condition} THEN struct(offset, {side}_size AS size) END"
        expressions = {
            "messages": f"count_if({condition})",
            "bytes": f"coalesce(sum(CASE WHEN {condition} THEN size END), 0)",
            "first_offset": f"min(CASE WHEN {condition} THEN offset END)",
            "last_offset": f"max(CASE WHEN {condition} THEN offset END)",
            "first_time": f"unix_millis(min(CASE WHEN {condition} THEN timestamp END))",
            "last_time": f"unix_millis(max(CASE WHEN {condition} THEN timestamp END))",
            "offsets": f"slice(sort_array(collect_list({place})), 1, {MOST_RANGES})",
        }
        yield f.struct(*(f.expr(expression).alias(part) for part, expression in expressions.items())).alias(name)


def _symbols(node: TypeNode) -> tuple[str, ...]:
    """Return the values of a path that are counted one by one."""
    if node.kind == "boolean":
        return ("true", "false")
    return node.symbols[:MOST_SYMBOLS] if node.kind == "enum" else ()


def _rank(path: Path, reveal: bool) -> str | None:
    """Return the expression for the minimum and maximum of a path; None if it has none."""
    kind, value = path.node.kind, path.accessor
    if kind in ("array", "map"):
        return f"size({value})"
    if kind == "string":
        return f"substring({value}, 1, {SHOWN})" if reveal else f"char_length({value})"
    if kind in ("bytes", "fixed"):
        return f"octet_length({value})"
    if kind in ("float", "double"):
        return f"CASE WHEN NOT isnan({value}) THEN {value} END"
    return value if kind in ("int", "long") else None


def _is_sketched(path: Path) -> bool:
    return path.node.kind in ("int", "long", "float", "double", "string", "bytes", "fixed")


def _counts(number: int, path: Path, reveal: bool) -> Iterator[Column]:
    """Return the aggregates by partition: present values, their sketch, minimum and maximum, and counts of symbols."""
    value = path.accessor
    yield f.expr(f"count({value})").alias(f"c{number}")
    if _is_sketched(path):
        hashed = f"xxhash64({value})" if path.node.kind in ("float", "double") else value
        hashed = f"CASE WHEN {value} IS NOT NULL THEN {hashed} END" if hashed != value else value
        yield f.expr(f"hll_sketch_agg({hashed}, {SKETCH})").alias(f"h{number}")
    rank = _rank(path, reveal)
    if rank is not None:
        yield f.expr(f"min({rank})").alias(f"l{number}")
        yield f.expr(f"max({rank})").alias(f"g{number}")
    for index, symbol in enumerate(_symbols(path.node)):
        is_it = f"{value} = {symbol}" if path.node.kind == "boolean" else f"{value} = {text(symbol)}"
        yield f.expr(f"count_if({is_it})").alias(f"s{number}_{index}")


def _merges(number: int, path: Path, reveal: bool) -> Iterator[Column]:
    """Return the aggregates over all partitions."""
    yield f.sum(f"c{number}").alias(f"c{number}")
    if _is_sketched(path):
        yield f.expr(f"hll_union_agg(h{number})").alias(f"h{number}")
    if _rank(path, reveal) is not None:
        yield f.min(f"l{number}").alias(f"l{number}")
        yield f.max(f"g{number}").alias(f"g{number}")
    for index, _ in enumerate(_symbols(path.node)):
        yield f.sum(f"s{number}_{index}").alias(f"s{number}_{index}")


def _stat(number: int, path: Path, reveal: bool) -> str:
    """Return all that leaves Spark for a path, in one form for every type: masked unless `reveal`."""
    sketch = f"h{number}" if _is_sketched(path) else "CAST(NULL AS BINARY)"
    counts = ", ".join(f"s{number}_{index}" for index, _ in enumerate(_symbols(path.node)))
    low, high = (_masked(name, path, reveal) for name in (f"l{number}", f"g{number}"))
    shown = "CAST({0} AS STRING)" if reveal and path.node.kind in _REVEALED else "CAST(NULL AS STRING)"
    texts = [shown.format(name) for name in (f"l{number}", f"g{number}")]
    return (
        f"named_struct('filled', c{number}, 'sketch', {sketch}, 'low', {low}, 'high', {high}, 'low_text', {texts[0]}, "
        f"'high_text', {texts[1]}, 'counts', CAST(array({counts}) AS ARRAY<BIGINT>))"
    )


_NUMBERS: Final = ("int", "long", "float", "double")
_REVEALED: Final = (*_NUMBERS, "string")


def _masked(name: str, path: Path, reveal: bool) -> str:
    """Return a minimum or maximum as a number that may be shown: a length, a size, a year, or sign and magnitude."""
    kind = path.node.kind
    if _rank(path, reveal) is None or (reveal and kind == "string"):
        return "CAST(NULL AS DOUBLE)"
    number = f"CAST({name} AS DOUBLE)"
    if kind not in _NUMBERS or reveal:
        return number
    if path.node.calendar is not None:
        return f"CAST(1970 + floor({number} * {SECONDS[path.node.calendar]!r}D / {YEAR}) AS DOUBLE)"
    size = f"greatest(least(abs({number}), 1e300D), 1e-300D)"
    return f"CASE WHEN {number} = 0 THEN 0D ELSE signum({number}) * (floor(log10({size})) + 400) END"


# ---- from rows to facts --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountedField:
    """The counts of one schema's messages in a slice at one path; `row` has the form of `workers.fields`."""

    mark: Mark
    path: str
    row: dict[str, Any]


@dataclass(frozen=True)
class CountedBad:
    """Bodies of one schema and partition that don't decode: their span, and the first offsets with their sizes.

    If `is_large`, they weren't decoded. `ranges` are the first and last offsets of up to MOST_RANGES of them.
    """

    mark: Mark
    partition: int
    span: Span
    sizes: Mapping[int, int]
    is_large: bool
    ranges: tuple[tuple[int, int], ...] = ()


def counted(group: ProfileGroup, rows: Sequence[Any], reveal: bool) -> Iterator[CountedField | CountedBad]:
    """Convert the query's rows of one group to facts, by schema."""
    chunks = group.chunks()
    by_raw = {(framing, bytes(group.raws[framing, mark])): (framing, mark) for framing, mark in group.trees}
    for raw in {(row["class"], bytes(row["mark"])) for row in rows}:
        own = {row["chunk"]: row for row in rows if (row["class"], bytes(row["mark"])) == raw}
        mark = by_raw[raw]
        unread = [_bad(mark, place, name) for name in UNREAD for place in (own[0][name] if 0 in own else ())]
        yield from unread
        decoded = own[0]["messages"] - sum(bad.span.messages for bad in unread) if 0 in own else 0
        stats = {
            path.path: (path, stat)
            for number, paths in enumerate(chunks)
            if number in own
            for path, stat in zip(paths, own[number]["stats"], strict=True)
        }
        if decoded:
            yield from _fields(mark, group.trees[mark], stats, decoded, reveal)


def _bad(mark: Mark, place: Any, name: str) -> CountedBad:
    parts = ("messages", "bytes", "first_offset", "last_offset", "first_time", "last_time")
    sizes = {row["offset"]: row["size"] for row in place["offsets"][:MOST_OFFSETS]}
    ranges = tuple((start, end - 1) for start, end in runs_of(row["offset"] for row in place["offsets"]))
    return CountedBad(mark, place["partition"], Span(*(place[part] for part in parts)), sizes, name == "large", ranges)


def runs_of(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Return the offsets as ranges of neighbours; the ends are exclusive."""
    ranges: list[tuple[int, int]] = []
    for offset in sorted(set(offsets)):
        if ranges and ranges[-1][1] == offset:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return ranges


def _fields(
    mark: Mark, tree: TypeNode, stats: Mapping[str, tuple[Path, Any]], decoded: int, reveal: bool
) -> Iterator[CountedField]:
    for path, own in avro_schemas.kinds_below(tree).items():
        if path not in stats:
            continue
        at, stat = stats[path]
        parent = path.rpartition(".")[0] if "." in path else ""
        present = decoded if not path else stats[parent][1]["filled"] if parent in stats else decoded
        # Later chunks decode bodies that the first one rejected for a text that isn't UTF-8.
        filled = min(stat["filled"], present)
        nulls = present - filled
        kinds = {own.kind: filled} | ({"null": nulls} if nulls else {})
        symbols = _symbols(at.node)
        values = {symbol: count for symbol, count in zip(symbols, stat["counts"], strict=True) if count}
        row = {"messages": decoded, "present": present, "nulls": nulls, "values": values}
        row["kinds"] = {kind: count for kind, count in kinds.items() if count}
        if stat["sketch"] is not None and stat["filled"]:
            row["sketch"] = bytes(stat["sketch"])
        row["low"], row["high"] = (_shown(at.node, stat[end], stat[f"{end}_text"], reveal) for end in ("low", "high"))
        yield CountedField(mark, path, row)


def _shown(node: TypeNode, rank: float | None, text: str | None, reveal: bool) -> list[Any] | None:
    """Return the sort rank and the text for people, as in `workers.fields`."""
    if text is not None:
        return [text if rank is None else rank, text]
    if rank is None:
        return None
    number = int(rank)
    if node.kind in ("array", "map"):
        return [number, f"{number:,} items"]
    if node.kind in ("bytes", "fixed"):
        return [number, f"{number:,} bytes"]
    if node.kind == "string":
        return [number, f"{number:,} characters"]
    return [number, str(number) if node.calendar is not None else shown_magnitude(number)]
