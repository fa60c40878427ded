"""Whether a version could be promoted now: yes, with an approval, or no, and why.

The answers for the board are computed in advance, so that a board of thousands of subjects opens immediately.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from django.db import connection
from django.utils import timezone

from registry.access.name_patterns import name_pattern
from registry.access.roles import Actor, may, refusal, require
from registry.access.selectors import owners_of
from registry.errors import InvalidInput, NotFound, SchemadeskError, SubjectNotFound, VersionNotFound
from registry.promotions.board.board_index import refresh_marks
from registry.promotions.board.readiness_fingerprint import EnvironmentPair, basis_query, pairs_of
from registry.promotions.checks.consumers import check_of as consumers_check_of
from registry.promotions.checks.context import threads_check, too_old
from registry.promotions.hook_points import JobRelease, checks_of_releases
from registry.promotions.models import Environment, PromotionOutlook, PromotionRequest, Review, ReviewRule
from registry.promotions.plan.builder import make_plan, spec_of, stale
from registry.promotions.plan.target_state import WentBack, went_back
from registry.promotions.plan.types import ADVICE, PASS, SKIPPED, STOPPING, WARN, Check, Plan, PromotionSpec, SpecItem
from registry.promotions.reviews.eligibility import overridden
from registry.promotions.selectors import get_environment
from registry.subjects.models import SchemaVersion, VersionStatus
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import parse_version

ReadinessVerdict = Literal["yes", "needs approval", "no"]
YES: Final = "yes"
NEEDS_APPROVAL: Final = "needs approval"
NO: Final = "no"
#: an open request in one of these states is approved
_APPROVED: Final = (PromotionRequest.APPROVED, PromotionRequest.SCHEDULED)


@dataclass(frozen=True)
class Reason:
    """One reason for the verdict.

    `code` is that of a check (`restart` is the restart of a released query), or `already-there`, `rolled-back`,
    `approval`, `approved`, `rights` or `order`.
    `rolled-back`: the target went back from this schema to an earlier one; `order`: the target doesn't come after the
    source. `cure` says what would change the verdict.
    """

    code: str
    sentence: str
    cure: str = ""


@dataclass(frozen=True)
class Readiness:
    """Whether a version could be promoted: the verdict, with the deciding reasons first."""

    subject: str
    version: int
    source: str
    target: str
    verdict: ReadinessVerdict
    reasons: tuple[Reason, ...]
    plan_hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the readiness as JSON values."""
        return asdict(self)


def can_promote(
    *,
    subject: SubjectName,
    source: str,
    target: str,
    by: Actor,
    version: int | str = "latest",
    releases: Sequence[JobRelease] = (),
) -> Readiness:
    """Return whether the version could be promoted; `latest` is the newest that isn't quarantined.

    With `releases` of streaming queries in the target, the answer is yes only if they could also be restarted. Raises
    NotSignedIn, NotAllowed, RegistryNotFound, SubjectNotFound, VersionNotFound, InvalidVersion, InvalidInput,
    InvalidSchema, NotFound.
    """
    if not subject.subject:
        raise InvalidInput("Name a subject.")
    for registry in (source, target):
        require(by, "schema.read", registry=registry, subject=subject.qualified)
    origin, goal = _environments(source, target)
    checks = checks_of_releases(goal.registry, releases, by)
    return _with_releases(_of_subject(subject, origin, goal, by, version), checks)


def _with_releases(readiness: Readiness, checks: Sequence[Check]) -> Readiness:
    """Return the answer for the subject and the releases at once: the worse of the two."""
    failing = [_reason(check) for check in checks if check.verdict in STOPPING]
    unsure = [_reason(check) for check in checks if check.verdict in (WARN, SKIPPED)]
    passing = [_reason(check) for check in checks if check.verdict == PASS]
    verdict = NO if failing else NEEDS_APPROVAL if unsure and readiness.verdict == YES else readiness.verdict
    first, later = (unsure, []) if verdict != readiness.verdict and not failing else ([], unsure)
    return replace(readiness, verdict=verdict, reasons=(*failing, *first, *readiness.reasons, *later, *passing))


