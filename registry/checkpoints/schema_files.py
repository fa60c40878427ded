"""Schema files of Spark's state stores, formats v1, v2 and v3, and their places in a checkpoint.

Java's DataOutputStream writes them, big-endian: a string is a two-byte length and modified UTF-8; a long text is
chunked: `int count` and that many strings. v1: key and value, one string each; v2: the same in chunks; v3: an `int`
number of column families, each with its name, key id, key, value id, value, key encoder and user key.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from registry.checkpoints.files import CheckpointFiles, Missing
from registry.checkpoints.filesystem import Entry
from registry.checkpoints.logs import OperatorInfo
from registry.errors import InvalidCheckpoint, first_few

MAX_FAMILIES = 10_000
MAX_REMEMBERED = 16 * 1024  # characters of a cached text; only a hostile file has longer ones
_SHORT, _INT, _LENGTH = struct.Struct(">h").unpack, struct.Struct(">i").unpack, struct.Struct(">H").unpack
MAX_DEPTH = 200  # of a schema: far deeper than any state, far below Python's recursion limit


@dataclass(frozen=True)
class Family:
    """A column family of a schema file; schemas are Spark's StructType JSON."""

    name: str
    key_id: int
    key_schema: str
    value_id: int
    value_schema: str
    key_encoder: str
    user_key: str | None


@dataclass(frozen=True)
class SchemaFile:
    """A schema file's format (1, 2 or 3) and its column families."""

    format: int
    families: tuple[Family, ...]


def parse_schema_file(content: bytes, where: str) -> SchemaFile:
    """Return a schema file's families; raises InvalidCheckpoint with `where`, the byte and the expected content."""
    reader = _SchemaFileReader(content, where)
    version = reader.text("the format's version")
    if version == "v1":
        families: tuple[Family, ...] = (_single(reader.text("the key schema"), reader.text("the value schema"), where),)
    elif version == "v2":
        families = (_single(reader.chunked("the key schema"), reader.chunked("the value schema"), where),)
    elif version == "v3":
        families = _families(reader, where)
    else:
        later = "; a later Spark may have written it" if version[:1] == "v" and version[1:3].isdigit() else ""
        raise InvalidCheckpoint(
            f"{where} is a schema file of format {version[:20]!r}; the supported formats are v1, v2 and v3{later}",
            file=where,
        )
    reader.expect_end()
    return SchemaFile(int(version[1]), families)


def _single(key: str, value: str, where: str) -> Family:
    return Family("default", 0, _struct(key, where), 0, _struct(value, where), "", None)


def _families(reader: _SchemaFileReader, where: str) -> tuple[Family, ...]:
    count = reader.number("the number of column families", 0, MAX_FAMILIES)
    families: dict[str, Family] = {}
    for _ in range(count):
        name = reader.text("a column family's name")
        if name in families:
            raise InvalidCheckpoint(f"{where} has column family {name[:80]!r} twice", file=where)
        key_id, key = reader.short("a key schema's id"), reader.chunked("a key schema")
        value_id, value = reader.short("a value schema's id"), reader.chunked("a value schema")
        encoder, user_key = reader.chunked("a key encoder"), reader.chunked("a user key's schema")
        encoder_type = _encoder_type(encoder)
        if encoder_type is None:
            raise InvalidCheckpoint(f"{where} has a key encoder that is not JSON: {encoder[:80]!r}", file=where)
        has_user_key = user_key.strip("{ }") != ""  # Spark writes braces around spaces if there is none
        families[name] = Family(
            name=name,
            key_id=key_id,
            key_schema=_struct(key, where),
            value_id=value_id,
            value_schema=_struct(value, where),
            key_encoder=encoder_type,
            user_key=_struct(user_key, where) if has_user_key else None,
        )
    return tuple(families.values())


