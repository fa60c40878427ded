"""The fields of a schema as a flat list, the tags of messages and fields, and advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from registry.errors import InvalidSchema
from registry.formats.base import Edit, FieldEdit, OutlineField
from registry.formats.lint import LintViolation, in_style, is_lower_snake, is_pascal, looks_like_money, looks_personal
from registry.formats.protobuf.compiler import KNOWN_NAMES
from registry.formats.protobuf.findings import default_text
from registry.formats.protobuf.model import Enum, Field, Message, Schema, full_label
from registry.formats.protobuf.options import META, Options, meta_files, pool_of
from registry.formats.protobuf.text.positions import Editor, NoPlace
from registry.formats.protobuf.text.printer import print_file
from registry.formats.tags import FIELD, RECORD, Entity, EntityTags, TagChange, joined

_PACKAGE: Final = "confluent"
_OPTION: Final = {RECORD: "confluent.message_meta", FIELD: "confluent.field_meta"}
#: (full name of a message, name of a field or empty for the message itself) → tags
TagsByName = Mapping[tuple[str, str], tuple[str, ...]]
#: a DescriptorProto or a FieldDescriptorProto
_Part = Any


def tags(schema: Schema) -> tuple[EntityTags, ...]:
    """Return the tagged messages and fields, a message before its fields, fields of oneofs first."""
    options = Options(schema.pool)
    entities = []
    for path, message in _messages(schema.proto):
        if own := _tags_of(options, message, _OPTION[RECORD]):
            entities.append(EntityTags("sr_record", path, own))
        entities += [
            EntityTags("sr_field", f"{path}.{field.name}", own)
            for field in sorted(message.field, key=lambda field: not _oneof_of(message, field))
            if (own := _tags_of(options, field, _OPTION[FIELD]))
        ]
    return tuple(entities)


def tags_by_name(schema: Schema) -> TagsByName:
    """Return the tags of all messages and fields by full name, including imported files."""
    if all(proto.package != _PACKAGE for proto in schema.protos):
        return {}  # nothing declares the options; most schemas don't import them
    options = Options(schema.pool)
    tags: dict[tuple[str, str], tuple[str, ...]] = {}
    for proto in schema.protos:
        before = f"{proto.package}." if proto.package else ""
        for path, message in _messages(proto):
            for name, part, option in (("", message, RECORD), *((field.name, field, FIELD) for field in message.field)):
                if own := _tags_of(options, part, _OPTION[option]):
                    tags[before + path, name] = own
    return tags


def with_tags(schema: Schema, changes: Iterable[TagChange]) -> str:
    """Return the schema's canonical text with changed tags, and an import of the file that declares tags.

    Raises InvalidSchema for an entity that doesn't exist, or if the file with the name META declares no tags.
    """
    main = FileDescriptorProto()
    main.CopyFrom(schema.proto)
    main.ClearField("source_code_info")
    others = {proto.name: proto for proto in schema.protos[:-1]}
    if META not in main.dependency:
        main.dependency.append(META)
        others = {proto.name: proto for proto in meta_files()} | others
    pool = pool_of((*_in_order(others), main))
    options = Options(pool)
    for change in changes:
        part = _find(main, change.entity)
        name = _OPTION[change.entity[0]]
        try:
            option = pool.FindExtensionByName(name)
        except KeyError:
            raise InvalidSchema(f'"{META}" is a separate file here, which declares no option {name}') from None
        _set_tags(options, part, option, change.apply(_tags_of(options, part, name)))
    return print_file(main, options)


def has_top_level_field(schema: Schema, name: str) -> bool:
    """Return whether a top-level message has a field with that name outside oneofs."""
    return any(
        field.name == name and not _oneof_of(message, field)
        for message in schema.proto.message_type
        for field in message.field
    )


def _in_order(protos: dict[str, FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Return the files, each after its imports; without recursion."""
    ordered: dict[str, FileDescriptorProto] = {}
    stack = [(name, False) for name in reversed(protos)]
    opened: set[str] = set()
    while stack:
        name, is_expanded = stack.pop()
        if is_expanded:
            ordered.setdefault(name, protos[name])
        elif name in protos and name not in opened:
            opened.add(name)
            stack.append((name, True))
            stack.extend((inner, False) for inner in reversed(protos[name].dependency))
    return list(ordered.values())


