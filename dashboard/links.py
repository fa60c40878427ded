"""Addresses of pages whose path carries a subject's name.

A subject may hold any character, `/` and `%` among them, so its name travels percent-encoded as one segment and the
pages are routed on the raw path; templates and views make such addresses only here.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from django.urls import reverse

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
    path = f"{reverse('ui:home')}registries/{quote(registry, safe='')}/subjects/{segment}/{page}"
    given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
