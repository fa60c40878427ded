"""The structure of a version: the fields to show, their counts in data, and an example message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.business_terms import fact_name
from dashboard.components.badges import Severity
from dashboard.components.links import offset_paging, subject_url
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.subjects.descriptions import tag_chips
from dashboard.subjects.field_filter import FIELD_ROWS, DrawnFields, TreeQuery, asked_of, begin_of, chosen_of
from dashboard.subjects.presenters import ExamplePanel, FieldMarkLink, FieldRow, InData, SeenField, Structure, Tree
from registry.drift.models import Topic
from registry.drift.replay.evidence import FieldTotals
from registry.drift.replay.field_evidence import MAX_DAYS, FieldMark, ObservedFields, fields_in_data
from registry.errors import SchemadeskError
from registry.formats.base import OutlineField
from registry.formats.personal_data import FieldTags
from registry.subjects import selectors
from registry.subjects.comparison.parsed_versions import UNREADABLE, example_of, tags_of_outline
from registry.subjects.engine import schema_engine
from registry.subjects.lifecycle.notes import Note
from registry.subjects.models import Registry
from registry.subjects.references.reference_graph import count_referrers
from registry.subjects.usage.clients import ClientInfo, clients_of, is_part_of_field
from registry.subjects.versions.qualified_names import SubjectName

#: rule of an open finding → label beside the field
WORDS: Final[Mapping[str, str]] = {
    "FIELD_UNDECLARED": _("not declared"),
    "FIELD_MISSING": _("required but missing"),
    "FIELD_TYPE_WRONG": _("not the declared type"),
    "ENUM_VALUE_UNDECLARED": _("unlisted value"),
    "FIELD_TYPE_NEW": _("new type of value"),
    "NULL_SHARE_INCREASED": _("filled less often"),
    "ENUM_SHARE_SHIFTED": _("values have changed"),
    "FIELD_NEVER_FILLED": _("no longer filled"),
    "UNIT_CHANGED": _("another unit or form"),
    "DISTINCT_VALUES_CHANGED": _("other values"),
    "VALUES_OUT_OF_RANGE": _("outside the usual range"),
    "FIELDS_SWAPPED": _("swapped with another field"),
}
#: findings about undeclared fields that are listed below the table
MAX_ELSEWHERE: Final = 20


def seen_in_data(
    registry: Registry, subject: SubjectName, topics: Iterable[Topic], *, drawn: Iterable[str], declared: Iterable[str]
) -> tuple[InData, dict[str, SeenField]]:
    """Return the counts for the version and for the `drawn` fields; `declared` are the paths of all its fields.

    A finding about a declared field on another page is listed there.
    """
    listed = list(drawn)
    data_fields = fields_in_data(registry, subject, listed, topics)
    others = {path.partition(".")[2].replace("{}", "[]") for path in declared}
    elsewhere = [mark for mark in data_fields.elsewhere if mark.path.replace("{}", "[]") not in others]
    in_data = InData(
        is_scanned=data_fields.is_scanned,
        days=MAX_DAYS,
        undeclared=tuple(_link(mark, named=True) for mark in elsewhere[:MAX_ELSEWHERE]),
        more_undeclared=max(0, len(elsewhere) - MAX_ELSEWHERE),
    )
    return in_data, {
        path: _field(path, data_fields) for path in listed if path in data_fields.fields or path in data_fields.marks
    }


def _field(path: str, data_fields: ObservedFields) -> SeenField:
    field_counts = data_fields.fields.get(path)
    marks = tuple(_link(mark) for mark in data_fields.marks.get(path, ()))
    if field_counts is None or not field_counts.messages:
        return SeenField(marks=marks)
    is_always = field_counts.filled >= field_counts.messages  # also means that it was always present and never null
    return SeenField(
        filled=_share(field_counts),
        never=not field_counts.filled,
        messages=field_counts.messages,
        present="" if is_always else _percent(field_counts.present, field_counts.messages),
        nulls="" if is_always else _percent(field_counts.nulls, field_counts.messages),
        last_day=field_counts.last_day if field_counts.present else None,
        marks=marks,
    )


def _share(counts: FieldTotals) -> str:
    """Say in how many messages the field had a value."""
    if not counts.filled:
        return gettext("none")
    if counts.filled >= counts.messages:
        return gettext("all")
    return _percent(counts.filled, counts.messages)


def _percent(part: int, whole: int) -> str:
    """Format a share; rounding never gives 0 % or 100 %."""
    if not 0 < part < whole:
        return "0 %" if part <= 0 else "100 %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def _link(mark: FieldMark, *, named: bool = False) -> FieldMarkLink:
    word = WORDS.get(mark.rule, gettext("finding"))
    return FieldMarkLink(
        word=word,
        path=mark.path if named else "",
        sentence=mark.sentence,
        severity=Severity.of(mark.severity),
        url=reverse("ui:finding", args=[mark.finding]),
    )


#: limits of a displayed example
EXAMPLE_LINES, EXAMPLE_CHARACTERS = 400, 40_000
#: clients named beside a field
NAMED: Final = 2
#: builds the page's URL with changed parameters
_Url = Callable[..., str]


def field_url(registry: str, subject: str, version: int, position: int) -> str:
    """Return the URL that shows the field at a position (from 1) of a version, with its parents expanded."""
    return subject_url(registry, subject, version=version, open=position) + f"#field-{position}"


def read_structure(
    request: HttpRequest,
    registry: Registry,
    name: SubjectName,
    info: selectors.VersionInfo,
    readings: Sequence[selectors.Reading],
    origins: Mapping[str, int],
    note: Note,
    topics: Iterable[Topic],
    terms: Mapping[str, str],
) -> Structure:
    """Return the fields that the URL requests; two queries besides those for counts in data."""
    try:
        outline = schema_engine.outline(selectors.parsed_of(registry, info, readings))
    except UNREADABLE as error:
        return Structure(error=error)
    outline_tags = tags_of_outline(info.schema.schema_type, outline, info.schema.metadata, note)
    tags, options = outline_tags.fields, asked_of(request)

    def url(**other: object) -> str:
        return subject_url(registry.name, name.qualified, version=info.version, **options.query(**other))

    chosen = chosen_of(outline, tags, options)
    begin = begin_of(chosen.visible, options)
    drawn = chosen.visible[begin : begin + FIELD_ROWS]
    clients = clients_of(registry, name)
    in_data, fields_in_data = seen_in_data(
        registry,
        name,
        topics,
        drawn=[outline[number].path for number in drawn],
        declared=(item.path for item in outline),
    )
    about = {"registry": registry.name, "subject": name.qualified}
    rows = _Rows(origins, fields_in_data, clients, about, terms)
    return Structure(
        tags=outline_tags,
        fields=tuple(rows.row(number, outline[number], tags[number], chosen, url) for number in drawn),
        paging=offset_paging(begin, len(drawn), len(chosen.visible), FIELD_ROWS, lambda number: url(fields=number))
        if len(chosen.visible) > FIELD_ROWS
        else None,
        tree=_tree(registry, name, info, options, chosen, clients, len(outline), url),
        in_data=in_data,
        words_url=url(words=None if options.wording else "business", fields=begin or None) if outline else "",
    )


# -- what is drawn -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Makes the rows from the data of all fields."""

    origins: Mapping[str, int]
    data_by_path: Mapping[str, SeenField]
    clients: Sequence[ClientInfo]
    history: Mapping[str, str]
    terms: Mapping[str, str]

    def row(self, number: int, item: OutlineField, field_tags: FieldTags, chosen: DrawnFields, url: _Url) -> FieldRow:
        inside = chosen.inside.get(number, 0)
        is_open = number in chosen.opened
        others = sorted(chosen.opened - {number} if is_open else chosen.opened | {number})
        used_by = [
            client.name for client in self.clients if any(is_part_of_field(item.path, path) for path in client.fields)
        ]
        return FieldRow(
            item=item,
            anchor=f"field-{number + 1}",
            since=self.origins.get(item.path),
            history_url=f"{reverse('ui:field')}?{urlencode({**self.history, 'path': item.path})}",
            tags=tag_chips("", field_tags.tags),
            personal=field_tags.is_personal,
            fact=fact_name(item.path),
            data=self.data_by_path.get(item.path),
            inside=inside,
            is_open=is_open,
            toggle_url=url(open=[other + 1 for other in others] or None) + f"#field-{number + 1}" if inside else "",
            used_by=tuple(used_by[:NAMED]),
            used_by_more=max(0, len(used_by) - NAMED),
            is_around=chosen.matches is not None and number not in chosen.matches,
            term=self.terms.get(item.path, ""),
        )


