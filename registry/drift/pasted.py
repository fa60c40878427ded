"""Bytes that a person pasted: hexadecimal, base64, a dump of a tool, or the text of a JSON message; and headers as text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.errors import InvalidInput

MAX_BYTES: Final = 1024 * 1024
MAX_TEXT: Final = 6 * MAX_BYTES
MAX_HEADERS: Final = 64 * 1024
Encoding = Literal["hex", "base64", "text"]
ENCODINGS: Final = ("auto", "hex", "base64", "text")

_HEX: Final = re.compile(r"[0-9A-Fa-f]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
# What tools put around the digits: 0x and \x before each byte, white space, and signs between them.
_BETWEEN: Final = re.compile(r"0[xX]|\\x|[\s,:;]+")
# A line of hexdump -C or xxd: the offset, the bytes, and the same as characters.
_DUMP: Final = re.compile(r"[0-9A-Fa-f]{4,16}:?\s+(?P<bytes>(?:[0-9A-Fa-f]{2,32}(?: {1,2}|$))+)(?:\s*\|.*\||\s+.*)?")
_DUMP_END: Final = re.compile(r"[0-9A-Fa-f]{4,16}:?")


@dataclass(frozen=True)
class Pasted:
    """The bytes, and how they were written."""

    data: bytes
    encoding: Encoding


def read_pasted(text: str, encoding: str = "auto") -> Pasted:
    """The bytes in a text. Raises InvalidInput, which says where the text stops being what it should be."""
    if encoding not in ENCODINGS:
        raise InvalidInput(f"The encoding is one of {', '.join(ENCODINGS)}, not {encoding[:40]!r}.")
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"The message has {len(text):,} characters; at most {MAX_BYTES:,} bytes of it are read.")
    if not text.strip():
        raise InvalidInput("Paste a message: hexadecimal, base64, or the text of a JSON message.")
    if encoding == "auto":
        found = _guessed(text)
    elif encoding == "text":
        found = Pasted(text.encode(), "text")
    else:
        found = _hex(text) if encoding == "hex" else _base64(text)
    if len(found.data) > MAX_BYTES:
        raise InvalidInput(f"The message has {len(found.data):,} bytes; at most {MAX_BYTES:,} are read.")
    return found


def read_headers(text: str) -> Mapping[str, str]:
    """Headers from lines `name: value` or `name=value`, the last of a name. Raises InvalidInput with the line."""
    if len(text) > MAX_HEADERS:
        raise InvalidInput(f"The headers have {len(text):,} characters; at most {MAX_HEADERS:,} are read.")
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        parts = re.match(r"\s*([^\s:=][^:=]{0,254}?)\s*[:=]\s*(.*?)\s*$", line)
        if parts is None:
            raise InvalidInput(f"Line {number} of the headers is not `name: value`.", line=number)
        found[parts[1]] = parts[2]
    return found


def header_bytes(value: str) -> bytes:
    """The bytes of a header's value: written as hexadecimal or base64, else the text itself."""
    try:
        return _guessed(value).data if value.strip() else b""
    except InvalidInput:
        return value.encode()


def _guessed(text: str) -> Pasted:
    stripped = text.strip()
    if stripped[0] in "{[<\"'":
        return Pasted(text.strip().encode(), "text")
    compact = "".join(stripped.split())
    digits = _digits(text)
    # Letters from A to F alone may be either: framed messages begin with a zero byte, which is AA… in base64.
    may_be_base64 = compact.startswith("AA") and len(compact) % 4 == 0 and _BASE64.fullmatch(compact)
    if digits and _HEX.fullmatch(digits) and not may_be_base64:
        return _hex(text)
    if _BASE64.fullmatch(compact):
        return _base64(text)
    return _hex(text)


def _digits(text: str) -> str:
    """The hexadecimal digits of a text, those of a dump without its offsets and characters."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    dumped = [_DUMP.fullmatch(line) for line in lines]
    tail = dumped[-1] is None and bool(_DUMP_END.fullmatch(lines[-1])) and len(lines) > 1
    body = dumped[:-1] if tail else dumped
    is_dump = all(found is not None for found in body) and (
        len(lines) > 1
        or ":" in lines[0]
        or "|" in lines[0]
        or lines[0].startswith("0000 ")
        or "00000000" in lines[0][:8]
    )
    if is_dump and _are_offsets(lines[: len(body)]):
        return "".join("".join(found["bytes"].split()) for found in body if found is not None)
    return _BETWEEN.sub("", text)


def _are_offsets(lines: list[str]) -> bool:
    """Whether the first word of each line counts the bytes before it, as a dump's does."""
    before = -1
    for line in lines:
        offset = int(re.split(r"[:\s]", line, maxsplit=1)[0], 16)
        if offset <= before or (before == -1 and offset != 0):
            return False
        before = offset
    return True


def _hex(text: str) -> Pasted:
    digits = _digits(text)
    wrong = re.search(r"[^0-9A-Fa-f]", digits)
    if wrong is not None:
        at = text.find(wrong[0])
        raise InvalidInput(
            f"{wrong[0]!r} at character {at + 1} is no hexadecimal digit; paste hexadecimal, base64 or JSON.",
            character=at + 1,
        )
    if len(digits) % 2:
        raise InvalidInput(f"{len(digits)} hexadecimal digits are no whole bytes: one is missing or too many.")
    return Pasted(bytes.fromhex(digits), "hex")


def _base64(text: str) -> Pasted:
    compact = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"The text is no base64: {error}.") from None
    return Pasted(data, "base64")
