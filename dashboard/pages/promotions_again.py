"""Asking again for what was rejected or withdrawn: the button, and what asked for the same before and after."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.promotions_decision import action
from dashboard.presenters.frame import Action, Link
from dashboard.presenters.looks import RequestState
from dashboard.presenters.promotions_page import LinkedRow
from registry.access.roles import Actor
from registry.promotions.models import PromotionRequest
from registry.promotions.reasons import refused
from registry.promotions.selectors import RequestInfo
from registry.promotions.selectors.again import Asked, asked_again
from registry.promotions.services.earlier import AGAIN

#: what is asked for with a form, which opens with what was asked for
_FORMS = {PromotionRequest.PROMOTE: "ui:promotion_request", PromotionRequest.PROPOSE: "ui:propose"}


def again_action(info: RequestInfo, actor: Actor) -> Action | None:
    """What asks for the same again: a form where something can be changed in it, else a button; None for other states."""
    if info.state not in AGAIN:
        return None
    label, icon = gettext("Ask again"), "refresh-cw"
    reason = refused(actor, "promotion.request", info, [item.subject.qualified for item in info.items])
    form = _FORMS.get(info.kind)
    if form is None:
        return action(info, "again", label, reason, icon=icon)
    url = f"{reverse(form)}?{urlencode({'again_of': info.id})}"
    return Action(label=gettext("Ask again…"), url=url, allowed=not reason, reason=reason, icon=icon)


def again_rows(info: RequestInfo, actor: Actor) -> tuple[LinkedRow, ...]:
    """The request that this one asks for again, and those that ask for this one again, newest first."""
    found = asked_again([info], actor)[info.id]
    later = tuple(_row(each, gettext("It asks for this again.")) for each in reversed(found.later))
    if found.earlier is None:
        return later
    return (_row(found.earlier, gettext("It asked for this before; this request asks again.")), *later)


def _row(each: Asked, sentence: str) -> LinkedRow:
    return LinkedRow(
        number=each.id,
        url=reverse("ui:promotion", args=[each.id]),
        subject=each.subject.qualified,
        state=RequestState.of(each.state),
        sentence=sentence,
    )


def again_link(number: int | None) -> Link | None:
    """The request that a form asks for again; None where it asks for the first time."""
    if number is None:
        return None
    return Link(label=gettext("request %(request)s") % {"request": number}, url=reverse("ui:promotion", args=[number]))