def _tree(
    registry: Registry,
    name: SubjectName,
    info: selectors.VersionInfo,
    options: TreeQuery,
    chosen: DrawnFields,
    clients: Sequence[ClientInfo],
    total: int,
    url: _Url,
) -> Tree | None:
    if not total:
        return None
    return Tree(
        url=subject_url(registry.name, name.qualified),
        version=info.version,
        filter=options.filter,
        kept_parameters=tuple((key, str(value)) for key, value in (("words", options.wording),) if value),
        summary=_found_said(len(chosen.matches), total) if chosen.matches is not None else "",
        clear_url=url(filter=None) if options.filter else "",
        open_all_url=url(open="all") if chosen.hidden else "",
        hidden=chosen.hidden,
        close_url=url(open=None) if chosen.opened and not chosen.hidden else "",
        shows_users=any(client.fields for client in clients),
        users=_users_said(clients, count_referrers(registry, name, info.version)),
        usage_url=subject_url(registry.name, name.qualified, "usage") + "#clients-title",
        example_url=url(example=None if options.example else "shown"),
        example=_example(registry, name, info.version) if options.example else None,
    )


def _found_said(matches: int, total: int) -> str:
    return counted(
        matches, "%(n)s of %(total)s fields matches.", "%(n)s of %(total)s fields match.", total=f"{total:,}"
    )


