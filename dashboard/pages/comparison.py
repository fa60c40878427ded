"""The compare page: any two versions, cards worst first, both directions, then the text. All of it is in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.change_cards import MAX_CARDS, present_comparison
from dashboard.pages.data_evidence import comparison_notes
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.notes import facts_of
from dashboard.pages.numbers import whole_number
from dashboard.pages.skipped import skipped_between
from dashboard.pages.subject_parts import subject_crumbs, subject_parts
from dashboard.pages.subjects import pretty
from dashboard.presenters.business_words import Fact, in_business_words
from dashboard.presenters.comparison import ChoiceGroup, ComparePage, Comparison, Side, TextSwitch
from dashboard.presenters.frame import Choice, Link, Problem, Section
from registry.access.roles import require
from registry.errors import SchemadeskError, SubjectNotFound
from registry.promotions.selectors import list_environments
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import Registry, get_registry

#: query parameters that say how the page is drawn, and how each is written when it isn't the usual way
_DRAWN = {"view": "split", "text": "submitted", "unchanged": "1", "all": "1", "words": "business"}


@dataclass(frozen=True)
class _Asked:
    """A side as the address names it: `3` for this registry's version, `prod:3` for another's."""

    registry: str
    version: str

    def written(self, here: str) -> str:
        return self.version if self.registry == here else f"{self.registry}:{self.version}"


@dataclass(frozen=True)
class _Sides:
    """What is compared: versions of `subject`; the old one of `other`, if it is of another subject."""

    here: Registry
    subject: SubjectName
    other: SubjectName
    old: _Asked
    new: _Asked

    def url(self, **query: object) -> str:
        """The page of these sides."""
        return _url(self.here.name, self.subject, self.old, self.new, self.other, query)

    def swapped(self, **query: object) -> str:
        """The page of the sides turned around."""
        return _url(self.here.name, self.other, self.new, self.old, self.subject, query)


def _url(
    here: str, subject: SubjectName, old: _Asked, new: _Asked, other: SubjectName, query: dict[str, object]
) -> str:
    given: dict[str, object] = {"from": old.written(here), "to": new.written(here)}
    given["with"] = other.qualified if other != subject else None
    return subject_url(here, subject.qualified, "compare", **given | query)


def compare_page(request: HttpRequest, registry: str, subject: str) -> ComparePage:
    """The page of `?from=3&to=prod:4`; without them the newest version and the one before it.

    `with` names another subject for the old side. Raises RegistryNotFound, SubjectNotFound, NotAllowed.
    """
    here, name = get_registry(registry), parse_subject(subject)
    held = _held(here, name)
    other, other_error = _other(request, here, name)
    old_held = held if other == name else _held(here, other)
    sides = _sides(request, here, name, other, held[here.name], old_held[here.name])
    drawn = {key: value if request.GET.get(key) == value else None for key, value in _DRAWN.items()}
    is_whole = drawn["all"] is not None or request.GET.get("as") == "markdown"
    comparison, problem = _compared(request, sides, submitted=drawn["text"] is not None, is_whole=is_whole)
    if comparison and drawn["words"]:
        comparison = in_business_words(comparison, _facts(sides), comparison.new.format)
    other_side, other_text = (None, "") if comparison else _readable_side(sides)
    one_place = other == name and sides.old.registry == sides.new.registry == registry
    return ComparePage(
        frame=make_frame(
            request,
            title=gettext("Compare %(old)s and %(new)s")
            % {"old": _named(sides, sides.old), "new": _named(sides, sides.new)},
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=subject_crumbs(registry, name),
            parts=subject_parts(registry, name, "compare"),
            url_in=lambda place: subject_url(place, name.qualified),
        ),
        registry=registry,
        subject=name.qualified,
        subject_url=subject_url(registry, name.qualified),
        compare_url=subject_url(registry, name.qualified, "compare"),
        from_groups=_groups(old_held, registry, sides.old),
        to_groups=_groups(held, registry, sides.new),
        swap_url=sides.swapped(**drawn),
        view="split" if drawn["view"] else "unified",
        unified_url=sides.url(**drawn | {"view": None}),
        split_url=sides.url(**drawn | {"view": _DRAWN["view"]}),
        text_switch=TextSwitch(
            as_submitted=drawn["text"] is not None,
            laid_out_url=sides.url(**drawn | {"text": None}),
            submitted_url=sides.url(**drawn | {"text": _DRAWN["text"]}),
        ),
        other_subject=other.qualified if other != name else "",
        other_error=other_error,
        same_subject_url=subject_url(registry, name.qualified, "compare"),
        markdown_url=sides.url(**{"as": "markdown"}),
        simulate_url=subject_url(
            registry, name.qualified, "simulate", writer=sides.old.version, reader=sides.new.version
        )
        if one_place and comparison and comparison.problem is None
        else "",
        unchanged_shown=drawn["unchanged"] is not None,
        unchanged_url=sides.url(**drawn | {"unchanged": None if drawn["unchanged"] else _DRAWN["unchanged"]}),
        all_url="" if drawn["all"] else sides.url(**drawn | {"all": _DRAWN["all"]}),
        words_url=sides.url(**drawn | {"words": None if drawn["words"] else _DRAWN["words"]}),
        in_business_words=drawn["words"] is not None,
        comparison=comparison,
        problem=problem,
        other_side=other_side,
        other_text=other_text,
    )


def _named(sides: _Sides, side: _Asked) -> str:
    version = gettext("version %(version)s") % {"version": side.version}
    return (
        version
        if sides.old.registry == sides.new.registry
        else gettext("%(version)s of %(registry)s") % {"version": version, "registry": side.registry}
    )


def _other(request: HttpRequest, here: Registry, name: SubjectName) -> tuple[SubjectName, str]:
    """The old side's subject; of one that can't be compared the page's own, and why."""
    asked = request.GET.get("with", "").strip()
    if not asked:
        return name, ""
    try:
        other = parse_subject(asked)
        require(page_actor(request), "schema.read", registry=here.name, subject=other.qualified)
        selectors.list_versions(here, other, deleted=True)
    except SubjectNotFound:
        return name, gettext("%(here)s has no subject %(asked)s.") % {"here": here.name, "asked": repr(asked[:200])}
    except SchemadeskError as error:
        return name, error.message
    return other, ""


