"""What an import or a restore would change: versions to add, versions in the way, settings. No database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from registry.subjects.import_export.snapshot import (
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
from registry.subjects.versions.qualified_names import SubjectName


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
    own_versions = here.by_key
    to_bring, same = [], 0
    for record in there.versions:
        mine = own_versions.get(record.key)
        if mine and mine.deleted == record.deleted and is_same_definition(mine, record):
            same += 1
        else:
            to_bring.append(record)
    ordered, circles = in_order(to_bring)
    there_keys = there.by_key
    # What is to be deleted goes first: a subject has one live version of a schema, so it makes room for another one.
    ordered.sort(key=lambda record: not (record.deleted and record.key in own_versions))
    return Move(
        bring=tuple(ordered),
        gone=tuple(record for record in here.versions if record.key not in there_keys),
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
    own_versions = here.by_key
    for record in move.bring:
        mine = own_versions.get(record.key)
        if mine is None:
            yield f"+ {record.title}, schema id {record.schema_id}{', deleted' if record.deleted else ''}"
        else:
            yield f"~ {record.title}: {_version_difference(mine, record)}"
    for record in sorted(move.gone, key=lambda row: (row.subject.context, row.subject.subject, row.version)):
        yield f"- {record.title} exists only here"
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


def _version_difference(mine: VersionRecord, theirs: VersionRecord) -> str:
    if mine.schema_id != theirs.schema_id:
        return f"schema id {mine.schema_id} here, {theirs.schema_id} there"
    if not is_same_definition(mine, theirs):
        return "the text is different there"
    return "deleted there" if theirs.deleted else "deleted here"


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
    own_versions = here.by_key
    return replace(
        move,
        bring=tuple(record for record in move.bring if record.key not in own_versions),
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
    lines = _lines(
        there, here, move, {problem.what: problem.why for problem in done}, {p.what: p.why for p in stays_deleted}
    )
    about = {record.title for record in there.versions}
    problems = tuple(problem for problem in done if problem.what not in about)
    settings = _sentences(move)
    content = repr((of, lines, settings, problems))
    return Plan(lines, settings, problems, hashlib.sha256(content.encode()).hexdigest())


def _lines(
    there: Snapshot, here: Snapshot, move: Move, problems: Mapping[str, str], stays_deleted: Mapping[str, str]
) -> tuple[Line, ...]:
    """Every version of the copy, worst first."""
    brought, own_versions = {record.key for record in move.bring}, here.by_key
    differing = {record.key for record in plan_move(there, here).bring}
    lines = []
    for item in there.versions:
        mine = own_versions.get(item.key)
        fate, why = _fate(item, mine, is_brought=item.key in brought, differs=item.key in differing)
        if item.title in stays_deleted:
            why = f"stays soft-deleted: {stays_deleted[item.title]}"
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
        return ("left", _archive_difference(mine, item)) if differs else ("same", "")
    return ("changed", "") if mine.deleted != item.deleted else ("same", "")


def _archive_difference(mine: VersionRecord, theirs: VersionRecord) -> str:
    if mine.schema_id != theirs.schema_id:
        return f"it exists with schema id {mine.schema_id}, but the copy has {theirs.schema_id}."
    if mine.deleted != theirs.deleted:
        return "it is soft-deleted here but not there." if mine.deleted else "it is live here but soft-deleted there."
    return "it exists with a different text."


def _sentences(move: Move) -> tuple[str, ...]:
    """What comes beside versions."""
    sentences = [f"context {name}: ids continue at {following}" for name, following in sorted(move.contexts.items())]
    for scope, (mine, theirs) in move.configs.items():
        names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
        sentences.append(f"settings of {scope_title(scope)}: {', '.join(names)}")
    sentences += [f"mode of {scope_title(scope)}: {other or 'inherited'}" for scope, (_, other) in move.modes.items()]
    return (
        *sentences,
        *(f"description of {name.qualified}" for name in sorted(move.notes, key=lambda name: name.qualified)),
    )
