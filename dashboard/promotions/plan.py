"""A stored plan for display: its checks, its steps, the expected schema ids, and the overall verdict.

Also the rows shared by the list, the form and the page of a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.timesince import timesince
from django.utils.translation import gettext

from dashboard.components.badges import StepState, Verdict
from dashboard.components.frame import make_frame
from dashboard.components.links import crumb
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Crumb, Environment, Frame, Link, Paging, SearchBox, Section
from registry.promotions.plan.types import (
    ADOPT,
    CONFIG,
    GIVEN_ID,
    OTHER_ID,
    REGISTER,
    REPEAT,
    SAME_ID,
    USUAL,
    PlanStep,
    step_from,
)
from registry.promotions.selectors import RequestInfo, StepInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """A request in a list. `what` is its content ("version 3", "a proposed text", "version 2 again").

    `source` is None if only the target is involved. `word` names the failing check, "" if none fails. `blocked` says
    what it waits for, "" if nothing. `alone` says why it can't be approved in bulk, in lists that offer that; `impact`
    has the checks about affected parties; `due` says why its review is due. It links to the `anchor` of its page.
    """

    info: RequestInfo
    what: str
    target: Environment
    source: Environment | None = None
    verdict: Verdict = Verdict.UNKNOWN
    word: str = ""
    reviews: str = ""
    blocked: str = ""
    alone: str = ""
    impact: str = ""
    due: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestList:
    """The requests that the reader may see, newest first; `is_partial` says that there may be others.

    `together` opens the bulk approval of selected requests, in the list of those that wait for the reader.
    """

    frame: Frame
    search: SearchBox
    rows: tuple[RequestRow, ...]
    paging: Paging
    request: Action | None = None
    drafts: Link | None = None
    together: Action | None = None
    is_partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRow:
    """A request in a bulk approval; `note` says what will prevent applying it."""

    request: RequestRow
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedRow:
    """A selected request left out of the bulk approval, and why; `request` is None if the reader may not read it."""

    number: int
    reason: str
    request: RequestRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkApprovalPage:
    """A bulk approval: each request with its plan, and the selected ones left out."""

    frame: Frame
    rows: tuple[ApprovalRow, ...]
    left: tuple[ExcludedRow, ...]
    submit: Action
    back_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step of the plan in words ("Register orders-value version 3 as version 3 of prod"), with details.

    `state` is None until it is applied; then `note` is the target's answer, and `at` the time.
    """

    sentence: str
    detail: str = ""
    needed: bool = True
    state: StepState | None = None
    note: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdRow:
    """A schema id at the source ("31") and at the target ("88"), and whether they are equal, in words."""

    subject: str
    there: str
    here: str
    outlook: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class IdPlan:
    """The schema ids that the target is expected to assign: a sentence, and the mapping if there are several.

    A row's `there` is the id in the source, `here` the expected one in the target.
    """

    sentence: str
    verdict: Verdict
    source: str = ""
    target: str = ""
    rows: tuple[IdRow, ...] = ()


def promotion_frame(request: HttpRequest, title: str, *above: Crumb, **options: Any) -> Frame:
    """Return the frame of a page below the list of requests."""
    crumbs = (crumb(gettext("Promotions"), "promotions"), *above)
    return make_frame(request, title=title, section=Section.PROMOTIONS, crumbs=crumbs, **options)


VERDICTS: Final = {
    "pass": Verdict.OK,
    "warn": Verdict.CARE,
    "fail": Verdict.BREAKS,
    "stale": Verdict.CARE,
    "skipped": Verdict.OK,
}
#: codes of the checks about affected parties; the page shows them separately
IMPACT: Final = ("referrers", "clients", "evidence.data", "evidence.state")
_OUTLOOKS: Final = {
    SAME_ID: (_("the same"), Verdict.OK),
    GIVEN_ID: (_("kept, by IMPORT"), Verdict.OK),
    OTHER_ID: (_("differs"), Verdict.CARE),
}
_UNKNOWN_ID: Final = (_("known when it is written"), Verdict.UNKNOWN)
_PROPOSED: Final = "proposed"
_STEP_SENTENCES: Final = {
    REGISTER: _(
        "Register %(subject)s version %(source_version)s of %(source)s as version %(target_version)s of %(target)s"
    ),
    _PROPOSED: _("Register the proposed text of %(subject)s as version %(target_version)s of %(target)s"),
    REPEAT: _("Repeat version %(source_version)s of %(subject)s as version %(target_version)s of %(target)s"),
    CONFIG: _("Set %(settings)s of %(subject)s in %(target)s"),
    ADOPT: _("Record the release of %(subject)s version %(target_version)s, which is already in %(target)s"),
}
_THERE_ALREADY: Final = _("%(subject)s is already in %(target)s as version %(target_version)s")


