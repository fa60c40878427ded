"""The facts that a connector is judged by, and the construction of findings from rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from registry.drift.debezium.connector import ConnectorConfig, ConnectorStatus
from registry.drift.debezium.last_rows import LastRows
from registry.drift.debezium.row_schemas import SchemaText
from registry.drift.debezium.tables import Catalog, Table, topic_name
from registry.observations import ChangeEvents, Side


@dataclass(frozen=True)
class Guard:
    """What a new schema of a subject must pass: its level and mode, and the texts of its live versions, ascending.

    `is_cut`: older versions are missing. `is_closed`: its registry changes only by releases.
    """

    level: str
    history: tuple[str, ...]
    is_cut: bool = False
    mode: str = "READWRITE"
    is_closed: bool = False

    @property
    def refusal(self) -> str:
        """Return why every new schema is rejected; empty if the level decides."""
        if self.is_closed:
            return "The registry changes only by releases."
        return "The mode rejects new schemas." if self.mode.startswith("READONLY") else ""


@dataclass(frozen=True)
class TopicFacts:
    """The facts of one topic.

    `registered` has the newest live version by side, `subjects` the qualified name of its subject, and `guards` the
    checks that a new version must pass. `event_schemas` are the newest schemas in the events of any scan, by side. `null_keys` and
    `tombstones` count messages of this scan. `nulls_are_newest` is true if no message with a key follows the last one
    without. `tables` are the tables whose changes the topic carried in any scan, or should carry, as (database, schema,
    table). `last_rows` are the newest events of any scan, but the columns of their table as of earlier scans.
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
    event_schemas: Mapping[Side, SchemaText] = field(default_factory=dict)
    changes: tuple[ChangeEvents, ...] = ()
    tables: tuple[tuple[str, str, str], ...] = ()
    last_rows: LastRows = field(default_factory=LastRows)

    def count(self, operations: str) -> int:
        """Return the number of events with one of the operations."""
        return sum(events.span.messages for events in self.changes if events.op in operations)

    @property
    def lost_its_key(self) -> bool:
        """Return whether the newest rows have no key; truncates never have one, and aren't rows."""
        return self.nulls_are_newest and self.count("cudr") > 0 and self.null_keys > self.count("t")

    @property
    def key_changes(self) -> int:
        """Return the number of changed primary keys: each change is a delete, a tombstone and a create."""
        deletes = sum(events.newkey for events in self.changes if events.op == "d")
        creates = sum(events.oldkey for events in self.changes if events.op == "c")
        # A scan may start or end between the messages of one change.
        return max(deletes, creates)


@dataclass(frozen=True)
class ConnectorFacts:
    """A connector, its database's catalog (None if it isn't read), and its topics by name."""

    config: ConnectorConfig
    status: ConnectorStatus
    catalog: Catalog | None = None
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)

    @property
    def captured(self) -> list[Table]:
        """Return the captured tables, without those whose filter isn't understood."""
        if self.catalog is None:
            return []
        return [table for table in self.catalog.tables if self.config.tables.takes(table.schema, table.name)]

    def topic_of(self, schema: str, table: str) -> str | None:
        """Return a table's topic after the transforms; None if one of them isn't understood."""
        return self.config.topic_after(self.raw_topic_of(schema, table))

    def raw_topic_of(self, schema: str, table: str) -> str:
        """Return a table's topic before the transforms; the names of its schemas derive from it."""

        return topic_name(self.config.delimiter.join((self.config.prefix, schema, table)))

    def published_as(self, table: Table) -> str | None:
        """Return the table under whose name the publication publishes a table's changes; None if it publishes none.

        It is the table itself, or a partitioned table that it is a partition of. Without a catalog or a publication in
        it, the table itself is assumed.
        """
        publication = self.catalog.publications.get(self.config.publication) if self.catalog is not None else None
        if publication is None or self.config.plugin != "pgoutput":  # the other plugins don't use publications
            return table.full_name
        if publication.name in table.publications:
            return table.full_name
        return next((name for name in table.ancestors if name in publication.tables), None)


MAX_NAMED = 6


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return `a`, `a and b` or `a, b and c`; for many, the first few and the number of the others."""
    shown = list(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        shown.append(f"{len(names) - MAX_NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}" if shown else ""


def counted(number: int, noun: str = "message") -> str:
    """Return `1 message`, `2,000 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sized(number: int) -> str:
    """Return bytes for people: `900 B`, `1.2 GiB`."""
    size, unit = float(number), "B"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, bigger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
