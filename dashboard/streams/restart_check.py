"""The check of planned state before a restart: its form and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Crumb, Fact, Field, Frame, Link, Problem, Section
from dashboard.sources.forms import StoreForm
from registry.access.roles import refusal
from registry.drift.selectors import list_sources
from registry.drift.sources import kind_of
from registry.drift.sources.state_store import checkpoint_places
from registry.errors import SchemadeskError
from registry.formats.policies.spark_state.rules import NO_ACTIONS
from registry.streams.selectors import StateCheckInfo, get_state_check, list_state_checks

#: the verdict of a whole check
VERDICT_LOOKS: Final = {
    "fine": Look("ok", "circle-check", later("Fine")),
    "loses data": Look("care", "triangle-alert", later("Loses data")),
    "fails later": Look("breaks", "octagon-x", later("Fails later")),
    "refused": Look("breaks", "octagon-x", later("Refused")),
    "not checked": Look("unknown", "circle-dashed", later("Not checked")),
}
#: the status of a variable
STATUS_LOOKS: Final = {
    "unchanged": Look("unknown", "check", later("Unchanged")),
    "added": Look("ok", "plus", later("Added")),
    "removed": Look("care", "minus", later("Removed")),
    "evolves": Look("ok", "circle-check", later("Evolves")),
    "accepted but loses data": Look("care", "triangle-alert", later("Loses data")),
    "accepted but fails later": Look("breaks", "octagon-x", later("Fails later")),
    "refused": Look("breaks", "octagon-x", later("Refused")),
    "not checked": Look("unknown", "circle-dashed", later("Not checked")),
}
#: the effect of one change
EFFECT_LOOKS: Final = {
    "note": Look("info", "info", later("Note")),
    "loses data": Look("care", "triangle-alert", later("Loses data")),
    "fails later": Look("breaks", "octagon-x", later("Fails later")),
    "refused": Look("breaks", "octagon-x", later("Refused")),
}
UNKNOWN: Final = Look("unknown", "circle-dashed", later("Unknown"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One change of a variable: what it is, why, what to do, and what rows written before read as, by language."""

    look: Look
    path: str
    sentence: str
    why: str
    remedy: str
    rule: str
    error: str = ""
    document: str = ""
    reads: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportVariable:
    """A state variable in the report; schemas are DDL, "" where there is none; `budget` is "" where it doesn't count.

    `hidden_changes` aren't drawn, none worse than those that are. `is_kept` says that a built-in operator keeps it: nothing can be planned for it.
    """

    anchor: str
    name: str
    kind: str
    look: Look
    sentence: str
    stored: str
    planned: str
    changes: tuple[StateChange, ...]
    budget: str = ""
    location: str = ""
    hidden_changes: int = 0
    is_kept: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether stored and planned schemas are worth to be shown side by side."""
        return self.stored != self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """A limit of Spark's: what it counts, how much is used before and after, and how full it then is (0 to 100)."""

    label: str
    before: int
    after: int
    allowed: int
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """The page of a report."""

    frame: Frame
    look: Look
    sentence: str
    error: str
    error_message: str
    checked_at: datetime
    checked_by: str
    facts: tuple[Fact, ...]
    why_fixed: str
    changes: tuple[StateChange, ...]
    variables: tuple[ReportVariable, ...]
    budgets: tuple[BudgetRow, ...]
    settings: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    plan: str
    exports: tuple[Link, ...]
    again: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCheckForm:
    """The form: a known checkpoint or a path, the object store of one that is in none of the sources, and the plan."""

    frame: Frame
    known_field: Field | None
    path: Field
    plan: Field
    submit: Action
    store: StoreForm
    problem: Problem | None = None
    recent: tuple[Link, ...] = ()


SHOWN_RECENT: Final = 8
DRAWN_CHANGES: Final = 100  # of one variable
_EXAMPLE: Final = '{"variables": [{"name": "totals", "kind": "value", "value_schema": "orders BIGINT, note STRING"}]}'


