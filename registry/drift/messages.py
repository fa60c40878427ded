"""From a message to its schema: what its bytes or headers name, the versions that are meant, and the decoded value."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from registry.access.roles import Actor, may, require
from registry.drift.pasted import header_bytes, read_headers, read_pasted
from registry.errors import InvalidDatum, InvalidInput, InvalidSchema, NotFound, Unavailable
from registry.formats.decoding import json_value
from registry.formats.effective_tags import MASK
from registry.formats.protobuf.decoding import split_indexes
from registry.observations import Framing, Side
from registry.subjects import engines
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.tags import tags_of_schemas
from registry.subjects.selectors.versions import get_version

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
    """What a message says of its schema. `framing` None: nothing; `indexes` where a header holds Protobuf's."""

    framing: Framing | None
    mark: str
    body: bytes
    indexes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class MeantVersion:
    """A version that has the message's schema."""

    context: str
    subject: str
    version: int
    deleted: bool


@dataclass(frozen=True)
class DecodedMessage:
    """All that a message tells. `error` says what stopped the decoding, at which place; then `value` is None.

    `problems` is what a JSON Schema says against the value; `elsewhere` are contexts and registries that know the mark
    where this one doesn't. `masked` says that values of personal data were taken out.
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
    versions: tuple[MeantVersion, ...] = ()
    indexes: tuple[int, ...] = ()
    type_name: str = ""
    value: Any = None
    problems: tuple[str, ...] = ()
    error: str = ""
    elsewhere: tuple[str, ...] = field(default=())
    masked: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
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
    """What a pasted message is. `context` is the one whose schema ids it carries.

    What the message itself gets wrong is told in `error`. Raises InvalidInput for a text that is no message,
    NotAllowed, and Unavailable where no process is free to decode.
    """
    require(by, "schema.read", registry=registry.name)
    pasted = read_pasted(text, encoding)
    frame = frame_of(pasted.data, read_headers(headers), side)
    found = DecodedMessage(
        encoding=pasted.encoding,
        bytes=len(pasted.data),
        framing=frame.framing or "none",
        mark=frame.mark,
        body_bytes=len(frame.body),
    )
    if frame.framing is None:
        return _without_schema(found, frame.body)
    schema = _schema(registry, frame, context)
    if schema is None:
        where = f" in context {context}" if frame.framing == "id" else ""
        error = f"{registry.name} has no schema with the {_WORDS[frame.framing]} {frame.mark}{where}."
        return replace(found, error=error, elsewhere=_elsewhere(frame, by))
    return _for(by, registry, _decoded(_with_schema(found, schema), schema, frame), schema)


def _for(by: Actor, registry: Registry, found: DecodedMessage, schema: Schema) -> DecodedMessage:
    """The message as the caller may see it: what tags say is personal data takes a right of its own."""
    subjects = [version.subject for version in found.versions]
    if all(may(by, "sample.personal", registry=registry.name, subject=subject) for subject in subjects or ("",)):
        return found
    tags = tags_of_schemas(registry, [schema])[schema.pk]
    if not tags.has_personal:
        return found
    # What a JSON Schema says against a value tells the value; what stops a decoder is told by places and numbers.
    problems = tuple(f"{problem.partition(': ')[0]}: {MASK}" for problem in found.problems)
    return replace(found, value=tags.masked(found.value), problems=problems, masked=True)


def _with_schema(found: DecodedMessage, schema: Schema) -> DecodedMessage:
    return replace(
        found,
        schema_id=schema.schema_id,
        guid=str(schema.guid),
        context=schema.context.name,
        schema_type=schema.schema_type,
        versions=_versions(schema),
    )


_WORDS: Final[Mapping[Framing, str]] = {"id": "schema id", "guid": "GUID", "content_type": "content type"}


# -- framing --------------------------------------------------------------------------------------------------------


def frame_of(data: bytes, headers: Mapping[str, str], side: Side) -> Frame:
    """How a message says which schema wrote it: a header first, then its first byte, then its content type.

    Source: Confluent's wire format (0 and four bytes of id; 1 and a GUID, in a header or in front), Spring's converters.
    Raises InvalidInput for a header that should hold a GUID and doesn't.
    """
    held = next((value for name, value in headers.items() if name.lower() == GUID_HEADERS[side]), None)
    if held is not None:
        return _frame_of_header(held, data, side)
    if len(data) >= 5 and data[0] == MAGIC_ID:
        return Frame("id", str(int.from_bytes(data[1:5], "big")), data[5:])
    if len(data) >= 17 and data[0] == MAGIC_GUID:
        return Frame("guid", str(uuid.UUID(bytes=data[1:17])), data[17:])
    content_type = next((value for name, value in headers.items() if name.lower() in CONTENT_TYPES), "")
    parts = _CONTENT_TYPE.fullmatch(content_type.strip())
    if parts is not None:
        return Frame("content_type", f"{parts['prefix']}.{parts['subject']}.v{int(parts['version'])}", data)
    return Frame(None, "", data)


def _frame_of_header(held: str, data: bytes, side: Side) -> Frame:
    """A GUID as text, or a one, the GUID's bytes, and for Protobuf the message indexes."""
    name = GUID_HEADERS[side]
    try:
        return Frame("guid", str(uuid.UUID(held.strip())), data)
    except ValueError:
        raw = header_bytes(held)
    if len(raw) >= 5 and raw[0] == MAGIC_ID:
        return Frame("id", str(int.from_bytes(raw[1:5], "big")), data, _indexes(raw[5:], name))
    if len(raw) < 17 or raw[0] != MAGIC_GUID:
        raise InvalidInput(
            f"The header {name} holds no schema: a byte of 1 and the 16 bytes of a GUID are expected, as hexadecimal"
            " or base64, or the GUID as text.",
            header=name,
        )
    return Frame("guid", str(uuid.UUID(bytes=raw[1:17])), data, _indexes(raw[17:], name))


