"""All differences between two JSON Schemas, with pointers and paths, in the order of the text; suspected renames."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.formats.base import Difference
from registry.formats.json_schema.differences import (
    ATTRIBUTE_OF,
    Sides,
    attribute_differences,
    difference,
    enum_differences,
    keyword_differences,
    order_differences,
    rename_cure,
    rename_effect,
    type_differences,
)
from registry.formats.json_schema.drafts import is_schema
from registry.formats.json_schema.model import Model, root_path
from registry.formats.json_schema.text import Interning, compact, json_equal, type_words
from registry.formats.name_similarity import SUSPICION, rename_score

_MAX_COMPARISONS: Final = 2_500
_NOTES: Final = ("title", "description", "default", "examples", "$comment")


@dataclass(frozen=True, slots=True)
class PropertyRename:
    """A suspected rename; `score` is from 0 to 1."""

    old: str
    new: str
    score: float
    reasons: tuple[str, ...]


def suspected_renames(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[PropertyRename]:
    """Return the most likely renames between properties that only one side has, best first, each in at most one."""
    removed, added = [name for name in old if name not in new], [name for name in new if name not in old]
    places_old, places_new = {name: at for at, name in enumerate(old)}, {name: at for at, name in enumerate(new)}
    window = max(1, _MAX_COMPARISONS // max(1, len(removed)))
    scored = []
    for name in removed[:_MAX_COMPARISONS]:
        begin = bisect_left(added, places_old[name], key=lambda other: places_new[other]) - window // 2
        begin = max(0, min(begin, len(added) - window))
        near = added[begin : begin + window]
        for other in near:
            is_same_place = places_old[name] == places_new[other]
            rename = _compare(name, old[name], other, new[other], is_same_place=is_same_place)
            if rename.score >= SUSPICION:
                scored.append(rename)
    scored.sort(key=lambda rename: (-rename.score, places_old[rename.old], places_new[rename.new]))
    return _each_once(scored)


def _each_once(scored: list[PropertyRename]) -> list[PropertyRename]:
    taken_old: set[str] = set()
    taken_new: set[str] = set()
    chosen = []
    for rename in scored:
        if rename.old not in taken_old and rename.new not in taken_new:
            taken_old.add(rename.old)
            taken_new.add(rename.new)
            chosen.append(rename)
    return chosen


def _compare(old: str, before: Any, new: str, after: Any, *, is_same_place: bool) -> PropertyRename:
    if type_words(before) != type_words(after):
        return PropertyRename(old, new, 0.0, ())
    is_equal = json_equal(_bare(before), _bare(after))
    clues = [(0.3, "the same schema") if is_equal else (0.2, "the same type")]
    if is_same_place:
        clues.append((0.2, "the same position"))
    description = before.get("description") if isinstance(before, dict) else None
    if description and isinstance(after, dict) and after.get("description") == description:
        clues.append((0.25, "the same description"))
    return PropertyRename(old, new, *rename_score(old[:200], new[:200], 0.45, clues))


def _bare(schema: Any) -> Any:
    return {key: value for key, value in schema.items() if key not in _NOTES} if isinstance(schema, dict) else schema


MAX_DIFFERENCES: Final = 20_000
Work = Difference | tuple[Any, Any, Sides]


def diff_models(old: Model, new: Model) -> tuple[Difference, ...]:
    """Return all differences between two schemas."""
    differences: list[Difference] = []
    root = Sides(root_path(new), "", "")
    stack: list[Work] = [*_references(old, new, root), (old.root, new.root, root), *_draft(old, new, root)]
    while stack and len(differences) < MAX_DIFFERENCES:
        work = stack.pop()
        if isinstance(work, Difference):
            differences.append(work)
            continue
        before, after, sides = work
        stack.extend(reversed(list(_between(before, after, sides))))
    return tuple(differences)


def _draft(old: Model, new: Model, root: Sides) -> Iterator[Difference]:
    named = [model.root.get("$schema") if isinstance(model.root, dict) else None for model in (old, new)]
    if old.draft is not new.draft:
        yield difference("DRAFT_CHANGED", root.inside("$schema"), old.draft.name, new.draft.name)
    elif named[0] != named[1]:
        yield difference("SCHEMA_KEYWORD_CHANGED", root.inside("$schema"), named[0], named[1])


def _references(old: Model, new: Model, root: Sides) -> Iterator[Difference]:
    """Yield references with the same name whose text changed."""
    texts = {document.reference.name: compact(document.value) for document in old.documents if document.reference}
    for document in new.documents:
        if document.reference is None:
            continue
        name = document.reference.name
        if name in texts and texts[name] != compact(document.value):
            yield difference("REFERENCED_SCHEMA_CHANGED", root, name, name, name=name)


def _between(old: Any, new: Any, sides: Sides) -> Iterator[Work]:
    if old is new:
        return
    if not isinstance(old, dict) or not isinstance(new, dict):
        if old is not new and compact(old) != compact(new):
            yield difference("SCHEMA_CHANGED", sides, old, new)
        return
    for keyword in [*old, *(key for key in new if key not in old)]:
        if keyword == "$schema" and not sides.old:
            continue
        handler = _HANDLERS.get(keyword)
        if handler is not None:
            yield from handler(keyword, old, new, sides)
        elif keyword in ATTRIBUTE_OF:
            yield from attribute_differences(keyword, old, new, sides)
        else:
            yield from keyword_differences(keyword, old, new, sides)
    yield from order_differences("the keywords", list(old), list(new), sides)


def _map_of_schemas(
    added: str, removed: str, step: Callable[[str, str], str]
) -> Callable[[str, Mapping[str, Any], Mapping[str, Any], Sides], Iterator[Work]]:
    """Return a handler for a keyword that maps names to schemas."""

    def handle(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
        if not _are_objects(keyword, old, new):
            yield from keyword_differences(keyword, old, new, sides)
            return
        yield from presence_differences(keyword, old, new, sides)
        before, after = old.get(keyword, {}), new.get(keyword, {})
        for name in before:
            there = sides.inside(keyword, name, step=step(keyword, name))
            if name in after:
                yield (before[name], after[name], there)
            else:
                yield difference(removed, there, before[name], None, name=name, only="old")
        for name in after:
            if name not in before:
                there = sides.inside(keyword, name, step=step(keyword, name))
                yield difference(added, there, None, after[name], name=name, only="new")
        if keyword == "properties":
            yield from _renames(old, new, sides)
        yield from order_differences(f"the {keyword}", list(before), list(after), sides.inside(keyword))

    return handle


def presence_differences(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    """Yield a difference if only one side has the keyword, with an empty object."""
    if (keyword in old) != (keyword in new) and not old.get(keyword) and not new.get(keyword):
        yield from keyword_differences(keyword, old, new, sides)


def _are_objects(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return isinstance(old.get(keyword, {}), dict) and isinstance(new.get(keyword, {}), dict)


def _renames(old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Difference]:
    for rename in suspected_renames(old.get("properties", {}), new.get("properties", {})):
        there = sides.apart(("properties", rename.old), ("properties", rename.new), step=f".{rename.new}")
        yield difference(
            "PROPERTY_RENAME_SUSPECTED",
            there,
            rename.old,
            rename.new,
            score=rename.score,
            reasons=rename.reasons,
            effect=rename_effect(rename.old, rename.new, old, new),
            cure=rename_cure(rename.old, rename.new),
        )


def _required(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    before, after = old.get(keyword, []), new.get(keyword, [])
    if not isinstance(before, list) or not isinstance(after, list):
        yield from keyword_differences(keyword, old, new, sides)
        return
    yield from presence_differences(keyword, old, new, sides)
    known_after, known_before = set(after), set(before)
    for name in before:
        if name not in known_after:
            yield difference("REQUIRED_REMOVED", sides.inside(keyword, step=f".{name}"), True, False, name=name)
    for name in after:
        if name not in known_before:
            yield difference("REQUIRED_ADDED", sides.inside(keyword, step=f".{name}"), False, True, name=name)
    yield from order_differences("the required names", before, after, sides.inside(keyword))


def _content(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    """Yield changes of the schema for unlisted properties or items; an absent keyword allows anything."""
    before, after = old.get(keyword, True), new.get(keyword, True)
    there = sides.inside(keyword, step="{}" if keyword.endswith("Properties") else "[]")
    if isinstance(before, dict) and isinstance(after, dict):
        yield (before, after, there)
    elif before is after:
        if (keyword in old) != (keyword in new):
            yield from keyword_differences(keyword, old, new, sides)
    elif after is True:
        yield difference("CONTENT_MODEL_OPENED", sides.inside(keyword), before, after, name=keyword)
    elif after is False:
        yield difference("CONTENT_MODEL_CLOSED", sides.inside(keyword), before, after, name=keyword)
    else:
        yield difference("CONTENT_MODEL_CHANGED", sides.inside(keyword), before, after, name=keyword)


def _items(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    before, after = old.get(keyword), new.get(keyword)
    there = sides.inside(keyword, step="[]")
    if keyword not in old:
        yield difference("ITEMS_ADDED", there, None, after, only="new")
    elif keyword not in new:
        yield difference("ITEMS_REMOVED", there, before, None, only="old")
    elif isinstance(before, list) and isinstance(after, list):
        yield from _tuple(keyword, before, after, sides)
    elif is_schema(before) and is_schema(after):
        yield (before, after, there)
    else:
        yield difference("ITEMS_CHANGED", there, before, after)


def _tuple(keyword: str, before: list[Any], after: list[Any], sides: Sides) -> Iterator[Work]:
    for index in range(max(len(before), len(after))):
        there = sides.inside(keyword, index, step=f"[{index}]")
        if index >= len(after):
            yield difference("TUPLE_ITEM_REMOVED", there, before[index], None, name=str(index), only="old")
        elif index >= len(before):
            yield difference("TUPLE_ITEM_ADDED", there, None, after[index], name=str(index), only="new")
        else:
            yield (before[index], after[index], there)


def _members(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    """Yield changes of a combination's members: equal ones are paired, the others in order."""
    if keyword not in old or keyword not in new:
        rule = "COMBINATION_REMOVED" if keyword in old else "COMBINATION_ADDED"
        only = "old" if keyword in old else "new"
        yield difference(rule, sides.inside(keyword), old.get(keyword), new.get(keyword), name=keyword, only=only)  # type: ignore[arg-type]
        return
    before, after = old[keyword], new[keyword]
    interning = Interning()
    free: dict[int, list[int]] = {}
    for index, member in enumerate(after):
        free.setdefault(interning.number(member), []).append(index)
    pairs: dict[int, int] = {}
    for index, member in enumerate(before):
        alike = free.get(interning.number(member))
        if alike:
            pairs[index] = alike.pop(0)
    left = [index for index in range(len(before)) if index not in pairs]
    taken = set(pairs.values())
    come = [index for index in range(len(after)) if index not in taken]
    pairs.update(zip(left, come, strict=False))
    for index, other in sorted(pairs.items()):
        yield (before[index], after[other], sides.apart((keyword, index), (keyword, other)))
    for index in left[len(come) :]:
        yield difference("MEMBER_REMOVED", sides.inside(keyword, index), before[index], None, name=keyword, only="old")
    for index in come[len(left) :]:
        yield difference("MEMBER_ADDED", sides.inside(keyword, index), None, after[index], name=keyword, only="new")
    order = [pairs[index] for index in sorted(pairs)]
    if order != sorted(order):
        yield difference("REORDERED", sides.inside(keyword), None, None, name=f"the members of {keyword}")


