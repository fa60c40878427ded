"""Which removed and added properties look like one property under two names, with a score and its reasons."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.formats.json_schema.interning import json_equal
from registry.formats.json_schema.labels import type_words
from registry.formats.likeness import SUSPICION, rename_score

_MAX_COMPARISONS: Final = 2_500
_NOTES: Final = ("title", "description", "default", "examples", "$comment")


@dataclass(frozen=True, slots=True)
class Rename:
    """A suspected rename; `score` from 0 to 1."""

    old: str
    new: str
    score: float
    reasons: tuple[str, ...]


def suspected_renames(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Rename]:
    """The most likely renames between the properties that only one side has, each in at most one, best first."""
    removed, added = [name for name in old if name not in new], [name for name in new if name not in old]
    places_old, places_new = {name: at for at, name in enumerate(old)}, {name: at for at, name in enumerate(new)}
    wanted = max(1, _MAX_COMPARISONS // max(1, len(removed)))
    scored = []
    for name in removed[:_MAX_COMPARISONS]:
        begin = bisect_left(added, places_old[name], key=lambda other: places_new[other]) - wanted // 2
        begin = max(0, min(begin, len(added) - wanted))
        near = added[begin : begin + wanted]
        for other in near:
            is_same_place = places_old[name] == places_new[other]
            rename = _compare(name, old[name], other, new[other], is_same_place=is_same_place)
            if rename.score >= SUSPICION:
                scored.append(rename)
    scored.sort(key=lambda rename: (-rename.score, places_old[rename.old], places_new[rename.new]))
    return _each_once(scored)


def _each_once(scored: list[Rename]) -> list[Rename]:
    taken_old: set[str] = set()
    taken_new: set[str] = set()
    chosen = []
    for rename in scored:
        if rename.old not in taken_old and rename.new not in taken_new:
            taken_old.add(rename.old)
            taken_new.add(rename.new)
            chosen.append(rename)
    return chosen


def _compare(old: str, before: Any, new: str, after: Any, *, is_same_place: bool) -> Rename:
    if type_words(before) != type_words(after):
        return Rename(old, new, 0.0, ())
    is_equal = json_equal(_bare(before), _bare(after))
    clues = [(0.3, "the same schema") if is_equal else (0.2, "the same type")]
    if is_same_place:
        clues.append((0.2, "the same position"))
    description = before.get("description") if isinstance(before, dict) else None
    if description and isinstance(after, dict) and after.get("description") == description:
        clues.append((0.25, "the same description"))
    return Rename(old, new, *rename_score(old[:200], new[:200], 0.45, clues))


def _bare(schema: Any) -> Any:
    return {key: value for key, value in schema.items() if key not in _NOTES} if isinstance(schema, dict) else schema