def _of_subject(
    subject: SubjectName, origin: Environment, goal: Environment, by: Actor, version: int | str
) -> Readiness:
    source, target = origin.registry.name, goal.registry.name
    number = latest_number(origin, subject, version)
    if goal.position <= origin.position:
        sentence = f"{target} doesn't come after {source} in the environment order."
        reason = Reason("order", sentence, "Swap source and target, or change the environment order.")
        return Readiness(subject.qualified, number, source, target, NO, (reason,))
    plan = plan_of(origin, goal, subject, number)
    back = None if plan.has_work else went_back(origin, goal, subject, number)
    if back:
        reasons = (_rolled_back(back), *_rights(goal, subject, by, None))
        return Readiness(subject.qualified, number, source, target, NO, reasons, plan.hash)
    verdict, reasons = judged(plan, goal)
    request = _request(goal, subject, plan)
    if verdict != YES:
        verdict, reasons = _with_request(request, goal, plan, verdict, reasons)
        reasons = (*reasons, *_rights(goal, subject, by, request))
    return Readiness(subject.qualified, number, source, target, verdict, reasons, plan.hash)


def _environments(source: str, target: str) -> tuple[Environment, Environment]:
    """Both environments, in one query. Raises RegistryNotFound."""
    rows = Environment.objects.select_related("registry").filter(registry__name__in=(source, target))
    by_name = {row.registry.name: row for row in rows}
    origin, goal = (
        by_name.get(name) or get_environment(name) for name in (source, target)
    )  # get_environment's error says which one is missing
    return origin, goal


def plan_of(origin: Environment, goal: Environment, subject: SubjectName, number: int) -> Plan:
    """Return the plan of one version, without the parts that don't affect the verdict."""
    return make_plan(PromotionSpec(goal, (SpecItem(subject, number),), origin), thorough=False)


def judged(
    plan: Plan, target: Environment, *, ignore: Iterable[str] = ()
) -> tuple[ReadinessVerdict, tuple[Reason, ...]]:
    """Return the verdict of a plan for any actor; checks with a code in `ignore` don't count."""
    if not plan.has_work:
        sentence = f"{target.registry.name} already has this schema as version {plan.steps[-1].target_version}."
        return YES, (Reason("already-there", sentence),)
    ignored = frozenset(ignore)
    failing = [item for item in plan.failing if item.code not in ignored]
    warnings = tuple(
        _reason(item) for item in plan.checks if item.verdict == WARN and item.code not in ADVICE | {"ids"}
    )
    if failing:
        return NO, (*(_reason(item) for item in failing), *warnings)
    return NEEDS_APPROVAL, (_approval(plan, target), *warnings)


def _rolled_back(back: WentBack) -> Reason:
    return Reason("rolled-back", back.sentence, back.cure)


def _reason(item: Check) -> Reason:
    about = f"{item.subject}: " if item.subject and item.subject not in item.sentence else ""
    return Reason(item.code, f"{about}{item.sentence}", item.cure)


def _approval(plan: Plan, target: Environment) -> Reason:
    """Return how many approvals it needs, and from whom; a request without any approval is never approved."""
    written = [step.subject for step in plan.steps if step.writes]
    approvals = [
        f"{rule.count} from {_named(rule)}"
        for rule in target.review_rules.all()
        if (rule.verdict != ReviewRule.BREAKING or plan.breaking)
        and any(name_pattern(rule.subject_pattern).allows(name) for name in written)
    ]
    if least := target.reviews_needed or int(not approvals):
        approvals.insert(0, f"{least} approval{'s' if least > 1 else ''}")
    sentence = f"{target.registry.name} needs {', '.join(approvals)}."
    return Reason("approval", sentence, "Request the promotion and get it approved.")


def _named(rule: ReviewRule) -> str:
    return "its owners" if rule.reviewers == ReviewRule.OWNERS else f"the {rule.reviewers} {rule.name}"


def latest_number(origin: Environment, subject: SubjectName, version: int | str = "latest") -> int:
    """Return the number of the version; one query for `latest`. Whether a named number exists shows in the plan."""
    number = parse_version(version)
    if number is not None:
        return number
    live = SchemaVersion.objects.filter(
        subject__context__registry=origin.registry_id,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        deleted_at=None,
    )
    trusted = live.exclude(status__status=VersionStatus.QUARANTINED)
    newest = trusted.order_by("-version").values_list("version", flat=True).first()
    if newest is None:
        name = origin.registry.name
        if live.exists():
            raise VersionNotFound(f"Every version of {subject.qualified} in {name} is quarantined.", version="latest")
        raise SubjectNotFound(f"Subject '{subject.qualified}' not found in {name}.", subject=subject.qualified)
    return newest


