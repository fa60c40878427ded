"""Views of environments: the board, an environment with its rules and freezes, and unapproved versions; their URLs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.components.badges import BreakGlassState, EnvironmentChangeState
from dashboard.components.forms import ServiceForm, ServiceFormView, forms_by_name
from dashboard.components.frame import make_frame, page_actor, render_page
from dashboard.components.links import crumb
from dashboard.components.time_travel import travels
from dashboard.components.widgets import Frame, Problem, Section
from dashboard.environments import forms
from dashboard.environments.board import board as board_page
from dashboard.environments.forms import MANAGE, SHOWN, LooseningForm, RulesForm
from dashboard.environments.unapproved_versions import unapproved_versions_page
from dashboard.promotions.request_list import at_utc
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, may, refusal
from registry.errors import SecondPersonRequired
from registry.promotions import selectors
from registry.promotions.environments.change_requests import decision_refusal
from registry.promotions.environments.selectors import EnvironmentChangeInfo, environment_changes
from registry.promotions.environments.services import confirmer_refusal
from registry.promotions.models import EnvironmentChange
from registry.promotions.reviews.reviewers import shortages
from registry.promotions.selectors import BreakGlassInfo, EnvironmentInfo
from registry.subjects.usage.clients import CHANGE

#: changes on the page; the API lists a hundred
LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakGlassRow:
    """A use of break-glass, its end, and why the reader may not confirm it ("" if they may)."""

    info: BreakGlassInfo
    state: BreakGlassState
    until: str
    confirm_refused: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A change that loosens the environment, and why the reader may not decide on it or withdraw it, or ""."""

    info: EnvironmentChangeInfo
    state: EnvironmentChangeState
    decide_refused: str
    withdraw_refused: str

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision."""
        return self.info.state == EnvironmentChange.OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPage:
    """An environment with the forms that change it; `refused` says why the reader may not ("" if they may).

    `number` is its position among `count` environments, `forms` are by class name, and `loosening` requests another
    person's approval for a refused change. `shortages` are the approvals that too few people can give.
    """

    frame: Frame
    info: EnvironmentInfo
    number: int
    count: int
    refused: str
    open_refused: str
    forms: Mapping[str, ServiceForm]
    break_glass: tuple[BreakGlassRow, ...] = ()
    changes: tuple[ChangeRow, ...] = ()
    loosening: LooseningForm | None = None
    loosening_sentence: str = ""
    shortages: tuple[str, ...] = ()
    problem: Problem | None = None


def environment_page(
    request: HttpRequest,
    name: str,
    sent: ServiceForm | None = None,
    loosening: LooseningForm | None = None,
    loosening_sentence: str = "",
) -> EnvironmentPage:
    """Return the page; `sent` is a refused form, `loosening` a form for a second person. Raises RegistryNotFound."""
    info, actor = selectors.environment_info(name), page_actor(request)
    order = selectors.list_environments()
    refused = refusal(actor, MANAGE, registry=info.name)
    history = [glass_row(glass, info, actor) for glass in selectors.break_glass_history(info.name)]
    return EnvironmentPage(
        frame=make_frame(
            request,
            title=info.name,
            section=Section.ENVIRONMENTS,
            registry=info.name,
            crumbs=(crumb(gettext("Environments"), "environments"),),
            url_in=lambda registry: reverse("ui:environment", args=[registry]),
        ),
        info=info,
        number=order.index(info.name) + 1,
        count=len(order),
        refused=refused,
        open_refused=refused or _open_already(info, actor),
        forms=forms_by_name(SHOWN, sent) | ({} if isinstance(sent, RulesForm) else {"RulesForm": RulesForm.of(info)}),
        break_glass=tuple(history),
        changes=tuple(change_row(change, actor) for change in environment_changes(info.name, limit=LISTED)),
        loosening=loosening or (sent if isinstance(sent, LooseningForm) else None),
        loosening_sentence=loosening_sentence,
        shortages=shortages(info) if not actor.past else (),
        problem=sent.problem if sent else None,
    )


def _open_already(info: EnvironmentInfo, actor: Actor) -> str:
    for glass in info.break_glass:
        if glass.is_open and glass.opened_by_id == actor.user_id:
            return gettext("You have break-glass open until %(at_utc)s. Close it to give another reason.") % {
                "at_utc": at_utc(glass.ends_at)
            }
    return ""


def glass_row(glass: BreakGlassInfo, info: EnvironmentInfo, actor: Actor) -> BreakGlassRow:
    """Return the row of a use of break-glass."""
    return BreakGlassRow(
        info=glass,
        state=BreakGlassState.of(glass.state),
        until=_until(glass),
        confirm_refused=_confirm_refused(glass, info, actor) if glass.can_be_confirmed else "",
    )


def _until(glass: BreakGlassInfo) -> str:
    text = gettext("open until %(at_utc)s") if glass.is_open else gettext("ended at %(at_utc)s")
    until = text % {"at_utc": at_utc(glass.ends_at)}
    if glass.state not in ("open", "waiting"):
        return until
    return gettext("%(until)s; confirm by %(at)s") % {"until": until, "at": at_utc(glass.confirm_until)}


def _confirm_refused(glass: BreakGlassInfo, info: EnvironmentInfo, actor: Actor) -> str:
    if actor.past:
        return actor.past
    if actor.user_id == glass.opened_by_id:
        return gettext("You opened it, so another person must confirm it.")
    if not may(actor, MANAGE, registry=info.name):
        lacking = refusal(actor, "promotion.review", registry=info.name)
        if lacking:
            return lacking
    return confirmer_refusal(info.name, glass.opened_by_id, actor)


def change_row(change: EnvironmentChangeInfo, actor: Actor) -> ChangeRow:
    """Return the row of a change that loosens the environment."""
    is_own = actor.user_id == change.requested_by_id
    is_open = change.state == EnvironmentChange.OPEN
    decide_refused = decision_refusal(change.environment, change.requested_by_id, actor) if is_open else ""
    if change.is_outdated:
        decide_refused = gettext("%(outdated)s %(requester)s can withdraw it and request it again.") % {
            "outdated": change.outdated,
            "requester": change.requested_by,
        }
    return ChangeRow(
        info=change,
        state=EnvironmentChangeState.OUTDATED if change.is_outdated else EnvironmentChangeState.of(change.state),
        decide_refused=actor.past or decide_refused,
        withdraw_refused=actor.past or ("" if is_own else refusal(actor, MANAGE, registry=change.environment)),
    )


TEMPLATE: Final = "environments/environment.html"


@require_safe
@travels
def board(request: HttpRequest) -> HttpResponse:
    """Show subjects by environment; htmx gets only the list."""
    return render_page(request, "environments/board.html", board_page(request), {"list": "list"})


@require_safe
@travels
def environment(request: HttpRequest, registry: str) -> HttpResponse:
    """Show an environment."""
    require_extent(page_actor(request), "schema.read", registry=registry)
    return render(request, TEMPLATE, {"page": environment_page(request, registry)})


class EnvironmentFormView(ServiceFormView):
    """A form on the environment's page; loosening a closed environment opens the form that requests it."""

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the environment, or the numbered part of it in the URL."""
        numbers = {name: value for name, value in route.items() if name != "registry"}
        return numbers or {"environment": route["registry"]}

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form."""
        try:
            return super().post(request, **route)
        except SecondPersonRequired as error:
            return loosening_response(request, error)

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        require_extent(page_actor(self.request), "schema.read", registry=route["registry"])
        page = environment_page(self.request, route["registry"], form)
        return render(self.request, TEMPLATE, {"page": page}, status=422)

    def after(self, **route: Any) -> HttpResponse:
        """Redirect to the page."""
        return redirect("ui:environment", route["registry"])