def worst(checks: Iterable[Mapping[str, Any]]) -> Verdict:
    """Return the worst verdict of the checks; skipped checks, advice and differing ids don't count."""
    verdicts = {VERDICTS[check["verdict"]] for check in checks if check.get("code") not in USUAL}
    return next((verdict for verdict in (Verdict.BREAKS, Verdict.CARE) if verdict in verdicts), Verdict.OK)


def who_overrides(codes: Iterable[str]) -> str:
    """Say who can override failing checks with these codes."""
    return gettext("an admin can override it") if "compatibility" in codes else gettext("a reviewer can override it")


#: code of a check → label of its failure in a request's badge
_FAILED: Final = {
    "acknowledged": _("Not acknowledged"),
    "compatibility": _("Incompatible"),
    "config": _("Settings fail"),
    "drift": _("Open drift"),
    "freeze": _("Frozen"),
    "mirror": _("Mirror not synced"),
    "mode": _("Mode prevents it"),
    "policy": _("Policy fails"),
    "references": _("References missing"),
    "reserved-fields": _("Reserved fields used"),
    "schema": _("Invalid schema"),
    "something-to-do": _("Nothing to do"),
    "status": _("Not active"),
    "threads": _("Open discussion"),
}


def failure_word(checks: Iterable[Mapping[str, Any]]) -> str:
    """Return the label of the first failing check, compatibility before others; "" if none fails."""
    codes = [str(check.get("code") or "") for check in checks if VERDICTS[check["verdict"]] is Verdict.BREAKS]
    if not codes:
        return ""
    code = "compatibility" if "compatibility" in codes else codes[0]
    return str(_FAILED.get(code) or gettext("Check fails"))


