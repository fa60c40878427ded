"""Fields that may be renamed and renumbered, and the effect on their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.formats.name_similarity import SUSPICION, rename_score
from registry.formats.protobuf.findings import default_text
from registry.formats.protobuf.model import GROUPS, Field, type_label

_MAX_COMPARISONS: Final = 2_500


@dataclass(frozen=True, slots=True)
class FieldRename:
    """A suspected rename; `score` is from 0 to 1."""

    old: Field
    new: Field
    score: float
    reasons: tuple[str, ...]


def suspected_renames(removed: Sequence[Field], added: Sequence[Field]) -> list[FieldRename]:
    """Return the most likely renames, best first, each field in at most one; the work is limited for large schemas."""
    by_family: dict[str, list[Field]] = {}
    for new in added:
        by_family.setdefault(_family(new), []).append(new)
    budget = _MAX_COMPARISONS
    scored: list[FieldRename] = []
    for old in removed:
        near = by_family.get(_family(old), [])[:budget]
        budget -= len(near)
        scored.extend(rename for rename in (_compare(old, new) for new in near) if rename.score >= SUSPICION)
    scored.sort(key=lambda rename: (-rename.score, rename.old.number, rename.new.number))
    taken: set[int] = set()
    chosen = []
    for rename in scored:
        if id(rename.old) not in taken and id(rename.new) not in taken:
            taken |= {id(rename.old), id(rename.new)}
            chosen.append(rename)
    return chosen


def is_likely(old: Field, new: Field) -> bool:
    """Return whether the two look like one field under two names."""
    return _compare(old, new).score >= SUSPICION


def effect_of(rename: FieldRename) -> str:
    """Describe the effect of a rename on readers of both schemas: data uses the number, JSON uses the name."""
    old, new = rename.old, rename.new
    sentences = [_effect("new", new, old), _effect("old", old, new)]
    for side, ours, theirs in (("old", old, new), ("new", new, old)):
        if not ours.accepts_json_of(theirs):
            sentences.append(
                f'Readers of the {side} JSON form refuse the unknown name "{theirs.json_name}", or drop its value.'
            )
    return " ".join(sentences)


def _effect(side: str, ours: Field, theirs: Field) -> str:
    """Describe the effect on readers with `ours` of data written with `theirs`."""
    written = f'written with "{theirs.name}" (number {theirs.number})'
    if ours.is_required:
        return f'Readers with the {side} schema refuse every message {written}: the required "{ours.name}" is missing.'
    if ours.is_map or ours.is_repeated:
        outcome = f'find "{ours.name}" empty'
    elif ours.message is not None:
        outcome = f'find "{ours.name}" unset'
    else:
        outcome = f'get the default {default_text(ours)} for "{ours.name}"'
    return (
        f"Readers with the {side} schema {outcome} in every message {written}. "
        f'To them the value of "{theirs.name}" is an unknown field.'
    )


def cure_of(rename: FieldRename) -> str:
    """Return what to do if it is a rename, and if it isn't."""
    old, new = rename.old, rename.new
    json_name = f' Add json_name = "{old.json_name}": the JSON form then keeps its name.'
    return (
        f'Give "{new.name}" the number {old.number} of "{old.name}": the binary form then keeps the value.'
        f"{'' if new.accepts_json_of(old) else json_name}"
        f' If it is another field, reserve the number {old.number} and the name "{old.name}".'
    )


def _compare(old: Field, new: Field) -> FieldRename:
    is_same = type_label(old) == type_label(new) and old.is_repeated == new.is_repeated
    clues = [(0.3, "the same type") if is_same else (0.2, "a type of the same group")]
    if old.doc and old.doc == new.doc:
        clues.append((0.25, "the same comment"))
    if old.declared_default is not None and old.declared_default == new.declared_default:
        clues.append((0.1, "the same default"))
    if old.oneof is not None and old.oneof == new.oneof:
        clues.append((0.1, "the same oneof"))
    return FieldRename(old, new, *rename_score(old.name, new.name, 0.5, clues))


def _family(field: Field) -> str:
    """Return the part of a type that a rename preserves; numeric width may change."""
    return GROUPS.get(field.kind, "") if not field.type_name else type_label(field)
