"""The page that signs in."""

from __future__ import annotations

from typing import Any

from allauth.account.views import LoginView
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters

from registry.errors import NotAllowed


class SignIn(LoginView):  # type: ignore[misc]  # allauth has no types
    """allauth's page, with the issuer's button; where the issuer is required, it takes no password."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign in by password. Raises NotAllowed where that is off."""
        if settings.OIDC_REQUIRED:
            raise NotAllowed(
                gettext("Passwords are off here; sign in through %(name)s.") % {"name": settings.OIDC_NAME}
            )
        answer: HttpResponse = super().post(request, *args, **kwargs)
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the template needs besides allauth's own."""
        found: dict[str, Any] = super().get_context_data(**kwargs)
        issuer = settings.OIDC_NAME if settings.OIDC_ISSUER else ""
        return {**found, "issuer_name": issuer, "issuer_required": settings.OIDC_REQUIRED}


login = sensitive_post_parameters("password")(SignIn.as_view())
