"""Requests and environments, for pages and programs. Whether somebody may read them the caller asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, F, Func, JSONField, Prefetch, Q, QuerySet

from registry.errors import RegistryNotFound, RequestNotFound
from registry.promotions.eligible import Needed, Reviewing, needed_for_many
from registry.promotions.models import ApplyStep, Environment, PromotionRequest, Release, RequestItem, Review, Thread
from registry.promotions.overrides import overridden, reason_of
from registry.promotions.plan import FAIL
from registry.promotions.staleness import stale
from registry.subjects.names import SubjectName

#: the states of a list filter that stand for several
OPEN: Final = "open"
MAX_LIMIT: Final = 200
#: open requests that are looked at to find those that wait for somebody, newest first
MAX_WAITING: Final = 300


@dataclass(frozen=True)
class ReviewInfo:
    """A review; `counts` is False for one of an earlier plan. `overrides` are codes of checks that it passes over."""

    reviewer: str
    verdict: str
    comment: str
    at: datetime
    counts: bool
    override: str = ""
    overrides: tuple[str, ...] = ()
    reviewer_id: int = 0


@dataclass(frozen=True)
class ReleaseInfo:
    """What an applied request made live: the version that was asked for, or one that it refers to."""

    version: int
    schema_id: int
    released_by: str
    released_at: datetime
    subject: SubjectName


@dataclass(frozen=True)
class ItemInfo:
    """A version that was asked for; `version` 0 is a proposed text, which only one request's page has."""

    subject: SubjectName
    version: int
    fingerprint: str
    schema_type: str
    text: str = ""
    references: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class CommentInfo:
    """One contribution to a discussion."""

    id: int
    author: str
    author_id: int
    text: str
    at: datetime


@dataclass(frozen=True)
class ThreadInfo:
    """A discussion; `subject` and `path` are empty for one of the request as a whole."""

    id: int
    subject: str
    path: str
    resolved_by: str
    resolved_at: datetime | None
    comments: tuple[CommentInfo, ...]

    @property
    def is_open(self) -> bool:
        """Whether it isn't resolved."""
        return self.resolved_at is None


@dataclass(frozen=True)
class StepInfo:
    """A step of a plan that is or was applied."""

    position: int
    state: str
    step: dict[str, Any]
    version: int | None
    schema_id: int | None
    said: str
    started_at: datetime | None
    done_at: datetime | None


@dataclass(frozen=True)
class RequestInfo:
    """A request with its plan as it is stored: `planned_at` says of when. `moved` is what voided earlier approvals.

    `stale` says what has moved since the plan was made, "" where nothing has. In a list the plan's steps have no texts,
    `stale`, `threads` and `steps` are empty, and `open_threads` says how many there are. `needed` is empty for a closed
    request.
    """

    id: int
    kind: str
    subject: SubjectName
    version: int
    items: tuple[ItemInfo, ...]
    source: str
    target: str
    state: str
    reason: str
    with_config: bool
    requested_by: str
    requested_by_id: int
    requested_at: datetime
    closed_at: datetime | None
    plan: dict[str, Any]
    plan_hash: str
    planned_at: datetime
    moved: str
    apply_at: datetime | None
    applied_by: str
    failure: str
    reviews_needed: int
    own_approval_allowed: bool
    reviews: tuple[ReviewInfo, ...]
    needed: Needed
    stale: str
    open_threads: int
    threads: tuple[ThreadInfo, ...]
    steps: tuple[StepInfo, ...]
    releases: tuple[ReleaseInfo, ...]

    @property
    def fingerprint_short(self) -> str:
        """The first twelve digits of the requested schema's fingerprint, enough for people."""
        return self.items[0].fingerprint[:12]

    @property
    def release(self) -> ReleaseInfo | None:
        """The release of the version that the request is named by."""
        return next((item for item in self.releases if item.subject == self.subject), None)

    @property
    def checks(self) -> list[dict[str, Any]]:
        """The plan's checks: code, name, verdict, sentence, cure, overridable, subject."""
        found: list[dict[str, Any]] = self.plan["checks"]
        return found

    @property
    def failing(self) -> list[dict[str, Any]]:
        """The checks that fail and that no approval of this plan passes over."""
        passed = {code for review in self.reviews if review.counts for code in review.overrides}
        return [item for item in self.checks if item["verdict"] == FAIL and item.get("code") not in passed]

    @property
    def can_run(self) -> bool:
        """Whether no check fails, but those that an approval passes over."""
        return not self.failing

    @property
    def is_breaking(self) -> bool:
        """Whether the plan breaks what is there."""
        return bool(self.plan.get("breaking"))

    @property
    def is_open(self) -> bool:
        """Whether anything can still become of it."""
        return self.state in PromotionRequest.OPEN_STATES


