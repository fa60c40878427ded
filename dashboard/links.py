"""Addresses of pages whose path carries a subject's name.

A subject may hold any character, `/` and `%` among them, so its name travels percent-encoded as one segment and the
pages are routed on the raw path; templates and views make such addresses only here.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, urlencode

from django.conf import settings
from django.urls import get_script_prefix, reverse

PAGES = ("", "compare", "report", "simulate", "usage", "references", "retire")
"""What follows the subject in the path: its own page, two versions compared, a proposed schema checked, data tried,
which versions are in use, what refers to what, and the way to retire it."""

# Browsers fold these segments away, encoded or not; the qualified name of the default context says the same.
_FOLDED = ("", ".", "..")


def subject_url(registry: str, subject: str, page: str = "", **query: object) -> str:
    """The address of a subject's page; `page` is one of PAGES, else ValueError; None in `query` is left out, a
    list gives its name once for each value.

    `subject` may be qualified (`:.context:name`); a trailing underscore is taken off a query name (`from_`).
    """
    if page not in PAGES:
        raise ValueError(f"no page of a subject is called {page!r}: it is one of {PAGES}")
    segment = quote(f":.:{subject}" if subject in _FOLDED else subject, safe="")
    path = f"{subjects_url(registry)}/{segment}/{page}"
    given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def switch_url(registry: str, subject: str, page: str = "") -> str:
    """From a subject's page in one registry to the same page in another, or to that registry's list if it isn't there."""
    base, _, _ = subject_url(registry, subject).rpartition("/")
    return f"{base}/switch?{urlencode({'page': page})}" if page else f"{base}/switch"


def subjects_url(registry: str) -> str:
    """The address of the list of a registry's subjects."""
    return _subjects_url(registry, get_script_prefix(), settings.ROOT_URLCONF)


@lru_cache(maxsize=256)
def _subjects_url(registry: str, prefix: str, addresses: object) -> str:
    """Made once for a registry, as a list has hundreds; what else it depends on is named beside it."""
    return f"{reverse('ui:home')}registries/{quote(registry, safe='')}/subjects"
