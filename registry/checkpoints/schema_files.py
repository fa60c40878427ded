"""Schema files of Spark's state stores, formats v1, v2 and v3.

Java's DataOutputStream writes them, big-endian: strings are a two-byte length and modified UTF-8; a long text is
cut into chunks, `int count` and so many strings. v1: key and value, a string each; v2: the same in chunks; v3: an
`int` number of column families, each with its name, key id, key, value id, value, key encoder and user key.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from registry.errors import InvalidCheckpoint

MAX_FAMILIES = 10_000
MAX_REMEMBERED = 16 * 1024  # characters of a text that is remembered: a hostile file has longer ones
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
    """The families of a schema file; raises InvalidCheckpoint that names `where`, the byte and what was expected."""
    reader = _Reader(content, where)
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
            f"{where} is a schema file of format {version[:20]!r}; formats v1, v2 and v3 are known{later}", file=where
        )
    reader.expect_end()
    return SchemaFile(int(version[1]), families)


def _single(key: str, value: str, where: str) -> Family:
    return Family("default", 0, _struct(key, where), 0, _struct(value, where), "", None)


def _families(reader: _Reader, where: str) -> tuple[Family, ...]:
    count = reader.number("the number of column families", 0, MAX_FAMILIES)
    found: dict[str, Family] = {}
    for _ in range(count):
        name = reader.text("a column family's name")
        if name in found:
            raise InvalidCheckpoint(f"{where} holds the column family {name[:80]!r} twice", file=where)
        key_id, key = reader.short("a key schema's id"), reader.chunked("a key schema")
        value_id, value = reader.short("a value schema's id"), reader.chunked("a value schema")
        encoder, user_key = reader.chunked("a key encoder"), reader.chunked("a user key's schema")
        encoder_type = _encoder_type(encoder)
        if encoder_type is None:
            raise InvalidCheckpoint(f"{where} holds a key encoder that is no JSON: {encoder[:80]!r}", file=where)
        has_user_key = user_key.strip("{ }") != ""  # Spark writes braces around blanks where there is none
        found[name] = Family(
            name=name,
            key_id=key_id,
            key_schema=_struct(key, where),
            value_id=value_id,
            value_schema=_struct(value, where),
            key_encoder=encoder_type,
            user_key=_struct(user_key, where) if has_user_key else None,
        )
    return tuple(found.values())


class _Reader:
    """Takes values off the front of a file's bytes, never past their end."""

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
        # Every chunk takes two bytes at least, so a count beyond that is damage, found before anything is allocated.
        count = self.number(f"the number of chunks of {what}", 0, (len(self._content) - self._at - 4) // 2)
        if count == 1:  # nearly every text is that short
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

    def _damaged(self, expected: str, found: str) -> InvalidCheckpoint:
        return InvalidCheckpoint(
            f"{self._where} is damaged at byte {self._at}: expected {expected}, found {found}",
            file=self._where,
            byte=self._at,
        )


def _modified_utf8(content: bytes, where: str, at: int) -> str:
    """Java's form of UTF-8: a null in two bytes, and characters beyond the basic plane as two surrogates."""
    if content.isascii():  # nearly every text is, and has none of Java's own forms
        return content.decode("ascii")
    try:
        text = content.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError as error:
        raise InvalidCheckpoint(f"{where} is damaged before byte {at}: no text in UTF-8", file=where) from error


def _is_struct(text: str) -> bool:
    """Whether a text is a StructType in JSON; the same few texts come in every file of a checkpoint."""
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
    """Drop what is remembered of schemas' texts, so that a measurement sees a first reading."""
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
        raise InvalidCheckpoint(f"{where} holds a schema that is no Spark StructType: {text[:80]!r}", file=where)
    return text


def _encoder_type(text: str) -> str | None:
    """How keys are encoded, empty where it isn't said; None for a text that is no JSON."""
    return _encoder_type_known(text) if len(text) <= MAX_REMEMBERED else _encoder_type_read(text)


def _encoder_type_read(text: str) -> str | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return str(parsed.get("keyStateEncoderType", "")) if isinstance(parsed, dict) else ""


_encoder_type_known = lru_cache(maxsize=256)(_encoder_type_read)
