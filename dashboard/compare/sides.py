"""The two sides of the compare page, and their names in the URL.

A side is a version, one of the reader's drafts, or a shape seen in data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.comparison import ChoiceGroup
from dashboard.components.frame import page_actor
from dashboard.components.links import subject_url, whole_number
from dashboard.components.widgets import Choice
from registry.access.roles import Actor, may, may_in, require
from registry.drift.proposals.observed_schema import ObservedShape, observed_shape, shapes_of
from registry.errors import DraftNotFound, InvalidVersion, SchemadeskError, SubjectNotFound
from registry.promotions.selectors import DraftInfo, get_draft, list_drafts, list_environments
from registry.subjects import selectors
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

DRAFT, OBSERVED = "draft", "observed"
#: maximum number of versions to choose from per registry
MOST: Final = 100
_TEXT: Final = re.compile(r"(draft|observed)-([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True)
class SideAddress:
    """A side as named in the URL."""

    registry: str
    version: str

    @property
    def text(self) -> tuple[str, int] | None:
        """DRAFT or OBSERVED with the number; None for a version."""
        match = _TEXT.fullmatch(self.version)
        return (match[1], int(match[2])) if match else None

    def written(self, here: str) -> str:
        """Return the side's name in URLs of pages of the registry `here`."""
        return self.version if self.registry == here else f"{self.registry}:{self.version}"

    @property
    def name(self) -> str:
        """The label of the side, without its registry."""
        if self.text is None:
            return gettext("version %(version)s") % {"version": self.version}
        kind, number = self.text
        if kind == DRAFT:
            return gettext("your draft %(number)s") % {"number": number}
        return gettext("observed data from finding %(number)s") % {"number": number}


def asked_side(text: str, here: str) -> SideAddress | None:
    """Parse a side in the URL; None if it has none."""
    registry, _, version = text.strip().rpartition(":")
    return SideAddress(registry or here, version) if version else None


@dataclass(frozen=True)
class Content:
    """The content of a side; for a text also its label, its page, and a note."""

    side: selectors.Side | selectors.Text
    label: str = ""
    url: str = ""
    note: str = ""


def content_of(here: Registry, address: SideAddress, subject: SubjectName, actor: Actor) -> Content:
    """Return the side's content if the actor may read it.

    Other people's drafts, and a shape or draft of another subject, are treated as missing. Raises NotAllowed,
    RegistryNotFound, DraftNotFound, FindingNotFound, InvalidInput.
    """
    require(actor, "schema.read", registry=address.registry, subject=subject.qualified)
    registry = here if address.registry == here.name else get_registry(address.registry)
    if address.text is None:
        return Content(selectors.Side(registry, subject, address.version))
    kind, number = address.text
    if actor.past:
        raise InvalidVersion(gettext("Drafts and observed data can be compared only in the present."))
    return _draft(registry, subject, number, actor) if kind == DRAFT else _observed(registry, subject, number, actor)


def _draft(registry: Registry, subject: SubjectName, number: int, actor: Actor) -> Content:
    missing = DraftNotFound(gettext("You have no draft %(number)s of this subject.") % {"number": number}, draft=number)
    if actor.user_id is None:
        raise missing
    try:
        info = get_draft(number, user_id=actor.user_id)
    except DraftNotFound as error:
        raise missing from error
    if (info.registry, info.subject) != (registry.name, subject):
        raise missing
    return Content(
        selectors.Text(registry, subject, info.text, info.schema_type, info.references),
        label=gettext("your draft %(number)s") % {"number": number},
        url=reverse("ui:draft", args=[number]),
    )


def _observed(registry: Registry, subject: SubjectName, number: int, actor: Actor) -> Content:
    shape = observed_shape(number, registry.name, subject, by=actor)
    references = selectors.get_version(registry, subject, "latest").schema.references
    return Content(
        selectors.Text(registry, subject, shape.text, shape.schema_type, references),
        label=gettext("observed data"),
        url=reverse("ui:finding", args=[number]),
        note=shape.note,
    )


