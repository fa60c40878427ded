"""Views of people, groups and owners, of API tokens, and of sign-in, with its URLs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from allauth.account import views as account_views
from allauth.account.views import LoginView, LogoutView
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.forms import ServiceForm, ServiceFormView, fill_choices
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import chosen_value
from dashboard.components.widgets import Frame, Problem, SearchBox
from dashboard.environments.views import loosening_response
from dashboard.people import oidc
from dashboard.people.forms import FORMS, MANAGE, AddPersonForm, TokenForm, people_forms
from registry.access.permission_filters import extent_of
from registry.access.roles import may, require, scope_warning
from registry.access.selectors import (
    GroupInfo,
    OwnershipInfo,
    PersonInfo,
    TokenInfo,
    list_groups,
    list_ownerships,
    list_people,
    list_tokens,
)
from registry.access.services import IssuedToken, end_sessions, revoke_token
from registry.access.tokens import refuse_stranger
from registry.errors import NotAllowed, SecondPersonRequired
from registry.promotions.reviews.linked_accounts import SamePersonInfo, same_person_statements
from registry.promotions.selectors import list_environments


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePage:
    """The page of people; `forms` are by `do`; `made` is the name and password of a new person, shown once."""

    frame: Frame
    search: SearchBox
    people: Sequence[PersonInfo]
    groups: Sequence[GroupInfo]
    owners: Sequence[OwnershipInfo]
    same: Sequence[SamePersonInfo]
    forms: Mapping[str, ServiceForm]
    made: tuple[str, str] | None = None
    problem: Problem | None = None


def people_page(
    request: HttpRequest,
    sent: ServiceForm | None = None,
    *,
    made: tuple[str, str] | None = None,
    problem: Problem | None = None,
) -> PeoplePage:
    """Return the page; `sent` is a refused form."""
    query = request.GET.get("q", "").strip()
    people, groups = list_people(text=query), list_groups()
    active, names = [info.username for info in people if info.active], [info.name for info in groups]
    return PeoplePage(
        frame=make_frame(request, title=gettext("People and groups")),
        search=SearchBox(
            url=reverse("ui:people"),
            query=query,
            label=gettext("Search people"),
            placeholder=gettext("name or email address"),
        ),
        people=people,
        groups=groups,
        owners=list_ownerships(),
        same=same_person_statements(),
        forms=people_forms(active, names, list_environments(), sent),
        made=made,
        problem=sent.problem if sent else problem,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """Tokens, and the form of a new one, `made` once; `other_url` switches between the reader's and all tokens."""

    frame: Frame
    tokens: Sequence[TokenInfo]
    form: TokenForm
    everybody: bool
    other_url: str
    made: IssuedToken | None = None


def token_page(request: HttpRequest, form: TokenForm | None = None, *, made: IssuedToken | None = None) -> TokenPage:
    """Return the reader's tokens, or all for admins on request; `form` is a refused form."""
    actor = page_actor(request)
    manages = may(actor, "token.manage")
    everybody = manages and chosen_value(request.GET, "of", ["everybody"]) == "everybody"
    base, form = reverse("ui:tokens"), form or TokenForm()
    readable = extent_of(actor, "schema.read")
    fill_choices([form], registry=[name for name in list_environments() if readable.has(name)])
    return TokenPage(
        frame=make_frame(request, title=gettext("API tokens")),
        tokens=list_tokens(user_id=None if everybody else actor.user_id),
        form=form,
        everybody=everybody,
        other_url=(base if everybody else f"{base}?of=everybody") if manages else "",
        made=made,
    )


