"""The files that hold a checkpoint's rows of state: whether Spark can load the last committed batch from them.

A store's version is the number of committed batches. Spark loads the newest snapshot up to it (`.snapshot` of the HDFS
provider, `.zip` of RocksDB) and every change after that (`.delta`, `.changelog`). No row is read here.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from registry.checkpoints.files import CheckpointFiles, Entry, Missing
from registry.checkpoints.filesystem import LOCAL, parse_location
from registry.checkpoints.log_checks import PLAIN_NUMBER, RESTORE, STATE_ERROR, fits_checksums
from registry.checkpoints.logs import PARTITIONS
from registry.checkpoints.model import Checkpoint, Operator, Stop

#: the version of a store's file, its id in checkpoint format 2, and its kind
STATE_FILE: Final = re.compile(
    r"(?P<version>0|[1-9][0-9]{0,17})(?:_[0-9a-fA-F-]+)?\.(?P<kind>snapshot|zip|delta|changelog)"
)
SNAPSHOTS: Final = frozenset({"snapshot", "zip"})
OF_ROCKSDB: Final = frozenset({"SSTs", "logs"})  # folders with files that a snapshot names
MAX_STORES: Final = 5_000
MAX_STOPS: Final = 20
READ_BYTES: Final = 64 * 1024 * 1024  # of local files, to see whether they are whole
LZ4_END: Final = 21  # bytes of the empty block with which a compressed file ends
Parts = tuple[str, ...]


def state_stops(files: CheckpointFiles, checkpoint: Checkpoint) -> Iterable[Stop]:
    """Yield the state files that Spark needs at the next start and that are missing or empty: the first MAX_STOPS.

    A checkpoint without any may be a copy without its rows: that is only a doubt.
    """
    return itertools.islice(_state_stops(files, checkpoint), MAX_STOPS)


def _state_stops(files: CheckpointFiles, checkpoint: Checkpoint) -> Iterator[Stop]:
    if checkpoint.last_committed_batch is None or not checkpoint.operators:
        return
    yield from _partition_stops(checkpoint)
    version = checkpoint.last_committed_batch + 1
    named = (folder for operator in checkpoint.operators for folder in _stores(files, operator))
    stores = list(itertools.islice(named, MAX_STORES + 1))
    if len(stores) > MAX_STORES:
        yield Stop("state", f"only the first {MAX_STORES:,} of its state stores were looked at", RESTORE, "")
    read = {folder: _versions(files, folder, version) for folder in stores[:MAX_STORES]}
    if not any(read.values()):
        yield Stop(
            "state", "the checkpoint has no file with rows of state, which the next batch starts from", RESTORE, ""
        )
        return
    budget = READ_BYTES if parse_location(files.path, (LOCAL, "s3")).protocol == LOCAL else 0
    for folder, written in read.items():
        needed, missing = _needed(written, version)
        if missing is not None:
            where = files.shown(*folder)
            yield Stop(
                where, f"{where} has no file of its version {missing:,}, which Spark needs", RESTORE, STATE_ERROR
            )
        for entry in needed:
            budget -= entry.size
            if not entry.size or (budget >= 0 and not _is_whole(files, (*folder, entry.name))):
                where = files.shown(*folder, entry.name)
                yield Stop(where, f"{where} was cut off or changed after Spark wrote it", RESTORE, STATE_ERROR)


def _partition_stops(checkpoint: Checkpoint) -> Iterator[Stop]:
    """Yield operators with another number of partitions than Spark would start with: that of the last batch."""
    recorded = checkpoint.settings[-1].settings.get(PARTITIONS) if checkpoint.settings else None
    for operator in checkpoint.operators:
        if recorded and operator.partitions and recorded != str(operator.partitions):
            problem = f"the last batch records {recorded[:40]} partitions, but operator {operator.number} has "
            yield Stop("offsets", f"{problem}{operator.partitions:,}", RESTORE, "")


def _stores(files: CheckpointFiles, operator: Operator) -> Iterator[Parts]:
    """Yield the folder of every store that holds rows of an operator."""
    base = ("state", str(operator.number))
    folders = (entry.name for entry in files.entries(*base) if entry.is_folder)
    found = sorted(int(name) for name in folders if PLAIN_NUMBER.fullmatch(name))
    # Without keys, an operator has one partition, whatever its metadata says.
    has_one = not found or (found == [0] and not _has_keys(operator))
    numbers = range(1 if has_one else max(operator.partitions, found[-1] + 1))
    stores = sorted({name for number in found for name in _names(files.entries(*base, str(number)))})
    for number in numbers:
        yield from ((*base, str(number), *([store] if store else [])) for store in stores or [""])


def _has_keys(operator: Operator) -> bool:
    """Return whether the rows of state are spread over partitions by a key; those of a limit have a constant one."""
    schemas = [variable.newest.key_schema for variable in operator.variables]
    return operator.name != "globalLimit" and any(json.loads(schema)["fields"] for schema in schemas)


def _names(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the stores of a partition; the only one of most operators has no folder of its own, and no name."""
    named = [entry.name for entry in entries if entry.is_folder and not entry.name.startswith(("_", "."))]
    yield from [name for name in named if name not in OF_ROCKSDB] or [""]


Written = Mapping[int, Sequence[tuple[str, Entry]]]


def _versions(files: CheckpointFiles, folder: Parts, version: int) -> Written:
    """Return a store's files by version up to the given one, each with its kind."""
    written: dict[int, list[tuple[str, Entry]]] = {}
    for entry in files.entries(*folder):
        match = STATE_FILE.fullmatch(entry.name)
        if match and not entry.is_folder and int(match["version"]) <= version:
            written.setdefault(int(match["version"]), []).append((match["kind"], entry))
    return written


def _needed(written: Written, version: int) -> tuple[list[Entry], int | None]:
    """Return the files from which Spark loads a version, and the first version without a file."""
    first = max((at for at, kept in written.items() if any(kind in SNAPSHOTS for kind, _ in kept)), default=0)
    needed = [entry for kind, entry in written.get(first, ()) if kind in SNAPSHOTS]
    for at in range(first + 1, version + 1):
        if at not in written:
            return needed, at
        needed += [entry for _, entry in written[at]]
    return needed, None


def _is_whole(files: CheckpointFiles, parts: Parts) -> bool:
    """Return whether a file fits the checksums beside it and in it, ends as its format does, and has the files that it
    names.
    """
    try:
        content = files.read(*parts, limit=READ_BYTES)
    except Missing:  # removed by the running query
        return True
    if not fits_checksums(files, parts):
        return False
    if content.startswith(b"LZ4Block"):
        return content[-LZ4_END:].startswith(b"LZ4Block")
    return not content.startswith(b"PK") or _is_snapshot(files, parts[:-1], content)


def _is_snapshot(files: CheckpointFiles, folder: Parts, content: bytes) -> bool:
    """Return whether RocksDB's archive of a version is whole, and the files of rows that its metadata names are there."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if archive.testzip() is not None:
                return False
            metadata = archive.read("metadata")
    except (zipfile.BadZipFile, zlib.error):
        return False
    except (KeyError, NotImplementedError):  # of another form
        return True
    try:
        named = json.loads(metadata.partition(b"\n")[2])["sstFiles"]
        wanted = {str(each["dfsSstFileName"]) for each in named}
    except (ValueError, LookupError, TypeError):
        return True
    return wanted <= {entry.name for entry in files.entries(*folder, "SSTs")}