def _messages(proto: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """Yield (path, message) for the file's messages, outer ones first, without map entries."""
    stack = [(message.name, message) for message in reversed(proto.message_type)]
    while stack:
        path, message = stack.pop()
        yield path, message
        stack.extend(
            (f"{path}.{inner.name}", inner) for inner in reversed(message.nested_type) if not inner.options.map_entry
        )


def _find(proto: FileDescriptorProto, entity: Entity) -> _Part:
    kind, path = entity
    names = path.split(".")
    field = names.pop() if kind == FIELD else ""
    message, oneof = _find_message(proto, names, may_end_in_oneof=kind == FIELD)
    if kind == RECORD:
        return message
    for candidate in message.field:
        if candidate.name == field and oneof in ("", _oneof_of(message, candidate)):
            return candidate
    raise InvalidSchema(f"No matching Field with name '{field[:200]}' found in the schema")


def _find_message(
    proto: FileDescriptorProto, names: list[str], *, may_end_in_oneof: bool
) -> tuple[DescriptorProto, str]:
    """Return the message with those names, and the name of the oneof if the names end in one."""
    inside: Any = proto.message_type
    message: DescriptorProto | None = None
    for position, name in enumerate(names):
        match = next((item for item in inside if item.name == name), None)
        if match is None:
            if message is not None and may_end_in_oneof and position == len(names) - 1:
                return message, name
            raise InvalidSchema(f"No matching Message with name '{name[:200]}' found in the schema")
        message, inside = match, match.nested_type
    if message is None:
        raise InvalidSchema("No matching Message with name '' found in the schema")
    return message, ""


def _oneof_of(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return str(message.oneof_decl[field.oneof_index].name)


def _tags_of(options: Options, part: _Part, name: str) -> tuple[str, ...]:
    if not part.HasField("options"):
        return ()
    for field, value in options.read(part.options).ListFields():
        if field.is_extension and field.full_name == name and _declares_tags(field):
            return tuple(dict.fromkeys(value.tags))
    return ()


def _declares_tags(option: FieldDescriptor) -> bool:
    inner = option.message_type.fields_by_name.get("tags") if option.message_type is not None else None
    return inner is not None and inner.is_repeated and inner.type == FieldDescriptor.TYPE_STRING


def _set_tags(options: Options, part: _Part, option: FieldDescriptor, tags: tuple[str, ...]) -> None:
    if not _declares_tags(option) or option.is_repeated:
        raise InvalidSchema(f"the option {option.full_name} of this schema has no tags")
    read: Any = options.read(part.options)
    meta = read.Extensions[option]
    del meta.tags[:]
    meta.tags.extend(tags)
    if not meta.ByteSize():
        read.ClearExtension(option)
    data = read.SerializePartialToString()
    if data:
        part.options.ParseFromString(data)
    else:
        part.ClearField("options")


MAX_ROWS: Final = 2_000
MAX_DEPTH: Final = 12


def outline(schema: Schema) -> tuple[OutlineField, ...]:
    """Return the fields of all messages that aren't part of another one, at most MAX_ROWS rows, MAX_DEPTH deep.

    A message inside itself isn't expanded again; well-known types aren't expanded.
    """
    rows, tags = [], tags_by_name(schema)
    for message in _roots(schema):
        for row in _inside(message, message.local_name, 0, frozenset(), tags, ()):
            rows.append(row)
            if len(rows) == MAX_ROWS:
                return tuple(rows)
    return tuple(rows)


def _roots(schema: Schema) -> list[Message]:
    """Return top-level messages, without those that are only parts of others unless none would remain."""
    tops = list(schema.main.messages.values())
    part_ids: set[int] = set()
    for message in schema.messages.values():
        if message.source is None:
            part_ids |= {id(field.message) for field in message.fields if field.message is not message}
            part_ids |= {id(inner.message) for field in message.fields if field.is_map for inner in _entry(field)}
    return [message for message in tops if id(message) not in part_ids] or tops


def _entry(field: Field) -> tuple[Field, ...]:
    return field.message.fields if field.message is not None else ()


def _inside(
    message: Message, path: str, depth: int, open_types: frozenset[str], tag_index: TagsByName, outer: tuple[str, ...]
) -> Iterator[OutlineField]:
    if depth >= MAX_DEPTH or message.full_name in open_types:
        return
    around = joined(outer, tag_index.get((message.full_name, ""), ()))
    for field in (*message.fields, *message.extended.values()):
        here = f"{path}.{field.shown_name}"
        tags = joined(around, tag_index.get((message.full_name, field.name), ()))
        yield OutlineField(
            name=field.shown_name,
            path=here,
            type=_shown(field),
            depth=depth,
            required=field.is_required,
            default=None if field.declared_default is None else default_text(field),
            doc=field.doc or (field.message.doc if field.message is not None else ""),
            aliases=(),
            tags=tags,
            entity=f"{message.full_name}.{field.name}",
            number=field.number,
        )
        nested, suffix = field.message, "[]" if field.is_repeated else ""
        if field.is_map and nested is not None:
            nested, suffix = nested.by_number[2].message, "{}"
        if nested is not None and nested.source not in KNOWN_NAMES:
            yield from _inside(nested, here + suffix, depth + 1, open_types | {message.full_name}, tag_index, tags)


def _shown(field: Field) -> str:
    """Return the type with its label and number, the oneof, and the values of an enum."""
    text = f"{full_label(field)} = {field.number}"
    if field.oneof is not None:
        text += f", in oneof {field.oneof}"
    if field.enum is not None:
        names = list(field.enum.numbers)
        text += f" ({', '.join(names[:8])}{', …' if len(names) > 8 else ''})"
    return text


def lint_violations(schema: Schema) -> Iterator[LintViolation]:
    """Yield the lint violations in the order of the declarations."""
    if not schema.main.package:
        yield LintViolation("NO_PACKAGE", "", None)
    tags = tags_by_name(schema)
    for message in schema.main.messages.values():
        yield from _message(message, tags)
    for enum in schema.main.enums.values():
        yield from _enum(enum)


def _message(message: Message, tags: TagsByName) -> Iterator[LintViolation]:
    if message.is_map_entry:
        return
    yield from _type_name(message)
    yield from _numbers(message)
    is_tagged = bool(tags.get((message.full_name, "")))
    for field in message.fields:
        yield from _field(message, field, is_tagged or bool(tags.get((message.full_name, field.name))))
    for enum in message.enums.values():
        yield from _enum(enum)
    for inner in message.messages.values():
        yield from _message(inner, tags)


def _type_name(declaration: Message | Enum) -> Iterator[LintViolation]:
    if not is_pascal(declaration.name):
        values = {"name": declaration.name, "better": in_style(declaration.name, "PascalCase")}
        yield LintViolation("TYPE_NAME_STYLE", declaration.local_name, declaration.pointer, values)


def _numbers(message: Message) -> Iterator[LintViolation]:
    """Yield the numbers below the highest that are neither used nor reserved, as ranges of any width."""
    taken = sorted(
        [(number, number) for number in message.by_number]
        + [*message.reserved, *message.extension_ranges, (19_000, 19_999)]
    )
    highest, free, gaps = max(message.by_number, default=0), 1, []
    for first, last in taken:
        if first > free and free <= highest:
            gaps.append((free, min(first - 1, highest)))
        free = max(free, last + 1)
    if gaps:
        ranges = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in gaps[:10])
        values = {"numbers": ranges + (", …" if len(gaps) > 10 else "")}
        yield LintViolation("NUMBERS_NOT_RESERVED", message.local_name, message.pointer, values)


def _field(message: Message, field: Field, is_tagged: bool) -> Iterator[LintViolation]:
    def place(rule: str, **values: str) -> LintViolation:
        return LintViolation(rule, f"{message.local_name}.{field.name}", field.pointer, {"name": field.name, **values})

    if not is_lower_snake(field.name):
        yield place("FIELD_NAME_STYLE", better=in_style(field.name, "snake_case"))
    if field.is_required:
        yield place("REQUIRED_FIELD")
    if not field.doc:
        yield place("FIELD_WITHOUT_DOC")
    if looks_like_money(field.name) and field.kind in ("float", "double"):
        yield place("MONEY_AS_FLOAT")
    if looks_personal(field.name) and not is_tagged:
        yield place("PERSONAL_WITHOUT_TAG")


def _enum(enum: Enum) -> Iterator[LintViolation]:
    yield from _type_name(enum)
    zero = enum.by_number.get(0)
    # closed enums distinguish unknown values from 0
    if zero is not None and not enum.is_closed and not zero.upper().endswith(("UNSPECIFIED", "UNKNOWN")):
        values = {"name": zero, "prefix": in_style(enum.name, "UPPER_CASE")}
        yield LintViolation("ZERO_NOT_UNSPECIFIED", f"{enum.local_name}.{zero}", f"{enum.pointer}/values/0", values)


#: the path of a field's name within its descriptor
_NAME: Final = 1


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
