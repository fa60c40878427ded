"""Java's regular expressions, as a connector's filters have them, matched in bounded time.

A pattern comes from somebody else's configuration, so no backtracking engine may run it: it is compiled to a small
program, of which each instruction is tried at most once at each place of the text. What can't be matched that way
(back references, possessive and atomic groups, look-behind) and what is rare in names (classes with `&&`, Unicode
categories) is said to be not understood, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from registry.drift.debezium.pattern_steps import PatternNotUnderstood, Step
from registry.drift.debezium.pattern_syntax import compile_steps

MAX_TEXT: Final = 1_000
MAX_STEPS: Final = 400_000  # of one match
MAX_ALL_STEPS: Final = 20_000_000  # of all matches out of one purse: some ten seconds

__all__ = ["Pattern", "PatternNotUnderstood", "Purse", "compile_pattern"]


@dataclass
class Purse:
    """The steps that the patterns of one setting may take together, however many they are."""

    left: int = MAX_ALL_STEPS


@dataclass
class Pattern:
    """A compiled pattern; `text` is what it was made of."""

    text: str
    steps: tuple[Step, ...]
    names: dict[str, int]
    groups: int
    purse: Purse = field(default_factory=Purse)
    _known: dict[str, bool] = field(default_factory=dict)

    def matches(self, text: str) -> bool:
        """Whether the whole text matches, as Java's `matches()`. Raises PatternNotUnderstood when it costs too much."""
        if text not in self._known:
            self._known[text] = self._run(text, 0, whole=True) is not None
        return self._known[text]

    def replace_first(self, text: str, replacement: str) -> str:
        """The text with the first match replaced, as Java's `replaceFirst`: `$1`, `${name}`, `\\` before any character.

        Raises PatternNotUnderstood for a replacement that Java refuses, and when it costs too much.
        """
        for start in range(len(text) + 1):
            found = self._run(text, start, whole=False)
            if found is not None:
                return text[:start] + self._filled(replacement, text, found) + text[found[1] :]
        return text

    def _filled(self, replacement: str, text: str, found: dict[int, int]) -> str:
        out, place = [], 0
        while place < len(replacement):
            char = replacement[place]
            place += 1
            if char == "\\" and place < len(replacement):
                out.append(replacement[place])
                place += 1
            elif char == "$":
                group, place = self._group(replacement, place)
                if 2 * group in found and 2 * group + 1 in found:
                    out.append(text[found[2 * group] : found[2 * group + 1]])
            else:
                out.append(char)
        return "".join(out)

    def _group(self, replacement: str, place: int) -> tuple[int, int]:
        """The group that stands after a `$`, and where it ends; digits are taken as long as there is such a group."""
        if replacement[place : place + 1] == "{":
            end = replacement.find("}", place)
            name = replacement[place + 1 : end]
            if end < 0 or name not in self.names:
                raise PatternNotUnderstood(f"the replacement names a group {name!r} that isn't there")
            return self.names[name], end + 1
        if not ("0" <= replacement[place : place + 1] <= "9"):
            raise PatternNotUnderstood("a $ in the replacement without a group's number")
        group, place = int(replacement[place]), place + 1
        if group > self.groups:
            raise PatternNotUnderstood(f"the replacement names group {group}, which isn't there")
        while "0" <= replacement[place : place + 1] <= "9" and group * 10 + int(replacement[place]) <= self.groups:
            group, place = group * 10 + int(replacement[place]), place + 1
        return group, place

    def _run(self, text: str, start: int, *, whole: bool) -> dict[int, int] | None:
        """Where the groups of a match at `start` lie (2n: start of group n, 2n+1: its end), None without a match."""
        if len(text) > MAX_TEXT:
            raise PatternNotUnderstood(f"a name of more than {MAX_TEXT} characters")
        budget = Purse(min(MAX_STEPS, self.purse.left))
        before = budget.left
        try:
            found = _search(self.steps, text, start, whole, budget)
        finally:
            self.purse.left -= before - max(0, budget.left)
        return None if found is None else {**found, 0: start}


def compile_pattern(text: str, *, ignore_case: bool = False, purse: Purse | None = None) -> Pattern:
    """The pattern of a text in Java's syntax. Raises PatternNotUnderstood, which says what isn't understood."""
    steps, names, groups = compile_steps(text, ignore_case=ignore_case)
    return Pattern(text, steps, names, groups, purse or Purse())


def _search(steps: tuple[Step, ...], text: str, start: int, whole: bool, budget: Purse) -> dict[int, int] | None:
    """The first match in the order of a backtracking engine; each pair of step and place is visited once."""
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[int, int, dict[int, int]]] = [(0, start, {})]
    while stack:
        at, place, groups = stack.pop()
        while (at, place) not in seen:
            seen.add((at, place))
            budget.left -= 1
            if budget.left < 0:
                raise PatternNotUnderstood("it costs too much to match")
            step = steps[at]
            if step.kind == "end":
                if whole and place != len(text):
                    break
                return {**groups, 1: place}
            if step.kind == "split":
                stack.append((step.other, place, groups))
                at = step.next
                continue
            if step.kind == "char":
                if place >= len(text) or not step.takes(text[place]):
                    break
                place += 1
            elif step.kind == "save":
                groups = {**groups, step.other: place}
            elif step.kind == "look":
                inside = _search(step.inside, text, place, False, budget)
                if (inside is not None) != step.positive:
                    break
            elif step.kind == "start":
                if place != 0:
                    break
            elif step.kind == "finish" and place != len(text) and not (step.positive and text[place:] == "\n"):
                break
            at = step.next
    return None
