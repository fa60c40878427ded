"""The list of streaming queries, and the page of a query with its operators and state variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import map_url, subject_url, whole_number
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Crumb, Frame, Link, Paging, Problem, Section
from dashboard.streams.progress import ProgressPanel, progress_panel
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, refusal
from registry.streams.descriptions import RunningInfo, list_descriptions
from registry.streams.selectors import (
    PAGE,
    BudgetInfo,
    QueryInfo,
    VariableInfo,
    get_query,
    list_queries,
    list_variables,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetMeter:
    """A limit in Spark: its label and usage; `percent` is 0 to 100, `look` warns from 75 %."""

    label: str
    used: int
    allowed: int
    left: int
    percent: int
    look: Look | None = None


MOST: Final = 10_000
READS: Final = Look("ok", "circle-check", _("Read"))
STARTING: Final = Look("unknown", "circle-dashed", _("Starting"))
DAMAGED: Final = Look("breaks", "octagon-x", _("Damaged"))
EVOLVES: Final = Look("ok", "circle-check", _("Can evolve"))
FIXED: Final = Look("unknown", "lock", _("Fixed"))
REMOVED: Final = Look("unknown", "minus", _("Removed"))
#: Spark's encoding of state rows → label
ENCODINGS: Final = {"avro": "Avro", "unsaferow": "UnsafeRow"}
#: (minimum share, look), highest first, with the thresholds of findings
_BUDGETS: Final = (
    (0.90, Look("breaks", "octagon-x", _("Nearly used up"))),
    (0.75, Look("care", "triangle-alert", _("Nearing the limit"))),
)


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query for display; `budget` is its fullest one, None if its state can't evolve."""

    info: QueryInfo

    @property
    def state(self) -> Look:
        """Whether its checkpoint could be read."""
        if self.info.problems:
            return DAMAGED
        return STARTING if self.info.last_committed_batch is None else READS

    @property
    def problems(self) -> list[Problem]:
        """The errors of reading its checkpoint."""
        return [Problem(what=text) for text in self.info.problems]

    @property
    def encoding(self) -> str:
        """The encoding of its state rows."""
        return ENCODINGS.get(self.info.encoding, self.info.encoding)

    @property
    def budget(self) -> BudgetMeter | None:
        """The fullest budget."""
        return meter(self.info.worst)

    @property
    def inputs(self) -> list[Link]:
        """The topics that it reads, each with the subject of its messages, if known."""
        return [
            Link(
                label=f"{source.topic} → {source.subject.qualified}",
                url=subject_url(self.info.registry, source.subject.qualified),
            )
            if source.subject
            else Link(label=source.topic, url="")
            for source in self.info.inputs
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryList:
    """All queries found by scans; `refused` says why the reader may not add a checkpoint."""

    frame: Frame
    rows: tuple[QueryRow, ...]
    paging: Paging
    refused: str
    check: Action


@dataclass(frozen=True, slots=True)
class VariableRow:
    """A state variable for display."""

    info: VariableInfo

    @property
    def look(self) -> Look:
        """Whether it can evolve."""
        if self.info.removed_at is not None:
            return REMOVED
        return FIXED if self.info.why_fixed else EVOLVES

    @property
    def kind(self) -> str:
        """The kind of state, and whether entries expire."""
        kind = self.info.kind.replace("_", " ")
        return gettext("%(kind)s with a time to live") % {"kind": kind} if self.info.ttl else kind

    @property
    def budget(self) -> BudgetMeter | None:
        """The versions that it may still have."""
        return meter(self.info.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPanel:
    """A stateful operator (`number`, `description`, `why_fixed` …) with its variables."""

    info: Mapping[str, Any]
    variables: tuple[VariableRow, ...]
    budget: BudgetMeter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPage:
    """The page of a query."""

    frame: Frame
    query: QueryRow
    operators: tuple[OperatorPanel, ...]
    actions: tuple[Action, ...]
    progress: ProgressPanel
    running: RunningInfo | None = None
    earlier: tuple[RunningInfo, ...] = ()


def query_list(request: HttpRequest) -> QueryList:
    """Return all queries found by scans, the fullest budget first. Raises NotAllowed."""
    actor = page_actor(request)
    offset = min(whole_number(request.GET.get("offset", "")) or 0, MOST) // PAGE * PAGE
    require_extent(actor, "schema.read")
    queries = list_queries(by=actor, offset=offset, limit=PAGE + 1)
    page, here = queries[:PAGE], reverse("ui:queries")
    return QueryList(
        frame=make_frame(request, title=gettext("Streaming queries"), section=Section.QUERIES),
        rows=tuple(map(QueryRow, page)),
        paging=Paging(
            first=offset + 1 if page else 0,
            last=offset + len(page),
            previous_url=f"{here}?offset={offset - PAGE}" if offset else "",
            next_url=f"{here}?offset={offset + PAGE}" if len(queries) > PAGE else "",
        ),
        refused=refusal(actor, "source.manage"),
        check=check_action(actor),
    )


def check_action(actor: Actor, path: str = "") -> Action:
    """Return the link to the restart check."""
    reason = refusal(actor, "state.check")
    url = reverse("ui:state_check_new")
    return Action(
        label=gettext("Check a restart"),
        url=f"{url}?{urlencode({'checkpoint': path})}" if path else url,
        reason=reason,
        icon="shield-check",
    )


def meter(budget: BudgetInfo | None) -> BudgetMeter | None:
    """Convert a budget for display."""
    if budget is None:
        return None
    label = (
        gettext("Value schemas of %(variable)s") % {"variable": budget.variable}
        if budget.variable
        else gettext("Schema files of operator %(operator)s") % {"operator": budget.operator}
    )
    return BudgetMeter(
        label=label,
        used=budget.used,
        allowed=budget.allowed,
        left=budget.left,
        percent=min(100, int(100 * budget.share)),
        look=next((look for least, look in _BUDGETS if budget.share >= least), None),
    )


def query_page(request: HttpRequest, query_id: int) -> QueryPage:
    """Return the page of a query. Raises NotFound, NotAllowed."""
    actor = page_actor(request)
    query = get_query(query_id, by=actor)
    variables = list_variables(query_id)
    descriptions = tuple(list_descriptions(query_id))
    findings = f"{reverse('ui:findings')}?{urlencode({'source': query.source_id})}"
    return QueryPage(
        frame=make_frame(request, title=query.name, section=Section.QUERIES, code=True, crumbs=crumbs()),
        query=QueryRow(query),
        operators=tuple(_operator(query, operator, variables) for operator in query.operators),
        actions=(
            Action(
                label=gettext("Source and scans"), url=reverse("ui:source", args=[query.source_id]), icon="scan-search"
            ),
            Action(label=gettext("Findings"), url=findings, icon="triangle-alert"),
            Action(label=gettext("Show on map"), url=map_url(f"query:{query.id}"), icon="list-tree"),
            check_action(actor, query.path),
        ),
        progress=progress_panel(request, query_id),
        running=descriptions[0] if descriptions else None,
        earlier=descriptions[1:],
    )


def crumbs() -> tuple[Crumb, ...]:
    """Return the breadcrumbs of a query."""
    return (Crumb(label=gettext("Queries"), url=reverse("ui:queries")),)


def _operator(query: QueryInfo, operator: Mapping[str, Any], variables: Sequence[VariableInfo]) -> OperatorPanel:
    mine = [variable for variable in variables if variable.operator == operator["number"]]
    files = operator["schema_files"]
    return OperatorPanel(
        info=operator,
        variables=tuple(map(VariableRow, mine)),
        budget=meter(BudgetInfo("schema_files", operator["number"], "", files, query.allowed_schema_files))
        if files
        else None,
    )
