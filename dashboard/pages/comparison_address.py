"""The address of the compare page: which two sides it names, and how it is written of other ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.comparison_sides import Asked, asked_side
from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from dashboard.presenters.frame import Choice
from registry.access.roles import Actor, may_in, require
from registry.errors import SchemadeskError, SubjectNotFound
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import Registry, get_registry


@dataclass(frozen=True)
class Sides:
    """What is compared: versions and texts of `subject`; the old one of `other`, if it is of another subject.

    `other_place` is the registry in which that one was found.
    """

    here: Registry
    subject: SubjectName
    other: SubjectName
    other_place: Registry
    old: Asked
    new: Asked

    def url(self, **query: object) -> str:
        """The page of these sides."""
        return _url(self.here.name, self.subject, self.old, self.new, self.other, query)

    def swapped(self, **query: object) -> str:
        """The page of the sides turned around."""
        return _url(self.other_place.name, self.other, self.new, self.old, self.subject, query)

    @property
    def is_of_one_line(self) -> bool:
        """Whether both are versions of one subject of the registry that the page is of."""
        places = {self.old.registry, self.new.registry, self.here.name}
        return self.other == self.subject and len(places) == 1 and self.are_versions

    @property
    def are_versions(self) -> bool:
        """Whether both are registered."""
        return self.old.text is None and self.new.text is None


def _url(here: str, subject: SubjectName, old: Asked, new: Asked, other: SubjectName, query: dict[str, object]) -> str:
    given: dict[str, object] = {"from": old.written(here), "to": new.written(here)}
    given["with"] = other.qualified if other != subject else None
    return subject_url(here, subject.qualified, "compare", **given | query)


@dataclass(frozen=True)
class Other:
    """The old side's subject and where it is; of one that can't be compared the page's own, and why."""

    name: SubjectName
    place: Registry
    asked_in: str = ""
    error: str = ""


def other_subject(request: HttpRequest, here: Registry, name: SubjectName) -> Other:
    """What `with` names: in the registry that `in` names, else in this one, else in that of the old side."""
    asked, asked_in = request.GET.get("with", "").strip(), request.GET.get("in", "").strip()
    if not asked:
        return Other(name, here)
    old = asked_side(request.GET.get("from", ""), here.name)
    problems = []
    for place in dict.fromkeys([asked_in or here.name, old.registry if old else here.name]):
        try:
            return Other(*_there(page_actor(request), here, place, asked))
        except SubjectNotFound:
            problems.append(
                gettext("%(here)s has no subject %(asked)s.") % {"here": place[:200], "asked": repr(asked[:200])}
            )
        except SchemadeskError as error:
            problems.append(error.message)
    return Other(name, here, asked_in, problems[0])


def _there(actor: Actor, here: Registry, place: str, asked: str) -> tuple[SubjectName, Registry]:
    other = parse_subject(asked)
    require(actor, "schema.read", registry=place, subject=other.qualified)
    found = here if place == here.name else get_registry(place)
    selectors.list_versions(found, other, deleted=True)
    return other, found


def place_choices(actor: Actor, chosen: str) -> tuple[Choice, ...]:
    """The registries of which the reader may read something, to look for another subject in."""
    return tuple(
        Choice(value=each, label=each, selected=each == chosen)
        for each in selectors.registry_names()
        if may_in(actor, "schema.read", each)
    )


def sides_of(
    request: HttpRequest, here: Registry, name: SubjectName, other: Other, held: Sequence[int], old_held: Sequence[int]
) -> Sides:
    """What `from` and `to` name; without them the newest and the one before it, of another subject its newest."""
    new = asked_side(request.GET.get("to", ""), here.name) or Asked(here.name, str(held[-1]))
    old = asked_side(request.GET.get("from", ""), here.name)
    if old is None:
        is_line = (other.name, other.place) == (name, here) and new.registry == here.name
        old = Asked(other.place.name, str(_before(held, new) if is_line else old_held[-1]))
    return Sides(here, name, other.name, other.place, old, new)


def _before(numbers: Sequence[int], new: Asked) -> int:
    """The version before the new side, of a text the newest: never the same on both sides where there are two."""
    if new.text is not None:
        return numbers[-1]
    limit = whole_number(new.version, digits=10)
    earlier = [number for number in numbers if limit is not None and number < limit]
    return earlier[-1] if earlier else numbers[0]
