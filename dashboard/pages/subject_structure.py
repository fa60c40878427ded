"""The structure of a version: which of its fields a page draws, what is known of each, and an example message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.fields_seen import seen_in_data
from dashboard.pages.notes import tag_chips
from dashboard.pages.structure_choice import FIELD_ROWS, Asked, Chosen, asked_of, begin_of, chosen_of
from dashboard.presenters.business_words import fact_name
from dashboard.presenters.frame import Paging
from dashboard.presenters.subjects import ExamplePanel, FieldRow, InData, SeenField, Tree
from dashboard.texts import counted
from registry.errors import SchemadeskError
from registry.formats.base import OutlineField
from registry.formats.effective_tags import FieldTags, SchemaTags
from registry.subjects import engines, selectors
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.clients import ClientInfo, clients_of
from registry.subjects.selectors.dependants import count_referrers
from registry.subjects.selectors.example import example_of
from registry.subjects.selectors.notes import Note
from registry.subjects.selectors.readings import UNREADABLE
from registry.subjects.selectors.tags import tags_of_outline

#: lines and characters of an example that are drawn
EXAMPLE_LINES, EXAMPLE_CHARACTERS = 400, 40_000
#: clients that are named beside a field
NAMED: Final = 2
#: the page's own address with something else in its query
_Url = Callable[..., str]


@dataclass(frozen=True)
class Structure:
    """The fields that the address asks for, what data say of them, and how to see others.

    `error` is what reading the version met; it has no fields then. `tags` are those of all fields, where they were read.
    """

    tags: SchemaTags | None = None
    fields: tuple[FieldRow, ...] = ()
    paging: Paging | None = None
    tree: Tree | None = None
    in_data: InData | None = None
    words_url: str = ""
    error: SchemadeskError | None = None


def field_url(registry: str, subject: str, version: int, position: int) -> str:
    """Where the field at a position (from 1) of a version is drawn: what it is in is open there."""
    return subject_url(registry, subject, version=version, open=position) + f"#field-{position}"


def is_of(path: str, other: str) -> bool:
    """Whether a client's field is this one, a part of it or what it is a part of; the record's own name may be left out."""
    return any(
        mine == other or mine.startswith(f"{other}.") or other.startswith(f"{mine}.")
        for mine in (path, path.partition(".")[2])
        if mine
    )


def read_structure(
    request: HttpRequest,
    place: Registry,
    name: SubjectName,
    info: selectors.VersionInfo,
    readings: Sequence[selectors.Reading],
    origins: Mapping[str, int],
    note: Note,
) -> Structure:
    """The fields of the page that the address asks for; two queries besides what data say of them."""
    try:
        outline = engines.outline(selectors.parsed_of(place, info, readings))
    except UNREADABLE as error:
        return Structure(error=error)
    held = tags_of_outline(info.schema.schema_type, outline, info.schema.metadata, note)
    tags, asked = held.fields, asked_of(request)

    def url(**other: object) -> str:
        return subject_url(place.name, name.qualified, version=info.version, **asked.query(**other))

    chosen = chosen_of(outline, tags, asked)
    begin = begin_of(chosen.visible, asked)
    drawn = chosen.visible[begin : begin + FIELD_ROWS]
    clients = clients_of(place, name)
    in_data, seen = seen_in_data(
        place, name, drawn=[outline[number].path for number in drawn], declared=(item.path for item in outline)
    )
    about = {"registry": place.name, "subject": name.qualified}
    rows = _Rows(origins, seen, clients, about)
    return Structure(
        tags=held,
        fields=tuple(rows.row(number, outline[number], tags[number], chosen, url) for number in drawn),
        paging=_paging(begin, len(drawn), len(chosen.visible), url),
        tree=_tree(place, name, info, asked, chosen, clients, len(outline), url),
        in_data=in_data,
        words_url=url(words=None if asked.words else "business", fields=begin or None) if outline else "",
    )


def _paging(begin: int, drawn: int, total: int, url: _Url) -> Paging | None:
    if total <= FIELD_ROWS:
        return None
    return Paging(
        first=begin + 1,
        last=begin + drawn,
        total=total,
        previous_url=url(fields=begin - FIELD_ROWS) if begin else "",
        next_url=url(fields=begin + FIELD_ROWS) if begin + drawn < total else "",
    )


# -- what is drawn --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Makes the rows, of what is known of all fields."""

    origins: Mapping[str, int]
    seen: Mapping[str, SeenField]
    clients: Sequence[ClientInfo]
    history: Mapping[str, str]

    def row(self, number: int, item: OutlineField, held: FieldTags, chosen: Chosen, url: _Url) -> FieldRow:
        inside = chosen.inside.get(number, 0)
        is_open = number in chosen.opened
        others = sorted(chosen.opened - {number} if is_open else chosen.opened | {number})
        used_by = [client.name for client in self.clients if any(is_of(item.path, path) for path in client.fields)]
        return FieldRow(
            name=item.name,
            path=item.path,
            anchor=f"field-{number + 1}",
            type=item.type,
            depth=item.depth,
            required=item.required,
            default=item.default,
            doc=item.doc,
            aliases=item.aliases,
            since=self.origins.get(item.path),
            history_url=f"{reverse('ui:field')}?{urlencode({**self.history, 'path': item.path})}",
            tags=tag_chips("", held.tags),
            personal=held.is_personal,
            fact=fact_name(item.path),
            seen=self.seen.get(item.path),
            inside=inside,
            is_open=is_open,
            toggle_url=url(open=[other + 1 for other in others] or None) + f"#field-{number + 1}" if inside else "",
            used_by=tuple(used_by[:NAMED]),
            used_by_more=max(0, len(used_by) - NAMED),
            is_around=chosen.found is not None and number not in chosen.found,
        )


