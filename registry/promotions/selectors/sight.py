"""Which requests somebody may read, as a condition of SQL, so that pages are of those alone.

`may_see` says the same of one request.
"""

from __future__ import annotations

from typing import Final

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from registry.access.extent import extent_of
from registry.access.roles import Actor
from registry.promotions.models import PromotionRequest, RequestItem
from registry.subjects.selectors.naming import qualified

#: of a request's own columns, and of an item's
_QUALIFIED: Final = qualified(F("context_name"), F("subject_name"))


def in_sight(rows: QuerySet[PromotionRequest], by: Actor) -> QuerySet[PromotionRequest]:
    """The requests of which somebody may read all that is asked for at the target; of drafts their own."""
    rows = rows.filter(~Q(state=PromotionRequest.DRAFT) | Q(requested_by_id=by.user_id or 0))
    extent = extent_of(by, "schema.read")
    if extent.is_whole:
        return rows
    items = RequestItem.objects.filter(request=OuterRef("pk")).alias(qualified=_QUALIFIED)
    beyond = items.exclude(extent.subjects("request__target__registry__name", "qualified"))
    own = extent.subjects("target__registry__name", "qualified")
    return rows.alias(qualified=_QUALIFIED).filter(own, ~Exists(beyond))