def _request(target: Environment, subject: SubjectName, plan: Plan) -> PromotionRequest | None:
    """Return the open request for this schema in the target."""
    return (
        PromotionRequest.objects.filter(
            items__open_in=target,
            items__context_name=subject.context,
            items__subject_name=subject.subject,
            items__fingerprint=_requested_fingerprint(plan, subject),
        )
        .select_related("source__registry", "target__registry")
        .first()
    )


def _requested_fingerprint(plan: Plan, subject: SubjectName) -> str:
    return next(step.fingerprint for step in plan.steps if step.asked and step.subject == subject.qualified)


def _with_request(
    request: PromotionRequest | None,
    target: Environment,
    plan: Plan,
    verdict: ReadinessVerdict,
    reasons: tuple[Reason, ...],
) -> tuple[ReadinessVerdict, tuple[Reason, ...]]:
    """Return the verdict given an open request: yes if it is approved for the current state of the target."""
    if request is None:
        return verdict, reasons
    number = request.pk
    if request.state not in _APPROVED:
        if verdict != NEEDS_APPROVAL:
            return verdict, reasons
        sentence = f"Request {number} for it is {request.state}."
        first = Reason("approval", f"{reasons[0].sentence} {sentence}", "Get it approved.")
        return verdict, (first, *reasons[1:])
    moved = stale(request) or too_old(request.plan, target.evidence_rule, timezone.now())
    if moved:
        first = Reason(
            "approval", f"Request {number} was approved for an earlier plan: {moved}", "Get it reviewed again."
        )
        return verdict, (first, *reasons) if verdict == NEEDS_APPROVAL else reasons
    passed = _passed_over(request)
    talk = threads_check(request.threads.filter(resolved_at=None).count(), blocks=target.threads_block)
    checks = plan.checks if request.finding is None else make_plan(spec_of(request), thorough=False).checks
    clients = consumers_check_of(request)
    left = tuple(
        _reason(item) for item in (*checks, *talk, *clients) if item.verdict in STOPPING and item.code not in passed
    )
    if left:
        return NO, left
    return YES, (Reason("approved", f"Request {number} is {request.state} and can be applied."),)


def _passed_over(request: PromotionRequest) -> frozenset[str]:
    """Return the codes of failing checks that the request's approvals override."""
    codes: frozenset[str] = frozenset()
    for review in request.reviews.filter(plan_hash=request.plan_hash, verdict=Review.APPROVE):
        codes |= overridden(review)
    return codes


def _rights(target: Environment, subject: SubjectName, by: Actor, request: PromotionRequest | None) -> Sequence[Reason]:
    """Return why the actor can't request it, if there is no request yet; that doesn't change the verdict."""
    if request is not None:
        return ()
    registry = target.registry.name
    if not may(by, "promotion.request", registry=registry, subject=subject.qualified):
        sentence = refusal(by, "promotion.request", registry=registry, subject=subject.qualified)
        return (Reason("rights", sentence, "Ask a person with permission to request it."),)
    if target.owners_only and by.user_id is not None:
        owners = owners_of(registry, subject.qualified)
        if by.user_id not in owners.user_ids:
            theirs = ", ".join(owner.username for owner in owners.people[:5]) or "nobody yet, so add an owner"
            sentence = f"Only owners can request {subject.qualified} in {registry}: {theirs}."
            return (Reason("rights", sentence, "Ask an owner to request it."),)
    return ()


#: checks that change with time; the board evaluates them when it is shown
TIMED: Final = frozenset({"freeze"})
#: limits of one run
MAX_SUBJECTS: Final = 1000
MAX_SECONDS: Final = 10.0
_KEPT_REASONS: Final = 10

