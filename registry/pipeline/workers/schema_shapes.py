"""What a schema declares at a path, how deep Avro bytes nest, and why a body isn't decoded.

AvroExtent measures Avro bytes without recursion and without keeping a value. fastavro decodes recursive types with
recursive C calls, as deep as the bytes say, and a few bytes can declare millions of values. Both kill the process,
which no `except` survives. An error's message is the reason, without any content of the body.
"""

from __future__ import annotations

from typing import Any


class Shape:
    """Values without a schema: JSON's kinds, at every level."""

    labels: dict[type, str] = {
        type(None): "null",
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        dict: "object",
        list: "array",
        bytes: "bytes",
    }
    keyed = False  # a map: its keys are data
    counted = False  # its values are symbols of the schema
    calendar: str | None = None
    free = True  # the names of its fields come from the data
    undeclared = False  # not declared by a schema that declares its parent
    declared = ""  # for a field with another encoding: the declared type
    unites_numbers = True  # 7.0 is an integer, as in JSON Schema since draft 6

    def symbol(self, value: str) -> str:
        """Return the text for a counted value: unchanged, as decoders only allow symbols of the schema."""
        return value

    def child(self, name: str) -> Shape:
        """Return the shape of a field."""
        return self

    def item(self) -> Shape:
        """Return the shape of a list's items or a map's values."""
        return self


_AVRO: dict[str, type] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "enum": str,
    "bytes": bytes,
    "fixed": bytes,
    "record": dict,
    "error": dict,
    "map": dict,
    "array": list,
}


class AvroShape(Shape):
    """The values of an Avro type; `named` has the definitions by full name. A union has those of its branches."""

    free = False
    unites_numbers = False

    def __init__(self, schema: Any, named: dict[str, Any]) -> None:
        self.named = named
        branches = schema if isinstance(schema, list) else [schema]
        self.branches = [named.get(branch, branch) if isinstance(branch, str) else branch for branch in branches]
        self.labels = {}
        for branch in self.branches:
            kind = branch["type"] if isinstance(branch, dict) else branch
            self.labels.setdefault(_AVRO.get(kind, str), kind)
            if isinstance(branch, dict) and branch.get("calendar"):
                self.calendar = branch["calendar"]
        self.keyed = self.labels.get(dict) == "map"
        self.counted = self.labels.get(str) == "enum"

    def child(self, name: str) -> Shape:
        """Return the shape of a record's field, from the first branch that has it."""
        for branch in self.branches:
            for field in branch.get("fields", ()) if isinstance(branch, dict) else ():
                if field["name"] == name:
                    return AvroShape(field["type"], self.named)
        return Shape()

    def item(self) -> Shape:
        """Return the shape of the items or values, from the first branch that has any."""
        for branch in self.branches:
            for inner in ("items", "values"):
                if isinstance(branch, dict) and inner in branch:
                    return AvroShape(branch[inner], self.named)
        return Shape()


UNKNOWN = "unknown"
#: stand for all values that an enum of the schema doesn't list: they may contain data
UNLISTED = frozenset({UNLISTED_NUMBER := "(unknown number)", UNLISTED_TEXT := "(not declared)"})


class Encoding(str):
    """The wire encoding of an undeclared Protobuf field, in place of its value."""

    __slots__ = ()


#: by wire type
ENCODINGS = {
    0: Encoding("varint"),
    1: Encoding("64-bit"),
    2: Encoding("length-delimited"),
    3: Encoding("group"),
    5: Encoding("32-bit"),
}
#: of a field number in a range that the schema reserves for extensions
EXTENSION = Encoding("extension")


class ProtobufShape(Shape):
    """The values of a Protobuf message or field; `descriptor` is None for scalars."""

    free = False
    unites_numbers = False

    def __init__(self, kind: str, descriptor: Any = None, *, repeated: bool = False, entries: Any = None) -> None:
        self.kind, self.descriptor, self.repeated, self.entries = kind, descriptor, repeated, entries
        self.labels = dict.fromkeys((bool, int, float, str, bytes, dict, Encoding), kind)
        if entries is not None:
            self.labels[dict] = "map"
        if repeated:
            self.labels[list] = "repeated"
        self.keyed = entries is not None
        self.undeclared = kind == UNKNOWN
        self.counted = (kind == "enum" and not repeated) or self.undeclared

    def child(self, name: str) -> Shape:
        """Return the shape of a message's field; for a field unknown to the runtime, its encodings are counted."""
        fields = self.descriptor.fields_by_name if self.descriptor is not None else {}
        field = fields.get(name)
        if field is not None:
            return protobuf_field(field)
        shape = ProtobufShape(UNKNOWN)
        declared = fields.get(name.partition("#")[0])
        if declared is not None:  # declared with another encoding
            shape.declared = declared_type(declared)
        return shape

    def item(self) -> Shape:
        """Return the shape of a repeated field's items or a map's values."""
        if self.entries is not None:
            return protobuf_field(self.entries)
        return ProtobufShape(self.kind, self.descriptor)


#: by the type number of a field descriptor
TYPES = [
    "_", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group",
    "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
]  # fmt: skip
_WIRE_TYPES = {"double": 1, "fixed64": 1, "sfixed64": 1, "float": 5, "fixed32": 5, "sfixed32": 5, "group": 3}
_WIRE_TYPES |= {"string": 2, "bytes": 2, "message": 2}  # all others: varint


