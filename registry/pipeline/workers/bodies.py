"""Decodes bodies with their schema, including JSON Schema; errors contain nothing of a body's content."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
from typing import Any

from registry.pipeline.workers.schema_shapes import (
    ENCODINGS,
    EXTENSION,
    UNLISTED_NUMBER,
    UNLISTED_TEXT,
    AvroExtent,
    AvroShape,
    Malformed,
    NotRead,
    ProtobufShape,
    Shape,
)

NOT_UTF8 = "a string in the body isn't UTF-8, which some clients replace and others refuse"
MOST_SHAPES = 50
LARGEST_SHAPE = 262_144
MOST_INDEXES = 32
MOST_VALUES = 1_000_000  # per Protobuf message
LONGEST_NUMBER = 1_000  # digits
HUGE: int = 10**LONGEST_NUMBER  # stands for all integers with more digits
_EMBEDDED = re.compile(r'\{\s*"schema"\s*:\s*')
_PAYLOAD = re.compile(r'\s*,\s*"payload"\s*:\s*')
_CONNECT_KEYS = ("type", "optional", "name", "version", "doc", "default", "field", "fields", "items", "keys", "values")
_CONNECT_TYPES = [
    "int8", "int16", "int32", "int64", "float32", "float64", "float", "double", "boolean", "string", "bytes",
    "array", "map", "struct",
]  # fmt: skip


class Decoded:
    """A decoded body: its value, the message indexes of Protobuf, the schema digest of Connect's JSON.

    `violation` is why its schema forbids the value, or empty; `unchecked` is why that is unknown, or empty. `message` is
    the Protobuf message, None for other formats.
    """

    __slots__ = ("digest", "indexes", "message", "shape", "unchecked", "value", "violation")

    def __init__(
        self,
        value: Any,
        shape: Shape,
        *,
        indexes: str = "",
        digest: str = "",
        violation: str = "",
        unchecked: str = "",
        message: Any = None,
    ) -> None:
        self.value, self.shape, self.indexes, self.digest = value, shape, indexes, digest
        self.violation, self.unchecked, self.message = violation, unchecked, message


class AvroBodies:
    """Bodies of one Avro schema; raises ValueError if the text isn't a schema."""

    def __init__(self, text: str) -> None:
        import fastavro

        named: dict[str, Any] = {}
        try:
            # A record around it adds no byte, and makes any schema a field's type.
            wrapped = {
                "type": "record",
                "name": "schemadesk_body",
                "fields": [{"name": "body", "type": json.loads(text)}],
            }
            self._schema = fastavro.parse_schema(wrapped, named_schemas=named)
        except Exception as error:  # noqa: BLE001  whatever fastavro raises for a schema that it rejects
            raise ValueError(f"fastavro rejects the schema ({type(error).__name__})") from None
        self._read = fastavro.schemaless_reader
        body: Any = self._schema["fields"][0]["type"]  # type: ignore[index, call-overload]
        self._extent = AvroExtent(body, named)
        self.shape = AvroShape(body, named)

    def decode(self, data: bytes) -> Decoded:
        """Decode a body; all of its bytes must be used."""
        self._extent.check(data)
        buffer = io.BytesIO(data)
        try:
            value = self._read(buffer, self._schema, None)["body"]  # type: ignore[index, call-overload]
        except EOFError:
            raise Malformed("the body ends before its schema does") from None
        except UnicodeDecodeError:
            raise Malformed(NOT_UTF8) from None
        except (IndexError, KeyError):
            raise Malformed("the body names a branch or symbol that its schema doesn't have") from None
        except MemoryError:
            raise NotRead("it declares more data than fits in memory") from None
        except Exception as error:  # noqa: BLE001  fastavro has many errors, and a message may contain content
            raise Malformed(f"the body doesn't follow its schema ({type(error).__name__})") from None
        if buffer.tell() != len(data):
            raise Malformed(f"{len(data) - buffer.tell():,} bytes are left over after decoding")
        return Decoded(value, self.shape)


