"""The fields of the tree to show: those named in the URL, found by the filter, or expanded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.http import HttpRequest

from dashboard.components.links import form_text, whole_number
from registry.formats.base import OutlineField
from registry.formats.personal_data import FieldTags

#: fields on a page: more would make it too large
FIELD_ROWS: Final = 100
#: fields deeper than this are shown once their parent is expanded
OPEN_DEPTH: Final = 2
#: the fields of a change event by which it is recognised, and the one that is shown expanded: the row's new values
CHANGE_EVENT: Final = frozenset({"before", "after", "source", "op"})
NEW_ROW: Final = "after"
MAX_FILTER: Final = 200


def parents_of(outline: Sequence[OutlineField]) -> list[int | None]:
    """Return the position of each field's parent."""
    parents: list[int | None] = []
    above: list[int] = []
    for number, item in enumerate(outline):
        del above[item.depth :]
        parents.append(above[-1] if above else None)
        above.append(number)
    return parents


@dataclass(frozen=True)
class TreeQuery:
    """The parameters in the URL; `opened` are positions from 0, None for all."""

    filter: str
    opened: frozenset[int] | None
    begin: int | None
    wording: str | None
    example: bool

    def query(self, **other: object) -> dict[str, Any]:
        """Return the URL's query with some parameters replaced."""
        opened = "all" if self.opened is None else [number + 1 for number in sorted(self.opened)]
        parameters: dict[str, Any] = {
            "filter": self.filter or None,
            "open": opened or None,
            "words": self.wording,
            "example": "shown" if self.example else None,
        }
        return parameters | other


def asked_of(request: HttpRequest) -> TreeQuery:
    """Read the parameters from a request's URL; ignore invalid ones."""
    numbers = [whole_number(text) for text in request.GET.getlist("open")[:FIELD_ROWS]]
    return TreeQuery(
        filter=form_text(request.GET, "filter").strip()[:MAX_FILTER],
        opened=None if "all" in request.GET.getlist("open") else frozenset(number - 1 for number in numbers if number),
        begin=whole_number(request.GET.get("fields", "")),
        wording="business" if request.GET.get("words") == "business" else None,
        example=request.GET.get("example") == "shown",
    )


@dataclass(frozen=True)
class DrawnFields:
    """Positions of the fields to show on all pages, and of those that the filter found (None: no filter).

    `inside` counts the fields below each field at the depth where trees are collapsed; `opened` are the expanded ones.
    """

    visible: tuple[int, ...]
    matches: frozenset[int] | None = None
    inside: Mapping[int, int] = field(default_factory=dict)
    opened: frozenset[int] = frozenset()
    hidden: int = 0


def chosen_of(outline: Sequence[OutlineField], tags: Sequence[FieldTags], options: TreeQuery) -> DrawnFields:
    """Return the fields that match the filter, with their parents; without a filter, the expanded part of the tree."""
    parents = parents_of(outline)
    if options.filter:
        matches = frozenset(
            number for number, item in enumerate(outline) if _matches(item, tags[number].tags, options.filter)
        )
        return DrawnFields(tuple(sorted(_with_parents(matches, parents))), matches)
    depths = _open_depths(outline, parents)
    inside: dict[int, int] = {}
    for number, item in enumerate(outline):
        above = parents[number]
        if above is not None and item.depth > depths[number]:
            inside[above] = inside.get(above, 0) + 1
    opened_numbers = frozenset(inside) if options.opened is None else options.opened
    opened = frozenset(_with_parents({number for number in opened_numbers if number < len(outline)}, parents))
    shown: set[int] = set()
    for number, item in enumerate(outline):
        above = parents[number]
        if item.depth <= depths[number] or (above in shown and above in opened):
            shown.add(number)
    return DrawnFields(tuple(sorted(shown)), None, inside, opened & frozenset(inside), len(outline) - len(shown))


def _open_depths(outline: Sequence[OutlineField], parents: Sequence[int | None]) -> list[int]:
    """Return for each field the depth to which its part of the tree is shown.

    A change event repeats the row in `before` and says much of its source; both are collapsed.
    """
    is_change_event = {item.name for item in outline if item.depth == 0} >= CHANGE_EVENT
    depths: list[int] = []
    for item, above in zip(outline, parents, strict=True):
        is_open = not is_change_event or item.name == NEW_ROW
        depths.append(depths[above] if above is not None else OPEN_DEPTH if is_open else 0)
    return depths


def _with_parents(numbers: Collection[int], parents: Sequence[int | None]) -> set[int]:
    """Return the fields and all their ancestors."""
    positions: set[int] = set()
    for number in numbers:
        above: int | None = number
        while above is not None and above not in positions:
            positions.add(above)
            above = parents[above]
    return positions


def _matches(item: OutlineField, tags: Sequence[str], text: str) -> bool:
    """Return whether a row contains all words; the path is searched if the filter has a dot, else only the name."""
    text_of_row = "\n".join(
        (item.path if "." in text else item.name, item.type, item.doc, *item.aliases, *tags)
    ).casefold()
    return all(word in text_of_row for word in text.casefold().split())


def begin_of(visible: Sequence[int], options: TreeQuery) -> int:
    """Return the start of the page: as requested, else of the page with the first field to expand."""
    begin = options.begin
    if begin is None and options.opened and not options.filter:
        first = min(options.opened)
        begin = visible.index(first) if first in visible else 0
    begin = (begin or 0) // FIELD_ROWS * FIELD_ROWS
    return begin if begin < len(visible) else 0
