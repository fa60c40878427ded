"""Decodes a pasted message (hexadecimal, base64, a tool's dump, or JSON) to its schema and its value.

Bytes or headers name the schema; its versions and the decoded value follow from it.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from registry.access.roles import Actor, may, require
from registry.errors import InvalidDatum, InvalidInput, InvalidSchema, NotFound, Unavailable
from registry.formats.json_schema.data import json_value
from registry.formats.personal_data import MASK
from registry.formats.protobuf.decoding import split_indexes
from registry.observations import Framing, Side
from registry.subjects.comparison.parsed_versions import tags_of_schemas
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.parsed_schemas import parse_stored
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject

MAX_BYTES: Final = 1024 * 1024
MAX_TEXT: Final = 6 * MAX_BYTES
MAX_HEADERS: Final = 64 * 1024
Encoding = Literal["hex", "base64", "text"]
ENCODINGS: Final = ("auto", "hex", "base64", "text")

_HEX: Final = re.compile(r"[0-9A-Fa-f]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
# What tools put around the digits: 0x and \x before each byte, white space, and separators.
_BETWEEN: Final = re.compile(r"0[xX]|\\x|[\s,:;]+")
# A line of hexdump -C or xxd: the offset, the bytes, and the bytes as characters.
_DUMP: Final = re.compile(r"[0-9A-Fa-f]{4,16}:?\s+(?P<bytes>(?:[0-9A-Fa-f]{2,32}(?: {1,2}|$))+)(?:\s*\|.*\||\s+.*)?")
_DUMP_END: Final = re.compile(r"[0-9A-Fa-f]{4,16}:?")


@dataclass(frozen=True)
class PastedBytes:
    """The bytes, and their encoding in the text."""

    data: bytes
    encoding: Encoding


def read_pasted(text: str, encoding: str = "auto") -> PastedBytes:
    """Decode the bytes in a text. Raises InvalidInput with the position of the first invalid character."""
    if encoding not in ENCODINGS:
        raise InvalidInput(f"The encoding must be one of {', '.join(ENCODINGS)}, not {encoding[:40]!r}.")
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"The message has {len(text):,} characters; the maximum is {MAX_BYTES:,} bytes.")
    if not text.strip():
        raise InvalidInput("Paste a message: hexadecimal, base64, or the text of a JSON message.")
    if encoding == "auto":
        pasted = _guessed(text)
    elif encoding == "text":
        pasted = PastedBytes(text.encode(), "text")
    else:
        pasted = _hex(text) if encoding == "hex" else _base64(text)
    if len(pasted.data) > MAX_BYTES:
        raise InvalidInput(f"The message has {len(pasted.data):,} bytes; the maximum is {MAX_BYTES:,}.")
    return pasted


def read_headers(text: str) -> Mapping[str, str]:
    """Parse lines `name: value` or `name=value`; the last one of a name wins. Raises InvalidInput with the line."""
    if len(text) > MAX_HEADERS:
        raise InvalidInput(f"The headers have {len(text):,} characters; the maximum is {MAX_HEADERS:,}.")
    headers = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        parts = re.match(r"\s*([^\s:=][^:=]{0,254}?)\s*[:=]\s*(.*?)\s*$", line)
        if parts is None:
            raise InvalidInput(f"Line {number} of the headers is not `name: value`.", line=number)
        headers[parts[1]] = parts[2]
    return headers


def header_bytes(value: str) -> bytes:
    """Return the bytes of a header's value: decoded from hexadecimal or base64, else the text itself."""
    try:
        return _guessed(value).data if value.strip() else b""
    except InvalidInput:
        return value.encode()


def _guessed(text: str) -> PastedBytes:
    stripped = text.strip()
    if stripped[0] in "{[<\"'":
        return PastedBytes(text.strip().encode(), "text")
    compact = "".join(stripped.split())
    digits = _digits(text)
    # Digits A to F alone are ambiguous: framed messages begin with a zero byte, which is AA… in base64.
    may_be_base64 = compact.startswith("AA") and len(compact) % 4 == 0 and _BASE64.fullmatch(compact)
    if digits and _HEX.fullmatch(digits) and not may_be_base64:
        return _hex(text)
    if _BASE64.fullmatch(compact):
        return _base64(text)
    return _hex(text)