class _SchemaFileReader:
    """Reads values from a file's bytes in order, never past the end."""

    def __init__(self, content: bytes, where: str) -> None:
        self._content = content
        self._where = where
        self._at = 0

    def short(self, what: str) -> int:
        (value,) = _SHORT(self._take(2, what))
        if value < 0:
            raise self._damaged(what, f"{value}")
        return int(value)

    def number(self, what: str, lowest: int, highest: int) -> int:
        (value,) = _INT(self._take(4, what))
        if not lowest <= value <= highest:
            raise self._damaged(what, f"{value}, which is not between {lowest} and {highest}")
        return int(value)

    def text(self, what: str) -> str:
        (length,) = _LENGTH(self._take(2, what))
        return _modified_utf8(self._take(length, what), self._where, self._at)

    def chunked(self, what: str) -> str:
        # Every chunk takes at least two bytes, so a larger count is damage, found before anything is allocated.
        count = self.number(f"the number of chunks of {what}", 0, (len(self._content) - self._at - 4) // 2)
        if count == 1:  # true for nearly every text
            return self.text(what)
        return "".join(self.text(what) for _ in range(count))

    def expect_end(self) -> None:
        left = len(self._content) - self._at
        if left:
            raise self._damaged("the end of the file", f"{left} more bytes")

    def _take(self, length: int, what: str) -> bytes:
        end = self._at + length
        if end > len(self._content):
            raise self._damaged(what, f"the end of the file (cut off at {len(self._content)} bytes)")
        taken = self._content[self._at : end]
        self._at = end
        return taken

    def _damaged(self, expected: str, actual: str) -> InvalidCheckpoint:
        return InvalidCheckpoint(
            f"{self._where} is damaged at byte {self._at}: expected {expected}, found {actual}",
            file=self._where,
            byte=self._at,
        )


def _modified_utf8(content: bytes, where: str, at: int) -> str:
    """Decode Java's modified UTF-8: a null is two bytes, and characters beyond the BMP are two surrogates."""
    if content.isascii():  # true for nearly every text, and identical in Java's form
        return content.decode("ascii")
    try:
        text = content.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError as error:
        raise InvalidCheckpoint(f"{where} is damaged before byte {at}: not UTF-8 text", file=where) from error


def _is_struct(text: str) -> bool:
    """Return whether a text is a StructType in JSON; cached, as all files of a checkpoint repeat a few texts."""
    return _is_struct_known(text) if len(text) <= MAX_REMEMBERED else _is_struct_read(text)


def _is_struct_read(text: str) -> bool:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(parsed, dict) or parsed.get("type") != "struct" or not isinstance(parsed.get("fields"), list):
        return False
    return _depth_within(parsed, MAX_DEPTH) and all(
        isinstance(field, dict) and isinstance(field.get("name"), str) and "type" in field for field in parsed["fields"]
    )


_is_struct_known = lru_cache(maxsize=4096)(_is_struct_read)


def forget_schemas() -> None:
    """Clear the caches of schema texts, so that a benchmark measures a first read."""
    _is_struct_known.cache_clear()
    _encoder_type_known.cache_clear()


def _depth_within(value: Any, levels: int) -> bool:
    if levels < 0:
        return False
    if isinstance(value, dict):
        return all(_depth_within(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return all(_depth_within(item, levels - 1) for item in value)
    return True


def _struct(text: str, where: str) -> str:
    if not _is_struct(text):
        raise InvalidCheckpoint(f"{where} has a schema that is not a Spark StructType: {text[:80]!r}", file=where)
    return text


def _encoder_type(text: str) -> str | None:
    """Return the encoding of keys, empty if it isn't given; None if the text isn't JSON."""
    return _encoder_type_known(text) if len(text) <= MAX_REMEMBERED else _encoder_type_read(text)


def _encoder_type_read(text: str) -> str | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return str(parsed.get("keyStateEncoderType", "")) if isinstance(parsed, dict) else ""


_encoder_type_known = lru_cache(maxsize=256)(_encoder_type_read)


SCHEMA_FILE_LIMIT = 8 * 1024 * 1024  # bytes; a thousand variables of a thousand fields are smaller
SCHEMA_FILE_NAME = re.compile(r"(?P<batch>\d{1,18})_[0-9A-Za-z-]{1,64}")
SCHEMA = ("_metadata", "schema")
MAX_STORES = 50  # per partition; a join has four
MAX_PARTITIONS = 20  # that are searched
LOOKED_FOR = ("metadata", "offsets", "commits", "state")


@dataclass(frozen=True)
class StoredSchemas:
    """A parsed schema file: the first batch that wrote it (None if Spark keeps no history), its time and name."""

    batch: int | None
    written_at: int
    name: str
    content: SchemaFile


def looks_like_a_checkpoint(entries: Iterable[Entry]) -> bool:
    """Return whether a folder's listing has what every checkpoint has: the file metadata and the folder offsets."""
    kinds = {entry.name: entry.is_folder for entry in entries}
    return kinds.get("metadata") is False and kinds.get("offsets") is True


def require_checkpoint(files: CheckpointFiles, path: str) -> None:
    """Raise InvalidCheckpoint, with what was expected and what was found, unless this is a query's checkpoint."""
    if not files.is_folder():
        raise InvalidCheckpoint(f"folder {path[:300]} doesn't exist", looked_for=list(LOOKED_FOR), found=[])
    entries = files.entries()
    if looks_like_a_checkpoint(entries):
        return
    names = [entry.name for entry in entries]
    raise InvalidCheckpoint(
        f"{path[:300]} is not a checkpoint: expected the file metadata and the folder offsets, found "
        f"{first_few([name[:60] for name in names], 8) or 'nothing'}; {_cure(set(names))}",
        looked_for=list(LOOKED_FOR),
        found=names[:50],
    )


def _cure(names: set[str]) -> str:
    if "metadata" in names:
        return "its query has not planned a batch yet, or the folder was copied only in part"
    if names & {"offsets", "commits"}:
        return (
            "its query is just starting, or it was copied only in part: the file metadata with the query's id is "
            "missing"
        )
    if {"_metadata"} & names or "_stateSchema" in names:
        return "this is one operator's state; give the folder that contains state, offsets and metadata"
    return "give the folder that the query uses as its checkpointLocation"


def operator_folders(files: CheckpointFiles) -> list[str]:
    """Return the folders of the stateful operators, by number; none for a stateless query."""
    names = [entry.name for entry in files.entries("state") if entry.is_folder and _is_number(entry.name)]
    return sorted(names, key=int)


def operator_history(files: CheckpointFiles, operator: str, store: str) -> list[StoredSchemas]:
    """Return the schema files (v3) of an operator's store, ascending by batch; empty if Spark keeps no history."""
    folder = ("state", operator, "_stateSchema", store)
    schema_files = []
    entries = files.entries(*folder)
    names = [entry.name for entry in entries if SCHEMA_FILE_NAME.fullmatch(entry.name)]
    files.fetch(*folder, names=names, limit=SCHEMA_FILE_LIMIT)
    for entry in entries:
        match = SCHEMA_FILE_NAME.fullmatch(entry.name)
        if match is None or entry.is_folder:
            continue
        where = files.shown(*folder, entry.name)
        try:
            content = files.read(*folder, entry.name, limit=SCHEMA_FILE_LIMIT)
        except Missing:  # the running query removed it meanwhile
            continue
        schema_files.append(
            StoredSchemas(int(match["batch"]), entry.written_at, entry.name, parse_schema_file(content, where))
        )
    return sorted(schema_files, key=lambda stored: (stored.batch or 0, stored.name))


def partition_stores(files: CheckpointFiles, operator: str) -> list[str]:
    """Return the stores of a built-in operator without metadata, from its first partition with schema files.

    Only the default store if no partition has any.
    """
    for partition in _partitions(files, operator):
        entries = files.entries("state", operator, partition)
        named = [entry.name for entry in entries if entry.is_folder and entry.name not in ("_metadata", "_stateSchema")]
        if len(named) > MAX_STORES:
            raise InvalidCheckpoint(
                f"operator {operator} has {len(named):,} stores, of which only {MAX_STORES} are read"
            )
        stores = [name for name in named if files.is_file("state", operator, partition, name, *SCHEMA)]
        if stores:
            return stores
    return ["default"]


def partition_schema(files: CheckpointFiles, operator: str, store: str) -> StoredSchemas | None:
    """Return the one schema file (v1, v2) of a built-in operator's store, from its first partition that has one."""
    inner = () if store == "default" else (store,)
    for partition in _partitions(files, operator):
        folder = ("state", operator, partition, *inner, "_metadata")
        written = {entry.name: entry.written_at for entry in files.entries(*folder)}
        if "schema" in written:
            where = files.shown(*folder, "schema")
            content = parse_schema_file(files.read(*folder, "schema", limit=SCHEMA_FILE_LIMIT), where)
            return StoredSchemas(None, written["schema"], where, content)
    return None


def _partitions(files: CheckpointFiles, operator: str) -> list[str]:
    """Return the first partitions by number: those without a schema file were never written, so a few are skipped."""
    return _all_partitions(files, operator)[:MAX_PARTITIONS]


def _all_partitions(files: CheckpointFiles, operator: str) -> list[str]:
    entries = files.entries("state", operator)
    return sorted((entry.name for entry in entries if entry.is_folder and _is_number(entry.name)), key=int)


def without_schema_file(files: CheckpointFiles, operator: str) -> str:
    """Return a message that no schema file was found, and in how many partitions if not all were searched."""
    number = len(_all_partitions(files, operator))
    where = f" in the first {MAX_PARTITIONS} of its {number:,} partitions" if number > MAX_PARTITIONS else ""
    return f"operator {operator} has no schema file{where}"


def missing_schema_files(info: OperatorInfo, store: str, present: list[StoredSchemas]) -> list[str]:
    """Return the names of schema files that the operator's metadata names and that don't exist."""
    names = {stored.name for stored in present}
    return [
        name
        for store_info in info.stores
        if store_info.name == store
        for name in store_info.schema_files
        if name not in names
    ]


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 9