def _indexes(raw: bytes, name: str) -> tuple[int, ...] | None:
    if not raw:
        return None
    try:
        return split_indexes(raw)[0]
    except InvalidDatum as error:
        raise InvalidInput(f"The header {name} holds no message indexes: {error.message}", header=name) from None


# -- schemas --------------------------------------------------------------------------------------------------------


def _schema(registry: Registry, frame: Frame, context: str) -> Schema | None:
    rows = Schema.objects.filter(context__registry=registry).select_related("context")
    if frame.framing == "id":
        number = int(frame.mark)
        return rows.filter(context__name=context, schema_id=number).first() if number < 2**31 else None
    if frame.framing == "guid":
        found = rows.filter(guid=frame.mark).order_by("context__name", "schema_id")
        return next((row for row in found if row.context.name == context), None) or found.first()
    try:
        info = get_version(registry, *_subject_of(frame.mark, context), deleted=True)
    except (NotFound, InvalidInput):
        return None
    return rows.filter(context__name=info.schema.context, schema_id=info.schema.schema_id).first()


def _subject_of(mark: str, context: str) -> tuple[SubjectName, int]:
    """Subject and version of `prefix.subject.vN`."""
    rest, _, version = mark.rpartition(".v")
    return parse_subject(rest.partition(".")[2], context=context), int(version)


def _versions(schema: Schema) -> tuple[MeantVersion, ...]:
    rows = SchemaVersion.objects.filter(schema=schema).order_by("subject__name", "version")
    values = rows.values_list("subject__context__name", "subject__name", "version", "deleted_at")
    return tuple(
        MeantVersion(context, SubjectName(context, name).qualified, version, deleted is not None)
        for context, name, version, deleted in values
    )


def _elsewhere(frame: Frame, by: Actor) -> tuple[str, ...]:
    """Contexts and registries that know the mark and that the caller may read, as `registry context`."""
    if frame.framing == "content_type" or (frame.framing == "id" and int(frame.mark) >= 2**31):
        return ()
    rows = (
        Schema.objects.filter(schema_id=int(frame.mark))
        if frame.framing == "id"
        else Schema.objects.filter(guid=frame.mark)
    )
    places = rows.order_by("context__registry__name", "context__name").values_list(
        "context__registry__name", "context__name"
    )
    found = [f"{name} {context}" for name, context in places if may(by, "schema.read", registry=name)]
    return tuple(found[:_MAX_ELSEWHERE])


# -- values ---------------------------------------------------------------------------------------------------------


def _decoded(found: DecodedMessage, schema: Schema, frame: Frame) -> DecodedMessage:
    try:
        parsed = parse_stored([schema])[0]
        body = engines.decode_body(parsed, frame.body, frame.indexes)
    except Unavailable:
        raise
    except (InvalidDatum, InvalidSchema) as error:
        return replace(found, error=error.placed)
    return replace(found, indexes=body.indexes, type_name=body.type_name, value=body.value, problems=body.problems)


def _without_schema(found: DecodedMessage, body: bytes) -> DecodedMessage:
    """A message that names no schema: its value where it is JSON."""
    try:
        return replace(
            found, value=json_value(body), error="The message doesn't say which schema wrote it; it is JSON."
        )
    except InvalidDatum:
        shown = "nothing" if not body else f"a byte of 0x{body[0]:02x}"
        return replace(
            found,
            error=f"The message doesn't say which schema wrote it: it begins with {shown}, where a schema's mark has"
            " 0x00 (a schema id) or 0x01 (a GUID), and no header names a schema.",
        )