def get_environment(name: str) -> Environment:
    """The environment of a registry of the configured project. Raises RegistryNotFound."""
    row = (
        Environment.objects.select_related("registry").filter(registry__name=name).first() if "\0" not in name else None
    )
    if row is None:
        raise RegistryNotFound(f"'{name}' is not an environment.", registry=name)
    return row


def list_environments() -> list[str]:
    """Names in the promotion order."""
    return list(Environment.objects.order_by("position").values_list("registry__name", flat=True))


def list_requests(
    *,
    state: str = "",
    target: str = "",
    subject: SubjectName | None = None,
    requested_by: int | None = None,
    waiting_for: int | None = None,
    viewer: int | None = None,
    after: int | None = None,
    limit: int = 100,
) -> list[RequestInfo]:
    """Requests, newest first, `after` the number of the last one of the page before.

    `state` may be a state, or `open` for all that aren't closed; `subject` is one of those asked for; `requested_by` and
    `waiting_for` are people. Drafts are listed for `viewer` alone, who is their requester. A constant number of queries.
    """
    if waiting_for is not None:
        return _waiting(waiting_for, state=state, target=target, subject=subject, after=after, limit=limit)
    rows = _filtered(_rows(), state=state, target=target, subject=subject, after=after)
    if requested_by is not None:
        rows = rows.filter(requested_by_id=requested_by)
    rows = rows.filter(~Q(state=PromotionRequest.DRAFT) | Q(requested_by_id=viewer or 0))
    return _infos(list(rows[: _limit(limit)]))


def get_request(request_id: int) -> RequestInfo:
    """One request with all its parts. Raises RequestNotFound."""
    row = _whole_rows().filter(pk=request_id).first()
    if row is None:
        raise RequestNotFound(f"There is no promotion request {request_id}.", request=request_id)
    return _infos([row])[0]


def releases_of(subject: SubjectName) -> dict[tuple[str, int], int]:
    """(environment, version there) → the request that released it."""
    rows = Release.objects.filter(context_name=subject.context, subject_name=subject.subject)
    found = rows.values_list("environment__registry__name", "version_number", "request_id")
    return {(name, version): request for name, version, request in found}


def waiting_for(user_id: int, *, limit: int = 20) -> list[RequestInfo]:
    """Requests in review that this person can review: by right, or by a rule; not their own, none reviewed already."""
    return _waiting(user_id, limit=limit)


def requested_by(user_id: int, *, limit: int = 20) -> list[RequestInfo]:
    """Open requests that this person made, drafts too."""
    rows = _rows().filter(state__in=PromotionRequest.OPEN_STATES, requested_by_id=user_id)
    return _infos(list(rows[: _limit(limit)]))


def count_waiting_for(user_id: int) -> int:
    """How many wait for somebody, at most 300 looked at: cheaper than the list."""
    return len(_waiting_numbers(user_id))


def _waiting(user_id: int, *, limit: int, **filters: Any) -> list[RequestInfo]:
    numbers = _waiting_numbers(user_id, **filters)[: _limit(limit)]
    return _infos(list(_rows().filter(pk__in=numbers)))