def protobuf_field(field: Any) -> ProtobufShape:
    """Return the shape of a field from its descriptor."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return ProtobufShape("map", entries=message.fields_by_name["value"])
    return ProtobufShape(TYPES[field.type], message, repeated=field.is_repeated)


def declared_type(field: Any) -> str:
    """Return the declared type: `string (length-delimited)`, `repeated int32 (varint or length-delimited)`."""
    kind = TYPES[field.type]
    own = ENCODINGS[_WIRE_TYPES.get(kind, 0)]
    packed = ENCODINGS[2]
    named = field.message_type or field.enum_type
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return f"map ({own})"
    shown = f"{kind} {named.full_name}" if named is not None else kind
    if not field.is_repeated:
        return f"{shown} ({own})"
    return f"repeated {shown} ({own})" if own in (packed, ENCODINGS[3]) else f"repeated {shown} ({own} or {packed})"


class Undecodable(Exception):
    """A body that isn't decoded; `problem` is one of observations.BodyProblem."""

    problem = "malformed"


class Malformed(Undecodable):
    """A body that its schema can't have written, or that isn't JSON."""


class NotRead(Undecodable):
    """A body that may be valid but isn't read: it would cost too much, or end the process."""

    problem = "not_read"


MOST_DEPTH = 500  # levels; each takes about 1.6 KB of stack in fastavro
MOST_VALUES = 1_000_000  # per body
_FIXED_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_SIZED = ("string", "bytes")
_VARINT_BYTES = 10


class AvroExtent:
    """Checks bodies of one schema, as parsed by fastavro: `named` has the definitions by full name."""

    def __init__(self, schema: Any, named: dict[str, Any]) -> None:
        self._schema, self._named = schema, named
        self._is_recursive = False
        self._values_a_byte = 1.0
        self._sizes: dict[str, tuple[int, int]] = {}
        self._sized(schema, ())

    def check(self, data: bytes) -> None:
        """Raise NotRead if a body exceeds the limits, Malformed if it isn't of the schema.

        Bodies that can't exceed them, given their length and schema, aren't read.
        """
        if self._is_recursive or len(data) * self._values_a_byte > MOST_VALUES:
            self._walk(data)

    def _sized(self, schema: Any, inside: tuple[str, ...]) -> tuple[int, int]:
        """Return the minimum of bytes and maximum of values of a type; lists' items only set `_values_a_byte`."""
        if isinstance(schema, list):
            branches = [self._sized(branch, inside) for branch in schema] or [(0, 0)]
            return 1 + min(least for least, _ in branches), 1 + max(most for _, most in branches)
        if isinstance(schema, str):
            if schema in inside:
                self._is_recursive = True
                return 0, 1
            if schema in self._named:
                if schema not in self._sizes:
                    self._sizes[schema] = self._sized(self._named[schema], inside)
                return self._sizes[schema]
            return _FIXED_SIZES.get(schema, 1), 1
        kind = schema["type"]
        if kind in ("array", "map"):
            least, most = self._sized(schema["items" if kind == "array" else "values"], inside)
            self._values_a_byte = max(self._values_a_byte, (most + (kind == "map")) / max(1, least + (kind == "map")))
            return 1, 1
        if kind in ("record", "error"):
            fields = [self._sized(field["type"], (*inside, schema["name"])) for field in schema["fields"]]
            return sum(least for least, _ in fields), 1 + sum(most for _, most in fields)
        if kind == "fixed":
            return int(schema["size"]), 1
        return (1, 1) if kind == "enum" else self._sized(kind, inside)

    def _walk(self, data: bytes) -> None:
        """Walk the bytes with an explicit stack of the types still to read and their depth."""
        at, values = 0, 0
        # A type to read, or (type, items left in the block) of a list or map that continues.
        stack: list[tuple[Any, int, int]] = [(self._schema, 0, -1)]
        while stack:
            schema, depth, items = stack.pop()
            if items >= 0:
                if items == 0:
                    items, at = _block(data, at)
                    if items == 0:
                        continue
                stack.append((schema, depth, items - 1))
                if schema["type"] == "map":
                    at = _skip_sized(data, at)
                schema, depth = schema.get("items", schema.get("values")), depth + 1
            values += 1
            if values > MOST_VALUES:
                raise NotRead(f"it declares more than {MOST_VALUES:,} values")
            if depth > MOST_DEPTH:
                raise NotRead(f"it is nested deeper than {MOST_DEPTH:,} levels")
            if isinstance(schema, list):
                index, at = _long(data, at)
                if not 0 <= index < len(schema):
                    raise Malformed("the body names a branch that its schema doesn't have")
                stack.append((schema[index], depth, -1))
                continue
            if isinstance(schema, str) and schema in self._named:
                schema = self._named[schema]
            kind = schema["type"] if isinstance(schema, dict) else schema
            if kind in ("record", "error"):
                stack += [(field["type"], depth + 1, -1) for field in reversed(schema["fields"])]
            elif kind in ("array", "map"):
                stack.append((schema, depth, 0))
            elif kind == "fixed":
                at = _skip(data, at, schema["size"])
            elif kind in _FIXED_SIZES:
                at = _skip(data, at, _FIXED_SIZES[kind])
            elif kind in _SIZED:
                at = _skip_sized(data, at)
            elif kind in ("int", "long", "enum"):
                _, at = _long(data, at)
            else:  # {"type": {"type": …}}
                stack.append((kind, depth, -1))


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _VARINT_BYTES, 7):
        if at >= len(data):
            raise Malformed("the body ends before its schema does")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise Malformed("the body has a number of more than 64 bits")


def _block(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of items in the next block; a negative count is followed by the block's size in bytes."""
    count, at = _long(data, at)
    if count < 0:
        _, at = _long(data, at)
    return abs(count), at


def _skip_sized(data: bytes, at: int) -> int:
    size, at = _long(data, at)
    if size < 0:
        raise Malformed("the body has a length below zero")
    return _skip(data, at, size)


def _skip(data: bytes, at: int, size: int) -> int:
    if size > len(data) - at:
        raise Malformed("the body ends before its schema does")
    return at + size
