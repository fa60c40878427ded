"""Pages of environments: the board, one environment with its rules and freezes, and unapproved versions."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from dashboard.components.forms import ServiceForm, ServiceFormView
from dashboard.components.frame import page_actor, render_page
from dashboard.components.time_travel import travels
from dashboard.environments.board import board as board_page
from dashboard.environments.forms import LooseningForm
from dashboard.environments.page import environment_page
from dashboard.environments.unapproved_versions import unapproved_versions_page
from registry.access.permission_filters import require_extent
from registry.errors import SecondPersonRequired

TEMPLATE: Final = "environments/environment.html"


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
    return render(request, TEMPLATE, {"page": environment_page(request, registry)})


class EnvironmentFormView(ServiceFormView):
    """A form of the environment's page. A change that loosens a closed environment leads to the form that requests it."""

    def target(self, **route: Any) -> dict[str, Any]:
        """The environment, or the part of it that the address numbers."""
        numbers = {name: value for name, value in route.items() if name != "registry"}
        return numbers or {"environment": route["registry"]}

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form."""
        try:
            return super().post(request, **route)
        except SecondPersonRequired as error:
            return loosening_response(request, error)

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """The page with the form's errors."""
        require_extent(page_actor(self.request), "schema.read", registry=route["registry"])
        page = environment_page(self.request, route["registry"], form)
        return render(self.request, TEMPLATE, {"page": page}, status=422)

    def after(self, **route: Any) -> HttpResponse:
        """The page again."""
        return redirect("ui:environment", route["registry"])


def loosening_response(request: HttpRequest, error: SecondPersonRequired) -> HttpResponse:
    """The page of the environment that the refused change would loosen, with the form that requests it; 409."""
    registry = str(error.details["environment"])
    require_extent(page_actor(request), "schema.read", registry=registry)
    page = environment_page(request, registry, None, LooseningForm.of(error), error.message)
    return render(request, TEMPLATE, {"page": page}, status=409)


@require_safe
@travels
def ghosts(request: HttpRequest) -> HttpResponse:
    """Unapproved versions; htmx gets only the list."""
    return render_page(request, "promotions/ghosts.html", unapproved_versions_page(request), {"list": "list"})
