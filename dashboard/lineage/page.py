"""The map: what flows where, drawn by `static/map.js` from the page's data, and the same as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.components.badges import Look
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import chosen_value, form_text, subject_url, with_query
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import (
    ActiveFilter,
    Choice,
    Environment,
    Field,
    Filter,
    Frame,
    SearchBox,
    Section,
    readable,
)
from dashboard.subjects.descriptions import owner_choices
from registry.lineage.graph import ALL, MAX_DISTANCE, Lineage, LineageEdge, LineageNode, folded, narrowed
from registry.lineage.selectors import read_lineage
from registry.promotions.selectors import list_environments
from registry.subjects.selectors import registry_names

#: nodes that are drawn even if opened groups have more
MAX_DRAWN: Final = 600
#: flows into or out of a node that its row lists
MAX_LISTED: Final = 5
LONGEST_FILTER: Final = 2_000
#: kind → its label, and its column in the drawing
KINDS: Final = {
    "table": (_("Table"), 0),
    "connector": (_("Connector"), 1),
    "producer": (_("Producer"), 1),
    "topic": (_("Topic"), 2),
    "subject": (_("Subject"), 3),
    "query": (_("Streaming query"), 4),
    "consumer": (_("Consumer"), 4),
    "state": (_("State variable"), 5),
}
COLUMNS: Final = (
    _("Tables"),
    _("Connectors, producers"),
    _("Topics"),
    _("Subjects"),
    _("Queries, consumers"),
    _("State"),
)
HEALTH: Final = {
    "break": Look("breaks", "octagon-x", _("Break")),
    "risk": Look("care", "triangle-alert", _("Risk")),
    "ok": Look("ok", "circle-check", _("No findings")),
    "not scanned": Look("unknown", "circle-dashed", _("Not scanned")),
}
EVIDENCE: Final = {
    "messages": _("seen in messages"),
    "connector": _("from the connector"),
    "checkpoint": _("from the checkpoint"),
    "state": _("from the checkpoint"),
    "declared": _("declared"),
    "name": _("by name only"),
}
#: what isn't known of the flows into a node, and of those out of it
UNKNOWN_IN: Final = {
    "sources": _("What it reads is not known."),
    "topic": _("Its topic is not known."),
    "tables": _("Its tables are not known."),
}
UNKNOWN_OUT: Final = {
    "sink": _("Its sink is not known: a checkpoint doesn’t name it."),
    "subject": _("Its subject is not known."),
}
#: the lines of the drawing: class, meaning
LINES: Final = (
    ("", _("Seen in messages or checkpoints")),
    ("map-edge-declared", _("Declared")),
    ("map-edge-name", _("By name only")),
)


@dataclass(frozen=True, slots=True)
class MapFlow:
    """A flow into or out of a node: the other node, and how the flow is known."""

    edge: LineageEdge
    other: MapNode

    @property
    def words(self) -> str:
        """The versions in use on it, and how it is known."""
        return listing(filter(None, (version_words(self.edge.versions), str(EVIDENCE[self.edge.evidence]))))


@dataclass(frozen=True, slots=True)
class MapNode:
    """A node for display; `url` is its page, `focus_url` the map around it, `versions` those in use."""

    info: LineageNode
    environment: Environment
    url: str
    focus_url: str
    versions: tuple[int, ...]

    @property
    def kind(self) -> str:
        """Its kind in words."""
        return str(KINDS[self.info.kind][0])

    @property
    def name(self) -> str:
        """Its name; of a group what its members have in common, with their number."""
        if not self.info.members:
            return self.info.name
        prefix = f"{self.info.name}…" if self.info.name else ""
        return listing(filter(None, (prefix, counted(self.info.members, "%(n)s node", "%(n)s nodes"))))

    @property
    def health(self) -> Look | None:
        """The worst of its open findings; None for a kind without findings."""
        return HEALTH.get(self.info.health)

    @property
    def version_words(self) -> str:
        """The versions in use, in short."""
        return version_words(self.versions)

    @property
    def unknowns(self) -> list[str]:
        """What isn't known about it, as sentences."""
        return [str((UNKNOWN_IN | UNKNOWN_OUT)[code]) for code in self.info.unknowns]

    @property
    def data(self) -> dict[str, Any]:
        """What the drawing needs; no hidden characters."""
        health = self.health
        detail = listing(filter(None, (self.info.registry, self.version_words, str(health.word) if health else "")))
        return {
            "id": self.info.id,
            "column": KINDS[self.info.kind][1],
            "name": readable(self.name),
            "detail": readable(detail),
            "label": readable(" ".join([f"{self.kind} {self.name}: {detail}.", *self.unknowns])),
            "tone": health.tone if health else "none",
            "icon": health.icon if health else "",
            "group": bool(self.info.members),
            "url": self.url,
        }