def _digits(text: str) -> str:
    """Return a text's hexadecimal digits; for a dump, without its offsets and characters."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    dumped = [_DUMP.fullmatch(line) for line in lines]
    tail = dumped[-1] is None and bool(_DUMP_END.fullmatch(lines[-1])) and len(lines) > 1
    body = dumped[:-1] if tail else dumped
    is_dump = all(match is not None for match in body) and (
        len(lines) > 1
        or ":" in lines[0]
        or "|" in lines[0]
        or lines[0].startswith("0000 ")
        or "00000000" in lines[0][:8]
    )
    if is_dump and _are_offsets(lines[: len(body)]):
        return "".join("".join(match["bytes"].split()) for match in body if match is not None)
    return _BETWEEN.sub("", text)


def _are_offsets(lines: list[str]) -> bool:
    """Return whether the first word of each line is an increasing offset, as in a dump."""
    before = -1
    for line in lines:
        offset = int(re.split(r"[:\s]", line, maxsplit=1)[0], 16)
        if offset <= before or (before == -1 and offset != 0):
            return False
        before = offset
    return True


def _hex(text: str) -> PastedBytes:
    digits = _digits(text)
    invalid = re.search(r"[^0-9A-Fa-f]", digits)
    if invalid is not None:
        at = text.find(invalid[0])
        raise InvalidInput(
            f"{invalid[0]!r} at character {at + 1} is not a hexadecimal digit. Paste hexadecimal, base64 or JSON.",
            character=at + 1,
        )
    if len(digits) % 2:
        raise InvalidInput(f"{len(digits)} hexadecimal digits don't make whole bytes: one is missing or extra.")
    return PastedBytes(bytes.fromhex(digits), "hex")


def _base64(text: str) -> PastedBytes:
    compact = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"The text is not valid base64: {error}.") from None
    return PastedBytes(data, "base64")


MAGIC_ID: Final = 0
MAGIC_GUID: Final = 1
GUID_HEADERS: Final[Mapping[Side, str]] = {"key": "__key_schema_id", "value": "__value_schema_id"}
CONTENT_TYPES: Final = ("contenttype", "content-type", "content_type")
_CONTENT_TYPE: Final = re.compile(
    r'"?application/(?P<prefix>[^./+"]+)\.(?P<subject>[^+"]+)\.v(?P<version>\d{1,9})\+\w+ *(?:;[^"]*)?"?'
)
_MAX_ELSEWHERE: Final = 20


@dataclass(frozen=True)
class Frame:
    """A message's reference to its schema. `framing` is None without one; `indexes` are Protobuf's from a header."""

    framing: Framing | None
    mark: str
    body: bytes
    indexes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class MessageVersion:
    """A version that has the message's schema."""

    context: str
    subject: str
    version: int
    deleted: bool


