"""Requests of Spring's clients, read as its server's converters do; and when that server treats schemas as equal."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from rest_framework.request import Request

from registry.api.request_reading import SURROGATE, length_of, refuse_many_values, room_for
from registry.api.spring.errors import Refusal, format_refused, no_mapping, not_a_number
from registry.errors import InvalidInput
from registry.formats import FORMATS
from registry.subjects.versions.parsed_schemas import refuse_too_large

IGNORED = frozenset({"doc", "aliases"})
#: how many keys are cached, and up to which text length: at most some 32 MB
CACHED, CACHED_LENGTH = 2048, 16_384


def equality_key(canonical: str) -> str:
    """Return a key that is equal for two canonical Avro texts that Spring's server treats as the same schema."""
    return _remembered(canonical) if len(canonical) <= CACHED_LENGTH else _key(canonical)


def _key(canonical: str) -> str:
    stripped = _type(json.loads(canonical))
    # as text, because 1, 1.0 and true are equal in Python but different defaults in Avro
    return hashlib.sha256(json.dumps(stripped, sort_keys=True).encode()).hexdigest()


_remembered = lru_cache(maxsize=CACHED)(_key)


def _type(value: Any) -> Any:
    if isinstance(value, list):
        return [_type(branch) for branch in value]
    if not isinstance(value, dict):
        return value
    properties = {name: item for name, item in value.items() if name not in IGNORED}
    for name in ("type", "items", "values"):
        if isinstance(properties.get(name), list | dict):
            properties[name] = _type(properties[name])
    if isinstance(properties.get("fields"), list):
        properties["fields"] = [_type(field) for field in properties["fields"]]
    return properties


ACCEPTABLE = frozenset({"*/*", "application/*", "application/json"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,12}", re.ASCII)
_INTEGERS = range(-(2**31), 2**31)


@dataclass(frozen=True)
class Registration:
    """The body of `POST /`; `schema_type` is our name of the format, such as AVRO."""

    subject: str
    schema_type: str
    definition: str


def formats() -> dict[str, str]:
    """Return Spring's name for a format → our name; the released server knows only `avro`."""
    return {name.lower(): name for name in sorted(FORMATS)}


def registration(request: Request) -> Registration:
    """Return the registration in the body; other members, such as `id` and `version`, are ignored.

    Raises Refusal, InvalidInput, SchemaTooLarge.
    """
    with room_for(length_of({"request": request})):
        body = _object(request.body)
    if isinstance(text := body.get("definition"), str):
        refuse_too_large(text)  # before each character is checked
    word = _text(body, "format")
    formats_by_name = formats()
    if word not in formats_by_name:
        raise format_refused(list(formats_by_name))
    subject, definition = _text(body, "subject"), _text(body, "definition")
    if definition is None:
        raise InvalidInput("/definition is missing; it must be the schema's text.")
    if subject is None:
        raise InvalidInput("/subject is missing; it must be a name.")
    return Registration(subject=subject, schema_type=formats_by_name[word], definition=definition)


def _object(data: bytes) -> dict[str, Any]:
    if not data.strip():
        raise Refusal(400, "Required request body is missing")
    refuse_many_values(data)
    try:
        # numbers stay text, because a string may be given as a number
        value = json.loads(data, parse_int=str, parse_float=str, parse_constant=_no_json)
    except UnicodeDecodeError as error:
        raise Refusal(400, f"JSON parse error: the body is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refusal(400, f"JSON parse error: {error.msg} at {where}") from error
    except RecursionError as error:
        raise Refusal(400, "JSON parse error: the body is nested too deeply") from error
    if value is None:
        raise Refusal(400, "Required request body is missing")
    if not isinstance(value, dict):
        raise Refusal(400, "JSON parse error: the body takes an object with subject, format and definition")
    return value


def _no_json(word: str) -> NoReturn:
    raise Refusal(400, f"JSON parse error: {word} is not JSON")


def _text(body: dict[str, Any], name: str) -> str | None:
    """Return a member as text; numbers and booleans are converted. Raises Refusal."""
    value = body.get(name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is not None and not isinstance(value, str):
        raise Refusal(400, f"JSON parse error: /{name} takes a string")
    if value is not None and SURROGATE.search(value):
        raise Refusal(400, f"JSON parse error: /{name} has half of a surrogate pair")
    return value


def check_content_type(request: Request) -> None:
    """Raise Refusal unless the type is `application/json`, with or without a charset."""
    content_type = request.META.get("CONTENT_TYPE", "").strip()
    if content_type.partition(";")[0].strip().lower() == "application/json":
        return
    if content_type and "/" not in content_type:
        raise Refusal(415, f"Invalid mime type \"{content_type[:100]}\": does not contain '/'")
    raise Refusal(415, f"Content type '{content_type[:100]}' not supported")


def check_accept(request: Request) -> None:
    """Raise Refusal unless the caller accepts JSON."""
    ranges = [item.partition(";")[0].strip().lower() for item in request.META.get("HTTP_ACCEPT", "").split(",")]
    media_types = {item for item in ranges if item}
    if media_types and not media_types & ACCEPTABLE:
        raise Refusal(406, "Could not find acceptable representation")


def integer(text: str) -> int | None:
    """Return a 32-bit number in a path, None for an empty one. Raises Refusal."""
    if not text.strip():
        return None
    bare = text.strip()
    if not _INTEGER.fullmatch(bare) or int(bare) not in _INTEGERS:
        raise not_a_number(bare)
    return int(bare)


def version_number(text: str) -> int | None:
    """Return the version in the last segment: `v3` in the released server, `3` in its documentation. Raises Refusal."""
    if text.startswith("v"):
        return integer(text[1:])
    if not _INTEGER.fullmatch(text):
        raise no_mapping()
    return integer(text)
