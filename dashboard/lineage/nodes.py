"""The map's nodes and flows for display: as rows of the table, and as data of the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Environment, readable
from registry.lineage.graph import LineageEdge, LineageNode

#: flows into or out of a node that its row lists
MAX_LISTED: Final = 5
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
    "sink": (_("Sink"), 5),
}
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
    "description": _("from the query’s description"),
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
    "sink": _("Its sink is not known: a checkpoint doesn’t name it, and no description does."),
    "subject": _("Its subject is not known."),
}


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


def version_words(versions: Sequence[int]) -> str:
    """Return versions in short, such as `v2, v3`."""
    return ", ".join(f"v{number}" for number in versions)
