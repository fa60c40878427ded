"""The summary of a request: title, decision, the environment's rules, linked requests, and affected clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.components.badges import Verdict
from dashboard.components.translation import counted, joined, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Fact
from dashboard.promotions.plan import steps_of_plan, who_overrides, worst
from dashboard.promotions.presenters import LinkedRow
from dashboard.promotions.request_list import at_utc
from registry.access.roles import Actor
from registry.promotions.checks.consumers import CLIENTS
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.types import ADOPT, CONFIG, warnings_of
from registry.promotions.selectors import EnvironmentInfo, LinkedRequest, RequestInfo, linked_requests

_TITLES: Final = {
    PromotionRequest.PROMOTE: _("Promote %(subject)s version %(version)s to %(target)s"),
    PromotionRequest.PROPOSE: _("Register a proposed text of %(subject)s in %(target)s"),
    PromotionRequest.ROLL_BACK: _("Roll %(subject)s back to version %(version)s in %(target)s"),
    PromotionRequest.ADOPT: _("Adopt %(subject)s version %(version)s of %(target)s"),
}
_TITLES_OF_SEVERAL: Final = {
    PromotionRequest.PROMOTE: _("Promote %(subject)s version %(version)s and %(more)s to %(target)s"),
    PromotionRequest.PROPOSE: _("Register a proposed text of %(subject)s and %(more)s in %(target)s"),
    PromotionRequest.ROLL_BACK: _("Roll %(subject)s back to version %(version)s and %(more)s in %(target)s"),
    PromotionRequest.ADOPT: _("Adopt %(subject)s version %(version)s and %(more)s of %(target)s"),
}


def title_of(info: RequestInfo) -> str:
    """Return the purpose of the request as a title."""
    others = len(info.items) - 1
    title = _TITLES[info.kind] if not others else _TITLES_OF_SEVERAL[info.kind]
    more = counted(others, "%(n)s other", "%(n)s others")
    return title % {"subject": info.subject.qualified, "version": info.version, "target": info.target, "more": more}


def items_title(info: RequestInfo, shown: int) -> str:
    """Say how many schemas the request writes, wrote or would have written."""
    if info.is_open:
        return counted(shown, "%(n)s schema would be written", "%(n)s schemas would be written")
    if info.state == PromotionRequest.APPLIED:
        return counted(shown, "%(n)s schema was written", "%(n)s schemas were written")
    return counted(shown, "%(n)s schema would have been written", "%(n)s schemas would have been written")


def verdict_of(info: RequestInfo) -> Verdict:
    """Return the verdict of a request; unknown for a closed one that wasn't applied, or with a damaged plan."""
    if not info.is_open and not info.releases:
        return Verdict.UNKNOWN
    if info.is_unreadable and not info.releases:
        return Verdict.UNKNOWN
    if info.state == PromotionRequest.FAILED:
        return Verdict.BREAKS
    if _is_out_of_date(info) and not info.failing:
        return Verdict.UNKNOWN
    if info.releases or not info.failing:
        return Verdict.CARE if info.is_breaking or worst(info.checks) is not Verdict.OK else Verdict.OK
    return Verdict.BREAKS


def _is_out_of_date(info: RequestInfo) -> bool:
    """Return whether an unapplied request's checks must run again before a verdict."""
    return bool(info.stale) and info.state in (PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES)


def headline_of(info: RequestInfo, verdict: Verdict) -> str:
    """Return the decision in a few words."""
    if info.state == PromotionRequest.APPLIED:
        return gettext("Live in %(target)s") % {"target": info.target}
    if not info.is_open:
        return gettext("Closed: %(state)s") % {"state": info.state}
    if info.state == PromotionRequest.FAILED:
        return gettext("Partly applied")
    if verdict is Verdict.BREAKS:
        overridable = all(check.get("overridable") for check in info.failing)
        fails = gettext("Breaks compatibility in %(target)s") if info.is_breaking else gettext("Checks fail")
        said = fails % {"target": info.target} if info.is_breaking else fails
        return f"{said} ({who_overrides(check.get('code', '') for check in info.failing)})" if overridable else said
    if _is_out_of_date(info):
        return gettext("The source version is gone") if info.is_source_gone else gettext("The plan is out of date")
    if info.is_breaking:
        return gettext("Breaks compatibility in %(target)s (overridden)") % {"target": info.target}
    if info.is_unreadable:
        return gettext("Unknown: the plan is damaged")
    return gettext("Can be applied with care") if verdict is Verdict.CARE else gettext("Can be applied")


