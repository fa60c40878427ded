"""Tags on records and fields in schemas (for example PII), and writing them into JSON texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.errors import InvalidSchema
from registry.formats.json_edit import NoSuchPlace, TextEdit

#: the property of JSON texts that holds tags
PROPERTY: Final = "confluent:tags"
RECORD: Final = "sr_record"
FIELD: Final = "sr_field"
#: the wildcard of a search
ANY: Final = "*"

Kind = Literal["sr_record", "sr_field"]
#: a record or a field: its kind and its dotted path without a leading dot
Entity = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class EntityTags:
    """The tags of a record or a field; `path` is its full dotted name."""

    kind: Kind
    path: str
    tags: tuple[str, ...]

    @property
    def entity(self) -> Entity:
        """The tagged record or field; a leading dot in the path has no meaning."""
        return self.kind, self.path.removeprefix(".")


@dataclass(frozen=True, slots=True)
class TagChange:
    """A change to the tags of one entity: `add` comes first, then `remove`."""

    entity: Entity
    add: tuple[str, ...]
    remove: tuple[str, ...]

    def apply(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Return the resulting tags: each once, new ones last."""
        return tuple(tag for tag in dict.fromkeys((*tags, *self.add)) if tag not in self.remove)


def changes_of(add: Iterable[EntityTags], remove: Iterable[EntityTags]) -> tuple[TagChange, ...]:
    """Return one change for each entity, in the order of their first mention."""
    added, removed = _by_entity(add), _by_entity(remove)
    return tuple(
        TagChange(entity, tuple(added.get(entity, ())), tuple(removed.get(entity, ())))
        for entity in dict.fromkeys((*added, *removed))
    )


def with_any_of(entities: Iterable[EntityTags], tags: Sequence[str]) -> tuple[EntityTags, ...]:
    """Return the entities with at least one of the tags; all of them if `tags` has `*`."""
    return tuple(item for item in entities if ANY in tags or not set(tags).isdisjoint(item.tags))


def joined(outer: tuple[str, ...], own: Iterable[str]) -> tuple[str, ...]:
    """Return the enclosing tags followed by the field's own, each once."""
    return tuple(dict.fromkeys((*outer, *own)))


def _by_entity(items: Iterable[EntityTags]) -> dict[Entity, dict[str, None]]:
    tags: dict[Entity, dict[str, None]] = {}
    for item in items:
        tags.setdefault(item.entity, {}).update(dict.fromkeys(item.tags))
    return tags


def tags_in(properties: Any) -> tuple[str, ...]:
    """Return the tags of an object in a schema, each once; a tag that isn't text is given as JSON."""
    tags = properties.get(PROPERTY) if isinstance(properties, Mapping) else None
    if not isinstance(tags, list | tuple):
        return ()
    return tuple(dict.fromkeys(tag if isinstance(tag, str) else json.dumps(tag, default=str) for tag in tags))


def no_such_path(path: str) -> InvalidSchema:
    """Return the error for an entity that the schema doesn't have."""
    return InvalidSchema(f"No matching path '{path[:200]}' found in the schema")


def write_tags(text: str, tags_at: Mapping[str, Sequence[str]]) -> str:
    """Return the text with tags written to the objects at the pointers; an object without tags loses the property.

    All pointers are for the original text. Raises InvalidSchema if a pointer has no object.
    """
    document = TextEdit(text)
    splices = sorted(splice for pointer, tags in tags_at.items() for splice in _splices(document, pointer, tags))
    parts, position = [], 0
    for start, end, source in splices:
        parts += [text[position:start], source]
        position = end
    return "".join([*parts, text[position:]])


def _splices(document: TextEdit, pointer: str, tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (start, end, new text) of the change to one object: one item or none."""
    try:
        node = document.node(pointer)
    except NoSuchPlace:
        raise no_such_path(pointer) from None
    if not node.is_object:
        raise InvalidSchema(f"There is no object at {pointer or '/'}, so it can't have tags.")
    source = json.dumps(list(tags), ensure_ascii=False)
    if PROPERTY not in node.keys:
        if not tags:
            return []
        end = node.ends[-1] if node.ends else node.start + 1
        return [(end, end, f"{', ' if node.ends else ''}{json.dumps(PROPERTY)}: {source}")]
    index = node.keys.index(PROPERTY)
    start, end = node.starts[index], node.ends[index]
    if tags:
        return [(start, end, f"{json.dumps(PROPERTY)}: {source}")]
    if index + 1 < len(node.starts):
        return [(start, node.starts[index + 1], "")]
    return [(node.ends[index - 1] if index else start, end, "")]
