"""All that a judgement of a connector is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from registry.drift.debezium.connector import ConnectorConfig, ConnectorStatus
from registry.drift.debezium.names import topic_name
from registry.drift.debezium.reading import SchemaText
from registry.drift.debezium.tables import Catalog, Table
from registry.observations import ChangeEvents, FieldProfile, Side


@dataclass(frozen=True)
class Guard:
    """What a new schema of a subject has to pass: its level, and the texts of its live versions, ascending."""

    level: str
    history: tuple[str, ...]


@dataclass(frozen=True)
class TopicFacts:
    """What is known of one topic.

    `registered` is the newest live version by side, `subjects` its subject's qualified name, `guards` what a new
    version has to pass. `seen` is the newest schema that the events carry, by side. `null_keys` and `tombstones` count
    messages of this scan; `nulls_are_newest` says that no key came after the last message without one. `tables` are
    those whose changes the topic carried in any scan, or was to carry, as (database, schema, table).
    """

    topic: str
    partitions: int = 0
    compacted: bool = False
    messages: int = 0
    null_keys: int = 0
    tombstones: int = 0
    nulls_are_newest: bool = False
    subjects: Mapping[Side, str] = field(default_factory=dict)
    registered: Mapping[Side, SchemaText] = field(default_factory=dict)
    guards: Mapping[Side, Guard] = field(default_factory=dict)
    seen: Mapping[Side, SchemaText] = field(default_factory=dict)
    profiles: tuple[FieldProfile, ...] = ()
    changes: tuple[ChangeEvents, ...] = ()
    tables: tuple[tuple[str, str, str], ...] = ()

    def count(self, operations: str) -> int:
        """How many events have one of the operations."""
        return sum(each.span.messages for each in self.changes if each.op in operations)

    @property
    def lost_its_key(self) -> bool:
        """Whether the newest rows came without a key; truncates never have one, and are no rows."""
        return self.nulls_are_newest and self.count("cudr") > 0 and self.null_keys > self.count("t")

    @property
    def key_changes(self) -> int:
        """Changes of a primary key: each is a delete, a tombstone and a create, and counts once."""
        deletes = sum(each.newkey for each in self.changes if each.op == "d")
        creates = sum(each.oldkey for each in self.changes if each.op == "c")
        # A scan may begin or end between the messages of one change.
        return max(deletes, creates)


@dataclass(frozen=True)
class World:
    """A connector, its database's catalog (None where it isn't read), and its topics by name."""

    config: ConnectorConfig
    status: ConnectorStatus
    catalog: Catalog | None = None
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)

    @property
    def captured(self) -> list[Table]:
        """The tables that the connector captures; those that nobody can tell aren't among them."""
        if self.catalog is None:
            return []
        return [table for table in self.catalog.tables if self.config.tables.takes(table.schema, table.name)]

    def topic_of(self, schema: str, table: str) -> str | None:
        """The topic of a table after the transforms; None where one of them isn't understood."""
        return self.config.topic_after(self.raw_topic_of(schema, table))

    def raw_topic_of(self, schema: str, table: str) -> str:
        """The topic of a table before the transforms, of which its schemas have their names."""

        return topic_name(self.config.delimiter.join((self.config.prefix, schema, table)))