def chosen_checkpoint(form: Mapping[str, Any]) -> str:
    """The path that the form names: the one that was typed, else the known one that was chosen."""
    return str(form.get("path", "")).strip() or str(form.get("checkpoint", "")).strip()


def check_form(
    request: HttpRequest, *, plan: str = "", checkpoint: str = "", problem: SchemadeskError | None = None
) -> StateCheckForm:
    """The form with what was sent, and what was wrong with it."""
    form = request.POST if request.method == "POST" else request.GET
    actor = page_actor(request)
    reason = refusal(actor, "state.check")
    known_field, path = _checkpoint_fields(form, checkpoint)
    return StateCheckForm(
        frame=make_frame(request, title=gettext("Check a restart"), section=Section.SOURCES, crumbs=_crumbs()),
        known_field=known_field,
        path=path,
        store=StoreForm(request.POST or None, initial=request.GET.dict()),
        plan=Field(
            name="plan",
            label=gettext("Planned state"),
            value=plan,
            kind="textarea",
            required=True,
            rows=16,
            code=True,
            placeholder=_EXAMPLE,
            help=gettext(
                "All state variables that the next version declares, with schemas as Spark DDL or StructType JSON."
            ),
        ),
        submit=Action(
            label=gettext("Check"),
            url=reverse("ui:state_check_new"),
            method="post",
            allowed=not reason,
            reason=reason.replace("start scans", "check planned state"),
            tone="primary",
            icon="shield-check",
        ),
        problem=_problem(problem),
        recent=tuple(_recent(info) for info in list_state_checks(limit=SHOWN_RECENT)),
    )


def _checkpoint_fields(form: Mapping[str, Any], checkpoint: str) -> tuple[Field | None, Field]:
    """The known checkpoints, if there are any, and the field for another one."""
    paths = sorted({source.name for source in list_sources() if kind_of(source.kind).keeps_state})
    chosen = checkpoint or str(form.get("checkpoint", ""))
    typed = str(form.get("path", "")) or (chosen if chosen not in paths else "")
    choices = [
        Choice(value="", label=gettext("– none –")),
        *(Choice(value=p, label=p, selected=p == chosen) for p in paths),
    ]
    path = Field(
        name="path",
        label=gettext("Another checkpoint folder or address") if paths else gettext("Checkpoint folder or address"),
        value=typed,
        code=True,
        required=not paths,
        help=gettext("The query’s checkpointLocation. %(checkpoint_places)s.")
        % {"checkpoint_places": checkpoint_places()},
    )
    if not paths:
        return None, path
    return Field(name="checkpoint", label=gettext("Known checkpoint"), kind="select", choices=tuple(choices)), path


def _problem(error: SchemadeskError | None) -> Problem | None:
    return Problem(what=error.placed) if error else None


def _recent(info: StateCheckInfo) -> Link:
    folder = info.checkpoint.rstrip("/").rpartition("/")[2]
    return Link(label=f"{info.id}: {folder}, {info.verdict}", url=reverse("ui:state_check", args=[info.id]))


def _crumbs() -> tuple[Crumb, ...]:
    return (Crumb(label=gettext("Sources"), url=reverse("ui:sources")),)