@dataclass(frozen=True)
class DecodedMessage:
    """A decoded message. `error` says what stopped the decoding, and where; then `value` is None.

    `problems` are a JSON Schema's violations; `elsewhere` are other contexts and registries that know the mark.
    `masked`: values of personal data were removed.
    """

    encoding: str
    bytes: int
    framing: str
    mark: str
    body_bytes: int
    schema_id: int | None = None
    guid: str = ""
    context: str = ""
    schema_type: str = ""
    versions: tuple[MessageVersion, ...] = ()
    indexes: tuple[int, ...] = ()
    type_name: str = ""
    value: Any = None
    problems: tuple[str, ...] = ()
    logical: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    elsewhere: tuple[str, ...] = field(default=())
    masked: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the message as JSON values."""
        return asdict(self)


def decode_message(
    registry: Registry,
    *,
    text: str,
    by: Actor,
    headers: str = "",
    side: Side = "value",
    encoding: str = "auto",
    context: str = DEFAULT_CONTEXT,
) -> DecodedMessage:
    """Decode a pasted message. `context` is the context of its schema ids.

    Errors in the message itself are in `error`. Raises InvalidInput if the text isn't a message, NotAllowed, and
    Unavailable if no process is free to decode.
    """
    require(by, "schema.read", registry=registry.name)
    pasted = read_pasted(text, encoding)
    frame = frame_of(pasted.data, read_headers(headers), side)
    message = DecodedMessage(
        encoding=pasted.encoding,
        bytes=len(pasted.data),
        framing=frame.framing or "none",
        mark=frame.mark,
        body_bytes=len(frame.body),
    )
    if frame.framing is None:
        return _without_schema(message, frame.body)
    schema = _schema(registry, frame, context)
    if schema is None:
        where = f" in context {context}" if frame.framing == "id" else ""
        error = f"{registry.name} has no schema with {_WORDS[frame.framing]} {frame.mark}{where}."
        return replace(message, error=error, elsewhere=_elsewhere(frame, by))
    return _for(by, registry, _decoded(_with_schema(message, schema), schema, frame), schema)


def _for(by: Actor, registry: Registry, message: DecodedMessage, schema: Schema) -> DecodedMessage:
    """Return the message as the caller may see it: personal data needs a right of its own."""
    subjects = [version.subject for version in message.versions]
    if all(may(by, "sample.personal", registry=registry.name, subject=subject) for subject in subjects or ("",)):
        return message
    tags = tags_of_schemas(registry, [schema])[schema.pk]
    if not tags.has_personal:
        return message
    # JSON Schema's messages contain the value; decoder errors only have positions and numbers.
    problems = tuple(f"{problem.partition(': ')[0]}: {MASK}" for problem in message.problems)
    return replace(message, value=tags.masked(message.value), problems=problems, logical={}, masked=True)


def _with_schema(message: DecodedMessage, schema: Schema) -> DecodedMessage:
    return replace(
        message,
        schema_id=schema.schema_id,
        guid=str(schema.guid),
        context=schema.context.name,
        schema_type=schema.schema_type,
        versions=_versions(schema),
    )


_WORDS: Final[Mapping[Framing, str]] = {"id": "schema id", "guid": "GUID", "content_type": "content type"}


# -- framing --------------------------------------------------------------------------------------------------------


def frame_of(data: bytes, headers: Mapping[str, str], side: Side) -> Frame:
    """Return how a message names its writer schema: by a header first, then the first byte, then the content type.

    Source: Confluent's wire format (0 and four bytes of id; 1 and a GUID, in a header or in front), Spring's
    converters. Raises InvalidInput for a header that should hold a GUID and doesn't.
    """
    header = next((value for name, value in headers.items() if name.lower() == GUID_HEADERS[side]), None)
    if header is not None:
        return _frame_of_header(header, data, side)
    if len(data) >= 5 and data[0] == MAGIC_ID:
        return Frame("id", str(int.from_bytes(data[1:5], "big")), data[5:])
    if len(data) >= 17 and data[0] == MAGIC_GUID:
        return Frame("guid", str(uuid.UUID(bytes=data[1:17])), data[17:])
    content_type = next((value for name, value in headers.items() if name.lower() in CONTENT_TYPES), "")
    parts = _CONTENT_TYPE.fullmatch(content_type.strip())
    if parts is not None:
        return Frame("content_type", f"{parts['prefix']}.{parts['subject']}.v{int(parts['version'])}", data)
    return Frame(None, "", data)


def _frame_of_header(header: str, data: bytes, side: Side) -> Frame:
    """Parse a GUID as text, or a byte 1, the GUID's bytes, and for Protobuf the message indexes."""
    name = GUID_HEADERS[side]
    try:
        return Frame("guid", str(uuid.UUID(header.strip())), data)
    except ValueError:
        raw = header_bytes(header)
    if len(raw) >= 5 and raw[0] == MAGIC_ID:
        return Frame("id", str(int.from_bytes(raw[1:5], "big")), data, _indexes(raw[5:], name))
    if len(raw) < 17 or raw[0] != MAGIC_GUID:
        raise InvalidInput(
            f"Header {name} has no schema GUID. Expected are a byte of 1 and the 16 bytes of a GUID, as "
            "hexadecimal or base64, or the GUID as text.",
            header=name,
        )
    return Frame("guid", str(uuid.UUID(bytes=raw[1:17])), data, _indexes(raw[17:], name))


