"""How many failed sign-ins are let through before the next one is refused unread.

Guessing is slowed down where it comes from, so that nobody is locked out by somebody else: by name and address together,
in windows that grow; by address, for guesses at many names; and by name from everywhere, so far up that it takes many
addresses. A browser that the person signed in with before has a signed cookie and counts by itself: none of the others
reaches it (OWASP calls it a device cookie).
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from allauth.core.internal import ratelimit
from allauth.core.internal.ratelimit import RateLimitUsage
from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from dashboard.client_address import SHARED

COOKIE: Final = "schemadesk_browser"
_SALT: Final = "dashboard.sign_in_limits"
_COOKIE_SECONDS: Final = 90 * 24 * 3600
_APP: Final = "dashboard"
#: whom a limit is of → failed sign-ins in windows of time; the form is allauth's
LIMITS: Final = {
    "browser": "5/5m/key,20/1h/key,50/1d/key",
    "name and address": "5/5m/key,10/1h/key,30/1d/key",
    "address": "30/5m/key",
    "shared address": "300/5m/key",  # a proxy that isn't trusted: one guesser is not to lock out all behind it
    "name": "100/1h/key",
}
#: the same as allauth takes it
CONFIG: Final = {limit.replace(" ", "_"): rates for limit, rates in LIMITS.items()}


def consume(request: HttpRequest, name: str) -> RateLimitUsage | None:
    """Count an attempt to sign in as somebody; None where it is one too many. What succeeds is rolled back."""
    name = name.strip().lower()
    known = _browser(request, name)
    if known:
        keys = {"browser": f"{name}\n{known}"}
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
    if "shared address" in keys:  # counted as well, so that no header makes a fresh start of a direct connection
        alone = _count(request, "address", keys["shared address"])
        usage.usage += alone.usage if alone else []
    return usage


def remember(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """Let the browser count by itself when it signs in as that person again."""
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
    """What the browser is called that the person signed in with before; "" for any other."""
    try:
        value: Any = signing.loads(request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=_COOKIE_SECONDS)
    except signing.BadSignature:
        return ""
    return str(value["browser"]) if value.get("name") == name else ""