def report_page(request: HttpRequest, check_id: int) -> StateReport:
    """The report of one check. Raises StateCheckNotFound."""
    info = get_state_check(check_id)
    report = info.report
    operator = report["operator"]
    number = f"{operator['number']} ({operator['description']})"
    facts = [
        Fact(label=gettext("Checkpoint"), value=info.checkpoint, code=True),
        Fact(label=gettext("Query"), value=info.query_id, code=True),
        Fact(
            label=gettext("Last batch"),
            value=gettext("none yet") if report["last_batch"] is None else f"{report['last_batch']:,}",
        ),
        Fact(label=gettext("Operator"), value=number),
        Fact(label=gettext("Encoding"), value=operator["encoding"], code=True),
        Fact(label=gettext("Language"), value="Scala" if report["language"] == "scala" else "Python"),
    ]
    new = reverse("ui:state_check_new")
    crumbs = (*_crumbs(), Crumb(label=gettext("Check a restart"), url=new))
    return StateReport(
        frame=make_frame(
            request, title=gettext("State check %(id)s") % {"id": info.id}, section=Section.SOURCES, crumbs=crumbs
        ),
        look=VERDICT_LOOKS.get(report["verdict"], UNKNOWN),
        sentence=report["sentence"],
        error=report["error"],
        error_message=report["error_message"],
        checked_at=info.created_at,
        checked_by=info.created_by,
        facts=tuple(facts),
        why_fixed=""
        if all(variable["status"] == "not checked" for variable in report["variables"])
        else operator["why_fixed"] or "",
        changes=tuple(present_change(change) for change in report["changes"]),
        variables=tuple(
            _variable(at, variable, is_kept=variable["status"] == "not checked")
            for at, variable in enumerate(report["variables"], start=1)
        ),
        budgets=tuple(_budgets(report)),
        settings=tuple((setting["name"], setting["value"], setting["said_by"]) for setting in report["settings"]),
        notes=tuple(report["notes"]),
        plan=info.plan,
        exports=tuple(
            Link(label=label, url=f"{reverse('ui:state_check_export', args=[info.id])}?format={kind}")
            for label, kind in (("Markdown", "markdown"), ("JSON", "json"), (gettext("Text"), "text"))
        ),
        again=Action(label=gettext("Edit plan and check again"), url=f"{new}?again={info.id}", icon="pencil"),
    )


def _variable(number: int, entry: Mapping[str, Any], *, is_kept: bool) -> ReportVariable:
    kind = gettext("%(kind)s with a time to live") % {"kind": entry["kind"]} if entry["ttl"] else entry["kind"]
    budget = entry["budget"]
    if entry["user_key"]:
        kind = gettext("keyed by %(key)s; %(kind)s") % {"key": entry["user_key"], "kind": kind}
    return ReportVariable(
        anchor=f"v{number}",
        name=entry["name"],
        kind=kind,
        look=STATUS_LOOKS.get(entry["status"], UNKNOWN),
        sentence=entry["sentence"],
        stored=entry["stored"] or "",
        planned=entry["planned"] or "",
        changes=tuple(present_change(change) for change in entry["changes"][:DRAWN_CHANGES]),
        hidden_changes=max(0, len(entry["changes"]) - DRAWN_CHANGES),
        budget=gettext("%(before)s → %(after)s of %(allowed)s") % budget if budget else "",
        location=entry["place"],
        is_kept=is_kept,
    )


def present_change(entry: Mapping[str, Any]) -> StateChange:
    """A change of a state variable, as reports have it."""
    return StateChange(
        look=EFFECT_LOOKS.get(entry["effect"], UNKNOWN),
        path=entry["path"],
        sentence=entry["message"],
        why=entry["why"],
        remedy="" if entry["remedy"] in NO_ACTIONS else entry["remedy"],
        rule=entry["rule"],
        error=entry["error"],
        document=entry["document"],
        reads=tuple(sorted(entry["reads"].items())),
    )


def _budgets(report: Mapping[str, Any]) -> Sequence[BudgetRow]:
    """The fullest budgets of variables, and the one of schema files."""
    budgets = [
        (gettext("Value schemas of %(name)s") % {"name": e["name"]}, e["budget"])
        for e in report["variables"]
        if e["budget"]
    ]
    budgets.sort(key=lambda pair: -pair[1]["after"] / max(1, pair[1]["allowed"]))
    files = [(gettext("Schema files"), report["files"])] if report["files"] else []
    return [
        BudgetRow(
            label=label,
            before=budget["before"],
            after=budget["after"],
            allowed=budget["allowed"],
            percent=min(100, 100 * budget["after"] // max(1, budget["allowed"])),
        )
        for label, budget in [*files, *budgets[:5]]
    ]