def _tree(
    place: Registry,
    name: SubjectName,
    info: selectors.VersionInfo,
    asked: Asked,
    chosen: Chosen,
    clients: Sequence[ClientInfo],
    total: int,
    url: _Url,
) -> Tree | None:
    if not total:
        return None
    return Tree(
        url=subject_url(place.name, name.qualified),
        version=info.version,
        filter=asked.filter,
        kept=tuple((key, str(value)) for key, value in (("words", asked.words),) if value),
        said=_found_said(len(chosen.found), total) if chosen.found is not None else "",
        clear_url=url(filter=None) if asked.filter else "",
        open_all_url=url(open="all") if chosen.hidden else "",
        hidden=chosen.hidden,
        close_url=url(open=None) if chosen.opened and not chosen.hidden else "",
        shows_users=any(client.fields for client in clients),
        users=_users_said(clients, count_referrers(place, name, info.version)),
        usage_url=subject_url(place.name, name.qualified, "usage") + "#clients-title",
        example_url=url(example=None if asked.example else "shown"),
        example=_example(place, name, info.version) if asked.example else None,
    )


def _found_said(found: int, total: int) -> str:
    return counted(found, "%(n)s of %(total)s fields matches.", "%(n)s of %(total)s fields match.", total=f"{total:,}")


def _users_said(clients: Sequence[ClientInfo], referrers: int) -> tuple[str, ...]:
    """Who uses all of the fields, as far as that can be told."""
    silent = sum(not client.fields for client in clients)
    said = [
        counted(
            referrers,
            "%(n)s subject refers to this version, and with it to all of its fields.",
            "%(n)s subjects refer to this version, and with it to all of its fields.",
        )
        if referrers
        else "",
        counted(
            silent,
            "%(n)s declared client says nothing of fields: it may use any.",
            "%(n)s declared clients say nothing of fields: they may use any.",
        )
        if silent
        else "",
    ]
    return tuple(filter(None, said))


def _example(place: Registry, name: SubjectName, version: int) -> ExamplePanel:
    try:
        found = example_of(place, name, version)
    except SchemadeskError as error:
        return ExamplePanel(problem=error.message)
    text = json.dumps(found.value, indent=2, ensure_ascii=False)
    lines = text[:EXAMPLE_CHARACTERS].split("\n")
    shown = "\n".join(lines[:EXAMPLE_LINES])
    note = (
        counted(
            found.placeholders,
            "%(n)s value is a placeholder: its field is tagged as personal data.",
            "%(n)s values are placeholders: their fields are tagged as personal data.",
        )
        if found.placeholders
        else ""
    )
    return ExamplePanel(
        text=shown,
        is_cut=len(shown) < len(text),
        note=note,
        refused=gettext("With its placeholders it doesn’t pass the schema; put in values of your own: %(why)s")
        % {"why": found.refused}
        if found.refused and found.placeholders
        else found.refused,
    )
