"""A schema's fields as a flat list, the tags of its records and fields, advice on its types, and changes of one field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Final

from registry.errors import InvalidSchema
from registry.formats import lint
from registry.formats.avro.canonical import edited_text, json_text
from registry.formats.avro.defaults import why_invalid
from registry.formats.avro.findings import root_path
from registry.formats.avro.model import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Map,
    Named,
    Primitive,
    Record,
    RecordField,
    Union,
    type_label,
)
from registry.formats.base import Edit, FieldEdit, OutlineField
from registry.formats.tags import (
    FIELD,
    RECORD,
    Entity,
    EntityTags,
    TagChange,
    joined,
    no_such_path,
    tags_in,
    write_tags,
)

MAX_ROWS: Final = 2_000
MAX_DEPTH: Final = 12


def outline(root: AvroType) -> tuple[OutlineField, ...]:
    """Return at most MAX_ROWS rows, MAX_DEPTH deep; a type inside itself isn't expanded again."""
    rows = []
    for row in _outline_type(root, root_path(root), 0, frozenset(), ()):
        rows.append(row)
        if len(rows) == MAX_ROWS:
            break
    return tuple(rows)


def _outline_type(
    type_: AvroType, path: str, depth: int, open_types: frozenset[str], tags: tuple[str, ...]
) -> Iterator[OutlineField]:
    if depth >= MAX_DEPTH:
        return
    if isinstance(type_, Record) and type_.full_name not in open_types:
        around = joined(tags, tags_in(type_.props))
        for field in type_.fields:
            yield from _outline_field(type_, field, path, depth, open_types | {type_.full_name}, around)
    elif isinstance(type_, Array):
        yield from _outline_type(type_.items, f"{path}[]", depth, open_types, tags)
    elif isinstance(type_, Map):
        yield from _outline_type(type_.values, f"{path}{{}}", depth, open_types, tags)
    elif isinstance(type_, Union):
        for branch in type_.branches:
            yield from _outline_type(branch, path, depth, open_types, tags)


def _outline_field(
    record: Record, field: RecordField, path: str, depth: int, open_types: frozenset[str], around: tuple[str, ...]
) -> Iterator[OutlineField]:
    tags = joined(around, tags_in(field.props))
    here = f"{path}.{field.name}" if path else field.name
    yield OutlineField(
        name=field.name,
        path=here,
        type=_shown(field.type),
        depth=depth,
        required=not field.has_default,
        default=json_text(field.default) if field.has_default else None,
        doc=field.doc or _type_doc(field.type),
        aliases=field.aliases,
        tags=tags,
        entity=f"{record.full_name}.{field.name}",
    )
    yield from _outline_type(field.type, here, depth + 1, open_types, tags)


def _shown(type_: AvroType) -> str:
    """Return the label of a type, with an optional type as `string?` and an enum with its symbols."""
    if isinstance(type_, Union) and len(type_.branches) == 2 and any(b.kind == "null" for b in type_.branches):
        return f"{_shown(next(b for b in type_.branches if b.kind != 'null'))}?"
    if isinstance(type_, Enum):
        shown = ", ".join(type_.symbols[:8]) + (", …" if len(type_.symbols) > 8 else "")
        return f"{type_.full_name} ({shown})"
    return type_label(type_)


def _type_doc(type_: AvroType) -> str:
    return (type_.doc or "") if isinstance(type_, Named) else ""


def tags(schema: AvroSchema) -> tuple[EntityTags, ...]:
    """Return the tagged records and fields, each record before its fields, in the order of the text."""
    entities: list[EntityTags] = []
    for record in _records(schema.root):
        if own := tags_in(record.props):
            entities.append(EntityTags("sr_record", record.full_name, own))
        entities.extend(
            EntityTags("sr_field", f"{record.full_name}.{field.name}", own)
            for field in record.fields
            if (own := tags_in(field.props))
        )
    return tuple(entities)


