"""The list of streaming queries, and one query with its operators and state variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.comparison import VersionComparison
from dashboard.components.badges import Look
from dashboard.components.diff import TextDiff
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import subject_url, whole_number
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Action, Choice, Crumb, Environment, Fact, Frame, Link, Paging, Problem, Section
from dashboard.streams.restart_check import StateChange
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, refusal
from registry.promotions.selectors import list_environments
from registry.streams.selectors import (
    PAGE,
    BudgetInfo,
    InputInfo,
    QueryInfo,
    VariableInfo,
    get_query,
    list_queries,
    list_variables,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetMeter:
    """A limit of Spark's: what it counts, how much is used; `percent` is 0 to 100, `look` warns from 75 % on."""

    label: str
    used: int
    allowed: int
    left: int
    percent: int
    look: Look | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """A query in the list; `budget` is its fullest one, None where its state can't evolve."""

    url: str
    name: str
    path: str
    environment: Environment
    state: Look
    variables: str
    encoding: str
    budget: BudgetMeter | None
    inputs: tuple[Link, ...]
    last_batch_at: datetime | None
    scanned_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryList:
    """All queries that scans have found; `add` leads to a new source."""

    frame: Frame
    rows: tuple[QueryRow, ...]
    paging: Paging
    add: Action
    check: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRow:
    """A state variable in its query; `change` says what its newest version changed."""

    url: str
    name: str
    kind: str
    look: Look
    rows: str
    versions: int
    budget: BudgetMeter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPanel:
    """A stateful operator with its variables."""

    title: str
    sentence: str
    facts: tuple[Fact, ...]
    variables: tuple[VariableRow, ...]
    budget: BudgetMeter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """Batches in a row that ran with the same settings."""

    batches: str
    provider: str
    encoding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPage:
    """One query; `number` is that of its address. `is_starting` says that no batch was committed yet."""

    frame: Frame
    name: str
    environment: Environment
    state: Look
    problems: tuple[Problem, ...]
    operators: tuple[OperatorPanel, ...]
    facts: tuple[Fact, ...]
    inputs: tuple[Link, ...]
    runs: tuple[RunRow, ...]
    scanned_at: datetime
    actions: tuple[Action, ...]
    number: str = ""
    is_starting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRow:
    """A version of a variable's schemas; `look` is the worst of its changes, None for the first."""

    version: int
    url: str
    selected: bool
    summary: str
    look: Look | None
    compare_url: str
    schema_id: int
    batch: str
    start: str
    written_at: datetime | None
    carries: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A field of a variable's rows."""

    path: str
    type: str
    filled: str
    percent: int
    range: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariablePage:
    """One state variable with its timeline; `schemas` are (label, text) of the selected version."""

    frame: Frame
    name: str
    kind: str
    state: Look
    why_fixed: str
    versions: tuple[SchemaRow, ...]
    selected: int
    schemas: tuple[tuple[str, str], ...]
    no_avro: str
    facts: tuple[Fact, ...]
    budget: BudgetMeter | None
    rows_facts: tuple[Fact, ...]
    rows_at: datetime | None
    rows_problem: str
    fields: tuple[FieldRow, ...]
    compare_url: str
    compare_from: tuple[Choice, ...]
    compare_to: tuple[Choice, ...]
    check: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class StateComparePage:
    """Two versions of a variable: what Spark makes of the change, then the Avro schemas that it derives from them."""

    frame: Frame
    look: Look
    sentence: str
    changes: tuple[StateChange, ...]
    compare_url: str
    compare_from: tuple[Choice, ...]
    compare_to: tuple[Choice, ...]
    comparison: VersionComparison | None
    text: TextDiff
    view: str
    unified_url: str
    split_url: str
    problem: Problem | None
    all_url: str = ""


