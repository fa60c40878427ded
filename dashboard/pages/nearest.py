"""What a page that isn't there leads to instead: where else the subject is, what is called alike, which versions there are.

Nothing is told that the viewer may not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.links import PAGES, subject_url
from dashboard.pages.copies import copy_url, newest_copy, restore_label
from dashboard.pages.frame import page_actor
from dashboard.presenters.frame import Link
from registry.access.roles import Actor, may
from registry.errors import SchemadeskError, SubjectNotFound, VersionNotFound
from registry.promotions.selectors import list_environments
from registry.search.selectors.nearest import nearest_subjects
from registry.subjects import selectors
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import get_registry

READ: Final = "schema.read"
#: versions that are listed, the newest
VERSIONS: Final = 5


def nearest(request: HttpRequest, error: Exception) -> tuple[Link, ...]:
    """The links, the likeliest first; none for an error that is about no subject."""
    match = request.resolver_match
    if not isinstance(error, (SubjectNotFound, VersionNotFound)) or match is None:
        return ()
    actor = page_actor(request)
    try:
        place, name = _meant(match.kwargs, error)
    except SchemadeskError:
        return ()
    if place is None or name is None or not may(actor, READ, registry=place.name, subject=name.qualified):
        return ()
    page = match.url_name if match.url_name in PAGES else ""
    if isinstance(error, VersionNotFound):
        return (*_versions(place, name), *_elsewhere(place, name, actor))
    return (*_kept(place, name, actor), *_elsewhere(place, name, actor), *_alike(place, name, page, actor))


def _meant(kwargs: Mapping[str, str], error: SchemadeskError) -> tuple[Registry | None, SubjectName | None]:
    """The subject that the address names, unless the error is about another one. Raises RegistryNotFound, InvalidName."""
    registry, subject = kwargs.get("registry"), kwargs.get("subject")
    if not registry or not subject:
        return None, None
    name = parse_subject(subject)
    about = error.details.get("subject", name.qualified)
    return get_registry(registry), name if about == name.qualified else None


def _kept(place: Registry, name: SubjectName, actor: Actor) -> tuple[Link, ...]:
    """The copy of a subject that was deleted for good."""
    copy = newest_copy(place, name, actor)
    return (Link(label=restore_label(copy), url=copy_url(place.name, copy.number)),) if copy else ()


def _elsewhere(place: Registry, name: SubjectName, actor: Actor) -> tuple[Link, ...]:
    """The other registries that have the subject, environments first."""
    order = list_environments()
    presence = selectors.presence_of(place, name).seen_by(actor, name)
    found = [other for other in presence.held if other != place.name]
    found.sort(key=lambda other: (order.index(other) if other in order else len(order), other))
    return tuple(
        Link(
            label=gettext("%(subject)s in %(registry)s") % {"subject": name.qualified, "registry": other},
            url=subject_url(other, name.qualified),
        )
        for other in found
    )


def _alike(place: Registry, name: SubjectName, page: str, actor: Actor) -> tuple[Link, ...]:
    return tuple(
        Link(label=other, url=subject_url(place.name, other, page))
        for other in nearest_subjects(place.pk, name.qualified, by=actor)
    )


def _versions(place: Registry, name: SubjectName) -> tuple[Link, ...]:
    """The newest versions that there are."""
    try:
        numbers = selectors.list_versions(place, name)
    except SubjectNotFound:
        return ()
    return tuple(
        Link(
            label=gettext("version %(version)s of %(subject)s") % {"version": number, "subject": name.qualified},
            url=subject_url(place.name, name.qualified, version=number),
        )
        for number in reversed(numbers[-VERSIONS:])
    )