def with_tags(text: str, schema: AvroSchema, changes: Iterable[TagChange]) -> str:
    """Return the text with changed tags; raises InvalidSchema for an entity that it doesn't define itself."""
    own = [record for record in _records(schema.root) if record.source is None]
    by_full_name = {record.full_name: record for record in reversed(own)}
    by_simple_name = {record.simple: record for record in reversed(own)}
    namespace = schema.root.namespace if isinstance(schema.root, Named) else ""
    tags_at: dict[str, tuple[str, ...]] = {}
    for change in changes:
        entity_model = _find(change.entity, by_full_name, by_simple_name, namespace)
        tags_at[entity_model.pointer] = change.apply(tags_at.get(entity_model.pointer, tags_in(entity_model.props)))
    return write_tags(text, tags_at)


def has_top_level_field(schema: AvroSchema, name: str) -> bool:
    """Return whether the schema is a record with a field of that name."""
    return isinstance(schema.root, Record) and name in schema.root.by_name


def _find(
    entity: Entity, by_full_name: dict[str, Record], by_simple_name: dict[str, Record], namespace: str
) -> Record | RecordField:
    """Return a record or field; a simple record name is enough without a namespace or in the schema's own namespace."""
    kind, path = entity
    name, _, field = path.rpartition(".") if kind == FIELD else (path, "", "")
    before, _, last = name.rpartition(".")
    record = by_full_name.get(name) or (by_simple_name.get(last) if before in ("", namespace) else None)
    entity_model = record if kind == RECORD or record is None else record.by_name.get(field)
    if entity_model is None:
        raise no_such_path(path)
    return entity_model


def _records(root: AvroType) -> Iterator[Record]:
    """Yield every record once, in the order of the text; without recursion."""
    visited: set[str] = set()
    stack = [root]
    while stack:
        type_ = stack.pop()
        if isinstance(type_, Record):
            if type_.full_name in visited:
                continue
            visited.add(type_.full_name)
            yield type_
        stack.extend(reversed(_nested_types(type_)))


def _nested_types(type_: AvroType) -> Sequence[AvroType]:
    if isinstance(type_, Record):
        return [field.type for field in type_.fields]
    if isinstance(type_, Union):
        return type_.branches
    if isinstance(type_, Array):
        return [type_.items]
    return [type_.values] if isinstance(type_, Map) else []


#: a type, its path, and whether an enclosing record or field is tagged
_Spot = tuple[AvroType, str, bool]


def lint_violations(schema: AvroSchema) -> Iterator[lint.LintViolation]:
    """Yield the lint violations in the order of the text."""
    root, visited = schema.root, set[str]()
    if isinstance(root, Named) and not root.namespace and root.source is None:
        yield lint.LintViolation("NO_NAMESPACE", root.simple, root.pointer, {"name": root.simple})
    named: list[tuple[str, str, str | None]] = []
    stack: list[_Spot] = [(root, root_path(root), False)]
    while stack:
        type_, path, tagged = stack.pop()
        if isinstance(type_, Named):
            if type_.full_name in visited or type_.source is not None:
                continue
            visited.add(type_.full_name)
            yield from _type(type_, path)
        if isinstance(type_, Record):
            tagged = tagged or bool(tags_in(type_.props))
            for field in type_.fields:
                named.append((field.name, f"{path}.{field.name}", field.pointer))
                yield from _field_lint(field, f"{path}.{field.name}", tagged)
        stack.extend(reversed(_nested_spots(type_, path, tagged)))
    yield from lint.mixed_names(named)


def _nested_spots(type_: AvroType, path: str, tagged: bool) -> Sequence[_Spot]:
    if isinstance(type_, Record):
        return [(field.type, f"{path}.{field.name}", tagged or bool(tags_in(field.props))) for field in type_.fields]
    if isinstance(type_, Union):
        return [(branch, path, tagged) for branch in type_.branches]
    if isinstance(type_, Array):
        return [(type_.items, f"{path}[]", tagged)]
    return [(type_.values, f"{path}{{}}", tagged)] if isinstance(type_, Map) else []


def _type(type_: Named, path: str) -> Iterator[lint.LintViolation]:
    if not lint.is_pascal(type_.simple):
        values = {"name": type_.simple, "better": lint.in_style(type_.simple, "PascalCase")}
        yield lint.LintViolation("TYPE_NAME_STYLE", path, type_.pointer, values)
    if isinstance(type_, Enum) and type_.default is None:
        yield lint.LintViolation("ENUM_WITHOUT_DEFAULT", path, type_.pointer, {"name": type_.simple})


