"""The properties of a schema as a flat list for people: one row a property, nested ones after their parent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from registry.formats.base import OutlineField
from registry.formats.json_schema.labels import type_words
from registry.formats.json_schema.model import ROOT, Model, Place
from registry.formats.json_schema.paths import root_path
from registry.formats.json_schema.text import compact
from registry.formats.json_tags import tags_in
from registry.formats.pointer import join
from registry.formats.tags import joined

MAX_ROWS: Final = 2_000
MAX_DEPTH: Final = 12
_MAX_STEPS: Final = 20_000
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "then", "else")
_OF_VALUES: Final = ("items", "prefixItems", "additionalProperties")


def outline(model: Model) -> tuple[OutlineField, ...]:
    """At most MAX_ROWS rows, MAX_DEPTH deep; a schema inside itself is named, not opened again."""
    rows: list[OutlineField] = []
    for row in _inside(model, ROOT, root_path(model), 0, frozenset(), count(), ()):
        rows.append(row)
        if len(rows) == MAX_ROWS:
            break
    return tuple(rows)


def behind(model: Model, place: Place) -> Place:
    """The place that a plain chain of references leads to."""
    seen: set[Place] = set()
    while place not in seen:
        seen.add(place)
        target = model.targets.get(Place(place.document, join(place.pointer, "$ref")))
        if not isinstance(target, Place):
            break
        place = target
    return place


def _inside(
    model: Model,
    place: Place,
    path: str,
    depth: int,
    around: frozenset[Place],
    steps: Iterator[int],
    outer: tuple[str, ...],
) -> Iterator[OutlineField]:
    place = behind(model, place)
    schema = model.at(place)
    if (
        next(steps) > _MAX_STEPS
        or depth >= MAX_DEPTH
        or place in around
        or not isinstance(schema, dict)
        or len(around) > 4 * MAX_DEPTH
    ):
        return
    inner, tags = around | {place}, joined(outer, tags_in(schema))
    properties, required = schema.get("properties"), schema.get("required")
    names = set(required) if isinstance(required, list) else set()
    for name, held in properties.items() if isinstance(properties, dict) else ():
        there = Place(place.document, join(place.pointer, "properties", name))
        here = f"{path}.{name}"
        own = joined(tags, _value_tags(model, there, steps))
        yield _row(model, there, name, held, here, depth, name in names, own)
        yield from _inside(model, there, here, depth + 1, inner, steps, own)
    for keyword in _IN_PLACE:
        members = schema.get(keyword)
        for index, _ in enumerate(members) if isinstance(members, list) else ():
            yield from _inside(
                model, Place(place.document, join(place.pointer, keyword, index)), path, depth, inner, steps, tags
            )
        if isinstance(members, dict):
            there = Place(place.document, join(place.pointer, keyword))
            yield from _inside(model, there, path, depth, inner, steps, tags)
    for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(keyword), dict):
            there = Place(place.document, join(place.pointer, keyword))
            yield from _inside(model, there, path + step, depth, inner, steps, tags)


def _value_tags(model: Model, place: Place, steps: Iterator[int]) -> tuple[str, ...]:
    """The tags of a property's value: of its own schema, of what that refers to, and of its members, items and entries."""
    found: dict[str, None] = {}
    seen: set[Place] = set()
    stack = [place]
    while stack:
        here = stack.pop()
        schema = model.at(here)
        if here in seen or not isinstance(schema, dict) or next(steps) > _MAX_STEPS:
            continue
        seen.add(here)
        found |= dict.fromkeys(tags_in(schema))
        stack.append(behind(model, here))
        for keyword in (*_IN_PLACE, *_OF_VALUES):
            members = schema.get(keyword)
            if isinstance(members, list):
                stack += [Place(here.document, join(here.pointer, keyword, index)) for index in range(len(members))]
            elif isinstance(members, dict):
                stack.append(Place(here.document, join(here.pointer, keyword)))
    return tuple(found)


def _row(
    model: Model, place: Place, name: str, held: Any, path: str, depth: int, is_required: bool, tags: tuple[str, ...]
) -> OutlineField:
    target = model.at(behind(model, place))
    notes = {**(target if isinstance(target, Mapping) else {}), **(held if isinstance(held, Mapping) else {})}
    description = notes.get("description")
    return OutlineField(
        name=name,
        path=path,
        type=type_words(held),
        depth=depth,
        required=is_required,
        default=compact(notes["default"]) if "default" in notes else None,
        doc=description if isinstance(description, str) else "",
        tags=tags,
    )
