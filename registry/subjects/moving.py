"""What differs between a registry and what should come into it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.subjects.names import SubjectName
from registry.subjects.snapshot import (
    NoteRecord,
    Problem,
    Scope,
    Snapshot,
    VersionRecord,
    in_order,
    is_same_definition,
    scope_key,
    scope_title,
)


@dataclass(frozen=True)
class Move:
    """What has to be done, in the order in which it is done, and what can't be.

    `bring` are versions that are missing here, deleted in one place alone, or written otherwise: whether those say the
    same, the engines find out. `gone` are versions that are here alone.
    """

    bring: tuple[VersionRecord, ...]
    gone: tuple[VersionRecord, ...]
    same: int
    #: scope → (what is set here, what is set there)
    configs: Mapping[Scope, tuple[Mapping[str, Any], Mapping[str, Any]]]
    modes: Mapping[Scope, tuple[str, str]]
    contexts: Mapping[str, int]
    problems: tuple[Problem, ...]
    #: what is written otherwise there than here; what is written here alone stays
    notes: Mapping[SubjectName, NoteRecord] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether both hold the same, as far as what is there goes."""
        return not (self.bring or self.configs or self.modes or self.contexts or self.notes or self.problems)


def plan_move(there: Snapshot, here: Snapshot, *, defaults: tuple[str, str] = ("", "")) -> Move:
    """What it takes to have here what is there.

    `defaults` are the level and the mode that a registry has which sets none: a server that can't tell what it sets
    from what it has by default says them, and they change nothing.
    """
    known = here.by_place
    wanted, same = [], 0
    for record in there.versions:
        mine = known.get(record.place)
        if mine and mine.deleted == record.deleted and is_same_definition(mine, record):
            same += 1
        else:
            wanted.append(record)
    ordered, circles = in_order(wanted)
    there_places = there.by_place
    # What is to be deleted goes first: a subject has one live version of a schema, so it makes room for another one.
    ordered.sort(key=lambda record: not (record.deleted and record.place in known))
    return Move(
        bring=tuple(ordered),
        gone=tuple(record for record in here.versions if record.place not in there_places),
        same=same,
        configs=_configs(there, here, defaults[0]),
        modes=_modes(there, here, defaults[1]),
        contexts={
            name: following for name, following in there.contexts.items() if following > here.contexts.get(name, 0)
        },
        problems=tuple(circles),
        notes={name: there.notes[name] for name in there.notes if there.notes[name] != here.notes.get(name)},
    )


def _configs(there: Snapshot, here: Snapshot, level: str) -> dict[Scope, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    differing: dict[Scope, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for scope in sorted(there.configs, key=scope_key):
        mine, theirs = dict(here.configs.get(scope, {})), dict(there.configs[scope])
        if scope is None and theirs.get("level") == level and "level" not in mine:
            del theirs["level"]
        if mine != theirs:
            differing[scope] = (mine, theirs)
    return differing


def _modes(there: Snapshot, here: Snapshot, default: str) -> dict[Scope, tuple[str, str]]:
    differing = {}
    for scope in sorted({None, *there.modes}, key=scope_key):
        base = default if scope is None else ""
        mine, theirs = here.modes.get(scope, base), there.modes.get(scope, base)
        if mine != theirs:
            differing[scope] = (mine, theirs)
    return differing


def describe(move: Move, here: Snapshot) -> Iterator[str]:
    """The differences as lines for people: + is brought, - is here alone, ~ differs, ! can't be brought."""
    known = here.by_place
    for record in move.bring:
        mine = known.get(record.place)
        if mine is None:
            yield f"+ {record.title}, schema id {record.schema_id}{', deleted' if record.deleted else ''}"
        else:
            yield f"~ {record.title}: {_difference(mine, record)}"
    for record in sorted(move.gone, key=lambda row: (row.subject.context, row.subject.subject, row.version)):
        yield f"- {record.title} is here alone"
    for scope, (mine_set, theirs_set) in move.configs.items():
        names = sorted(name for name in {*mine_set, *theirs_set} if mine_set.get(name) != theirs_set.get(name))
        values = (f"{name} {_shown(mine_set.get(name))} here, {_shown(theirs_set.get(name))} there" for name in names)
        yield f"~ config of {scope_title(scope)}: {'; '.join(values)}"
    for scope, (mode, other) in move.modes.items():
        yield f"~ mode of {scope_title(scope)}: {mode or 'inherited'} here, {other} there"
    for name, note in sorted(move.notes.items(), key=lambda item: scope_key(item[0])):
        yield f"{'~' if name in here.notes else '+'} note of {name.qualified}: {', '.join(note.tags) or 'no tags'}"
    for problem in move.problems:
        yield f"! {problem}"


def _shown(value: Any) -> str:
    return "inherited" if value is None else str(value)[:200]


def _difference(mine: VersionRecord, theirs: VersionRecord) -> str:
    if mine.schema_id != theirs.schema_id:
        return f"schema id {mine.schema_id} here, {theirs.schema_id} there"
    if not is_same_definition(mine, theirs):
        return "it is written in another way there"
    return "deleted there" if theirs.deleted else "deleted here"