def _indexes(raw: bytes, name: str) -> tuple[int, ...] | None:
    if not raw:
        return None
    try:
        return split_indexes(raw)[0]
    except InvalidDatum as error:
        raise InvalidInput(f"Header {name} has no valid message indexes: {error.message}", header=name) from None


# -- schemas --------------------------------------------------------------------------------------------------------


def _schema(registry: Registry, frame: Frame, context: str) -> Schema | None:
    rows = Schema.objects.filter(context__registry=registry).select_related("context")
    if frame.framing == "id":
        number = int(frame.mark)
        return rows.filter(context__name=context, schema_id=number).first() if number < 2**31 else None
    if frame.framing == "guid":
        matches = rows.filter(guid=frame.mark).order_by("context__name", "schema_id")
        return next((row for row in matches if row.context.name == context), None) or matches.first()
    try:
        info = get_version(registry, *_subject_of(frame.mark, context), deleted=True)
    except (NotFound, InvalidInput):
        return None
    return rows.filter(context__name=info.schema.context, schema_id=info.schema.schema_id).first()


def _subject_of(mark: str, context: str) -> tuple[SubjectName, int]:
    """Return subject and version of `prefix.subject.vN`."""
    rest, _, version = mark.rpartition(".v")
    return parse_subject(rest.partition(".")[2], context=context), int(version)


def _versions(schema: Schema) -> tuple[MessageVersion, ...]:
    rows = SchemaVersion.objects.filter(schema=schema).order_by("subject__name", "version")
    values = rows.values_list("subject__context__name", "subject__name", "version", "deleted_at")
    return tuple(
        MessageVersion(context, SubjectName(context, name).qualified, version, deleted is not None)
        for context, name, version, deleted in values
    )


def _elsewhere(frame: Frame, by: Actor) -> tuple[str, ...]:
    """Return readable contexts and registries that know the mark, as `registry context`."""
    if frame.framing == "content_type" or (frame.framing == "id" and int(frame.mark) >= 2**31):
        return ()
    rows = (
        Schema.objects.filter(schema_id=int(frame.mark))
        if frame.framing == "id"
        else Schema.objects.filter(guid=frame.mark)
    )
    contexts = rows.order_by("context__registry__name", "context__name").values_list(
        "context__registry__name", "context__name"
    )
    listed = [f"{name} {context}" for name, context in contexts if may(by, "schema.read", registry=name)]
    return tuple(listed[:_MAX_ELSEWHERE])


# -- values ---------------------------------------------------------------------------------------------------------


def _decoded(message: DecodedMessage, schema: Schema, frame: Frame) -> DecodedMessage:
    try:
        parsed = parse_stored([schema])[0]
        body = schema_engine.decode_body(parsed, frame.body, frame.indexes)
    except Unavailable:
        raise
    except (InvalidDatum, InvalidSchema) as error:
        return replace(message, error=error.placed)
    decoded = {name: getattr(body, name) for name in ("indexes", "type_name", "value", "problems", "logical")}
    return replace(message, **decoded)


def _without_schema(message: DecodedMessage, body: bytes) -> DecodedMessage:
    """Return a message without a schema reference, with its value if it is JSON."""
    try:
        return replace(message, value=json_value(body), error="The message is JSON and doesn't name its schema.")
    except InvalidDatum:
        return replace(
            message, error=f"The message doesn't name its schema: it {_start(body)}, and no header names a schema."
        )


def _start(body: bytes) -> str:
    """Return why the first bytes name no schema."""
    if not body:
        return "is empty"
    what, length = {0: ("schema id", 4), 1: ("GUID", 16)}.get(body[0], ("", 0))
    if len(body) <= length:
        return f"is cut off: it has {len(body) - 1} of the {length} bytes of the {what} after byte 0x{body[0]:02x}"
    return f"starts with byte 0x{body[0]:02x} instead of 0x00 (schema id) or 0x01 (GUID)"
