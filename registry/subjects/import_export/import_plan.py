"""What an import or a restore would change: new versions, conflicts, settings. No database."""

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
class ImportDiff:
    """The changes, in the order in which they are made, and what can't be imported.

    `bring` are versions that are missing here, deleted on one side only, or have another text, which the engines
    compare later. `gone` are versions that exist only here.
    """

    bring: tuple[VersionRecord, ...]
    gone: tuple[VersionRecord, ...]
    same: int
    #: scope → (what is set here, what is set there)
    configs: Mapping[Scope, tuple[Mapping[str, Any], Mapping[str, Any]]]
    modes: Mapping[Scope, tuple[str, str]]
    contexts: Mapping[str, int]
    problems: tuple[Problem, ...]
    #: notes that differ there; notes that exist only here stay
    notes: Mapping[SubjectName, NoteRecord] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be imported."""
        return not (self.bring or self.configs or self.modes or self.contexts or self.notes or self.problems)


def diff_snapshots(there: Snapshot, here: Snapshot, *, defaults: tuple[str, str] = ("", "")) -> ImportDiff:
    """Return the changes that make `here` contain what is `there`.

    `defaults` are the level and mode of a registry that sets none. A server that can't distinguish its settings from
    its defaults sends these, and they change nothing.
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
    # Deletions go first: a subject has one live version of a schema, so a deletion makes room for another version.
    ordered.sort(key=lambda record: not (record.deleted and record.key in own_versions))
    return ImportDiff(
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


def describe(move: ImportDiff, here: Snapshot) -> Iterator[str]:
    """Yield the differences as lines for people: + is imported, - exists only here, ~ differs, ! can't be imported."""
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
VersionOutcome = Literal["conflict", "left", "changed", "created", "same"]


@dataclass(frozen=True)
class RestoreOptions:
    """How a copy is imported.

    `only_missing`: existing versions stay as they are, and conflicts are skipped; otherwise everything is restored
    exactly, or nothing. `live`: soft-deleted versions are restored to live, if the level permits it.
    """

    only_missing: bool = False
    live: bool = False


@dataclass(frozen=True)
class Line:
    """The result for a version; `why` explains a conflict or why it is left as it is."""

    subject: SubjectName
    version: int
    schema_id: int
    fate: VersionOutcome
    why: str = ""


@dataclass(frozen=True)
class Plan:
    """The result for each version, and for contexts, settings and descriptions in words; `problems` are of the latter.

    `digest` identifies the whole plan; a confirmation contains it.
    """

    lines: tuple[Line, ...]
    settings: tuple[str, ...]
    problems: tuple[Problem, ...]
    digest: str

    def count(self, fate: VersionOutcome) -> int:
        """Return how many versions have that fate."""
        return sum(line.fate == fate for line in self.lines)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be changed."""
        return not self.settings and not any(line.fate in ("created", "changed") for line in self.lines)

    @property
    def stops(self) -> bool:
        """Whether something can't be imported."""
        return bool(self.problems) or any(line.fate == "conflict" for line in self.lines)


def missing_of(move: ImportDiff, here: Snapshot) -> ImportDiff:
    """Return only the additions of a move; the registry's own modes and level always exist."""
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
    move: ImportDiff,
    done: Sequence[Problem],
    stays_deleted: Sequence[Problem],
    of: tuple[object, ...],
) -> Plan:
    """Return what was done as a plan: `done` are the problems, `of` is the request."""
    lines = _lines(
        there, here, move, {problem.what: problem.why for problem in done}, {p.what: p.why for p in stays_deleted}
    )
    about = {record.title for record in there.versions}
    problems = tuple(problem for problem in done if problem.what not in about)
    settings = _sentences(move)
    content = repr((of, lines, settings, problems))
    return Plan(lines, settings, problems, hashlib.sha256(content.encode()).hexdigest())


def _lines(
    there: Snapshot, here: Snapshot, move: ImportDiff, problems: Mapping[str, str], stays_deleted: Mapping[str, str]
) -> tuple[Line, ...]:
    """Return every version of the copy, worst first."""
    brought, own_versions = {record.key for record in move.bring}, here.by_key
    differing = {record.key for record in diff_snapshots(there, here).bring}
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


_ORDER: Final[tuple[VersionOutcome, ...]] = get_args(VersionOutcome)


def _rank(line: Line) -> tuple[int, str, str, int]:
    return _ORDER.index(line.fate), line.subject.context, line.subject.subject, line.version


def _fate(
    item: VersionRecord, mine: VersionRecord | None, *, is_brought: bool, differs: bool
) -> tuple[VersionOutcome, str]:
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


def _sentences(move: ImportDiff) -> tuple[str, ...]:
    """Describe the changes other than versions."""
    sentences = [f"context {name}: ids continue at {following}" for name, following in sorted(move.contexts.items())]
    for scope, (mine, theirs) in move.configs.items():
        names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
        sentences.append(f"settings of {scope_title(scope)}: {', '.join(names)}")
    sentences += [f"mode of {scope_title(scope)}: {other or 'inherited'}" for scope, (_, other) in move.modes.items()]
    return (
        *sentences,
        *(f"description of {name.qualified}" for name in sorted(move.notes, key=lambda name: name.qualified)),
    )
