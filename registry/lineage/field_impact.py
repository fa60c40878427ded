"""What breaks if a field is removed, renamed or changed in type, with its path: where it comes from and who uses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.access.permission_filters import READ, extent_of
from registry.access.roles import Actor, require
from registry.drift.debezium.last_rows import LastRows
from registry.drift.models import Connector, Topic
from registry.drift.usage.subject_topics import carrying_topics, own_topics
from registry.formats import format_of
from registry.formats.assessment import ClientAnswer, Dependant
from registry.formats.base import Answer, FieldEdit, OutlineField
from registry.lineage.field_edits import (
    EditedField,
    EditedSchema,
    EditEffect,
    EffectAnswer,
    ImpactRow,
    direction_rows,
    edited_field,
    level_rows,
)
from registry.lineage.graph import subject_node, topic_node
from registry.promotions.selectors import open_requests_of
from registry.streams.models import CarriedVersion
from registry.streams.spark_shapes import spark_shape
from registry.streams.subject_usage import NOT_CHECKED, QueryReader, readers_of, restart_effect, state_carriers
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry
from registry.subjects.references.reference_graph import Referrers, referrers_of
from registry.subjects.usage.clients import (
    ClientInfo,
    client_answers,
    clients_of,
    is_part_of_field,
    versions_of_clients,
)
from registry.subjects.versions.qualified_names import SubjectName

_ANSWERS: dict[Answer, EffectAnswer] = {"no": "breaks", "differs": "care", "unknown": "unknown", "yes": "fine"}
_CODE = "Whether its code uses the field is not known."
#: a client that reads and writes is two nodes
_SIDES = ("producer", "consumer")


@dataclass(frozen=True)
class FieldImpact:
    """What edits of a field of the newest version do. `level` is the effective one, `edits` has their titles.

    `also` are other paths with the same declaration. `hidden` counts what the reader may not see, `unchecked` says what
    wasn't looked at.
    """

    registry: str
    subject: str
    version: int
    path: str
    level: str
    edits: Mapping[FieldEdit, str]
    rows: tuple[ImpactRow, ...]
    also: tuple[str, ...] = ()
    hidden: int = 0
    unchecked: tuple[str, ...] = ()

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes of the lineage on the field's path."""
        both = {f"{side}:{self.registry}:{row.name}" for row in self.rows if row.kind in _SIDES for side in _SIDES}
        sinks = {f"sink:{row.key}" for row in self.rows if row.kind == "query"}
        return frozenset({row.node for row in self.rows if row.node} | both | sinks)


def field_impact(registry: Registry, subject: SubjectName, path: str, *, by: Actor) -> FieldImpact:
    """Return what edits of the field do, in a constant number of queries.

    Raises NotAllowed, SubjectNotFound, NotFound, InvalidSchema, InvalidReference, Unavailable.
    """
    require(by, READ, registry=registry.name, subject=subject.qualified)
    edited = edited_field(registry, subject, path)
    users = FieldUsers(registry, subject, edited, by, extent_of(by, READ).has_all_of(registry.name))
    rows = (*direction_rows(edited), *level_rows(edited), *users.rows())
    also = tuple(dict.fromkeys(item.path for item in edited.outline if _is_same(item, edited.row)))
    return FieldImpact(
        registry=registry.name,
        subject=subject.qualified,
        version=edited.history[-1][0],
        path=path,
        level=edited.config.level,
        edits={item.edit: item.title for item in edited.edits},
        rows=rows,
        also=also,
        hidden=users.hidden,
        unchecked=(*_unread(edited), *users.unchecked),
    )


def _is_same(other: OutlineField, row: OutlineField) -> bool:
    return bool(row.entity) and other.entity == row.entity and other.path != row.path


def _unread(edited: EditedField) -> Iterator[str]:
    if edited.unread:
        listed = ", ".join(map(str, edited.unread[:8])) + (" …" if len(edited.unread) > 8 else "")
        yield f"Versions that were not checked: {listed}."