def _users_said(clients: Sequence[ClientInfo], referrers: int) -> tuple[str, ...]:
    """Say who uses all of the fields, as far as known."""
    silent = sum(not client.fields for client in clients)
    sentences = [
        counted(
            referrers,
            "%(n)s subject refers to this version and so to all its fields.",
            "%(n)s subjects refer to this version and so to all its fields.",
        )
        if referrers
        else "",
        counted(
            silent,
            "%(n)s declared client doesn’t list its fields, so it may use any of them.",
            "%(n)s declared clients don’t list their fields, so they may use any of them.",
        )
        if silent
        else "",
    ]
    return tuple(filter(None, sentences))


def _example(registry: Registry, name: SubjectName, version: int) -> ExamplePanel:
    try:
        example = example_of(registry, name, version)
    except SchemadeskError as error:
        return ExamplePanel(problem=error.message)
    text = json.dumps(example.value, indent=2, ensure_ascii=False)
    lines = text[:EXAMPLE_CHARACTERS].split("\n")
    shown = "\n".join(lines[:EXAMPLE_LINES])
    note = (
        counted(
            example.placeholders,
            "%(n)s value is a placeholder because its field is tagged as personal data.",
            "%(n)s values are placeholders because their fields are tagged as personal data.",
        )
        if example.placeholders
        else ""
    )
    return ExamplePanel(
        text=shown,
        is_cut=len(shown) < len(text),
        note=note,
        refused=gettext("The placeholders don’t match the schema. Replace them with real values: %(why)s")
        % {"why": example.refused}
        if example.refused and example.placeholders
        else example.refused,
    )
