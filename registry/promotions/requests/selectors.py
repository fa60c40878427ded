"""Requests for pages and the API: one, a list, those that wait for a person's review, and resubmissions.

The caller checks the right to read them, except in `readable_request` and with `by`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Exists, F, Func, JSONField, OuterRef, Prefetch, Q, Subquery
from django.db.models.functions import Coalesce

from registry.access.roles import Actor, Grant, may, may_somewhere, require
from registry.errors import InvalidInput, RegistryNotFound, RequestNotFound, WrongState
from registry.promotions.models import (
    Acknowledgement,
    Environment,
    PromotionRequest,
    Release,
    RequestItem,
    Review,
    ReviewRule,
    Thread,
)
from registry.promotions.models.requests import STEPS, RequestQuerySet
from registry.promotions.requests.infos import (
    AcknowledgementInfo,
    CommentInfo,
    ItemInfo,
    ReleaseInfo,
    RequestInfo,
    ReviewInfo,
    StepInfo,
    ThreadInfo,
    infos_of,
)
from registry.promotions.reviews.eligibility import ReviewerFilter, target_rules
from registry.subjects.versions.qualified_names import SubjectName

__all__ = [
    "AcknowledgementInfo",
    "CommentInfo",
    "ItemInfo",
    "ReleaseInfo",
    "RequestInfo",
    "ReviewInfo",
    "StepInfo",
    "ThreadInfo",
]


#: the value of a list's state filter for all open states
OPEN: Final = "open"
#: the most open requests that are examined one by one to find those that wait for a person, newest first
MAX_WAITING: Final = 300


def count_waiting_for(user_id: int, grants: Sequence[Grant] | None = None) -> int:
    """Return how many requests wait for a person's review; one query if none does, mostly two, three without `grants`.

    If they may review every subject of an environment, the database counts. Otherwise patterns of rights or rules
    decide, and at most 300 of those requests are examined.
    """
    groups = list(
        _in_review(user_id)
        .order_by()
        .annotate(is_ruled=Exists(ReviewRule.objects.filter(environment=OuterRef("target"))))
        .values_list(
            *("target", "target__registry__name", "target__own_approval_allowed", "target__is_closed"),
            *("requested_by", "is_ruled"),
        )
        .annotate(number=Count("pk"))
    )
    if not groups:
        return 0
    requesters = {group[4] for group in groups}
    reviewer = ReviewerFilter(user_id, requesters, grants)
    if not reviewer.may_approve:
        return 0
    counted, partly = 0, set()
    for target, registry, may_own, is_closed, requester, is_ruled, number in groups:
        if not reviewer.reviews_all_of(registry):
            partly |= {target} if is_ruled or reviewer.may_review_in(registry) else set()
        elif may_own or not reviewer.is_same(requester, is_closed=is_closed):
            counted += number
    if not partly:
        return counted
    rows = _examined(_in_review(user_id).filter(target__in=partly, requested_by__in=requesters))
    return counted + len(reviewer.reviewable(rows))


def waiting_numbers(user_id: int, *, grants: Sequence[Grant] | None = None, **filters: Any) -> list[int]:
    """Return the numbers of requests that wait for the person's review, newest first.

    The database excludes their own and reviewed requests, the rules decide the rest.
    """
    rows = _examined(filtered(_in_review(user_id), **filters))
    if not rows:
        return []
    reviewer = ReviewerFilter(user_id, {row.requested_by_id for row in rows}, grants)
    return reviewer.reviewable(rows)


def _examined(requests: RequestQuerySet) -> list[PromotionRequest]:
    """Return the newest of the requests, with the outline of their plans."""
    rows = list(
        requests.select_related("target__registry")
        .defer("plan", "reason", "moved", "failure", "config")
        .annotate(light_plan=_OutlinedPlan(F("plan")), target_rules=target_rules())[:MAX_WAITING]
    )
    for row in rows:
        row.plan = row.light_plan  # type: ignore[attr-defined]  # annotated
    return rows


def _in_review(user_id: int) -> RequestQuerySet:
    theirs = Review.objects.filter(reviewer_id=user_id, request=OuterRef("pk"), plan_hash=OuterRef("plan_hash"))
    return (
        PromotionRequest.objects.order_by("-id")
        .filter(~Exists(theirs.exclude(verdict=Review.CHANGES)), state=PromotionRequest.IN_REVIEW)
        .exclude(target__own_approval_allowed=False, requested_by_id=user_id)
    )


def filtered(
    rows: RequestQuerySet,
    *,
    state: str = "",
    target: str = "",
    subject: SubjectName | None = None,
    finding: int | None = None,
    label: str = "",
    after: int | None = None,
    by: Actor | None = None,
) -> RequestQuerySet:
    """Return the rows that match the filters; the state `open` means all that aren't closed; `by` is the reader."""
    if state == OPEN:
        rows = rows.filter(state__in=PromotionRequest.OPEN_STATES)
    elif state:
        rows = rows.filter(state=state)
    if target:
        rows = rows.filter(target__registry__name=target)
    if subject is not None:
        items = RequestItem.objects.filter(context_name=subject.context, subject_name=subject.subject)
        rows = rows.filter(pk__in=items.values("request"))
    if finding is not None:
        rows = rows.filter(finding=finding)
    if label:
        rows = rows.filter(labels__contains=[label])
    if by is not None:
        rows = rows.visible_to(by)
    return rows if after is None else rows.filter(pk__lt=after)


