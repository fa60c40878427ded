"""Every failing condition of approving, applying or scheduling a request, or of changing a config or a mode.

They are computed from stored values and the actor; for a request without any query. Pages and the API show them in
advance; the services check again under the request's lock, and decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.conf import settings

from registry.access.roles import ADMIN, Actor, Grant, refusal
from registry.access.selectors import approval_refusal
from registry.errors import first_few
from registry.promotions.board.readiness import Reason
from registry.promotions.checks.consumers import CONSUMERS
from registry.promotions.checks.context import THREADS
from registry.promotions.environments.change_guard import closed_refusal, guard_result
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.plan.types import REGISTER, STALE, WRITING
from registry.promotions.requests.state_machine import COMPATIBILITY, override_advice
from registry.promotions.reviews.affected_consumers import Consumer
from registry.promotions.reviews.eligibility import AT_APPLYING, REVIEW
from registry.promotions.reviews.linked_accounts import link_in_words
from registry.promotions.selectors import RequestInfo, ReviewInfo
from registry.subjects.models import Registry
from registry.subjects.policy import change_guard
from registry.subjects.versions.qualified_names import SubjectName

APPLY: Final = "promotion.apply"
FORCE: Final = "version.force"
#: the most discussions that are listed one by one
_NAMED: Final = 5
_APPROVED: Final = (PromotionRequest.APPROVED, PromotionRequest.SCHEDULED)
_ASKING: Final = "promotion.request"
_ASK: Final = "Ask a person with this role, or ask an admin for the role."


@dataclass(frozen=True)
class Condition(Reason):
    """A failing condition. `subject` is the affected one, "" for the whole request.

    `code` is that of a check, or `state`, `rights`, `own-request`, `unconfirmed-role`, `sign-in`, `reviewed`, `stale`
    or `approval`. `passable` means that an approver can override it with a reason. `url` is where to fix it, if that is
    on the request's own page.
    """

    subject: str = ""
    passable: bool = False
    url: str = ""


def reasons_of(info: RequestInfo, by: Actor) -> dict[str, tuple[Condition, ...]]:
    """Return action → the conditions that fail for the actor; empty if the action is possible."""
    return {name: ask(info, by) for name, ask in ASKED.items()}


def approving(info: RequestInfo, by: Actor) -> tuple[Condition, ...]:
    """Return the failing conditions of an approval by the actor; of an approved request, of one that overrides."""
    if info.state in _APPROVED and any(check.get("overridable") for check in info.failing):
        failing = [check for check in info.failing if check.get("overridable")]
        return (*_as_reviewer(info, by), *_sign_in(by), *_moved(info), *_checks(info, by, failing))
    if info.state != PromotionRequest.IN_REVIEW:
        has_them = info.state in _APPROVED
        sentence = "It has all approvals." if has_them else f"It is {info.state}, not in review."
        cure = "Submit it first." if info.state == PromotionRequest.DRAFT else ""
        if has_them:
            cure = "If a check fails by now, run the checks again. A reviewer can then override it with a reason."
        return (Condition("state", sentence, cure),)
    blocking = [check for check in info.failing if check.get("code") not in AT_APPLYING]
    return (
        *_as_reviewer(info, by),
        *_sign_in(by),
        *_reviewed_before(info, by),
        *_moved(info),
        *_checks(info, by, blocking),
    )


def applying(info: RequestInfo, by: Actor) -> tuple[Condition, ...]:
    """Return all failing conditions of applying the request now."""
    return (*_not_approved(info), *_rights(info, by, APPLY, _touched(info)), *_moved(info), *_failing(info))


def scheduling(info: RequestInfo, by: Actor) -> tuple[Condition, ...]:
    """Return all failing conditions of scheduling the request; its checks are evaluated when it is applied."""
    return (*_unscheduled(info), *_rights(info, by, APPLY, _touched(info)))


#: action → the function that returns its failing conditions
ASKED: Final[Mapping[str, Callable[[RequestInfo, Actor], tuple[Condition, ...]]]] = {
    "approve": approving,
    "apply": applying,
    "schedule": scheduling,
}


def written(info: RequestInfo) -> list[str]:
    """Return the subjects that the plan writes, or the request's first subject if it writes none."""
    steps = (step for step in info.plan["steps"] if step.get("kind", REGISTER) in WRITING)
    return list(dict.fromkeys(str(step["subject"]) for step in steps)) or [info.subject.qualified]


def refused(actor: Actor, right: str, info: RequestInfo, subjects: Iterable[str]) -> str:
    """Return why the actor lacks the right for one of the subjects at the target; "" if they have it for all."""
    reasons = (refusal(actor, right, registry=info.target, subject=subject) for subject in subjects)
    return next(filter(None, reasons), "")


