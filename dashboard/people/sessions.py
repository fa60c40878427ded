"""Sessions in the database that end after a time without requests, and at the latest some time after the sign-in.

Both limits are checked here, so that an old cookie is worth nothing. A session without the time of its sign-in counts
as ended.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth import middleware as auth
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessions
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

SIGNED_IN_AT: Final = "signed_in_at"
SEEN_AT: Final = "seen_at"
#: the time of the last request is written when it is older than this share of the limit
WRITTEN_AFTER: Final = 1 / 20


class SessionStore(DatabaseSessions):
    """A session in the database with these limits; with `keeps_id` its id stays."""

    keeps_id = False

    def cycle_key(self) -> None:
        """Replace the id, so that it is worth nothing to who knew it."""
        if not self.keeps_id:
            super().cycle_key()

    def load(self) -> dict[str, Any]:
        """Return the values of the session; nothing if it has ended."""
        values: dict[str, Any] = super().load()
        if SESSION_KEY not in values:
            return values
        now, seen_at = int(time.time()), values.get(SEEN_AT, 0)
        if has_ended(values, now):
            self._session_key = None
            return {}
        if now - seen_at > settings.SESSION_IDLE_SECONDS * WRITTEN_AFTER:
            values[SEEN_AT] = now
            self.modified = True
        return values


class AuthenticationMiddleware(auth.AuthenticationMiddleware):
    """Django's, but a session keeps its id when its hash is renewed after SECRET_KEY was rotated.

    With a new id, other requests that the browser sent at the same time would find no session and sign it out.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Set the user, who is looked up when somebody asks."""
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _user(request))  # type: ignore[assignment]


def _user(request: HttpRequest) -> Any:
    session: Any = request.session
    session.keeps_id = True
    try:
        return auth.get_user(request)
    finally:
        session.keeps_id = False


def has_ended(values: dict[str, Any], now: int) -> bool:
    """Return whether a signed-in session with these values is over at that time."""
    signed_in_at, seen_at = int(values.get(SIGNED_IN_AT, 0)), int(values.get(SEEN_AT, 0))
    return now - signed_in_at > settings.SESSION_COOKIE_AGE or now - seen_at > settings.SESSION_IDLE_SECONDS


def note_sign_in(request: HttpRequest | None = None, **_: Any) -> None:
    """Start both limits at a sign-in."""
    if request is not None:
        request.session[SIGNED_IN_AT] = request.session[SEEN_AT] = int(time.time())


user_logged_in.connect(note_sign_in, dispatch_uid="dashboard.people.sessions")
