"""Declarations of one schema as text for another: the same names, in the other's package and syntax."""

from __future__ import annotations

import re

from google.protobuf.descriptor_pb2 import DescriptorProto

from registry.formats.protobuf.model import Field, Message, Schema
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.printer import print_message


def message_text(schema: Schema, message: Message, target: Schema) -> str:
    """A message's whole declaration, to be written into another schema."""
    found = next(proto for name, proto in _described(schema) if name == message.full_name)
    lines = print_message(schema.proto, found, message.full_name, Options(schema.pool))
    return _moved("\n".join(lines), schema, target)


def _described(schema: Schema) -> list[tuple[str, DescriptorProto]]:
    package = schema.main.package
    todo = [(f"{package}.{proto.name}" if package else proto.name, proto) for proto in schema.proto.message_type]
    found = []
    while todo:
        name, proto = todo.pop()
        found.append((name, proto))
        todo.extend((f"{name}.{nested.name}", nested) for nested in proto.nested_type)
    return found


def field_text(schema: Schema, field: Field, target: Schema, *, is_member: bool = False) -> str:
    """A field's declaration, to be written into another schema."""
    return f"{label_and_type(field, schema, target, is_member=is_member)} {field.name} = {field.number};"


def label_and_type(field: Field, schema: Schema, target: Schema, *, is_member: bool) -> str:
    """What stands before a field's name, in the syntax and the package of another schema."""
    text = _moved(_type(field), schema, target)
    return text if is_member or field.is_map else f"{_label(field, target)}{text}"


def label_outside(theirs: Field, schema: Schema) -> str:
    """The label of a field that leaves a oneof of the schema, to be as it is on the other side; with a blank behind."""
    if schema.main.syntax == "proto2":
        return "required " if theirs.is_required else "optional "
    return "optional " if schema.main.syntax == "proto3" and theirs.label in ("optional", "required") else ""


def _type(field: Field) -> str:
    if field.is_map and field.message is not None:
        return f"map<{field.message.by_number[1].kind}, {_type(field.message.by_number[2])}>"
    return f".{field.type_name}" if field.type_name else field.kind


def _label(field: Field, target: Schema) -> str:
    if field.is_repeated:
        return "repeated "
    if target.main.syntax == "proto2":
        return "required " if field.is_required else "optional "
    is_optional = target.main.syntax == "proto3" and field.has_presence and field.message is None
    return "optional " if is_optional and field.oneof is None else ""


def _moved(text: str, schema: Schema, target: Schema) -> str:
    """Full names of one package as those of another."""
    before, after = schema.main.package, target.main.package
    if before == after:
        return text
    if before:
        return re.sub(rf"(?<![\w.])\.{re.escape(before)}\.", f".{after}." if after else ".", text)
    own = "|".join(re.escape(name) for name in (*schema.main.messages, *schema.main.enums))
    return re.sub(rf"(?<![\w.])\.({own})\b", rf".{after}.\1", text) if own else text
