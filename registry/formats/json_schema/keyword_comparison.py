"""The differences between two schemas that Confluent's registry rejects, keyword by keyword."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from registry.formats.json_schema.drafts import is_schema
from registry.formats.json_schema.pairs import Choice, ShapePair, change
from registry.formats.json_schema.shapes import Shape
from registry.formats.json_schema.text import Interning, compact, json_equal
from registry.formats.json_schema.value_facts import (
    all_items,
    covering,
    is_open,
    permits_rest,
    prefix,
    prefix_keyword,
    rest_keyword,
    rest_schema,
    unevaluated,
)

if TYPE_CHECKING:
    from registry.formats.json_schema.comparison import SchemaComparison


def compare_strings(comparison: SchemaComparison, pair: ShapePair) -> None:
    """Compare lengths and the pattern; formats are not compared."""
    limit(comparison, pair, "maxLength", "MAX_LENGTH", is_upper=True)
    limit(comparison, pair, "minLength", "MIN_LENGTH", is_upper=False)
    before, after = pair.writer.schema.get("pattern"), pair.reader.schema.get("pattern")
    if after is not None and before != after:
        kind = "PATTERN_ADDED" if before is None else "PATTERN_CHANGED"
        comparison.note(pair, kind, "pattern", before=before, after=after)


def compare_numbers(comparison: SchemaComparison, pair: ShapePair) -> None:
    """Compare bounds, multipleOf, and integer with number; draft 4's boolean exclusive bounds are not compared."""
    limit(comparison, pair, "maximum", "MAXIMUM", is_upper=True)
    limit(comparison, pair, "minimum", "MINIMUM", is_upper=False)
    limit(comparison, pair, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", is_upper=True)
    limit(comparison, pair, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", is_upper=False)
    _multiples(comparison, pair)
    if pair.reader.type_name == "integer" and pair.writer.type_name != "integer":
        comparison.note(pair, "TYPE_NARROWED", before=pair.writer.label, after=pair.reader.label)


def compare_enums(comparison: SchemaComparison, pair: ShapePair) -> None:
    """Compare the values of two enums as sets."""
    before, after = pair.writer.schema.get("enum"), pair.reader.schema.get("enum")
    if not isinstance(before, list) or not isinstance(after, list):
        return
    interning = Interning()
    ours, theirs = {interning.number(value) for value in before}, {interning.number(value) for value in after}
    if ours <= theirs:
        return
    missing = [value for value in before if interning.number(value) not in theirs]
    kind = "ENUM_ARRAY_NARROWED" if theirs <= ours else "ENUM_ARRAY_CHANGED"
    comparison.note(pair, kind, "enum", before=before, after=after, name=_listed(missing))


def compare_const(comparison: SchemaComparison, pair: ShapePair) -> None:
    """Compare two constants; a change is reported as a change of an enum."""
    before, after = pair.writer.schema["const"], pair.reader.schema["const"]
    if not json_equal(before, after):
        comparison.note(pair, "ENUM_ARRAY_CHANGED", "const", before=before, after=after, name=_listed([before]))


def compare_nots(comparison: SchemaComparison, pair: ShapePair) -> None:
    """Compare two negations: the writer must forbid everything that the reader forbids."""
    inner = comparison.pair(pair.reader.inner("not"), pair.writer.inner("not"))
    pair.choices.append(Choice("not", [inner], change(pair, "NOT_TYPE_EXTENDED", "not")))


def limit(
    comparison: SchemaComparison,
    pair: ShapePair,
    keyword: str,
    kind: str,
    *,
    is_upper: bool,
    read: Callable[[Any, str], Any] | None = None,
) -> None:
    """Report a bound that is new or tighter on the reader's side."""
    take = read or number_of
    before, after = take(pair.writer.schema, keyword), take(pair.reader.schema, keyword)
    if after is None or before == after:
        return
    if before is None:
        comparison.note(pair, f"{kind}_ADDED", keyword, before=before, after=after)
    elif is_upper and after < before:
        comparison.note(pair, f"{kind}_DECREASED", keyword, before=before, after=after)
    elif not is_upper and after > before:
        comparison.note(pair, f"{kind}_INCREASED", keyword, before=before, after=after)


def number_of(schema: Any, keyword: str) -> Any:
    """Return the number of a keyword; None if it has none."""
    value = schema.get(keyword)
    return value if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else None


def _multiples(comparison: SchemaComparison, pair: ShapePair) -> None:
    before, after = number_of(pair.writer.schema, "multipleOf"), number_of(pair.reader.schema, "multipleOf")
    if after is None or before == after:
        return
    if before is None:
        comparison.note(pair, "MULTIPLE_OF_ADDED", "multipleOf", before=before, after=after)
    elif is_multiple(after, before):
        comparison.note(pair, "MULTIPLE_OF_EXPANDED", "multipleOf", before=before, after=after)
    elif not is_multiple(before, after):
        comparison.note(pair, "MULTIPLE_OF_CHANGED", "multipleOf", before=before, after=after)


def is_multiple(number: int | Decimal, divisor: int | Decimal) -> bool:
    """Return whether a number is an exact multiple of another."""
    over, under = _ratio(number)
    divisor_over, divisor_under = _ratio(divisor)
    return divisor_over != 0 and (over * divisor_under) % (under * divisor_over) == 0


def _ratio(number: int | Decimal) -> tuple[int, int]:
    return number.as_integer_ratio()


def _listed(values: list[Any]) -> str:
    shown = ", ".join(compact(value)[:80] for value in values[:20])
    return shown + (" …" if len(values) > 20 else "")


_REFERRING: Final = ("$ref", "$recursiveRef", "$dynamicRef")


def compare_objects(comparison: SchemaComparison, pair: ShapePair) -> None:
    """Compare required properties, properties, content models, dependencies, and numbers of properties."""
    _required(comparison, pair)
    _properties(comparison, pair)
    _dependencies(comparison, pair)
    _rest(comparison, pair, "additionalProperties", "ADDITIONAL_PROPERTIES", "{}")
    _unevaluated(comparison, pair, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")
    limit(comparison, pair, "maxProperties", "MAX_PROPERTIES", is_upper=True)
    limit(comparison, pair, "minProperties", "MIN_PROPERTIES", is_upper=False)


def compare_arrays(comparison: SchemaComparison, pair: ShapePair) -> None:
    """Compare items, tuples, content models, numbers of items, and uniqueness."""
    writer, reader = all_items(pair.writer), all_items(pair.reader)
    if writer is not None and reader is not None:
        comparison.need(pair, writer, reader, "items", step="[]")
    elif reader is not None:
        comparison.note(pair, "SCHEMA_ADDED", "items", after=reader.label, step="[]")
    _tuple(comparison, pair)
    _rest(comparison, pair, "additionalItems", "ADDITIONAL_ITEMS", "[]")
    _unevaluated(comparison, pair, "unevaluatedItems", "UNEVALUATED_ITEMS")
    limit(comparison, pair, "maxItems", "MAX_ITEMS", is_upper=True)
    limit(comparison, pair, "minItems", "MIN_ITEMS", is_upper=False)
    if pair.reader.schema.get("uniqueItems") is True and pair.writer.schema.get("uniqueItems") is not True:
        comparison.note(pair, "UNIQUE_ITEMS_ADDED", "uniqueItems", before=False, after=True)
    if pair.writer.draft.number >= 2019 and pair.reader.draft.number >= 2019:
        limit(comparison, pair, "maxContains", "MAX_CONTAINS", is_upper=True, read=_contains_limit)
        limit(comparison, pair, "minContains", "MIN_CONTAINS", is_upper=False, read=_contains_limit)


def properties_of(shape: Shape) -> Mapping[str, Any]:
    """Return the declared properties of an object."""
    properties = shape.schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(shape: Shape) -> frozenset[str]:
    """Return the names that an object requires."""
    names = shape.schema.get("required")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def has_default(schema: Any) -> bool:
    """Return whether the schema of a property has a default."""
    return isinstance(schema, dict) and "default" in schema


def _required(comparison: SchemaComparison, pair: ShapePair) -> None:
    ours, theirs = required_of(pair.writer), required_of(pair.reader)
    declared = properties_of(pair.reader)
    for name in properties_of(pair.writer):
        if name in declared and name in theirs and name not in ours and not has_default(declared[name]):
            comparison.note(
                pair,
                "REQUIRED_ATTRIBUTE_ADDED",
                "required",
                name,
                before=False,
                after=True,
                name=name,
                step=_step(name),
            )


def _properties(comparison: SchemaComparison, pair: ShapePair) -> None:
    ours, theirs = properties_of(pair.writer), properties_of(pair.reader)
    is_one_draft = pair.writer.draft.number == pair.reader.draft.number
    for name in ours:
        if name in theirs:
            if is_one_draft and _is_unchanged(ours[name], theirs[name]):
                continue
            writer, reader = pair.writer.inner("properties", name), pair.reader.inner("properties", name)
            if writer is not reader:
                comparison.need(pair, writer, reader, "properties", name, step=_step(name))
        else:
            _removed_property(comparison, pair, name)
    required = required_of(pair.reader)
    for name in theirs:
        if name not in ours:
            _added_property(comparison, pair, name, is_required=name in required)


def _is_unchanged(writer: Any, reader: Any) -> bool:
    """Return whether two schemas of one draft have equal text without references, like most properties of most
    versions.

    True only if it is certain: Python considers 1 and true equal, and the target of a reference may have changed.
    """
    if writer != reader:
        return False
    text = repr(writer)
    return text == repr(reader) and not any(word in text for word in _REFERRING)


def _removed_property(comparison: SchemaComparison, pair: ShapePair, name: str) -> None:
    """Report a property that the reader doesn't list, unless its content model accepts the property."""
    if is_open(pair.reader):
        return
    writer, reader = pair.writer.inner("properties", name), covering(pair.reader, name)
    if reader is not None:
        kind = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        _cover(comparison, pair, writer, reader, kind, "properties", name, step=_step(name), name=name)
    elif writer.kind != "false":
        comparison.note(
            pair, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "properties", name,
            before=writer.label, name=name, step=_step(name),
        )  # fmt: skip


def _added_property(comparison: SchemaComparison, pair: ShapePair, name: str, *, is_required: bool) -> None:
    """Report a property that the writer doesn't list, unless everything that its content model allows fits."""
    reader = pair.reader.inner("properties", name)
    is_filled = has_default(properties_of(pair.reader)[name])
    details: dict[str, Any] = {"after": reader.label, "name": name, "step": _step(name)}
    if is_open(pair.writer):
        if reader.kind in ("empty", "true") and not _is_reference(pair.reader, name):
            return
        kind = "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
        if is_required:
            kind = (
                "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"
                if is_filled
                else "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
            )
        comparison.note(pair, kind, "properties", name, **details)
        return
    writer = covering(pair.writer, name)
    if writer is not None:
        kind = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        _cover(comparison, pair, writer, reader, kind, "properties", name, step=_step(name), name=name)
    if is_required and not is_filled:
        comparison.note(pair, "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "properties", name, **details)


def _is_reference(shape: Shape, name: str) -> bool:
    """Return whether a property is a plain reference, which Confluent's check doesn't follow here."""
    schema = properties_of(shape)[name]
    return isinstance(schema, dict) and "$ref" in schema


def _cover(
    comparison: SchemaComparison,
    pair: ShapePair,
    writer: Shape,
    reader: Shape,
    kind: str,
    *at: str,
    step: str,
    name: str,
) -> None:
    """Record that what one side doesn't list must fit what the other side lists."""
    mismatch = change(pair, kind, *at, before=writer.label, after=reader.label, name=name, step=step)
    pair.choices.append(
        Choice("covered", [comparison.pair(writer, reader)], mismatch, is_told=kind in comparison.breaking)
    )


def _dependencies(comparison: SchemaComparison, pair: ShapePair) -> None:
    ours, theirs = _name_dependencies(pair.writer), _name_dependencies(pair.reader)
    for name, needed in theirs.items():
        before, after = ours.get(name), set(needed)
        details: dict[str, Any] = {"before": before, "after": needed, "name": name}
        if before is None:
            comparison.note(pair, "DEPENDENCY_ARRAY_ADDED", "dependencies", name, **details)
        elif set(before) < after:
            comparison.note(pair, "DEPENDENCY_ARRAY_EXTENDED", "dependencies", name, **details)
        elif not after <= set(before):
            comparison.note(pair, "DEPENDENCY_ARRAY_CHANGED", "dependencies", name, **details)
    our_schemas, their_schemas = _schema_dependencies(pair.writer), _schema_dependencies(pair.reader)
    for name, reader in their_schemas.items():
        if name in our_schemas:
            comparison.need(pair, our_schemas[name], reader, "dependencies", name)
        else:
            comparison.note(pair, "DEPENDENCY_SCHEMA_ADDED", "dependencies", name, after=reader.label, name=name)


def _dependency_keywords(shape: Shape) -> tuple[str, str]:
    if shape.draft.number >= 2019:
        return "dependentRequired", "dependentSchemas"
    return "dependencies", "dependencies"


def _name_dependencies(shape: Shape) -> dict[str, list[str]]:
    dependencies = shape.schema.get(_dependency_keywords(shape)[0])
    if not isinstance(dependencies, dict):
        return {}
    return {name: item for name, item in dependencies.items() if isinstance(item, list) and item}


def _schema_dependencies(shape: Shape) -> dict[str, Shape]:
    keyword = _dependency_keywords(shape)[1]
    dependencies = shape.schema.get(keyword)
    if not isinstance(dependencies, dict):
        return {}
    return {name: shape.inner(keyword, name) for name, item in dependencies.items() if is_schema(item)}


def _rest(comparison: SchemaComparison, pair: ShapePair, at: str, kind: str, step: str) -> None:
    """Compare the schemas for unlisted properties or items."""
    ours, theirs = permits_rest(pair.writer), permits_rest(pair.reader)
    before, after = pair.writer.schema.get(rest_keyword(pair.writer)), pair.reader.schema.get(rest_keyword(pair.reader))
    if ours != theirs:
        if ours:
            comparison.note(pair, f"{kind}_REMOVED", at, before=before, after=after)
        return
    writer, reader = rest_schema(pair.writer), rest_schema(pair.reader)
    if writer is None and reader is not None:
        comparison.note(pair, f"{kind}_NARROWED", at, before=before, after=after)
    elif writer is not None and reader is not None:
        comparison.need(pair, writer, reader, at, step=step)


def _unevaluated(comparison: SchemaComparison, pair: ShapePair, at: str, kind: str) -> None:
    """Compare the schemas for parts that no other keyword evaluates."""
    writer, reader = unevaluated(pair.writer), unevaluated(pair.reader)
    if reader is None:
        return
    before, after = pair.writer.schema.get(at), pair.reader.schema.get(at)
    is_anything = writer is None or writer.kind in ("empty", "true")
    if reader.kind == "false":
        if writer is None or writer.kind != "false":
            comparison.note(pair, f"{kind}_REMOVED", at, before=before, after=after)
    elif writer is not None and writer.kind == "false":
        return
    elif is_anything:
        if writer is None or reader.kind not in ("empty", "true"):
            comparison.note(pair, f"{kind}_NARROWED", at, before=before, after=after)
    elif writer is not None and reader.kind not in ("empty", "true"):
        comparison.need(pair, writer, reader, at)


def _tuple(comparison: SchemaComparison, pair: ShapePair) -> None:
    ours, theirs = prefix(pair.writer), prefix(pair.reader)
    for index in range(max(len(ours), len(theirs))):
        at, step = ("items", str(index)), f"[{index}]"
        writer = pair.writer.inner(prefix_keyword(pair.writer), index) if index < len(ours) else None
        reader = pair.reader.inner(prefix_keyword(pair.reader), index) if index < len(theirs) else None
        if writer is not None and reader is not None:
            comparison.need(pair, writer, reader, *at, step=step)
        elif writer is not None:
            _removed_item(comparison, pair, writer, at, step)
        elif reader is not None:
            _added_item(comparison, pair, reader, at, step)


def _removed_item(comparison: SchemaComparison, pair: ShapePair, writer: Shape, at: tuple[str, str], step: str) -> None:
    if is_open(pair.reader):
        return
    reader = covering(pair.reader)
    if reader is not None:
        kind = "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        _cover(comparison, pair, writer, reader, kind, *at, step=step, name=at[1])
    elif writer.kind != "false":
        comparison.note(pair, "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", *at, before=writer.label, name=at[1], step=step)


def _added_item(comparison: SchemaComparison, pair: ShapePair, reader: Shape, at: tuple[str, str], step: str) -> None:
    if is_open(pair.writer):
        if reader.kind not in ("empty", "true"):
            comparison.note(pair, "ITEM_ADDED_TO_OPEN_CONTENT_MODEL", *at, after=reader.label, name=at[1], step=step)
        return
    writer = covering(pair.writer)
    if writer is not None:
        kind = "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        _cover(comparison, pair, writer, reader, kind, *at, step=step, name=at[1])


def _contains_limit(schema: Any, keyword: str) -> Any:
    """Return how often `contains` must or may match; minContains is 1 by default."""
    if "contains" not in schema:
        return None
    limit = number_of(schema, keyword)
    return 1 if limit is None and keyword == "minContains" else limit


def _step(name: str) -> str:
    return f".{name}"
