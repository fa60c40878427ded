"""What breaks if a field changes, for display: one row for each thing, one column for each edit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.links import map_url, subject_url, with_query
from dashboard.components.translation import gettext_lazy as _
from dashboard.lineage.nodes import KINDS as MAP_KINDS
from registry.access.roles import Actor
from registry.errors import NotAllowed, NotFound, NotSignedIn, SchemadeskError
from registry.lineage.field_edits import EditEffect, ImpactRow
from registry.lineage.field_impact import FieldImpact, field_impact
from registry.lineage.graph import subject_node
from registry.subjects.models import Registry
from registry.subjects.versions.qualified_names import SubjectName

EDITS: Final = {
    "remove": _("Removed"),
    "rename": _("Renamed"),
    "rename with alias": _("Renamed with an alias"),
    "change type": _("Another type"),
}
ANSWERS: Final = {
    "breaks": Look("breaks", "octagon-x", _("Breaks")),
    "care": Look("care", "triangle-alert", _("Needs care")),
    "unknown": Look("unknown", "circle-dashed", _("Not checked")),
    "fine": Look("ok", "circle-check", _("Works")),
}
LEVEL_ANSWERS: Final = ANSWERS | {
    "breaks": Look("breaks", "octagon-x", _("Rejected")),
    "fine": Look("ok", "circle-check", _("Accepted")),
}
KINDS: Final = {**{kind: label for kind, (label, _column) in MAP_KINDS.items()}, "request": _("Promotion request")}
#: groups of rows in this order: heading, kinds
GROUPS: Final = (
    (_("Data"), ("readers", "writers")),
    (_("Uses it"), ("producer", "consumer", "query", "state", "subject")),
    (_("Registration"), ("level",)),
)
SIDES: Final = {"readers": _("Old readers, new data"), "writers": _("New readers, existing data")}


@dataclass(frozen=True, slots=True)
class ImpactCell:
    """An effect: the edit as the column's label, the state, and a sentence."""

    label: str
    look: Look
    sentence: str


@dataclass(frozen=True, slots=True)
class ImpactLine:
    """One thing with its effects; `is_marked` is the level in force."""

    row: ImpactRow
    url: str = ""
    is_marked: bool = False

    @property
    def name(self) -> str:
        """The name, or what the row is about."""
        return str(SIDES.get(self.row.kind, self.row.name))

    @property
    def kind(self) -> str:
        """The kind of thing; "" for a check."""
        return str(KINDS.get(self.row.kind, ""))

    @property
    def cells(self) -> list[ImpactCell]:
        """The effects of the edits."""
        return [self._cell(effect) for effect in self.row.effects]

    def _cell(self, effect: EditEffect) -> ImpactCell:
        looks = LEVEL_ANSWERS if self.row.kind == "level" else ANSWERS
        return ImpactCell(str(EDITS[effect.edit]), looks[effect.answer], effect.sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactPanel:
    """The table of effects, and where the field comes from. `problem` says why there is none, `later_url` makes it.

    `columns` are the edits with what each did to the schema.
    """

    problem: str = ""
    later_url: str = ""
    version: int = 0
    columns: tuple[tuple[str, str], ...] = ()
    groups: tuple[tuple[str, tuple[ImpactLine, ...]], ...] = ()
    sources: tuple[ImpactLine, ...] = ()
    requests: tuple[ImpactLine, ...] = ()
    also: tuple[str, ...] = ()
    hidden: int = 0
    unchecked: tuple[str, ...] = ()
    nodes: frozenset[str] = frozenset()
    map_url: str = ""
    check_url: str = ""


def impact_panel(registry: Registry, subject: SubjectName, path: str, *, by: Actor) -> ImpactPanel | None:
    """Return the panel; None if the newest version doesn't have the field. Raises NotAllowed."""
    try:
        return panel_of(field_impact(registry, subject, path, by=by))
    except (NotAllowed, NotSignedIn):
        raise
    except NotFound:
        return None
    except SchemadeskError as error:
        return ImpactPanel(problem=gettext("Not checked: %(reason)s") % {"reason": error.message})


def panel_of(impact: FieldImpact) -> ImpactPanel:
    """Return an impact for display."""
    lines = [_line(impact, row) for row in impact.rows]
    groups = ((str(heading), _of(lines, kinds)) for heading, kinds in GROUPS)
    return ImpactPanel(
        version=impact.version,
        columns=tuple((str(EDITS[edit]), title) for edit, title in impact.edits.items()),
        groups=tuple((heading, group) for heading, group in groups if group),
        sources=_of(lines, ("table", "connector", "topic")),
        requests=_of(lines, ("request",)),
        also=impact.also,
        hidden=impact.hidden,
        unchecked=impact.unchecked,
        nodes=impact.nodes,
        map_url=with_query(
            reverse("ui:map"), {"focus": subject_node(impact.registry, impact.subject), "field": impact.path}
        ),
        check_url=subject_url(impact.registry, impact.subject, "report"),
    )


def _of(lines: Iterable[ImpactLine], kinds: tuple[str, ...]) -> tuple[ImpactLine, ...]:
    """Return the lines of the kinds, in the order of the kinds, without the subject itself."""
    chosen = (line for line in lines if line.row.kind in kinds and (line.row.kind != "subject" or line.row.effects))
    return tuple(sorted(chosen, key=lambda line: kinds.index(line.row.kind)))


def _line(impact: FieldImpact, row: ImpactRow) -> ImpactLine:
    if row.kind == "request":
        url = reverse("ui:promotion", args=[row.key])
    else:
        url = page_of(row.kind, impact.registry, row.key, row.node) if row.node else ""
    return ImpactLine(row, url, row.kind == "level" and row.name == impact.level)


def page_of(kind: str, registry: str, key: str, node: str) -> str:
    """Return the URL of a node's page; of one without a page, of the map around it."""
    if kind == "subject":
        return subject_url(registry, key)
    if kind in ("producer", "consumer"):
        return subject_url(registry, key, "usage")
    if kind == "state":
        return reverse("ui:state_variable", args=key.split("/"))
    if kind in ("query", "sink"):
        return reverse("ui:query", args=[key])
    return reverse("ui:source", args=[key]) if key else map_url(node)