MOST: Final = 10_000
READS: Final = Look("ok", "circle-check", later("Read"))
STARTING: Final = Look("unknown", "circle-dashed", later("Starting"))
DAMAGED: Final = Look("breaks", "octagon-x", later("Damaged"))
EVOLVES: Final = Look("ok", "circle-check", later("Can evolve"))
FIXED: Final = Look("unknown", "lock", later("Fixed"))
REMOVED: Final = Look("unknown", "minus", later("Removed"))
#: how Spark writes rows of state, as people call it
ENCODINGS: Final = {"avro": "Avro", "unsaferow": "UnsafeRow"}
#: from the highest share down: the first that is reached counts, as the findings have it
_BUDGETS: Final = (
    (0.90, Look("breaks", "octagon-x", later("Nearly used up"))),
    (0.75, Look("care", "triangle-alert", later("Nearing the limit"))),
)


def query_list(request: HttpRequest) -> QueryList:
    """All queries that scans have found, the fullest budget first. Raises NotAllowed."""
    actor = page_actor(request)
    offset = min(whole_number(request.GET.get("offset", "")) or 0, MOST) // PAGE * PAGE
    require_extent(actor, "schema.read")
    queries = list_queries(by=actor, offset=offset, limit=PAGE + 1)
    order, page = list_environments(), queries[:PAGE]
    here = reverse("ui:queries")
    reason = refusal(actor, "source.manage")
    return QueryList(
        frame=make_frame(request, title=gettext("Streaming queries"), section=Section.QUERIES),
        rows=tuple(_row(query, order) for query in page),
        paging=Paging(
            first=offset + 1 if page else 0,
            last=offset + len(page),
            previous_url=f"{here}?offset={offset - PAGE}" if offset else "",
            next_url=f"{here}?offset={offset + PAGE}" if len(queries) > PAGE else "",
        ),
        add=Action(
            label=gettext("Add a checkpoint"),
            url=f"{reverse('ui:source_add')}?kind=state_store",
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="plus",
        ),
        check=check_action(actor),
    )


def check_action(actor: Actor, path: str = "") -> Action:
    """The way to the check of a plan."""
    reason = refusal(actor, "state.check")
    url = reverse("ui:state_check_new")
    return Action(
        label=gettext("Check a restart"),
        url=f"{url}?{urlencode({'checkpoint': path})}" if path else url,
        allowed=not reason,
        reason=reason,
        icon="shield-check",
    )


def _row(query: QueryInfo, order: list[str]) -> QueryRow:
    return QueryRow(
        url=reverse("ui:query", args=[query.id]),
        name=query.name,
        path=query.path,
        environment=environment_of(query.registry, order),
        state=_state(query),
        variables=counted(query.variables, "%(n)s variable", "%(n)s variables"),
        encoding=ENCODINGS.get(query.encoding, query.encoding),
        budget=meter(query.worst),
        inputs=input_links(query.registry, query.inputs),
        last_batch_at=query.last_batch_at,
        scanned_at=query.scanned_at,
    )


def _state(query: QueryInfo) -> Look:
    if query.problems:
        return DAMAGED
    return STARTING if query.last_committed_batch is None else READS


def meter(budget: BudgetInfo | None) -> BudgetMeter | None:
    """A budget as it is drawn."""
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


def input_links(registry: str, inputs: Sequence[InputInfo]) -> tuple[Link, ...]:
    """The topics that are read, each with the subject of its messages where one is known."""
    return tuple(
        Link(label=f"{source.topic} → {source.subject.qualified}", url=subject_url(registry, source.subject.qualified))
        if source.subject
        else Link(label=source.topic, url="")
        for source in inputs
    )


