"""Tags inside schemas: words at records and fields that say what they hold, such as PII.

A tag is written into the schema's text itself: Avro and JSON Schema keep it under `confluent:tags`, Protobuf in the
option `(confluent.message_meta).tags` or `(confluent.field_meta).tags`. Source: Confluent's public documentation of
data contracts, and how its registry answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

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


def with_any_of(found: Iterable[EntityTags], wanted: Sequence[str]) -> tuple[EntityTags, ...]:
    """The entities that have one of the tags at least; all of them where `*` is among these."""
    return tuple(item for item in found if ANY in wanted or not set(wanted).isdisjoint(item.tags))


def joined(outer: tuple[str, ...], own: Iterable[str]) -> tuple[str, ...]:
    """The tags around a field with its own behind them, each once."""
    return tuple(dict.fromkeys((*outer, *own)))


def _by_entity(items: Iterable[EntityTags]) -> dict[Entity, dict[str, None]]:
    found: dict[Entity, dict[str, None]] = {}
    for item in items:
        found.setdefault(item.entity, {}).update(dict.fromkeys(item.tags))
    return found