class JsonBodies:
    """JSON, with or without a Kafka Connect schema next to its payload."""

    def __init__(self) -> None:
        self.shape = Shape()
        self.texts: dict[str, str] = {}
        self._prefixes: dict[bytes, str] = {}

    def decode(self, data: bytes) -> Decoded:
        """Return the value, or the payload if a Connect schema is next to it."""
        for prefix, digest in self._prefixes.items():
            if data.startswith(prefix) and data.endswith(b"}"):
                return Decoded(_plain_json(data[len(prefix) : -1], data), self.shape, digest=digest)
        value = _plain_json(data, data)
        if not (isinstance(value, dict) and value.keys() == {"schema", "payload"} and _is_connect(value["schema"])):
            return Decoded(value, self.shape)
        text = json.dumps(_connect(value["schema"]), separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        if len(self.texts) < MOST_SHAPES and len(text) <= LARGEST_SHAPE:
            self.texts[digest] = text
            self._learn(data, digest)
        return Decoded(value["payload"], self.shape, digest=digest)

    def _learn(self, data: bytes, digest: str) -> None:
        """Remember the bytes up to the payload: later messages with the same start have the same schema."""
        text = data.decode("utf-8")
        begin = _EMBEDDED.match(text)
        if begin is not None and text.endswith("}"):
            _, end = json.JSONDecoder().raw_decode(text, begin.end())
            after = _PAYLOAD.match(text, end)
            if after is not None:
                self._prefixes[text[: after.end()].encode("utf-8")] = digest


_OBJECT = re.compile(rb'\s*\{\s*("|\}|$)')
BEGINS_AS_OBJECT = ", though it begins like a JSON object"


def _plain_json(data: bytes, whole: bytes) -> Any:
    """Parse JSON text without a schema; raises Undecodable, and says whether `whole` begins like an object."""
    try:
        return loaded_json(data)
    except Malformed as reason:
        raise Malformed(f"{reason}{BEGINS_AS_OBJECT if _OBJECT.match(whole) else ''}") from None


def loaded_json(data: bytes) -> Any:
    """Parse JSON text; raises Undecodable."""
    try:
        text = data.decode("utf-8")
        try:
            return json.loads(text, parse_constant=_refuse_constant, parse_float=_fraction)
        except json.JSONDecodeError:
            raise
        except ValueError:  # an integer of more digits than Python reads, or a constant, which is refused again
            return json.loads(text, parse_constant=_refuse_constant, parse_float=_fraction, parse_int=_whole)
    except UnicodeDecodeError:
        raise Malformed("the bytes aren't UTF-8") from None
    except RecursionError:
        raise NotRead("it is nested deeper than about 900 levels") from None
    except ValueError:
        raise Malformed("the text isn't JSON") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _whole(text: str) -> int:
    """Parse an integer; one with more than LONGEST_NUMBER digits becomes HUGE or -HUGE."""
    if len(text) <= LONGEST_NUMBER:
        return int(text)
    return -HUGE if text.startswith("-") else HUGE


def _fraction(text: str) -> float | int:
    """Parse a number with a point or an exponent; one beyond a double's range becomes HUGE or -HUGE."""
    number = float(text)
    if math.isfinite(number):
        return number
    return -HUGE if number < 0 else HUGE


def _is_connect(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") in _CONNECT_TYPES


def _connect(schema: Any, depth: int = 0) -> Any:
    """Return a Connect schema with only the keys that Connect writes."""
    if not isinstance(schema, dict) or depth > 30:
        return None
    connect: dict[str, Any] = {}
    for name in _CONNECT_KEYS:
        if name in schema:
            inner = schema[name]
            if name == "fields":
                connect[name] = [_connect(field, depth + 1) for field in inner] if isinstance(inner, list) else []
            else:
                connect[name] = _connect(inner, depth + 1) if name in ("items", "keys", "values") else inner
    parameters = schema.get("parameters")
    if isinstance(parameters, dict):
        connect["parameters"] = {str(name): str(value) for name, value in parameters.items()}
    return connect


class ProtobufBodies:
    """Bodies of one Protobuf schema, given as a base64 FileDescriptorSet whose last file is the schema's."""

    def __init__(self, text: str) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(text, validate=True))
            pool = descriptor_pool.DescriptorPool()
            for file in files.file:
                pool.Add(file)
            self._file = pool.FindFileByName(files.file[-1].name)
        except Exception as error:  # noqa: BLE001  the runtime has many errors for a broken descriptor
            raise ValueError(f"protobuf rejects the descriptors ({type(error).__name__})") from None
        self._roots = [self._file.message_types_by_name[message.name] for message in files.file[-1].message_type]
        self._class = message_factory.GetMessageClass
        self.shape = ProtobufShape("message", self._roots[0] if self._roots else None)

    def decode(self, data: bytes) -> Decoded:
        """Decode a body after its message indexes; unset fields are left out."""
        indexes, start = _indexes(data)
        shown = ".".join(map(str, indexes))
        descriptor = self._find(indexes)
        message = self._class(descriptor)()
        try:
            message.ParseFromString(data[start:])
            value = _Values().fields(message, 0)
        except (Malformed, NotRead):
            raise
        except Exception as error:  # noqa: BLE001  DecodeError, and errors for strings that aren't UTF-8
            raise Malformed(_protobuf_reason(error, descriptor.full_name)) from None
        return Decoded(value, ProtobufShape("message", descriptor), indexes=shown, message=message)

    def _find(self, indexes: list[int]) -> Any:
        among, descriptor = self._roots, None
        for index in indexes:
            if not 0 <= index < len(among):
                raise Malformed("the message's indexes name a type that the schema doesn't have")
            descriptor = among[index]
            among = list(descriptor.nested_types)
        return descriptor


def _protobuf_reason(error: Exception, name: str) -> str:
    if isinstance(error, UnicodeDecodeError) or "UTF-8" in str(error):
        return NOT_UTF8
    if "MaxDepth" in str(error):
        return "it is nested deeper than 100 levels, which Protobuf's decoders reject"
    return f"the body can't be read as {name}"


def _indexes(data: bytes) -> tuple[list[int], int]:
    """Return the message indexes before a Protobuf body and where they end: a zigzag count and indexes; 0 is [0]."""
    indexes: list[int] = []
    count, at = _number(data, 0)
    if count == 0:
        return [0], at
    if not 0 < count <= MOST_INDEXES:
        raise Malformed("the message's indexes are missing or too many")
    for _ in range(count):
        index, at = _number(data, at)
        indexes.append(index)
    return indexes, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise Malformed("the message's indexes are cut off")


VARINT, LENGTH_DELIMITED = 0, 2  # wire types


def _is_map_of_enums(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and kind.GetOptions().map_entry and kind.fields_by_name["value"].enum_type is not None


class _Values:
    """The values of one message, at most MOST_VALUES: two bytes declare an empty message, which takes hundreds here."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def fields(self, message: Any, depth: int) -> dict[str, Any]:
        """Return the set fields, and those that the runtime rejected, as `_add_unknown` names them."""
        from google.protobuf.unknown_fields import UnknownFieldSet

        values: dict[str, Any] = {}
        for field, value in message.ListFields():
            kind = field.message_type
            if kind is not None and kind.GetOptions().map_entry:
                of = kind.fields_by_name["value"]
                values[field.name] = {str(key): self._one(of, value[key], depth) for key in value}
            elif field.is_repeated:
                values[field.name] = [self._one(field, item, depth) for item in value]
            else:
                values[field.name] = self._one(field, value, depth)
        for unknown in UnknownFieldSet(message):
            self._add_unknown(values, message.DESCRIPTOR, unknown)
        return values

    def _add_unknown(self, values: dict[str, Any], descriptor: Any, unknown: Any) -> None:
        """Add `#7` for a number that the schema doesn't declare, or `name#7` for one declared with another encoding.

        A number that a closed enum doesn't list is also unknown to the runtime; it becomes a value of its field.
        """
        self._spend()
        number, encoding = unknown.field_number, ENCODINGS[unknown.wire_type]
        field = descriptor.fields_by_number.get(number)
        if field is None:
            is_extension = any(start <= number < end for start, end in descriptor.extension_ranges)
            values[f"#{number}"] = EXTENSION if is_extension else encoding
        elif _is_map_of_enums(field) and unknown.wire_type == LENGTH_DELIMITED:
            values.setdefault(field.name, {})[""] = UNLISTED_NUMBER  # its key isn't read
        elif field.enum_type is None or unknown.wire_type != VARINT:
            values[f"{field.name}#{number}"] = encoding
        elif field.is_repeated:
            values.setdefault(field.name, []).append(UNLISTED_NUMBER)
        else:
            values[field.name] = UNLISTED_NUMBER

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotRead(f"it declares more than {MOST_VALUES:,} values")

    def _one(self, field: Any, value: Any, depth: int) -> Any:
        self._spend()
        if field.message_type is not None:
            return self.fields(value, depth + 1) if depth < 40 else {}
        if field.enum_type is not None:
            symbol = field.enum_type.values_by_number.get(value)
            return symbol.name if symbol is not None else UNLISTED_NUMBER
        if (
            isinstance(value, bytes) and field.type == field.TYPE_STRING
        ):  # proto2 strings, which the runtime doesn't check
            raise Malformed(NOT_UTF8)
        return value


BACKTRACK_LIMIT = 20_000
PATTERN_BYTES = 2 * 1_048_576
LONGEST_PLACE = 200
MOST_PLACES = 3  # named per value
MOST_ERRORS = 1_000  # read per value
NOT_VALIDATED = "its value couldn't be validated: it is nested too deep, isn't Unicode, or takes a pattern too long"
MOST_REFERENCES = 50  # followed in a row: a cycle ends there


class JsonSchemaBodies:
    """Bodies of one JSON Schema.

    Raises ValueError if the text isn't a JSON Schema, ImportError if the workers lack jsonschema_rs.
    """

    def __init__(self, text: str) -> None:
        import jsonschema_rs

        schema = json.loads(text)
        names_draft = isinstance(schema, dict) and "$schema" in schema
        make: Any = jsonschema_rs.validator_for if names_draft else jsonschema_rs.Draft7Validator
        patterns = jsonschema_rs.FancyRegexOptions(
            backtrack_limit=BACKTRACK_LIMIT, size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES
        )
        try:
            self._validator = make(schema, offline=True, validate_formats=False, pattern_options=patterns)
        except ValueError:
            raise ValueError("jsonschema_rs rejects the schema") from None
        kinds: Any = jsonschema_rs.ValidationErrorKind
        self._gave_up = (kinds.BacktrackLimitExceeded, kinds.RegexEngineFailure)
        self.shape = JsonSchemaShape(schema, schema)

    def decode(self, data: bytes) -> Decoded:
        """Decode a body; a value that the schema forbids has a `violation` and is counted like any other."""
        value = loaded_json(data)
        try:
            return Decoded(value, self.shape, violation=self._violation(value))
        except ValueError:  # see NOT_VALIDATED, or a pattern gave up: validity is unknown
            return Decoded(value, self.shape, unchecked=NOT_VALIDATED)

    def _violation(self, value: Any) -> str:
        """Return which keywords of the schema the value violates, in the schema's words, without the value.

        It names all of them or says that there are more: fixing one need not fix the value.
        """
        if self._validator.is_valid(value):
            return ""
        paths: dict[str, None] = {}
        others = ""
        for number, error in enumerate(self._validator.iter_errors(value)):
            if number >= MOST_ERRORS:
                others = "perhaps elsewhere"
                break
            if isinstance(error.kind, self._gave_up):
                others = "perhaps elsewhere"
            else:
                paths[_keyword_path(error.schema_path)] = None
            if len(paths) > MOST_PLACES:
                others = "elsewhere"
                break
        if not paths:
            raise ValueError
        phrases = [f"at {path}" for path in list(paths)[:MOST_PLACES]]
        return f"the value isn't valid by its schema, {' and '.join([*phrases, *([others] if others else [])])}"


def _keyword_path(schema_path: Any) -> str:
    """Return the path of a keyword in its schema, truncated with `…` if it is too long."""
    path = "/".join(str(part) for part in schema_path)
    return path if len(path) <= LONGEST_PLACE else f"{path[: LONGEST_PLACE - 1]}…"


class JsonSchemaShape(Shape):
    """The values that a schema within `root` describes. Anything it doesn't declare is JSON of any kind."""

    def __init__(self, schema: Any, root: Any) -> None:
        self._root = root
        self._schema = self._followed(schema)
        allowed = self._schema.get("enum", [self._schema["const"]] if "const" in self._schema else ())
        self.counted = bool(allowed) and all(isinstance(symbol, str) for symbol in allowed)
        self._symbols = frozenset(allowed) if self.counted else frozenset()

    def symbol(self, value: str) -> str:
        """Return the value if the schema lists it; any other is data and isn't shown."""
        return value if value in self._symbols else UNLISTED_TEXT

    def child(self, name: str) -> Shape:
        """Return the shape of a declared property."""
        return self._below(self._schema.get("properties"), name)

    def item(self) -> Shape:
        """Return the shape of a list's items."""
        return JsonSchemaShape(self._schema.get("items"), self._root)

    def _below(self, properties: Any, name: str) -> Shape:
        return (
            JsonSchemaShape(properties[name], self._root)
            if isinstance(properties, dict) and name in properties
            else UndeclaredShape()
        )

    def _followed(self, schema: Any) -> dict[str, Any]:
        """Resolve a `$ref` within the same text; an optional schema (`oneOf` with null) becomes its other branch."""
        for _ in range(MOST_REFERENCES):
            if not isinstance(schema, dict):
                break
            if isinstance(schema.get("$ref"), str):
                schema = self._pointed(schema["$ref"])
                continue
            others = [
                branch for key in ("oneOf", "anyOf") for branch in _branches(schema.get(key)) if not _is_null(branch)
            ]
            if len(others) != 1:
                return schema
            schema = others[0]
        return {}

    def _pointed(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            return self._root if reference == "#" else None
        schema = self._root
        for part in reference[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, dict) else None
        return schema


class UndeclaredShape(Shape):
    """A property that no schema declares, next to declared ones or alone."""

    undeclared = True


def _branches(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"
