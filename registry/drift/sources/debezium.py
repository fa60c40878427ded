"""A Debezium connector: its configuration and state, its database's catalog, its topics and their schemas, as one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from registry.drift.connecting import connect
from registry.drift.debezium.catalog import DatabaseConnection, read_catalog
from registry.drift.debezium.connect import read_connector
from registry.drift.debezium.facts import World
from registry.drift.debezium.judging import judge_debezium
from registry.drift.debezium.summary import summary_of
from registry.drift.judge import judge
from registry.drift.judge.model import JudgedFinding
from registry.drift.models import Connector, Source
from registry.drift.patience import patiently
from registry.drift.rule_tables import topics as topic_rules
from registry.drift.sources.backlog import behind_of
from registry.drift.sources.base import Given, OnProgress, ScanResult
from registry.drift.sources.debezium_facts import topic_facts
from registry.drift.sources.kafka import require_any, survey_cluster, topics_after, waits_of, with_lost_offsets
from registry.drift.sources.kafka_passes import observe
from registry.drift.sources.kafka_read import read_json
from registry.drift.topics import note_topics
from registry.errors import InvalidSource
from registry.observations import Observation, ScanTotals

MAX_NAME: Final = 1024
#: what a connector's row takes, with the default of each
FIELDS: Final[Mapping[str, Any]] = {
    "connect_url": "",
    "connect_user": "",
    "connect_secret": "",
    "name": "",
    "database_host": "",
    "database_port": 5432,
    "database_name": "",
    "database_user": "",
    "database_secret": "",
    "database_tls": True,
}
#: of the judgement of topics, what holds for change events too: their fields are judged against the table instead
_TOPIC_RULES: Final = frozenset(rule.id for rule in topic_rules.ROWS)


def checked_connector(given: Mapping[str, Any]) -> Connector:
    """An unsaved row of those fields (the names are those of FIELDS), once both its ends have answered.

    Raises InvalidSource, InvalidInput, InvalidSecret, AddressRefused, RemoteUnavailable.
    """
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise InvalidSource(f"A connector has no setting {unknown[0][:40]!r}; it has {', '.join(FIELDS)}.")
    values = {**FIELDS, **given}
    for name, default in FIELDS.items():
        if type(values[name]) is not type(default):
            raise InvalidSource(f"{name} of a connector is {_a(default)}.")
    row = Connector(**values)
    if not row.connect_url or not row.name:
        raise InvalidSource("Give the address of Kafka Connect (connect_url) and the connector's name.")
    if row.database_host and not (row.database_name and row.database_user):
        raise InvalidSource("To read the catalog, give database_name and database_user too.")
    look(row)
    return row


def _a(default: object) -> str:
    return {str: "text", int: "a whole number", bool: "true or false"}[type(default)]


def look(connector: Connector) -> World:
    """The connector and its database's catalog, as they are now; topics apart.

    Raises InvalidSource, InvalidInput, InvalidSecret, AddressRefused, RemoteUnavailable.
    """
    config, status = read_connector(
        url=connector.connect_url, name=connector.name, user=connector.connect_user, secret=connector.connect_secret
    )
    if not connector.database_host:
        return World(config, status)
    database = DatabaseConnection(
        host=connector.database_host,
        port=connector.database_port,
        database=connector.database_name,
        user=connector.database_user,
        secret=connector.database_secret,
        tls=connector.database_tls,
    )
    return World(config, status, read_catalog(database, config.tables, slot=config.slot))


def patterns_of(world: World) -> list[str]:
    """The topics to read, as shell patterns: those of the captured tables, and all that begin with the prefix."""
    routed = [world.topic_of(table.schema, table.name) for table in world.captured]
    begins = f"{world.config.prefix}{world.config.delimiter}"
    return [*sorted({topic for topic in routed if topic and not topic.startswith(begins)}), f"{begins}*"]


class DebeziumConnector:
    """A connector with its tables and topics."""

    def check(self, given: Given) -> str:
        """The cluster, Kafka Connect and the database answer, and the connector is one that can be read.

        Raises InvalidSource, InvalidInput, InvalidSecret, AddressRefused, BrokerUnavailable, RemoteUnavailable.
        """
        if not given.name.strip() or len(given.name) > MAX_NAME or not given.name.isprintable():
            raise InvalidSource(f"Give the source a name: 1 to {MAX_NAME} printable characters.")
        if given.cluster is None:
            raise InvalidSource("Name the cluster whose topics the connector writes.")
        connect(given.cluster)
        checked_connector(given.connector)
        return given.name.strip()

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read connector, catalog and what is new in the topics, and judge them together."""
        from registry.drift.knowledge import memory_of, registered_for  # late: it loads all formats
        from registry.drift.personal import without_personal

        started = time.monotonic()
        on_progress(0, 0, "asking Kafka Connect and the database")
        connector = patiently(lambda: Connector.objects.filter(source=source).first())
        if connector is None:
            raise InvalidSource(f"The source {source.name} has no connector; remove it and add it again.")
        world = look(connector)
        on_progress(0, 0, "asking the cluster for topics and offsets")
        source.include = source.include or patterns_of(world)  # of this instance alone: it isn't saved
        survey = patiently(lambda: survey_cluster(source))
        patiently(lambda: note_topics(source, survey.topics.values()))
        seen = observe(source, survey.reads, tag=tag, on_progress=on_progress, changes=True) if survey.order else []
        seen = with_lost_offsets(source, survey, seen)
        after = topics_after(survey, seen)
        require_any(source, after)
        on_progress(0, 0, "judging")
        observations = patiently(lambda: without_personal(source, seen))
        registered, memory = patiently(lambda: (registered_for(source, observations), memory_of(source, survey.order)))
        facts = patiently(lambda: topic_facts(source, world, survey.topics, observations))
        world = replace(world, topics=facts)
        plain = judge(observations, registered, memory)
        topics = tuple(replace(each, tables=facts[each.name].tables) if each.name in facts else each for each in after)
        read = read_json(topics, observations, seconds=time.monotonic() - started)
        behind = patiently(lambda: behind_of(source, observations))
        return ScanResult(
            findings=(*judge_debezium(world), *_of_topics(plain)),
            # Connector and catalog were read even where no topic is there yet.
            read={**read, **summary_of(world), "behind": behind, "nothing": False},
            complete=_whole(observations) and not any(each.problem for each in topics),
            topics=topics,
            observations=tuple(observations),
            registered=registered,
            waits=waits_of(topics),
        )


def _of_topics(found: Sequence[JudgedFinding]) -> list[JudgedFinding]:
    return [each for each in found if each.rule in _TOPIC_RULES]


def _whole(observations: Sequence[Observation]) -> bool:
    return not any(isinstance(seen, ScanTotals) and seen.bound_reached for seen in observations)