class _OutlinedPlan(Func):
    """The kinds and subjects of a stored plan's steps, and whether it is breaking."""

    template = (
        "jsonb_build_object('breaking', %(expressions)s -> 'breaking', 'steps', (SELECT coalesce(jsonb_agg("  # noqa: S608  ours
        "jsonb_build_object('kind', coalesce(step -> 'kind', '\"register\"'), 'subject', step -> 'subject')), '[]')"
        f" FROM jsonb_array_elements({STEPS}) AS steps (step) WHERE jsonb_typeof(step) = 'object'))"
    )
    output_field = JSONField()


MAX_LIMIT: Final = 200
#: the largest possible primary key
_MAX_NUMBER: Final = 2**63 - 1


def get_environments(*names: str) -> list[Environment]:
    """Return the environments of registries of the configured project, in the order of the names; one query.

    Raises RegistryNotFound.
    """
    asked = {name for name in names if "\0" not in name}
    rows = Environment.objects.select_related("registry").filter(registry__name__in=asked).order_by("-position")
    by_name = {row.registry.name: row for row in rows}
    missing = next((name for name in names if name not in by_name), None)
    if missing is not None:
        raise RegistryNotFound(f"'{missing}' is not an environment.", registry=missing)
    return [by_name[name] for name in names]


def get_environment(name: str) -> Environment:
    """Return the environment of a registry of the configured project. Raises RegistryNotFound."""
    return get_environments(name)[0]


def list_environments() -> list[str]:
    """Return the names of the environments, in promotion order."""
    return list(Environment.objects.order_by("position").values_list("registry__name", flat=True))


def list_requests(
    *,
    state: str = "",
    target: str = "",
    subject: SubjectName | None = None,
    finding: int | None = None,
    label: str = "",
    requested_by: int | None = None,
    waiting_for: int | None = None,
    by: Actor | None = None,
    after: int | None = None,
    limit: int = 100,
) -> list[RequestInfo]:
    """Return requests, newest first; `after` is the number of the last one on the previous page.

    `state` may be `open` for all that aren't closed; `subject` is one of the requested subjects; `finding` is the drift
    finding that they answer, which the caller must be allowed to read; `requested_by` and `waiting_for` are users. `by`
    is the reader: requests that they may not read, and others' drafts, are left out; without it all drafts are. A
    constant number of queries.
    """
    filters: dict[str, Any] = {
        "state": state, "target": target, "subject": subject, "finding": finding, "label": label, "by": by, "after": after,
    }  # fmt: skip
    if waiting_for is not None:
        return _waiting(waiting_for, limit=limit, **filters)
    rows = filtered(_rows(), **filters)
    if requested_by is not None:
        rows = rows.filter(requested_by_id=requested_by)
    if by is None:
        rows = rows.exclude(state=PromotionRequest.DRAFT)
    return infos_of(list(rows[: _limit(limit)]))