def review_of(info: RequestInfo, by: Actor) -> ReviewInfo | None:
    """Return the actor's review of the current plan."""
    return next((review for review in info.reviews if review.counts and review.reviewer_id == by.user_id), None)


def no_reviewer(info: RequestInfo, by: Actor) -> Condition | None:
    """Return why the actor can't review the request; None if they can."""
    lacking = refused(by, REVIEW, info, written(info))
    if by.user_id is None:
        return Condition("rights", lacking or "Sign in to review it.", "Sign in.")
    if by.limit and (limited := refused(replace(by, grants=(Grant(ADMIN),)), REVIEW, info, written(info))):
        return Condition("rights", limited, "Use a token with this permission, or sign in.")
    if review_of(info, by) is not None or any(one.user_id == by.user_id for one in info.needed.eligible):
        return None
    if account := info.needed.unconfirmed.get(by.user_id):
        return Condition("unconfirmed-role", account.refusal(by.name, info.target), _who_could(info))
    if lacking and by.user_id not in info.needed.named_ids:
        return Condition("rights", lacking, _who_could(info))
    if by.user_id == info.requested_by_id and not info.own_approval_allowed:
        return Condition("own-request", "You requested this, so another person must review it.", _who_could(info))
    if approval_refusal(by):
        return None  # a separate condition
    sentence = f"You count as the same person as the requester. {link_in_words(by.user_id, info.requested_by_id)}"
    return Condition("own-request", sentence, _who_could(info))


def no_speaker(info: RequestInfo, consumer: Consumer, by: Actor) -> str:
    """Return why the actor can't acknowledge the request for an affected client, as a sentence; "" if they can."""
    if info.state not in PromotionRequest.PLANNED_STATES:
        return f"The request is {info.state}, so it can no longer be acknowledged."
    if by.user_id is None:
        return by.past or "Sign in to acknowledge it."
    if not consumer.people:
        condition = no_reviewer(info, by)
        return condition.sentence if condition else approval_refusal(by)
    if by.limit and (limited := refused(replace(by, grants=(Grant(ADMIN),)), _ASKING, info, [consumer.hurt.subject])):
        return limited
    return approval_refusal(by) if by.user_id in consumer.user_ids else consumer.speakers


def _who_could(info: RequestInfo) -> str:
    """Return who could approve it, as a sentence; if nobody could, why."""
    if info.needed.nobody_can:
        return info.needed.nobody_can
    names = [one.username for one in info.needed.eligible]
    return f"Possible reviewers: {first_few(names)}." if names else ""


def _as_reviewer(info: RequestInfo, by: Actor) -> Iterator[Condition]:
    condition = no_reviewer(info, by)
    if condition is not None:
        yield condition


def _sign_in(by: Actor) -> Iterator[Condition]:
    if by.user_id is not None and (reason := approval_refusal(by)):
        yield Condition("sign-in", reason, "Sign in with single sign-on.")


def _reviewed_before(info: RequestInfo, by: Actor) -> Iterator[Condition]:
    mine = review_of(info, by)
    if mine is not None and mine.verdict == Review.APPROVE:
        yield Condition("reviewed", "You have already approved this plan.", _who_could(info))


def _moved(info: RequestInfo) -> Iterator[Condition]:
    if info.is_unreadable:
        yield Condition("stale", "The stored plan can't be read.", "Run the checks again.")
    elif info.is_source_gone:
        yield Condition("stale", info.stale, "Withdraw the request.")
    elif info.stale:
        yield Condition("stale", f"The checks are out of date: {info.stale}", "Run the checks again.")


def _checks(info: RequestInfo, by: Actor, blocking: Iterable[Mapping[str, Any]]) -> Iterator[Condition]:
    """Yield the failing checks; only somebody who may force versions can override compatibility."""
    for check in blocking:
        subject = str(check.get("subject") or "")
        passable = bool(check.get("overridable"))
        lacking = ""
        if passable and check.get("code") == COMPATIBILITY:
            lacking = refused(by, FORCE, info, [subject] if subject else written(info))
        yield _condition(check, passable=passable and not lacking, cure=lacking)


def _failing(info: RequestInfo) -> Iterator[Condition]:
    """Yield the failing checks that no approval overrides: applying can't override them."""
    for check in info.failing:
        if check.get("code") == THREADS and info.threads:
            yield from _open_threads(info)
        elif check.get("code") == CONSUMERS:
            yield _condition(check, url=f"/ui/promotions/{info.id}#consumers")
        else:
            yield _condition(check)


