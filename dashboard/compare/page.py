"""The compare page: any two sides, cards worst first, both directions, then the text. All of its state is in the URL.

If the sides are in different registries or contexts, it also shows how their settings differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.compare.business_terms import Fact, facts_of, in_business_words
from dashboard.compare.change_cards import MAX_CARDS, present_comparison
from dashboard.compare.change_details import skipped_between
from dashboard.compare.comparison import (
    ComparedSide,
    ComparePage,
    ExtraChange,
    TextSwitch,
    TextTools,
    VersionComparison,
)
from dashboard.compare.proposed_schema import comparison_notes
from dashboard.compare.sides import (
    Content,
    SideAddress,
    Sides,
    content_of,
    other_subject,
    place_choices,
    side_choices,
    side_options,
    sides_of,
)
from dashboard.components.badges import ChangeKind
from dashboard.components.diff import differing_lines, laid_out_if_json
from dashboard.components.frame import environment_of, page_actor, subject_frame
from dashboard.components.links import subject_url, switch_url, whole_number
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Link, Problem
from dashboard.registries.policy import SAID
from dashboard.subjects.page import pretty
from registry.access.roles import Actor
from registry.errors import SchemadeskError
from registry.promotions.selectors import list_environments
from registry.subjects import selectors
from registry.subjects.policy.effective_policy import scope_settings
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

SETTINGS: Final = _("Settings")
#: settings that affect how versions are checked → label
_NAMES: Final = {
    "level": _("Compatibility"),
    "mode": _("Mode"),
    **{
        name: SAID[name][0]
        for name in ("normalize", "profile", "policy", "compatibility_policy", "compatibility_group")
    },
}


def settings_changes(
    old: selectors.Side | selectors.Text, new: selectors.Side | selectors.Text
) -> tuple[ExtraChange, ...]:
    """Return the settings that differ, such as the level and mode; none within one subject of one registry.

    Two queries.
    """
    if (old.registry.pk, old.subject) == (new.registry.pk, new.subject):
        return ()
    before, after = _settings(old), _settings(new)
    return tuple(
        ExtraChange(
            part=SETTINGS,
            name=_NAMES[setting],
            kind=_kind(before[setting], after[setting]),
            before=before[setting],
            after=after[setting],
        )
        for setting in _NAMES
        if before[setting] != after[setting]
    )


def _kind(before: str | None, after: str | None) -> ChangeKind:
    if before is None:
        return ChangeKind.ADDED
    return ChangeKind.REMOVED if after is None else ChangeKind.CHANGED


def _settings(side: selectors.Side | selectors.Text) -> dict[str, str | None]:
    spoken = scope_settings(side.registry, side.subject)
    config, own = spoken.config(), spoken.settings()
    return {
        "level": config.level,
        "mode": spoken.mode(side.registry).mode,
        "normalize": SAID["normalize"][1][config.normalize],
        "profile": SAID["profile"][1][config.profile],
        "policy": config.policy,
        "compatibility_policy": own.compatibility_policy,
        "compatibility_group": own.compatibility_group,
    }


#: display options in the URL → value other than the default
_DRAWN = {"view": "split", "text": "submitted", "wrap": "no", "unchanged": "1", "all": "1", "words": "business"}
#: maximum characters of both texts for counting differences in formatting
MOST_COUNTED = 100_000
#: values of `as` that request the text of one side
OLD_TEXT, NEW_TEXT = "old", "new"
#: number of versions to select for a comparison
PICKED: Final = 2


def compare_page(request: HttpRequest, registry: str, subject: str) -> ComparePage:
    """Return the page of `?from=3&to=prod:4`, by default of the newest version and the previous one.

    `with` names another subject for the old side, `in` its registry if different; `dashboard.compare.sides` says what a
    side may be. Raises RegistryNotFound, SubjectNotFound, NotAllowed.
    """
    here, name, actor = get_registry(registry), parse_subject(subject), page_actor(request)
    choices = side_options(here, name, actor)
    other = other_subject(request, here, name)
    is_same = (other.name, other.registry) == (name, here)
    old_held = choices if is_same else side_options(other.registry, other.name, actor)
    sides = sides_of(request, here, name, other, choices.versions[here.name], old_held.versions[other.registry.name])
    drawn = {key: value if request.GET.get(key) == value else None for key, value in _DRAWN.items()}
    is_whole = drawn["all"] is not None or request.GET.get("as") == "markdown"
    problem = _picked_wrong(request)
    comparison = None
    if problem is None:
        comparison, problem = _compared(
            sides, actor, choices.presence, submitted=drawn["text"] is not None, is_whole=is_whole
        )
    if comparison and drawn["words"]:
        comparison = in_business_words(comparison, _facts(sides), comparison.new.format)
    other_side, other_text = (None, "") if comparison or _picks(request) else _readable_side(sides, actor)
    names = {"old": _named(sides, sides.old), "new": _named(sides, sides.new)}
    return ComparePage(
        frame=subject_frame(
            request,
            registry,
            name,
            "compare",
            title=gettext("Compare %(old)s and %(new)s") % names,
            url_in=lambda registry_name: switch_url(registry_name, name.qualified),
        ),
        registry=registry,
        subject=name.qualified,
        subject_url=subject_url(registry, name.qualified),
        compare_url=subject_url(registry, name.qualified, "compare"),
        from_groups=side_choices(old_held, registry, sides.old),
        to_groups=side_choices(choices, registry, sides.new),
        swap_url=sides.swapped(**drawn),
        drawn=tuple((key, value) for key, value in drawn.items() if value is not None),
        view="split" if drawn["view"] else "unified",
        unified_url=sides.url(**drawn | {"view": None}),
        split_url=sides.url(**drawn | {"view": _DRAWN["view"]}),
        text_switch=TextSwitch(
            as_submitted=drawn["text"] is not None,
            laid_out_url=sides.url(**drawn | {"text": None}),
            submitted_url=sides.url(**drawn | {"text": _DRAWN["text"]}),
        ),
        text_tools=_tools(sides, drawn, comparison),
        other_subject=other.name.qualified if other.name != name else "",
        other_error=other.error,
        other_places=place_choices(actor, other.asked_in or other.registry.name),
        same_subject_url=subject_url(registry, name.qualified, "compare"),
        markdown_url=sides.url(**{"as": "markdown"}),
        simulate_url=subject_url(
            registry, name.qualified, "simulate", writer=sides.old.version, reader=sides.new.version
        )
        if sides.is_of_one_line and comparison and comparison.problem is None
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


def _picks(request: HttpRequest) -> list[str]:
    """Return the versions selected in the table of versions."""
    return list(dict.fromkeys(request.GET.getlist("pick")))


def picked_url(request: HttpRequest, registry: str, subject: str) -> str:
    """Return the URL that compares the two selected versions, the older one first; "" unless there are two."""
    picks = [whole_number(text, digits=10) for text in _picks(request)]
    numbers = sorted(number for number in picks if number is not None)
    if len(picks) != PICKED or len(numbers) != PICKED:
        return ""
    return subject_url(registry, parse_subject(subject).qualified, "compare", from_=numbers[0], to=numbers[1])


def _picked_wrong(request: HttpRequest) -> Problem | None:
    picks = len(_picks(request))
    if not picks:
        return None
    what = counted(
        picks,
        "A comparison needs two versions. You selected %(n)s.",
        "A comparison needs two versions. You selected %(n)s.",
    )
    return Problem(what=what, cure=gettext("Choose two versions above, or go back and select two."))


def _named(sides: Sides, side: SideAddress) -> str:
    if sides.old.registry == sides.new.registry == sides.here.name:
        return side.name
    return gettext("%(version)s in %(registry)s") % {"version": side.name, "registry": side.registry}


def _compared(
    sides: Sides, actor: Actor, presence: selectors.SubjectPresence, *, submitted: bool, is_whole: bool
) -> tuple[VersionComparison | None, Problem | None]:
    try:
        old, new = _contents(sides, actor)
        config = selectors.effective_config(sides.here, sides.subject)
        comparison = selectors.compare_sides(old.side, new.side, profile=config.profile)
    except SchemadeskError as error:
        choose = subject_url(sides.here.name, sides.subject.qualified)
        link = Link(label=gettext("Versions of %(qualified)s") % {"qualified": sides.subject.qualified}, url=choose)
        return None, Problem(what=error.message, cure=gettext("Choose two existing versions."), links=(link,))
    settings = settings_changes(old.side, new.side)
    notes = [_skipped(sides, comparison, presence), old.note, new.note]
    if settings:
        notes.append(counted(len(settings), "%(n)s setting differs.", "%(n)s settings differ."))
    shown = present_comparison(
        comparison,
        sides.old.registry,
        sides.new.registry,
        level=config.level,
        submitted=submitted,
        limit=None if is_whole else MAX_CARDS,
        notes=comparison_notes(old.side.registry, sides.other, comparison, by=actor),
        by=actor,
        skipped=" ".join(filter(None, notes)),
    )
    return replace(
        shown,
        old=_as_called(shown.old, old),
        new=_as_called(shown.new, new),
        extras=(*shown.extras, *settings),
        formatting_hidden=0 if submitted else _hidden_formatting(comparison, shown),
    ), None


def _contents(sides: Sides, actor: Actor) -> tuple[Content, Content]:
    return (
        content_of(sides.here, sides.old, sides.other, actor),
        content_of(sides.here, sides.new, sides.subject, actor),
    )


def _skipped(sides: Sides, comparison: selectors.Comparison, presence: selectors.SubjectPresence) -> str:
    if sides.other != sides.subject or not sides.are_versions:
        return ""
    return skipped_between(presence, (sides.old.registry, comparison.old), (sides.new.registry, comparison.new))


def _as_called(side: ComparedSide, content: Content) -> ComparedSide:
    """Return an unregistered text's side with its label and URL."""
    if not content.label:
        return side
    return replace(side, label=content.label, url=content.url, registered_at=None, registered_by="")


