"""The check of planned state before a restart: its form and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from dashboard.components.widgets import Crumb, Frame, Section
from dashboard.sources.forms import StoreForm
from registry.access.roles import Actor, may, refusal
from registry.drift.selectors import list_sources
from registry.drift.sources import kind_of
from registry.drift.sources.state_store import checkpoint_places
from registry.errors import InvalidInput, SchemadeskError
from registry.formats.policies.spark_state.rules import NO_ACTIONS
from registry.streams.descriptions import RunningInfo, running_description
from registry.streams.selectors import StateCheckInfo, get_state_check, list_state_checks
from registry.streams.services import check_document, start_plan

#: verdict of a check → look
VERDICT_LOOKS: Final = {
    "safe": Look("ok", "circle-check", _("Safe")),
    "loses data": Look("care", "triangle-alert", _("Loses data")),
    "silently wrong": Look("breaks", "octagon-x", _("Silently wrong")),
    "fails later": Look("breaks", "octagon-x", _("Fails later")),
    "fails at start": Look("breaks", "octagon-x", _("Fails at start")),
    "not checked": Look("unknown", "circle-dashed", _("Not checked")),
}
#: status of a variable → look
STATUS_LOOKS: Final = {
    "unchanged": Look("unknown", "check", _("Unchanged")),
    "added": Look("ok", "plus", _("Added")),
    "removed": Look("care", "minus", _("Removed")),
    "evolves": Look("ok", "circle-check", _("Evolves")),
    "accepted but loses data": Look("care", "triangle-alert", _("Loses data")),
    "accepted but silently wrong": Look("breaks", "octagon-x", _("Silently wrong")),
    "accepted but fails later": Look("breaks", "octagon-x", _("Fails later")),
    "refused": Look("breaks", "octagon-x", _("Fails at start")),
    "not checked": Look("unknown", "circle-dashed", _("Not checked")),
}
#: effect of a change → look
EFFECT_LOOKS: Final = {
    "note": Look("info", "info", _("Note")),
    "loses data": Look("care", "triangle-alert", _("Loses data")),
    "silently wrong": Look("breaks", "octagon-x", _("Silently wrong")),
    "fails later": Look("breaks", "octagon-x", _("Fails later")),
    "refused": Look("breaks", "octagon-x", _("Fails at start")),
}
#: way out → label
WAY_LABELS: Final = {
    "undo": _("Undo the change"),
    "two-step release": _("Release in two steps"),
    "state migration": _("Migrate the state"),
    "initial state": _("Start with an initial state"),
    "new checkpoint": _("Start on a new checkpoint"),
    "check again": _("Check again"),
}
#: displayed changes of a variable
DRAWN_CHANGES: Final = 100
UNKNOWN: Final = Look("unknown", "circle-dashed", _("Unknown"))


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """A change of a variable as in the report: `path`, `message`, `why`, `rule`, `error`, `document` …"""

    info: Mapping[str, Any]

    @property
    def look(self) -> Look:
        """The look of its effect."""
        return EFFECT_LOOKS.get(self.info["effect"], UNKNOWN)

    @property
    def remedy(self) -> str:
        """The remedy; "" if none is needed."""
        return "" if self.info["remedy"] in NO_ACTIONS else str(self.info["remedy"])

    @property
    def reads(self) -> list[tuple[str, str]]:
        """The values that old rows are read as, by language."""
        return sorted(self.info["reads"].items())


@dataclass(frozen=True, slots=True)
class ReportVariable:
    """A state variable in the report: `name`, `sentence`, `place`, `budget`, and `stored` and `planned` as DDL or None.

    `drawn` is the number of displayed changes.
    """

    number: int
    info: Mapping[str, Any]
    drawn: int = DRAWN_CHANGES

    @property
    def anchor(self) -> str:
        """The id of its section."""
        return f"v{self.number}"

    @property
    def kind(self) -> str:
        """The kind of state, and its key."""
        entry = self.info
        kind = gettext("%(kind)s with a time to live") % {"kind": entry["kind"]} if entry["ttl"] else entry["kind"]
        if entry["user_key"]:
            return gettext("keyed by %(key)s; %(kind)s") % {"key": entry["user_key"], "kind": kind}
        return str(kind)

    @property
    def look(self) -> Look:
        """The look of its status."""
        return STATUS_LOOKS.get(self.info["status"], UNKNOWN)

    @property
    def changes(self) -> list[ReportedChange]:
        """The first changes."""
        return [ReportedChange(change) for change in self.info["changes"][: self.drawn]]

    @property
    def hidden_changes(self) -> int:
        """The number of omitted changes, which are at most as severe."""
        return max(0, len(self.info["changes"]) - self.drawn)

    @property
    def is_kept(self) -> bool:
        """Whether it belongs to a built-in operator, so that it can't be planned."""
        return bool(self.info["status"] == "not checked")

    @property
    def is_changed(self) -> bool:
        """Whether stored and planned schemas differ."""
        return (self.info["stored"] or "") != (self.info["planned"] or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """A limit in Spark: its label, usage before and after, and percentage then used."""

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
        """The look of the verdict."""
        return VERDICT_LOOKS.get(self.info.report["verdict"], UNKNOWN)

    @property
    def why_fixed(self) -> str:
        """The reason why the state can't evolve, if a plan could change any of it."""
        is_kept = all(variable.is_kept for variable in self.variables)
        return "" if is_kept else self.info.report["operator"]["why_fixed"] or ""

    @property
    def ways_out(self) -> list[tuple[str, Mapping[str, Any]]]:
        """What to do, best first, each with its label; reports of earlier releases have none."""
        return [(WAY_LABELS.get(item["way"], item["label"]), item) for item in self.info.report.get("ways_out", ())]

    @property
    def changes(self) -> list[ReportedChange]:
        """The changes of the operator."""
        return list(map(ReportedChange, self.info.report["changes"]))


SHOWN_RECENT: Final = 8
_EXAMPLE: Final = '{"variables": [{"name": "totals", "kind": "value", "value_schema": "orders BIGINT, note STRING"}]}'


class CheckForm(StoreForm):
    """A form that checks a plan for a known or another checkpoint, with the object store of the latter."""

    service: ClassVar[Callable[..., object]] = staticmethod(check_document)
    label = _("Check")
    refusals = NOT_OF_RIGHTS
    conditional = ("path", "plan")

    checkpoint = NameChoiceField(label=_("Known checkpoint"), empty_label=_("– none –"))
    path = CodeField(label=_("Another checkpoint folder or address"), required=False)
    plan = LongTextField(
        label=_("Planned state"),
        rows=16,
        code=True,
        required=False,
        strip=False,
        placeholder=_EXAMPLE,
        help_text=_(
            "All state variables that the next version declares, with schemas as Spark DDL or StructType JSON, or the "
            "description of the query that schemadesk_spark writes."
        ),
    )

    def __init__(self, data: Any = None, *, known: Sequence[str], **options: Any) -> None:
        super().__init__(data, **options)
        self.sections = self.sections[1:]
        self.fields["plan"].widget.attrs["required"] = True
        text = _("The query’s checkpointLocation. %(checkpoint_places)s.")
        self.fields["path"].help_text = lazy_format(text, checkpoint_places=checkpoint_places())
        if known:
            fill_choices([self], checkpoint=known)
        else:
            del self.fields["checkpoint"]
            self.fields["path"].label = _("Checkpoint folder or address")
            self.fields["path"].widget.attrs["required"] = True

    def parts(self) -> Iterable[FormSection]:
        """Return the checkpoint and the plan, which the page renders itself, and the store's fields."""
        return (FormSection("", ("checkpoint", "path", "plan")), *self.own_parts())

    def arguments(self) -> dict[str, Any]:
        """Return the typed path, else the known one, and the plan with its line endings.

        Raises InvalidInput without a path.
        """
        values = self.cleaned_data
        checkpoint = values["path"] or values.get("checkpoint", "") or str(self.data.get("checkpoint", "")).strip()
        if not checkpoint:
            raise InvalidInput(gettext("Select a checkpoint, or give its folder."))
        plan = values["plan"].replace("\r\n", "\n")  # errors give positions in it
        return {"checkpoint": checkpoint, "plan": plan, "store": self.store()}

    def add_service_error(self, error: SchemadeskError) -> None:
        """Add the error with its position in the plan."""
        self.add_error(None, error.placed)


class LoadPlanForm(CheckForm):
    """A form that reads the checkpoint's stored state as a plan."""

    service = staticmethod(start_plan)

    def arguments(self) -> dict[str, Any]:
        """Return only the checkpoint."""
        return {name: value for name, value in super().arguments().items() if name != "plan"}


@dataclass(frozen=True, slots=True)
class RecentCheck:
    """An earlier check; two folders of its checkpoint's path tell queries apart whose folders have the same name."""

    label: str
    url: str
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCheckPage(FormPage):
    """The form of a restart check, and the last checks."""

    recent: tuple[RecentCheck, ...] = ()
    running: RunningInfo | None = None


def known_checkpoints() -> list[str]:
    """Return the checkpoints that are sources."""
    return sorted({source.name for source in list_sources() if kind_of(source.kind).keeps_state})


def check_page(request: HttpRequest, form: CheckForm) -> StateCheckPage:
    """Return the page with the form."""
    return StateCheckPage(
        frame=make_frame(request, title=gettext("Check a restart"), section=Section.SOURCES, crumbs=_crumbs()),
        form=form,
        back_url="",
        refused=refusal(page_actor(request), "state.check").replace("start scans", "check planned state"),
        recent=tuple(_recent(info) for info in list_state_checks(limit=SHOWN_RECENT)),
        running=_running(form, page_actor(request)),
    )


def _running(form: CheckForm, actor: Actor) -> RunningInfo | None:
    """Return what the query of the chosen checkpoint sent of itself, for readers who may check it."""
    checkpoint = str(form["path"].value() or "") or ("checkpoint" in form.fields and form["checkpoint"].value()) or ""
    is_name = bool(checkpoint) and "\0" not in checkpoint
    return running_description(checkpoint) if is_name and may(actor, "state.check") else None


def _recent(info: StateCheckInfo) -> RecentCheck:
    folders = info.checkpoint.rstrip("/").split("/")
    return RecentCheck(
        label=f"{info.id}: {'/'.join(folders[-2:])}, {VERDICT_LOOKS.get(info.verdict, UNKNOWN).word}",
        url=reverse("ui:state_check", args=[info.id]),
        created_at=info.created_at,
        created_by=info.created_by,
    )


def _crumbs() -> tuple[Crumb, ...]:
    return (Crumb(label=gettext("Sources"), url=reverse("ui:sources")),)


def report_page(request: HttpRequest, check_id: int) -> StateReport:
    """Return the report of a check. Raises StateCheckNotFound."""
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
    """Return the fullest budgets of variables, and the one of schema files."""
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