class FieldUsers:
    """Reads who has the field; `is_whole` says whether the actor may read the whole registry, as queries require.

    `hidden` and `unchecked` are complete after `rows`.
    """

    def __init__(
        self, registry: Registry, subject: SubjectName, edited: EditedField, by: Actor, is_whole: bool
    ) -> None:
        self.registry, self.subject, self.edited, self.by, self.is_whole = registry, subject, edited, by, is_whole
        self.hidden = 0
        self.unchecked: list[str] = []

    def rows(self) -> tuple[ImpactRow, ...]:
        """Return the rows in the direction of the flow."""
        clients = list(self._clients())
        own = ImpactRow(
            "subject", self.subject.qualified, node=subject_node(self.registry.name, self.subject.qualified)
        )
        return (
            *self._sources(),
            *(row for row in clients if row.kind == "producer"),
            own,
            *self._referrers(),
            *self._queries(),
            *(row for row in clients if row.kind == "consumer"),
            *self._requests(),
        )

    # -- where it comes from -------------------------------------------------------------------------------------------

    def _sources(self) -> Iterator[ImpactRow]:
        topics = [topic for topic in own_topics(self.registry, self.subject) if topic.gone_at is None]
        connectors = dict(
            Connector.objects.filter(source__in={topic.source_id for topic in topics}).values_list("source", "name")
        )
        if not self.is_whole:
            self.hidden += len(connectors)
            connectors = {}
        for topic in topics:
            if topic.source_id in connectors:
                yield from self._tables(topic)
        for source, name in connectors.items():
            sentence = "It writes what the table has: change the column there first."
            yield ImpactRow("connector", name, evidence=sentence, node=f"connector:{source}", key=str(source))
        for carrier in carrying_topics(topics, self.subject):
            naming = "a scan found the subject in its messages" if carrier.is_found else "by its name only"
            key = str(carrier.source) if self.is_whole else ""
            node = topic_node(self.registry.name, carrier.name)
            yield ImpactRow("topic", carrier.name, evidence=f"{carrier.side}, {naming}", node=node, key=key)

    def _tables(self, topic: Topic) -> Iterator[ImpactRow]:
        columns = LastRows.read(topic.last_rows).columns
        for parts in topic.tables:
            name = ".".join(map(str, parts))
            names = set(columns.names.values()) if columns and name.endswith(columns.table) else None
            node = f"table:{topic.source_id}:{name}"
            yield ImpactRow("table", name, evidence=self._column(names), node=node, key=str(topic.source_id))

    def _column(self, names: set[str] | None) -> str:
        """Say which column the field is, by its name."""
        parts = self.edited.names
        is_row = len(parts) > 1 and parts[0] in ("before", "after")
        column = parts[1] if is_row else parts[0]
        if names is None:
            return f"Whether the table has a column {column} is not known."
        if column in names:
            return f"Column {column}, as of the last scan."
        return f"No column {column}, as of the last scan: the connector makes the field, or renames a column."

    # -- who uses it ---------------------------------------------------------------------------------------------------

    def _each(self, effect: Any) -> tuple[EditEffect, ...]:
        """Return the effect of each edit, unknown for one that can't be made."""
        return tuple(item.unknown if item.schema is None else effect(item) for item in self.edited.edits)

    def _clients(self) -> Iterator[ImpactRow]:
        clients = clients_of(self.registry, self.subject)
        if not clients:
            self.unchecked.append("No clients are declared, so it is unknown which programs use the field.")
            return
        versions = versions_of_clients(self.registry, {self.subject: clients}).get(self.subject, {})
        answers = {
            item.edit: {answer.name: answer for answer in client_answers(clients, versions, item.schema)}
            for item in self.edited.edits
            if item.schema is not None
        }
        for client in clients:
            effects = self._each(lambda item: self._on_client(client, item, answers[item.edit][client.name]))  # noqa: B023
            uses = [path for path in client.fields if is_part_of_field(self.edited.path, path)]
            if client.fields and not uses and all(effect.answer == "fine" for effect in effects):
                continue
            fields = f"uses {', '.join(uses[:5])}" if uses else "lists no fields" if not client.fields else ""
            kind = "consumer" if client.reads else "producer"
            evidence = ", ".join(filter(None, (client.does, fields)))
            node = f"{kind}:{self.registry.name}:{client.name}"
            yield ImpactRow(kind, client.name, effects, evidence, node, self.subject.qualified)  # type: ignore[arg-type]

    def _on_client(self, client: ClientInfo, item: EditedSchema, answer: ClientAnswer) -> EditEffect:
        if answer.answer == "yes" and client.reads and not client.fields:
            return item.effect("unknown", "It can read the data. It lists no fields, so it may use this one.")
        return item.effect(_ANSWERS[answer.answer], "" if answer.answer == "yes" else f"It {answer.message}.")

    def _referrers(self) -> Iterator[ImpactRow]:
        referrers: Referrers = referrers_of(self.registry, self.subject, by=self.by)
        self.hidden += referrers.hidden
        if referrers.more:
            self.unchecked.append(f"Subjects that refer to this one and were not checked: {referrers.more}.")
        if not referrers.rows:
            return
        references = schema_engine.references_of(self.edited.schema)
        answers: dict[str, dict[str, Dependant]] = {
            item.edit: {answer.subject: answer for answer in referrers.against(item.schema, references)}
            for item in self.edited.edits
            if item.schema is not None
        }
        for row, _, _ in referrers.rows:
            name = SubjectName(row.subject.context.name, row.subject.name).qualified
            effects = self._each(lambda item: self._on_referrer(item, answers[item.edit][name]))  # noqa: B023
            evidence = (
                f"version {row.version} refers to this subject; nothing changes until it refers to the new version"
            )
            yield ImpactRow("subject", name, effects, evidence, subject_node(self.registry.name, name), name)

    @staticmethod
    def _on_referrer(item: EditedSchema, answer: Dependant) -> EditEffect:
        return item.effect(_ANSWERS[answer.answer], f"{answer.message[:1].upper()}{answer.message[1:]}.")

    def _queries(self) -> Iterator[ImpactRow]:
        readers = readers_of(self.registry, self.subject, most=None)
        if not self.is_whole:
            self.hidden += len(readers)
            return
        for reader in readers:
            yield self._query(reader)
        carriers = state_carriers(self.registry, [self.subject])
        for row in carriers:
            if self.edited.names[0] in row.fields:
                yield self._state(row)

    def _query(self, reader: QueryReader) -> ImpactRow:
        evidence = f"reads {', '.join(reader.topics[:5])}" if reader.topics else "its state has fields of the subject"
        effects = self._each(lambda item: item.effect("unknown", _CODE))
        return ImpactRow("query", reader.name, effects, evidence, f"query:{reader.id}", str(reader.id))

    def _state(self, row: CarriedVersion) -> ImpactRow:
        variable, has_rows = row.schema.variable, format_of(self.edited.schema.schema_type).has_spark_rows
        effects = self._each(lambda item: self._on_state(row, item, has_rows=has_rows))
        evidence = f"its value {f'at {row.path} ' if row.path else ''}has the fields of version {row.version}"
        key = f"{variable.query_id}/{variable.pk}"
        return ImpactRow("state", variable.label, effects, evidence, f"state:{variable.pk}", key)

    @staticmethod
    def _on_state(row: CarriedVersion, item: EditedSchema, *, has_rows: bool) -> EditEffect:
        shape = spark_shape(item.schema.canonical) if item.schema is not None and has_rows else None
        effect, sentence = restart_effect(row, shape)
        if effect in ("", NOT_CHECKED):
            return item.effect("unknown", sentence or f"The state can follow. {_CODE}")
        return item.effect("care" if effect == "loses data" else "breaks", sentence)

    def _requests(self) -> Sequence[ImpactRow]:
        requests = open_requests_of([self.subject], self.by)
        if self.subject not in requests:
            return ()
        number = requests[self.subject]
        if number is None:
            self.hidden += 1
            return ()
        return (ImpactRow("request", str(number), evidence="open for this subject", key=str(number)),)
