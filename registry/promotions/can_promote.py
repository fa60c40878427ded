"""Whether a subject's version could go from one environment to another now: yes, with an approval, or no, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from django.utils import timezone

from registry.access.roles import Actor, may, refusal, require
from registry.access.selectors import owners_of
from registry.errors import InvalidInput, SubjectNotFound, VersionNotFound
from registry.promotions.acknowledged import check_of as consumers_check_of
from registry.promotions.ageing import too_old
from registry.promotions.models import Environment, PromotionRequest, Review, ReviewRule
from registry.promotions.overrides import overridden
from registry.promotions.plan import ADVICE, STOPPING, WARN, Check, Plan, Wish, WishedItem
from registry.promotions.planning import make_plan, stale, wish_of
from registry.promotions.selectors import get_environment
from registry.promotions.talk import threads_check
from registry.subjects.models import SchemaVersion, VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.versions import parse_version

Answered = Literal["yes", "needs approval", "no"]
YES: Final = "yes"
NEEDS_APPROVAL: Final = "needs approval"
NO: Final = "no"
#: requests of these states have what it takes
_APPROVED: Final = (PromotionRequest.APPROVED, PromotionRequest.SCHEDULED)


@dataclass(frozen=True)
class Reason:
    """One reason for the answer; `code` is a check's or one of `already-there`, `approval`, `approved`, `rights`.

    `order` says that the environments stand the other way round. `cure` says what would change it.
    """

    code: str
    sentence: str
    cure: str = ""


@dataclass(frozen=True)
class Answer:
    """The answer, with the reasons that decide it first, and then what is worth knowing besides."""

    subject: str
    version: int
    source: str
    target: str
    verdict: Answered
    reasons: tuple[Reason, ...]
    plan_hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return asdict(self)


def can_promote(*, subject: SubjectName, source: str, target: str, by: Actor, version: int | str = "latest") -> Answer:
    """Whether the version could be promoted; `latest` is the newest that isn't quarantined.

    Raises NotSignedIn, NotAllowed, RegistryNotFound, SubjectNotFound, VersionNotFound, InvalidVersion, InvalidInput.
    """
    if not subject.subject:
        raise InvalidInput("Name a subject.")
    for place in (source, target):
        require(by, "schema.read", registry=place, subject=subject.qualified)
    origin, goal = _environments(source, target)
    number = latest_number(origin, subject, version)
    if goal.position <= origin.position:
        said = f"{target} doesn't come after {source} in the promotion order."
        reason = Reason("order", said, "Ask the other way round, or change the order.")
        return Answer(subject.qualified, number, source, target, NO, (reason,))
    plan = plan_of(origin, goal, subject, number)
    verdict, reasons = judged(plan, goal)
    request = _request(goal, subject, plan)
    if verdict != YES:
        verdict, reasons = _with_request(request, goal, plan, verdict, reasons)
        reasons = (*reasons, *_rights(goal, subject, by, request))
    return Answer(subject.qualified, number, source, target, verdict, reasons, plan.hash)


def _environments(source: str, target: str) -> tuple[Environment, Environment]:
    """Both, in one query. Raises RegistryNotFound."""
    rows = Environment.objects.select_related("registry").filter(registry__name__in=(source, target))
    found = {row.registry.name: row for row in rows}
    origin, goal = (found.get(name) or get_environment(name) for name in (source, target))  # which says what is missing
    return origin, goal


def plan_of(origin: Environment, goal: Environment, subject: SubjectName, number: int) -> Plan:
    """The plan of one version, without what has no part in the answer."""
    return make_plan(Wish(goal, (WishedItem(subject, number),), origin), thorough=False)


def judged(plan: Plan, target: Environment, *, ignore: Iterable[str] = ()) -> tuple[Answered, tuple[Reason, ...]]:
    """The answer that a plan gives to anybody, whoever asks; checks of the codes to `ignore` aren't counted."""
    if not plan.has_work:
        said = f"{target.registry.name} has this schema already, as version {plan.steps[-1].target_version}."
        return YES, (Reason("already-there", said),)
    ignored = frozenset(ignore)
    failing = [item for item in plan.failing if item.code not in ignored]
    warnings = tuple(
        _reason(item) for item in plan.checks if item.verdict == WARN and item.code not in ADVICE | {"ids"}
    )
    if failing:
        return NO, (*(_reason(item) for item in failing), *warnings)
    return NEEDS_APPROVAL, (_approval(plan, target), *warnings)


def _reason(item: Check) -> Reason:
    about = f"{item.subject}: " if item.subject and item.subject not in item.sentence else ""
    return Reason(item.code, f"{about}{item.sentence}", item.cure)