def impact_of(checks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the checks about affected parties."""
    return [check for check in checks if check.get("code") in IMPACT]


def age_of(check: Mapping[str, Any]) -> str:
    """Return the age of a check's evidence, as the end of a sentence; "" if it is unknown."""
    scanned_at = parse_datetime(check.get("as_of", ""))
    if scanned_at is None:
        return ""
    return gettext(", seen %(age)s ago (%(time)s UTC)") % {
        "age": timesince(scanned_at, depth=1),
        "time": f"{scanned_at:%Y-%m-%d %H:%M}",
    }


def steps_of_plan(plan: Mapping[str, Any]) -> list[PlanStep]:
    """Return the steps of a stored plan, including plans of earlier releases."""
    return [step_from({"kind": _kind(stored), **stored}) for stored in plan["steps"]]


def _kind(stored: Mapping[str, Any]) -> str:
    return REGISTER if stored.get("action") == REGISTER else "none"


def plan_steps(steps: Sequence[PlanStep], source: str, target: str) -> tuple[StepRow, ...]:
    """Return the planned steps."""
    return tuple(
        StepRow(sentence=step_sentence(step, source, target), detail=_detail(step), needed=step.writes)
        for step in steps
    )


def applied_steps(rows: Sequence[StepInfo], source: str, target: str) -> tuple[StepRow, ...]:
    """Return the steps with their results."""
    return tuple(
        StepRow(
            sentence=step_sentence(step_from(row.step), source, target),
            needed=step_from(row.step).writes,
            state=StepState.of(row.state),
            note=row.said or _version_and_id(row),
            at=row.done_at or row.started_at,
        )
        for row in rows
    )


def _version_and_id(row: StepInfo) -> str:
    if row.version is None:
        return ""
    if row.schema_id is None:
        return gettext("version %(version)s") % {"version": row.version}
    return gettext("version %(version)s with schema id %(id)s") % {"version": row.version, "id": row.schema_id}


def step_sentence(step: PlanStep, source: str, target: str) -> str:
    """Describe a step."""
    kind = _PROPOSED if step.kind == REGISTER and not step.source_version else step.kind
    return _STEP_SENTENCES.get(kind, _THERE_ALREADY) % {
        "subject": step.subject,
        "source": source,
        "source_version": step.source_version,
        "target": target,
        "target_version": step.target_version,
        "settings": listing(sorted(step.config or {})) or gettext("nothing"),
    }


def _detail(step: PlanStep) -> str:
    if step.kind == CONFIG:
        return ", ".join(f"{name}: {value}" for name, value in sorted((step.config or {}).items()))
    references = ", ".join(
        gettext("%(subject)s version %(version)s") % {"subject": ref.subject, "version": ref.version}
        for ref in step.references
    )
    along = "" if step.asked or not step.adds else gettext("included because others refer to it")
    parts = (
        gettext("refers to %(references)s") % {"references": references} if references and step.adds else "",
        along,
    )
    return "; ".join(part for part in parts if part)


def id_plan(steps: Sequence[PlanStep], source: str, target: str) -> IdPlan | None:
    """Return the schema ids expected in the target, compared with the source's; None if no version is added."""
    adding = [step for step in steps if step.adds]
    if not adding:
        return None
    rows = tuple(_id_row(step) for step in adding)
    if len(adding) == 1:
        return IdPlan(sentence=_one_id(adding[0], source, target), verdict=rows[0].verdict)
    are_given = all(step.id_outlook == GIVEN_ID for step in adding)
    differing = sum(step.id_outlook == OTHER_ID for step in adding)
    unknown = sum(_id_of(step)[1] is Verdict.UNKNOWN for step in adding)
    if differing:
        sentence, verdict = (
            gettext("%(differing)s of %(count)s ids are expected to differ from those in %(source)s.")
            % {"differing": differing, "count": len(adding), "source": source},
            Verdict.CARE,
        )
    elif unknown:
        sentence = counted(
            unknown,
            "%(n)s of %(all)s ids is assigned by %(target)s when it is written.",
            "%(n)s of %(all)s ids are assigned by %(target)s when they are written.",
            all=len(adding),
            target=target,
        )
        verdict = Verdict.UNKNOWN
    else:
        sentence, verdict = (
            gettext("All %(count)s ids are expected to be the same as in %(source)s.")
            % {"count": len(adding), "source": source},
            Verdict.OK,
        )
    if differing or not (unknown or are_given):
        sentence = f"{sentence} {gettext('Ids are assigned when the request is applied.')}"
    return IdPlan(sentence=sentence, verdict=verdict, source=source, target=target, rows=rows)


def _one_id(step: PlanStep, source: str, target: str) -> str:
    if step.expected_id is None:
        return gettext("%(target)s assigns the id when the schema is written.") % {"target": target}
    expected = gettext("Expected id in %(target)s: %(expected_id)s") % {
        "target": target,
        "expected_id": step.expected_id,
    }
    values = {"will": expected, "source": source or gettext("before"), "id": step.source_id}
    if step.id_outlook == GIVEN_ID:
        return gettext("%(will)s, kept from %(source)s by IMPORT.") % values
    if step.id_outlook == SAME_ID:
        will = gettext("%(will)s, same as %(source)s.") % values
    elif step.source_id is None:
        will = f"{expected}."
    else:
        will = gettext("%(will)s, different from %(source)s (%(id)s).") % values
    return f"{will} {gettext('It is assigned when the request is applied.')}"


def _id_of(step: PlanStep) -> tuple[str, Verdict]:
    return _OUTLOOKS.get(step.id_outlook, _UNKNOWN_ID)


def _id_row(step: PlanStep) -> IdRow:
    word, verdict = _id_of(step)
    there = "—" if step.source_id is None else str(step.source_id)
    here = "—" if step.expected_id is None else str(step.expected_id)
    if step.expected_id is not None and step.source_id is None:
        word, verdict = gettext("new"), Verdict.OK
    return IdRow(subject=step.subject, there=there, here=here, outlook=word, verdict=verdict)
