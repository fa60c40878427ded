"""Pages of environments: the board, and one environment with its rules, freezes and break-glass."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_time
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.pages.board import board as board_page
from dashboard.pages.environment_changes import loosening_of, loosening_values
from dashboard.pages.environments import MANAGE, environment_page, switched
from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from dashboard.travel import travels
from dashboard.views.parts import render_page
from dashboard.views.promotions import utc_moment
from registry.access.extent import require_extent
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput, SecondPersonRequired
from registry.promotions import services
from registry.promotions.models import RecurringFreeze


@require_safe
@travels
def board(request: HttpRequest) -> HttpResponse:
    """Subjects by environment; htmx gets the list alone."""
    return render_page(request, "environments/board.html", board_page(request), {"list": "list"})


@require_safe
@travels
def environment(request: HttpRequest, registry: str) -> HttpResponse:
    """One environment."""
    require_extent(page_actor(request), "schema.read", registry=registry)
    return render(request, "environments/environment.html", {"page": environment_page(request, registry)})


def _act(request: HttpRequest, registry: str, action: Callable[[], object], said: str) -> HttpResponse:
    """Do it and show the environment again, or the page with what was wrong."""
    try:
        action()
    except SecondPersonRequired as error:
        require_extent(page_actor(request), "schema.read", registry=registry)
        page = environment_page(request, registry, loosening=loosening_of(error, registry))
        return render(request, "environments/environment.html", {"page": page}, status=409)
    except (Conflict, InvalidInput) as error:
        require_extent(page_actor(request), "schema.read", registry=registry)
        page = environment_page(request, registry, error)
        return render(request, "environments/environment.html", {"page": page}, status=422)
    messages.success(request, said)
    return redirect("ui:environment", registry)


@require_POST
def change(request: HttpRequest, registry: str) -> HttpResponse:
    """Set the rules that every request comes under."""

    require(page_actor(request), MANAGE, registry=registry)

    def run() -> None:
        services.change_environment(
            name=registry,
            by=page_actor(request),
            reviews_needed=_number(request, "reviews_needed"),
            max_evidence_hours=_number(request, "max_evidence_hours")
            if given_text(request.POST, "max_evidence_hours")
            else 0,
            **switched(request),
        )

    return _act(request, registry, run, gettext("The rules are changed."))


@require_POST
def change_request(request: HttpRequest, registry: str) -> HttpResponse:
    """Ask another person for a change that loosens a closed environment."""
    actor = page_actor(request)
    require(actor, MANAGE, registry=registry)

    def run() -> None:
        services.request_environment_change(
            environment=registry,
            action=given_text(request.POST, "action"),
            values=loosening_values(given_text(request.POST, "values")),
            reason=given_text(request.POST, "why_loosen"),
            by=actor,
        )

    return _act(request, registry, run, gettext("Another person who may review here is asked to approve it."))


@require_POST
def change_approve(request: HttpRequest, registry: str, change_id: int) -> HttpResponse:
    """Approve a change as a second person, which carries it out."""
    actor, comment = page_actor(request), given_text(request.POST, "comment")
    return _act(
        request,
        registry,
        lambda: services.approve_environment_change(change_id=change_id, by=actor, comment=comment),
        gettext("Approved: the rules are changed."),
    )


@require_POST
def change_reject(request: HttpRequest, registry: str, change_id: int) -> HttpResponse:
    """Turn a change down as a second person."""
    actor, comment = page_actor(request), given_text(request.POST, "comment")
    return _act(
        request,
        registry,
        lambda: services.reject_environment_change(change_id=change_id, by=actor, comment=comment),
        gettext("Turned down: the rules stay as they are."),
    )


@require_POST
def change_withdraw(request: HttpRequest, registry: str, change_id: int) -> HttpResponse:
    """Take a change back."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.withdraw_environment_change(change_id=change_id, by=actor),
        gettext("Withdrawn: the rules stay as they are."),
    )


@require_POST
def rules(request: HttpRequest, registry: str) -> HttpResponse:
    """Ask for approvals of the owners, a role or a group."""

    require(page_actor(request), MANAGE, registry=registry)

    def run() -> None:
        services.add_review_rule(
            environment=registry,
            by=page_actor(request),
            subject_pattern=given_text(request.POST, "subject_pattern"),
            verdict=given_text(request.POST, "verdict"),
            reviewers=given_text(request.POST, "reviewers"),
            name=given_text(request.POST, "name"),
            count=_number(request, "count"),
        )

    return _act(request, registry, run, gettext("The rule holds from now on."))