PEOPLE: Final = "people/people.html"
TOKENS: Final = "tokens/tokens.html"


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Show people with their roles, groups and owners."""
    require(page_actor(request), MANAGE)
    return render(request, PEOPLE, {"page": people_page(request)})


@method_decorator(never_cache, "dispatch")
class PeopleFormView(ServiceFormView):
    """A form on the people page, identified by `do`; a new person's password is shown once."""

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form."""
        require(page_actor(request), MANAGE)
        kind = FORMS.get(request.POST.get("do", ""))
        if kind is None:
            page = people_page(request, problem=Problem(what=gettext("Unknown change.")))
            return render(request, PEOPLE, {"page": page}, status=422)
        self.form_class = kind
        try:
            return super().post(request)
        except SecondPersonRequired as error:
            return loosening_response(request, error)

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        return render(self.request, PEOPLE, {"page": people_page(self.request, form)}, status=422)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the page, with a warning if a scope matches nothing yet."""
        sent = form.cleaned_data
        if isinstance(form, AddPersonForm):
            page = people_page(self.request, made=(sent["username"], form.result))
            return render(self.request, PEOPLE, {"page": page}, status=201)
        messages.success(self.request, form.success)
        if "subject_pattern" in sent:
            warning = scope_warning(sent["registry"], sent["subject_pattern"], page_actor(self.request))
            if warning:
                messages.warning(self.request, warning)
        return redirect("ui:people")


@method_decorator(never_cache, "dispatch")
class TokenFormView(ServiceFormView):
    """The list and the form; on POST, the page shows the new token once."""

    http_method_names = ["get", "head", "post"]
    form_class = TokenForm

    def dispatch(self, request: HttpRequest, *args: Any, **route: Any) -> HttpResponseBase:
        """Require a signed-in person."""
        refuse_stranger(page_actor(request))
        return super().dispatch(request, *args, **route)

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the page."""
        return render(request, TOKENS, {"page": token_page(request)})

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the token's owner."""
        return {"username": page_actor(self.request).name}

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        return render(self.request, TOKENS, {"page": token_page(self.request, cast(TokenForm, form))}, status=422)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the token."""
        return render(self.request, TOKENS, {"page": token_page(self.request, made=form.result)}, status=201)


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke a token."""
    revoke_token(token_id=token_id, by=page_actor(request))
    messages.success(request, gettext("Token revoked. Calls with it are now refused."))
    return redirect("ui:tokens")


class SignIn(LoginView):  # type: ignore[misc]  # allauth has no types
    """allauth's sign-in page with the issuer's button; it accepts no password if the issuer is required."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign in by password. Raises NotAllowed if that is disabled."""
        if settings.OIDC_REQUIRED:
            raise NotAllowed(gettext("Passwords are turned off. Sign in with %(name)s.") % {"name": settings.OIDC_NAME})
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return the context of allauth's page, with the issuer."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        issuer = settings.OIDC_NAME if settings.OIDC_ISSUER else ""
        return {**context, "issuer_name": issuer, "issuer_required": settings.OIDC_REQUIRED}


class SignOut(LogoutView):  # type: ignore[misc]  # allauth has no types
    """allauth's sign-out page, which can end all sessions of the person, and clears what the browser keeps."""

    def post(self, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign out."""
        actor = page_actor(self.request)
        if "everywhere" in self.request.POST and actor.user_id is not None:
            end_sessions(username=actor.name, by=actor)
        response: HttpResponse = super().post(*args, **kwargs)
        response["Clear-Site-Data"] = '"cache", "storage"'
        return response


login = sensitive_post_parameters("password")(SignIn.as_view())


urlpatterns = [
    path("login/", login, name="account_login"),
    path("oidc/login/", oidc.login, name="oidc_login"),
    path("oidc/callback/", oidc.callback, name="oidc_callback"),
    path("logout/", SignOut.as_view(), name="account_logout"),
    path("password/change/", account_views.password_change, name="account_change_password"),
    # allauth's templates and redirects need these names; the adapter disables sign-up, and no page links to the rest
    path("signup/", account_views.signup, name="account_signup"),
    path("inactive/", account_views.account_inactive, name="account_inactive"),
    path("reauthenticate/", account_views.reauthenticate, name="account_reauthenticate"),
    path("password/reset/", account_views.signup, name="account_reset_password"),
]
