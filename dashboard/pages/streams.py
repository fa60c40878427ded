"""The list of streaming queries, and one query with its operators and state variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.presenters.frame import Action, Crumb, Fact, Link, Paging, Problem, Section
from dashboard.presenters.looks import Look
from dashboard.presenters.streams import (
    BudgetMeter,
    OperatorPanel,
    QueryList,
    QueryPage,
    QueryRow,
    RunRow,
    VariableRow,
)
from dashboard.texts import counted, later
from registry.access.extent import require_extent
from registry.access.roles import Actor, refusal
from registry.promotions.selectors import list_environments
from registry.streams.infos import BudgetInfo, InputInfo, QueryInfo, VariableInfo
from registry.streams.queries import PAGE, get_query, list_queries, list_variables

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
    (0.75, Look("care", "triangle-alert", later("Getting full"))),
)


def query_list(request: HttpRequest) -> QueryList:
    """All queries that scans have found, the fullest budget first. Raises NotAllowed."""
    actor = page_actor(request)
    offset = min(whole_number(request.GET.get("offset", "")) or 0, MOST) // PAGE * PAGE
    require_extent(actor, "schema.read")
    found = list_queries(by=actor, offset=offset, limit=PAGE + 1)
    order, page = list_environments(), found[:PAGE]
    here = reverse("ui:queries")
    reason = refusal(actor, "source.manage")
    return QueryList(
        frame=make_frame(request, title=gettext("Streaming queries"), section=Section.QUERIES),
        rows=tuple(_row(each, order) for each in page),
        paging=Paging(
            first=offset + 1 if page else 0,
            last=offset + len(page),
            previous_url=f"{here}?offset={offset - PAGE}" if offset else "",
            next_url=f"{here}?offset={offset + PAGE}" if len(found) > PAGE else "",
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
        Link(label=f"{each.topic} → {each.subject.qualified}", url=subject_url(registry, each.subject.qualified))
        if each.subject
        else Link(label=each.topic, url="")
        for each in inputs
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
        problems=tuple(Problem(what=each) for each in query.problems),
        operators=tuple(_operator(query, each, variables) for each in query.operators),
        facts=_facts(query),
        inputs=input_links(query.registry, query.inputs),
        runs=tuple(
            RunRow(
                batches=f"{each['first_batch']:,}–{each['last_batch']:,}",
                provider=each["provider"] or gettext("Spark’s default"),
                encoding=each["encoding"],
            )
            for each in query.runs
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
    mine = [each for each in variables if each.operator == operator["number"]]
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
        sentence=gettext("No evolution is possible here: %(operator)s.") % {"operator": operator["why_fixed"]}
        if operator["why_fixed"]
        else "",
        facts=tuple(facts),
        variables=tuple(_variable_row(query, each) for each in mine),
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
    return gettext("%(kind)s, with time to live") % {"kind": kind} if variable.ttl else kind
