"""Writing tags into a schema that is JSON, without touching anything else of its text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from registry.errors import InvalidSchema
from registry.formats.json_edit import NoSuchPlace, TextEdit
from registry.formats.tags import PROPERTY


def tags_in(properties: Any) -> tuple[str, ...]:
    """The tags of an object of a schema, each once; what is no text stands as JSON writes it."""
    found = properties.get(PROPERTY) if isinstance(properties, Mapping) else None
    if not isinstance(found, list | tuple):
        return ()
    return tuple(dict.fromkeys(tag if isinstance(tag, str) else json.dumps(tag, default=str) for tag in found))


def no_such_path(path: str) -> InvalidSchema:
    """The error for an entity that the schema doesn't have."""
    return InvalidSchema(f"No matching path '{path[:200]}' found in the schema")


def write_tags(text: str, tags_at: Mapping[str, Sequence[str]]) -> str:
    """The text with the tags of the objects at those pointers; an object without tags has no property of them.

    All pointers lead into the text as it is. Raises InvalidSchema where one leads to no object.
    """
    document = TextEdit(text)
    splices = sorted(splice for pointer, tags in tags_at.items() for splice in _splices(document, pointer, tags))
    parts, position = [], 0
    for start, end, source in splices:
        parts += [text[position:start], source]
        position = end
    return "".join([*parts, text[position:]])


def _splices(document: TextEdit, pointer: str, tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Start, end and new text of what changes for one object: one place or none."""
    try:
        node = document.node(pointer)
    except NoSuchPlace:
        raise no_such_path(pointer) from None
    if not node.is_object:
        raise InvalidSchema(f"At {pointer or '/'} stands no object, so it can't have tags.")
    source = json.dumps(list(tags), ensure_ascii=False)
    if PROPERTY not in node.keys:
        if not tags:
            return []
        place = node.ends[-1] if node.ends else node.start + 1
        return [(place, place, f"{', ' if node.ends else ''}{json.dumps(PROPERTY)}: {source}")]
    index = node.keys.index(PROPERTY)
    start, end = node.starts[index], node.ends[index]
    if tags:
        return [(start, end, f"{json.dumps(PROPERTY)}: {source}")]
    if index + 1 < len(node.starts):
        return [(start, node.starts[index + 1], "")]
    return [(node.ends[index - 1] if index else start, end, "")]
