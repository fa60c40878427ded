"""The program that a pattern becomes: steps, each of which goes on at the one behind it unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

MAX_STEPS: Final = 3_000

Takes = Callable[[str], bool]
Node = tuple[object, ...]


class PatternNotUnderstood(ValueError):
    """A pattern that can't be judged; the message says which part of it, for "not understood: …"."""


@dataclass(frozen=True)
class Step:
    """One step: takes a character, goes on at two places, remembers a place, looks ahead, or asks where it is."""

    kind: Literal["char", "split", "save", "look", "start", "finish", "end"]
    next: int = 0
    other: int = 0
    takes: Takes = field(default=lambda _: False, compare=False)
    inside: tuple[Step, ...] = ()
    positive: bool = True


class Writer:
    """Writes the nodes that a pattern was read into: char, seq, or, repeat, group, look, start, finish."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, step: Step) -> int:
        """The step's number. Raises PatternNotUnderstood for more than MAX_STEPS."""
        if len(self.steps) >= MAX_STEPS:
            raise PatternNotUnderstood("a pattern that is too long with its repetitions written out")
        self.steps.append(replace(step, next=len(self.steps) + 1))
        return len(self.steps) - 1

    def write(self, node: Node) -> None:
        """The steps of a node and of what is in it."""
        kind, *rest = node
        getattr(self, f"_{kind}")(*rest)

    def _char(self, takes: Takes) -> None:
        self.add(Step("char", takes=takes))

    def _seq(self, parts: list[Node]) -> None:
        for part in parts:
            self.write(part)

    def _or(self, branches: list[Node]) -> None:
        leaving = []
        for branch in branches[:-1]:
            split = self.add(Step("split"))
            self.write(branch)
            leaving.append(self.add(Step("save", other=-1)))
            self.steps[split] = replace(self.steps[split], other=len(self.steps))
        self.write(branches[-1])
        for step in leaving:
            self.steps[step] = replace(self.steps[step], next=len(self.steps))

    def _group(self, inside: Node, number: int) -> None:
        self.add(Step("save", other=2 * number))
        self.write(inside)
        self.add(Step("save", other=2 * number + 1))

    def _look(self, inside: Node, positive: bool) -> None:
        writer = Writer()
        writer.write(inside)
        writer.add(Step("end"))
        self.add(Step("look", inside=tuple(writer.steps), positive=positive))

    def _start(self) -> None:
        self.add(Step("start"))

    def _finish(self, before_newline: bool) -> None:
        self.add(Step("finish", positive=before_newline))

    def _repeat(self, node: Node, low: int, high: int, greedy: bool) -> None:
        for _ in range(low):
            self.write(node)
        if high < 0:
            start = self.add(Step("split"))
            self.write(node)
            self.steps[self.add(Step("save", other=-1))] = Step("save", next=start, other=-1)
            self._leave(start, greedy)
            return
        splits = []
        for _ in range(high - low):
            splits.append(self.add(Step("split")))
            self.write(node)
        for split in splits:
            self._leave(split, greedy)

    def _leave(self, split: int, greedy: bool) -> None:
        """The split's second way leads to what comes next; a reluctant one tries that way first."""
        inside, out = split + 1, len(self.steps)
        first, second = (inside, out) if greedy else (out, inside)
        self.steps[split] = replace(self.steps[split], next=first, other=second)
