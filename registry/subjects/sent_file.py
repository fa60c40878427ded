"""A file that somebody sends to be brought in: plain, packed by gzip, or in a zip as exports of chosen subjects are.

Whoever sends it may be anybody's admin of anything: no more is unpacked than is taken, and no more is read than one file.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import IO, Final

from registry.errors import InvalidSnapshot
from registry.subjects.export_file import read_snapshot
from registry.subjects.snapshot import Snapshot

#: bytes that may be sent, and that they may be unpacked
MAX_SENT: Final = 16 * 1024 * 1024
MAX_UNPACKED: Final = 32 * 1024 * 1024
MAX_NAME: Final = 200
COMMAND: Final = "python3 manage.py import_registry --from FILE"


def read_sent(data: bytes, name: str, *, size: int) -> Snapshot:
    """What a file of that name and size holds; of one that is too large the data may be a part.

    Raises InvalidSnapshot, which names the place or the limit.
    """
    if max(size, len(data)) > MAX_SENT:
        raise InvalidSnapshot(
            f"The file has more than {MAX_SENT // 2**20} MiB. Larger ones are brought in by the command: {COMMAND}"
        )
    return read_snapshot(io.BytesIO(_unpacked(data)), shown_name(name))


def shown_name(name: str) -> str:
    """What a file is called from here on: the last part of its name, on one line."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(char for char in last if char.isprintable())[:MAX_NAME].strip()
    return kept or "the file"


def _unpacked(data: bytes) -> bytes:
    if data[:2] == b"\x1f\x8b":
        return _gunzipped(data)
    if data[:4] == b"PK\x03\x04":
        return _unzipped(data)
    return data


def _gunzipped(data: bytes) -> bytes:
    reader = zlib.decompressobj(wbits=31)
    try:
        found = reader.decompress(data, MAX_UNPACKED + 1)
    except zlib.error as error:
        raise InvalidSnapshot("The file begins as one of gzip and can't be unpacked: it is damaged.") from error
    if len(found) > MAX_UNPACKED:
        raise _too_large()
    if not reader.eof:
        raise InvalidSnapshot("The file was cut off: its gzip has no end. Send it again.")
    if reader.unused_data:
        raise InvalidSnapshot("Something comes after the end of the file's gzip: send one file.")
    return found


def _unzipped(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) != 1:
                raise InvalidSnapshot(f"The zip has {len(entries)} files; an export has one.")
            if entries[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # those can be read in part
                raise zipfile.BadZipFile(f"packed by method {entries[0].compress_type}")
            with archive.open(entries[0]) as inside:
                return _bounded(inside)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InvalidSnapshot(
            "The zip can't be unpacked: it is damaged, encrypted or packed in another way."
        ) from error


def _bounded(file: IO[bytes]) -> bytes:
    found = file.read(MAX_UNPACKED + 1)
    if len(found) > MAX_UNPACKED:
        raise _too_large()
    return found


def _too_large() -> InvalidSnapshot:
    return InvalidSnapshot(
        f"Unpacked, the file has more than {MAX_UNPACKED // 2**20} MiB. Larger ones are brought in by the command:"
        f" {COMMAND}"
    )
