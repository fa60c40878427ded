"""Sign-in through one OpenID Connect issuer, by allauth.

Who somebody is, is the pair of issuer and subject: the issuer stands in the provider's id, the subject is the account's
uid, and an address of mail is never looked at. Every call to the issuer goes through the product's own client, so the
egress policy judges it.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any

import requests
from allauth.account.internal.emailkit import valid_email_or_none
from allauth.account.utils import user_username
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse

from dashboard.oidc_transport import PolicedTransport
from registry.access.credentials import find_secret, refuse_other_host
from registry.access.egress import parse_connection
from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services.groups import set_mapped_groups
from registry.audit.services import record
from registry.errors import SchemadeskError

logger = logging.getLogger(__name__)
SUBJECT_LENGTH = 191  # the most that allauth's column takes; the standard allows 255 ASCII characters


def provider_id() -> str:
    """The id of the issuer: another issuer is another provider, whose subjects are other people."""
    return f"oidc-{hashlib.sha256(settings.OIDC_ISSUER.encode()).hexdigest()[:24]}"


class IssuerAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """The calls of one sign-in; holds what the issuer says against what was configured."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """The issuer's description. Raises OAuth2Error where it is that of another issuer."""
        found: dict[str, Any] = super().openid_config
        if found.get("issuer") != settings.OIDC_ISSUER:
            raise OAuth2Error(f"The issuer calls itself {str(found.get('issuer'))[:200]!r}, not OIDC_ISSUER.")
        return found

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """Where the issuer sends people back to."""
        return request.build_absolute_uri(reverse("oidc_callback"))

    def complete_login(self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any) -> SocialLogin:
        """The sign-in of the subject of the id token, whose signature is always checked. Raises OAuth2Error."""
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
        claims = dict(identity)
        if "userinfo_endpoint" in self.openid_config:
            said = self._fetch_user_info(token.token)
            if said.get("sub") != subject:
                raise OAuth2Error("The issuer describes another subject than that of the id token.")
            claims = {**said, **identity}
        login = self.get_provider().sociallogin_from_response(request, claims)
        login.claims = claims
        return login


class IssuerProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """The one issuer; keeps nothing of its claims but name and address."""

    oauth2_adapter_class = IssuerAdapter

    def get_login_url(self, request: HttpRequest, **kwargs: Any) -> str:
        """Where a sign-in begins."""
        return reverse("oidc_login")

    def get_callback_url(self) -> str:
        """Where it comes back to."""
        return reverse("oidc_callback")

    def get_default_scope(self) -> list[str]:
        """What is asked for."""
        return list(settings.OIDC_SCOPES)

    def get_pkce_params(self) -> dict[str, str]:
        """Always: a code that is caught is worth nothing without the verifier."""
        self.app.settings["oauth_pkce_enabled"] = True
        found: dict[str, str] = super().get_pkce_params()
        return found

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Nothing: what was claimed once is no truth to keep."""
        return {}

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Names; the address of mail is not among them, as allauth would look for others who have it."""
        found = super().extract_common_fields({**data, "email": None})
        return {name: value for name, value in found.items() if isinstance(value, str)}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        """None, so that nobody is found by one."""
        return []


class IssuerAccounts(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """People of the issuer get an account without roles at their first sign-in, and their groups at each."""

    def list_apps(self, request: HttpRequest, provider: str | None = None, client_id: str | None = None) -> list[Any]:
        """The one client of the environment's settings, or none; never one of the database."""
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
        """The one client. Raises SocialApp.DoesNotExist without one."""
        apps = self.list_apps(request, provider)
        if not apps:
            raise SocialApp.DoesNotExist
        return apps[0]

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> IssuerProvider:
        """The issuer. Raises SocialApp.DoesNotExist without one."""
        return IssuerProvider(request, app=self.get_app(request, provider))

    def get_requests_session(self) -> requests.Session:
        """A session all of whose calls pass the egress policy; it follows no redirect and reads no environment."""
        session = requests.Session()
        session.trust_env = False
        session.max_redirects = 0
        session.adapters.clear()
        session.mount("https://", PolicedTransport())
        session.mount("http://", PolicedTransport())
        return session

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Yes: the issuer says who is one of us, and a new account has no role."""
        return True

    def authenticate_by_email(self, login: SocialLogin) -> None:
        """Nobody is, ever."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Somebody known: take over their groups before they are signed in."""
        if sociallogin.is_existing:
            take_groups(sociallogin.user, sociallogin.claims, origin=str(request.META.get("REMOTE_ADDR") or ""))

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Make the account of somebody new, under a name that nobody has."""
        origin = str(request.META.get("REMOTE_ADDR") or "")
        wanted = user_username(sociallogin.user) or sociallogin.account.uid
        record(by=Actor(wanted, "ui", origin=origin, signed_in_by="oidc"), why="first sign-in through the issuer")
        mail = sociallogin.claims.get("email")
        sociallogin.user.email = (valid_email_or_none(mail) if isinstance(mail, str) else None) or ""  # only shown
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
        """The page that says that it didn't work; what went wrong stands in the log, for operators."""
        logger.warning("sign-in through the issuer failed: %s %s", error, str(exception or "")[:500])
        raise ImmediateHttpResponse(render(request, "account/oidc_failed.html", status=403))


def client_secret() -> str:
    """The client's secret from the secrets folder; "" for a public client. Raises InvalidSecret."""
    if not settings.OIDC_SECRET:
        return ""
    secret = find_secret(settings.OIDC_SECRET)
    refuse_other_host(secret, parse_connection(settings.OIDC_ISSUER))
    return secret.value


def take_groups(user: User, claims: dict[str, Any], *, origin: str) -> None:
    """Put a person into the groups that the issuer's claim names by the mapping, and out of its other groups."""
    if not settings.OIDC_GROUPS:
        return
    given = claims.get(settings.OIDC_GROUPS_CLAIM)
    names = {given} if isinstance(given, str) else {item for item in given or () if isinstance(item, str)}
    wanted = {group for claimed, group in settings.OIDC_GROUPS if claimed in names}
    actor = Actor(user.get_username(), "ui", user_id=user.pk, origin=origin, signed_in_by="oidc")
    set_mapped_groups(user=user, wanted=wanted, mapped={group for _, group in settings.OIDC_GROUPS}, by=actor)


#: what a sign-in can run into before it leaves for the issuer
FAULTS = (SchemadeskError, OAuth2Error, requests.RequestException, ValueError, KeyError)
