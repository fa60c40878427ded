"""The lineage of all that a person may read, from rows that scans, programs and people left; nothing is guessed.

Topics, queries and connectors are read with their whole registry. People who may read only some subjects see these
subjects, their topics and their clients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Final

from registry.access.permission_filters import READ, Extent, require_extent
from registry.access.roles import Actor
from registry.lineage import rows
from registry.lineage.graph import HEALTH, Lineage, LineageEdge, LineageNode, lineage_of, subject_node, topic_node
from registry.lineage.rows import (
    LineageClient,
    LineageConnector,
    LineageHealth,
    LineageInput,
    LineageQuery,
    LineageSubject,
    LineageTopic,
    Named,
)

#: a version is in use if it is in the newest message, or in one up to this time before
IN_USE: Final = timedelta(days=1)


def read_lineage(by: Actor, *, registry: str = "") -> Lineage:
    """Return everything that the actor may read, in a registry or in all; twelve queries for any number of rows.

    Raises NotSignedIn, NotAllowed.
    """
    extent = require_extent(by, READ, registry=registry)
    topics, clients, inputs = list(rows.topics(extent)), list(rows.clients(extent)), list(rows.inputs(extent))
    mentioned = {name for topic in topics for name, _, _ in topic.subjects}
    mentioned |= {(client.registry, client.subject) for client in clients}
    mentioned |= {(row.registry, row.subject) for row in inputs if row.subject}
    builder = _LineageBuilder(extent, rows.open_health(extent), rows.subjects(extent, mentioned))
    builder.add_topics(topics)
    builder.add_connectors(rows.connectors(extent), topics)
    builder.add_queries(rows.queries(extent), inputs)
    for number, label, registry_name, query, scanned_at in rows.variables(extent):
        key = f"{query}/{number}"
        builder.add(LineageNode(f"state:{number}", "state", label, registry_name, key, seen_at=scanned_at))
        builder.link(f"query:{query}", f"state:{number}", "state", scanned_at)
    builder.add_sinks(rows.sinks(extent))
    builder.add_clients(clients)
    return builder.graph()


class _LineageBuilder:
    """Collects nodes and edges. Subjects become nodes last, when their topics are known."""

    def __init__(self, extent: Extent, health: LineageHealth, subjects: dict[Named, LineageSubject]) -> None:
        self.extent, self.health, self.subjects = extent, health, subjects
        self.nodes: dict[str, LineageNode] = {}
        self.edges: list[LineageEdge] = []
        self.topic_ids: dict[Named, list[str]] = defaultdict(list)
        self.ids_by_cluster: dict[tuple[str, int | None, str], str] = {}
        self.uses: dict[Named, list[tuple[int, datetime]]] = defaultdict(list)

    def add(self, node: LineageNode) -> None:
        """Add a node; one that is already there keeps its values, with the worse health and the later time."""
        before = self.nodes.get(node.id)
        if before is not None:
            seen_at = max((item.seen_at for item in (before, node) if item.seen_at), default=None)
            node = replace(before, health=min(before.health, node.health, key=HEALTH.index), seen_at=seen_at)
        self.nodes[node.id] = node

    def link(
        self, source: str, target: str, evidence: str, seen_at: datetime | None, versions: Iterable[int] = ()
    ) -> None:
        """Add an edge."""
        self.edges.append(LineageEdge(source, target, evidence, seen_at, tuple(sorted(set(versions)))))

    def add_topics(self, topics: Iterable[LineageTopic]) -> None:
        """Add topics with their subjects; one that several sources of a cluster read is one node."""
        for topic in topics:
            readable = [item for item in topic.subjects if item[0] in self.subjects]
            if not readable and not self.extent.has_all_of(topic.registry):
                continue
            number = self._topic_id(topic.registry, topic.cluster, topic.name)
            health = self.health.topics.get(topic.pk) or ("ok" if topic.read_at else "not scanned")
            key = str(topic.source) if self.extent.has_all_of(topic.registry) else ""
            node = LineageNode(number, "topic", topic.name, topic.registry, key, health=health, seen_at=topic.read_at)
            self.add(node)
            for name, side, is_found in readable:
                uses = self._uses(topic, name, side)
                self.uses[name] += uses
                seen_at = max((time for _, time in uses), default=topic.read_at) if is_found else None
                evidence = "messages" if is_found else "name"
                self.link(number, subject_node(*name), evidence, seen_at, _in_use(uses))

    def _topic_id(self, registry: str, cluster: int | None, name: str) -> str:
        """Return the id of a topic; the second of a name, in another cluster, has the cluster's number."""
        number = self.ids_by_cluster.get((registry, cluster, name))
        if number is None:
            listed = self.topic_ids[registry, name]
            number = topic_node(registry, name) + (f"@{cluster}" if listed else "")
            self.ids_by_cluster[registry, cluster, name] = number
            listed.append(number)
        return number

    def _uses(self, topic: LineageTopic, name: Named, side: str) -> list[tuple[int, datetime]]:
        """Return the subject's versions in a topic's messages, each with the time of the newest; ids are a context's."""
        if rows.parts_of(name[1])[0] != topic.context:
            return []
        versions = self.subjects[name].versions
        seen = ((use, versions.get(use.schema_id)) for use in topic.uses if use.side == side)
        return [(numbers[-1], use.last_time) for use, numbers in seen if numbers]

    def add_connectors(self, connectors: Iterable[LineageConnector], topics: Iterable[LineageTopic]) -> None:
        """Add connectors with their tables and topics."""
        by_source = defaultdict[int, list[LineageTopic]](list)
        for topic in topics:
            by_source[topic.source].append(topic)
        for row in connectors:
            connector, topics_of = f"connector:{row.source}", by_source[row.source]
            health = self.health.sources.get(row.source) or ("ok" if row.is_scanned else "not scanned")
            unknowns = () if any(topic.tables for topic in topics_of) else ("tables",)
            self.add(
                LineageNode(
                    connector, "connector", row.name, row.registry, str(row.source), health=health, unknowns=unknowns
                )
            )
            for topic in topics_of:
                number = self._topic_id(topic.registry, topic.cluster, topic.name)
                self.link(connector, number, "connector" if topic.tables else "name", topic.read_at)
                for name in topic.tables:
                    table = f"table:{row.source}:{name}"
                    self.add(LineageNode(table, "table", name, row.registry, str(row.source), seen_at=topic.read_at))
                    self.link(table, connector, "connector", topic.read_at)

    def add_queries(self, queries: Iterable[LineageQuery], inputs: Iterable[LineageInput]) -> None:
        """Add queries with what they read; a checkpoint names topics, but neither their cluster nor the sink."""
        by_query = defaultdict[int, list[LineageInput]](list)
        for row in inputs:
            by_query[row.query].append(row)
        for query in queries:
            number, sources = f"query:{query.pk}", by_query[query.pk]
            name = PurePosixPath(query.path).name or query.path
            health = self.health.sources.get(query.source) or "ok"
            unknowns = ("sink",) if sources else ("sources", "sink")
            self.add(
                LineageNode(
                    number,
                    "query",
                    name,
                    query.registry,
                    str(query.pk),
                    health=health,
                    unknowns=unknowns,
                    seen_at=query.scanned_at,
                )
            )
            for row in sources:
                self._link_input(number, row, query.scanned_at)

    def _link_input(self, query: str, row: LineageInput, scanned_at: datetime) -> None:
        topics = self.topic_ids[row.registry, row.topic]
        if not topics:
            number = self._topic_id(row.registry, None, row.topic)
            self.add(LineageNode(number, "topic", row.topic, row.registry, health="not scanned"))
        name = (row.registry, row.subject)
        if name not in self.subjects:
            for topic in topics:
                self.link(topic, query, "checkpoint", scanned_at)
            return
        self.link(subject_node(*name), query, "checkpoint", scanned_at)
        if len(topics) == 1:
            self.link(topics[0], subject_node(*name), "checkpoint", scanned_at)

    def add_sinks(self, sinks: Iterable[tuple[int, str, str, datetime]]) -> None:
        """Add what the queries' descriptions name as their sink."""
        for query, registry, name, sent_at in sinks:
            number = f"query:{query}"
            if name.strip() and number in self.nodes:
                unknowns = tuple(code for code in self.nodes[number].unknowns if code != "sink")
                self.nodes[number] = replace(self.nodes[number], unknowns=unknowns)
                self.add(LineageNode(f"sink:{query}", "sink", name, registry, str(query), seen_at=sent_at))
                self.link(number, f"sink:{query}", "description", sent_at)

    def add_clients(self, clients: Iterable[LineageClient]) -> None:
        """Add declared clients: one that writes as a producer, one that reads as a consumer, one that does as both."""
        for client in clients:
            subject = (client.registry, client.subject)
            versions = () if client.version is None else (client.version,)
            for kind in [*["producer"] * client.writes, *["consumer"] * client.reads]:
                number = f"{kind}:{client.registry}:{client.name}"
                self.add(
                    LineageNode(number, kind, client.name, client.registry, client.subject, seen_at=client.seen_at)
                )
                flow = (number, subject_node(*subject)) if kind == "producer" else (subject_node(*subject), number)
                self.link(*flow, "declared", client.seen_at, versions)

    def graph(self) -> Lineage:
        """Return the graph, with the subjects."""
        carried: dict[str, bool] = {}
        for edge in self.edges:
            if edge.source.startswith("topic:"):
                is_read = self.nodes[edge.source].seen_at is not None
                carried[edge.target] = carried.get(edge.target, False) or is_read
        for name, row in self.subjects.items():
            self.add(self._subject(name, row, carried))
        with_subject = {edge.source for edge in self.edges if edge.target.startswith("subject:")}
        nodes = (
            replace(node, unknowns=("subject",)) if node.kind == "topic" and node.id not in with_subject else node
            for node in self.nodes.values()
        )
        return lineage_of(nodes, self.edges)

    def _subject(self, name: Named, row: LineageSubject, carried: Mapping[str, bool]) -> LineageNode:
        number, uses = subject_node(*name), self.uses[name]
        return LineageNode(
            id=number,
            kind="subject",
            name=name[1],
            registry=name[0],
            key=name[1],
            owners=row.owners,
            health=self.health.subjects.get(name) or ("ok" if carried.get(number) else "not scanned"),
            versions=_in_use(uses),
            unknowns=() if number in carried else ("topic",),
            seen_at=max((time for _, time in uses), default=None),
        )


def _in_use(uses: Iterable[tuple[int, datetime]]) -> tuple[int, ...]:
    """Return the versions of the newest message and of the day before it."""
    listed = list(uses)
    newest = max((time for _, time in listed), default=None)
    return tuple(sorted({version for version, time in listed if newest is not None and time >= newest - IN_USE}))
