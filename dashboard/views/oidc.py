"""Signing in through the issuer: there and back."""

from __future__ import annotations

import logging

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.account.internal.decorators import login_not_required
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.utils import get_request_param
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.oidc import FAULTS, IssuerAdapter, provider_id

logger = logging.getLogger(__name__)


@never_cache
@login_not_required  # type: ignore[untyped-decorator]  # allauth has no types
@require_POST
def login(request: HttpRequest) -> HttpResponse:
    """Go to the issuer.

    By a page that leads there, not by a redirect: the policy of our pages lets no form end on another host. What the
    request carries besides the way back is not passed on.
    """
    if not settings.OIDC_ISSUER:
        raise Http404
    following = get_request_param(request, "next") or ""
    back = following if following and get_account_adapter(request).is_safe_url(following) else None
    try:
        provider = get_adapter(request).get_provider(request, provider_id())
        answer = provider.redirect(request, process=AuthProcess.LOGIN, next_url=back)
    except FAULTS as error:
        logger.warning("sign-in through the issuer can't begin: %s", str(error)[:500])
        return render(request, "account/oidc_failed.html", status=503)
    if "Location" not in answer:
        return HttpResponse(answer.content, status=answer.status_code)
    return render(request, "account/oidc_leave.html", {"address": answer["Location"], "name": settings.OIDC_NAME})


@never_cache
@login_not_required  # type: ignore[untyped-decorator]  # allauth has no types
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Come back from the issuer."""
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        answer: HttpResponse = OAuth2CallbackView.adapter_view(IssuerAdapter(request, provider_id()))(request)
        return answer
    except FAULTS as error:
        logger.warning("sign-in through the issuer failed: %s", str(error)[:500])
        return render(request, "account/oidc_failed.html", status=403)
