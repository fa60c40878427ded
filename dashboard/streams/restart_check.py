"""The check of planned state before a restart: its form and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
#: changes of one variable that a page draws
DRAWN_CHANGES: Final = 100
UNKNOWN: Final = Look("unknown", "circle-dashed", later("Unknown"))


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """One change of a variable, as reports have it: `path`, `message`, `why`, `rule`, `error`, `document` …"""

    info: Mapping[str, Any]

    @property
    def look(self) -> Look:
        """Its effect."""
        return EFFECT_LOOKS.get(self.info["effect"], UNKNOWN)

    @property
    def remedy(self) -> str:
        """What to do, "" for nothing."""
        return "" if self.info["remedy"] in NO_ACTIONS else str(self.info["remedy"])

    @property
    def reads(self) -> list[tuple[str, str]]:
        """What rows written before read as, by language."""
        return sorted(self.info["reads"].items())


@dataclass(frozen=True, slots=True)
class ReportVariable:
    """A state variable in the report: `name`, `sentence`, `place`, `budget`, and `stored` and `planned` as DDL or None.

    `drawn` is how many of its changes are drawn.
    """

    number: int
    info: Mapping[str, Any]
    drawn: int = DRAWN_CHANGES

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"v{self.number}"

    @property
    def kind(self) -> str:
        """What kind of state it is, and how it is keyed."""
        entry = self.info
        kind = gettext("%(kind)s with a time to live") % {"kind": entry["kind"]} if entry["ttl"] else entry["kind"]
        if entry["user_key"]:
            return gettext("keyed by %(key)s; %(kind)s") % {"key": entry["user_key"], "kind": kind}
        return str(kind)

    @property
    def look(self) -> Look:
        """Its status."""
        return STATUS_LOOKS.get(self.info["status"], UNKNOWN)

    @property
    def changes(self) -> list[ReportedChange]:
        """The first changes."""
        return [ReportedChange(change) for change in self.info["changes"][: self.drawn]]

    @property
    def hidden_changes(self) -> int:
        """How many changes aren't drawn, none worse than those that are."""
        return max(0, len(self.info["changes"]) - self.drawn)

    @property
    def is_kept(self) -> bool:
        """Whether a built-in operator keeps it, so that nothing can be planned for it."""
        return bool(self.info["status"] == "not checked")

    @property
    def is_changed(self) -> bool:
        """Whether stored and planned schemas are worth to be shown side by side."""
        return (self.info["stored"] or "") != (self.info["planned"] or "")


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
    info: StateCheckInfo
    facts: tuple[Fact, ...]
    variables: tuple[ReportVariable, ...]
    budgets: tuple[BudgetRow, ...]

    @property
    def look(self) -> Look:
        """The verdict."""
        return VERDICT_LOOKS.get(self.info.report["verdict"], UNKNOWN)

    @property
    def why_fixed(self) -> str:
        """Why the state can't evolve, where a plan could change any of it."""
        is_kept = all(variable.is_kept for variable in self.variables)
        return "" if is_kept else self.info.report["operator"]["why_fixed"] or ""

    @property
    def changes(self) -> list[ReportedChange]:
        """The changes of the operator."""
        return list(map(ReportedChange, self.info.report["changes"]))


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
    crumbs = (*_crumbs(), Crumb(label=gettext("Check a restart"), url=reverse("ui:state_check_new")))
    return StateReport(
        frame=make_frame(
            request, title=gettext("State check %(id)s") % {"id": info.id}, section=Section.SOURCES, crumbs=crumbs
        ),
        info=info,
        facts=tuple(facts),
        variables=tuple(ReportVariable(number, entry) for number, entry in enumerate(report["variables"], start=1)),
        budgets=tuple(_budgets(report)),
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
