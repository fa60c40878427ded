"""What a request is, in words: its title, the decision, and what its environment asks."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext

from dashboard.pages.promotions import at_utc
from dashboard.pages.promotions_plan import steps_of_plan, worst
from dashboard.presenters.looks import Verdict
from dashboard.texts import counted, joined, later
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import ADOPT, CONFIG
from registry.promotions.selectors import EnvironmentInfo, RequestInfo

_TITLES: Final = {
    PromotionRequest.PROMOTE: later("Promote %(subject)s version %(version)s to %(target)s"),
    PromotionRequest.PROPOSE: later("Register a proposed text of %(subject)s in %(target)s"),
    PromotionRequest.ROLL_BACK: later("Roll %(subject)s back to version %(version)s in %(target)s"),
    PromotionRequest.ADOPT: later("Adopt %(subject)s version %(version)s of %(target)s"),
}
_TITLES_OF_SEVERAL: Final = {
    PromotionRequest.PROMOTE: later("Promote %(subject)s version %(version)s and %(more)s to %(target)s"),
    PromotionRequest.PROPOSE: later("Register a proposed text of %(subject)s and %(more)s in %(target)s"),
    PromotionRequest.ROLL_BACK: later("Roll %(subject)s back to version %(version)s and %(more)s in %(target)s"),
    PromotionRequest.ADOPT: later("Adopt %(subject)s version %(version)s and %(more)s of %(target)s"),
}


def title_of(info: RequestInfo) -> str:
    """What the request is for, as a title."""
    others = len(info.items) - 1
    title = _TITLES[info.kind] if not others else _TITLES_OF_SEVERAL[info.kind]
    more = counted(others, "%(n)s other", "%(n)s others")
    return title % {"subject": info.subject.qualified, "version": info.version, "target": info.target, "more": more}


def items_title(info: RequestInfo, shown: int) -> str:
    """How many schemas the request writes, wrote or would have written."""
    if info.is_open:
        return counted(shown, "%(n)s schema would be written", "%(n)s schemas would be written")
    if info.state == PromotionRequest.APPLIED:
        return counted(shown, "%(n)s schema was written", "%(n)s schemas were written")
    return counted(shown, "%(n)s schema would have been written", "%(n)s schemas would have been written")


def verdict_of(info: RequestInfo) -> Verdict:
    """Of a closed one that wasn't applied the plan is only history; of one that can't be read nothing is known."""
    if not info.is_open and not info.releases:
        return Verdict.UNKNOWN
    if info.is_unreadable and not info.releases:
        return Verdict.UNKNOWN
    if info.state == PromotionRequest.FAILED:
        return Verdict.BREAKS
    if info.releases or not info.failing:
        return Verdict.CARE if info.is_breaking or worst(info.checks) is not Verdict.OK else Verdict.OK
    return Verdict.BREAKS


def headline_of(info: RequestInfo, verdict: Verdict) -> str:
    """The decision in a few words."""
    if info.state == PromotionRequest.APPLIED:
        return gettext("Live in %(target)s") % {"target": info.target}
    if not info.is_open:
        return gettext("Closed: %(state)s") % {"state": info.state}
    if info.state == PromotionRequest.FAILED:
        return gettext("Applied in part")
    if verdict is Verdict.BREAKS:
        overridable = all(check.get("overridable") for check in info.failing)
        if not info.is_breaking:
            return gettext("Checks fail, and could be overridden") if overridable else gettext("Checks fail")
        said = (
            gettext("It would break what %(target)s has, and could be overridden")
            if overridable
            else gettext("It would break what %(target)s has")
        )
        return said % {"target": info.target}
    if info.is_breaking:
        return gettext("It breaks what %(target)s has, and was overridden") % {"target": info.target}
    if info.is_unreadable:
        return gettext("Not known: its plan is damaged")
    return gettext("Can be done, with care") if verdict is Verdict.CARE else gettext("Can be done")


def sentence_of(info: RequestInfo) -> str:
    """The decision in a sentence: what is written, or what fails first."""
    if info.release:
        there = gettext("%(target)s has it as version %(version)s with schema id %(schema_id)s.") % {
            "target": info.target,
            "version": info.release.version,
            "schema_id": info.release.schema_id,
        }
        more = len(info.releases) - 1
        came = counted(more, "%(n)s other version came with it.", "%(n)s other versions came with it.")
        return f"{there} {came}" if more else there
    if info.failing:
        first, more = str(info.failing[0]["sentence"]), len(info.failing) - 1
        too = counted(more, "%(n)s other check fails too.", "%(n)s other checks fail too.")
        return f"{first} {too}" if more else first
    if info.is_unreadable:
        return gettext("What would be written to %(target)s can’t be told.") % {"target": info.target}
    steps = steps_of_plan(info.plan)
    adding, settings = sum(step.adds for step in steps), sum(step.kind == CONFIG for step in steps)
    parts = [_written_to(adding, info.target)] if adding else []
    parts += [_settings_of(settings)] if settings else []
    parts += [gettext("a release would be recorded")] if any(step.kind == ADOPT for step in steps) else []
    said = joined(parts) or gettext("Nothing would be written to %(target)s") % {"target": info.target}
    said = f"{said[:1].upper()}{said[1:]}"
    return f"{said}." if info.is_breaking else gettext("%(said)s; nothing there breaks.") % {"said": said}


def _written_to(versions: int, target: str) -> str:
    return counted(
        versions,
        "%(n)s version would be written to %(target)s",
        "%(n)s versions would be written to %(target)s",
        target=target,
    )


def _settings_of(subjects: int) -> str:
    return counted(
        subjects,
        "the settings of %(n)s subject would be changed",
        "the settings of %(n)s subjects would be changed",
    )


def _reviews_by(environment: EnvironmentInfo) -> str:
    needed = environment.reviews_needed
    if environment.own_approval_allowed:
        return counted(
            needed,
            "%(n)s approval by anybody with the right to review.",
            "%(n)s approvals by anybody with the right to review.",
        )
    return counted(
        needed,
        "%(n)s approval by somebody else than the requester.",
        "%(n)s approvals by somebody else than the requester.",
    )


def _evidence_rules(environment: EnvironmentInfo) -> list[str]:
    hours, lines = environment.max_evidence_hours, []
    if environment.evidence_required:
        lines.append(gettext("A release needs evidence from data."))
    if hours and hours % 24 == 0:
        lines.append(
            counted(
                hours // 24,
                "Evidence from data may be %(n)s day old at most.",
                "Evidence from data may be %(n)s days old at most.",
            )
        )
    elif hours:
        lines.append(
            counted(
                hours,
                "Evidence from data may be %(n)s hour old at most.",
                "Evidence from data may be %(n)s hours old at most.",
            )
        )
    return lines


def policy_of(environment: EnvironmentInfo) -> tuple[str, ...]:
    """What an environment asks of what comes in, in sentences."""
    lines = [
        gettext("Closed: it changes by releases alone.")
        if environment.is_closed
        else gettext("Open: it can be changed directly, too."),
        _reviews_by(environment),
        *(f"{rule.sentence}." for rule in environment.rules),
    ]
    if environment.owners_only:
        lines.append(gettext("Only owners of a subject ask for it here."))
    lines.append(
        gettext("Open drift at a subject fails its requests.")
        if environment.drift_blocks
        else gettext("Open drift at a subject is a warning alone.")
    )
    if environment.threads_block:
        lines.append(gettext("A discussion that isn’t resolved stops the release."))
    if environment.clients_block:
        lines.append(gettext("A declared client that doesn’t go on stops the release until it is acknowledged."))
    lines += _evidence_rules(environment)
    lines += [
        gettext("Frozen from %(start)s to %(end)s: %(reason)s")
        % {"start": at_utc(freeze.starts_at), "end": at_utc(freeze.ends_at), "reason": freeze.reason}
        for freeze in environment.freezes
    ]
    lines += [
        (
            gettext("Frozen: %(rule)s; now until %(at)s: %(reason)s")
            if rule.is_now
            else gettext("Frozen: %(rule)s; next from %(at)s: %(reason)s")
        )
        % {
            "rule": rule.sentence,
            "at": at_utc(rule.ends_at if rule.is_now else rule.starts_at),
            "reason": rule.reason,
        }
        for rule in environment.recurring
    ]
    return tuple(lines)
