"""Advice on one schema, whatever came before it: what will make it hard to read, to change or to keep lawful.

Nothing here decides anything: a schema with advice is registered like one without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from registry.formats.lint_names import in_style, style_of
from registry.formats.lint_rules import LINT_RULES, LintRule, Weight

#: places of one rule that are told one by one; a schema without a single comment is one piece of advice
MAX_PLACES: Final = 20
_ORDER: Final = {
    rule.id: number for number, rule in enumerate(sorted(LINT_RULES.values(), key=lambda rule: rule.weight == "info"))
}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One piece of advice; `more` counts the places of the same rule that aren't told after this one."""

    rule: str
    weight: Weight
    path: str
    line: int | None
    column: int | None
    message: str
    why: str
    cure: str
    more: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The advice as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rule isn't followed: its path for people, its pointer, and what the sentence is about."""

    rule: str
    path: str
    pointer: str | None
    values: Mapping[str, str] = field(default_factory=dict)


def findings_at(places: Iterable[Place], position: Callable[[str], tuple[int, int] | None]) -> tuple[LintFinding, ...]:
    """The places as advice: warnings first, of each rule the first in the text, the last of them with how many follow."""
    by_rule: dict[str, list[Place]] = {}
    for place in places:
        by_rule.setdefault(place.rule, []).append(place)
    return tuple(
        _finding(LINT_RULES[rule], place, position, len(by_rule[rule]) - MAX_PLACES if number == MAX_PLACES else 0)
        for rule in sorted(by_rule, key=_ORDER.__getitem__)
        for number, place in enumerate(by_rule[rule][:MAX_PLACES], start=1)
    )


def _finding(rule: LintRule, place: Place, position: Callable[[str], tuple[int, int] | None], more: int) -> LintFinding:
    line, column = (position(place.pointer) if place.pointer is not None else None) or (None, None)
    return LintFinding(
        rule=rule.id,
        weight=rule.weight,
        path=place.path,
        line=line,
        column=column,
        message=rule.sentence.format_map(place.values),
        why=rule.why,
        cure=rule.cure.format_map(place.values),
        more=more,
    )


def mixed_names(named: Sequence[tuple[str, str, str | None]]) -> list[Place]:
    """Of (name, path, pointer) those whose style isn't the one that most have; none where no style has the most."""
    counts: dict[str, int] = {}
    for name, _, _ in named:
        if style := style_of(name):
            counts[style] = counts.get(style, 0) + 1
    ranked = sorted(counts.values(), reverse=True)
    if len(ranked) < 2 or ranked[0] == ranked[1]:
        return []
    usual = max(counts, key=counts.__getitem__)
    return [
        Place(
            "NAMES_MIXED",
            path,
            pointer,
            {"name": name, "style": style, "usual": usual, "better": in_style(name, usual)},
        )
        for name, path, pointer in named
        if (style := style_of(name)) and style != usual
    ]