def sentence_of(info: RequestInfo) -> str:
    """Return the decision in a sentence: what is written, or what fails first."""
    if info.release:
        there = gettext("%(target)s has it as version %(version)s with schema id %(schema_id)s.") % {
            "target": info.target,
            "version": info.release.version,
            "schema_id": info.release.schema_id,
        }
        more = len(info.releases) - 1
        came = counted(more, "%(n)s other version was included.", "%(n)s other versions were included.")
        return f"{there} {came}" if more else there
    if info.failing:
        first, more = str(info.failing[0]["sentence"]), len(info.failing) - 1
        too = counted(more, "%(n)s other check also fails.", "%(n)s other checks also fail.")
        return f"{first} {too}" if more else first
    if info.is_unreadable:
        return gettext("What would be written to %(target)s is not known.") % {"target": info.target}
    if info.is_source_gone:
        return gettext("This request can’t be applied. Withdraw it.")
    if _is_out_of_date(info):
        return gettext("What would be written to %(target)s is known once the checks have run again.") % {
            "target": info.target
        }
    steps = steps_of_plan(info.plan)
    adding, settings = sum(step.adds for step in steps), sum(step.kind == CONFIG for step in steps)
    parts = [_written_to(adding, info.target)] if adding else []
    parts += [_settings_of(settings)] if settings else []
    parts += [gettext("a release would be recorded")] if any(step.kind == ADOPT for step in steps) else []
    sentence = joined(parts) or gettext("Nothing would be written to %(target)s") % {"target": info.target}
    sentence = f"{sentence[:1].upper()}{sentence[1:]}"
    warnings = warnings_of(info.checks)
    if not info.is_breaking and not warnings:
        return gettext("%(said)s without breaking changes.") % {"said": sentence}
    return " ".join([f"{sentence}.", *_warned(warnings)])


