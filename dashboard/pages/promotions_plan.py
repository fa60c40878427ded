"""A stored plan in words: its checks, its steps, the ids that the target will give, and the verdict of all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.timesince import timesince
from django.utils.translation import gettext

from dashboard.presenters.looks import Check, StepState, Verdict
from dashboard.presenters.promotions import CheckRow, IdPlan, IdRow, PlanStep
from dashboard.texts import counted, later, listing
from registry.promotions.consumers import CODE as CONSUMERS
from registry.promotions.plan import (
    ADOPT,
    CONFIG,
    GIVEN_ID,
    OTHER_ID,
    REGISTER,
    REPEAT,
    SAME_ID,
    WEIGHTLESS,
    Step,
    step_from,
)
from registry.promotions.selectors import StepInfo

VERDICTS: Final = {
    "pass": Verdict.OK,
    "warn": Verdict.CARE,
    "fail": Verdict.BREAKS,
    "stale": Verdict.CARE,
    "skipped": Verdict.OK,
}
#: codes of the checks that say whom it concerns; the page shows them apart
IMPACT: Final = ("referrers", "clients", "evidence.data", "evidence.state")
_OUTLOOKS: Final = {
    SAME_ID: (later("the same"), Verdict.OK),
    GIVEN_ID: (later("kept, by IMPORT"), Verdict.OK),
    OTHER_ID: (later("differs"), Verdict.CARE),
}
_UNKNOWN_ID: Final = (later("told when it is written"), Verdict.UNKNOWN)
_PROPOSED: Final = "proposed"
_STEP_SENTENCES: Final = {
    REGISTER: later(
        "Register %(subject)s version %(source_version)s of %(source)s as version %(target_version)s of %(target)s"
    ),
    _PROPOSED: later("Register the proposed text of %(subject)s as version %(target_version)s of %(target)s"),
    REPEAT: later("Repeat version %(source_version)s of %(subject)s as version %(target_version)s of %(target)s"),
    CONFIG: later("Set %(settings)s of %(subject)s in %(target)s"),
    ADOPT: later("Record the release of %(subject)s version %(target_version)s, which is in %(target)s already"),
}
_THERE_ALREADY: Final = later("%(subject)s is in %(target)s already, as version %(target_version)s")


def worst(checks: Iterable[Mapping[str, Any]]) -> Verdict:
    """The worst verdict among checks; what was skipped takes nothing away, and advice weighs nothing."""
    verdicts = {VERDICTS[check["verdict"]] for check in checks if check.get("code") not in WEIGHTLESS}
    return next((verdict for verdict in (Verdict.BREAKS, Verdict.CARE) if verdict in verdicts), Verdict.OK)


def check_rows(checks: Iterable[Mapping[str, Any]]) -> tuple[CheckRow, ...]:
    """Checks as rows."""
    return tuple(
        CheckRow(
            check=Check.of(check["verdict"]),
            name=check["name"],
            sentence=check["sentence"],
            cure=check.get("cure", ""),
            overridable=bool(check.get("overridable")),
            findings_url=_findings_url(check),
            clients_url="#consumers" if check.get("code") == CONSUMERS else "",
        )
        for check in checks
    )


def _findings_url(check: Mapping[str, Any]) -> str:
    """Where open drift is resolved or acknowledged, as its check asks for."""
    subject = check.get("subject")
    return (
        f"{reverse('ui:findings')}?{urlencode({'subject': subject})}"
        if check.get("code") == "drift" and subject
        else ""
    )


def impact_of(checks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The checks that say whom it concerns."""
    return [check for check in checks if check.get("code") in IMPACT]


def seen_of(check: Mapping[str, Any]) -> str:
    """How old what the check rests on is, to follow a sentence or a few words; "" where that isn't known."""
    seen = parse_datetime(check.get("as_of", ""))
    if seen is None:
        return ""
    return gettext(", seen %(age)s ago (%(time)s UTC)") % {
        "age": timesince(seen, depth=1),
        "time": f"{seen:%Y-%m-%d %H:%M}",
    }


