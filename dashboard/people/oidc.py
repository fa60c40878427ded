"""Sign-in through an OpenID Connect issuer, with allauth over the product's own HTTP client; and its views."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import requests
from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.account.internal.decorators import login_not_required
from allauth.account.utils import user_username
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.utils import get_request_param
from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from registry.access.account_names import issued_email
from registry.access.egress import parse_connection
from registry.access.http_client import HttpLimits, OutgoingClient, find_secret, refuse_other_host
from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services import set_mapped_groups
from registry.audit.context import record
from registry.errors import SchemadeskError

LIMITS = HttpLimits(connect_seconds=5, read_seconds=10, total_seconds=15, max_bytes=1024 * 1024)
#: headers that the client sets itself
OWN_HEADERS = frozenset({"host", "user-agent", "accept-encoding", "connection", "content-length"})


class PolicedTransport(BaseAdapter):
    """Sends requests with `OutgoingClient`, which applies the egress policy and follows no redirects."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Return the response. Raises requests.ConnectionError with the reason for any failure."""
        url = request.url or ""
        parts = urlsplit(url)
        headers = {name: str(value) for name, value in request.headers.items() if name.lower() not in OWN_HEADERS}
        body = request.body.encode() if isinstance(request.body, str) else request.body
        if not isinstance(body, bytes | None):
            raise requests.RequestException("a body that comes in pieces is not sent", request=request)
        try:
            connection = parse_connection(f"{parts.scheme}://{parts.netloc}")
            with OutgoingClient(connection, limits=LIMITS) as client:
                received = client.call(request.method or "GET", request.path_url, body=body, headers=headers)
        except SchemadeskError as error:
            raise requests.ConnectionError(error.message, request=request) from error
        response = requests.Response()
        response.status_code = received.status
        response.headers = CaseInsensitiveDict(received.headers)
        response.raw = BytesIO(received.body)
        response.url = url
        response.request = request
        return response

    def close(self) -> None:
        """Do nothing: each request closes its connection."""


logger = logging.getLogger(__name__)
SUBJECT_LENGTH = 191  # the limit of allauth's column; the standard allows 255 ASCII characters


def provider_id() -> str:
    """Return the provider id of the issuer; another issuer has another, because its subjects are other people."""
    return f"oidc-{hashlib.sha256(settings.OIDC_ISSUER.encode()).hexdigest()[:24]}"


class IssuerAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """The calls of one sign-in; checks the issuer's responses against the configuration."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """The issuer's OpenID configuration. Raises OAuth2Error if it belongs to another issuer."""
        config: dict[str, Any] = super().openid_config
        if config.get("issuer") != settings.OIDC_ISSUER:
            raise OAuth2Error(f"The issuer calls itself {str(config.get('issuer'))[:200]!r}, not OIDC_ISSUER.")
        return config

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """Return the URL that the issuer redirects to."""
        return request.build_absolute_uri(reverse("oidc_callback"))

    def complete_login(self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any) -> SocialLogin:
        """Return the sign-in of the id token's subject, after checking the signature. Raises OAuth2Error."""
        text = kwargs["response"].get("id_token")
        if not text:
            raise OAuth2Error("The issuer gave no id token.")
        identity = jwtkit.verify_and_decode(
            credential=text,
            keys_url=self.openid_config["jwks_uri"],
            issuer=settings.OIDC_ISSUER,
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        subject = identity.get("sub")
        if not isinstance(subject, str) or not 1 <= len(subject) <= SUBJECT_LENGTH or not subject.isprintable():
            raise OAuth2Error("The id token has no subject that can be used.")
        check_strength(identity)
        claims = dict(identity)
        if "userinfo_endpoint" in self.openid_config:
            userinfo = self._fetch_user_info(token.token)
            if userinfo.get("sub") != subject:
                raise OAuth2Error("The issuer describes another subject than that of the id token.")
            claims = {**userinfo, **identity}
        login = self.get_provider().sociallogin_from_response(request, claims)
        login.claims = claims
        return login


class IssuerProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """The configured issuer; only the name and email address in its claims are stored."""

    oauth2_adapter_class = IssuerAdapter

    def get_login_url(self, request: HttpRequest, **kwargs: Any) -> str:
        """Return the URL that starts a sign-in."""
        return reverse("oidc_login")

    def get_callback_url(self) -> str:
        """Return the callback URL."""
        return reverse("oidc_callback")

    def get_default_scope(self) -> list[str]:
        """Return the requested scopes."""
        return list(settings.OIDC_SCOPES)

    def get_pkce_params(self) -> dict[str, str]:
        """Enable PKCE: an intercepted code is useless without the verifier."""
        self.app.settings["oauth_pkce_enabled"] = True
        params: dict[str, str] = super().get_pkce_params()
        return params

    def get_auth_params(self) -> dict[str, str]:
        """Ask for a sign-in of the required strength."""
        strength = {"acr_values": " ".join(settings.OIDC_ACR)} if settings.OIDC_ACR else {}
        return {**super().get_auth_params(), **strength}

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return nothing: claims aren't stored."""
        return {}

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the names without the email address, by which allauth would search for other accounts."""
        fields = super().extract_common_fields({**data, "email": None})
        return {name: value for name, value in fields.items() if isinstance(value, str)}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        """Return nothing, so that no account is matched by email address."""
        return []


class IssuerAccounts(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Gives people of the issuer an account without roles at first, and updates their groups at each sign-in."""

    def list_apps(self, request: HttpRequest, provider: str | None = None, client_id: str | None = None) -> list[Any]:
        """Return the client from the settings, if any; never one from the database."""
        if not settings.OIDC_ISSUER or provider not in (None, provider_id(), "openid_connect"):
            return []
        app = SocialApp(
            provider="openid_connect",
            provider_id=provider_id(),
            name=settings.OIDC_NAME,
            client_id=settings.OIDC_CLIENT_ID,
            secret=client_secret(),
            settings={"server_url": settings.OIDC_ISSUER},
        )
        return [app]

    def get_app(self, request: HttpRequest, provider: str, client_id: str | None = None) -> SocialApp:
        """Return the client. Raises SocialApp.DoesNotExist without one."""
        apps = self.list_apps(request, provider)
        if not apps:
            raise SocialApp.DoesNotExist
        return apps[0]

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> IssuerProvider:
        """Return the issuer. Raises SocialApp.DoesNotExist without one."""
        return IssuerProvider(request, app=self.get_app(request, provider))

    def get_requests_session(self) -> requests.Session:
        """Return a session with the egress policy, without redirects and environment variables."""
        session = requests.Session()
        session.trust_env = False
        session.max_redirects = 0
        session.adapters.clear()
        session.mount("https://", PolicedTransport())
        session.mount("http://", PolicedTransport())
        return session

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Return True: the issuer decides who may sign in, and a new account has no role."""
        return True

    def authenticate_by_email(self, login: SocialLogin) -> None:
        """Do nothing: email addresses never authenticate."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Update the groups of an existing account before the sign-in."""
        if sociallogin.is_existing:
            take_groups(sociallogin.user, sociallogin.claims, origin=str(request.META.get("REMOTE_ADDR") or ""))

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Create the account of a new person with an unused name."""
        origin = str(request.META.get("REMOTE_ADDR") or "")
        sociallogin.user.email = issued_email(sociallogin.claims.get("email"))
        get_account_adapter().populate_username(request, sociallogin.user)  # so that the audit has the account's name
        username = user_username(sociallogin.user)
        record(by=Actor(username, "ui", origin=origin, signed_in_by="oidc"), why="first sign-in through the issuer")
        user: User = super().save_user(request, sociallogin, form)
        take_groups(user, sociallogin.claims, origin=origin)
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        """Show the failure page; the reason is only in the log."""
        logger.warning("sign-in through the issuer failed: %s %s", error, str(exception or "")[:500])
        raise ImmediateHttpResponse(render(request, "account/oidc_failed.html", status=403))


def check_strength(claims: Mapping[str, Any]) -> None:
    """Raise OAuth2Error unless the issuer says that the sign-in had one of the required strengths."""
    if settings.OIDC_ACR and claims.get("acr") not in settings.OIDC_ACR:
        raise OAuth2Error(f"The sign-in had the strength {str(claims.get('acr'))[:80]!r}, which OIDC_ACR doesn't list.")


def client_secret() -> str:
    """Return the client's secret from the secrets folder; "" for a public client. Raises InvalidSecret."""
    if not settings.OIDC_SECRET:
        return ""
    secret = find_secret(settings.OIDC_SECRET)
    refuse_other_host(secret, parse_connection(settings.OIDC_ISSUER))
    return secret.value


def take_groups(user: User, claims: dict[str, Any], *, origin: str) -> None:
    """Add a person to the groups mapped from the issuer's claim, and remove them from other mapped groups."""
    if not settings.OIDC_GROUPS:
        return
    claim = claims.get(settings.OIDC_GROUPS_CLAIM)
    names = {claim} if isinstance(claim, str) else {item for item in claim or () if isinstance(item, str)}
    groups = {group for claimed, group in settings.OIDC_GROUPS if claimed in names}
    actor = Actor(user.get_username(), "ui", user_id=user.pk, origin=origin, signed_in_by="oidc")
    set_mapped_groups(user=user, claimed=groups, mapped={group for _, group in settings.OIDC_GROUPS}, by=actor)


#: errors of a sign-in, before and after the redirect to the issuer
FAULTS = (SchemadeskError, OAuth2Error, requests.RequestException, ValueError, KeyError)


@never_cache
@login_not_required  # type: ignore[untyped-decorator]  # allauth has no types
@require_POST
def login(request: HttpRequest) -> HttpResponse:
    """Start a sign-in at the issuer.

    It shows a page with a link instead of a redirect, because our content security policy forbids forms that end on
    another host. Of the request's parameters, only the return URL is passed on.
    """
    if not settings.OIDC_ISSUER:
        raise Http404
    following = get_request_param(request, "next") or ""
    back = following if following and get_account_adapter(request).is_safe_url(following) else None
    try:
        provider = get_adapter(request).get_provider(request, provider_id())
        response = provider.redirect(request, process=AuthProcess.LOGIN, next_url=back)
    except FAULTS as error:
        logger.warning("sign-in through the issuer can't begin: %s", str(error)[:500])
        return render(request, "account/oidc_failed.html", status=503)
    if "Location" not in response:
        return HttpResponse(response.content, status=response.status_code)
    return render(request, "account/oidc_leave.html", {"address": response["Location"], "name": settings.OIDC_NAME})


@never_cache
@login_not_required  # type: ignore[untyped-decorator]  # allauth has no types
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Finish a sign-in from the issuer."""
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        response: HttpResponse = OAuth2CallbackView.adapter_view(IssuerAdapter(request, provider_id()))(request)
        return response
    except FAULTS as error:
        logger.warning("sign-in through the issuer failed: %s", str(error)[:500])
        return render(request, "account/oidc_failed.html", status=403)
