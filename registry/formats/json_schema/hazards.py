"""What the established check lets pass and yet breaks, or may break, data: keywords that it doesn't compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from registry.formats.json_schema.compare_containers import has_default, properties_of, required_of
from registry.formats.json_schema.interning import json_equal
from registry.formats.json_schema.pairs import Change, Pair, change
from registry.formats.json_schema.shapes import Shape

# Keywords that are compared as wholes: the kind of shape, the keyword, the rule.
_WHOLE: Final = (
    ("object", "patternProperties", "PATTERN_PROPERTIES_CHANGED"),
    ("object", "propertyNames", "PROPERTY_NAMES_CHANGED"),
    ("array", "contains", "CONTAINS_CHANGED"),
    ("string", "format", "FORMAT_CHANGED"),
)
_TYPED: Final = frozenset({"string", "number", "object", "array"})


def pair_hazards(pair: Pair) -> Iterator[Change]:
    """The hazards of one pair of shapes of the same kind; `kind` of each is the id of its rule."""
    writer, reader = pair.writer, pair.reader
    if writer.kind != reader.kind:
        return
    for kind, keyword, rule in _WHOLE:
        if reader.kind == kind and keyword in reader.schema and not _same(writer, reader, keyword):
            yield change(
                pair, rule, keyword, before=writer.schema.get(keyword), after=reader.schema[keyword], name=keyword
            )
    if reader.kind in _TYPED and reader.type_name and not writer.type_name:
        yield change(pair, "TYPE_ADDED", "type", before="any type", after=reader.type_name)
    if reader.kind == "object":
        yield from _required(pair)
    if reader.kind == "number":
        yield from _bounds(pair)
    if reader.kind == "conditional":
        names = [key for key in ("if", "then", "else") if not _same(writer, reader, key)]
        if names:
            yield change(pair, "CONDITION_CHANGED", names[0], name=", ".join(names))


def _same(writer: Shape, reader: Shape, keyword: str) -> bool:
    before, after = writer.schema.get(keyword), reader.schema.get(keyword)
    return before is after or json_equal(before, after)


def _required(pair: Pair) -> Iterator[Change]:
    ours, theirs = required_of(pair.writer), required_of(pair.reader)
    declared, known = properties_of(pair.reader), properties_of(pair.writer)
    for name in sorted(theirs - ours):
        details: dict[str, Any] = {"before": False, "after": True, "name": name, "step": f".{name}"}
        if name in declared:
            if has_default(declared[name]) or (name not in known and _passes(declared[name])):
                yield change(pair, "REQUIRED_FILLED_BY_DEFAULT", "required", name, **details)
        else:
            yield change(pair, "REQUIRED_UNDECLARED", "required", name, **details)


def _passes(schema: Any) -> bool:
    """A property without any condition may be added to an open model, even as a required one."""
    return schema is True or schema == {}


def _bounds(pair: Pair) -> Iterator[Change]:
    for keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        if pair.reader.schema.get(keyword) is True and pair.writer.schema.get(keyword) is not True:
            yield change(pair, "EXCLUSIVE_BOUND_CHANGED", keyword, before=False, after=True, name=keyword)
