"""The map: what flows where, drawn by `static/map.js` from the page's data, and the same as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.components.badges import Look
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import chosen_value, form_text, map_url, subject_url, with_query
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import ActiveFilter, Choice, Field, Filter, Frame, Link, SearchBox, Section, readable
from dashboard.lineage.field_impact import ImpactPanel, impact_panel, page_of
from dashboard.lineage.nodes import HEALTH, MapFlow, MapNode, MapRow
from dashboard.subjects.descriptions import owner_choices
from registry.access.roles import Actor
from registry.errors import SchemadeskError
from registry.lineage.graph import ALL, MAX_DISTANCE, Lineage, LineageEdge, LineageNode, folded, narrowed, part_of
from registry.lineage.selectors import read_lineage
from registry.promotions.selectors import list_environments
from registry.subjects.selectors import outline_of, registry_names
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

#: nodes that are drawn even if opened groups have more
MAX_DRAWN: Final = 600
LONGEST_FILTER: Final = 2_000
#: fields of a subject that are links
MAX_FIELDS: Final = 60
COLUMNS: Final = (
    _("Tables"),
    _("Connectors, producers"),
    _("Topics"),
    _("Subjects"),
    _("Queries, consumers"),
    _("State, sinks"),
)
#: the lines of the drawing: class, meaning
LINES: Final = (
    ("", _("Seen in messages or checkpoints")),
    ("map-edge-declared", _("Declared")),
    ("map-edge-name", _("By name only")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFields:
    """The fields of the subject that the map is around: the first ones, each with the URL of its path.

    `chosen` is the one whose path is shown, `all_url` the subject's page, `whole_url` the map without a chosen field.
    """

    subject: str
    links: tuple[Link, ...]
    all_url: str
    whole_url: str
    chosen: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPage:
    """The map and its table. `total` are all nodes that the reader may see, `left_out` those beyond the limit.

    `impact` is of the chosen field.
    """

    frame: Frame
    search: SearchBox
    rows: tuple[MapRow, ...]
    total: int = 0
    left_out: int = 0
    fields: MapFields | None = None
    impact: ImpactPanel | None = None

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


@require_safe
def lineage_map(request: HttpRequest) -> HttpResponse:
    """Show the map."""
    return render(request, "lineage/map.html", {"page": map_page(request)})


def map_page(request: HttpRequest) -> MapPage:
    """Return the part of the map that the URL's filters choose. Raises NotSignedIn, NotAllowed, InvalidInput."""
    actor = page_actor(request)
    chosen = {
        name: form_text(request.GET, name)[:LONGEST_FILTER] for name in ("registry", "owner", "q", "focus", "field")
    }
    distance = chosen_value(request.GET, "distance", [str(steps) for steps in range(1, MAX_DISTANCE + 1)])
    opened = [value[:LONGEST_FILTER] for value in request.GET.getlist("open")]
    whole = read_lineage(actor, registry=chosen["registry"])
    steps = int(distance) if distance else ALL
    part = narrowed(whole, text=chosen["q"], owner=chosen["owner"], focus=chosen["focus"], distance=steps)
    subject = next((node for node in whole.nodes if node.id == chosen["focus"] and node.kind == "subject"), None)
    impact = _impact(subject, chosen["field"], actor) if subject and chosen["field"] else None
    if impact is not None:
        part = part_of(part, impact.nodes)
    graph = folded(part, opened=opened, keep=chosen["focus"])
    drawn = graph.nodes[:MAX_DRAWN]
    query, order = {**chosen, "distance": distance}, list_environments()
    return MapPage(
        frame=make_frame(request, title=gettext("Map"), section=Section.MAP, order=order),
        search=_search(query, whole, registry_names(actor)),
        impact=impact,
        fields=_fields(subject, chosen["field"]) if subject else None,
        rows=tuple(_rows(drawn, graph.edges, order, query, opened)),
        total=whole.total,
        left_out=len(graph.nodes) - len(drawn),
    )


def _impact(subject: LineageNode, path: str, actor: Actor) -> ImpactPanel | None:
    return impact_panel(get_registry(subject.registry), parse_subject(subject.name), path, by=actor)


def _fields(subject: LineageNode, chosen: str) -> MapFields | None:
    """Return the fields of a subject's newest version; None if it can't be read."""
    try:
        outline = outline_of(get_registry(subject.registry), parse_subject(subject.name), None)
    except SchemadeskError:
        return None
    focus = map_url(subject.id)
    paths = list(dict.fromkeys(row.path for row in outline))
    return MapFields(
        subject=subject.name,
        links=tuple(Link(label=path, url=f"{focus}&{urlencode({'field': path})}") for path in paths[:MAX_FIELDS]),
        all_url=subject_url(subject.registry, subject.name),
        whole_url=focus,
        chosen=chosen,
        more=max(0, len(paths) - MAX_FIELDS),
    )


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
        url=f"{reverse('ui:map')}?{urlencode([*filters, *opening])}"
        if opening
        else page_of(info.kind, info.registry, info.key, info.id),
        focus_url="" if info.members else map_url(info.id),
        # a reader of one subject was built with its version
        versions=inflows[0].versions if info.kind == "consumer" and len(inflows) == 1 else info.versions,
    )


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
        "field": gettext("field: %(what)s"),
        "distance": gettext("steps: %(what)s"),
    }
    for name, label in labels.items():
        if query[name]:
            rest = {key: value for key, value in query.items() if key != name}
            yield ActiveFilter(label=label % {"what": query[name]}, url=with_query(reverse("ui:map"), rest))
