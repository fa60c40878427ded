"""Requests and environments, for pages and programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from registry.errors import RegistryNotFound, RequestNotFound
from registry.promotions.models import Environment, PromotionRequest, Release, Review
from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class ReviewInfo:
    """A review; `counts` is False for one of an earlier plan."""

    reviewer: str
    verdict: str
    comment: str
    at: datetime
    counts: bool


@dataclass(frozen=True)
class ReleaseInfo:
    """What an applied request made live."""

    version: int
    schema_id: int
    released_by: str
    released_at: datetime


@dataclass(frozen=True)
class RequestInfo:
    """A promotion request with its plan as it is stored."""

    id: int
    subject: SubjectName
    version: int
    source: str
    target: str
    state: str
    reason: str
    requested_by: str
    requested_by_id: int
    requested_at: datetime
    closed_at: datetime | None
    plan: dict[str, Any]
    plan_hash: str
    reviews_needed: int
    own_approval_allowed: bool
    reviews: tuple[ReviewInfo, ...]
    release: ReleaseInfo | None

    @property
    def fingerprint_short(self) -> str:
        """The first twelve digits of the requested schema's fingerprint, enough for people."""
        return str(self.plan["steps"][-1]["fingerprint"])[:12]

    @property
    def can_run(self) -> bool:
        """Whether no check of the plan fails."""
        return all(check["verdict"] != "fail" for check in self.plan["checks"])


def get_environment(name: str) -> Environment:
    """The environment of a registry of the configured project. Raises RegistryNotFound."""
    row = Environment.objects.select_related("registry").filter(registry__name=name).first()
    if row is None:
        raise RegistryNotFound(f"'{name}' is not an environment.", registry=name)
    return row


def list_environments() -> list[str]:
    """Names in the promotion order."""
    return list(Environment.objects.order_by("position").values_list("registry__name", flat=True))


def list_requests(*, state: str = "", subject: SubjectName | None = None, limit: int = 100) -> list[RequestInfo]:
    """Requests, newest first. `state` may be a state, or `open` for all that aren't closed."""
    rows = _rows()
    if state == "open":
        rows = rows.filter(state__in=PromotionRequest.OPEN_STATES)
    elif state:
        rows = rows.filter(state=state)
    if subject is not None:
        rows = rows.filter(context_name=subject.context, subject_name=subject.subject)
    return [_info(row) for row in rows[:limit]]


def get_request(request_id: int) -> RequestInfo:
    """One request. Raises RequestNotFound."""
    row = _rows().filter(pk=request_id).first()
    if row is None:
        raise RequestNotFound(f"There is no promotion request {request_id}.", request=request_id)
    return _info(row)


def releases_of(subject: SubjectName) -> dict[tuple[str, int], int]:
    """(environment, version there) → the request that released it."""
    rows = Release.objects.filter(context_name=subject.context, subject_name=subject.subject)
    found = rows.values_list("environment__registry__name", "version_number", "request_id")
    return {(name, version): request for name, version, request in found}


def waiting_for(user_id: int, *, limit: int = 20) -> list[RequestInfo]:
    """Open requests that this person neither made nor reviewed in their present plan."""
    rows = (
        _rows()
        .filter(state=PromotionRequest.IN_REVIEW)
        .exclude(~Q(target__own_approval_allowed=True), requested_by_id=user_id)
    )
    infos = [_info(row) for row in rows[: limit * 2]]
    reviewed = set(
        Review.objects.filter(reviewer_id=user_id, request_id__in=[info.id for info in infos]).values_list(
            "request_id", "plan_hash"
        )
    )
    return [info for info in infos if (info.id, info.plan_hash) not in reviewed][:limit]


def requested_by(user_id: int, *, limit: int = 20) -> list[RequestInfo]:
    """Open requests that this person made."""
    rows = _rows().filter(state__in=PromotionRequest.OPEN_STATES, requested_by_id=user_id)
    return [_info(row) for row in rows[:limit]]


def _rows() -> Any:
    return (
        PromotionRequest.objects.order_by("-id")
        .select_related("source__registry", "target__registry", "requested_by", "release__released_by")
        .prefetch_related("reviews__reviewer")
    )


def _info(row: PromotionRequest) -> RequestInfo:
    release = getattr(row, "release", None)
    return RequestInfo(
        id=row.pk,
        subject=SubjectName(row.context_name, row.subject_name),
        version=row.version_number,
        source=row.source.registry.name,
        target=row.target.registry.name,
        state=row.state,
        reason=row.reason,
        requested_by=row.requested_by.get_username(),
        requested_by_id=row.requested_by_id,
        requested_at=row.requested_at,
        closed_at=row.closed_at,
        plan=row.plan,
        plan_hash=row.plan_hash,
        reviews_needed=row.target.reviews_needed,
        own_approval_allowed=row.target.own_approval_allowed,
        reviews=tuple(
            ReviewInfo(
                reviewer=review.reviewer.get_username(),
                verdict=review.verdict,
                comment=review.comment,
                at=review.at,
                counts=review.plan_hash == row.plan_hash,
            )
            for review in row.reviews.all()
        ),
        release=release
        and ReleaseInfo(
            version=release.version_number,
            schema_id=release.schema_id,
            released_by=release.released_by.get_username(),
            released_at=release.released_at,
        ),
    )
