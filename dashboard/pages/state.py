"""The form and the report of a check of planned state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.sources_fields import checkpoint_places, store_groups
from dashboard.presenters.frame import Action, Choice, Crumb, Fact, Field, Link, Problem, Section
from dashboard.presenters.state import (
    EFFECT_LOOKS,
    STATUS_LOOKS,
    UNKNOWN,
    VERDICT_LOOKS,
    Budget,
    StateChange,
    StateCheckForm,
    StateReport,
    StateVariable,
)
from registry.access.roles import refusal
from registry.drift.selectors import list_sources
from registry.errors import SchemadeskError
from registry.streams.selectors import StateCheckInfo, get_state_check, list_state_checks

SHOWN_RECENT: Final = 8
DRAWN_CHANGES: Final = 100  # of one variable
_EXAMPLE: Final = '{"variables": [{"name": "totals", "kind": "value", "value_schema": "orders BIGINT, note STRING"}]}'


def chosen_checkpoint(given: Mapping[str, Any]) -> str:
    """The path that the form names: the one that was typed, else the known one that was chosen."""
    return str(given.get("path", "")).strip() or str(given.get("checkpoint", "")).strip()


def check_form(
    request: HttpRequest, *, plan: str = "", checkpoint: str = "", problem: SchemadeskError | None = None
) -> StateCheckForm:
    """The form with what was sent, and what was wrong with it."""
    given = request.POST if request.method == "POST" else request.GET
    actor = page_actor(request)
    reason = refusal(actor, "state.check")
    known, path = _places(given, checkpoint)
    return StateCheckForm(
        frame=make_frame(request, title=gettext("Check a restart"), section=Section.SOURCES, crumbs=_crumbs()),
        known=known,
        path=path,
        store=store_groups(given),
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


def _places(given: Mapping[str, Any], checkpoint: str) -> tuple[Field | None, Field]:
    """The known checkpoints, if there are any, and the field for another one."""
    paths = sorted({source.name for source in list_sources() if source.kind == "state_store"})
    chosen = checkpoint or str(given.get("checkpoint", ""))
    typed = str(given.get("path", "")) or (chosen if chosen not in paths else "")
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
        help=gettext("What the query has as its checkpointLocation. %(checkpoint_places)s.")
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
        if all(each["status"] == "not checked" for each in report["variables"])
        else operator["why_fixed"] or "",
        changes=tuple(present_change(each) for each in report["changes"]),
        variables=tuple(
            _variable(at, each, is_kept=each["status"] == "not checked")
            for at, each in enumerate(report["variables"], start=1)
        ),
        budgets=tuple(_budgets(report)),
        settings=tuple((each["name"], each["value"], each["said_by"]) for each in report["settings"]),
        notes=tuple(report["notes"]),
        plan=info.plan,
        exports=tuple(
            Link(label=label, url=f"{reverse('ui:state_check_export', args=[info.id])}?format={kind}")
            for label, kind in (("Markdown", "markdown"), ("JSON", "json"), (gettext("Text"), "text"))
        ),
        again=Action(label=gettext("Change it and check again"), url=f"{new}?again={info.id}", icon="pencil"),
    )


def _variable(number: int, given: Mapping[str, Any], *, is_kept: bool) -> StateVariable:
    kind = gettext("%(kind)s, with time to live") % {"kind": given["kind"]} if given["ttl"] else given["kind"]
    budget = given["budget"]
    if given["user_key"]:
        kind = gettext("keyed by %(key)s; %(kind)s") % {"key": given["user_key"], "kind": kind}
    return StateVariable(
        anchor=f"v{number}",
        name=given["name"],
        kind=kind,
        look=STATUS_LOOKS.get(given["status"], UNKNOWN),
        sentence=given["sentence"],
        stored=given["stored"] or "",
        planned=given["planned"] or "",
        changes=tuple(present_change(each) for each in given["changes"][:DRAWN_CHANGES]),
        hidden_changes=max(0, len(given["changes"]) - DRAWN_CHANGES),
        budget=gettext("%(before)s → %(after)s of %(allowed)s") % budget if budget else "",
        place=given["place"],
        is_kept=is_kept,
    )


def present_change(given: Mapping[str, Any]) -> StateChange:
    """A change of a state variable, as reports have it."""
    return StateChange(
        look=EFFECT_LOOKS.get(given["effect"], UNKNOWN),
        path=given["path"],
        sentence=given["message"],
        why=given["why"],
        remedy=given["remedy"],
        rule=given["rule"],
        error=given["error"],
        document=given["document"],
        reads=tuple(sorted(given["reads"].items())),
    )


def _budgets(report: Mapping[str, Any]) -> Sequence[Budget]:
    """The fullest budgets of variables, and the one of schema files."""
    found = [
        (gettext("Value schemas of %(name)s") % {"name": e["name"]}, e["budget"])
        for e in report["variables"]
        if e["budget"]
    ]
    found.sort(key=lambda pair: -pair[1]["after"] / max(1, pair[1]["allowed"]))
    files = [(gettext("Schema files"), report["files"])] if report["files"] else []
    return [
        Budget(
            label=label,
            before=budget["before"],
            after=budget["after"],
            allowed=budget["allowed"],
            percent=min(100, 100 * budget["after"] // max(1, budget["allowed"])),
        )
        for label, budget in [*files, *found[:5]]
    ]
