"""Local accounts: only admins create them, and failed sign-ins are limited and logged."""

from __future__ import annotations

import logging
import secrets
from typing import Any, Final

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.core.internal import ratelimit
from allauth.core.internal.ratelimit import RateLimitUsage
from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from dashboard.client_address import SHARED
from registry.access.account_names import checked_username, same_name
from registry.access.models import User
from registry.access.selectors import actor_of_user
from registry.audit.context import record
from registry.errors import InvalidInput

COOKIE: Final = f"{'__Secure-' if settings.SESSION_COOKIE_SECURE else ''}schemadesk_browser"
_SALT: Final = "dashboard.people.sign_in"
_COOKIE_SECONDS: Final = 90 * 24 * 3600
_APP: Final = "dashboard"
#: scope of a limit → failed sign-ins per time window, in allauth's format
LIMITS: Final = {
    "browser": "5/5m/key,20/1h/key,50/1d/key",
    "name and address": "5/5m/key,10/1h/key,30/1d/key",
    "address": "30/5m/key",
    "shared address": "300/5m/key",  # for an untrusted proxy: one attacker must not lock out everybody behind it
    "name": "100/1h/key",
}
#: the limits by allauth's keys
CONFIG: Final = {limit.replace(" ", "_"): rates for limit, rates in LIMITS.items()}
LOGGED_NAME: Final = 150  # characters of a name that nobody may have

logger = logging.getLogger(__name__)


def consume(request: HttpRequest, name: str) -> RateLimitUsage | None:
    """Count a sign-in attempt; return None after too many. A successful attempt is rolled back."""
    name = name.strip().lower()
    browser = _browser(request, name)
    if browser:
        keys = {"browser": f"{name}\n{browser}"}
    else:
        address = ratelimit.get_ip(request)
        is_shared = bool(request.META.get(SHARED))
        keys = {"name and address": f"{name}\n{address}", "shared address" if is_shared else "address": address}
        keys["name"] = name
    usage = RateLimitUsage(usage=[])
    for limit, key in keys.items():
        counted = _count(request, limit, key)
        if counted is None:
            usage.rollback()
            return None
        usage.usage += counted.usage
    if "shared address" in keys:  # so that a forged header doesn't reset the limit of a direct connection
        alone = _count(request, "address", keys["shared address"])
        usage.usage += alone.usage if alone else []
    return usage


def remember(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """Set a cookie that gives this browser its own limit for this person."""
    name = name.strip().lower()
    value = {"name": name, "browser": _browser(request, name) or secrets.token_urlsafe(16)}
    response.set_cookie(
        COOKIE,
        signing.dumps(value, salt=_SALT),
        max_age=_COOKIE_SECONDS,
        path="/ui/accounts/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _count(request: HttpRequest, limit: str, key: str) -> RateLimitUsage | None:
    return ratelimit.consume(request, app=_APP, action=limit.replace(" ", "_"), config=CONFIG, key=key)


def _browser(request: HttpRequest, name: str) -> str:
    """Return the id of a browser in which the person signed in before; "" for others."""
    try:
        value: Any = signing.loads(request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=_COOKIE_SECONDS)
    except signing.BadSignature:
        return ""
    return str(value["browser"]) if value.get("name") == name else ""


def _log_sign_in(request: HttpRequest | None, user: User, **_: Any) -> None:
    if request is not None:
        way = signed_in_by(request) or "unknown"
        logger.info("%s signed in from %s by %s", user.get_username(), request.META.get("REMOTE_ADDR"), way)


def _log_sign_out(request: HttpRequest | None, user: User | None, **_: Any) -> None:
    if request is not None and user is not None:
        logger.info("%s signed out from %s", user.get_username(), request.META.get("REMOTE_ADDR"))


def _log_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    if request is not None:
        name, origin = str(credentials.get("username") or "")[:LOGGED_NAME], request.META.get("REMOTE_ADDR")
        logger.warning("sign-in as %r from %s failed", name, origin)


user_logged_in.connect(_log_sign_in, dispatch_uid=f"{__name__}.in")
user_logged_out.connect(_log_sign_out, dispatch_uid=f"{__name__}.out")
user_login_failed.connect(_log_failure, dispatch_uid=f"{__name__}.failed")


#: allauth's sign-in method → value of Actor.signed_in_by
WAYS = {"password": "password", "socialaccount": "oidc"}


def signed_in_by(request: HttpRequest) -> str:
    """Return the last sign-in method of this session; "" if unknown."""
    records = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY) or [{}]
    return WAYS.get(records[-1].get("method", ""), "")


class ExactNameBackend(AuthenticationBackend):  # type: ignore[misc]
    """Finds an account by its exact name first: allauth ignores case, and refuses a name that matches two accounts."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> User:
        """Return the account. Raises PermissionDenied, so that no other backend hashes the password again."""
        user: User | None = super().authenticate(request, **credentials)
        if user is None:
            raise PermissionDenied
        return user

    def _authenticate_by_username(self, username: str, password: str) -> User | None:
        user: User | None = User.objects.filter(username=username).first()
        found: User | None = (
            self._check_password(user, password) if user else super()._authenticate_by_username(username, password)
        )
        return found


class ClosedAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Disables sign-up, and audits password changes."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False."""
        return False

    def clean_username(self, username: str, shallow: bool = False) -> str:
        """Return the name for a new person of the issuer. Raises ValidationError if it is invalid or taken."""
        try:
            checked_username(username)
        except InvalidInput as error:
            raise ValidationError(error.message) from error
        taken = same_name(username, User.objects.order_by().values_list("username", flat=True))
        if taken is not None:
            raise self.validation_error("username_taken")
        return username

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse an attempt after too many failed ones, before hashing."""
        name = str(credentials.get("username") or "")
        self._login_failed_rl_usage = consume(request, name)
        if self._login_failed_rl_usage is None:
            origin = request.META.get("REMOTE_ADDR")
            logger.warning("sign-in as %r from %s refused after too many failed ones", name[:LOGGED_NAME], origin)
            raise self.validation_error("too_many_login_attempts")

    def post_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse:
        """Redirect to the requested page, and remember the browser."""
        response: HttpResponse = super().post_login(request, user, **more)
        remember(request, response, user.username)
        return response

    @transaction.atomic
    def set_password(self, user: User, password: str) -> None:
        """Change a person's own password with an audit record."""
        record(by=actor_of_user(user, channel="ui"), why="change own password")
        user.set_password(password)
        user.save(update_fields=["password"])  # only this field: an admin may deactivate the account meanwhile
