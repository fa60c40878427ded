"""The page of one subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.notes import note_part
from dashboard.pages.references import reference_lists
from dashboard.pages.subject_head import (
    level_asks,
    level_origin,
    more_actions,
    restore_action,
    state_mark,
    subject_actions,
    topic_links,
)
from dashboard.pages.subject_least import least_part
from dashboard.pages.subject_life import standing_part
from dashboard.pages.subject_parts import subject_export, subject_parts, subjects_crumb
from dashboard.pages.subject_settings import subject_settings
from dashboard.pages.subject_structure import Structure, field_url, read_structure
from dashboard.pages.subject_versions import lane_heads, lanes_of, version_rows
from dashboard.pages.subject_words import DOORS, MODE_SENTENCES, level_order, pretty
from dashboard.pages.what_if_form import what_if_form
from dashboard.presenters.frame import Action, Choice, Problem, Section
from dashboard.presenters.looks import format_name
from dashboard.presenters.report import SnippetLine, snippet
from dashboard.presenters.subjects import ReferenceRow, SelectedVersion, SubjectPage
from dashboard.texts import later
from registry.drift.selectors import open_findings_by_subject
from registry.errors import InvalidSchema, SchemadeskError, SchemaTooCostly, VersionNotFound
from registry.formats.effective_tags import SchemaTags
from registry.promotions.changing import changing
from registry.promotions.selectors import life_of, list_environments, releases_of
from registry.subjects import selectors
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.effective import Spoken, spoken_for
from registry.subjects.selectors.notes import Note, note_of
from registry.subjects.selectors.places import Registry, get_registry
from registry.subjects.selectors.remotes import mirror_of
from registry.subjects.selectors.tags import tags_of_info

__all__ = ["DOORS", "MODE_SENTENCES", "field_url", "level_order", "pretty", "subject_page"]

#: lines of the source that a page draws: more would be too heavy for it
SOURCE_LINES: Final = 1_000
TABS: Final = (
    ("structure", later("Structure")),
    ("source", later("Source")),
    ("references", later("References")),
    ("settings", later("Settings")),
)


@dataclass(frozen=True)
class _Subject:
    """What the parts of the page are made from, read once; `readings` are of the live versions, ascending."""

    place: Registry
    name: SubjectName
    infos: Sequence[selectors.VersionInfo]
    readings: Sequence[selectors.Reading]
    spoken: Spoken
    order: list[str]

    @property
    def live(self) -> list[selectors.VersionInfo]:
        """The live versions, newest first."""
        return [info for info in self.infos if not info.deleted]

    def selected(self, asked: str) -> selectors.VersionInfo:
        """The version that the address asks for, else the newest. Raises VersionNotFound."""
        if not asked:
            return (self.live or list(self.infos))[0]
        found = next((info for info in self.infos if str(info.version) == asked), None)
        if found is None:
            raise VersionNotFound(
                gettext("Subject %(subject)s has no version %(version)s.")
                % {"subject": self.name.qualified, "version": asked[:40]},
                version=asked[:40],
            )
        return found


def _read(place: Registry, name: SubjectName) -> _Subject:
    infos, readings = selectors.read_whole(place, name)
    return _Subject(place, name, infos, readings, spoken_for(place, name), list_environments())


def subject_page(request: HttpRequest, registry: str, subject: str, *, given: Note | None = None) -> SubjectPage:
    """The page of one subject; `given` is the description that a form had which was refused.

    Raises SubjectNotFound, VersionNotFound, InvalidName.
    """
    place, name = get_registry(registry), parse_subject(subject)
    whole, actor = _read(place, name), page_actor(request)
    infos, live, order = whole.infos, whole.live, whole.order
    config, settings, mode = whole.spoken.config(), whole.spoken.settings(), whole.spoken.mode(place).mode
    presence, releases = selectors.presence_of(place, name), releases_of(name)
    lives = {life.version: life for life in life_of(place, name, by=actor)}
    numbers = [info.version for info in live]
    selected, note = whole.selected(request.GET.get("version", "")), note_of(place, name)
    structure = _structure(request, whole, selected, note)
    heads = lane_heads(presence, registry, order)
    lanes = lanes_of(name, presence, releases, registry, heads, order)
    summaries = selectors.summarize_versions(whole.readings, config, settings)
    return SubjectPage(
        frame=make_frame(
            request,
            title=name.qualified,
            section=Section.SUBJECTS,
            registry=registry,
            code=True,
            crumbs=(subjects_crumb(registry),),
            parts=subject_parts(registry, name, ""),
            url_in=lambda other: subject_url(other, name.qualified),
            mirror=mirror_of(place),
            order=order,
        ),
        registry=registry,
        subject=name.subject,
        context="" if name.context == DEFAULT_CONTEXT else name.context,
        format=format_name(infos[0].schema.schema_type),
        level=config.level,
        level_origin=level_origin(whole.spoken),
        level_asks=level_asks(config, settings, len(live)),
        upgrade_order=level_order(config.level),
        mode=mode,
        state=state_mark(lives, numbers[0] if numbers else None),
        topics=topic_links(actor, place, name),
        actions=subject_actions(request, place, name, order=order, live=bool(live), selected=selected.version),
        more=more_actions(request, registry, name),
        export=None if actor.past else subject_export(registry, name),
        restore=_restore(request, whole, selected, mode),
        versions=version_rows(registry, name, infos, summaries, presence, releases, lives, order, selected.version),
        compare_url=subject_url(registry, name.qualified, "compare"),
        lane_heads=heads,
        lanes=lanes,
        selected=_selected(request, whole, selected, structure),
        note_open=given is not None,
        note=note_part(actor, place, name, note, _tags(whole, selected, structure, note), given=given),
        standing=standing_part(
            actor, registry, name, lives[selected.version], newest=numbers[0] if lanes and live else 0
        )
        if selected.version in lives
        else None,
        compare_from=_choices(numbers, numbers[min(1, len(numbers) - 1)] if numbers else 0),
        compare_to=_choices(numbers, numbers[0] if numbers else 0),
        open_findings=open_findings_by_subject(place.name).get(name.qualified, 0),
        findings_url=reverse("ui:findings") + "?" + urlencode({"subject": name.qualified, "registry": registry}),
        problem=None if live else _all_deleted(),
    )


def _choices(numbers: Sequence[int], chosen: int) -> tuple[Choice, ...]:
    return tuple(
        Choice(value=str(number), label=gettext("Version %(n)s") % {"n": number}, selected=number == chosen)
        for number in numbers
    )


def _all_deleted() -> Problem:
    return Problem(
        what=gettext("All versions of this subject are soft-deleted."),
        cure=gettext(
            "Restore them: they come back with their numbers and schema ids. Until then clients don’t find the subject by"
            " its name, and messages stay readable by id. Registering a schema anew would give it the next number."
        ),
    )


def _restore(request: HttpRequest, whole: _Subject, selected: selectors.VersionInfo, mode: str) -> Action | None:
    """The way back of the whole subject where all of it is soft-deleted, else of the version that is looked at."""
    if not selected.deleted:
        return None
    held = changing(whole.place, page_actor(request))
    version = selected.version if whole.live else None
    return restore_action(page_actor(request), whole.name, held, mode, version=version)


# -- the version below the table ------------------------------------------------------------------------------------------


def _tab(request: HttpRequest) -> str:
    tab = request.GET.get("tab", "structure")
    return tab if tab in dict(TABS) else "structure"


def _structure(request: HttpRequest, whole: _Subject, info: selectors.VersionInfo, note: Note) -> Structure:
    """The structure where its tab is open, else what reading the version met."""
    if _tab(request) == "structure":
        return read_structure(request, whole.place, whole.name, info, whole.readings, note)
    return Structure(error=_known(whole, info))


def _tags(whole: _Subject, selected: selectors.VersionInfo, structure: Structure, note: Note) -> SchemaTags:
    """The tags of the newest version, which those are that the structure was drawn with where it shows that one."""
    newest = (whole.live or whole.infos)[0]
    if structure.tags is not None and selected.version == newest.version:
        return structure.tags
    return tags_of_info(whole.place, newest, note, whole.readings)


def _selected(
    request: HttpRequest, whole: _Subject, info: selectors.VersionInfo, structure: Structure
) -> SelectedVersion:
    place, name, actor = whole.place, whole.name, page_actor(request)
    tab, url = _tab(request), subject_url(place.name, name.qualified, version=info.version)
    error = structure.error if tab in ("structure", "source") else None
    source, source_hidden = "", 0
    if tab == "source" or error:
        source, source_hidden = _cut(info.schema.text if error else pretty(info))
    return SelectedVersion(
        version=info.version,
        schema_id=info.schema.schema_id,
        format=format_name(info.schema.schema_type),
        fingerprint=info.schema.fingerprint,
        tab=tab,
        tab_urls=tuple((code, label, f"{url}&tab={code}") for code, label in TABS),
        fields=structure.fields,
        fields_paging=structure.paging,
        tree=structure.tree,
        in_data=structure.in_data,
        words_url=structure.words_url,
        in_business_words=request.GET.get("words") == "business",
        problem=_unreadable(info, error) if error else None,
        snippet=_snippet(info, error) if error else (),
        source=source,
        source_hidden=source_hidden,
        raw_url=_raw_url(place.name, name, info.version),
        references=tuple(
            ReferenceRow(
                name=ref.name,
                subject=ref.subject,
                version=ref.version,
                url=subject_url(place.name, ref.subject, version=ref.version),
            )
            for ref in info.schema.references
        ),
        settings=subject_settings(name, whole.spoken, changing(place, actor)) if tab == "settings" else (),
        what_if=what_if_form(place.name, name) if tab == "settings" else None,
        least=least_part(place, name, max((each.version for each in whole.live), default=0), actor)
        if tab == "settings"
        else None,
        reference_lists=reference_lists(place, name, info.version, actor) if tab == "references" else None,
        graph_url=subject_url(place.name, name.qualified, "references", version=info.version),
    )


def _known(whole: _Subject, info: selectors.VersionInfo) -> SchemadeskError | None:
    """What reading the version met for the table; a soft-deleted one wasn't read for that."""
    return next((reading.error for reading in whole.readings if reading.version == info.version), None)