def beside_impact(checks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The other checks."""
    return [check for check in checks if check.get("code") not in IMPACT]


def steps_of_plan(plan: Mapping[str, Any]) -> list[Step]:
    """The steps of a stored plan, those of earlier releases too."""
    return [step_from({"kind": _kind(stored), **stored}) for stored in plan["steps"]]


def _kind(stored: Mapping[str, Any]) -> str:
    return REGISTER if stored.get("action") == REGISTER else "none"


def plan_steps(steps: Sequence[Step], source: str, target: str) -> tuple[PlanStep, ...]:
    """What would be done."""
    return tuple(
        PlanStep(sentence=step_sentence(step, source, target), detail=_detail(step), needed=step.writes)
        for step in steps
    )


def applied_steps(rows: Sequence[StepInfo], source: str, target: str) -> tuple[PlanStep, ...]:
    """What was done of it, and what wasn't."""
    return tuple(
        PlanStep(
            sentence=step_sentence(step_from(row.step), source, target),
            needed=step_from(row.step).writes,
            state=StepState.of(row.state),
            said=row.said or _given(row),
            at=row.done_at or row.started_at,
        )
        for row in rows
    )


def _given(row: StepInfo) -> str:
    if row.version is None:
        return ""
    if row.schema_id is None:
        return gettext("version %(version)s") % {"version": row.version}
    return gettext("version %(version)s with schema id %(id)s") % {"version": row.version, "id": row.schema_id}


def step_sentence(step: Step, source: str, target: str) -> str:
    """A step in words."""
    kind = _PROPOSED if step.kind == REGISTER and not step.source_version else step.kind
    return _STEP_SENTENCES.get(kind, _THERE_ALREADY) % {
        "subject": step.subject,
        "source": source,
        "source_version": step.source_version,
        "target": target,
        "target_version": step.target_version,
        "settings": listing(sorted(step.config or {})) or gettext("nothing"),
    }


def _detail(step: Step) -> str:
    if step.kind == CONFIG:
        return ", ".join(f"{name}: {value}" for name, value in sorted((step.config or {}).items()))
    references = ", ".join(
        gettext("%(subject)s version %(version)s") % {"subject": ref.subject, "version": ref.version}
        for ref in step.references
    )
    along = "" if step.asked or not step.adds else gettext("comes along, because others refer to it")
    parts = (
        gettext("refers to %(references)s") % {"references": references} if references and step.adds else "",
        along,
    )
    return "; ".join(part for part in parts if part)


def id_plan(steps: Sequence[Step], source: str, target: str) -> IdPlan | None:
    """The schema ids that the target will give, against the source's; None where no version is added."""
    adding = [step for step in steps if step.adds]
    if not adding:
        return None
    rows = tuple(_id_row(step) for step in adding)
    if len(adding) == 1:
        return IdPlan(sentence=_one_id(adding[0], source, target), verdict=rows[0].verdict)
    differing = sum(step.id_outlook == OTHER_ID for step in adding)
    unknown = sum(_id_of(step)[1] is Verdict.UNKNOWN for step in adding)
    if differing:
        sentence, verdict = (
            gettext("%(differing)s of %(count)s ids will differ from those in %(source)s.")
            % {"differing": differing, "count": len(adding), "source": source},
            Verdict.CARE,
        )
    elif unknown:
        sentence = counted(
            unknown,
            "%(n)s id of %(all)s: %(target)s tells when it is written.",
            "%(n)s ids of %(all)s: %(target)s tells when it is written.",
            all=len(adding),
            target=target,
        )
        verdict = Verdict.UNKNOWN
    else:
        sentence, verdict = (
            gettext("All %(count)s ids will be the same as in %(source)s.") % {"count": len(adding), "source": source},
            Verdict.OK,
        )
    return IdPlan(sentence=sentence, verdict=verdict, source=source, target=target, rows=rows)


def _one_id(step: Step, source: str, target: str) -> str:
    if step.expected_id is None:
        return gettext("%(target)s tells the id when it is written.") % {"target": target}
    will = gettext("%(target)s will get id %(expected_id)s") % {"target": target, "expected_id": step.expected_id}
    if step.id_outlook == SAME_ID:
        return gettext("%(will)s — same as %(source)s.") % {"will": will, "source": source or gettext("before")}
    if step.id_outlook == GIVEN_ID:
        return gettext("%(will)s, kept from %(source)s by IMPORT.") % {"will": will, "source": source}
    if step.source_id is None:
        return f"{will}."
    return gettext("%(will)s; it differs from %(source)s, which has %(id)s.") % {
        "will": will,
        "source": source or gettext("before"),
        "id": step.source_id,
    }


def _id_of(step: Step) -> tuple[str, Verdict]:
    return _OUTLOOKS.get(step.id_outlook, _UNKNOWN_ID)


def _id_row(step: Step) -> IdRow:
    word, verdict = _id_of(step)
    there = "—" if step.source_id is None else str(step.source_id)
    here = "—" if step.expected_id is None else str(step.expected_id)
    if step.expected_id is not None and step.source_id is None:
        word, verdict = gettext("new"), Verdict.OK
    return IdRow(subject=step.subject, there=there, here=here, outlook=word, verdict=verdict)
