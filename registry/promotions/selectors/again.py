"""Requests that ask for what an earlier one asked for: which was the earlier, and which came after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from registry.access.roles import Actor
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors.request_infos import RequestInfo
from registry.promotions.selectors.sight import in_sight
from registry.subjects.names import SubjectName

#: the states of requests that may have been asked for again
_ENDED: Final = (PromotionRequest.REJECTED, PromotionRequest.WITHDRAWN)
_ROWS: Final = 500


@dataclass(frozen=True)
class Asked:
    """A request that asks for the same, or did."""

    id: int
    state: str
    subject: SubjectName
    again_of: int | None


@dataclass(frozen=True)
class Again:
    """The request that one asks for again, None for none that the reader may see; and those that ask for it again."""

    earlier: Asked | None = None
    later: tuple[Asked, ...] = ()


def asked_again(infos: Sequence[RequestInfo], by: Actor) -> Mapping[int, Again]:
    """Number → what somebody may see of it; one query, none where nothing was or could be asked for again."""
    before = {info.again_of for info in infos if info.again_of}
    ended = [info.id for info in infos if info.state in _ENDED]
    if not before and not ended:
        return {info.id: Again() for info in infos}
    rows = PromotionRequest.objects.filter(Q(pk__in=before) | Q(again_of__in=ended)).order_by("pk")
    columns = in_sight(rows, by).values_list("pk", "state", "context_name", "subject_name", "again_of")
    found = {row[0]: Asked(row[0], row[1], SubjectName(row[2], row[3]), row[4]) for row in columns[:_ROWS]}
    return {
        info.id: Again(
            earlier=found.get(info.again_of or 0),
            later=tuple(each for each in found.values() if each.again_of == info.id),
        )
        for info in infos
    }
