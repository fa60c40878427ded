"""Pages of environments: the board, one environment with its rules and freezes, and unapproved versions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_time
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.frame import page_actor, render_page
from dashboard.components.links import whole_number
from dashboard.components.time_travel import travels
from dashboard.environments.board import board as board_page
from dashboard.environments.change_requests import loosening_of, loosening_values
from dashboard.environments.page import MANAGE, environment_page, switched
from dashboard.environments.unapproved_versions import unapproved_versions_page
from dashboard.promotions.views import utc_moment
from dashboard.sources.labels import given_text
from registry.access.permission_filters import require_extent
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput, SecondPersonRequired
from registry.promotions import services
from registry.promotions.models import RecurringFreeze


@require_safe
@travels
def board(request: HttpRequest) -> HttpResponse:
    """Subjects by environment; htmx gets only the list."""
    return render_page(request, "environments/board.html", board_page(request), {"list": "list"})


@require_safe
@travels
def environment(request: HttpRequest, registry: str) -> HttpResponse:
    """One environment."""
    require_extent(page_actor(request), "schema.read", registry=registry)
    return render(request, "environments/environment.html", {"page": environment_page(request, registry)})


def _act(request: HttpRequest, registry: str, action: Callable[[], object], message: str) -> HttpResponse:
    """Run the action and show the environment again, with the error if there is one."""
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
    messages.success(request, message)
    return redirect("ui:environment", registry)


@require_POST
def change(request: HttpRequest, registry: str) -> HttpResponse:
    """Change the rules that apply to every request."""

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

    return _act(request, registry, run, gettext("Rules saved."))


@require_POST
def change_request(request: HttpRequest, registry: str) -> HttpResponse:
    """Request another person's approval for a change that loosens a closed environment."""
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

    return _act(
        request,
        registry,
        run,
        gettext("Approval requested. Another reviewer of this environment must approve the change."),
    )


@require_POST
def change_approve(request: HttpRequest, registry: str, change_id: int) -> HttpResponse:
    """Approve a change as a second person, and make it."""
    actor, comment = page_actor(request), given_text(request.POST, "comment")
    return _act(
        request,
        registry,
        lambda: services.approve_environment_change(change_id=change_id, by=actor, comment=comment),
        gettext("Change approved. The new rules are in force."),
    )


@require_POST
def change_reject(request: HttpRequest, registry: str, change_id: int) -> HttpResponse:
    """Reject a change as a second person."""
    actor, comment = page_actor(request), given_text(request.POST, "comment")
    return _act(
        request,
        registry,
        lambda: services.reject_environment_change(change_id=change_id, by=actor, comment=comment),
        gettext("Change rejected. The rules stay the same."),
    )


@require_POST
def change_withdraw(request: HttpRequest, registry: str, change_id: int) -> HttpResponse:
    """Withdraw a change."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.withdraw_environment_change(change_id=change_id, by=actor),
        gettext("Change withdrawn. The rules stay the same."),
    )


@require_POST
def rules(request: HttpRequest, registry: str) -> HttpResponse:
    """Add a review rule."""

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

    return _act(request, registry, run, gettext("Rule added."))


@require_POST
def rule_remove(request: HttpRequest, registry: str, rule_id: int) -> HttpResponse:
    """Remove a review rule."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.remove_review_rule(rule_id=rule_id, by=actor),
        gettext("Rule removed."),
    )


@require_POST
def freezes(request: HttpRequest, registry: str) -> HttpResponse:
    """Add a freeze, in UTC."""

    require(page_actor(request), MANAGE, registry=registry)

    def run() -> None:
        services.add_freeze(
            environment=registry,
            by=page_actor(request),
            starts_at=utc_moment(given_text(request.POST, "starts_at"), "starts_at"),
            ends_at=utc_moment(given_text(request.POST, "ends_at"), "ends_at"),
            reason=given_text(request.POST, "why_frozen"),
        )

    return _act(request, registry, run, gettext("Freeze window added."))


@require_POST
def freeze_remove(request: HttpRequest, registry: str, freeze_id: int) -> HttpResponse:
    """End or cancel a freeze."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.remove_freeze(freeze_id=freeze_id, by=actor),
        gettext("Freeze window removed."),
    )


@require_POST
def recurring_freezes(request: HttpRequest, registry: str) -> HttpResponse:
    """Add a recurring freeze, by the clocks of a time zone."""

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

    return _act(request, registry, run, gettext("Recurring freeze added."))


@require_POST
def recurring_freeze_remove(request: HttpRequest, registry: str, freeze_id: int) -> HttpResponse:
    """Remove a recurring freeze."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.remove_recurring_freeze(freeze_id=freeze_id, by=actor),
        gettext("Recurring freeze removed."),
    )


@require_POST
def break_glass(request: HttpRequest, registry: str) -> HttpResponse:
    """Open break-glass for the reader."""

    require(page_actor(request), MANAGE, registry=registry)

    def run() -> None:
        services.open_break_glass(
            environment=registry,
            by=page_actor(request),
            reason=given_text(request.POST, "glass_reason"),
            minutes=_number(request, "minutes"),
        )

    return _act(request, registry, run, gettext("Break-glass is open. Your changes here are counted and reported."))


@require_POST
def break_glass_close(request: HttpRequest, registry: str, break_glass_id: int) -> HttpResponse:
    """Close break-glass early."""
    actor = page_actor(request)
    return _act(
        request,
        registry,
        lambda: services.close_break_glass(break_glass_id=break_glass_id, by=actor),
        gettext("Break-glass closed. Another person must confirm it within a day of its opening."),
    )


@require_POST
def break_glass_confirm(request: HttpRequest, registry: str, break_glass_id: int) -> HttpResponse:
    """Confirm break-glass as a second person."""
    actor, comment = page_actor(request), given_text(request.POST, "comment")
    return _act(
        request,
        registry,
        lambda: services.confirm_break_glass(break_glass_id=break_glass_id, by=actor, comment=comment),
        gettext("Break-glass confirmed."),
    )


def _clock(request: HttpRequest, field: str) -> time:
    text = given_text(request.POST, field)
    try:
        value = parse_time(text)
    except ValueError:
        value = None
    if value is None:
        raise InvalidInput(
            gettext("%(field)s must be a time such as 16:00, not %(text)s.")
            % {"field": field, "text": repr(text[:20])},
            field=field,
        )
    return value


def _number(request: HttpRequest, field: str) -> int:
    text = given_text(request.POST, field)
    value = whole_number(text, digits=4)
    if value is None:
        raise InvalidInput(
            gettext("%(field)s must be a whole number, not %(text)s.") % {"field": field, "text": repr(text[:20])},
            field=field,
        )
    return value


@require_safe
@travels
def ghosts(request: HttpRequest) -> HttpResponse:
    """Unapproved versions; htmx gets only the list."""
    return render_page(request, "promotions/ghosts.html", unapproved_versions_page(request), {"list": "list"})
