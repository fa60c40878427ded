"""Checks whether a query's logs are consistent enough for Spark to start, as observed in restarts of Spark 4.2.

Spark lists `offsets` and `commits` and reads the newest of each, and the offsets before the newest. Older files may be
damaged or missing: Spark removes them itself. On a local file system, Hadoop keeps a checksum next to each file: a
mismatch means that the file was changed later.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.filesystem import LOCAL, Entry, Missing, parse_location
from registry.checkpoints.logs import (
    INTEGER,
    LOG_LIMIT,
    MAX_SOURCES,
    NO_JSON,
    NO_OFFSET,
    START_LIMIT,
    batch_numbers,
    parse_json,
)
from registry.checkpoints.model import Checkpoint, QuerySource, Stop
from registry.checkpoints.schema_files import SCHEMA_FILE_LIMIT, SCHEMA_FILE_NAME

ORDER_ERROR: Final = "CONCURRENT_STREAM_LOG_UPDATE"
STATE_ERROR: Final = "CANNOT_LOAD_STATE_STORE"
NO_SOURCE: Final = "AssertionError"
NOT_STARTED: Final = "IllegalStateException"
JAVA_NUMBER: Final = re.compile(r"[+-]?\d+")  # a batch number to Spark, which writes plain digits only
PLAIN_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,17}")
SOURCE_LOG: Final = re.compile(r"(0|[1-9][0-9]{0,17})(\.compact)?")
LINE_END: Final = re.compile(r"\r\n|\r|\n")
VERSION: Final = re.compile(r"v0*([1-9][0-9]{0,8})")
NEWEST_COMMIT: Final = 3  # the highest version of a commit that Spark 4.2 reads
MAX_LONG: Final = 2**63
_TIMES: Final = ("batchTimestampMs", "batchWatermarkMs")  # of a batch in `offsets`
TRIES: Final = 3
RESTORE: Final = "restore it from a copy"
REMOVE: Final = "restore it from a copy, or remove it and its commit if they don't belong to this query"
JAVA_UUID: Final = re.compile(r"[0-9a-fA-F]+(-[0-9a-fA-F]+){4}")
LOGGING: Final = ("files",)  # kinds of sources that don't start, or start over, without their own log


def log_stops(
    files: CheckpointFiles, commits: Sequence[int], query_id: str, contents: Mapping[int, bytes]
) -> tuple[Stop, ...]:
    """Return what keeps Spark from starting with these logs.

    `commits` are the committed batches, ascending; `contents` has the newest files of `offsets` that were already read.
    A running query commits batches and removes old ones meanwhile, so problems are checked again if `commits` changed.
    """
    stops: list[Stop] = []
    for _ in range(TRIES):
        stops = [*_query_id(query_id), *_stops(_Logs(files, commits, contents))]
        now = batch_numbers(files, "commits") if stops else commits
        if now == commits:
            break
        commits = now
    return tuple(stops)


class _Logs:
    """The newest files of both logs, each read once."""

    def __init__(self, files: CheckpointFiles, commits: Sequence[int], contents: Mapping[int, bytes]) -> None:
        self.files = files
        self.commits = commits
        self.offsets = batch_numbers(files, "offsets")
        self._read: dict[tuple[str, int], bytes | None] = {
            ("offsets", batch): content for batch, content in contents.items()
        }
        files.fetch("commits", names=[str(batch) for batch in commits[-2:]], limit=LOG_LIMIT)
        for batch in commits[-2:]:
            self.content("commits", batch)

    def content(self, log: str, batch: int) -> bytes | None:
        """Return a file's bytes; None if the running query has removed it."""
        if (log, batch) not in self._read:
            try:
                self._read[log, batch] = self.files.read(log, str(batch), limit=LOG_LIMIT)
            except Missing:
                self._read[log, batch] = None
        return self._read[log, batch]


def _stops(logs: _Logs) -> Iterable[Stop]:
    yield from _odd_names(logs.files)
    if logs.commits:
        yield from _commit(logs)
        yield from _order(logs.commits[-1], logs.offsets)
        yield from _sources(logs)
        yield from _ids(logs)
        yield from _repeated(logs)