def _hidden_formatting(comparison: selectors.Comparison, shown: VersionComparison) -> int:
    """Count the further lines that differ in the submitted texts; 0 if counting would take too long."""
    if not shown.formatting_differs or shown.text is None:
        return 0
    if len(comparison.old.submitted) + len(comparison.new.submitted) > MOST_COUNTED:
        return 0
    return max(
        0, differing_lines(comparison.old.submitted, comparison.new.submitted) - shown.text.added - shown.text.removed
    )


def _tools(sides: Sides, drawn: dict[str, str | None], comparison: VersionComparison | None) -> TextTools | None:
    if comparison is None:
        return None
    text = {"text": drawn["text"]}
    return TextTools(
        is_wrapped=drawn["wrap"] is None,
        wrapped_url=sides.url(**drawn | {"wrap": None}),
        unwrapped_url=sides.url(**drawn | {"wrap": _DRAWN["wrap"]}),
        old_url=sides.url(**text | {"as": OLD_TEXT}),
        new_url=sides.url(**text | {"as": NEW_TEXT}),
    )


def side_text(request: HttpRequest, registry: str, subject: str) -> str:
    """Return the text of the side in `as`, as the page compares it. Raises the errors that the page would show."""
    here, name, actor = get_registry(registry), parse_subject(subject), page_actor(request)
    other = other_subject(request, here, name)
    numbers = [
        selectors.list_versions(registry_row, subject_name, deleted=True)
        for registry_row, subject_name in ((here, name), (other.registry, other.name))
    ]
    sides = sides_of(request, here, name, other, *numbers)
    side_address, of = (sides.old, sides.other) if request.GET["as"] == OLD_TEXT else (sides.new, sides.subject)
    side = content_of(here, side_address, of, actor).side
    is_submitted = request.GET.get("text") == _DRAWN["text"]
    if isinstance(side, selectors.Text):
        return side.text if is_submitted else laid_out_if_json(side.text)
    info = selectors.get_version(side.registry, side.subject, side.version, deleted=True)
    return info.submitted if is_submitted else pretty(info)


