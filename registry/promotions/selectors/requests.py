"""Requests and environments, for pages and programs. Whether somebody may read them the caller asks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.db.models import Count, Exists, F, Func, JSONField, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from registry.access.roles import Actor
from registry.errors import RegistryNotFound, RequestNotFound
from registry.promotions.models import (
    Acknowledgement,
    ApplyStep,
    Environment,
    PromotionRequest,
    Release,
    RequestItem,
    Thread,
)
from registry.promotions.selectors.request_infos import (
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
from registry.promotions.selectors.sight import in_sight
from registry.promotions.selectors.waiting import OPEN, filtered, waiting_numbers
from registry.promotions.stored_plan import STEPS
from registry.subjects.names import SubjectName

__all__ = [
    "OPEN",
    "AcknowledgementInfo",
    "CommentInfo",
    "ItemInfo",
    "ReleaseInfo",
    "RequestInfo",
    "ReviewInfo",
    "StepInfo",
    "ThreadInfo",
    "get_environment",
    "get_request",
    "list_environments",
    "list_requests",
    "releases_of",
    "requested_by",
    "requests_numbered",
    "waiting_for",
]
MAX_LIMIT: Final = 200
#: the largest number that a row can have
_MAX_NUMBER: Final = 2**63 - 1


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
    finding: int | None = None,
    label: str = "",
    requested_by: int | None = None,
    waiting_for: int | None = None,
    by: Actor | None = None,
    after: int | None = None,
    limit: int = 100,
) -> list[RequestInfo]:
    """Requests, newest first, `after` the number of the last one of the page before.

    `state` may be a state, or `open` for all that aren't closed; `subject` is one of those asked for; `finding` is the
    drift finding that they answer, which the caller may read; `label` is one of theirs; `requested_by` and `waiting_for` are people. `by` is who reads
    them: what they may not read is left out, and so are others' drafts; without it all drafts are. A constant number of
    queries.
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
    """Those of these numbers that there are, newest first, as a list has them; a constant number of queries."""
    asked = [number for number in numbers if 0 < number <= _MAX_NUMBER][:MAX_LIMIT]
    return infos_of(list(_rows().filter(pk__in=asked))) if asked else []


def open_requests_of(subjects: Collection[SubjectName], by: Actor) -> dict[SubjectName, int | None]:
    """The newest request, drafts left out, that is open for each of some subjects and that somebody may read; one query.

    None for a subject whose open requests are all of those that they may not read.
    """
    states = [state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT]
    items = RequestItem.objects.filter(
        request__state__in=states, subject_name__in={subject.subject for subject in subjects}
    ).annotate(seen=Exists(in_sight(PromotionRequest.objects.filter(pk=OuterRef("request")).order_by(), by)))
    found: dict[SubjectName, int | None] = {}
    for context, name, request, seen in items.order_by("seen", "request").values_list(
        "context_name", "subject_name", "request", "seen"
    ):
        found[SubjectName(context, name)] = request if seen else None
    return {subject: found[subject] for subject in subjects if subject in found}


def get_request(request_id: int) -> RequestInfo:
    """One request with all its parts. Raises RequestNotFound."""
    row = _whole_rows().filter(pk=request_id).first()
    if row is None:
        raise RequestNotFound(f"There is no promotion request {request_id}.", request=request_id)
    return infos_of([row])[0]


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
    return infos_of(list(rows[: _limit(limit)]))


def _waiting(user_id: int, *, limit: int, **filters: Any) -> list[RequestInfo]:
    numbers = waiting_numbers(user_id, **filters)[: _limit(limit)]
    return infos_of(list(_rows().filter(pk__in=numbers)))


def _limit(limit: int) -> int:
    return max(1, min(limit, MAX_LIMIT))


class _LightPlan(Func):
    """A stored plan without the texts of its steps; of a damaged one what there is, or null."""

    template = (
        "(CASE jsonb_typeof(%(expressions)s) WHEN 'object' THEN %(expressions)s - 'steps' - 'reports' - 'target'"  # noqa: S608  our own words
        " || jsonb_build_object('steps', (SELECT coalesce(jsonb_agg("
        "step - 'text' - 'metadata' - 'rule_set' - 'references' ORDER BY place), '[]') FROM jsonb_array_elements("
        f"{STEPS}) WITH ORDINALITY AS steps (step, place) WHERE jsonb_typeof(step) = 'object')) END)"
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
        Prefetch("acknowledgements", queryset=Acknowledgement.objects.order_by("pk").select_related("person")),
        Prefetch("steps", queryset=ApplyStep.objects.order_by("position")),
    )


def _joined() -> QuerySet[PromotionRequest]:
    threads = Thread.objects.filter(request=OuterRef("pk"), resolved_at=None).order_by().values("request")
    # no grouping by a key: of what a past request is read from none is known
    unresolved = Coalesce(Subquery(threads.annotate(number=Count("*")).values("number")), 0)
    releases = Release.objects.order_by("pk").select_related("released_by")
    return (
        PromotionRequest.objects.order_by("-id")
        .select_related("source__registry", "target__registry", "requested_by", "applied_by")
        .prefetch_related("reviews__reviewer", Prefetch("releases", queryset=releases))
        .annotate(open_threads=unresolved)
    )
