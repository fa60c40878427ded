"""Checksums that Hadoop's local file system keeps beside each file: where one doesn't fit, the file was changed since.

Spark 4.2 reads a checkpoint without looking at them where it is left to itself, and a real start goes on. Whoever reads
by Hadoop's FileSystem (another manager of checkpoint files, or spark.read) stops with ChecksumException.

`.NAME.crc` beside `NAME`: the text `crc`, a null byte, how many bytes each sum is of, and the sums, big-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.filesystem import LOCAL, Missing, parse_location
from registry.checkpoints.logs import LOG_LIMIT, batch_numbers
from registry.checkpoints.model import Checkpoint, Stop
from registry.checkpoints.schema_files import SCHEMA_FILE_LIMIT, SCHEMA_FILE_NAME

HEADER: Final = struct.Struct(">4sI")
MAGIC: Final = b"crc\0"
SUM: Final = struct.Struct(">I")
Parts = tuple[str, ...]


def checksum_stops(files: CheckpointFiles, checkpoint: Checkpoint) -> Iterable[Stop]:
    """The files that Spark reads at a start and whose checksums don't fit; object stores keep none."""
    if parse_location(files.path, (LOCAL, "s3")).protocol != LOCAL:
        return
    for parts in _read_at_a_start(files, checkpoint):
        if not _fits(files, parts):
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
    names = [entry.name for entry in files.entries(*base, "_metadata", "v2") if entry.name.isdigit()]
    numbers = sorted(int(name) for name in names if last is None or int(name) <= last)
    yield from ((*base, "_metadata", "v2", str(number)) for number in numbers[-1:])
    for store in files.entries(*base, "_stateSchema"):
        folder = (*base, "_stateSchema", store.name)
        written = files.entries(*folder) if store.is_folder else ()
        yield from ((*folder, entry.name) for entry in written if SCHEMA_FILE_NAME.fullmatch(entry.name))


def _checksums(parts: Parts) -> Parts:
    return (*parts[:-1], f".{parts[-1]}.crc")


def _fits(files: CheckpointFiles, parts: Parts) -> bool:
    """Whether a file has no checksums, or those that it should; what is no file of checksums isn't looked at by Spark."""
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