def _held(here: Registry, name: SubjectName) -> dict[str, list[int]]:
    """Registry → its versions, ascending; soft-deleted ones of the registry that the page is of too."""
    own = selectors.list_versions(here, name, deleted=True)
    elsewhere = selectors.presence_of(here, name).held
    order = list_environments()
    names = [here.name, *(place for place in order if place in elsewhere and place != here.name)]
    return {place: own if place == here.name else sorted(elsewhere[place]) for place in names}


def _sides(
    request: HttpRequest,
    here: Registry,
    name: SubjectName,
    other: SubjectName,
    held: Sequence[int],
    old_held: Sequence[int],
) -> _Sides:
    new = _asked(request.GET.get("to", ""), here.name) or _Asked(here.name, str(held[-1]))
    old = _asked(request.GET.get("from", ""), here.name)
    if old is None:
        is_line = other == name and new.registry == here.name
        old = _Asked(here.name, str(_before(held, new.version) if is_line else old_held[-1]))
    return _Sides(here, name, other, old, new)


def _asked(text: str, here: str) -> _Asked | None:
    place, _, version = text.strip().rpartition(":")
    return _Asked(place or here, version) if version else None


def _before(numbers: Sequence[int], new: str) -> int:
    """The version before the new one: never the same on both sides where there are two."""
    limit = whole_number(new, digits=10)
    earlier = [number for number in numbers if limit is not None and number < limit]
    return earlier[-1] if earlier else numbers[0]


def _groups(held: dict[str, list[int]], here: str, chosen: _Asked) -> tuple[ChoiceGroup, ...]:
    return tuple(
        ChoiceGroup(
            label=place,
            choices=tuple(
                Choice(
                    value=_Asked(place, str(number)).written(here),
                    label=gettext("%(place)s · version %(number)s") % {"place": place, "number": number},
                    selected=chosen == _Asked(place, str(number)),
                )
                for number in reversed(numbers)
            ),
        )
        for place, numbers in held.items()
    )


def _compared(
    request: HttpRequest, sides: _Sides, *, submitted: bool, is_whole: bool
) -> tuple[Comparison | None, Problem | None]:
    try:
        old_place = _allowed(request, sides.here, sides.old.registry, sides.other)
        new_place = _allowed(request, sides.here, sides.new.registry, sides.subject)
        config = selectors.effective_config(sides.here, sides.subject)
        found = selectors.compare_sides(
            selectors.Side(old_place, sides.other, sides.old.version),
            selectors.Side(new_place, sides.subject, sides.new.version),
            profile=config.profile,
        )
    except SchemadeskError as error:
        choose = subject_url(sides.here.name, sides.subject.qualified)
        link = Link(label=gettext("Versions of %(qualified)s") % {"qualified": sides.subject.qualified}, url=choose)
        return None, Problem(what=error.message, cure=gettext("Choose two versions that are there."), links=(link,))
    limit = None if is_whole else MAX_CARDS
    shown = present_comparison(
        found,
        sides.old.registry,
        sides.new.registry,
        level=config.level,
        submitted=submitted,
        limit=limit,
        notes=comparison_notes(old_place, sides.other, found, by=page_actor(request)),
        by=page_actor(request),
        skipped=skipped_between(
            selectors.presence_of(sides.here, sides.subject),
            (sides.old.registry, found.old),
            (sides.new.registry, found.new),
        )
        if sides.other == sides.subject
        else "",
    )
    return shown, None


def _facts(sides: _Sides) -> dict[str, Fact]:
    """What both versions say of their fields, the new one first: a field that goes is known from the old one."""
    found: dict[str, Fact] = {}
    for side, subject in ((sides.old, sides.other), (sides.new, sides.subject)):
        place = sides.here if side.registry == sides.here.name else get_registry(side.registry)
        found |= facts_of(place, subject, side.version)
    return found


def _allowed(request: HttpRequest, here: Registry, name: str, subject: SubjectName) -> Registry:
    """The registry of a side, in which the reader may read the subject."""
    require(page_actor(request), "schema.read", registry=name, subject=subject.qualified)
    return here if name == here.name else get_registry(name)


def _readable_side(sides: _Sides) -> tuple[Side | None, str]:
    """The side that is there, where the other isn't: its text can be read all the same."""
    for side, subject in ((sides.new, sides.subject), (sides.old, sides.other)):
        try:
            if side.registry != sides.here.name:
                continue
            info = selectors.get_version(sides.here, subject, side.version, deleted=True)
        except SchemadeskError:
            continue  # this side is the one that the problem is about, or both are
        place = environment_of(side.registry, list_environments(), current=True)
        url = subject_url(side.registry, subject.qualified, version=info.version)
        return Side(environment=place, version=info.version, url=url, format=info.schema.schema_type), pretty(info)
    return None, ""