def _approval(plan: Plan, target: Environment) -> Reason:
    """How many approvals it takes, and of whom; a request without any is never approved."""
    written = [step.subject for step in plan.steps if step.writes]
    asked = (
        [f"{target.reviews_needed} approval{'s' if target.reviews_needed > 1 else ''}"] if target.reviews_needed else []
    )
    asked += [
        f"{rule.count} of {_named(rule)}"
        for rule in target.review_rules.all()
        if (rule.verdict != ReviewRule.BREAKING or plan.breaking)
        and any(fnmatchcase(name, rule.subject_pattern) for name in written)
    ]
    said = f"{target.registry.name} asks for {', '.join(asked) or 'one approval'}."
    return Reason("approval", said, "Request it, and have it approved.")


def _named(rule: ReviewRule) -> str:
    return "its owners" if rule.reviewers == ReviewRule.OWNERS else f"the {rule.reviewers} {rule.name}"


def latest_number(origin: Environment, subject: SubjectName, version: int | str = "latest") -> int:
    """The version's number; what is missing is said by the plan where it was named. One query for the latest."""
    number = parse_version(version)
    if number is not None:
        return number
    live = SchemaVersion.objects.filter(
        subject__context__registry=origin.registry_id,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        deleted_at=None,
    )
    trusted = live.exclude(standing__standing=VersionStanding.QUARANTINED)
    found = trusted.order_by("-version").values_list("version", flat=True).first()
    if found is None:
        name = origin.registry.name
        if live.exists():
            raise VersionNotFound(f"Every version of {subject.qualified} in {name} is quarantined.", version="latest")
        raise SubjectNotFound(f"Subject '{subject.qualified}' not found in {name}.", subject=subject.qualified)
    return found


def _request(target: Environment, subject: SubjectName, plan: Plan) -> PromotionRequest | None:
    """The open request that asks for this very schema there."""
    return (
        PromotionRequest.objects.filter(
            items__open_in=target,
            items__context_name=subject.context,
            items__subject_name=subject.subject,
            items__fingerprint=_asked_fingerprint(plan, subject),
        )
        .select_related("source__registry", "target__registry")
        .first()
    )


def _asked_fingerprint(plan: Plan, subject: SubjectName) -> str:
    return next(step.fingerprint for step in plan.steps if step.asked and step.subject == subject.qualified)


def _with_request(
    request: PromotionRequest | None, target: Environment, plan: Plan, verdict: Answered, reasons: tuple[Reason, ...]
) -> tuple[Answered, tuple[Reason, ...]]:
    """The answer with what an open request has already: approved for what is there now, it is yes."""
    if request is None:
        return verdict, reasons
    number = request.pk
    if request.state not in _APPROVED:
        if verdict != NEEDS_APPROVAL:
            return verdict, reasons
        said = f"Request {number} asks for it and is {request.state}."
        first = Reason("approval", f"{reasons[0].sentence} {said}", "Have it approved.")
        return verdict, (first, *reasons[1:])
    moved = stale(request) or too_old(request.plan, target.evidence_rule, timezone.now())
    if moved:
        first = Reason(
            "approval", f"Request {number} was approved for an earlier plan: {moved}", "Have it reviewed again."
        )
        return verdict, (first, *reasons) if verdict == NEEDS_APPROVAL else reasons
    passed = _passed_over(request)
    talk = threads_check(request.threads.filter(resolved_at=None).count(), blocks=target.threads_block)
    checks = plan.checks if request.finding is None else make_plan(wish_of(request), thorough=False).checks
    clients = consumers_check_of(request)
    left = tuple(
        _reason(item) for item in (*checks, *talk, *clients) if item.verdict in STOPPING and item.code not in passed
    )
    if left:
        return NO, left
    return YES, (Reason("approved", f"Request {number} is {request.state}: it can be applied."),)


def _passed_over(request: PromotionRequest) -> frozenset[str]:
    """The codes of failing checks that its approvals pass over."""
    found: frozenset[str] = frozenset()
    for review in request.reviews.filter(plan_hash=request.plan_hash, verdict=Review.APPROVE):
        found |= overridden(review)
    return found


def _rights(target: Environment, subject: SubjectName, by: Actor, request: PromotionRequest | None) -> Sequence[Reason]:
    """Why whoever asks can't request it, where nobody has yet; that doesn't change the answer."""
    if request is not None:
        return ()
    registry = target.registry.name
    if not may(by, "promotion.request", registry=registry, subject=subject.qualified):
        said = refusal(by, "promotion.request", registry=registry, subject=subject.qualified)
        return (Reason("rights", said, "Have somebody request it who may."),)
    if target.owners_only and by.user_id is not None:
        owners = owners_of(registry, subject.qualified)
        if by.user_id not in owners.user_ids:
            theirs = ", ".join(owner.username for owner in owners.people[:5]) or "nobody, so add an owner"
            said = f"Only owners request {subject.qualified} in {registry}: that is {theirs}."
            return (Reason("rights", said, "Have an owner request it."),)
    return ()