@dataclass(frozen=True, slots=True)
class MapRow:
    """A row of the table: a node with what flows into it and out of it."""

    node: MapNode
    inflows: tuple[MapFlow, ...]
    outflows: tuple[MapFlow, ...]

    @property
    def sides(self) -> list[MapSide]:
        """Both directions, in and out."""
        unknowns = self.node.info.unknowns
        return [
            MapSide(gettext("Flows from"), self.inflows, [UNKNOWN_IN[code] for code in unknowns if code in UNKNOWN_IN]),
            MapSide(
                gettext("Flows to"), self.outflows, [UNKNOWN_OUT[code] for code in unknowns if code in UNKNOWN_OUT]
            ),
        ]


@dataclass(frozen=True, slots=True)
class MapSide:
    """The flows in one direction, and what isn't known of them."""

    label: str
    flows: tuple[MapFlow, ...]
    notes: Sequence[str]

    @property
    def shown(self) -> tuple[MapFlow, ...]:
        """The first ones."""
        return self.flows[:MAX_LISTED]

    @property
    def more(self) -> int:
        """How many others there are."""
        return len(self.flows) - len(self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPage:
    """The map and its table. `total` are all nodes that the reader may see, `left_out` those beyond the limit."""

    frame: Frame
    search: SearchBox
    rows: tuple[MapRow, ...]
    total: int = 0
    left_out: int = 0

    @property
    def is_folded(self) -> bool:
        """Whether some nodes are in groups."""
        return any(row.node.info.members for row in self.rows)

    @property
    def legend(self) -> list[Look]:
        """The states of health."""
        return list(HEALTH.values())

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The kinds of line."""
        return LINES

    @property
    def drawing(self) -> str:
        """The drawing's nodes, edges and column labels, as JSON."""
        edges = [(row.node.info.id, flow) for row in self.rows for flow in row.outflows]
        drawing = {
            "columns": [str(label) for label in COLUMNS],
            "nodes": [row.node.data for row in self.rows],
            "edges": [
                {
                    "source": source,
                    "target": flow.other.info.id,
                    "evidence": flow.edge.evidence,
                    "words": readable(flow.words),
                }
                for source, flow in edges
            ],
        }
        return json.dumps(drawing)


def version_words(versions: Sequence[int]) -> str:
    """Return versions in short, such as `v2, v3`."""
    return ", ".join(f"v{number}" for number in versions)


@require_safe
def lineage_map(request: HttpRequest) -> HttpResponse:
    """Show the map."""
    return render(request, "lineage/map.html", {"page": map_page(request)})


def map_page(request: HttpRequest) -> MapPage:
    """Return the part of the map that the URL's filters choose. Raises NotSignedIn, NotAllowed, InvalidInput."""
    actor = page_actor(request)
    chosen = {name: form_text(request.GET, name)[:LONGEST_FILTER] for name in ("registry", "owner", "q", "focus")}
    distance = chosen_value(request.GET, "distance", [str(steps) for steps in range(1, MAX_DISTANCE + 1)])
    opened = [value[:LONGEST_FILTER] for value in request.GET.getlist("open")]
    whole = read_lineage(actor, registry=chosen["registry"])
    steps = int(distance) if distance else ALL
    part = narrowed(whole, text=chosen["q"], owner=chosen["owner"], focus=chosen["focus"], distance=steps)
    graph = folded(part, opened=opened, keep=chosen["focus"])
    drawn = graph.nodes[:MAX_DRAWN]
    query, order = {**chosen, "distance": distance}, list_environments()
    return MapPage(
        frame=make_frame(request, title=gettext("Map"), section=Section.MAP, order=order),
        search=_search(query, whole, registry_names(actor)),
        rows=tuple(_rows(drawn, graph.edges, order, query, opened)),
        total=whole.total,
        left_out=len(graph.nodes) - len(drawn),
    )


def map_url(focus: str = "", **query: str) -> str:
    """Return the URL of the map around a node."""
    return with_query(reverse("ui:map"), {"focus": focus, **query})


def subject_node(registry: str, subject: str) -> str:
    """Return the id of a subject's node."""
    return f"subject:{registry}:{subject}"


def _rows(
    nodes: Sequence[LineageNode],
    edges: Iterable[LineageEdge],
    order: list[str],
    query: Mapping[str, str],
    opened: Sequence[str],
) -> Iterable[MapRow]:
    inflows, outflows = defaultdict[str, list[LineageEdge]](list), defaultdict[str, list[LineageEdge]](list)
    drawn = {node.id for node in nodes}
    for edge in edges:
        if edge.source in drawn and edge.target in drawn:
            outflows[edge.source].append(edge)
            inflows[edge.target].append(edge)
    shown = {node.id: _node(node, inflows[node.id], order, query, opened) for node in nodes}
    for node in nodes:
        yield MapRow(
            shown[node.id],
            tuple(MapFlow(edge, shown[edge.source]) for edge in inflows[node.id]),
            tuple(MapFlow(edge, shown[edge.target]) for edge in outflows[node.id]),
        )


def _node(
    info: LineageNode,
    inflows: Sequence[LineageEdge],
    order: list[str],
    query: Mapping[str, str],
    opened: Sequence[str],
) -> MapNode:
    opening = [("open", number) for number in (*opened, info.id)] if info.members else []
    filters = [(name, value) for name, value in query.items() if value]
    return MapNode(
        info=info,
        environment=environment_of(info.registry, order),
        url=f"{reverse('ui:map')}?{urlencode([*filters, *opening])}" if opening else _page_of(info),
        focus_url="" if info.members else map_url(info.id),
        # a reader of one subject was built with its version
        versions=inflows[0].versions if info.kind == "consumer" and len(inflows) == 1 else info.versions,
    )


def _page_of(info: LineageNode) -> str:
    """Return the URL of a node's page; of one without a page, of the map around it."""
    if info.kind == "subject":
        return subject_url(info.registry, info.key)
    if info.kind in ("producer", "consumer"):
        return subject_url(info.registry, info.key, "usage")
    if info.kind == "state":
        return reverse("ui:state_variable", args=info.key.split("/"))
    if info.kind == "query":
        return reverse("ui:query", args=[info.key])
    return reverse("ui:source", args=[info.key]) if info.key else map_url(info.id)


def _search(query: Mapping[str, str], whole: Lineage, registries: Sequence[str]) -> SearchBox:
    owners = sorted({owner for node in whole.nodes for owner in node.owners})
    distances = [(str(steps), counted(steps, "%(n)s step", "%(n)s steps")) for steps in range(1, MAX_DISTANCE + 1)]
    return SearchBox(
        url=reverse("ui:map"),
        query=query["q"],
        label=gettext("Search the map"),
        placeholder="orders",
        filters=(
            Filter(
                name="registry",
                label=gettext("Environment"),
                choices=_choices(gettext("All environments"), [(name, name) for name in registries], query["registry"]),
            ),
            Filter(
                name="owner",
                label=gettext("Owner"),
                choices=owner_choices([_owner(value) for value in owners], None, query["owner"]),
            ),
            Filter(
                name="distance",
                label=gettext("Distance from what is chosen"),
                choices=_choices(gettext("Any distance"), distances, query["distance"]),
            ),
        ),
        fields=(
            Field(name="focus", label=gettext("Around"), value=query["focus"], placeholder="subject:dev:orders-value"),
        ),
        active=tuple(_active(query)),
    )


def _owner(value: str) -> tuple[str, str]:
    kind, _colon, name = value.partition(":")
    return kind, name


def _choices(every: str, values: Iterable[tuple[str, str]], chosen: str) -> tuple[Choice, ...]:
    return (
        Choice(value="", label=every, selected=not chosen),
        *(Choice(value=value, label=label, selected=value == chosen) for value, label in values),
    )


def _active(query: Mapping[str, str]) -> Iterable[ActiveFilter]:
    labels = {
        "registry": gettext("environment: %(what)s"),
        "owner": gettext("owner: %(what)s"),
        "focus": gettext("around: %(what)s"),
        "distance": gettext("steps: %(what)s"),
    }
    for name, label in labels.items():
        if query[name]:
            rest = {key: value for key, value in query.items() if key != name}
            yield ActiveFilter(label=label % {"what": query[name]}, url=with_query(reverse("ui:map"), rest))