def requests_numbered(numbers: Collection[int]) -> list[RequestInfo]:
    """Return the existing requests with these numbers, newest first, as in a list; a constant number of queries."""
    valid = [number for number in numbers if 0 < number <= _MAX_NUMBER][:MAX_LIMIT]
    return infos_of(list(_rows().filter(pk__in=valid))) if valid else []


def open_requests_of(subjects: Collection[SubjectName], by: Actor) -> dict[SubjectName, int | None]:
    """Return subject → its newest open request that the actor may read, without drafts; one query.

    None for a subject whose open requests they can't read.
    """
    states = [state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT]
    items = RequestItem.objects.filter(
        request__state__in=states, subject_name__in={subject.subject for subject in subjects}
    ).annotate(seen=Exists(PromotionRequest.objects.visible_to(by).filter(pk=OuterRef("request")).order_by()))
    requests: dict[SubjectName, int | None] = {}
    for context, name, request, is_readable in items.order_by("seen", "request").values_list(
        "context_name", "subject_name", "request", "seen"
    ):
        requests[SubjectName(context, name)] = request if is_readable else None
    return {subject: requests[subject] for subject in subjects if subject in requests}


def get_request(request_id: int, environments: Sequence[Environment] = ()) -> RequestInfo:
    """Return one request with all its parts; `environments` are those of `environment_rows`, if read already.

    Raises RequestNotFound.
    """
    row = _whole_rows().filter(pk=request_id).first()
    if row is None:
        raise RequestNotFound(f"Promotion request {request_id} not found.", request=request_id)
    return infos_of([row], environments)[0]


def releases_of(subject: SubjectName) -> dict[tuple[str, int], int]:
    """Return (environment, version there) → the request that released it."""
    rows = Release.objects.filter(context_name=subject.context, subject_name=subject.subject)
    columns = rows.values_list("environment__registry__name", "version_number", "request_id")
    return {(name, version): request for name, version, request in columns}


@dataclass(frozen=True)
class HomeRequests:
    """The requests on the home page, newest first: waiting for the reader's review, their own open ones, failed ones.

    `others` are requested by number.
    """

    waiting: list[RequestInfo]
    mine: list[RequestInfo]
    failed: list[RequestInfo]
    others: dict[int, RequestInfo]


def home_requests(by: Actor, *, others: Collection[int] = (), limit: int = 20, failed: int = 8) -> HomeRequests:
    """Return at most `limit` waiting and own requests each, and at most `failed` failed ones.

    A constant number of queries.
    """
    waiting = waiting_numbers(by.user_id, grants=by.grants)[:limit] if by.user_id else []
    mine = PromotionRequest.objects.filter(state__in=PromotionRequest.OPEN_STATES, requested_by_id=by.user_id or 0)
    failing = filtered(PromotionRequest.objects.all(), state=PromotionRequest.FAILED, by=by)
    chosen = (
        Q(pk__in=[*waiting, *others]) | Q(pk__in=mine.values("pk")[:limit]) | Q(pk__in=failing.values("pk")[:failed])
    )
    infos = infos_of(list(_rows().filter(chosen)))
    return HomeRequests(
        waiting=[info for info in infos if info.id in waiting],
        mine=[info for info in infos if info.is_open and info.requested_by_id == by.user_id][:limit],
        failed=[info for info in infos if info.state == PromotionRequest.FAILED and may_see(by, info)][:failed],
        others={info.id: info for info in infos if info.id in others},
    )


def _waiting(user_id: int, *, limit: int, **filters: Any) -> list[RequestInfo]:
    numbers = waiting_numbers(user_id, **filters)[: _limit(limit)]
    return infos_of(list(_rows().filter(pk__in=numbers)))


