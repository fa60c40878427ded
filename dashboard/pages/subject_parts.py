"""The pages about one subject: the trail that leads to each of them, and the row of links between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url, subjects_url
from dashboard.presenters.frame import Crumb, Export, Part
from dashboard.texts import later
from registry.subjects.names import SubjectName

#: pages of the subject's own: which page of `dashboard.links.PAGES`, and its label
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


def subject_parts(registry: str, name: SubjectName, here: str) -> tuple[Part, ...]:
    """The links; `here` is the page that is looked at, one of `dashboard.links.PAGES`."""
    own = (
        Part(label=label, url=subject_url(registry, name.qualified, page), current=page == here) for page, label in _OWN
    )
    lists = (
        Part(label=label, url=list_about(target, {key: name.qualified}, registry if placed else ""))
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
