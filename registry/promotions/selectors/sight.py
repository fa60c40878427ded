"""Which requests somebody may read, as a condition of SQL, so that pages are of those alone.

`may_see` says the same of one request.
"""

from __future__ import annotations

from typing import Final

from django.db.models import BooleanField, Case, CharField, Exists, F, Func, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Concat

from registry.access.roles import Actor, may, patterns_of
from registry.promotions.models import Environment, PromotionRequest, RequestItem
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.patterns import like

_READ: Final = "schema.read"
#: of a request's own columns, and of an item's
_QUALIFIED: Final = Case(
    When(context_name=DEFAULT_CONTEXT, then=F("subject_name")),
    default=Concat(Value(":"), "context_name", Value(":"), "subject_name"),
    output_field=CharField(),
)


class _Like(Func):
    """Whether a text fits a pattern of LIKE."""

    arg_joiner = " LIKE "
    template = "(%(expressions)s)"
    output_field = BooleanField()


def in_sight(rows: QuerySet[PromotionRequest], by: Actor) -> QuerySet[PromotionRequest]:
    """The requests of which somebody may read all that is asked for at the target; of drafts their own."""
    rows = rows.filter(~Q(state=PromotionRequest.DRAFT) | Q(requested_by_id=by.user_id or 0))
    if may(by, _READ):
        return rows
    places = dict(Environment.objects.values_list("pk", "registry__name"))
    seen = Q(target__in=[key for key, name in places.items() if may(by, _READ, registry=name)])
    for key, name in places.items():
        named = None if may(by, _READ, registry=name) else _named(by, key, name)
        if named is not None:
            items = RequestItem.objects.filter(request=OuterRef("pk")).alias(qualified=_QUALIFIED)
            seen |= Q(named, ~Exists(items.filter(~named)), target=key)
    return rows.alias(qualified=_QUALIFIED).filter(seen)


def _named(by: Actor, target: int, registry: str) -> Q | None:
    """The condition on `qualified` for the subjects of a registry that somebody may read by name; None for none."""
    fitting = list(patterns_of(by, _READ, registry))
    if not fitting:
        return None
    if any("[" in pattern for patterns in fitting for pattern in patterns):
        return Q(qualified__in=_readable_names(by, target, registry))
    found = Q(pk__in=())
    for patterns in fitting:
        found |= Q(*(_Like(F("qualified"), Value(like(pattern))) for pattern in patterns))
    return found


def _readable_names(by: Actor, target: int, registry: str) -> list[str]:
    """The names one by one: PostgreSQL has no pattern for `[a-c]` that is quite the same."""
    asked = RequestItem.objects.filter(request__target=target).order_by().distinct()
    names = (SubjectName(*row).qualified for row in asked.values_list("context_name", "subject_name"))
    return [name for name in names if may(by, _READ, registry=registry, subject=name)]