# -- the choices ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SideOptions:
    """The choices for a side: the versions by registry, the reader's drafts, and shapes seen in the registry.

    `presence` has the registries of the subject that the reader may read.
    """

    registry: str
    versions: Mapping[str, Sequence[int]]
    presence: selectors.SubjectPresence
    drafts: Sequence[DraftInfo] = ()
    shapes: Sequence[ObservedShape] = ()


def side_options(registry: Registry, name: SubjectName, actor: Actor) -> SideOptions:
    """Return the choices for a side, for a subject in the registry; in the past only versions.

    Raises SubjectNotFound.
    """
    presence = selectors.presence_of(registry, name).visible_to(actor, name)
    versions = _held_versions(registry, name, presence)
    if actor.past:
        return SideOptions(registry.name, versions, presence)
    drafts = list_drafts(actor.user_id, subject=name) if actor.user_id is not None else []
    readable = [draft for draft in drafts if may(actor, "schema.read", registry=draft.registry, subject=name.qualified)]
    return SideOptions(registry.name, versions, presence, readable, shapes_of(registry.name, name, by=actor))


def side_choices(content_choices: SideOptions, here: str, chosen: SideAddress) -> tuple[ChoiceGroup, ...]:
    """Return the choices of a side, grouped, on a page of the registry `here`; empty groups are omitted."""
    versions = [
        (
            registry,
            [
                (SideAddress(registry, str(number)), _version(registry, number))
                for number in _offered(registry, numbers, chosen)
            ],
        )
        for registry, numbers in content_choices.versions.items()
    ]
    drafts = [(SideAddress(info.registry, f"{DRAFT}-{info.id}"), _draft_label(info)) for info in content_choices.drafts]
    shapes = [
        (
            SideAddress(content_choices.registry, f"{OBSERVED}-{registry.finding}"),
            _shape_label(content_choices.registry, registry),
        )
        for registry in content_choices.shapes
    ]
    return tuple(
        ChoiceGroup(
            label=label,
            choices=tuple(
                Choice(value=side.written(here), label=text, selected=side == chosen) for side, text in choices
            ),
        )
        for label, choices in (*versions, (gettext("Your drafts"), drafts), (gettext("Observed data"), shapes))
        if choices
    )


def _offered(registry_name: str, numbers: Sequence[int], chosen: SideAddress) -> list[int]:
    """Return the newest versions and the selected one; the URL accepts any other."""
    newest = numbers[: -MOST - 1 : -1]
    older = [number for number in numbers[:-MOST] if chosen == SideAddress(registry_name, str(number))]
    return [*newest, *older]


def _version(registry_name: str, number: int) -> str:
    return gettext("%(place)s · version %(number)s") % {"place": registry_name, "number": number}


def _draft_label(info: DraftInfo) -> str:
    return gettext("%(place)s · your draft %(number)s of %(date)s") % {
        "place": info.registry,
        "number": info.id,
        "date": f"{info.changed_at:%Y-%m-%d}",
    }


def _shape_label(registry_name: str, shape: ObservedShape) -> str:
    return gettext("%(place)s · topic %(topic)s as of %(date)s") % {
        "place": registry_name,
        "topic": shape.topic,
        "date": f"{shape.last_seen:%Y-%m-%d}",
    }


def _held_versions(registry: Registry, name: SubjectName, presence: selectors.SubjectPresence) -> dict[str, list[int]]:
    """Return the versions by registry, ascending, that the reader may see; in `registry` including soft-deleted ones.

    The registry itself comes first, then the environments in order, then the others.
    """
    own = selectors.list_versions(registry, name, deleted=True)
    elsewhere = presence.fingerprints
    order = list_environments()
    names = [
        *(registry_name for registry_name in order if registry_name in elsewhere),
        *sorted(elsewhere.keys() - set(order)),
    ]
    versions = {registry.name: own}
    for registry_name in names:
        if registry_name != registry.name:
            versions[registry_name] = sorted(elsewhere[registry_name])
    return versions