def _open_threads(info: RequestInfo) -> Iterator[Condition]:
    """Yield each discussion that has to be resolved, with its URL."""
    threads = [thread for thread in info.threads if thread.is_open]
    for number, thread in enumerate(threads[:_NAMED]):
        anchor = f"{thread.path} of {thread.subject}" if thread.path else thread.subject or "the whole request"
        begun = f", started by {thread.comments[0].author}" if thread.comments else ""
        more = len(threads) - _NAMED if number == _NAMED - 1 else 0
        left = f" {more} more {'is' if more == 1 else 'are'} open." if more > 0 else ""
        yield Condition(
            code=THREADS,
            sentence=f"Unresolved discussion about {anchor}{begun}.{left}",
            cure="The person who started it, the requester or a reviewer can resolve it.",
            subject=thread.subject,
            url=f"/ui/promotions/{info.id}#thread-{thread.id}",
        )


def _condition(check: Mapping[str, Any], *, passable: bool = False, cure: str = "", url: str = "") -> Condition:
    """Return a failing check as a condition; `cure` says why the actor may not override it."""
    cures = [str(check.get("cure") or ""), override_advice(check), cure]
    return Condition(
        code=str(check.get("code") or check["name"]),
        sentence=f"A check {'is out of date' if check['verdict'] == STALE else 'fails'}: {check['sentence']}",
        cure=" ".join(filter(None, cures)),
        subject=str(check.get("subject") or ""),
        passable=passable,
        url=url,
    )


def _not_approved(info: RequestInfo) -> Iterator[Condition]:
    if info.state == PromotionRequest.IN_REVIEW:
        lacking = info.needed.nobody_can or info.needed.missing
        cure = "" if info.needed.nobody_can else _who_could(info)
        yield Condition("approval", f"It is not approved yet. {lacking}".strip(), cure)
    elif info.state == PromotionRequest.SCHEDULED:
        yield Condition("state", "It is scheduled.", "Wait for that time, or cancel the schedule.")
    elif info.state != PromotionRequest.APPROVED:
        yield Condition("state", f"It is {info.state}. Only an approved request can be applied.")


def _unscheduled(info: RequestInfo) -> Iterator[Condition]:
    if info.state == PromotionRequest.IN_REVIEW:
        yield from _not_approved(info)
    elif info.state not in _APPROVED:
        yield Condition("state", f"It is {info.state}. Only an approved request can be scheduled.")


def _rights(info: RequestInfo, by: Actor, right: str, subjects: Iterable[str]) -> Iterator[Condition]:
    """Yield each missing right, without repeating a sentence."""
    sentences = set()
    for subject in subjects:
        sentence = refusal(by, right, registry=info.target, subject=subject)
        if sentence and sentence not in sentences:
            sentences.add(sentence)
            yield Condition("rights", sentence, _ASK, subject=subject)


def _touched(info: RequestInfo) -> Iterable[str]:
    """Return the requested subjects and the written ones."""
    return dict.fromkeys((*(item.subject.qualified for item in info.items), *written(info)))


CONFIG: Final = "config.change"
MODE: Final = "mode.change"


@dataclass(frozen=True)
class SettingsPreconditions:
    """The facts that decide whether a person may change a registry's settings, for any scope, without queries."""

    registry: Registry
    by: Actor
    is_closed: bool
    passes: bool

    def reasons(self, action: str, scope: SubjectName | None, mode: str) -> tuple[Reason, ...]:
        """Return the failing conditions at a scope with this mode; empty if the service would make the change.

        The codes are `rights`, `closed-environment`, `mode` and `mode-mutability`.
        """
        subject = scope.qualified if scope else ""
        reasons = []
        lacking = refusal(self.by, action, registry=self.registry.name, subject=subject)
        if lacking:
            reasons.append(Reason("rights", lacking, "Ask a person with this role, or ask an admin for the role."))
        if action == MODE and not settings.MODE_MUTABILITY:
            sentence = "Modes can’t be changed on this server."
            reasons.append(
                Reason("mode-mutability", sentence, "The operator of the server can allow it with MODE_MUTABILITY.")
            )
        if self.is_closed:
            sentence = closed_refusal(action, self.registry, subject)
            reasons.append(Reason("closed-environment", sentence, "Request a promotion that includes the settings."))
        # a closed environment requires a release, which passes READONLY
        if action == CONFIG and change_guard.stops(mode, passes=self.passes or self.is_closed):
            sentence = f"The mode is {mode}, in which settings can't be changed."
            reasons.append(Reason("mode", sentence, self._mode_cure()))
        return tuple(reasons)

    def _mode_cure(self) -> str:
        if self.registry.kind == Registry.REMOTE:
            return "Change it in the source of the mirror."
        return "Set the mode to READWRITE first."


def settings_preconditions(registry: Registry, by: Actor) -> SettingsPreconditions:
    """Return the preconditions of changes of a registry's settings by the actor; at most two queries."""
    is_closed, passes = guard_result(registry, by)
    return SettingsPreconditions(registry, by, is_closed, passes)
