"""Which requests wait for somebody's review: their numbers for a list, and how many for the frame of every page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db.models import Count, Exists, F, Func, JSONField, OuterRef, QuerySet

from registry.access.roles import Actor, Grant
from registry.promotions.eligible import Reviewing
from registry.promotions.models import PromotionRequest, RequestItem, Review, ReviewRule
from registry.promotions.selectors.sight import in_sight
from registry.promotions.stored_plan import STEPS
from registry.subjects.names import SubjectName

#: the states of a list filter that stand for several
OPEN: Final = "open"
#: open requests that are looked at one by one to find those that wait for somebody, newest first
MAX_WAITING: Final = 300


def count_waiting_for(user_id: int, grants: Sequence[Grant] | None = None) -> int:
    """How many wait for somebody; one query where none does, three for most: four without their `grants`.

    Where their right to review is for every subject of an environment, the database counts. Elsewhere patterns of
    rights or rules decide, and of those requests at most 300 are looked at.
    """
    groups = list(
        _in_review(user_id)
        .order_by()
        .values_list(
            "target",
            "target__registry__name",
            "target__own_approval_allowed",
            "requested_by",
            "requested_by__email",
        )
        .annotate(number=Count("pk"))
    )
    if not groups:
        return 0
    reviewer = Reviewing(user_id, requesters={group[3]: group[4] for group in groups}, grants=grants)
    if not reviewer.may_approve:
        return 0
    counted, partly = 0, {}
    for target, registry, may_own, requester, _, number in groups:
        if not reviewer.reviews_all_of(registry):
            partly[target] = registry
        elif may_own or not reviewer.is_same(requester):
            counted += number
    targets = [target for target, registry in partly.items() if reviewer.may_review_in(registry)]
    targets += ReviewRule.objects.filter(environment__in=partly).values_list("environment", flat=True) if partly else []
    return counted + (len(waiting_numbers(user_id, targets=targets, grants=reviewer.grants)) if targets else 0)


def waiting_numbers(
    user_id: int, *, targets: list[int] | None = None, grants: Sequence[Grant] | None = None, **filters: Any
) -> list[int]:
    """The numbers, newest first: the database leaves out what is theirs or has their review, the rules decide the rest."""
    rows = (
        filtered(_in_review(user_id), **filters)
        .select_related("target__registry", "requested_by")
        .defer("plan", "reason", "moved", "failure", "config")
        .annotate(light_plan=_OutlinedPlan(F("plan")))
    )
    found = list((rows if targets is None else rows.filter(target__in=targets))[:MAX_WAITING])
    if not found:
        return []
    for row in found:
        row.plan = row.light_plan
    reviewing = Reviewing(user_id, found, grants=grants)
    return [row.pk for row in found if reviewing.can(row)]


def _in_review(user_id: int) -> QuerySet[PromotionRequest]:
    theirs = Review.objects.filter(reviewer_id=user_id, request=OuterRef("pk"), plan_hash=OuterRef("plan_hash"))
    return (
        PromotionRequest.objects.order_by("-id")
        .filter(~Exists(theirs.exclude(verdict=Review.CHANGES)), state=PromotionRequest.IN_REVIEW)
        .exclude(target__own_approval_allowed=False, requested_by_id=user_id)
    )


def filtered(
    rows: QuerySet[PromotionRequest],
    *,
    state: str = "",
    target: str = "",
    subject: SubjectName | None = None,
    finding: int | None = None,
    label: str = "",
    after: int | None = None,
    by: Actor | None = None,
) -> QuerySet[PromotionRequest]:
    """The rows that a list asks for; a state may be `open` for all that aren't closed; `by` is who reads them."""
    if state == OPEN:
        rows = rows.filter(state__in=PromotionRequest.OPEN_STATES)
    elif state:
        rows = rows.filter(state=state)
    if target:
        rows = rows.filter(target__registry__name=target)
    if subject is not None:
        asked = RequestItem.objects.filter(context_name=subject.context, subject_name=subject.subject)
        rows = rows.filter(pk__in=asked.values("request"))
    if finding is not None:
        rows = rows.filter(finding=finding)
    if label:
        rows = rows.filter(labels__contains=[label])
    if by is not None:
        rows = in_sight(rows, by)
    return rows if after is None else rows.filter(pk__lt=after)


class _OutlinedPlan(Func):
    """Of a stored plan the kinds and subjects of its steps, and whether it is breaking."""

    template = (
        "jsonb_build_object('breaking', %(expressions)s -> 'breaking', 'steps', (SELECT coalesce(jsonb_agg("  # noqa: S608  ours
        "jsonb_build_object('kind', coalesce(step -> 'kind', '\"register\"'), 'subject', step -> 'subject')), '[]')"
        f" FROM jsonb_array_elements({STEPS}) AS steps (step) WHERE jsonb_typeof(step) = 'object'))"
    )
    output_field = JSONField()