def loosening_response(request: HttpRequest, error: SecondPersonRequired) -> HttpResponse:
    """Show the environment that the refused change would loosen, with the form that requests the change; status 409."""
    registry = str(error.details["environment"])
    require_extent(page_actor(request), "schema.read", registry=registry)
    page = environment_page(request, registry, None, LooseningForm.of(error), error.message)
    return render(request, TEMPLATE, {"page": page}, status=409)


@require_safe
@travels
def unapproved_versions(request: HttpRequest) -> HttpResponse:
    """Show unapproved versions; htmx gets only the list."""
    return render_page(
        request, "environments/unapproved_versions.html", unapproved_versions_page(request), {"list": "list"}
    )


#: path below the environment's URL, name, form
_FORMS: Final[tuple[tuple[str, str, type[ServiceForm]], ...]] = (
    ("change", "change", forms.RulesForm),
    ("changes", "changes", forms.LooseningForm),
    ("changes/<int:change_id>/approve", "change_approve", forms.ApproveChangeForm),
    ("changes/<int:change_id>/reject", "change_reject", forms.RejectChangeForm),
    ("changes/<int:change_id>/withdraw", "change_withdraw", forms.WithdrawChangeForm),
    ("rules", "rules", forms.ReviewRuleForm),
    ("rules/<int:rule_id>/remove", "rule_remove", forms.RemoveRuleForm),
    ("freezes", "freezes", forms.FreezeForm),
    ("freezes/<int:freeze_id>/remove", "freeze_remove", forms.RemoveFreezeForm),
    ("recurring-freezes", "recurring_freezes", forms.RecurringFreezeForm),
    ("recurring-freezes/<int:freeze_id>/remove", "recurring_freeze_remove", forms.RemoveRecurringFreezeForm),
    ("break-glass", "break_glass", forms.BreakGlassForm),
    ("break-glass/<int:break_glass_id>/close", "break_glass_close", forms.CloseBreakGlassForm),
    ("break-glass/<int:break_glass_id>/confirm", "break_glass_confirm", forms.ConfirmBreakGlassForm),
)
urlpatterns = [
    path("environments", board, name="environments"),
    path("environments/<segment:registry>", environment, name="environment"),
    *(
        path(
            f"environments/<segment:registry>/{route}",
            EnvironmentFormView.as_view(form_class=form, action=CHANGE if form is forms.LooseningForm else ""),
            name=f"environment_{name}",
        )
        for route, name, form in _FORMS
    ),
    path("unapproved-versions", unapproved_versions, name="unapproved_versions"),
]
