"""Advice on an Avro schema: its own types, each once, wherever they stand first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from registry.formats.avro.findings import root_path
from registry.formats.avro.model import Array, AvroType, Enum, Field, Map, Named, Record, Schema, Union
from registry.formats.json_tags import tags_in
from registry.formats.lint import Place, mixed_names
from registry.formats.lint_names import in_style, is_pascal, looks_like_money, looks_like_time, looks_personal

#: a type, its path, and whether what is around it is tagged
_Spot = tuple[AvroType, str, bool]


def lint_places(schema: Schema) -> Iterator[Place]:
    """Where the rules aren't followed, in the order of the text."""
    root, seen = schema.root, set[str]()
    if isinstance(root, Named) and not root.namespace and root.source is None:
        yield Place("NO_NAMESPACE", root.simple, root.pointer, {"name": root.simple})
    named: list[tuple[str, str, str | None]] = []
    stack: list[_Spot] = [(root, root_path(root), False)]
    while stack:
        found, path, tagged = stack.pop()
        if isinstance(found, Named):
            if found.full_name in seen or found.source is not None:
                continue
            seen.add(found.full_name)
            yield from _type(found, path)
        if isinstance(found, Record):
            tagged = tagged or bool(tags_in(found.props))
            for field in found.fields:
                named.append((field.name, f"{path}.{field.name}", field.pointer))
                yield from _field(field, f"{path}.{field.name}", tagged)
        stack.extend(reversed(_inside(found, path, tagged)))
    yield from mixed_names(named)


def _inside(found: AvroType, path: str, tagged: bool) -> Sequence[_Spot]:
    if isinstance(found, Record):
        return [(field.type, f"{path}.{field.name}", tagged or bool(tags_in(field.props))) for field in found.fields]
    if isinstance(found, Union):
        return [(branch, path, tagged) for branch in found.branches]
    if isinstance(found, Array):
        return [(found.items, f"{path}[]", tagged)]
    return [(found.values, f"{path}{{}}", tagged)] if isinstance(found, Map) else []


def _type(found: Named, path: str) -> Iterator[Place]:
    if not is_pascal(found.simple):
        values = {"name": found.simple, "better": in_style(found.simple, "PascalCase")}
        yield Place("TYPE_NAME_STYLE", path, found.pointer, values)
    if isinstance(found, Enum) and found.default is None:
        yield Place("ENUM_WITHOUT_DEFAULT", path, found.pointer, {"name": found.simple})


def _field(field: Field, path: str, tagged: bool) -> Iterator[Place]:
    kinds = {branch.kind for branch in field.type.branches} if isinstance(field.type, Union) else {field.type.kind}
    bare = [
        branch
        for branch in (field.type.branches if isinstance(field.type, Union) else [field.type])
        if branch.logical is None
    ]

    def place(rule: str) -> Place:
        return Place(rule, path, field.pointer, {"name": field.name})

    if not field.has_default:
        yield place("OPTIONAL_WITHOUT_DEFAULT" if "null" in kinds and len(kinds) > 1 else "FIELD_HAS_NO_DEFAULT")
    if not (field.doc or (isinstance(field.type, Named) and field.type.doc)):
        yield place("FIELD_WITHOUT_DOC")
    if looks_like_time(field.name) and any(branch.kind in ("int", "long") for branch in bare):
        yield place("TIME_WITHOUT_LOGICAL_TYPE")
    if looks_like_money(field.name) and kinds & {"float", "double"}:
        yield place("MONEY_AS_FLOAT")
    if looks_personal(field.name) and not tagged and not tags_in(field.props):
        yield place("PERSONAL_WITHOUT_TAG")
