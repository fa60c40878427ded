"""Single differences: a place on both sides, a rule, both values and the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from registry.formats.base import Difference
from registry.formats.json_schema.difference_rules import DIFFERENCE_RULES
from registry.formats.json_schema.labels import type_words
from registry.formats.json_schema.text import compact
from registry.formats.json_schema.values import to_plain
from registry.formats.pointer import join


@dataclass(frozen=True, slots=True)
class Sides:
    """Where two schemas meet: the path for people, and the pointer of each side."""

    path: str
    old: str
    new: str

    def inside(self, *tokens: str | int, step: str = "") -> Sides:
        """The same tokens further on both sides."""
        return Sides(self.path + step, join(self.old, *tokens), join(self.new, *tokens))

    def apart(self, old: tuple[str | int, ...], new: tuple[str | int, ...], step: str = "") -> Sides:
        """Other tokens on each side."""
        return Sides(self.path + step, join(self.old, *old), join(self.new, *new))


def difference(
    rule: str,
    sides: Sides,
    before: Any,
    after: Any,
    *,
    name: str = "",
    only: Literal["old", "new"] | None = None,
    score: float | None = None,
    reasons: tuple[str, ...] = (),
) -> Difference:
    """A difference with its sentence; `only` names the side that has a place."""
    row = DIFFERENCE_RULES[rule]
    return Difference(
        rule=rule,
        kind=row.kind,
        pointer_old=None if only == "new" else sides.old,
        pointer_new=None if only == "old" else sides.new,
        path=sides.path,
        before=to_plain(before),
        after=to_plain(after),
        message=row.sentence.format(name=name, before=shown(before), after=shown(after)),
        score=score,
        reasons=reasons,
    )


def shown(value: Any) -> str:
    """A value in a sentence: a schema by its type, other values as JSON, shortened."""
    if isinstance(value, dict):
        return type_words(value)
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 160 else text[:159] + "…"
