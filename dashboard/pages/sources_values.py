"""What the forms of sources send, as the services take it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_fields import NUMBERS
from dashboard.pages.sources_words import given_text
from dashboard.texts import later
from registry.errors import InvalidInput

TEXTS: Final = (
    "connect_url",
    "connect_user",
    "connect_secret",
    "database_host",
    "database_name",
    "database_user",
    "database_secret",
)


#: a form's field of an object store → the service's
STORE: Final = {
    "endpoint": "endpoint",
    "region": "region",
    "access_key_id": "access_key_id",
    "store_secret": "secret",
}


def store_values(post: Mapping[str, str]) -> dict[str, str] | None:
    """The fields of an object store; None where the form has none, or none was filled in."""
    values = {name: given_text(post, field) for field, name in STORE.items()}
    return values if any(values.values()) else None


def lines_of(text: str) -> list[str]:
    """The lines of a text field that aren't empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def scan_values(post: Mapping[str, str]) -> dict[str, Any]:
    """How a source is scanned, from those fields that the form has. Raises InvalidInput for what is no number."""
    values: dict[str, Any] = {}
    for name in ("include", "exclude"):
        if name in post:
            values[name] = lines_of(post[name])
    for name in ("context", "mode"):
        if name in post:
            values[name] = given_text(post, name)
    if "keep_samples" in post:
        values["keep_samples"] = post["keep_samples"] != "no"
    if "every_seconds" in post:
        values["every_seconds"] = (
            _number(post["every_seconds"], "every_seconds") if post["every_seconds"].strip() else None
        )
    for name in NUMBERS:
        if post.get(name, "").strip():
            values[name] = _number(post[name], name)
    return values


def connector_values(post: Mapping[str, str]) -> dict[str, Any]:
    """A connector's fields. Raises InvalidInput."""
    return {
        "name": given_text(post, "connector"),
        "database_port": _number(post.get("database_port") or "5432", "database_port"),
        "database_tls": post.get("database_tls") != "no",
        **{name: given_text(post, name) for name in TEXTS},
    }


def _number(text: str, name: str) -> int:
    number = whole_number(text.strip(), digits=14)
    if number is None:
        raise InvalidInput(
            gettext("%(text)s is not a number of %(unit)s (%(name)s).")
            % {"text": repr(text.strip()[:20]), "unit": _UNITS.get(name, gettext("units")), "name": name}
        )
    return number


_UNITS: Final = {
    "every_seconds": later("seconds"),
    "window_seconds": later("seconds"),
    "max_seconds": later("seconds"),
    "max_bytes": later("bytes"),
}


def end_of_day(text: str) -> datetime | None:
    """The end of the day that a date field names, in UTC; None for an empty one. Raises InvalidInput."""
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            gettext("%(text)s is not a date; write it as 2026-12-31.") % {"text": repr(text.strip()[:20])}
        ) from None
    return datetime.combine(day, time.max, tzinfo=UTC)
