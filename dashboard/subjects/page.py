"""The page of a subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compatibility.presenters import SnippetLine, snippet
from dashboard.components.badges import format_name, missing_words
from dashboard.components.forms import ServiceForm
from dashboard.components.frame import page_actor, subject_frame
from dashboard.components.links import subject_export, subject_url, subjects_crumb
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Problem
from dashboard.registries.policy_forms import WhatIfForm
from dashboard.subjects.descriptions import note_part
from dashboard.subjects.header import (
    for_people,
    level_asks,
    level_order,
    level_origin,
    more_actions,
    pretty,
    restore_action,
    state_mark,
    subject_actions,
    subject_settings,
    topic_links,
)
from dashboard.subjects.lifecycle import minimum_part, status_part
from dashboard.subjects.presenters import ReferenceRow, SelectedVersion, Structure, SubjectPage
from dashboard.subjects.references import reference_lists
from dashboard.subjects.structure import field_url, read_structure
from dashboard.subjects.versions import Window, lane_strip, version_rows, window_of
from registry.access.roles import may
from registry.drift.models import Topic
from registry.drift.selectors import open_findings_by_subject
from registry.drift.usage.subject_topics import own_topics
from registry.errors import InvalidSchema, SchemadeskError, SchemaTooCostly
from registry.formats.personal_data import SchemaTags
from registry.promotions.requests.preconditions import settings_preconditions
from registry.promotions.selectors import list_environments, releases_of, timelines_of
from registry.subjects import selectors
from registry.subjects.comparison.parsed_versions import tags_of_info
from registry.subjects.lifecycle.glossary import note_and_terms
from registry.subjects.lifecycle.notes import Note
from registry.subjects.policy.effective_policy import ScopeSettings, scope_settings
from registry.subjects.policy.registries import mirror_of
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject

__all__ = ["field_url", "for_people", "level_order", "pretty", "subject_page"]

#: lines of source on a page: more would make it too large
SOURCE_LINES: Final = 1_000
TABS: Final = (
    ("structure", _("Structure")),
    ("source", _("Source")),
    ("references", _("References")),
    ("settings", _("Settings")),
)


@dataclass(frozen=True)
class _Subject:
    """The data shared by the parts of the page, read once; `readings` are of live versions, ascending."""

    registry: Registry
    name: SubjectName
    window: Window
    infos: Mapping[int, selectors.VersionInfo]
    readings: Sequence[selectors.Reading]
    spoken: ScopeSettings
    order: list[str]

    @property
    def selected(self) -> selectors.VersionInfo:
        """The version in the URL, else the newest."""
        return self.infos[self.window.selected]

    @property
    def newest(self) -> selectors.VersionInfo:
        """The newest live version; the newest of all if none is live."""
        return self.infos[self.window.newest]

    @property
    def drawn(self) -> list[selectors.VersionInfo]:
        """The versions in the table, newest first."""
        return [self.infos[number] for number in self.window.rows]

    def origins(self) -> dict[str, int]:
        """Return the version that added each field of the selected one, if it was read."""
        chain = set(self.window.chain)
        readings = [reading for reading in self.readings if reading.version in chain]
        return selectors.origins_of(readings, is_whole=self.window.is_whole_chain)


def _read(request: HttpRequest, registry: Registry, name: SubjectName) -> _Subject:
    numbers = selectors.version_numbers(registry, name)
    window = window_of(numbers, request.GET.get("version", ""), request.GET.get("before", ""), name)
    spoken, numbers_read = scope_settings(registry, name), window.read
    group = spoken.settings().compatibility_group
    if group:
        numbers_read |= selectors.earlier_peers(registry, name, window.rows, group)
    infos, readings = selectors.read_whole(registry, name, only=numbers_read)
    return _Subject(
        registry, name, window, {info.version: info for info in infos}, readings, spoken, list_environments()
    )


def subject_page(request: HttpRequest, registry: str, subject: str, *, sent: ServiceForm | None = None) -> SubjectPage:
    """Return the page of a subject; `sent` is a refused form of its note.

    Raises SubjectNotFound, VersionNotFound, InvalidName.
    """
    registry_row, name = get_registry(registry), parse_subject(subject)
    whole, actor = _read(request, registry_row, name), page_actor(request)
    window, live, order = whole.window, whole.window.live, whole.order
    config, settings, mode = whole.spoken.config(), whole.spoken.settings(), whole.spoken.mode(registry_row).mode
    presence, releases = selectors.presence_of(registry_row, name).visible_to(actor, name), releases_of(name)
    lives = {life.version: life for life in timelines_of(registry_row, name, by=actor, only=window.read)}
    selected, (note, terms) = whole.selected, note_and_terms(registry_row, name)
    topics = own_topics(registry_row, name)
    structure = _structure(request, whole, selected, note, topics, terms)
    readable = [
        environment for environment in order if may(actor, "schema.read", registry=environment, subject=name.qualified)
    ]
    strip = lane_strip(name, presence, releases, registry, readable, order)
    summaries = selectors.summarize_versions(whole.readings, config, settings, of=window.rows)
    return SubjectPage(
        frame=subject_frame(
            request,
            registry,
            name,
            "",
            title=name.qualified,
            code=True,
            crumbs=(subjects_crumb(registry),),
            mirror=mirror_of(registry_row),
            order=order,
        ),
        registry=registry,
        subject=name.subject,
        context="" if name.context == DEFAULT_CONTEXT else name.context,
        format=format_name(whole.newest.schema.schema_type),
        level=config.level,
        level_origin=level_origin(whole.spoken),
        level_asks=level_asks(config, settings, len(live)),
        upgrade_order=level_order(config.level),
        mode=mode,
        state=state_mark(lives, live[0] if live else None),
        topics=topic_links(actor, registry_row, name, topics),
        actions=subject_actions(request, registry_row, name, order=order, live=bool(live), selected=selected.version),
        more=more_actions(request, registry, name, live=bool(live), selected=selected.version),
        export=None if actor.past else subject_export(registry, name),
        restore=_restore(request, whole, selected, mode),
        versions=version_rows(
            registry, name, whole.drawn, summaries, presence, releases, lives, order, selected.version
        ),
        versions_paging=window.paging(registry, name),
        compare_url=subject_url(registry, name.qualified, "compare"),
        lanes=strip,
        selected=_selected(request, whole, selected, structure),
        note=note_part(actor, registry_row, name, note, _tags(whole, selected, structure, note), sent=sent),
        status=status_part(actor, registry, name, lives[selected.version], newest=live[0] if strip and live else 0)
        if selected.version in lives
        else None,
        open_findings=open_findings_by_subject(registry_row.name).get(name.qualified, 0),
        findings_url=reverse("ui:findings") + "?" + urlencode({"subject": name.qualified, "registry": registry}),
        problem=None if live else _all_deleted(),
    )


def _all_deleted() -> Problem:
    return Problem(
        what=gettext("All versions of this subject are soft-deleted."),
        cure=gettext(
            "You can restore them with their version numbers and schema ids. Until then, clients can’t find the "
            "subject by name. Messages stay readable by id. A newly registered schema would get the next version "
            "number."
        ),
    )


def _restore(request: HttpRequest, whole: _Subject, selected: selectors.VersionInfo, mode: str) -> Action | None:
    """Return the action that restores the whole subject if all of it is soft-deleted, else the selected version."""
    if not selected.deleted:
        return None
    preconditions = settings_preconditions(whole.registry, page_actor(request))
    version = selected.version if whole.window.live else None
    return restore_action(page_actor(request), whole.name, preconditions, mode, version=version)


# -- the version below the table ---------------------------------------------------------------------------------------


def _tab(request: HttpRequest) -> str:
    tab = request.GET.get("tab", "structure")
    return tab if tab in dict(TABS) else "structure"


def _structure(
    request: HttpRequest,
    whole: _Subject,
    info: selectors.VersionInfo,
    note: Note,
    topics: list[Topic],
    terms: Mapping[str, str],
) -> Structure:
    """Return the structure if its tab is open, else only the error of reading the version."""
    if _tab(request) == "structure":
        origins = whole.origins()
        return read_structure(request, whole.registry, whole.name, info, whole.readings, origins, note, topics, terms)
    return Structure(error=_reading_error(whole, info))


def _tags(whole: _Subject, selected: selectors.VersionInfo, structure: Structure, note: Note) -> SchemaTags:
    """Return the tags of the newest version, from the structure if it shows that version."""
    newest = whole.newest
    if structure.tags is not None and selected.version == newest.version:
        return structure.tags
    return tags_of_info(whole.registry, newest, note, whole.readings)


def _selected(
    request: HttpRequest, whole: _Subject, info: selectors.VersionInfo, structure: Structure
) -> SelectedVersion:
    registry, name, actor = whole.registry, whole.name, page_actor(request)
    tab, url = _tab(request), subject_url(registry.name, name.qualified, version=info.version)
    error = structure.error if tab in ("structure", "source") else None
    source, source_hidden = "", 0
    if tab == "source" or error:
        source, source_hidden = _cut(info.schema.text if error else for_people(info))
    return SelectedVersion(
        info=info,
        tab=tab,
        tab_urls=tuple((code, label, f"{url}&tab={code}") for code, label in TABS),
        structure=structure,
        no_fields=missing_words(info.schema.schema_type, "outline"),
        in_business_words=request.GET.get("words") == "business",
        problem=_unreadable(info, error) if error else None,
        snippet=_snippet(info, error) if error else (),
        source=source,
        source_hidden=source_hidden,
        raw_url=_raw_url(registry.name, name, info.version),
        references=tuple(
            ReferenceRow(
                name=ref.name,
                subject=ref.subject,
                version=ref.version,
                url=subject_url(registry.name, ref.subject, version=ref.version)
                if may(actor, "schema.read", registry=registry.name, subject=parse_subject(ref.subject).qualified)
                else "",
            )
            for ref in info.schema.references
        ),
        settings=subject_settings(name, whole.spoken, settings_preconditions(registry, actor), actor)
        if tab == "settings"
        else (),
        what_if=WhatIfForm(registry.name, name) if tab == "settings" else None,
        minimum=minimum_part(registry, name, max(whole.window.live, default=0), actor) if tab == "settings" else None,
        reference_lists=reference_lists(registry, name, info.version, actor) if tab == "references" else None,
        graph_url=subject_url(registry.name, name.qualified, "references", version=info.version),
    )


def _reading_error(whole: _Subject, info: selectors.VersionInfo) -> SchemadeskError | None:
    """Return the error of reading the version for the table; None for a soft-deleted one, which isn't read."""
    return next((reading.error for reading in whole.readings if reading.version == info.version), None)


