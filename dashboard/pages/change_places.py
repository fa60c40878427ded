"""Which findings belong to which change of a comparison: by path, then by what they speak of, then by pointer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from registry.formats.base import Difference
from registry.formats.report import Report, ReportItem
from registry.subjects import selectors

#: words of rules' names that say how something changed, or are in most names
_COMMON_WORDS: Final = frozenset({"ADDED", "REMOVED", "CHANGED", "MISSING", "FIELD", "PROPERTY", "TO", "OF"})
#: what opens items, values or branches in a path
_INSIDE: Final = re.compile(r"[\[{<]")


@dataclass
class Place:
    """A card in the making: a difference (None: only reported) with what each direction says of it."""

    difference: Difference | None
    path: str
    backward: list[ReportItem] = field(default_factory=list)
    forward: list[ReportItem] = field(default_factory=list)


def places_of(
    found: selectors.Comparison, differences: Sequence[Difference], backward: Report, forward: Report
) -> list[Place]:
    """One place a difference, and one a reported problem that no difference stands for: none may stay unseen."""
    has_renames = isinstance(found, selectors.ProvedComparison) and bool(found.renames)
    shown = [item for item in differences if item.score is None or not has_renames]
    places = [Place(item, item.path) for item in shown]
    by_path: dict[str, list[Place]] = {}
    for place in places:
        by_path.setdefault(place.path, []).append(place)
    for report, side in ((backward, "backward"), (forward, "forward")):
        for item in report.items:
            fitting = _fitting(by_path, item)
            if not fitting:
                fitting = [Place(None, item.named_path)]
                places.extend(fitting)
                by_path[item.named_path] = list(fitting)
            for place in fitting:
                getattr(place, side).append(item)
    return places


def _fitting(by_path: Mapping[str, Sequence[Place]], item: ReportItem) -> list[Place]:
    """The places that a finding is of. Of several on one path: those whose rule speaks of the same, else the nearest."""
    near = [place for path in _same_places(item.named_path) for place in by_path.get(path, ())]
    if len(near) < 2:
        return near
    shared = [len(_told(place) & _words(item.rule)) for place in near]
    marks: list[Any] = shared if any(shared) else [_nearness(place, item) for place in near]
    return [place for place, mark in zip(near, marks, strict=True) if mark == max(marks)]


def _told(place: Place) -> frozenset[str]:
    return _words(place.difference.rule) if place.difference else frozenset()


def _words(rule: str) -> frozenset[str]:
    """The words of a rule's name that say what it is about."""
    return frozenset(rule.split("_")) - _COMMON_WORDS


def _nearness(place: Place, item: ReportItem) -> tuple[int, int]:
    """How many steps of the pointers are common, and minus those that are only the difference's."""
    if place.difference is None:
        return (0, 0)
    best = (0, 0)
    pairs = (
        (place.difference.pointer_new, item.json_pointer_new),
        (place.difference.pointer_old, item.json_pointer_old),
    )
    for ours, theirs in pairs:
        if ours is None or theirs is None:
            continue
        left, right = ours.split("/"), theirs.split("/")
        common = 0
        while common < min(len(left), len(right)) and left[common] == right[common]:
            common += 1
        best = max(best, (common, common - len(left)))
    return best


def _same_places(reported: str) -> list[str]:
    """The path that a finding names, and those of what holds its items, values or branches."""
    return [reported, *(reported[: found.start()] for found in _INSIDE.finditer(reported))]
