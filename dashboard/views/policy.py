"""The policy of a registry: the page, its forms, and a level that is tried."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.pages.frame import page_actor
from dashboard.pages.policy import asked_scope, place_words, policy_page
from dashboard.pages.sources_words import given_text
from dashboard.pages.what_if import what_if_page
from dashboard.pages.what_if_form import scoped_url
from dashboard.travel import travels
from dashboard.views.parts import render_page
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput, SubjectConfigNotFound, SubjectModeNotFound
from registry.subjects.names import SubjectName
from registry.subjects.services import delete_config, delete_mode, set_config, set_mode

MODE: Final = "mode"
#: what a form of settings may carry
_SETTINGS: Final = ("level", "normalize", "profile", "policy", "alias")
_SWITCH: Final = {"true": True, "false": False}


@require_safe
@travels
def policy(request: HttpRequest, registry: str) -> HttpResponse:
    """The tree of settings, and with `change` the forms of one place."""
    require(page_actor(request), "schema.read", registry=registry)
    return render(request, "policy/policy.html", {"page": policy_page(request, registry)})


@require_safe
def what_if(request: HttpRequest, registry: str) -> HttpResponse:
    """A level tried on the past; htmx gets the outcome alone."""
    scope = asked_scope(request.GET)
    name = scope.qualified if scope and scope.subject else ""
    require(page_actor(request), "schema.read", registry=registry, subject=name)
    page = what_if_page(request, registry, scope)
    answer = render_page(request, "policy/what_if.html", page, {"what-if": "outcome"})
    answer.status_code = 422 if page.error else 200
    return answer


@require_POST
def change(request: HttpRequest, registry: str) -> HttpResponse:
    """Set what the form names: settings, where an empty one is inherited again, or the mode."""
    scope, part = _asked(request, registry)
    given: dict[str, Any] = {name: given_text(request.POST, name) for name in _SETTINGS if name in request.POST}
    where: dict[str, Any] = {"registry": registry, "subject": scope, "by": page_actor(request)}
    mode = given_text(request.POST, "mode")
    try:
        if part == MODE and mode:
            set_mode(**where, mode=mode)
        elif part == MODE:
            delete_mode(**where)
        else:
            if given.get("normalize"):
                given["normalize"] = _SWITCH.get(given["normalize"], given["normalize"])
            unset = [name for name, value in given.items() if value == ""]
            set_config(**where, unset=unset, **{name: value for name, value in given.items() if value != ""})
        messages.success(
            request,
            gettext("Done: this counts for %(place_words)s now.") % {"place_words": place_words(registry, scope)},
        )
    except (Conflict, InvalidInput, SubjectConfigNotFound, SubjectModeNotFound) as error:
        messages.error(request, error.message)
    return redirect(_back(registry, scope))


@require_POST
def reset(request: HttpRequest, registry: str) -> HttpResponse:
    """Take back all that a place sets itself: its settings, or its mode."""
    scope, part = _asked(request, registry)
    try:
        undo = delete_mode if part == MODE else delete_config
        undo(registry=registry, subject=scope, by=page_actor(request))
        messages.success(
            request,
            gettext("Taken back: %(place_words)s inherits again.") % {"place_words": place_words(registry, scope)},
        )
    except (Conflict, InvalidInput, SubjectConfigNotFound, SubjectModeNotFound) as error:
        messages.error(request, error.message)
    return redirect(_back(registry, scope))


def _asked(request: HttpRequest, registry: str) -> tuple[SubjectName | None, str]:
    """The place and the part that a form names. Raises NotSignedIn, NotAllowed, InvalidName."""
    scope, part = asked_scope(request.POST), given_text(request.POST, "part")
    action = "mode.change" if part == MODE else "config.change"
    require(page_actor(request), action, registry=registry, subject=scope.qualified if scope else "")
    return scope, part


def _back(registry: str, scope: SubjectName | None) -> str:
    return f"{scoped_url('ui:policy', registry, scope, change='1')}#change"