def _facts(sides: Sides) -> dict[str, Fact]:
    """Return the field descriptions of both versions; a field in both has the new version's."""
    facts: dict[str, Fact] = {}
    for side, subject in ((sides.old, sides.other), (sides.new, sides.subject)):
        if side.text is None:
            registry = sides.here if side.registry == sides.here.name else get_registry(side.registry)
            facts |= facts_of(registry, subject, side.version)
    return facts


def _readable_side(sides: Sides, actor: Actor) -> tuple[ComparedSide | None, str]:
    """Return the side that exists if the other one is missing, with its text."""
    for side_address, subject in ((sides.new, sides.subject), (sides.old, sides.other)):
        try:
            content = content_of(sides.here, side_address, subject, actor)
            side, environment = content.side, environment_of(side_address.registry, list_environments(), current=True)
            if isinstance(side, selectors.Text):
                shown = ComparedSide(
                    environment=environment, version=0, url=content.url, format=side.schema_type, label=content.label
                )
                return shown, laid_out_if_json(side.text)
            info = selectors.get_version(side.registry, subject, side.version, deleted=True)
        except SchemadeskError:
            continue  # this side causes the problem, or both do
        url = subject_url(side_address.registry, subject.qualified, version=info.version)
        return ComparedSide(
            environment=environment, version=info.version, url=url, format=info.schema.schema_type
        ), pretty(info)
    return None, ""
