"""Several approvals with one confirmation: the page that lists what was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.promotions import request_row
from dashboard.pages.promotions_plan import worst
from dashboard.presenters.frame import Action, Crumb, Section
from dashboard.presenters.promotions import ChosenRow, LeftOut, TogetherPage
from dashboard.texts import counted
from registry.access.roles import Actor
from registry.promotions import selectors
from registry.promotions.overrides import AT_APPLYING
from registry.promotions.reasons import approving
from registry.promotions.selectors import RequestInfo
from registry.promotions.selectors.readable import may_see
from registry.promotions.services.approving_together import MOST_TOGETHER
from registry.promotions.together import AS_USUAL, why_alone

#: between a request's number and the hash of its plan, in a form
_MARK = ":"


def together_page(request: HttpRequest) -> TogetherPage:
    """What would be approved of the requests that the address names, and what is left out of them, with the reason."""
    actor, order = page_actor(request), selectors.list_environments()
    asked = _numbers(request.GET.getlist("request"))
    there = {info.id: info for info in selectors.requests_numbered(asked[:MOST_TOGETHER]) if may_see(actor, info)}
    against = {number: _against(info, actor) for number, info in there.items()}
    rows = tuple(_chosen(there[n], order) for n in asked if n in there and not against[n])
    left = [
        LeftOut(number=n, reason=against[n], request=request_row(there[n], order))
        if n in there
        else LeftOut(number=n, reason=_not_read(n, asked))
        for n in asked
        if n not in there or against[n]
    ]
    waiting = f"{reverse('ui:promotions')}?{urlencode({'who': 'waiting'})}"
    return TogetherPage(
        frame=make_frame(
            request,
            title=gettext("Approve several requests"),
            section=Section.PROMOTIONS,
            crumbs=(Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),),
            order=order,
        ),
        rows=rows,
        left=tuple(left),
        submit=Action(
            label=counted(len(rows), "Approve %(n)s request", "Approve %(n)s requests"),
            url=reverse("ui:promotions_approve"),
            method="post",
            tone="primary",
            icon="check",
        ),
        back_url=waiting,
    )


def _numbers(texts: Iterable[str]) -> list[int]:
    found = (whole_number(text) for text in texts)
    return list(dict.fromkeys(number for number in found if number is not None))


def _not_read(number: int, asked: Sequence[int]) -> str:
    """The same for one that isn't there and for one that isn't the reader's to know of."""
    if number in asked[MOST_TOGETHER:]:
        return gettext("Up to %(most)s are approved at once: choose it in the next round.") % {"most": MOST_TOGETHER}
    return gettext("There is no such request.")


def _against(info: RequestInfo, actor: Actor) -> str:
    """Why it isn't approved with others by this reader; "" where it is."""
    conditions = approving(info, actor)
    stopping = next((item.sentence for item in conditions if not item.passable), "")
    return stopping or why_alone(info.plan)


def _chosen(info: RequestInfo, order: list[str]) -> ChosenRow:
    """A row with the verdict of what an approval goes by; what stands against applying alone is said in words."""
    counting = [check for check in info.checks if check.get("code") not in AS_USUAL]
    later_on = [str(check["sentence"]) for check in info.failing if check.get("code") in AT_APPLYING]
    return ChosenRow(
        request=replace(request_row(info, order), verdict=worst(counting)),
        note=" ".join(later_on),
        plan=f"{info.id}{_MARK}{info.plan_hash}",
        plan_hash=info.plan_hash,
        reason=info.reason,
    )


def plans_of(texts: Iterable[str]) -> list[tuple[int, str]]:
    """The numbers with their plans' hashes, as the confirmation sends them; what is none is passed over."""
    found = []
    for text in texts:
        number, _, plan_hash = text.partition(_MARK)
        known = whole_number(number)
        if known is not None:
            found.append((known, plan_hash[:64]))
    return found