def _order(committed: int, offsets: Sequence[int]) -> Iterable[Stop]:
    planned = offsets[-1] if offsets else -1
    if committed > planned:
        yield Stop(
            f"commits/{committed}",
            f"commits/{committed} is the newest commit, but the newest offsets file is "
            f"{planned if offsets else 'none'}: a batch was committed that was never planned",
            f"restore offsets/{committed} from a copy; if commits/{committed} doesn't belong to this query, remove it",
            ORDER_ERROR,
        )
    if planned > 0 and planned - 1 not in offsets:
        yield Stop(
            f"offsets/{planned - 1}",
            f"offsets/{planned} is the newest, but offsets/{planned - 1} is missing",
            f"restore offsets/{planned - 1} from a copy; if offsets/{planned} doesn't belong to this query, remove it",
            NOT_STARTED,
        )


def _sources(logs: _Logs) -> Iterable[Stop]:
    """Yield settings and sources that the newest offsets lack, compared with the batch before."""
    contents = [logs.content("offsets", batch) for batch in logs.offsets[-2:]]
    if not contents or contents[-1] is None:
        return
    newest, before = _source_lines(contents[-1]), _source_lines(contents[0] or contents[-1])
    where = f"offsets/{logs.offsets[-1]}"
    described = _second(contents[-1])
    if not (isinstance(described, dict) and isinstance(described.get("conf"), dict)):
        yield Stop(where, f"{where} records no settings (conf) for its batch", RESTORE, "")
    elif not all(_is_whole_number(described, name) for name in _TIMES):
        yield Stop(where, f"{where} has a time or a watermark that is not a whole number", RESTORE, "")
    if not newest:
        yield Stop(where, f"{where} names no source", RESTORE, NO_SOURCE)
    elif len(newest) != len(before):
        yield Stop(
            where,
            f"{where} has offsets for {len(newest)} sources, but the batch before has them for {len(before)}",
            RESTORE,
            "",
        )
    elif not all(_is_offset(line) for line in newest):
        yield Stop(where, f"{where} has an offset that is not JSON", RESTORE, "")


def _query_id(query_id: str) -> Iterable[Stop]:
    if not JAVA_UUID.fullmatch(query_id):
        yield Stop("metadata", "metadata has an id that is not a UUID", RESTORE, "IllegalArgumentException")


def _ids(logs: _Logs) -> Iterable[Stop]:
    """Yield missing state ids, by which commits of checkpoint format 2 name the state of their batch."""
    committed, planned = logs.commits[-1], logs.offsets[-1:]
    newest = _ids_of(logs.content("commits", committed))
    had_ids = any(_ids_of(logs.content("commits", batch))[1] for batch in logs.commits[-2:-1])
    version, has_ids = newest
    where = f"commits/{committed}"
    if has_ids and version == 1:
        yield Stop(where, f"{where} has state ids, which version v1 of commits doesn't support", RESTORE, STATE_ERROR)
    elif had_ids and not has_ids:
        yield Stop(where, f"{where} has no state ids, but the commit before it has them", RESTORE, STATE_ERROR)
    elif has_ids and planned and planned[0] > committed + 1:
        gone = f"commits/{planned[0] - 1}"
        problem = f"{gone} is missing, which names the state that batch {planned[0]} starts from"
        yield Stop(gone, problem, RESTORE, STATE_ERROR)


def _ids_of(content: bytes | None) -> tuple[int | None, bool]:
    """Return a commit's version, and whether it has state ids."""
    described = _second(content) if content else None
    has_ids = isinstance(described, dict) and bool(described.get("stateUniqueIds"))
    return (_version(content) if content else None), has_ids


def _repeated(logs: _Logs) -> Iterable[Stop]:
    """Yield offsets that equal those of the batch before, including the time: two batches never have the same time."""
    newest = logs.offsets[-2:]
    contents = {logs.content("offsets", batch) for batch in newest}
    if len(newest) == 2 and len(contents) == 1:
        where = f"offsets/{newest[1]}"
        yield Stop(where, f"{where} is a copy of offsets/{newest[0]}, so its state may be missing", REMOVE, "")


def _source_lines(content: bytes) -> list[str]:
    """Return the lines of a batch with one source's offset each."""
    version, *lines = _lines(content) or [""]
    named = [line for line in lines[1:] if line.strip()]
    return named if version == "v1" else [line.partition(":")[2] for line in named]


