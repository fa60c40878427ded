"""Marks of responses in every dialect: a version's status, and whether a response may be replayed.

Headers name versions that should no longer be used; the bodies are unchanged. The layer before Django puts a `Replay`
into the request's environment. A view whose answers depend only on the request and the database allows replay: then the
answer may be repeated without Django while nothing has changed. By default it isn't allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from django.http import HttpResponseBase
from django.utils.http import http_date

from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import StatusInfo

ENVIRON: Final = "schemadesk.replay"
DEPRECATION: Final = "Deprecation"
SUNSET: Final = "Sunset"
HEADER: Final = "X-Schemadesk-Status"
HEADERS: Final = (DEPRECATION, SUNSET, HEADER)
MAX_RECENT: Final = 2_000  # values, of which one has up to 8 KB of a request's address
MAX_MESSAGE: Final = 300  # characters of the message in the header, because clients limit header sizes
#: the characters that a Display String contains unescaped: printable ASCII without `"` and `%`
_PLAIN: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"%')
_Response = TypeVar("_Response", bound=HttpResponseBase)


def status_headers(status: StatusInfo | None) -> dict[str, str]:
    """Return the headers for a version with that status; none for an active one."""
    if status is None:
        return {}
    headers = {DEPRECATION: _date(status.decided_at)}
    until = ""
    if status.ends_at is not None:
        headers[SUNSET] = http_date(status.ends_at.timestamp())
        until = f";until={_date(status.ends_at)}"
    headers[HEADER] = f"{status.status}{until};message={_text(status.message)}"
    return headers


def marked(response: _Response, status: StatusInfo | None) -> _Response:
    """Return the response with those headers."""
    for name, value in status_headers(status).items():
        response[name] = value
    return response


def status_header_text(response: HttpResponseBase) -> str:
    """Return the status headers as one text: it is part of the ETag, so that a cached answer has them too."""
    return "\n".join(f"{name}: {response.headers[name]}" for name in HEADERS if name in response.headers)


def _date(at: datetime) -> str:
    return f"@{int(at.timestamp())}"


def _text(message: str) -> str:
    short = message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"
    if all(" " <= char <= "~" for char in short):
        escaped = short.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    encoded = quote(short, safe=_PLAIN)
    return '%"' + _lower_escapes(encoded) + '"'


def _lower_escapes(text: str) -> str:
    """Write the digits of escapes in lower case, as RFC 9651 does."""
    first, *rest = text.split("%")
    return first + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


@dataclass(frozen=True)
class Recent:
    """What earlier requests have read and no registration changes, while `is_current`."""

    is_current: Callable[[], bool]
    values: dict[Hashable, Any] = field(default_factory=dict)

    def get(self, key: Hashable) -> Any:
        """Return a value; None if there is none, or something was committed while the request waited for a thread."""
        return self.values.get(key) if self.is_current() else None

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a value that was read after this was created, unless something was committed since."""
        if len(self.values) < MAX_RECENT and self.is_current():
            self.values[key] = value


@dataclass
class Replay:
    """Whether and how long one answer can be replayed; from `until` on it is invalid, even if nothing changed.

    `is_pure` means that nothing was written to compute it. Only registrations under a name in `subjects`, in any
    context, change it; None: any registration may. `recent` is what needn't be read again (None: nothing).
    """

    is_allowed: bool = False
    until: datetime | None = None
    is_pure: bool = False
    subjects: frozenset[str] | None = None
    recent: Recent | None = None


def allow_replay(environ: dict[str, Any], *, until: datetime | None = None) -> None:
    """Allow replaying the answer to this request, at most until then (None: as long as nothing changes)."""
    replay = environ.get(ENVIRON)
    if isinstance(replay, Replay):
        replay.is_allowed = True
        replay.until = until


def recent_in(environ: Mapping[str, Any]) -> Recent:
    """Return what earlier requests have read; without a layer before Django that is nothing, and nothing is kept."""
    replay = environ.get(ENVIRON)
    return (replay.recent if isinstance(replay, Replay) else None) or Recent(lambda: False)


def depend_on(environ: dict[str, Any], subjects: Iterable[SubjectName] | None) -> None:
    """Declare that only registrations under these subjects' names change the answer to this request; None: any may."""
    replay = environ.get(ENVIRON)
    if isinstance(replay, Replay):
        replay.subjects = None if subjects is None else frozenset(name.subject for name in subjects)
