"""Requests, answers and names of this dialect, and how its values are encoded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException, ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.request_reading import (
    length_of,
    number_words,
    refuse_constant,
    refuse_many_values,
    room_for,
    unreadable_number,
)
from registry.errors import InvalidCompatibility, InvalidInput, InvalidMode, InvalidName, InvalidSchema
from registry.formats import DEFAULT_FORMAT, FORMATS
from registry.formats.base import UNSTORABLE, Reference
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, check_context
from registry.subjects.versions.versions import SchemaInfo, VersionInfo

#: the name of the context `.` in this dialect, because `.` can't be a path segment
DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9.\-_+%~]{1,255}")


def parse_context(name: str) -> str:
    """Return the registry's name for a context (`lab` → `.lab`). Raises InvalidName."""
    bare = name.removeprefix(".")
    if name in (DEFAULT, DEFAULT_CONTEXT):
        return DEFAULT_CONTEXT
    if not _NAME.fullmatch(bare):
        raise InvalidName(_refusal("context", name), name=name[:80], field="context")
    return check_context(f".{bare}")


def context_name(context: str) -> str:
    """Return a context's name in a URL (`.lab` → `lab`), the reverse of `parse_context`."""
    if context == DEFAULT_CONTEXT:
        return DEFAULT
    bare = context.removeprefix(".")
    return context if bare == DEFAULT else bare


def subject_label(subject: SubjectName, context: str) -> str:
    """Return the subject's name in answers: bare in the URL's context, otherwise qualified."""
    return subject.subject if subject.context == context else subject.qualified


def check_subject(subject: SubjectName) -> SubjectName:
    """Return the subject if this dialect may create that name. Raises InvalidName.

    Other dialects allow more names; such subjects can be read and deleted here.
    """
    if not _NAME.fullmatch(subject.subject):
        raise InvalidName(_refusal("subject", subject.subject), name=subject.subject[:80], field="subject")
    return subject


def _refusal(kind: str, name: str) -> str:
    return (
        f"{name[:80]!r} is not a {kind} name: use 1 to 255 characters, letters, digits and . - _ + % ~"
        f" ({len(name)} were given)."
    )


MAX_BODY = 8 * 1024 * 1024
JSON = "application/json"
_NO_TYPE = "SCHEMA_TYPE_UNSPECIFIED"
#: enum → its names in the order of their numbers
COMPATIBILITY_TYPES = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODE_TYPES = ("NONE", "READONLY", "READWRITE", "IMPORT")


class BodyTooLong(APIException):
    """A body over the limit."""

    status_code = 413
    default_detail = f"A request's body may have up to {MAX_BODY} bytes."


class AlwaysJson(BaseContentNegotiation):
    """Answers JSON, whatever `Accept` says."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return the parser for the body's media type; a body without one is parsed as JSON."""
        media_type = (request.content_type or JSON).partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the only renderer."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or JSON


class JsonParser(BaseParser):
    """A parser of JSON; errors have line and column."""

    media_type = JSON

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the parsed body, None for white space.

        Raises ParseError with line and column, BodyTooLong, InvalidInput.
        """
        with room_for(length_of(parser_context)):
            return self._read(stream)

    def _read(self, stream: IO[bytes]) -> Any:
        body = stream.read(MAX_BODY + 1)
        if len(body) > MAX_BODY:
            raise BodyTooLong
        refuse_many_values(body)
        if not body.strip():
            return None
        try:
            return json.loads(body.decode(), parse_constant=refuse_constant)
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise ParseError(f"Invalid JSON payload received at {where}: {error.msg}.") from error
        except UnicodeDecodeError as error:
            raise ParseError(f"Invalid JSON payload received: not UTF-8 at byte {error.start}.") from error
        except RecursionError as error:
            raise ParseError("Invalid JSON payload received: it is nested too deeply.") from error
        except ValueError as error:  # NaN, or a number with thousands of digits
            raise ParseError(f"Invalid JSON payload received: {unreadable_number(error)}.") from error


class VendorParser(JsonParser):
    """The parser for the media type of Confluent's clients, whose serializers use this API too."""

    media_type = "application/vnd.schemaregistry.v1+json"


class PlainVendorParser(JsonParser):
    """The parser for that media type without a version."""

    media_type = "application/vnd.schemaregistry+json"


PARSERS = (JsonParser, VendorParser, PlainVendorParser)
RENDERERS = (JSONRenderer,)


