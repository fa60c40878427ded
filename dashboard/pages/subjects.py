"""The page of one subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.fields_seen import seen_in_data
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.notes import note_part, tag_chips
from dashboard.pages.numbers import whole_number
from dashboard.pages.references import reference_lists
from dashboard.pages.subject_life import marks_of, standing_part
from dashboard.pages.subject_parts import subject_parts, subjects_crumb
from dashboard.pages.what_if_form import what_if_form
from dashboard.presenters.business_words import fact_name
from dashboard.presenters.frame import Action, Choice, Paging, Problem, Section
from dashboard.presenters.json_layout import laid_out
from dashboard.presenters.looks import Verdict, format_name
from dashboard.presenters.subjects import (
    FieldRow,
    InData,
    Lane,
    LaneCell,
    ReferenceRow,
    SelectedVersion,
    Setting,
    SubjectPage,
    VersionRow,
)
from dashboard.texts import later
from registry.access.roles import refusal
from registry.drift.selectors import open_findings_by_subject
from registry.formats.compatibility import LEVELS
from registry.promotions.selectors import VersionLife, life_of, list_environments, releases_of
from registry.subjects import selectors
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.notes import Note, note_of
from registry.subjects.selectors.places import Registry, get_registry, get_subject
from registry.subjects.selectors.remotes import mirror_of
from registry.subjects.selectors.tags import tags_of_info, tags_of_outline

LANE_VERSIONS = 12
#: fields of the structure, and lines of the source, that a page draws: more would be too heavy for it
FIELD_ROWS: Final = 100
SOURCE_LINES: Final = 1_000
TABS = (
    ("structure", later("Structure")),
    ("source", later("Source")),
    ("references", later("References")),
    ("settings", later("Settings")),
)
ORDER_WORDS = {
    "consumers first": later("Deploy consumers first"),
    "producers first": later("Deploy producers first"),
    "any order": later("Deploy in any order"),
}
DOORS = {
    "confluent": later("REST API"),
    "product": later("product API"),
    "ui": later("this site"),
    "task": later("a task"),
    "command": "command",
}
MODE_SENTENCES = {
    "READWRITE": later("Versions can be registered."),
    "READONLY": later("Nothing can be registered here but by a release."),
    "READONLY_OVERRIDE": later("Nothing can be registered here, releases included."),
    "IMPORT": later("Only versions with given ids can be registered."),
}


def level_order(level: str) -> str:
    """The headline that a level implies."""
    return ORDER_WORDS.get(LEVELS[level].upgrade_order, gettext("No order is safe"))


def subject_page(request: HttpRequest, registry: str, subject: str, *, given: Note | None = None) -> SubjectPage:
    """The page of one subject; `given` is the description that a form had which was refused.

    Raises SubjectNotFound, VersionNotFound, InvalidName.
    """
    place, name = get_registry(registry), parse_subject(subject)
    infos = selectors.version_infos(list(get_subject(place, name, deleted=True).versions.order_by("-version")))
    live = [info for info in infos if not info.deleted]
    config = selectors.effective_config(place, name)
    presence, releases = selectors.presence_of(place, name), releases_of(name)
    lives = {life.version: life for life in life_of(place, name, by=page_actor(request))}
    numbers = [info.version for info in live]
    asked = request.GET.get("version", "")
    selected = next((info for info in infos if str(info.version) == asked), (live or infos)[0])
    compare = subject_url(registry, name.qualified, "compare")
    note = note_of(place, name)
    lanes = _lanes(name, presence, releases, registry)
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
        ),
        registry=registry,
        subject=name.subject,
        context="" if name.context == DEFAULT_CONTEXT else name.context,
        format=format_name(infos[0].schema.schema_type),
        level=config.level,
        level_sentence=f"{LEVELS[config.level].description} ({_origin(config.origin)}.)",
        upgrade_order=level_order(config.level),
        mode=selectors.effective_mode(place, name).mode,
        versions=_version_rows(place, name, infos, presence, releases, lives, selected.version),
        compare_url=compare,
        report_url=subject_url(registry, name.qualified, "report"),
        simulate_url=subject_url(registry, name.qualified, "simulate") if live else "",
        lanes=lanes,
        selected=_selected(request, place, name, selected, note),
        note_open=given is not None,
        note=note_part(
            page_actor(request), place, name, note, tags_of_info(place, (live or infos)[0], note), given=given
        ),
        standing=standing_part(
            page_actor(request), registry, name, lives[selected.version], newest=numbers[0] if lanes and live else 0
        )
        if selected.version in lives
        else None,
        compare_from=tuple(
            Choice(
                value=str(n), label=gettext("Version %(n)s") % {"n": n}, selected=n == numbers[min(1, len(numbers) - 1)]
            )
            for n in numbers
        ),
        compare_to=tuple(
            Choice(value=str(n), label=gettext("Version %(n)s") % {"n": n}, selected=n == numbers[0]) for n in numbers
        ),
        promote=_promote(request, registry, name, selected.version) if live else None,
        open_findings=open_findings_by_subject(place.name).get(name.qualified, 0),
        findings_url=reverse("ui:findings") + "?" + urlencode({"q": name.qualified}),
        problem=None
        if live
        else Problem(
            what=gettext("All versions of this subject are soft-deleted."),
            cure=gettext("Register the schema again to bring it back under a new version number."),
        ),
    )


def _origin(origin: str) -> str:
    return {
        "subject": gettext("set for this subject"),
        "context": gettext("inherited from the context"),
        "registry": gettext("inherited from the registry"),
    }.get(origin, gettext("nothing is set, this is the default"))


def _promote(request: HttpRequest, registry: str, name: SubjectName, version: int) -> Action | None:
    order = list_environments()
    if registry not in order[:-1]:
        return None
    reason = refusal(page_actor(request), "promotion.request", subject=name.qualified)
    query = urlencode({"source": registry, "subject": name.qualified, "version": version})
    return Action(
        label=gettext("Promote…"),
        url=f"{reverse('ui:promotion_request')}?{query}",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="git-pull-request-arrow",
    )


def _version_rows(
    registry: Registry,
    name: SubjectName,
    infos: list[selectors.VersionInfo],
    presence: selectors.SubjectPresence,
    releases: dict[tuple[str, int], int],
    lives: dict[int, VersionLife],
    selected: int,
) -> tuple[VersionRow, ...]:
    order = list_environments()
    summaries = selectors.summarize_versions(registry, name)
    rows = []
    for info in infos:
        summary = summaries.get(info.version)
        where = presence.registries_with(info.schema.fingerprint)
        request = releases.get((registry.name, info.version))
        rows.append(
            VersionRow(
                version=info.version,
                schema_id=info.schema.schema_id,
                url=subject_url(registry.name, name.qualified, version=info.version),
                summary=summary.sentence if summary else gettext("first version"),
                verdict=(Verdict.OK if summary.is_compatible else Verdict.BREAKS) if summary else None,
                compare_url=subject_url(
                    registry.name, name.qualified, "compare", from_=summary.previous, to=info.version
                )
                if summary
                else "",
                fingerprint=info.schema.fingerprint,
                registered_at=info.created_at,
                registered_by=info.created_by,
                via=gettext("request %(request)s") % {"request": request}
                if request
                else DOORS.get(info.door, info.door),
                live_in=tuple(environment_of(place, order) for place in order if place in where),
                selected=info.version == selected,
                deleted=info.deleted,
                marks=marks_of(lives[info.version]) if info.version in lives else (),
            )
        )
    return tuple(rows)


def _lanes(
    name: SubjectName, presence: selectors.SubjectPresence, releases: dict[tuple[str, int], int], registry: str
) -> tuple[Lane, ...]:
    """One lane an environment over the newest versions of this registry, joined by content, not by number."""
    order, here = list_environments(), presence.held.get(registry, {})
    numbers = sorted(here)[-LANE_VERSIONS:]
    if registry not in order or not numbers:
        return ()
    lanes, above = [], set[int]()
    for place in order:
        newest = max(presence.held.get(place, {}), default=0)
        found = {number: presence.version_with(place, here[number]) for number in numbers}
        cells = tuple(
            _lane_cell(place, name, number, there, newest, releases, linked=number in above)
            for number, there in found.items()
        )
        above = {number for number, there in found.items() if there}
        lanes.append(Lane(environment=environment_of(place, order), cells=cells))
    return tuple(lanes)


def _lane_cell(
    place: str,
    name: SubjectName,
    number: int,
    there: int | None,
    newest: int,
    releases: dict[tuple[str, int], int],
    *,
    linked: bool,
) -> LaneCell:
    if there is None:
        return LaneCell(version=number)
    return LaneCell(
        version=number,
        present=True,
        current=there == newest,
        direct=(place, there) not in releases,
        linked=linked,
        url=subject_url(place, name.qualified, version=there),
    )


def _selected(
    request: HttpRequest, registry: Registry, name: SubjectName, info: selectors.VersionInfo, note: Note
) -> SelectedVersion:
    tab = request.GET.get("tab", "structure")
    tab = tab if tab in dict(TABS) else "structure"
    url = subject_url(registry.name, name.qualified, version=info.version)
    in_business_words = request.GET.get("words") == "business"
    structure = _structure(request, registry, name, info, note) if tab == "structure" else _Structure()
    source, source_hidden = _cut(pretty(info)) if tab == "source" else ("", 0)
    return SelectedVersion(
        version=info.version,
        schema_id=info.schema.schema_id,
        format=format_name(info.schema.schema_type),
        tab=tab,
        tab_urls=tuple((code, label, f"{url}&tab={code}") for code, label in TABS),
        fields=structure.fields,
        fields_paging=structure.paging,
        in_data=structure.in_data,
        words_url=subject_url(
            registry.name,
            name.qualified,
            version=info.version,
            fields=structure.begin or None,
            words=None if in_business_words else "business",
        )
        if structure.fields
        else "",
        in_business_words=in_business_words,
        source=source,
        source_hidden=source_hidden,
        raw_url=_raw_url(registry.name, name, info.version),
        references=tuple(
            ReferenceRow(
                name=ref.name,
                subject=ref.subject,
                version=ref.version,
                url=subject_url(registry.name, ref.subject, version=ref.version),
            )
            for ref in info.schema.references
        ),
        settings=_settings(registry, name) if tab == "settings" else (),
        what_if=what_if_form(registry.name, name) if tab == "settings" else None,
        reference_lists=reference_lists(registry, name, info.version, page_actor(request))
        if tab == "references"
        else None,
        graph_url=subject_url(registry.name, name.qualified, "references", version=info.version),
    )


def pretty(info: selectors.VersionInfo) -> str:
    """The canonical text, laid out where it is JSON."""
    if info.schema.schema_type == "PROTOBUF":
        return info.schema.text
    return laid_out(info.schema.text)


def _cut(text: str) -> tuple[str, int]:
    """The first lines of a text, and how many more there are."""
    lines = text.split("\n")
    return "\n".join(lines[:SOURCE_LINES]), max(0, len(lines) - SOURCE_LINES)


def field_url(registry: str, subject: str, version: int, position: int) -> str:
    """Where the field at a position (from 1) of a version is drawn."""
    begin = (max(1, position) - 1) // FIELD_ROWS * FIELD_ROWS
    return subject_url(registry, subject, version=version, fields=begin or None) + f"#field-{position}"


def _raw_url(registry: str, name: SubjectName, version: int) -> str:
    return f"/registries/{quote(registry, safe='')}/subjects/{quote(name.qualified, safe='')}/versions/{version}/schema"


@dataclass(frozen=True)
class _Structure:
    """The fields from `begin`, what data say of them, and where the others are, if there are others."""

    fields: tuple[FieldRow, ...] = ()
    begin: int = 0
    paging: Paging | None = None
    in_data: InData | None = None


def _structure(
    request: HttpRequest, registry: Registry, name: SubjectName, info: selectors.VersionInfo, note: Note
) -> _Structure:
    """The fields of the page that the address asks for."""
    origins = selectors.field_origins(registry, name)
    page, place = reverse("ui:field"), {"registry": registry.name, "subject": name.qualified}
    outline = selectors.outline_of(registry, name, info.version)
    tags = tags_of_outline(info.schema.schema_type, outline, info.schema.metadata, note).fields
    begin = (whole_number(request.GET.get("fields", "")) or 0) // FIELD_ROWS * FIELD_ROWS
    begin = begin if begin < len(outline) else 0
    drawn = list(enumerate(zip(outline, tags, strict=True), start=1))[begin : begin + FIELD_ROWS]
    in_data, seen = seen_in_data(
        registry, name, drawn=[field.path for _, (field, _) in drawn], declared=(field.path for field in outline)
    )
    rows = tuple(
        FieldRow(
            name=field.name,
            path=field.path,
            anchor=f"field-{number}",
            type=field.type,
            depth=field.depth,
            required=field.required,
            default=field.default,
            doc=field.doc,
            aliases=field.aliases,
            since=origins.get(field.path),
            history_url=f"{page}?{urlencode({**place, 'path': field.path})}",
            tags=tag_chips("", held.tags),
            personal=held.is_personal,
            fact=fact_name(field.path),
            seen=seen.get(field.path),
        )
        for number, (field, held) in drawn
    )
    if len(outline) <= FIELD_ROWS:
        return _Structure(rows, begin, None, in_data)
    words = "business" if request.GET.get("words") == "business" else None
    urls = [
        subject_url(registry.name, name.qualified, version=info.version, fields=at or None, words=words)
        for at in (begin - FIELD_ROWS, begin + FIELD_ROWS)
    ]
    paging = Paging(
        first=begin + 1,
        last=begin + len(rows),
        total=len(outline),
        previous_url=urls[0] if begin else "",
        next_url=urls[1] if begin + len(rows) < len(outline) else "",
    )
    return _Structure(rows, begin, paging, in_data)


def _settings(registry: Registry, name: SubjectName) -> tuple[Setting, ...]:
    config, mode = selectors.effective_config(registry, name), selectors.effective_mode(registry, name)
    return (
        Setting(
            label=gettext("Compatibility"),
            value=config.level,
            origin=_origin(config.origin),
            sentence=f"{LEVELS[config.level].description} {level_order(config.level)}.",
            own=config.origin == "subject",
        ),
        Setting(
            label=gettext("Mode"),
            value=mode.mode,
            origin=_origin(mode.origin),
            sentence=MODE_SENTENCES[mode.mode],
            own=mode.origin == "subject",
        ),
    )
