"""The seven compatibility levels, and the check of a new schema against a subject's versions.

The direction is decided here, once for all formats: BACKWARD asks whether the new schema reads what the versions
wrote, FORWARD whether the versions read what the new schema writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.errors import InvalidCompatibility
from registry.formats.base import Incompatibility, Judgement, ParsedSchema, SchemaFormat
from registry.formats.report import Direction, Report, ReportItem, item_from

Scope = Literal["none", "latest", "all"]
History = Sequence[tuple[int, ParsedSchema]]


@dataclass(frozen=True, slots=True)
class Level:
    """One level: which directions must hold, against which versions, and who must be upgraded first."""

    name: str
    directions: tuple[Direction, ...]
    scope: Scope
    description: str
    upgrade_order: str


_BOTH: Final[tuple[Direction, ...]] = ("FORWARD", "BACKWARD")
_ROWS: Final = (
    Level(
        "NONE",
        (),
        "none",
        "Nothing is checked: any schema is accepted.",
        "no safe order: consumers and producers must be upgraded together, or use a new topic",
    ),
    Level(
        "BACKWARD",
        ("BACKWARD",),
        "latest",
        "Consumers with the new schema can read data of the latest version.",
        "consumers first",
    ),
    Level(
        "BACKWARD_TRANSITIVE",
        ("BACKWARD",),
        "all",
        "Consumers with the new schema can read data of every version.",
        "consumers first",
    ),
    Level(
        "FORWARD",
        ("FORWARD",),
        "latest",
        "Consumers with the latest version can read data of the new schema.",
        "producers first",
    ),
    Level(
        "FORWARD_TRANSITIVE",
        ("FORWARD",),
        "all",
        "Consumers with any version can read data of the new schema.",
        "producers first",
    ),
    Level(
        "FULL",
        _BOTH,
        "latest",
        "The new schema and the latest version can read each other's data.",
        "any order",
    ),
    Level(
        "FULL_TRANSITIVE",
        _BOTH,
        "all",
        "The new schema and every version can read each other's data.",
        "any order",
    ),
)

LEVELS: Final[Mapping[str, Level]] = {level.name: level for level in _ROWS}


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One version against the new schema, in both directions; the items are the breaks and the hazards of each."""

    version: int
    is_backward: bool
    is_forward: bool
    backward: tuple[ReportItem, ...]
    forward: tuple[ReportItem, ...]

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {
            "version": self.version,
            "is_backward": self.is_backward,
            "is_forward": self.is_forward,
            "backward": [item.to_dict() for item in self.backward],
            "forward": [item.to_dict() for item in self.forward],
        }


@dataclass(frozen=True, slots=True)
class LevelStrip:
    """What each of the seven levels says, and the matrix of all versions, newest first."""

    reports: Mapping[str, Report]
    matrix: tuple[MatrixRow, ...]

    @property
    def compatible_levels(self) -> tuple[str, ...]:
        """The levels that accept the new schema, in the order of LEVELS."""
        return tuple(name for name, report in self.reports.items() if report.is_compatible)

    @property
    def upgrade_order(self) -> str:
        """In which order clients can be upgraded, going by what holds against all versions."""
        is_backward = all(row.is_backward for row in self.matrix)
        is_forward = all(row.is_forward for row in self.matrix)
        if is_backward and is_forward:
            return "any order"
        if is_backward:
            return "consumers first"
        return "producers first" if is_forward else "needs a new topic"

    def to_dict(self) -> dict[str, Any]:
        """The strip as JSON values."""
        return {
            "levels": {name: report.is_compatible for name, report in self.reports.items()},
            "upgrade_order": self.upgrade_order,
            "matrix": [row.to_dict() for row in self.matrix],
        }


def level_named(name: str) -> Level:
    """The level of that name; raises InvalidCompatibility."""
    try:
        return LEVELS[name]
    except KeyError:
        raise InvalidCompatibility(
            f'"{name[:80]}" is no compatibility level: use one of {", ".join(LEVELS)}', level=name
        ) from None


def check(format: SchemaFormat, new: ParsedSchema, history: History, level: str) -> Report:
    """The report of a new schema against the versions that the level names: all problems of all of them.

    `history` is in ascending order of versions. Raises InvalidCompatibility for an unknown level.
    """
    return _Checker(format, new, history).report(level_named(level))


def check_all_levels(format: SchemaFormat, new: ParsedSchema, history: History) -> LevelStrip:
    """The reports of all seven levels and the matrix of all versions; no pair is judged twice."""
    checker = _Checker(format, new, history)
    reports = {name: checker.report(level) for name, level in LEVELS.items()}
    return LevelStrip(reports, tuple(checker.row(version) for version, _ in reversed(history)))


class _Checker:
    """Judges each version and direction at most once."""

    def __init__(self, format: SchemaFormat, new: ParsedSchema, history: History) -> None:
        self._format = format
        self._new = new
        self._history = history
        self._by_version = dict(history)
        self._items: dict[tuple[int, Direction], tuple[ReportItem, ...]] = {}

    def report(self, level: Level) -> Report:
        """The report of one level, the newest version first."""
        history = {"none": [], "latest": self._history[-1:], "all": self._history}[level.scope]
        versions = [version for version, _ in reversed(history)]
        items = [
            item for version in versions for direction in level.directions for item in self.items(version, direction)
        ]
        return Report(
            level=level.name,
            is_compatible=not any(item.severity == "break" for item in items),
            items=tuple(items),
            versions=tuple(versions),
            upgrade_order=level.upgrade_order,
            old_schemas={version: self._by_version[version].canonical for version in versions},
        )

    def row(self, version: int) -> MatrixRow:
        """One version in both directions."""
        backward, forward = self.items(version, "BACKWARD"), self.items(version, "FORWARD")
        return MatrixRow(version, not _breaks(backward), not _breaks(forward), backward, forward)

    def items(self, version: int, direction: Direction) -> tuple[ReportItem, ...]:
        """What is to say of one version in one direction."""
        key = (version, direction)
        if key not in self._items:
            old = self._by_version[version]
            self._items[key] = tuple(
                item_from(found, direction, version, self._new, old) for found in self._found(old, direction)
            )
        return self._items[key]

    def _found(self, old: ParsedSchema, direction: Direction) -> tuple[Incompatibility, ...]:
        if old.schema_type != self._new.schema_type:
            return (_type_changed(old, self._new),)
        reader, writer = (self._new, old) if direction == "BACKWARD" else (old, self._new)
        judgement: Judgement = self._format.judge(reader, writer)
        return judgement.breaks + judgement.hazards


def _breaks(items: tuple[ReportItem, ...]) -> bool:
    return any(item.severity == "break" for item in items)


def _type_changed(old: ParsedSchema, new: ParsedSchema) -> Incompatibility:
    return Incompatibility(
        rule="SCHEMA_TYPE_CHANGED",
        kind="SCHEMA_TYPE_CHANGED",
        reader_pointer=None,
        writer_pointer=None,
        path="",
        before=old.schema_type,
        after=new.schema_type,
        message=f"the schema type changes from {old.schema_type} to {new.schema_type}",
        location="",
        why="Data of one serialization format can't be read as another.",
        remedy_in_reader="register the schema under another subject",
        remedy_in_writer="register the schema under another subject",
    )
