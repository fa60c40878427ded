"""Addresses of subjects' pages, their breadcrumbs and tabs, and numbers in addresses and forms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.urls import get_script_prefix, reverse
from django.utils.translation import gettext

from dashboard.components.translation import later
from dashboard.components.widgets import Crumb, Export, SubPage
from registry.subjects.versions.qualified_names import SubjectName

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
    parameters = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


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


#: pages of the subject's own: which page of `dashboard.components.links.PAGES`, and its label
_OWN: Final = (
    ("", later("Versions")),
    ("compare", later("Compare")),
    ("report", later("Check")),
    ("usage", later("Usage")),
    ("references", later("References")),
)
#: lists of other things that hold some about the subject: the address's name, its parameter, whether it takes the
#: registry as well (a request is between two), its label
_LISTS: Final = (
    ("findings", "subject", True, later("Drift")),
    ("promotions", "q", False, later("Requests")),
    ("audit", "subject", True, later("Activity")),
)


def subject_parts(registry: str, name: SubjectName, here: str) -> tuple[SubPage, ...]:
    """The links; `here` is the page that is looked at, one of `dashboard.components.links.PAGES`."""
    own = (
        SubPage(label=label, url=subject_url(registry, name.qualified, page), current=page == here)
        for page, label in _OWN
    )
    lists = (
        SubPage(label=label, url=list_about(target, {key: name.qualified}, registry if placed else ""))
        for target, key, placed, label in _LISTS
    )
    return (*own, *lists)


def list_about(page: str, about: Mapping[str, str], registry: str = "") -> str:
    """The list of that name with what is about a subject alone, in the registry where one is given."""
    return f"{reverse(f'ui:{page}')}?{urlencode({**about, 'registry': registry} if registry else about)}"


def subjects_crumb(registry: str) -> Crumb:
    """The step to the list of the registry's subjects."""
    return Crumb(label=gettext("Subjects"), url=subjects_url(registry))


def subject_export(registry: str, name: SubjectName) -> Export:
    """The form that gives the subject as a file."""
    return Export(url=reverse("ui:subjects_export", args=[registry]), subject=name.qualified)


def subject_crumbs(registry: str, name: SubjectName) -> tuple[Crumb, ...]:
    """The trail above a page about the subject: the list, then the subject itself."""
    here = Crumb(label=name.qualified, url=subject_url(registry, name.qualified), code=True)
    return (subjects_crumb(registry), here)


def whole_number(text: str, *, digits: int = 9) -> int | None:
    """The number, or None for anything but at most so many ASCII digits: other digits and larger ones fit no column."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
