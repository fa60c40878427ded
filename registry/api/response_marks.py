"""What the responses of every dialect say of themselves: a version's standing, and that they may be given again.

Headers name versions that should not be used any more; the answers stay as they are. What stands before Django puts a
`Replay` into the request's environment; a view whose answers follow from the request and from the database alone allows
it, and the answer may be given again, without asking Django, as long as nothing has changed. Nothing is allowed by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from django.http import HttpResponseBase
from django.utils.http import http_date

from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import Standing

ENVIRON: Final = "schemadesk.replay"
DEPRECATION: Final = "Deprecation"
SUNSET: Final = "Sunset"
HEADER: Final = "X-Schemadesk-Standing"
HEADERS: Final = (DEPRECATION, SUNSET, HEADER)
MAX_MESSAGE: Final = 300  # characters of the message in the header; clients bound how long headers may be
#: what a Display String has as it stands: printable ASCII without `"` and `%`
_PLAIN: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"%')
_Response = TypeVar("_Response", bound=HttpResponseBase)


def standing_headers(standing: Standing | None) -> dict[str, str]:
    """The headers of an answer with a version of that standing; none for good standing."""
    if standing is None:
        return {}
    headers = {DEPRECATION: _date(standing.decided_at)}
    until = ""
    if standing.ends_at is not None:
        headers[SUNSET] = http_date(standing.ends_at.timestamp())
        until = f";until={_date(standing.ends_at)}"
    headers[HEADER] = f"{standing.standing}{until};message={_text(standing.message)}"
    return headers


def marked(response: _Response, standing: Standing | None) -> _Response:
    """The response with those headers."""
    for name, value in standing_headers(standing).items():
        response[name] = value
    return response


def standing_in(response: HttpResponseBase) -> str:
    """What the response says of it, in one text: part of its ETag, so that a kept answer doesn't go without."""
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
    """RFC 9651 writes the digits of escapes in lower case."""
    first, *rest = text.split("%")
    return first + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


@dataclass
class Replay:
    """What is known of one answer; `until` is the time from which on it isn't right any more, changed or not.

    `is_pure` says that nothing was written on the way to it. Of all registrations only those change it that are under
    a name of `subjects`, in whichever context; None: any one may.
    """

    is_allowed: bool = False
    until: datetime | None = None
    is_pure: bool = False
    subjects: frozenset[str] | None = None


def allow_replay(environ: dict[str, Any], *, until: datetime | None = None) -> None:
    """Let the answer to this request be given again, until then at most (None: for as long as nothing changes)."""
    replay = environ.get(ENVIRON)
    if isinstance(replay, Replay):
        replay.is_allowed = True
        replay.until = until


def depend_on(environ: dict[str, Any], subjects: Iterable[SubjectName] | None) -> None:
    """Say that no registration changes the answer to this request but those under these subjects' names; None: any may."""
    replay = environ.get(ENVIRON)
    if isinstance(replay, Replay):
        replay.subjects = None if subjects is None else frozenset(name.subject for name in subjects)
