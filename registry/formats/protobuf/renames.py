"""Which removed and added fields look like one field under two numbers and names, with a score and its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.formats.likeness import SUSPICION, rename_score
from registry.formats.protobuf.model import Field, type_label
from registry.formats.protobuf.scalars import GROUPS

_MAX_COMPARISONS: Final = 2_500


@dataclass(frozen=True, slots=True)
class Rename:
    """A suspected rename; `score` from 0 to 1."""

    old: Field
    new: Field
    score: float
    reasons: tuple[str, ...]


def suspected_renames(removed: Sequence[Field], added: Sequence[Field]) -> list[Rename]:
    """The most likely renames, each field in at most one, best first; the work is bounded for large schemas."""
    by_family: dict[str, list[Field]] = {}
    for new in added:
        by_family.setdefault(_family(new), []).append(new)
    budget = _MAX_COMPARISONS
    scored: list[Rename] = []
    for old in removed:
        near = by_family.get(_family(old), [])[:budget]
        budget -= len(near)
        scored.extend(found for found in (_compare(old, new) for new in near) if found.score >= SUSPICION)
    scored.sort(key=lambda found: (-found.score, found.old.number, found.new.number))
    taken: set[int] = set()
    chosen = []
    for found in scored:
        if id(found.old) not in taken and id(found.new) not in taken:
            taken |= {id(found.old), id(found.new)}
            chosen.append(found)
    return chosen


def _compare(old: Field, new: Field) -> Rename:
    is_same = type_label(old) == type_label(new) and old.is_repeated == new.is_repeated
    clues = [(0.3, "the same type") if is_same else (0.2, "a type of the same group")]
    if old.doc and old.doc == new.doc:
        clues.append((0.25, "the same comment"))
    if old.declared_default is not None and old.declared_default == new.declared_default:
        clues.append((0.1, "the same default"))
    if old.oneof is not None and old.oneof == new.oneof:
        clues.append((0.1, "the same oneof"))
    return Rename(old, new, *rename_score(old.name, new.name, 0.5, clues))


def _family(field: Field) -> str:
    """What a rename keeps of a type: the width of a number may change with it."""
    return GROUPS.get(field.kind, "") if not field.type_name else type_label(field)