def enum(request: Request, name: str, names: Sequence[str]) -> str | int:
    """Return an enum's value: its name, or its number for a caller with `$alt=json;enum-encoding=int`."""
    system = request.query_params.get("$alt") or request.query_params.get("alt") or ""
    return names.index(name) if "enum-encoding=int" in system else name


def http_body(request: Request, value: Any, *, content_type: str = "") -> HttpResponseBase:
    """Return an answer of the type google.api.HttpBody: JSON of `value`, or with a type a text unchanged.

    Over REST the content is the body itself. Google's Python client can't read that, because it parses the body as the
    message HttpBody, so it gets that message, with the content in base64 as in proto3's JSON.
    """
    content = (value if content_type else json.dumps(value)).encode()
    if "gl-python/" not in request.META.get("HTTP_X_GOOG_API_CLIENT", ""):
        return HttpResponse(content, content_type=content_type or JSON)
    return Response({"contentType": content_type or JSON, "data": base64.b64encode(content).decode()})


#: name in the documentation → name in the Python client
BOTH_NAMES = {"version": "versionId", "id": "schemaId", "schema": "schemaPayload"}


def version_answer(request: Request, info: VersionInfo, context: str) -> dict[str, Any]:
    """Return a version as `SchemaVersion`, for a URL in a context."""
    values = {
        "subject": subject_label(info.subject, context),
        "version": info.version,
        "id": info.schema.schema_id,
        **_definition(request, info.schema),
    }
    return _under_both_names(values)


def schema_answer(request: Request, info: SchemaInfo) -> dict[str, Any]:
    """Return a definition as `Schema`."""
    return _under_both_names(_definition(request, info))


