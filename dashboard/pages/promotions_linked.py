"""The open requests that a request is linked with, in words."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.presenters.looks import RequestState
from dashboard.presenters.promotions_page import LinkedRow
from dashboard.texts import counted
from registry.access.roles import Actor
from registry.promotions.selectors import LinkedRequest, RequestInfo, linked_requests


def linked_rows(info: RequestInfo, actor: Actor) -> tuple[LinkedRow, ...]:
    """Those that go first, those that bring what this one takes along, and those that refer to this one."""
    return tuple(_row(each, info.target) for each in linked_requests(info, actor))


def _row(each: LinkedRequest, target: str) -> LinkedRow:
    return LinkedRow(
        number=each.id,
        url=reverse("ui:promotion", args=[each.id]),
        subject=each.subject.qualified,
        state=RequestState.of(each.state),
        sentence=_sentence(each, target),
        goes_first=each.goes_first,
    )


def _sentence(each: LinkedRequest, target: str) -> str:
    if not each.brings:
        return gettext("It refers to what this request brings: this one goes first.")
    more = len(each.brings) - 1
    what = {"name": each.brings[0], "target": target}
    if each.along:
        said = gettext(
            "It brings %(name)s, which this request refers to and takes along: the one applied first writes it."
        )
        return f"{said % what} {_and_more(more)}".strip()
    said = gettext("It brings %(name)s, which %(target)s lacks and this request refers to: it goes first.")
    return f"{said % what} {_and_more(more)}".strip()


def _and_more(more: int) -> str:
    return counted(more, "So it is with %(n)s other subject.", "So it is with %(n)s other subjects.") if more else ""