def _single(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    there = sides.inside(keyword)
    if keyword not in old:
        yield difference("CONDITION_ADDED", there, None, new[keyword], name=keyword, only="new")
    elif keyword not in new:
        yield difference("CONDITION_REMOVED", there, old[keyword], None, name=keyword, only="old")
    else:
        yield (old[keyword], new[keyword], there)


def _dependencies(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    if not _are_objects(keyword, old, new):
        yield from keyword_differences(keyword, old, new, sides)
        return
    yield from presence_differences(keyword, old, new, sides)
    before, after = old.get(keyword, {}), new.get(keyword, {})
    for name in [*before, *(key for key in after if key not in before)]:
        there = sides.inside(keyword, name)
        if name not in after:
            yield difference("DEPENDENCY_REMOVED", there, before[name], None, name=name, only="old")
        elif name not in before:
            yield difference("DEPENDENCY_ADDED", there, None, after[name], name=name, only="new")
        elif is_schema(before[name]) and is_schema(after[name]):
            yield (before[name], after[name], there)
        elif compact(before[name]) != compact(after[name]):
            yield difference("DEPENDENCY_CHANGED", there, before[name], after[name], name=name)
    yield from order_differences(f"the {keyword}", list(before), list(after), sides.inside(keyword))


def _reference(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any], sides: Sides) -> Iterator[Work]:
    before, after = old.get(keyword), new.get(keyword)
    there = sides.inside(keyword)
    if keyword not in old:
        yield difference("REFERENCE_ADDED", there, None, after, only="new")
    elif keyword not in new:
        yield difference("REFERENCE_REMOVED", there, before, None, only="old")
    elif before != after:
        yield difference("REFERENCE_CHANGED", there, before, after)


Handler = Callable[[str, Mapping[str, Any], Mapping[str, Any], Sides], Iterator[Work]]
_DEFINITIONS: Final = _map_of_schemas(
    "DEFINITION_ADDED", "DEFINITION_REMOVED", lambda keyword, name: f"/{keyword}/{name}"
)
_HANDLERS: Final[Mapping[str, Handler]] = {
    "properties": _map_of_schemas("PROPERTY_ADDED", "PROPERTY_REMOVED", lambda keyword, name: f".{name}"),
    "patternProperties": _map_of_schemas(
        "PATTERN_PROPERTY_ADDED", "PATTERN_PROPERTY_REMOVED", lambda keyword, name: f"{{{name}}}"
    ),
    "definitions": _DEFINITIONS,
    "$defs": _DEFINITIONS,
    "required": _required,
    "type": type_differences,
    "enum": enum_differences,
    **dict.fromkeys(("additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"), _content),
    **dict.fromkeys(("items", "prefixItems"), _items),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _members),
    **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames"), _single),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), _dependencies),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), _reference),
}
