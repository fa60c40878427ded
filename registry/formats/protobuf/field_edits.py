"""A change of one field in the text: without it, under another name, or with another type."""

from __future__ import annotations

from registry.errors import InvalidSchema
from registry.formats.base import Edit, FieldEdit, OutlineField
from registry.formats.protobuf.model import Field, Message, Schema
from registry.formats.protobuf.schema_outline import outline
from registry.formats.protobuf.text.positions import Editor, NoPlace

_NAME = 1


def edit_field(schema: Schema, path: str, edit: FieldEdit) -> Edit:
    """Return the text with the field at a path changed, and a title. Raises InvalidSchema."""
    row = next((row for row in outline(schema) if row.path == path), None)
    if row is None:
        raise InvalidSchema(f"The schema has no field {path}.")
    message, field = _declared(schema, row)
    if field.source is not None:
        raise InvalidSchema(f"{row.name} is declared in the referenced schema {field.source}: change it there.")
    if field.kind == "group" and edit != "remove":
        raise InvalidSchema(f"{row.name} is a group, whose type and name are one declaration.")
    editor = Editor(schema)
    try:
        title = _edit(editor, message, field, edit)
        return Edit(title, editor.text())
    except NoPlace:
        raise InvalidSchema(f"The declaration of {row.name} can't be edited.") from None


def _declared(schema: Schema, row: OutlineField) -> tuple[Message, Field]:
    """Return the message and the field of a row of the outline. Raises InvalidSchema."""
    name = row.name.strip("[]")
    message = schema.messages.get(row.entity.removesuffix(f".{name}"))
    field = message.numbered(row.number) if message is not None and row.number is not None else None
    if message is None or field is None:
        raise InvalidSchema(f"The declaration of {row.name} can't be found.")
    return message, field


def _edit(editor: Editor, message: Message, field: Field, edit: FieldEdit) -> str:
    """Change the declaration, and return a title. Raises NoPlace."""
    if edit == "remove":
        is_alone = field.oneof is not None and len(message.oneofs[field.oneof].numbers) == 1
        editor.delete(message.oneofs[field.oneof].pointer if is_alone and field.oneof else field.pointer)
        return f'remove "{field.name}"'
    if edit == "rename":
        editor.replace(*editor.place(field.pointer, _NAME), f"{field.name}_renamed")
        return f'rename "{field.name}" to "{field.name}_renamed", with the same number'
    kind = "string" if field.kind == "double" and not field.is_map else "double"
    label = "repeated" if field.is_repeated else field.label
    begin, end = editor.place(field.pointer)[0], editor.place(field.pointer, _NAME)[0]
    editor.replace(begin, end, f"{label} {kind} ".lstrip())
    return f'make "{field.name}" a {kind}'