def _unreadable(info: selectors.VersionInfo, error: SchemadeskError) -> Problem:
    position = error if isinstance(error, InvalidSchema) and error.line else None
    what = gettext("Version %(version)s can’t be read as %(format)s.")
    cure = gettext("Its text is shown as stored. Register a valid version after it, and retire this one.")
    if isinstance(error, SchemaTooCostly):
        cure = gettext("Its text is shown as stored. The operator of this server sets the limits for time and memory.")
    elif not isinstance(error, InvalidSchema):  # such as no free process: nothing is known of the text
        what = gettext("Version %(version)s wasn’t read as %(format)s.")
        cure = gettext("Its text is shown as stored, and wasn’t checked. Load the page again in a moment.")
    return Problem(
        what=what % {"version": info.version, "format": format_name(info.schema.schema_type)},
        where=gettext("line %(line)s, column %(column)s") % {"line": position.line, "column": position.column}
        if position
        else "",
        detail=error.message,
        cure=cure,
    )


def _snippet(info: selectors.VersionInfo, error: SchemadeskError) -> tuple[SnippetLine, ...]:
    """Return the lines around the error; none with references, because the error may be in their text."""
    if not isinstance(error, InvalidSchema) or not error.line or info.schema.references:
        return ()
    return snippet(info.schema.text, error.line, error.column)


def _cut(text: str) -> tuple[str, int]:
    """Return the first lines of a text, and the number of omitted ones."""
    lines = text.split("\n")
    return "\n".join(lines[:SOURCE_LINES]), max(0, len(lines) - SOURCE_LINES)


def _raw_url(registry: str, name: SubjectName, version: int) -> str:
    return f"/registries/{quote(registry, safe='')}/subjects/{quote(name.qualified, safe='')}/versions/{version}/schema"
