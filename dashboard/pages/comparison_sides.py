"""What can stand on a side of the compare page: versions, one's own drafts, and shapes that were seen in data.

In the address a side is `3`, `latest`, `draft-12` or `observed-7` of the registry that the page is of; of another
registry it is `prod:3`. A draft has the number of its page, a shape that of the finding which saw it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.presenters.comparison import ChoiceGroup
from dashboard.presenters.frame import Choice
from registry.access.roles import Actor, may, require
from registry.drift.observed_shapes import ObservedShape, observed_shape, shapes_of
from registry.errors import DraftNotFound, InvalidVersion
from registry.promotions.selectors import DraftInfo, get_draft, list_drafts, list_environments
from registry.subjects import selectors
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import Registry, get_registry

DRAFT, OBSERVED = "draft", "observed"
#: versions of a registry that are offered
MOST: Final = 100
_TEXT: Final = re.compile(r"(draft|observed)-([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True)
class Asked:
    """A side as the address names it."""

    registry: str
    version: str

    @property
    def text(self) -> tuple[str, int] | None:
        """DRAFT or OBSERVED with its number; None for a version."""
        found = _TEXT.fullmatch(self.version)
        return (found[1], int(found[2])) if found else None

    def written(self, here: str) -> str:
        """The side in an address of a page of the registry `here`."""
        return self.version if self.registry == here else f"{self.registry}:{self.version}"

    @property
    def name(self) -> str:
        """What it is called, without its registry."""
        if self.text is None:
            return gettext("version %(version)s") % {"version": self.version}
        kind, number = self.text
        if kind == DRAFT:
            return gettext("your draft %(number)s") % {"number": number}
        return gettext("what the data hold by finding %(number)s") % {"number": number}


def asked_side(text: str, here: str) -> Asked | None:
    """The side that a value of the address names; None where it names none."""
    place, _, version = text.strip().rpartition(":")
    return Asked(place or here, version) if version else None


@dataclass(frozen=True)
class Content:
    """What stands on a side; of a text what it is called, the page it is on, and what is to be known of it."""

    side: selectors.Side | selectors.Text
    label: str = ""
    url: str = ""
    note: str = ""


def content_of(here: Registry, asked: Asked, subject: SubjectName, actor: Actor) -> Content:
    """The side's content, for somebody who may read it.

    Somebody else's draft, and a shape or draft of another subject, are as those that aren't there. Raises NotAllowed,
    RegistryNotFound, DraftNotFound, FindingNotFound, InvalidInput.
    """
    require(actor, "schema.read", registry=asked.registry, subject=subject.qualified)
    place = here if asked.registry == here.name else get_registry(asked.registry)
    if asked.text is None:
        return Content(selectors.Side(place, subject, asked.version))
    kind, number = asked.text
    if actor.past:
        raise InvalidVersion(gettext("Drafts, and what data hold, are compared at present alone."))
    return _draft(place, subject, number, actor) if kind == DRAFT else _observed(place, subject, number, actor)


def _draft(place: Registry, subject: SubjectName, number: int, actor: Actor) -> Content:
    missing = DraftNotFound(gettext("You have no draft %(number)s of this subject.") % {"number": number}, draft=number)
    if actor.user_id is None:
        raise missing
    try:
        info = get_draft(number, user_id=actor.user_id)
    except DraftNotFound as error:
        raise missing from error
    if (info.registry, info.subject) != (place.name, subject):
        raise missing
    return Content(
        selectors.Text(place, subject, info.text, info.schema_type, info.references),
        label=gettext("your draft %(number)s") % {"number": number},
        url=reverse("ui:draft", args=[number]),
    )


def _observed(place: Registry, subject: SubjectName, number: int, actor: Actor) -> Content:
    seen = observed_shape(number, place.name, subject, by=actor)
    references = selectors.get_version(place, subject, "latest").schema.references
    return Content(
        selectors.Text(place, subject, seen.text, seen.schema_type, references),
        label=gettext("what the data hold"),
        url=reverse("ui:finding", args=[number]),
        note=seen.note,
    )


# -- the choices ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """What can be put on a side: the versions by registry, the reader's drafts, and shapes seen in the registry.

    `presence` is where the subject is, as far as the reader may read it there.
    """

    place: str
    versions: Mapping[str, Sequence[int]]
    presence: selectors.SubjectPresence
    drafts: Sequence[DraftInfo] = ()
    shapes: Sequence[ObservedShape] = ()


def held_sides(place: Registry, name: SubjectName, actor: Actor) -> Held:
    """All that the reader may put on a side, of a subject that is in the registry; no texts in the past.

    Raises SubjectNotFound.
    """
    presence = selectors.presence_of(place, name).seen_by(actor, name)
    versions = _held_versions(place, name, presence)
    if actor.past:
        return Held(place.name, versions, presence)
    drafts = list_drafts(actor.user_id, subject=name) if actor.user_id is not None else []
    readable = [each for each in drafts if may(actor, "schema.read", registry=each.registry, subject=name.qualified)]
    return Held(place.name, versions, presence, readable, shapes_of(place.name, name, by=actor))


def side_choices(held: Held, here: str, chosen: Asked) -> tuple[ChoiceGroup, ...]:
    """The choices of a side on a page of the registry `here`; no group without one."""
    versions = [
        (each, [(Asked(each, str(number)), _version(each, number)) for number in _offered(each, numbers, chosen)])
        for each, numbers in held.versions.items()
    ]
    drafts = [(Asked(info.registry, f"{DRAFT}-{info.id}"), _draft_label(info)) for info in held.drafts]
    shapes = [(Asked(held.place, f"{OBSERVED}-{each.finding}"), _shape_label(held.place, each)) for each in held.shapes]
    return tuple(
        ChoiceGroup(
            label=label,
            choices=tuple(
                Choice(value=side.written(here), label=said, selected=side == chosen) for side, said in choices
            ),
        )
        for label, choices in (*versions, (gettext("Your drafts"), drafts), (gettext("Seen in data"), shapes))
        if choices
    )


def _offered(place: str, numbers: Sequence[int], chosen: Asked) -> list[int]:
    """The newest versions, and the chosen one; the address takes any other."""
    newest = numbers[: -MOST - 1 : -1]
    kept = [number for number in numbers[:-MOST] if chosen == Asked(place, str(number))]
    return [*newest, *kept]


def _version(place: str, number: int) -> str:
    return gettext("%(place)s · version %(number)s") % {"place": place, "number": number}


def _draft_label(info: DraftInfo) -> str:
    return gettext("%(place)s · your draft %(number)s of %(date)s") % {
        "place": info.registry,
        "number": info.id,
        "date": f"{info.changed_at:%Y-%m-%d}",
    }


def _shape_label(place: str, shape: ObservedShape) -> str:
    return gettext("%(place)s · topic %(topic)s as of %(date)s") % {
        "place": place,
        "topic": shape.topic,
        "date": f"{shape.last_seen:%Y-%m-%d}",
    }


def _held_versions(place: Registry, name: SubjectName, presence: selectors.SubjectPresence) -> dict[str, list[int]]:
    """Registry → its versions, ascending, where they are seen; of `place` soft-deleted ones too.

    The registry itself comes first, then the environments in their order, then the others.
    """
    own = selectors.list_versions(place, name, deleted=True)
    elsewhere = presence.held
    order = list_environments()
    names = [*(each for each in order if each in elsewhere), *sorted(elsewhere.keys() - set(order))]
    found = {place.name: own}
    for each in names:
        if each != place.name:
            found[each] = sorted(elsewhere[each])
    return found