@require_POST
def rule_remove(request: HttpRequest, registry: str, rule_id: int) -> HttpResponse:
    """Ask for it no longer."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.remove_review_rule(rule_id=rule_id, by=actor),
        gettext("The rule holds no more."),
    )


@require_POST
def freezes(request: HttpRequest, registry: str) -> HttpResponse:
    """Let nothing be applied for a time, which is UTC."""

    require(page_actor(request), MANAGE, registry=registry)

    def run() -> None:
        services.add_freeze(
            environment=registry,
            by=page_actor(request),
            starts_at=utc_moment(given_text(request.POST, "starts_at"), "starts_at"),
            ends_at=utc_moment(given_text(request.POST, "ends_at"), "ends_at"),
            reason=given_text(request.POST, "why_frozen"),
        )

    return _act(request, registry, run, gettext("The freeze window is set."))


@require_POST
def freeze_remove(request: HttpRequest, registry: str, freeze_id: int) -> HttpResponse:
    """End a freeze, or take it back."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.remove_freeze(freeze_id=freeze_id, by=actor),
        gettext("The freeze is ended."),
    )


@require_POST
def recurring_freezes(request: HttpRequest, registry: str) -> HttpResponse:
    """Let nothing be applied at times that come again, by the clocks of a zone."""

    require(page_actor(request), MANAGE, registry=registry)

    def run() -> None:
        kind = given_text(request.POST, "recurs")
        rule: dict[str, int] = (
            {"last_days": _number(request, "last_days")}
            if kind == RecurringFreeze.MONTHLY
            else {field: _number(request, field) for field in ("from_day", "to_day")}
        )
        services.add_recurring_freeze(
            environment=registry,
            by=page_actor(request),
            kind=kind,
            zone=given_text(request.POST, "zone"),
            from_time=_clock(request, "from_time"),
            to_time=_clock(request, "to_time"),
            reason=given_text(request.POST, "why_recurring"),
            **rule,
        )

    return _act(request, registry, run, gettext("The freeze is set, and comes again."))


@require_POST
def recurring_freeze_remove(request: HttpRequest, registry: str, freeze_id: int) -> HttpResponse:
    """Have it come no more."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.remove_recurring_freeze(freeze_id=freeze_id, by=actor),
        gettext("The freeze comes no more."),
    )


@require_POST
def break_glass(request: HttpRequest, registry: str) -> HttpResponse:
    """Let the reader change a closed environment for a time."""

    require(page_actor(request), MANAGE, registry=registry)

    def run() -> None:
        services.open_break_glass(
            environment=registry,
            by=page_actor(request),
            reason=given_text(request.POST, "glass_reason"),
            minutes=_number(request, "minutes"),
        )

    return _act(request, registry, run, gettext("The glass is broken: what you change here now is counted and told."))


@require_POST
def break_glass_close(request: HttpRequest, registry: str, break_glass_id: int) -> HttpResponse:
    """End it before its time."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.close_break_glass(break_glass_id=break_glass_id, by=actor),
        gettext("Closed. Somebody else has to confirm it within a day of its opening."),
    )


@require_POST
def break_glass_confirm(request: HttpRequest, registry: str, break_glass_id: int) -> HttpResponse:
    """A second person says that it was right."""
    actor, comment = page_actor(request), given_text(request.POST, "comment")
    return _act(
        request,
        registry,
        lambda: services.confirm_break_glass(break_glass_id=break_glass_id, by=actor, comment=comment),
        gettext("Confirmed."),
    )


def _clock(request: HttpRequest, field: str) -> time:
    text = given_text(request.POST, field)
    try:
        found = parse_time(text)
    except ValueError:
        found = None
    if found is None:
        raise InvalidInput(
            gettext("%(field)s takes a time like 16:00, not %(text)s.") % {"field": field, "text": repr(text[:20])},
            field=field,
        )
    return found


def _number(request: HttpRequest, field: str) -> int:
    text = given_text(request.POST, field)
    found = whole_number(text, digits=4)
    if found is None:
        raise InvalidInput(
            gettext("%(field)s takes a whole number, not %(text)s.") % {"field": field, "text": repr(text[:20])},
            field=field,
        )
    return found