_STALE = """
SELECT known.n, known.context, known.subject, known.basis
FROM ({basis}) known
JOIN unnest(%(n)s::int[], %(source_ids)s::bigint[], %(target_ids)s::bigint[]) AS place(n, source_id, target_id)
    ON place.n = known.n
LEFT JOIN promotions_promotionoutlook outlook ON outlook.source_id = place.source_id
    AND outlook.target_id = place.target_id AND outlook.context_name = known.context
    AND outlook.subject_name = known.subject
WHERE outlook.basis IS DISTINCT FROM known.basis
ORDER BY outlook.at NULLS FIRST, known.n, known.context, known.subject
LIMIT %(most)s
"""

_GONE = """
DELETE FROM promotions_promotionoutlook outlook
USING promotions_environment place
WHERE place.id = outlook.source_id AND NOT EXISTS (
    SELECT 1 FROM subjects_subject s
    JOIN subjects_context c ON c.id = s.context_id
    JOIN subjects_schemaversion v ON v.subject_id = s.id AND v.deleted_at IS NULL
    WHERE c.registry_id = place.registry_id AND c.name = outlook.context_name AND s.name = outlook.subject_name
)
"""


def refresh_outlooks(*, most: int = MAX_SUBJECTS, seconds: float = MAX_SECONDS) -> int:
    """Compute missing answers, then stale ones, within a time limit; returns how many.

    Deletes the answers for deleted subjects. The board's marks are refreshed first.
    """
    refresh_marks()
    with connection.cursor() as cursor:
        cursor.execute(_GONE)
    return work_out(environments_in_order(), most=most, seconds=seconds)


def work_out(
    environments: Sequence[Environment],
    subjects: Sequence[SubjectName] | None = None,
    *,
    most: int = MAX_SUBJECTS,
    seconds: float = MAX_SECONDS,
) -> int:
    """Compute the answers for some subjects (None: all); those without time stay unknown until the next run."""
    pairs = pairs_of(environments)
    end, done = time.monotonic() + seconds, []
    for number, subject, basis in _stale(pairs, subjects, most):
        outlook = _worked_out(pairs[number], subject, basis)
        if outlook is not None:
            done.append(outlook)
        if time.monotonic() >= end:
            break
    _store(done)
    return len(done)


def environments_in_order() -> list[Environment]:
    """Return all environments with their registries and rules, in promotion order; two queries."""
    return list(Environment.objects.select_related("registry").prefetch_related("review_rules").order_by("position"))


def _stale(
    pairs: Sequence[EnvironmentPair], subjects: Sequence[SubjectName] | None, most: int
) -> list[tuple[int, SubjectName, str]]:
    if not pairs:
        return []
    basis, parameters = basis_query(pairs, subjects)
    rows = {
        "source_ids": [pair.source.pk for pair in pairs],
        "target_ids": [pair.target.pk for pair in pairs],
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STALE.format(basis=basis), parameters | rows)
        return [(number, SubjectName(context, name), basis) for number, context, name, basis in cursor.fetchall()]


def _worked_out(pair: EnvironmentPair, subject: SubjectName, basis: str) -> PromotionOutlook | None:
    """Return the answer for the state after the fingerprint was taken; None if the subject was deleted meanwhile."""
    try:
        number = latest_number(pair.source, subject)
        plan = plan_of(pair.source, pair.target, subject, number)
        verdict, reasons = judged(plan, pair.target, ignore=TIMED)
        if verdict == YES and (back := went_back(pair.source, pair.target, subject, number)):
            verdict, reasons = NO, (_rolled_back(back),)
    except NotFound:
        return None
    except SchemadeskError as error:
        verdict, reasons = NO, (Reason("plan", error.message, "Request it to see the full error."),)
    return PromotionOutlook(
        source=pair.source,
        target=pair.target,
        context_name=subject.context,
        subject_name=subject.subject,
        basis=basis,
        verdict=verdict,
        reasons=[vars(reason) for reason in reasons[:_KEPT_REASONS]],
        at=timezone.now(),
    )


def _store(outlooks: Iterable[PromotionOutlook]) -> None:
    """Write the rows in a fixed order, so that two concurrent runs can't deadlock."""
    rows = sorted(outlooks, key=lambda row: (row.source_id, row.target_id, row.context_name, row.subject_name))
    PromotionOutlook.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["source", "target", "context_name", "subject_name"],
        update_fields=["basis", "verdict", "reasons", "at"],
    )
