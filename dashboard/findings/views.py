"""Pages of findings, and the decisions on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.frame import page_actor, render_page
from dashboard.components.links import whole_number
from dashboard.components.translation import counted
from dashboard.findings import finding_list as findings_table
from dashboard.findings import mutes
from dashboard.findings import page as findings
from dashboard.sources.forms import end_of_day
from dashboard.sources.labels import given_text
from registry.drift import services
from registry.errors import Conflict, Forbidden, InvalidInput, NotFound, SchemadeskError

MOST_AT_ONCE: Final = 200


@require_safe
def finding_list(request: HttpRequest) -> HttpResponse:
    """What needs a decision; htmx gets the list alone."""
    return render_page(request, "drift/findings.html", findings_table.finding_list(request), {"list": "list"})


@require_safe
def finding_page(request: HttpRequest, finding_id: int) -> HttpResponse:
    """A finding with its evidence."""
    return render(request, "drift/finding.html", {"page": findings.finding_page(request, finding_id)})


@require_POST
def finding_acknowledge(request: HttpRequest, finding_id: int) -> HttpResponse:
    """Take note of it, with a reason, until a day."""
    return _decided(request, finding_id, lambda: _acknowledge(request, finding_id), gettext("Acknowledged."))


@require_POST
def finding_reopen(request: HttpRequest, finding_id: int) -> HttpResponse:
    """Open it again."""
    actor = page_actor(request)
    return _decided(
        request, finding_id, lambda: services.reopen(finding_id=finding_id, by=actor), gettext("Finding reopened.")
    )


@require_POST
def finding_assign(request: HttpRequest, finding_id: int) -> HttpResponse:
    """Give it to somebody, or to nobody."""
    to = given_text(request.POST, "to")
    done = gettext("Assigned to %(to)s.") % {"to": to} if to else gettext("Assigned to nobody.")
    return _decided(request, finding_id, lambda: _assign(request, finding_id), done)


def _acknowledge(request: HttpRequest, finding_id: int) -> None:
    services.acknowledge(
        finding_id=finding_id,
        reason=given_text(request.POST, "reason"),
        until=end_of_day(request.POST.get("until", "")),
        by=page_actor(request),
    )


def _assign(request: HttpRequest, finding_id: int) -> None:
    services.assign(finding_id=finding_id, to=given_text(request.POST, "to"), by=page_actor(request))


def _decided(request: HttpRequest, finding_id: int, decide: Callable[[], None], done: str) -> HttpResponse:
    try:
        decide()
        messages.success(request, done)
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
    if request.POST.get("next") == reverse("ui:home"):
        return redirect("ui:home")
    return redirect("ui:finding", finding_id)


@require_POST
def findings_decide(request: HttpRequest) -> HttpResponse:
    """Acknowledge or assign all that were chosen; what couldn't be is named, the rest is done."""
    decide = _acknowledge if request.POST.get("do") == "acknowledge" else _assign
    numbers = [number for text in request.POST.getlist("finding") if (number := whole_number(text)) is not None]
    try:
        if not numbers:
            raise InvalidInput(gettext("Select findings first."))
        if len(numbers) > MOST_AT_ONCE:
            raise InvalidInput(
                gettext("You can select up to %(most_at_once)s findings at once, not %(count)s.")
                % {"count": len(numbers), "most_at_once": MOST_AT_ONCE}
            )
        _decide_all(request, numbers, decide)
    except InvalidInput as error:
        messages.error(request, error.message)
    return redirect(_back(request))


#: what is said of those that were decided on, and of those that couldn't be
_ACKNOWLEDGED: Final = (
    lambda number: counted(number, "%(n)s finding acknowledged.", "%(n)s findings acknowledged."),
    lambda number: counted(number, "%(n)s more couldn’t be acknowledged.", "%(n)s more couldn’t be acknowledged."),
)
_ASSIGNED: Final = (
    lambda number: counted(number, "%(n)s finding assigned.", "%(n)s findings assigned."),
    lambda number: counted(number, "%(n)s more couldn’t be assigned.", "%(n)s more couldn’t be assigned."),
)


def _decide_all(request: HttpRequest, numbers: Sequence[int], decide: Callable[[HttpRequest, int], None]) -> None:
    """Raises InvalidInput at the first, since that is about what was asked for and the same for all."""
    done, left = 0, []
    for number in numbers:
        try:
            decide(request, number)
            done += 1
        except (Conflict, NotFound, Forbidden) as error:
            left.append(error.message)
    one_by_one = _ACKNOWLEDGED if decide is _acknowledge else _ASSIGNED
    if done:
        messages.success(request, one_by_one[0](done))
    for sentence in left[:3]:
        messages.warning(request, sentence)
    if len(left) > 3:
        messages.warning(request, one_by_one[1](len(left) - 3))


def _back(request: HttpRequest) -> str:
    """The list as it was, if the form says so and it is a page of this site's findings."""
    back, base = request.POST.get("next", ""), reverse("ui:findings")
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.partition("?")[0] == base
    return back if is_ours else base


@require_http_methods(["GET", "HEAD", "POST"])
def mute_list(request: HttpRequest) -> HttpResponse:
    """The mutes and the form of a new one, which says what it would cover; sent, it mutes."""
    problem = None
    if request.method == "POST":
        try:
            services.mute(
                registry=given_text(request.POST, "registry"),
                rule=given_text(request.POST, "rule"),
                subject=given_text(request.POST, "subject"),
                location=given_text(request.POST, "location"),
                reason=given_text(request.POST, "reason"),
                until=end_of_day(request.POST.get("until", "")),
                by=page_actor(request),
            )
        except Forbidden:
            raise
        except SchemadeskError as error:
            problem = error
        else:
            messages.success(
                request, gettext("Findings muted. They are kept and counted, but hidden from lists of open findings.")
            )
            return redirect("ui:mutes")
    page = mutes.mute_page(request, problem)
    return render(request, "drift/mutes.html", {"page": page}, status=422 if problem else 200)


@require_POST
def mute_end(request: HttpRequest, mute_id: int) -> HttpResponse:
    """End a mute."""
    services.unmute(mute_id=mute_id, by=page_actor(request))
    messages.success(request, gettext("Mute removed. Its findings are shown again."))
    return redirect("ui:mutes")
