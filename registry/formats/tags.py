"""Tags in schemas: words at records and fields that say what they hold, such as PII; and writing them into JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.errors import InvalidSchema
from registry.formats.json_edit import NoSuchPlace, TextEdit

#: the property under which JSON texts keep tags
PROPERTY: Final = "confluent:tags"
RECORD: Final = "sr_record"
FIELD: Final = "sr_field"
#: what the wildcard of a search stands for
ANY: Final = "*"

Kind = Literal["sr_record", "sr_field"]
#: a record or a field: its kind and its path with dots, without one at the beginning
Entity = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class EntityTags:
    """The tags of a record or a field, `path` being its full name with dots."""

    kind: Kind
    path: str
    tags: tuple[str, ...]

    @property
    def entity(self) -> Entity:
        """What is tagged; a dot at the beginning of the path says nothing."""
        return self.kind, self.path.removeprefix(".")


@dataclass(frozen=True, slots=True)
class TagChange:
    """What is to happen to the tags of one entity: first those to add, then those to remove."""

    entity: Entity
    add: tuple[str, ...]
    remove: tuple[str, ...]

    def apply(self, tags: Sequence[str]) -> tuple[str, ...]:
        """The tags after it: each once, the new ones behind the others."""
        return tuple(tag for tag in dict.fromkeys((*tags, *self.add)) if tag not in self.remove)


def changes_of(add: Iterable[EntityTags], remove: Iterable[EntityTags]) -> tuple[TagChange, ...]:
    """One change an entity, in the order in which the entities are named."""
    added, removed = _by_entity(add), _by_entity(remove)
    return tuple(
        TagChange(entity, tuple(added.get(entity, ())), tuple(removed.get(entity, ())))
        for entity in dict.fromkeys((*added, *removed))
    )


def with_any_of(entities: Iterable[EntityTags], tags: Sequence[str]) -> tuple[EntityTags, ...]:
    """The entities that have one of the tags at least; all of them where `*` is among these."""
    return tuple(item for item in entities if ANY in tags or not set(tags).isdisjoint(item.tags))


def joined(outer: tuple[str, ...], own: Iterable[str]) -> tuple[str, ...]:
    """The tags around a field with its own behind them, each once."""
    return tuple(dict.fromkeys((*outer, *own)))


def _by_entity(items: Iterable[EntityTags]) -> dict[Entity, dict[str, None]]:
    tags: dict[Entity, dict[str, None]] = {}
    for item in items:
        tags.setdefault(item.entity, {}).update(dict.fromkeys(item.tags))
    return tags


def tags_in(properties: Any) -> tuple[str, ...]:
    """The tags of an object of a schema, each once; what is no text stands as JSON writes it."""
    tags = properties.get(PROPERTY) if isinstance(properties, Mapping) else None
    if not isinstance(tags, list | tuple):
        return ()
    return tuple(dict.fromkeys(tag if isinstance(tag, str) else json.dumps(tag, default=str) for tag in tags))


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
    """Start, end and new text of what changes for one object: one end or none."""
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
