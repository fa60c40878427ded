"""Removed and added fields that look like one renamed field, with scores and reasons."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from registry.formats.avro.canonical import json_text
from registry.formats.avro.model import AvroType, Record, RecordField, Union, type_label
from registry.formats.name_similarity import SUSPICION, rename_score, words_of

_MAX_CANDIDATES: Final = 12
_MAX_COMPARISONS: Final = 2_500
_MAX_SHOWN: Final = 80
#: each type can be read as those after it
_NUMBERS: Final = ("int", "long", "float", "double")


@dataclass(frozen=True, slots=True)
class Rename:
    """A suspected rename; `score` from 0 to 1."""

    old: RecordField
    new: RecordField
    score: float
    reasons: tuple[str, ...]


def suspected_renames(removed: Sequence[RecordField], added: Sequence[RecordField]) -> list[Rename]:
    """Return the most likely renames, best first, each field in at most one; the work is limited for large schemas."""
    if not removed or not added:
        return []
    candidates = _Candidates(added)
    limit = max(2, min(_MAX_CANDIDATES, _MAX_COMPARISONS // len(removed)))
    scored: list[Rename] = []
    for old in removed[:_MAX_COMPARISONS]:
        compared = (_compare(old, new) for new in candidates.of(old, limit))
        scored.extend(rename for rename in compared if rename.score >= SUSPICION)
    scored.sort(key=lambda rename: (-rename.score, rename.old.position, rename.new.position))
    return _each_once(scored)


def effect_of(rename: Rename) -> str:
    """Describe the effect of a rename on readers of both schemas: without an alias, a new name is another field."""
    return f"{_effect('new', rename.new, rename.old)} {_effect('old', rename.old, rename.new)}"


def _effect(side: str, ours: RecordField, theirs: RecordField) -> str:
    """Describe the effect on readers with `ours` of data written with `theirs`."""
    if not ours.has_default:
        return (
            f'Readers with the {side} schema stop at every message written with "{theirs.name}": '
            f'"{ours.name}" has no default.'
        )
    text = json_text(ours.default)
    shown = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
    return (
        f'Readers with the {side} schema get the default {shown} for "{ours.name}" in every message written with '
        f'"{theirs.name}". They drop the value of "{theirs.name}".'
    )


def cure_of(rename: Rename) -> str:
    """Return what to do if it is a rename."""
    old, new = rename.old.name, rename.new.name
    narrower = ""
    if _is_narrower(rename.old.type, rename.new.type):
        types = type_label(rename.new.type), type_label(rename.old.type)
        narrower = f'Also give "{new}" a type that reads every value of "{old}": {types[0]} can\'t read {types[1]}. '
    return (
        f'Add the alias "{old}" to "{new}": readers with the new schema then take the value of "{old}". {narrower}'
        f'Readers with the old schema know no alias: upgrade all of them before a writer writes "{new}".'
    )


@lru_cache(maxsize=64)
def likely_sources(reader: Record, writer: Record) -> Mapping[str, RecordField]:
    """Map the fields that only the reader has, by name, to similar fields that only the writer has."""
    names = {name for field in reader.fields for name in (field.name, *field.aliases)}
    added = [
        field for field in reader.fields if not any(name in writer.by_name for name in (field.name, *field.aliases))
    ]
    removed = [field for field in writer.fields if field.name not in names]
    return {rename.new.name: rename.old for rename in suspected_renames(removed, added)}


class _Candidates:
    """The added fields to compare a removed field with: those with the same words, and those nearest in position."""

    def __init__(self, added: Sequence[RecordField]) -> None:
        self._by_family: dict[str, list[RecordField]] = {}
        self._by_words: dict[tuple[str, frozenset[str]], list[RecordField]] = {}
        for field in added:
            family = _family(field.type)
            self._by_family.setdefault(family, []).append(field)
            self._by_words.setdefault((family, words_of(field.name)), []).append(field)

    def of(self, old: RecordField, limit: int) -> list[RecordField]:
        """Return at most `limit` fields of the same type family."""
        family = _family(old.type)
        near = self._by_family.get(family, [])
        if len(near) > limit:
            begin = bisect_left(near, old.position, key=lambda field: field.position) - limit // 2
            begin = max(0, min(begin, len(near) - limit))
            near = near[begin : begin + limit]
        same_words = self._by_words.get((family, words_of(old.name)), [])[:limit]
        return list(dict.fromkeys([*same_words, *near]))[:limit]


def _each_once(scored: list[Rename]) -> list[Rename]:
    taken_old: set[str] = set()
    taken_new: set[str] = set()
    chosen = []
    for rename in scored:
        if rename.old.name not in taken_old and rename.new.name not in taken_new:
            taken_old.add(rename.old.name)
            taken_new.add(rename.new.name)
            chosen.append(rename)
    return chosen


def _compare(old: RecordField, new: RecordField) -> Rename:
    is_same = type_label(old.type) == type_label(new.type)
    clues = [(0.25, "the same type") if is_same else (0.2, "a type that differs only in null or width")]
    if old.position == new.position:
        clues.append((0.2, "the same position"))
    if old.doc and old.doc == new.doc:
        clues.append((0.25, "the same documentation"))
    if old.has_default and new.has_default and old.default == new.default and old.default is not None:
        clues.append((0.1, "the same default"))
    return Rename(old, new, *rename_score(old.name, new.name, 0.45, clues))


def _is_narrower(old: AvroType, new: AvroType) -> bool:
    """Return whether the new type, of the same family, lacks null or has a smaller numeric type."""
    parts = [type_.branches if isinstance(type_, Union) else (type_,) for type_ in (old, new)]
    kinds = [{part.kind for part in of_type} for of_type in parts]
    widths = [max((_NUMBERS.index(kind) for kind in names if kind in _NUMBERS), default=0) for names in kinds]
    return ("null" in kinds[0] and "null" not in kinds[1]) or widths[1] < widths[0]


def _family(type_: AvroType) -> str:
    """Return the part of a type that a rename preserves; nullability and numeric width may change."""
    if isinstance(type_, Union):
        branches = [branch for branch in type_.branches if branch.kind != "null"]
        if len(branches) != 1:
            return type_label(type_)
        type_ = branches[0]
    return "number" if type_.kind in _NUMBERS else type_label(type_)
