"""The lineage graph: what flows where, the part of it around chosen nodes, and large parts folded into groups. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

#: the kinds of node in the direction of the flow
KINDS: Final = ("table", "connector", "producer", "topic", "subject", "query", "consumer", "state", "sink")
#: worst first; "" for a kind that no scan judges
HEALTH: Final = ("break", "risk", "ok", "not scanned", "")
#: how an edge is known, the best evidence first
EVIDENCE: Final = ("messages", "connector", "checkpoint", "state", "description", "declared", "name")
#: what a node's rows don't say
UNKNOWNS: Final = ("sources", "sink", "topic", "subject", "tables", "not in the registry")
ALL: Final = 0
MAX_DISTANCE: Final = 3
MAX_NODES: Final = 300
FEWEST_IN_GROUP: Final = 3
_PREFIX: Final = re.compile(r"^(?::(?P<context>[^:]*):)?(?P<word>[^._\-/]*)")


@dataclass(frozen=True)
class LineageNode:
    """One thing that data flows through.

    `key` is what its page's URL has besides the registry: a subject's qualified name, or a number; "" if it has no
    page. `owners` are `user:NAME` or `group:NAME`. `versions` of a subject were in the newest day of messages, or of a
    client are what it declared. `unknowns` names what no row says. A group has the number of its `members`, and its
    `id` opens it.
    """

    id: str
    kind: str
    name: str
    registry: str
    key: str = ""
    owners: tuple[str, ...] = ()
    health: str = ""
    versions: tuple[int, ...] = ()
    unknowns: tuple[str, ...] = ()
    seen_at: datetime | None = None
    members: int = 0


@dataclass(frozen=True)
class LineageEdge:
    """A flow, with how it is known and when that was last seen; `versions` are those in use on it, if known."""

    source: str
    target: str
    evidence: str
    seen_at: datetime | None = None
    versions: tuple[int, ...] = ()


@dataclass(frozen=True)
class Lineage:
    """Nodes by kind and name, and the edges between them; `total` counts the nodes before any were left out."""

    nodes: tuple[LineageNode, ...] = ()
    edges: tuple[LineageEdge, ...] = ()
    total: int = 0


def subject_node(registry: str, subject: str) -> str:
    """Return the id of a subject's node, by its qualified name."""
    return f"subject:{registry}:{subject}"


def topic_node(registry: str, topic: str) -> str:
    """Return the id of a topic's node; if several clusters have a topic of that name, the first one's."""
    return f"topic:{registry}:{topic}"


def lineage_of(nodes: Iterable[LineageNode], edges: Iterable[LineageEdge]) -> Lineage:
    """Return the graph in order. Several edges between two nodes become one with the best evidence."""
    merged: dict[tuple[str, str], LineageEdge] = {}
    for edge in edges:
        before = merged.get((edge.source, edge.target))
        merged[edge.source, edge.target] = edge if before is None else _merged(before, edge)
    ordered = sorted(nodes, key=lambda node: (KINDS.index(node.kind), node.registry, node.name, node.id))
    return Lineage(tuple(ordered), tuple(merged.values()), len(ordered))


def _merged(one: LineageEdge, other: LineageEdge) -> LineageEdge:
    evidence = min(one.evidence, other.evidence, key=EVIDENCE.index)
    seen_at = max((edge.seen_at for edge in (one, other) if edge.seen_at), default=None)
    versions = tuple(sorted({*one.versions, *other.versions}))
    return LineageEdge(one.source, one.target, evidence, seen_at, versions)


def narrowed(graph: Lineage, *, text: str = "", owner: str = "", focus: str = "", distance: int = ALL) -> Lineage:
    """Return what is around the node `focus`, and of that what is around the nodes with the text and the owner.

    A filter that is empty doesn't narrow.
    """
    if focus:
        graph = around(graph, {focus}, distance)
    return around(graph, _matching(graph, text, owner), distance) if text or owner else graph


def _matching(graph: Lineage, text: str, owner: str) -> set[str]:
    """Return the ids of nodes whose name contains the text, ignoring case, and that the owner owns."""
    lowered = text.casefold()
    return {node.id for node in graph.nodes if lowered in node.name.casefold() and (not owner or owner in node.owners)}


