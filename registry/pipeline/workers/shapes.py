"""What a schema says of the values at a path: the names of their kinds, their symbols, and what lies below."""

from __future__ import annotations

from typing import Any


class Shape:
    """Values without a schema: JSON's kinds, and the same again below."""

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
    free = True  # its fields' names come from the data
    unites_numbers = True  # 7.0 is a whole number, as JSON Schema has it since draft 6

    def symbol(self, value: str) -> str:
        """How a counted value is told: by decoders that allow symbols of the schema alone, as it is."""
        return value

    def child(self, name: str) -> Shape:
        """The shape of a field."""
        return self

    def item(self) -> Shape:
        """The shape of a list's items or a map's values."""
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
    """The values of an Avro type; `named` has the definitions by full name. Of several branches, those that fit."""

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
        """The shape of a record's field, from the first branch that has it."""
        for branch in self.branches:
            for field in branch.get("fields", ()) if isinstance(branch, dict) else ():
                if field["name"] == name:
                    return AvroShape(field["type"], self.named)
        return Shape()

    def item(self) -> Shape:
        """The shape of the items or values of the first branch that has such."""
        for branch in self.branches:
            for inner in ("items", "values"):
                if isinstance(branch, dict) and inner in branch:
                    return AvroShape(branch[inner], self.named)
        return Shape()


class ProtobufShape(Shape):
    """The values of a Protobuf message or field; `descriptor` is None for scalars."""

    free = False
    unites_numbers = False

    def __init__(self, kind: str, descriptor: Any = None, *, repeated: bool = False, entries: Any = None) -> None:
        self.kind, self.descriptor, self.repeated, self.entries = kind, descriptor, repeated, entries
        self.labels = dict.fromkeys((bool, int, float, str, bytes, dict), kind)
        if entries is not None:
            self.labels[dict] = "map"
        if repeated:
            self.labels[list] = "repeated"
        self.keyed = entries is not None
        self.counted = kind == "enum" and not repeated

    def child(self, name: str) -> Shape:
        """The shape of a message's field; of a number that the schema doesn't know, `unknown`."""
        field = self.descriptor.fields_by_name.get(name) if self.descriptor is not None else None
        return ProtobufShape("unknown") if field is None else protobuf_field(field)

    def item(self) -> Shape:
        """The shape of a repeated field's items or a map's values."""
        if self.entries is not None:
            return protobuf_field(self.entries)
        return ProtobufShape(self.kind, self.descriptor)


def protobuf_field(field: Any) -> ProtobufShape:
    """The shape of a field by its descriptor."""
    names = [
        "_",
        "double",
        "float",
        "int64",
        "uint64",
        "int32",
        "fixed64",
        "fixed32",
        "bool",
        "string",
        "group",
        "message",
        "bytes",
        "uint32",
        "enum",
    ]
    names += ["sfixed32", "sfixed64", "sint32", "sint64"]
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return ProtobufShape("map", entries=message.fields_by_name["value"])
    return ProtobufShape(names[field.type], message, repeated=field.is_repeated)