def _definition(request: Request, info: SchemaInfo) -> dict[str, Any]:
    values: dict[str, Any] = {
        "schemaType": enum(request, info.schema_type, _schema_types()),
        "schema": info.text,
    }
    if info.references:
        values["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in info.references]
    return values


def _under_both_names(values: dict[str, Any]) -> dict[str, Any]:
    return values | {other: values[name] for name, other in BOTH_NAMES.items() if name in values}


MAX_INT32 = 2**31 - 1
#: returns a field's value for the JSON value at a place; raises InvalidInput
Reader = Callable[[Any, str], Any]


def text(value: Any, field_path: str) -> str:
    """Return a string that PostgreSQL can store."""
    if not isinstance(value, str):
        raise wrong_type(field_path, value, "a string")
    if unusable := UNSTORABLE.search(value):
        char, position = ord(unusable.group()), unusable.start() + 1
        raise InvalidInput(
            f"{field_path} has the character U+{char:04X} at position {position}, which is not allowed in text.",
            field=field_path,
        )
    return value


def boolean(value: Any, field_path: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise wrong_type(field_path, value, "true or false")
    return value


def number(value: Any, field_path: str) -> int:
    """Return an int32; proto3's JSON allows it as a string too."""
    if isinstance(value, str) and value.removeprefix("-").isascii() and value.removeprefix("-").isdigit():
        value = int(value[:12])
    if isinstance(value, bool | float) or (isinstance(value, int) and abs(value) > MAX_INT32):
        raise InvalidInput(
            f"{field_path} is {number_words(value)}; it must be a whole number of 32 bits.", field=field_path
        )
    if not isinstance(value, int):
        raise wrong_type(field_path, value, "a whole number of 32 bits")
    return value


def message(value: Any, field_path: str) -> dict[str, Any]:
    """Return an object without checking its properties."""
    if not isinstance(value, dict):
        raise wrong_type(field_path, value, "an object")
    return value


def references(value: Any, field_path: str) -> tuple[Reference, ...]:
    """Return SchemaReferences."""
    if not isinstance(value, list):
        raise wrong_type(field_path, value, "an array")
    return tuple(_reference(item, f"{field_path}[{position}]") for position, item in enumerate(value))


def _reference(value: Any, field_path: str) -> Reference:
    properties = _read(message(value, field_path), REFERENCE, f"{field_path}.")
    missing = next((name for name in REFERENCE if name not in properties), None)
    if missing:
        raise InvalidInput(f"{field_path}.{missing} is missing.", field=f"{field_path}.{missing}")
    return Reference(**properties)


def _schema_types() -> tuple[str, ...]:
    """Return the formats in the order of Google's enum, then the formats that it doesn't have."""
    known = (_NO_TYPE, "AVRO", "JSON", "PROTOBUF")
    return (*known, *(name for name in FORMATS if name not in known))


def _schema_type(value: Any, field_path: str) -> str:
    return str(_enum(_schema_types(), InvalidInput)(value, field_path))


def _enum(names: tuple[str, ...], error: type[InvalidInput]) -> Reader:
    def read(value: Any, field_path: str) -> str:
        if isinstance(value, str) and value.upper() in names:
            return value.upper()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
            return names[value]
        shown = repr(value[:40]) if isinstance(value, str) else _kind(value)
        if isinstance(value, float):
            shown = number_words(value)
        raise error(f"{field_path} is {shown}; it must be one of {', '.join(names)}.", field=field_path)

    return read


REFERENCE: Mapping[str, Reader] = {"name": text, "subject": text, "version": number}
_SCHEMA: Mapping[str, Reader] = {
    "schemaType": _schema_type,
    "schema": text,
    "references": references,
}
#: request → its fields
VERSION = {**_SCHEMA, "version": number, "id": number, "normalize": boolean}
LOOK_UP = {**_SCHEMA, "normalize": boolean, "deleted": boolean}
CHECK = {**_SCHEMA, "verbose": boolean}
CONFIG: Mapping[str, Reader] = {
    "compatibility": _enum(COMPATIBILITY_TYPES, InvalidCompatibility),
    "normalize": boolean,
}
MODE: Mapping[str, Reader] = {"mode": _enum(MODE_TYPES, InvalidMode)}
REGISTRY: Mapping[str, Reader] = {"schemaRegistryId": text, "schemaRegistry": message}


def read(request: Request, fields: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the body's fields without null ones, as in proto3's JSON. Raises InvalidInput."""
    body = request.data
    if body is None or (not body and not int(request.META.get("CONTENT_LENGTH") or 0)):
        raise InvalidInput("The request has no body; send a JSON object.")
    if not isinstance(body, dict):
        raise InvalidInput(f"The body is {_kind(body)}; send a JSON object.")
    return _read(body, fields, "")


def read_schema(request: Request, fields: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the fields of a body with a schema, which always has `text`, `schema_type` and `references`.

    Raises InvalidInput, InvalidSchema.
    """
    properties = read(request, fields)
    schema = properties.pop("schema", "")
    if not schema.strip():
        raise InvalidSchema("schema is missing or empty.", field="schema")
    kind = properties.pop("schemaType", _NO_TYPE)
    schema_type = DEFAULT_FORMAT if kind == _NO_TYPE else kind
    return {"references": (), **properties, "text": schema, "schema_type": schema_type}


def _read(body: dict[str, Any], fields: Mapping[str, Reader], prefix: str) -> dict[str, Any]:
    by_name = {_snake(name): name for name in fields}
    properties = {}
    for key, value in body.items():
        name = key if key in fields else by_name.get(key)
        if name is None:
            names = ", ".join(fields)
            unknown_path = prefix + UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", key[:80])
            raise InvalidInput(
                f"Unknown name {unknown_path!r}: cannot find field. Known here: {names}.", field=unknown_path
            )
        if value is not None:
            properties[name] = fields[name](value, prefix + name)
    return properties


def _snake(name: str) -> str:
    """Return a field's original name, which proto3's JSON accepts too."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def wrong_type(field_path: str, value: Any, expected: str) -> InvalidInput:
    """Return the error for a value with a wrong type."""
    return InvalidInput(f"{field_path} is {_kind(value)}; it must be {expected}.", field=field_path)


_KINDS = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _KINDS.get(type(value), "null")


def flag(request: Request, name: str) -> bool:
    """Return a boolean query parameter, by default false. Raises InvalidInput for anything but true and false."""
    text = request.query_params.get(name, "").lower()
    if text not in ("", "true", "false"):
        raise InvalidInput(f"The parameter {name} is {text[:40]!r}; it must be true or false.", field=name)
    return text == "true"


def schema_id(value: str) -> int:
    """Return the id in a URL. Raises InvalidInput."""
    if not value.isascii() or not value.isdigit() or not 1 <= int(value[:12]) <= MAX_INT32:
        raise InvalidInput(
            f"{value[:40]!r} is not a schema id: it must be a number from 1 to {MAX_INT32}.", field="name"
        )
    return int(value)
