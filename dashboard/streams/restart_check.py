"""The check of planned state before a restart: its form and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.forms import (
    NOT_OF_RIGHTS,
    CodeField,
    FormPage,
    FormSection,
    LongTextField,
    NameChoiceField,
    fill_choices,
)
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import later, later_filled
from dashboard.components.widgets import Crumb, Frame, Link, Section
from dashboard.sources.forms import StoreForm
from registry.access.roles import refusal
from registry.drift.selectors import list_sources
from registry.drift.sources import kind_of
from registry.drift.sources.state_store import checkpoint_places
from registry.errors import InvalidInput, SchemadeskError
from registry.formats.policies.spark_state.rules import NO_ACTIONS
from registry.streams.selectors import StateCheckInfo, get_state_check, list_state_checks
from registry.streams.services import check_document, start_plan

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


SHOWN_RECENT: Final = 8
_EXAMPLE: Final = '{"variables": [{"name": "totals", "kind": "value", "value_schema": "orders BIGINT, note STRING"}]}'


class CheckForm(StoreForm):
    """Checks a plan on a known checkpoint or on another one, with the object store of one that is in none of the sources."""

    service: ClassVar[Callable[..., object]] = staticmethod(check_document)
    label = later("Check")
    refusals = NOT_OF_RIGHTS
    conditional = ("path", "plan")

    checkpoint = NameChoiceField(label=later("Known checkpoint"), empty_label=later("– none –"))
    path = CodeField(label=later("Another checkpoint folder or address"), required=False)
    plan = LongTextField(
        label=later("Planned state"),
        rows=16,
        code=True,
        required=False,
        strip=False,
        placeholder=_EXAMPLE,
        help_text=later(
            "All state variables that the next version declares, with schemas as Spark DDL or StructType JSON."
        ),
    )

    def __init__(self, data: Any = None, *, known: Sequence[str], **options: Any) -> None:
        super().__init__(data, **options)
        self.sections = self.sections[1:]
        self.fields["plan"].widget.attrs["required"] = True
        text = later("The query’s checkpointLocation. %(checkpoint_places)s.")
        self.fields["path"].help_text = later_filled(text, checkpoint_places=checkpoint_places())
        if known:
            fill_choices([self], checkpoint=known)
        else:
            del self.fields["checkpoint"]
            self.fields["path"].label = later("Checkpoint folder or address")
            self.fields["path"].widget.attrs["required"] = True

    def parts(self) -> Iterable[FormSection]:
        """The checkpoint and the plan, which the page draws itself, then the store's fields."""
        return (FormSection("", ("checkpoint", "path", "plan")), *self.own_parts())

    def arguments(self) -> dict[str, Any]:
        """The path that was typed, else the known one; line ends as they were typed. Raises InvalidInput without one."""
        values = self.cleaned_data
        checkpoint = values["path"] or values.get("checkpoint", "") or str(self.data.get("checkpoint", "")).strip()
        if not checkpoint:
            raise InvalidInput(gettext("Select a checkpoint, or give its folder."))
        plan = values["plan"].replace("\r\n", "\n")  # places in it are counted
        return {"checkpoint": checkpoint, "plan": plan, "store": self.store()}

    def add_service_error(self, error: SchemadeskError) -> None:
        """The error with its place in the plan."""
        self.add_error(None, error.placed)


class LoadPlanForm(CheckForm):
    """Reads the stored state of the checkpoint as a plan, which is the result."""

    service = staticmethod(start_plan)

    def arguments(self) -> dict[str, Any]:
        """The checkpoint alone."""
        return {name: value for name, value in super().arguments().items() if name != "plan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCheckPage(FormPage):
    """The form that checks a restart, and the last checks."""

    recent: tuple[Link, ...] = ()


def known_checkpoints() -> list[str]:
    """The checkpoints that are sources."""
    return sorted({source.name for source in list_sources() if kind_of(source.kind).keeps_state})


def check_page(request: HttpRequest, form: CheckForm) -> StateCheckPage:
    """The form with what was sent."""
    return StateCheckPage(
        frame=make_frame(request, title=gettext("Check a restart"), section=Section.SOURCES, crumbs=_crumbs()),
        form=form,
        back_url="",
        refused=refusal(page_actor(request), "state.check").replace("start scans", "check planned state"),
        recent=tuple(_recent(info) for info in list_state_checks(limit=SHOWN_RECENT)),
    )


def _recent(info: StateCheckInfo) -> Link:
    folder = info.checkpoint.rstrip("/").rpartition("/")[2]
    return Link(label=f"{info.id}: {folder}, {info.verdict}", url=reverse("ui:state_check", args=[info.id]))


def _crumbs() -> tuple[Crumb, ...]:
    return (Crumb(label=gettext("Sources"), url=reverse("ui:sources")),)


def report_page(request: HttpRequest, check_id: int) -> StateReport:
    """The report of one check. Raises StateCheckNotFound."""
    info = get_state_check(check_id)
    report = info.report
    crumbs = (*_crumbs(), Crumb(label=gettext("Check a restart"), url=reverse("ui:state_check_new")))
    return StateReport(
        frame=make_frame(
            request, title=gettext("State check %(id)s") % {"id": info.id}, section=Section.SOURCES, crumbs=crumbs
        ),
        info=info,
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