@dataclass(frozen=True)
class Sides:
    """The two sides: versions or texts of `subject`; the old one can be of another subject, `other`.

    `other_place` is the registry where `other` was found.
    """

    here: Registry
    subject: SubjectName
    other: SubjectName
    other_place: Registry
    old: SideAddress
    new: SideAddress

    def url(self, **query: object) -> str:
        """Return the URL of these sides."""
        return _url(self.here.name, self.subject, self.old, self.new, self.other, query)

    def swapped(self, **query: object) -> str:
        """Return the URL of the swapped sides."""
        return _url(self.other_place.name, self.other, self.new, self.old, self.subject, query)

    @property
    def is_of_one_line(self) -> bool:
        """Whether both are versions of one subject in the page's registry."""
        registries = {self.old.registry, self.new.registry, self.here.name}
        return self.other == self.subject and len(registries) == 1 and self.are_versions

    @property
    def are_versions(self) -> bool:
        """Whether both are registered."""
        return self.old.text is None and self.new.text is None


def _url(
    here: str, subject: SubjectName, old: SideAddress, new: SideAddress, other: SubjectName, query: dict[str, object]
) -> str:
    parameters: dict[str, object] = {"from": old.written(here), "to": new.written(here)}
    parameters["with"] = other.qualified if other != subject else None
    return subject_url(here, subject.qualified, "compare", **parameters | query)


@dataclass(frozen=True)
class ComparedSubject:
    """The old side's subject and its registry; if it can't be compared, the page's own subject, and why."""

    name: SubjectName
    registry: Registry
    asked_in: str = ""
    error: str = ""


def other_subject(request: HttpRequest, here: Registry, name: SubjectName) -> ComparedSubject:
    """Find the subject that `with` names: in the registry that `in` names, else in this one, else in the old side's."""
    subject_text, asked_in = request.GET.get("with", "").strip(), request.GET.get("in", "").strip()
    if not subject_text:
        return ComparedSubject(name, here)
    old = asked_side(request.GET.get("from", ""), here.name)
    problems = []
    for registry_name in dict.fromkeys([asked_in or here.name, old.registry if old else here.name]):
        try:
            return ComparedSubject(*_there(page_actor(request), here, registry_name, subject_text))
        except SubjectNotFound:
            problems.append(
                gettext("%(here)s has no subject %(asked)s.")
                % {"here": registry_name[:200], "asked": repr(subject_text[:200])}
            )
        except SchemadeskError as error:
            problems.append(error.message)
    return ComparedSubject(name, here, asked_in, problems[0])


def _there(actor: Actor, here: Registry, registry_name: str, subject_text: str) -> tuple[SubjectName, Registry]:
    other = parse_subject(subject_text)
    require(actor, "schema.read", registry=registry_name, subject=other.qualified)
    registry = here if registry_name == here.name else get_registry(registry_name)
    selectors.list_versions(registry, other, deleted=True)
    return other, registry


def place_choices(actor: Actor, chosen: str) -> tuple[Choice, ...]:
    """Return the registries where another subject can be chosen: those that the reader may read something in."""
    return tuple(
        Choice(value=registry, label=registry, selected=registry == chosen)
        for registry in selectors.registry_names()
        if may_in(actor, "schema.read", registry)
    )


def sides_of(
    request: HttpRequest,
    here: Registry,
    name: SubjectName,
    other: ComparedSubject,
    numbers: Sequence[int],
    old_held: Sequence[int],
) -> Sides:
    """Return the sides in `from` and `to`; by default the newest, and the one before or another subject's newest."""
    new = asked_side(request.GET.get("to", ""), here.name) or SideAddress(here.name, str(numbers[-1]))
    old = asked_side(request.GET.get("from", ""), here.name)
    if old is None:
        is_line = (other.name, other.registry) == (name, here) and new.registry == here.name
        old = SideAddress(other.registry.name, str(_before(numbers, new) if is_line else old_held[-1]))
    return Sides(here, name, other.name, other.registry, old, new)


def _before(numbers: Sequence[int], new: SideAddress) -> int:
    """Return the version before the new side, for a text the newest; the sides differ if there are two versions."""
    if new.text is not None:
        return numbers[-1]
    limit = whole_number(new.version, digits=10)
    earlier = [number for number in numbers if limit is not None and number < limit]
    return earlier[-1] if earlier else numbers[0]