def around(graph: Lineage, chosen: Collection[str], distance: int = ALL) -> Lineage:
    """Return what flows into and out of the chosen nodes, up to so many steps each way; `ALL` without a limit.

    What else flows out of what flows into them isn't part of it.
    """
    forward, backward = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for edge in graph.edges:
        forward[edge.source].append(edge.target)
        backward[edge.target].append(edge.source)
    there = {node.id for node in graph.nodes if node.id in set(chosen)}
    return _only(graph, _reached(there, forward, distance) | _reached(there, backward, distance))


def part_of(graph: Lineage, ids: Collection[str]) -> Lineage:
    """Return the nodes with these ids alone; a topic's id also means topics of its name in other clusters."""
    named = {node.id for node in graph.nodes if node.kind == "topic" and topic_node(node.registry, node.name) in ids}
    return _only(graph, named.union(ids))


def _reached(start: Collection[str], links: Mapping[str, Collection[str]], distance: int) -> set[str]:
    reached, edge, steps = set(start), set(start), 0
    while edge and (distance == ALL or steps < distance):
        edge = {target for node in edge for target in links.get(node, ())} - reached
        reached |= edge
        steps += 1
    return reached


def _only(graph: Lineage, ids: Collection[str]) -> Lineage:
    nodes = tuple(node for node in graph.nodes if node.id in ids)
    edges = tuple(edge for edge in graph.edges if edge.source in ids and edge.target in ids)
    return Lineage(nodes, edges, graph.total)


def folded(graph: Lineage, *, opened: Collection[str] = (), keep: str = "", most: int = MAX_NODES) -> Lineage:
    """Return a graph of more than `most` nodes with groups: nodes of a kind by owner, context or prefix.

    If these are still too many, each kind in a registry is one group, and opening it shows the smaller groups. The node
    `keep` and members of opened groups aren't folded.
    """
    if len(graph.nodes) <= most:
        return graph
    group_by_id = {node.id: _group_of(node) for node in graph.nodes}
    if len(_grouped(graph, group_by_id, (), keep).nodes) > most:
        for node in graph.nodes:
            whole = f"group:{node.kind}:{node.registry}:"
            group_by_id[node.id] = group_by_id[node.id] if whole in opened else whole
    return _grouped(graph, group_by_id, opened, keep)


def _group_of(node: LineageNode) -> str:
    if node.owners:
        label = node.owners[0].partition(":")[2]
    else:
        match = _PREFIX.match(node.name)
        label = (match["context"] or match["word"]) if match else ""
    return f"group:{node.kind}:{node.registry}:{label}"


def _grouped(graph: Lineage, group_by_id: Mapping[str, str], opened: Collection[str], keep: str) -> Lineage:
    sizes = Counter(group_by_id.values())
    shown_as = {
        node.id: node.id
        if node.id == keep or group_by_id[node.id] in opened or sizes[group_by_id[node.id]] < FEWEST_IN_GROUP
        else group_by_id[node.id]
        for node in graph.nodes
    }
    members = defaultdict[str, list[LineageNode]](list)
    for node in graph.nodes:
        members[shown_as[node.id]].append(node)
    nodes = [listed[0] if number == listed[0].id else _group(number, listed) for number, listed in members.items()]
    edges = (replace(edge, source=shown_as[edge.source], target=shown_as[edge.target]) for edge in graph.edges)
    together = lineage_of(nodes, (replace(edge, versions=()) if _is_group(edge) else edge for edge in edges))
    return replace(together, total=graph.total)


def _is_group(edge: LineageEdge) -> bool:
    return edge.source.startswith("group:") or edge.target.startswith("group:")


def _group(number: str, members: list[LineageNode]) -> LineageNode:
    first = members[0]
    return LineageNode(
        id=number,
        kind=first.kind,
        name=number.split(":", 3)[3],
        registry=first.registry,
        health=min((node.health for node in members), key=HEALTH.index),
        seen_at=max((node.seen_at for node in members if node.seen_at), default=None),
        members=len(members),
    )
