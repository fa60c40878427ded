"""A Debezium connector as a source: its configuration and state, its database's catalog, and its topics.

Configuration and state come from Kafka Connect's REST API.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urlsplit

from django.utils.translation import gettext_noop

from registry.access.egress import parse_connection
from registry.access.http_client import HttpLimits, OutgoingClient
from registry.drift.debezium import rules as change_events
from registry.drift.debezium.catalog import DatabaseConnection, read_catalog
from registry.drift.debezium.connector import ConnectorConfig, ConnectorStatus, read_config, read_status
from registry.drift.debezium.facts import ConnectorFacts, sized
from registry.drift.debezium.filters import NameList, TableFilter
from registry.drift.debezium.judge import judge_debezium, removed_connector, summary_of
from registry.drift.judge import in_order, judge
from registry.drift.judge.model import JudgedFinding
from registry.drift.models import Connector, Source
from registry.drift.rules import topics as topic_rules
from registry.drift.scan.db_retry import retry_while_database_away
from registry.drift.scan_context.connector import captured_by_topic, last_rows_of, topic_facts
from registry.drift.sources.base import (
    BOUNDS_SET,
    WHAT_TO_READ,
    FieldSet,
    OnProgress,
    ScannedTopic,
    ScanResult,
    SourceDraft,
    SourceField,
    note_topics,
)
from registry.drift.sources.kafka import TopicKind, require_any, waits_of
from registry.drift.sources.kafka_connection import connect
from registry.drift.sources.kafka_offsets import backlog_of, read_json
from registry.drift.sources.kafka_passes import observe
from registry.drift.sources.kafka_survey import survey_cluster, topics_after, with_lost_offsets
from registry.errors import InvalidSource, RemoteUnavailable
from registry.observations import Observation, ScanTotals

LIMITS: Final = HttpLimits(connect_seconds=5, read_seconds=10, total_seconds=30, max_bytes=2 * 1024 * 1024)
MAX_CONNECTOR_NAME: Final = 255
NO_TABLES: Final = TableFilter(include=NameList())


class ConnectorNotFound(InvalidSource):
    """Kafka Connect has no connector of that name."""


def read_connector(*, url: str, name: str, user: str = "", secret: str = "") -> tuple[ConnectorConfig, ConnectorStatus]:
    """Return the connector's configuration and status.

    Raises InvalidInput and AddressRefused for the address, InvalidSecret, ConnectorNotFound, InvalidSource if it is of
    another type, RemoteUnavailable if Kafka Connect doesn't answer properly.
    """
    if not name or len(name) > MAX_CONNECTOR_NAME:
        raise InvalidSource(f"A connector name must have 1 to {MAX_CONNECTOR_NAME} characters.")
    connection = parse_connection(url, user=user, secret=secret)
    with OutgoingClient(connection, limits=LIMITS) as client:
        config = _object(client, name, "config")
        status = _object(client, name, "status")
    return read_config({"name": name, **config}), read_status(status)


def _object(client: OutgoingClient, name: str, what: str) -> Mapping[str, Any]:
    where = client.connection.netloc
    response = client.call("GET", f"/connectors/{quote(name, safe='')}/{what}", headers={"Accept": "application/json"})
    if response.status == 404:
        raise ConnectorNotFound(
            f"Kafka Connect at {where} has no connector {name[:80]!r}. Check its name with /connectors."
        )
    if response.status in (401, 403):
        raise RemoteUnavailable(
            f"Kafka Connect at {where} refuses access to {name[:80]!r} ({response.status}). Give a user and a secret.",
            status=response.status,
        )
    if response.status != 200:
        raise RemoteUnavailable(
            f"Kafka Connect at {where} answered {response.status} for the {what} of {name[:80]!r}.",
            status=response.status,
        )
    document = response.json(f"The {what} of {name[:80]!r} at {where}")
    if not isinstance(document, dict):
        raise RemoteUnavailable(f"The {what} of {name[:80]!r} at {where} is not a JSON object.", status=response.status)
    return document


CONNECT_FIELDS: Final = (
    SourceField(
        "connect_url", gettext_noop("Address"), required=True, longest=2048,
        placeholder="https://connect.example.com:8083",
    ),
    SourceField("name", gettext_noop("Connector"), required=True, form_name="connector"),
    SourceField("connect_user", gettext_noop("User")),
    SourceField("connect_secret", gettext_noop("Secret name"), longest=64),
)  # fmt: skip
DATABASE_FIELDS: Final = (
    SourceField("database_host", gettext_noop("Host")),
    SourceField("database_port", gettext_noop("Port"), default=5432, least=1, most=65_535),
    SourceField("database_name", gettext_noop("Database"), longest=63),
    SourceField("database_user", gettext_noop("User"), longest=63),
    SourceField("database_secret", gettext_noop("Secret name"), longest=64),
    SourceField("database_tls", "TLS", default=True),
)
#: the topic rules that also apply to change events: their fields are judged against the table instead
_TOPIC_RULES: Final = frozenset(rule.id for rule in topic_rules.TOPIC_RULES)


def look(connector: Connector) -> ConnectorFacts:
    """Return the current connector and its database's catalog, without topics.

    Raises InvalidSource, InvalidInput, InvalidSecret, AddressRefused, RemoteUnavailable.
    """
    config, status = read_connector(
        url=connector.connect_url, name=connector.name, user=connector.connect_user, secret=connector.connect_secret
    )
    if not connector.database_host:
        return ConnectorFacts(config, status)
    return ConnectorFacts(config, status, read_catalog(_database(connector), config.tables, slot=config.slot))


def _database(connector: Connector) -> DatabaseConnection:
    return DatabaseConnection(
        host=connector.database_host,
        port=connector.database_port,
        database=connector.database_name,
        user=connector.database_user,
        secret=connector.database_secret,
        tls=connector.database_tls,
    )


def _removed(source: Source, connector: Connector) -> ScanResult:
    """Return the finding of a removed connector, with what its slot still retains.

    Nothing else is judged, and no other finding is resolved: what the connector captured isn't known any more.
    """
    last = source.scans.filter(state="done", read__slot__name__isnull=False).order_by("-pk").first()
    name = last.read["slot"]["name"] if last is not None and last.read else ""
    if not (connector.database_host and name):
        sentence = "Its slot is not checked: no scan has read it."
    elif slot := read_catalog(_database(connector), NO_TABLES, slot=name).slots.get(name):
        lag = "an unknown amount" if slot.lag_bytes is None else sized(slot.lag_bytes)
        sentence = f"Its slot {name} is still there and retains the database's log ({lag})."
    else:
        sentence = f"Its slot {name} is gone too, so the changes since are lost to a new connector without a snapshot."
    finding = removed_connector(connector.name, urlsplit(connector.connect_url).netloc, name, sentence)
    return ScanResult(findings=(finding,), read={**read_json((), (), seconds=0), "nothing": True}, complete=False)


def patterns_of(world: ConnectorFacts) -> list[str]:
    """Return shell patterns of the topics to read: those of captured tables, and all with the prefix."""
    routed = [world.topic_of(table.schema, table.name) for table in world.captured]
    begins = f"{world.config.prefix}{world.config.delimiter}"
    return [*sorted({topic for topic in routed if topic and not topic.startswith(begins)}), f"{begins}*"]


class DebeziumConnector(TopicKind):
    """A connector with its tables and topics."""

    name = "debezium"
    label = gettext_noop("Debezium connector")
    rules = change_events.ROWS
    fields = (*CONNECT_FIELDS, *DATABASE_FIELDS)
    config_name = config_noun = "connector"
    is_config_fixed = True
    form = (
        FieldSet(WHAT_TO_READ, ("name", "cluster", "registry", "every_seconds")),
        FieldSet(gettext_noop("Kafka Connect"), CONNECT_FIELDS),
        FieldSet(
            gettext_noop("Database"),
            DATABASE_FIELDS,
            gettext_noop("Optional. With the database, Schemadesk compares tables, registered schemas and events."),
        ),
        BOUNDS_SET,
    )

    def checked_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the connector's fields. Raises InvalidSource."""
        values = super().checked_config(config)
        if values["database_host"] and not (values["database_name"] and values["database_user"]):
            raise InvalidSource("To read the catalog, give database_name and database_user too.")
        return values

    def columns(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return nothing: the fields have their own table."""
        return {}

    def keep_config(self, source: Source, config: Mapping[str, Any]) -> None:
        """Store the connector's row."""
        Connector.objects.create(source=source, **config)

    def check(self, draft: SourceDraft) -> str:
        """Check that the cluster, Kafka Connect and the database answer, and that the connector can be read.

        Raises InvalidSource, InvalidInput, InvalidSecret, AddressRefused, BrokerUnavailable, RemoteUnavailable.
        """
        name = super().check(draft)
        if draft.cluster is None:
            raise InvalidSource("Give the cluster that the connector writes to.")
        connect(draft.cluster)
        look(Connector(**draft.config))
        return name

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read the connector, the catalog and new messages, and judge them together."""
        from registry.drift.scan.offsets import with_offsets
        from registry.drift.scan.personal_data import without_personal
        from registry.drift.scan_context.topics import (  # imported late: it loads all formats
            deleted_in_use,
            memory_of,
            registered_for,
        )

        started = time.monotonic()
        on_progress(0, 0, "reading from Kafka Connect and the database")
        connector = retry_while_database_away(lambda: Connector.objects.filter(source=source).first())
        if connector is None:
            raise InvalidSource(f"Source {source.name} has no connector. Remove the source and add it again.")
        try:
            world = look(connector)
        except ConnectorNotFound:
            return _removed(source, connector)
        on_progress(0, 0, "fetching topics and offsets from the cluster")
        source.include = source.include or patterns_of(world)  # only on this instance, which isn't saved
        survey = retry_while_database_away(lambda: survey_cluster(source))
        retry_while_database_away(lambda: note_topics(source, survey.topics.values()))
        scanned = observe(source, survey.reads, tag=tag, on_progress=on_progress, changes=True) if survey.order else []
        scanned = with_lost_offsets(source, survey, scanned)
        after = topics_after(survey, scanned)
        require_any(source, after)
        on_progress(0, 0, "judging")
        observations = retry_while_database_away(lambda: without_personal(source, scanned))
        registered, memory = retry_while_database_away(
            lambda: (registered_for(source, observations), memory_of(source, survey.order, survey.topics))
        )
        facts = retry_while_database_away(lambda: topic_facts(source, world, survey.topics, observations))
        world = replace(world, topics=facts)
        before = retry_while_database_away(lambda: deleted_in_use(source, after, observations, registered, memory))
        plain = with_offsets(
            source, in_order([*judge(observations, registered, memory), *before]), tag=tag, on_progress=on_progress
        )
        topics = _with_memory(world, after)
        read = read_json(topics, observations, seconds=time.monotonic() - started)
        behind = retry_while_database_away(lambda: backlog_of(source, observations))
        return ScanResult(
            findings=(*judge_debezium(world), *_of_topics(plain)),
            # Connector and catalog were read even if no topic exists yet.
            read={**read, **summary_of(world), "behind": behind, "nothing": False},
            complete=_whole(observations) and not any(topic.problem for topic in topics),
            topics=topics,
            observations=tuple(observations),
            registered=registered,
            waits=waits_of(topics),
        )


def _with_memory(world: ConnectorFacts, scanned: Sequence[ScannedTopic]) -> tuple[ScannedTopic, ...]:
    """Return the topics with what later scans need to know of their events; nothing new of those that weren't read."""
    captured = captured_by_topic(world)
    topics = []
    for topic in scanned:
        if facts := world.topics.get(topic.name):
            last_rows = None if topic.problem else last_rows_of(facts, captured.get(topic.name, ()))
            topics.append(replace(topic, tables=facts.tables, last_rows=last_rows))
        else:
            topics.append(topic)
    return tuple(topics)


def _of_topics(findings: Sequence[JudgedFinding]) -> list[JudgedFinding]:
    return [finding for finding in findings if finding.rule in _TOPIC_RULES]


def _whole(observations: Sequence[Observation]) -> bool:
    return not any(isinstance(observation, ScanTotals) and observation.bound_reached for observation in observations)