def query_page(request: HttpRequest, query_id: int) -> QueryPage:
    """One query. Raises NotFound, NotAllowed."""
    actor = page_actor(request)
    query = get_query(query_id, by=actor)
    variables = list_variables(query_id)
    findings = f"{reverse('ui:findings')}?{urlencode({'source': query.source_id})}"
    return QueryPage(
        frame=make_frame(request, title=query.name, section=Section.QUERIES, code=True, crumbs=crumbs()),
        name=query.name,
        environment=environment_of(query.registry, list_environments()),
        state=_state(query),
        is_starting=query.last_committed_batch is None,
        problems=tuple(Problem(what=text) for text in query.problems),
        operators=tuple(_operator(query, operator, variables) for operator in query.operators),
        facts=_facts(query),
        inputs=input_links(query.registry, query.inputs),
        runs=tuple(
            RunRow(
                batches=f"{run['first_batch']:,}–{run['last_batch']:,}",
                provider=run["provider"] or gettext("Spark’s default"),
                encoding=run["encoding"],
            )
            for run in query.runs
        ),
        scanned_at=query.scanned_at,
        number=str(query_id),
        actions=(
            Action(
                label=gettext("Source and scans"), url=reverse("ui:source", args=[query.source_id]), icon="scan-search"
            ),
            Action(label=gettext("Findings"), url=findings, icon="triangle-alert"),
            check_action(actor, query.path),
        ),
    )


def crumbs() -> tuple[Crumb, ...]:
    """The way to a query."""
    return (Crumb(label=gettext("Queries"), url=reverse("ui:queries")),)


def _facts(query: QueryInfo) -> tuple[Fact, ...]:
    planned, committed = query.last_planned_batch, query.last_committed_batch
    return (
        Fact(label=gettext("Checkpoint"), value=query.path, code=True),
        Fact(label=gettext("Query"), value=query.query_id, code=True),
        Fact(
            label=gettext("Last batch"),
            value=gettext("none yet")
            if planned is None
            else gettext("%(planned)s planned") % {"planned": f"{planned:,}"},
        ),
        Fact(label=gettext("Committed"), value=gettext("none yet") if committed is None else f"{committed:,}"),
        Fact(label=gettext("Provider"), value=query.provider or gettext("Spark’s default")),
        Fact(label=gettext("Encoding"), value=query.encoding, code=True),
    )


def _operator(query: QueryInfo, operator: Mapping[str, Any], variables: Sequence[VariableInfo]) -> OperatorPanel:
    mine = [variable for variable in variables if variable.operator == operator["number"]]
    facts = [Fact(label=gettext("Partitions"), value=f"{operator['partitions']:,}")]
    if operator["time_mode"]:
        facts.append(Fact(label=gettext("Time mode"), value=operator["time_mode"]))
    if operator["timers"]:
        facts.append(
            Fact(
                label=gettext("Timers"), value=gettext("%(n)s registered") % {"n": f"{operator['timers']['timers']:,}"}
            )
        )
    files = operator["schema_files"]
    return OperatorPanel(
        title=gettext("Operator %(number)s: %(description)s")
        % {"number": operator["number"], "description": operator["description"]},
        sentence=gettext("This state can’t evolve: %(operator)s.") % {"operator": operator["why_fixed"]}
        if operator["why_fixed"]
        else "",
        facts=tuple(facts),
        variables=tuple(_variable_row(query, variable) for variable in mine),
        budget=meter(BudgetInfo("schema_files", operator["number"], "", files, query.allowed_schema_files))
        if files
        else None,
    )


def _variable_row(query: QueryInfo, variable: VariableInfo) -> VariableRow:
    look = REMOVED if variable.removed_at is not None else FIXED if variable.why_fixed else EVOLVES
    return VariableRow(
        url=reverse("ui:state_variable", args=[query.id, variable.id]),
        name=variable.label,
        kind=kind_words(variable),
        look=look,
        rows=gettext("not read") if variable.rows is None else f"{variable.rows:,}",
        versions=variable.versions,
        budget=meter(variable.budget),
    )


def kind_words(variable: VariableInfo) -> str:
    """What kind of state it is, and whether entries expire."""
    kind = variable.kind.replace("_", " ")
    return gettext("%(kind)s with a time to live") % {"kind": kind} if variable.ttl else kind