def _is_offset(line: str) -> bool:
    return line.strip() == NO_OFFSET or parse_json(line.strip()) is not NO_JSON


def _commit(logs: _Logs) -> Iterable[Stop]:
    batch = logs.commits[-1]
    where, content = f"commits/{batch}", logs.content("commits", batch)
    if content is None:
        return
    fault = next((stop for is_so, stop in _COMMITS if is_so(content)), None)
    if fault is not None:
        yield Stop(where, f"{where} {fault.problem}", RESTORE, fault.error)


@dataclass(frozen=True)
class _Fault:
    problem: str
    error: str


def _lines(content: bytes) -> list[str]:
    """Split into lines at Java's line ends only."""
    return LINE_END.split(content.decode("utf-8", "replace"))


def _version(content: bytes) -> int | None:
    match = VERSION.fullmatch(_lines(content)[0])
    return int(match[1]) if match else None


def _second(content: bytes) -> Any:
    """Parse the JSON of the second line; an empty object if there is no second line."""
    lines = _lines(content)[1:2]
    text = lines[0].strip() if lines else ""
    return parse_json(text) if text else {}


def _is_whole_number(values: Mapping[str, Any], name: str) -> bool:
    """Return whether a number that Spark reads as a long is one; Spark takes 0 for a missing one."""
    value = values.get(name, 0)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_LONG


# the first condition that holds counts
_COMMITS: Final[tuple[tuple[Callable[[bytes], bool], _Fault], ...]] = (
    (lambda content: not content, _Fault("is empty: it was only partly written", NOT_STARTED)),
    (
        lambda content: _version(content) is None,
        _Fault("doesn't start with a log version such as v1", "MALFORMED_LOG_FILE"),
    ),
    (
        lambda content: (_version(content) or 0) > NEWEST_COMMIT,
        _Fault("has a version that Spark 4.2 doesn't read: it reads v1 to v3", "INVALID_LOG_VERSION"),
    ),
    (
        lambda content: _version(content) == NEWEST_COMMIT,
        _Fault("has version v3, whose content is unknown here", ""),
    ),
    (lambda content: _second(content) is NO_JSON, _Fault("has no JSON in its second line", "JsonParseException")),
    (lambda content: not isinstance(_second(content), dict), _Fault("has no JSON object in its second line", "")),
    (
        lambda content: not _is_whole_number(_second(content), "nextBatchWatermarkMs"),
        _Fault("has a nextBatchWatermarkMs that is not a whole number", ""),
    ),
)


def _odd_names(files: CheckpointFiles) -> Iterable[Stop]:
    """Yield names that Spark reads as batch numbers but never writes: it then looks for the file by plain number."""
    for log in ("offsets", "commits"):
        for entry in files.entries(log):
            if _is_odd(entry):
                yield Stop(
                    f"{log}/{entry.name}",
                    f"{log}/{entry.name[:60]} is not a file that Spark writes, but Spark reads its name as a batch "
                    "number",
                    "move it out of the checkpoint",
                    "",
                )


def _is_odd(entry: Entry) -> bool:
    if entry.is_folder:
        return JAVA_NUMBER.fullmatch(entry.name) is not None
    return JAVA_NUMBER.fullmatch(entry.name) is not None and PLAIN_NUMBER.fullmatch(entry.name) is None


