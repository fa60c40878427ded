"""What bringing a kept copy in comes to: what becomes of each version, and what else changes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from registry.subjects.moving import Move, plan_move
from registry.subjects.names import SubjectName
from registry.subjects.snapshot import Problem, Snapshot, VersionRecord, scope_title

#: worst first
Fate = Literal["conflict", "left", "changed", "created", "same"]


@dataclass(frozen=True)
class Ways:
    """How a copy is brought in.

    `only_missing`: what is there stays as it is, and what can't come is passed over; else all of it as it was kept, or
    nothing. `live`: versions that were soft-deleted live again, where the level lets them.
    """

    only_missing: bool = False
    live: bool = False


@dataclass(frozen=True)
class Line:
    """What becomes of a version; `why` is of a conflict, and of what is left as it is."""

    subject: SubjectName
    version: int
    schema_id: int
    fate: Fate
    why: str = ""


@dataclass(frozen=True)
class Plan:
    """What becomes of each version, and of contexts, settings and descriptions in words; `problems` are of those.

    `digest` names all of it: who confirms a plan says which.
    """

    lines: tuple[Line, ...]
    settings: tuple[str, ...]
    problems: tuple[Problem, ...]
    digest: str

    def count(self, fate: Fate) -> int:
        """How many versions have that fate."""
        return sum(line.fate == fate for line in self.lines)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be changed."""
        return not self.settings and not any(line.fate in ("created", "changed") for line in self.lines)

    @property
    def stops(self) -> bool:
        """Whether something can't come."""
        return bool(self.problems) or any(line.fate == "conflict" for line in self.lines)


def missing_of(move: Move, here: Snapshot) -> Move:
    """Of a move what adds and changes nothing that is there; modes of the registry and its level are there always."""
    known = here.by_place
    return replace(
        move,
        bring=tuple(record for record in move.bring if record.place not in known),
        configs={scope: sides for scope, sides in move.configs.items() if scope is not None and not sides[0]},
        modes={scope: sides for scope, sides in move.modes.items() if scope is not None and not sides[0]},
        notes={name: note for name, note in move.notes.items() if name not in here.notes},
    )


def make_plan(
    there: Snapshot,
    here: Snapshot,
    move: Move,
    done: Sequence[Problem],
    stays_deleted: Sequence[Problem],
    of: tuple[object, ...],
) -> Plan:
    """What was done as a plan: `done` are the problems that there were, `of` is what it was asked for."""
    lines = _lines(there, here, move, {each.what: each.why for each in done}, {p.what: p.why for p in stays_deleted})
    about = {record.title for record in there.versions}
    problems = tuple(each for each in done if each.what not in about)
    settings = _words(move)
    said = repr((of, lines, settings, problems))
    return Plan(lines, settings, problems, hashlib.sha256(said.encode()).hexdigest())


def _lines(
    there: Snapshot, here: Snapshot, move: Move, problems: Mapping[str, str], stays_deleted: Mapping[str, str]
) -> tuple[Line, ...]:
    """Every version of the copy, worst first."""
    brought, known = {record.place for record in move.bring}, here.by_place
    differing = {record.place for record in plan_move(there, here).bring}
    lines = []
    for item in there.versions:
        mine = known.get(item.place)
        fate, why = _fate(item, mine, is_brought=item.place in brought, differs=item.place in differing)
        if item.title in stays_deleted:
            why = f"it stays soft-deleted: {stays_deleted[item.title]}"
        if item.title in problems:
            fate, why = "conflict", problems[item.title]
        lines.append(Line(item.subject, item.version, item.schema_id, fate, why))
    return tuple(sorted(lines, key=_rank))


_ORDER: Final[tuple[Fate, ...]] = get_args(Fate)


def _rank(line: Line) -> tuple[int, str, str, int]:
    return _ORDER.index(line.fate), line.subject.context, line.subject.subject, line.version


def _fate(item: VersionRecord, mine: VersionRecord | None, *, is_brought: bool, differs: bool) -> tuple[Fate, str]:
    if mine is None:
        return "created", ""
    if not is_brought:
        return ("left", _difference(mine, item)) if differs else ("same", "")
    return ("changed", "") if mine.deleted != item.deleted else ("same", "")


def _difference(mine: VersionRecord, theirs: VersionRecord) -> str:
    if mine.schema_id != theirs.schema_id:
        return f"it is there with schema id {mine.schema_id}, and was kept with {theirs.schema_id}."
    if mine.deleted != theirs.deleted:
        return "it is soft-deleted here, and not there." if mine.deleted else "it is live here, and soft-deleted there."
    return "it is there, written in another way."


def _words(move: Move) -> tuple[str, ...]:
    """What comes beside versions."""
    said = [f"context {name}: ids go on from {following}" for name, following in sorted(move.contexts.items())]
    for scope, (mine, theirs) in move.configs.items():
        names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
        said.append(f"settings of {scope_title(scope)}: {', '.join(names)}")
    said += [f"mode of {scope_title(scope)}: {other or 'inherited'}" for scope, (_, other) in move.modes.items()]
    return (
        *said,
        *(f"description of {name.qualified}" for name in sorted(move.notes, key=lambda each: each.qualified)),
    )