def _limit(limit: int) -> int:
    return max(1, min(limit, MAX_LIMIT))


class _LightPlan(Func):
    """A stored plan without the texts of its steps; for a damaged plan what is readable, or null."""

    template = (
        "(CASE jsonb_typeof(%(expressions)s) WHEN 'object' THEN %(expressions)s - 'steps' - 'reports' - 'target'"  # noqa: S608  our own words
        " || jsonb_build_object('steps', (SELECT coalesce(jsonb_agg("
        "step - 'text' - 'metadata' - 'rule_set' - 'references' ORDER BY place), '[]') FROM jsonb_array_elements("
        f"{STEPS}) WITH ORDINALITY AS steps (step, place) WHERE jsonb_typeof(step) = 'object')) END)"
    )
    output_field = JSONField()


def _rows() -> RequestQuerySet:
    items = RequestItem.objects.order_by("position").defer("text", "references")
    return (
        _joined()
        .defer("plan")
        .annotate(light_plan=_LightPlan(F("plan")))
        .prefetch_related(Prefetch("items", queryset=items))
    )


def _whole_rows() -> RequestQuerySet:
    threads = Thread.objects.order_by("pk").select_related("resolved_by").prefetch_related("comments__author")
    items = RequestItem.objects.order_by("position")
    acknowledgements = Acknowledgement.objects.filter(request=OuterRef("pk"))
    return (
        _joined()
        .annotate(is_acknowledged=Exists(acknowledgements))
        .prefetch_related(Prefetch("items", queryset=items), Prefetch("threads", queryset=threads))
    )


def _joined() -> RequestQuerySet:
    threads = Thread.objects.filter(request=OuterRef("pk"), resolved_at=None).order_by().values("request")
    # no grouping by a key: the views of the past have none
    unresolved = Coalesce(Subquery(threads.annotate(number=Count("*")).values("number")), 0)
    reviews = Review.objects.select_related("reviewer")
    return (
        PromotionRequest.objects.order_by("-id")
        .select_related("source__registry", "target__registry", "requested_by", "applied_by")
        .prefetch_related(Prefetch("reviews", queryset=reviews))
        .annotate(open_threads=unresolved, target_rules=target_rules())
    )


def may_see(by: Actor, info: RequestInfo) -> bool:
    """Return whether the actor may read a request: all its subjects at the target; a draft only its requester."""
    if info.state == PromotionRequest.DRAFT and by.user_id != info.requested_by_id:
        return False
    names = [item.subject.qualified for item in info.items] or [info.subject.qualified]
    return all(may(by, "schema.read", registry=info.target, subject=name) for name in names)


def readable_request(request_id: int, by: Actor, environments: Sequence[Environment] = ()) -> RequestInfo:
    """Return one request for a reader; if they may not read it, the error is that of a missing one.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")
    info = get_request(request_id, environments)
    if not may_see(by, info):
        raise RequestNotFound(f"Promotion request {request_id} not found.", request=request_id)
    return info


#: states of requests that can be resubmitted: nothing was written, and nothing will be
AGAIN: tuple[str, ...] = (PromotionRequest.REJECTED, PromotionRequest.WITHDRAWN)


def require_earlier(number: int, *, target: str, subjects: Collection[SubjectName], by: Actor) -> None:
    """Refuse an earlier request that a new one for these subjects can't resubmit.

    Raises RequestNotFound for one that `by` may not read, WrongState for one that was neither rejected nor withdrawn,
    InvalidInput for one with another target or only other subjects.
    """
    earlier = readable_request(number, by)
    if earlier.state not in AGAIN:
        raise WrongState(
            f"Request {number} is {earlier.state}. Only a rejected or withdrawn request can be requested again.",
            request=number,
        )
    if earlier.target != target or not any(item.subject in subjects for item in earlier.items):
        raise InvalidInput(
            f"Request {number} was for other subjects or another target than {target}, so this is not the"
            " same request again.",
            field="again_of",
        )