def _warned(warnings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the first warning, preferably about affected clients, and the number of others."""
    if not warnings:
        return []
    first = min(warnings, key=lambda check: check.get("code") != CLIENTS)
    more = len(warnings) - 1
    too = [counted(more, "%(n)s other check also has a warning.", "%(n)s other checks also have warnings.")]
    return [str(first["sentence"]), *(too if more else ())]


def _written_to(versions: int, target: str) -> str:
    return counted(
        versions,
        "%(n)s version would be written to %(target)s",
        "%(n)s versions would be written to %(target)s",
        target=target,
    )


def _settings_of(subjects: int) -> str:
    return counted(
        subjects, "the settings of %(n)s subject would be changed", "the settings of %(n)s subjects would be changed"
    )


def _reviews_by(environment: EnvironmentInfo) -> str:
    needed = environment.settings["reviews_needed"] or int(not environment.rules)
    if not needed:
        return gettext("The review rules below decide; where none applies, one approval.")
    if environment.settings["own_approval_allowed"]:
        return counted(needed, "%(n)s approval from any reviewer.", "%(n)s approvals from any reviewers.")
    return counted(needed, "%(n)s approval from another person.", "%(n)s approvals from other people.")


def _evidence_rules(environment: EnvironmentInfo) -> list[str]:
    hours, lines = environment.settings["max_evidence_hours"], []
    if environment.settings["evidence_required"]:
        lines.append(gettext("Releases need evidence from data."))
    if hours and hours % 24 == 0:
        lines.append(
            counted(
                hours // 24,
                "Evidence from data can be at most %(n)s day old.",
                "Evidence from data can be at most %(n)s days old.",
            )
        )
    elif hours:
        lines.append(
            counted(
                hours,
                "Evidence from data can be at most %(n)s hour old.",
                "Evidence from data can be at most %(n)s hours old.",
            )
        )
    return lines


def policy_of(environment: EnvironmentInfo, *, lists_reviews: bool = True) -> tuple[str, ...]:
    """Return the rules of an environment, in sentences; without `lists_reviews` not those about approvals."""
    lines = [
        gettext("Closed: only releases can change it.")
        if environment.is_closed
        else gettext("Open: it can also be changed directly."),
        *((_reviews_by(environment), *(f"{rule.sentence}." for rule in environment.rules)) if lists_reviews else ()),
    ]
    if environment.settings["owners_only"]:
        lines.append(gettext("Only owners of a subject can request its promotion."))
    lines.append(
        gettext("Open drift findings for a subject fail its requests, and so do acknowledged or muted breaks.")
        if environment.settings["drift_blocks"] and environment.is_closed
        else gettext("Open drift findings for a subject fail its requests.")
        if environment.settings["drift_blocks"]
        else gettext("Open drift findings for a subject are only a warning.")
    )
    if environment.settings["threads_block"]:
        lines.append(gettext("Unresolved discussions block the release."))
    if environment.settings["clients_block"]:
        lines.append(gettext("Affected clients block the release until they are acknowledged."))
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
        % {"rule": rule.sentence, "at": at_utc(rule.ends_at if rule.is_now else rule.starts_at), "reason": rule.reason}
        for rule in environment.recurring
    ]
    return tuple(lines)


def linked_rows(info: RequestInfo, actor: Actor) -> tuple[LinkedRow, ...]:
    """Return the linked requests: prerequisites, those with the same references, and those that refer to this one."""
    return tuple(
        LinkedRow(request=request, sentence=_sentence(request, info.target)) for request in linked_requests(info, actor)
    )


def _sentence(request: LinkedRequest, target: str) -> str:
    if not request.brings:
        return gettext("It refers to a schema in this request. Apply this request first.")
    more = len(request.brings) - 1
    what = {"name": request.brings[0], "target": target}
    if request.along:
        sentence = gettext(
            "It also includes %(name)s, which this request refers to. The request that is applied first writes it."
        )
        return f"{sentence % what} {_and_more(more)}".strip()
    sentence = gettext(
        "It includes %(name)s, which this request refers to and %(target)s doesn’t have. Apply it first."
    )
    return f"{sentence % what} {_and_more(more)}".strip()


def _and_more(more: int) -> str:
    return (
        counted(more, "The same applies to %(n)s other subject.", "The same applies to %(n)s other subjects.")
        if more
        else ""
    )


#: clients named in a line
_NAMED: Final = 3
Checks = Iterable[Mapping[str, Any]]


def clients_fact(checks: Checks) -> Fact | None:
    """Return the number and names of affected clients, with a link to the checks; None if none were checked."""
    names, total = _affected(checks)
    if not total:
        return None
    value = (
        gettext("%(n)s of %(asked)s: %(names)s") % {"n": len(names), "asked": total, "names": _listed(names)}
        if names
        else gettext("none of %(asked)s") % {"asked": total}
    )
    return Fact(label=gettext("Affected clients"), value=value, url="#impact")


def clients_sentence(checks: Checks) -> str:
    """Return the affected clients as a part of a sentence; "" if there are none."""
    names, _ = _affected(checks)
    if not names:
        return ""
    return counted(
        len(names), "%(n)s affected client (%(names)s)", "%(n)s affected clients (%(names)s)", names=_listed(names)
    )


def _affected(checks: Checks) -> tuple[list[str], int]:
    """Return the affected clients without duplicates, and the number of checked clients, counted once per subject."""
    own_checks = [check for check in checks if check.get("code") == CLIENTS]
    names = dict.fromkeys(str(name) for check in own_checks for name in check.get("concerned") or ())
    return list(names), sum(int(check.get("asked") or 0) for check in own_checks)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    if more <= 0:
        return joined(names)
    return gettext("%(names)s and %(n)s more") % {"names": listing(names[:_NAMED]), "n": more}
