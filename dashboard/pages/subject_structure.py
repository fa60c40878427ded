"""The structure of a version: which of its fields a page draws, what is known of each, and an example message."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.fields_seen import seen_in_data
from dashboard.pages.notes import tag_chips
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from dashboard.presenters.business_words import fact_name
from dashboard.presenters.frame import Paging
from dashboard.presenters.subjects import ExamplePanel, FieldRow, InData, SeenField, Tree
from dashboard.texts import counted
from registry.errors import SchemadeskError
from registry.formats.base import OutlineField
from registry.formats.effective_tags import FieldTags
from registry.subjects import selectors
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.clients import ClientInfo, clients_of
from registry.subjects.selectors.dependants import count_referrers
from registry.subjects.selectors.example import example_of
from registry.subjects.selectors.notes import Note
from registry.subjects.selectors.readings import UNREADABLE
from registry.subjects.selectors.tags import tags_of_outline

#: fields that a page draws: more would be too heavy for it
FIELD_ROWS: Final = 100
#: fields below this depth are drawn once what they are in is opened
OPEN_DEPTH: Final = 2
MAX_FILTER: Final = 200
#: lines and characters of an example that are drawn
EXAMPLE_LINES, EXAMPLE_CHARACTERS = 400, 40_000
#: clients that are named beside a field
NAMED: Final = 2
#: the page's own address with something else in its query
_Url = Callable[..., str]


@dataclass(frozen=True)
class Structure:
    """The fields that the address asks for, what data say of them, and how to see others.

    `error` is what reading the version met; it has no fields then.
    """

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


def parents_of(outline: Sequence[OutlineField]) -> list[int | None]:
    """For each field, where the one stands that it is in."""
    parents: list[int | None] = []
    above: list[int] = []
    for number, item in enumerate(outline):
        del above[item.depth :]
        parents.append(above[-1] if above else None)
        above.append(number)
    return parents


@dataclass(frozen=True)
class _Asked:
    """What the address asks for: `opened` are positions from 0, None for all."""

    filter: str
    opened: frozenset[int] | None
    begin: int | None
    words: str | None
    example: bool

    def query(self, **other: object) -> dict[str, Any]:
        """The address's query with something else in it."""
        opened = "all" if self.opened is None else [number + 1 for number in sorted(self.opened)]
        given: dict[str, Any] = {
            "filter": self.filter or None,
            "open": opened or None,
            "words": self.words,
            "example": "shown" if self.example else None,
        }
        return given | other


def _asked(request: HttpRequest) -> _Asked:
    numbers = [whole_number(text) for text in request.GET.getlist("open")[:FIELD_ROWS]]
    return _Asked(
        filter=given_text(request.GET, "filter").strip()[:MAX_FILTER],
        opened=None if "all" in request.GET.getlist("open") else frozenset(number - 1 for number in numbers if number),
        begin=whole_number(request.GET.get("fields", "")),
        words="business" if request.GET.get("words") == "business" else None,
        example=request.GET.get("example") == "shown",
    )


def read_structure(
    request: HttpRequest,
    place: Registry,
    name: SubjectName,
    info: selectors.VersionInfo,
    readings: Sequence[selectors.Reading],
    note: Note,
) -> Structure:
    """The fields of the page that the address asks for; two queries besides what data say of them."""
    try:
        outline = selectors.outline_of(place, name, info.version)
    except UNREADABLE as error:
        return Structure(error=error)
    tags = tags_of_outline(info.schema.schema_type, outline, info.schema.metadata, note).fields
    asked = _asked(request)

    def url(**other: object) -> str:
        return subject_url(place.name, name.qualified, version=info.version, **asked.query(**other))

    chosen = _chosen(outline, tags, asked)
    begin = _begin(chosen.visible, asked)
    drawn = chosen.visible[begin : begin + FIELD_ROWS]
    clients = clients_of(place, name)
    in_data, seen = seen_in_data(
        place, name, drawn=[outline[number].path for number in drawn], declared=(item.path for item in outline)
    )
    about = {"registry": place.name, "subject": name.qualified}
    rows = _Rows(selectors.origins_of(readings), seen, clients, about)
    return Structure(
        fields=tuple(rows.row(number, outline[number], tags[number], chosen, url) for number in drawn),
        paging=_paging(begin, len(drawn), len(chosen.visible), url),
        tree=_tree(place, name, info, asked, chosen, clients, len(outline), url),
        in_data=in_data,
        words_url=url(words=None if asked.words else "business", fields=begin or None) if outline else "",
    )


# -- which fields ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Chosen:
    """Positions of the fields that are drawn on some page, and of those that the filter found (None: no filter).

    `inside` counts the fields in each field that is at the depth where trees are closed; `opened` are those shown open.
    """

    visible: tuple[int, ...]
    found: frozenset[int] | None = None
    inside: Mapping[int, int] = field(default_factory=dict)
    opened: frozenset[int] = frozenset()
    hidden: int = 0


def _chosen(outline: Sequence[OutlineField], tags: Sequence[FieldTags], asked: _Asked) -> _Chosen:
    parents = parents_of(outline)
    if asked.filter:
        found = frozenset(
            number for number, item in enumerate(outline) if _matches(item, tags[number].tags, asked.filter)
        )
        return _Chosen(tuple(sorted(_with_parents(found, parents))), found)
    inside: dict[int, int] = {}
    for number, item in enumerate(outline):
        above = parents[number]
        if above is not None and item.depth > OPEN_DEPTH:
            inside[above] = inside.get(above, 0) + 1
    wanted = frozenset(inside) if asked.opened is None else asked.opened
    opened = frozenset(_with_parents({number for number in wanted if number < len(outline)}, parents))
    shown: set[int] = set()
    for number, item in enumerate(outline):
        above = parents[number]
        if item.depth <= OPEN_DEPTH or (above in shown and above in opened):
            shown.add(number)
    return _Chosen(tuple(sorted(shown)), None, inside, opened & frozenset(inside), len(outline) - len(shown))


def _with_parents(numbers: Collection[int], parents: Sequence[int | None]) -> set[int]:
    """The fields with all that they are in."""
    found: set[int] = set()
    for number in numbers:
        above: int | None = number
        while above is not None and above not in found:
            found.add(above)
            above = parents[above]
    return found


def _matches(item: OutlineField, tags: Sequence[str], text: str) -> bool:
    """Whether the words are in what a row says; with a dot the path is looked at, else the name alone."""
    said = "\n".join((item.path if "." in text else item.name, item.type, item.doc, *item.aliases, *tags)).casefold()
    return all(word in said for word in text.casefold().split())


def _begin(visible: Sequence[int], asked: _Asked) -> int:
    """Where the page begins: as asked, else at the page of the first field that is asked to be open."""
    begin = asked.begin
    if begin is None and asked.opened and not asked.filter:
        first = min(asked.opened)
        begin = visible.index(first) if first in visible else 0
    begin = (begin or 0) // FIELD_ROWS * FIELD_ROWS
    return begin if begin < len(visible) else 0


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

    def row(self, number: int, item: OutlineField, held: FieldTags, chosen: _Chosen, url: _Url) -> FieldRow:
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
    asked: _Asked,
    chosen: _Chosen,
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