def _waiting_numbers(user_id: int, **filters: Any) -> list[int]:
    """The database leaves out what is their own or has their review, the rules decide about the rest."""
    reviewed = Review.objects.filter(reviewer_id=user_id).exclude(verdict=Review.CHANGES)
    done = reviewed.filter(plan_hash=F("request__plan_hash")).values("request")
    rows = (
        _filtered(PromotionRequest.objects.order_by("-id"), **filters)
        .filter(state=PromotionRequest.IN_REVIEW)
        .exclude(target__own_approval_allowed=False, requested_by_id=user_id)
        .exclude(pk__in=done)
        .select_related("target__registry")
        .defer("plan", "reason", "moved", "failure", "config")
        .annotate(light_plan=_OutlinedPlan(F("plan")))
    )
    found = list(rows[:MAX_WAITING])
    if not found:
        return []  # as on most pages that show how many wait
    for row in found:
        row.plan = row.light_plan
    reviewing = Reviewing(user_id, found)
    return [row.pk for row in found if reviewing.can(row)]


def _filtered(
    rows: QuerySet[PromotionRequest],
    *,
    state: str = "",
    target: str = "",
    subject: SubjectName | None = None,
    after: int | None = None,
) -> QuerySet[PromotionRequest]:
    if state == OPEN:
        rows = rows.filter(state__in=PromotionRequest.OPEN_STATES)
    elif state:
        rows = rows.filter(state=state)
    if target:
        rows = rows.filter(target__registry__name=target)
    if subject is not None:
        asked = RequestItem.objects.filter(context_name=subject.context, subject_name=subject.subject)
        rows = rows.filter(pk__in=asked.values("request"))
    return rows if after is None else rows.filter(pk__lt=after)


def _limit(limit: int) -> int:
    return max(1, min(limit, MAX_LIMIT))


class _LightPlan(Func):
    """A stored plan without the texts of its steps."""

    template = (
        "(%(expressions)s - 'steps' - 'reports' - 'target' || jsonb_build_object('steps', (SELECT coalesce(jsonb_agg("
        "step - 'text' - 'metadata' - 'rule_set' - 'references' ORDER BY place), '[]') FROM jsonb_array_elements("
        "%(expressions)s -> 'steps') WITH ORDINALITY AS steps (step, place))))"
    )
    output_field = JSONField()


class _OutlinedPlan(Func):
    """Of a stored plan the kinds and subjects of its steps, and whether it is breaking."""

    template = (
        "jsonb_build_object('breaking', %(expressions)s -> 'breaking', 'steps', (SELECT coalesce(jsonb_agg("
        "jsonb_build_object('kind', coalesce(step -> 'kind', '\"register\"'), 'subject', step -> 'subject')), '[]')"
        " FROM jsonb_array_elements(%(expressions)s -> 'steps') AS steps (step)))"
    )
    output_field = JSONField()


def _rows() -> QuerySet[PromotionRequest]:
    items = RequestItem.objects.order_by("position").defer("text", "references")
    return (
        _joined()
        .defer("plan")
        .annotate(light_plan=_LightPlan(F("plan")))
        .prefetch_related(Prefetch("items", queryset=items))
    )


def _whole_rows() -> QuerySet[PromotionRequest]:
    threads = Thread.objects.order_by("pk").select_related("resolved_by").prefetch_related("comments__author")
    return _joined().prefetch_related(
        Prefetch("items", queryset=RequestItem.objects.order_by("position")),
        Prefetch("threads", queryset=threads),
        Prefetch("steps", queryset=ApplyStep.objects.order_by("position")),
    )


def _joined() -> QuerySet[PromotionRequest]:
    unresolved = Count("threads", filter=Q(threads__resolved_at=None), distinct=True)
    releases = Release.objects.order_by("pk").select_related("released_by")
    return (
        PromotionRequest.objects.order_by("-id")
        .select_related("source__registry", "target__registry", "requested_by", "applied_by")
        .prefetch_related("reviews__reviewer", Prefetch("releases", queryset=releases))
        .annotate(open_threads=unresolved)
    )