def _field_lint(field: RecordField, path: str, tagged: bool) -> Iterator[lint.LintViolation]:
    kinds = {branch.kind for branch in field.type.branches} if isinstance(field.type, Union) else {field.type.kind}
    bare = [
        branch
        for branch in (field.type.branches if isinstance(field.type, Union) else [field.type])
        if branch.logical is None
    ]

    def place(rule: str) -> lint.LintViolation:
        return lint.LintViolation(rule, path, field.pointer, {"name": field.name})

    if not field.has_default:
        yield place("OPTIONAL_WITHOUT_DEFAULT" if "null" in kinds and len(kinds) > 1 else "FIELD_HAS_NO_DEFAULT")
    elif why_invalid(field.type, field.default, is_strict=True) is not None:
        yield place("DEFAULT_OF_LATER_BRANCH")
    if not (field.doc or (isinstance(field.type, Named) and field.type.doc)):
        yield place("FIELD_WITHOUT_DOC")
    if lint.looks_like_time(field.name) and any(branch.kind in ("int", "long") for branch in bare):
        yield place("TIME_WITHOUT_LOGICAL_TYPE")
    if lint.looks_like_money(field.name) and kinds & {"float", "double"}:
        yield place("MONEY_AS_FLOAT")
    if lint.looks_personal(field.name) and not tagged and not tags_in(field.props):
        yield place("PERSONAL_WITHOUT_TAG")


#: a type that readers don't convert to or from any other, the kinds that exclude it, and a value of it
_OTHER_TYPES: Final = (
    ("boolean", {"boolean"}, False),
    ("string", {"string", "bytes"}, ""),
    ("long", {"int", "long", "float", "double"}, 0),
)


def edit_field(schema: AvroSchema, path: str, edit: FieldEdit) -> Edit:
    """Return the text with the field at a path changed, and a title. Raises InvalidSchema."""
    entities = {row.entity for row in outline(schema.root) if row.path == path}
    replaced: dict[RecordField, RecordField | None] = {}
    titles = []
    for entity in sorted(entities):
        record_name, _, name = entity.rpartition(".")
        record = schema.named[record_name]
        if not isinstance(record, Record) or record.source is not None:
            raise InvalidSchema(f"{name} is declared in the referenced schema {record.source}: change it there.")
        field = record.by_name[name]
        replaced[field], title = _edited(record, field, edit)
        titles.append(title)
    if not replaced:
        raise InvalidSchema(f"The schema has no field {path}.")
    return Edit("; ".join(dict.fromkeys(titles)), edited_text(schema, replaced))


def _edited(record: Record, field: RecordField, edit: FieldEdit) -> tuple[RecordField | None, str]:
    """Return the changed field, or None without it, and a title."""
    if edit == "remove":
        return None, f'remove "{field.name}"'
    edited = copy(field)
    if edit == "change type":
        return edited, f'make "{field.name}" a {_change_type(edited)}'
    while edited.name in record.by_name:
        edited.name += "_renamed"
    title = f'rename "{field.name}" to "{edited.name}"'
    if edit == "rename with alias":
        edited.aliases = (*field.aliases, field.name)
        title += ", with the old name as an alias"
    return edited, title


def _change_type(field: RecordField) -> str:
    """Give the field another type and a default of it if it had one; a nullable field stays nullable."""
    branches = field.type.branches if isinstance(field.type, Union) else (field.type,)
    kinds = {branch.kind for branch in branches}
    others = ((kind, value) for kind, near, value in _OTHER_TYPES if not near & kinds)
    kind, value = next(others, ("", None))
    if not kind:
        raise InvalidSchema(f"{field.name} accepts every type that could replace its own.")
    other = Primitive(kind, field.type.pointer, None)
    nulls = tuple(branch for branch in branches if branch.kind == "null")
    is_null_first = branches[0].kind == "null"
    both = (*nulls, other) if is_null_first else (other, *nulls)
    field.type = Union(both, field.type.pointer, None) if nulls and len(branches) > 1 else other
    if field.has_default and not (is_null_first and isinstance(field.type, Union)):
        field.default = value
    return kind