def source_stops(files: CheckpointFiles, sources: Sequence[QuerySource]) -> Iterable[Stop]:
    """Yield the logs of sources that are missing or whose newest file isn't a Spark log."""
    kinds = {source.name: source.kind for source in sources}
    for query_source in sources:
        names = [entry.name for entry in files.entries("sources", query_source.name)]
        if (query_source.kind in LOGGING or query_source.description == INTEGER) and not any(
            map(PLAIN_NUMBER.fullmatch, names)
        ):
            where = files.shown("sources", query_source.name)
            yield Stop(where, f"{where} has no log, but {query_source.description} keeps one there", RESTORE, "")
    for source in [entry.name for entry in files.entries("sources") if entry.is_folder][:MAX_SOURCES]:
        named = [entry for entry in files.entries("sources", source) if not entry.is_folder]
        numbered = [(int(match[1]), entry) for entry in named if (match := SOURCE_LOG.fullmatch(entry.name))]
        if not numbered:
            continue
        _, newest = max(numbered, key=lambda each: each[0])
        where = files.shown("sources", source, newest.name)
        content = files.read("sources", source, newest.name, limit=START_LIMIT)
        first = content.lstrip(b"\0").partition(b"\n")[0].strip()  # Kafka's begins with a null byte
        if first != b"v1":
            what = "is empty" if not content else f"starts with {first[:20].decode('utf-8', 'replace')!r} instead of v1"
            yield Stop(where, f"{where} {what}, so its source may not start", RESTORE, "")
        elif kinds.get(source) in LOGGING and not all(map(_names_a_file, content.splitlines()[1:])):
            yield Stop(where, f"{where} has a line that names no file, so its source may not start", RESTORE, "")


def _names_a_file(line: bytes) -> bool:
    value = parse_json(line)
    return isinstance(value, dict) and isinstance(value.get("path"), str)


HEADER: Final = struct.Struct(">4sI")
MAGIC: Final = b"crc\0"
SUM: Final = struct.Struct(">I")
Parts = tuple[str, ...]


def checksum_stops(files: CheckpointFiles, checkpoint: Checkpoint) -> Iterable[Stop]:
    """Yield the files that Spark reads at start and whose checksums don't match; object stores have none."""
    if parse_location(files.path, (LOCAL, "s3")).protocol != LOCAL:
        return
    for parts in _read_at_a_start(files, checkpoint):
        if not fits_checksums(files, parts):
            where = files.shown(*parts)
            yield Stop(
                where,
                f"{where} doesn't match its checksums in {_checksums(parts)[-1]}: it was changed or cut off after "
                "Spark wrote it, and a Spark that verifies checksums fails with ChecksumException",
                "restore both files from a copy; if the change is intended, remove the checksum file",
                "",
            )


def _read_at_a_start(files: CheckpointFiles, checkpoint: Checkpoint) -> Iterator[Parts]:
    yield ("metadata",)
    for log, count in (("offsets", 2), ("commits", 1)):
        yield from ((log, str(number)) for number in batch_numbers(files, log)[-count:])
    for source in files.entries("sources"):
        if source.is_folder:
            yield from (("sources", source.name, entry.name) for entry in files.entries("sources", source.name)[:1_000])
    for operator in checkpoint.operators:
        yield from _of_operator(files, ("state", str(operator.number)), checkpoint.last_committed_batch)


def _of_operator(files: CheckpointFiles, base: Parts, last: int | None) -> Iterator[Parts]:
    yield (*base, "_metadata", "metadata")
    names = [entry.name for entry in files.entries(*base, "_metadata", "v2") if PLAIN_NUMBER.fullmatch(entry.name)]
    numbers = sorted(int(name) for name in names if last is None or int(name) <= last)
    yield from ((*base, "_metadata", "v2", str(number)) for number in numbers[-1:])
    for store in files.entries(*base, "_stateSchema"):
        folder = (*base, "_stateSchema", store.name)
        written = files.entries(*folder) if store.is_folder else ()
        yield from ((*folder, entry.name) for entry in written if SCHEMA_FILE_NAME.fullmatch(entry.name))


def _checksums(parts: Parts) -> Parts:
    return (*parts[:-1], f".{parts[-1]}.crc")


def fits_checksums(files: CheckpointFiles, parts: Parts) -> bool:
    """Return whether a file has no checksums or matches them; Spark ignores a file in another format."""
    try:
        sums = files.read(*_checksums(parts), limit=LOG_LIMIT)
        content = files.read(*parts, limit=max(LOG_LIMIT, SCHEMA_FILE_LIMIT))
    except Missing:
        return True
    if len(sums) < HEADER.size or not sums.startswith(MAGIC):
        return True
    size = HEADER.unpack_from(sums)[1]
    chunks = [content[at : at + size] for at in range(0, len(content), size)] if size else []
    expected = sums[HEADER.size : HEADER.size + len(chunks) * SUM.size]
    return expected == b"".join(SUM.pack(zlib.crc32(chunk)) for chunk in chunks)