def _infos(rows: Sequence[PromotionRequest]) -> list[RequestInfo]:
    for row in rows:
        if hasattr(row, "light_plan"):
            row.plan = row.light_plan
    reviewed = [row for row in rows if row.state not in PromotionRequest.CLOSED_STATES]
    needed = needed_for_many(reviewed) if reviewed else {}
    return [_info(row, needed.get(row.pk, Needed())) for row in rows]


def _info(row: PromotionRequest, needed: Needed) -> RequestInfo:
    is_whole = not hasattr(row, "light_plan")
    return RequestInfo(
        id=row.pk,
        kind=row.kind,
        subject=SubjectName(row.context_name, row.subject_name),
        version=row.version_number,
        items=tuple(_item(item, is_whole=is_whole) for item in row.items.all()),
        source=row.source.registry.name if row.source else "",
        target=row.target.registry.name,
        state=row.state,
        reason=row.reason,
        with_config=row.config is not None,
        requested_by=row.requested_by.get_username(),
        requested_by_id=row.requested_by_id,
        requested_at=row.requested_at,
        closed_at=row.closed_at,
        plan=row.plan,
        plan_hash=row.plan_hash,
        planned_at=row.planned_at,
        moved=row.moved,
        apply_at=row.apply_at,
        applied_by=row.applied_by.get_username() if row.applied_by else "",
        failure=row.failure,
        reviews_needed=row.target.reviews_needed,
        own_approval_allowed=row.target.own_approval_allowed,
        reviews=tuple(_review(review, row) for review in row.reviews.all()),
        needed=needed,
        stale=stale(row) if is_whole else "",
        open_threads=row.open_threads,  # type: ignore[attr-defined]  # annotated
        threads=tuple(_thread(thread) for thread in row.threads.all()) if is_whole else (),
        steps=tuple(_step(step) for step in row.steps.all()) if is_whole else (),
        releases=tuple(_release(release) for release in row.releases.all()),
    )


def _item(row: RequestItem, *, is_whole: bool) -> ItemInfo:
    return ItemInfo(
        subject=SubjectName(row.context_name, row.subject_name),
        version=row.version_number,
        fingerprint=row.fingerprint,
        schema_type=row.schema_type,
        text=row.text if is_whole else "",
        references=tuple(row.references) if is_whole else (),
    )


def _review(row: Review, request: PromotionRequest) -> ReviewInfo:
    return ReviewInfo(
        reviewer=row.reviewer.get_username(),
        verdict=row.verdict,
        comment=row.comment,
        at=row.at,
        counts=row.plan_hash == request.plan_hash,
        override=reason_of(row),
        overrides=tuple(sorted(overridden(row))),
        reviewer_id=row.reviewer_id,
    )


def _thread(row: Thread) -> ThreadInfo:
    return ThreadInfo(
        id=row.pk,
        subject=row.subject,
        path=row.path,
        resolved_by=row.resolved_by.get_username() if row.resolved_by else "",
        resolved_at=row.resolved_at,
        comments=tuple(
            CommentInfo(item.pk, item.author.get_username(), item.author_id, item.text, item.at)
            for item in row.comments.all()
        ),
    )


def _step(row: ApplyStep) -> StepInfo:
    return StepInfo(
        position=row.position,
        state=row.state,
        step=row.step,
        version=row.version_number,
        schema_id=row.schema_id,
        said=row.said,
        started_at=row.started_at,
        done_at=row.done_at,
    )


def _release(row: Release) -> ReleaseInfo:
    return ReleaseInfo(
        version=row.version_number,
        schema_id=row.schema_id,
        released_by=row.released_by.get_username(),
        released_at=row.released_at,
        subject=SubjectName(row.context_name, row.subject_name),
    )