def _unreadable(info: selectors.VersionInfo, error: SchemadeskError) -> Problem:
    place = error if isinstance(error, InvalidSchema) and error.line else None
    cure = gettext("Its text is shown as it is stored. Register a sound version after it, and retire this one.")
    if isinstance(error, SchemaTooCostly):
        cure = gettext("Its text is shown as it is stored. Who runs this server sets the limits of time and memory.")
    return Problem(
        what=gettext("Version %(version)s can’t be read as %(format)s.")
        % {"version": info.version, "format": format_name(info.schema.schema_type)},
        where=gettext("line %(line)s, column %(column)s") % {"line": place.line, "column": place.column}
        if place
        else "",
        detail=error.message,
        cure=cure,
    )


def _snippet(info: selectors.VersionInfo, error: SchemadeskError) -> tuple[SnippetLine, ...]:
    """The place in the text; with references the error may be of theirs."""
    if not isinstance(error, InvalidSchema) or not error.line or info.schema.references:
        return ()
    return snippet(info.schema.text, error.line, error.column)


def _cut(text: str) -> tuple[str, int]:
    """The first lines of a text, and how many more there are."""
    lines = text.split("\n")
    return "\n".join(lines[:SOURCE_LINES]), max(0, len(lines) - SOURCE_LINES)


def _raw_url(registry: str, name: SubjectName, version: int) -> str:
    return f"/registries/{quote(registry, safe='')}/subjects/{quote(name.qualified, safe='')}/versions/{version}/schema"
