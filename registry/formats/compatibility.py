"""The seven compatibility levels, and the check of a new schema against a subject's versions.

The direction is decided here, once for all formats. BACKWARD: the new schema reads data of the versions. FORWARD: the
versions read data of the new schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from registry.errors import InvalidCompatibility
from registry.formats.base import Answer, Incompatibility, ParsedSchema
from registry.formats.report import DECISIVE, Direction, Profile, Report, ReportItem, item_from
from registry.formats.schema_format import SchemaFormat

Scope = Literal["none", "latest", "all"]
History = Sequence[tuple[int, ParsedSchema]]


@dataclass(frozen=True, slots=True)
class Level:
    """A compatibility level: the directions to check, the versions to check against, and who must upgrade first."""

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
    """One version compared with the new schema in both directions, with the breaks and hazards of each."""

    version: int
    is_backward: bool
    is_forward: bool
    backward: tuple[ReportItem, ...]
    forward: tuple[ReportItem, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "version": self.version,
            "is_backward": self.is_backward,
            "is_forward": self.is_forward,
            "backward": [item.to_dict() for item in self.backward],
            "forward": [item.to_dict() for item in self.forward],
        }


@dataclass(frozen=True, slots=True)
class LevelOverview:
    """The reports of all seven levels, and the matrix of all versions, newest first."""

    reports: Mapping[str, Report]
    matrix: tuple[MatrixRow, ...]

    @property
    def upgrade_order(self) -> str:
        """The order in which clients can be upgraded, given the results for all versions."""
        is_backward = all(row.is_backward for row in self.matrix)
        is_forward = all(row.is_forward for row in self.matrix)
        if is_backward and is_forward:
            return "any order"
        if is_backward:
            return "consumers first"
        return "producers first" if is_forward else "needs a new topic"


def level_named(name: str) -> Level:
    """Return the level with that name; raises InvalidCompatibility if there is none."""
    try:
        return LEVELS[name]
    except KeyError:
        raise InvalidCompatibility(
            f""""{name[:80]}" is not a compatibility level: use one of {", ".join(LEVELS)}""", level=name
        ) from None


def check(
    format: SchemaFormat, new: ParsedSchema, history: History, level: str, *, profile: Profile = "confluent"
) -> Report:
    """Return the report of a new schema against the versions that the level names, with all problems.

    `history` is in ascending order of versions. The profile `confluent` applies the reference implementation's rules,
    `semantic` the data check. Raises InvalidCompatibility for an unknown level.
    """
    return Checker(format, new, history, profile).report(level_named(level))


def check_all_levels(
    format: SchemaFormat, new: ParsedSchema, history: History, *, profile: Profile = "confluent"
) -> LevelOverview:
    """Return the reports of all seven levels and the matrix of all versions; no pair is judged twice."""
    return Checker(format, new, history, profile).strip()


class Checker:
    """A checker of one new schema against a history under one profile; judges each version and direction once."""

    def __init__(self, format: SchemaFormat, new: ParsedSchema, history: History, profile: Profile) -> None:
        self._format = format
        self._new = new
        self._history = history
        self._profile: Profile = profile
        self._by_version = dict(history)
        self._results: dict[tuple[int, Direction], PairResult] = {}

    def report(self, level: Level) -> Report:
        """Return the report of one level, newest version first."""
        history = {"none": [], "latest": self._history[-1:], "all": self._history}[level.scope]
        versions = [version for version, _ in reversed(history)]
        items = [
            item
            for version in versions
            for direction in level.directions
            for item in self.judge_pair(version, direction).items
        ]
        return Report(
            level=level.name,
            profile=self._profile,
            is_compatible=not any(item.severity in DECISIVE[self._profile] for item in items),
            items=tuple(items),
            versions=tuple(versions),
            upgrade_order=level.upgrade_order,
            old_schemas={version: self._by_version[version].canonical for version in versions},
            differing=tuple(
                (version, direction)
                for version in versions
                for direction in level.directions
                if self.judge_pair(version, direction).verdict == "differs"
            ),
        )

    def strip(self) -> LevelOverview:
        """Return all seven levels, and every version in both directions."""
        reports = {name: self.report(level) for name, level in LEVELS.items()}
        return LevelOverview(reports, tuple(self._row(version) for version, _ in reversed(self._history)))

    def judge_pair(self, version: int, direction: Direction) -> PairResult:
        """Return the result for one version in one direction."""
        key = (version, direction)
        if key not in self._results:
            old = self._by_version[version]
            verdict, findings, how = self._judge(old, direction)
            items = tuple(item_from(self._format, finding, direction, version, self._new, old) for finding in findings)
            self._results[key] = PairResult(verdict, items, how, findings)
        return self._results[key]

    def sides(self, version: int, direction: Direction) -> tuple[ParsedSchema, ParsedSchema]:
        """Return (reader, writer) of a pair."""
        old = self._by_version[version]
        return (self._new, old) if direction == "BACKWARD" else (old, self._new)

    def findings_of(self, report: Report) -> list[Incompatibility]:
        """Return the findings behind a report's items, in the same order."""
        pairs = dict.fromkeys((item.against_version, item.direction) for item in report.items)
        return [finding for version, direction in pairs for finding in self.judge_pair(version, direction).findings]

    def _row(self, version: int) -> MatrixRow:
        backward, forward = self.judge_pair(version, "BACKWARD"), self.judge_pair(version, "FORWARD")
        return MatrixRow(version, backward.verdict == "yes", forward.verdict == "yes", backward.items, forward.items)

    def _judge(self, old: ParsedSchema, direction: Direction) -> tuple[Answer, tuple[Incompatibility, ...], str]:
        if old.schema_type != self._new.schema_type:
            return "no", (_type_changed(old, self._new),), ""
        reader, writer = (self._new, old) if direction == "BACKWARD" else (old, self._new)
        if self._profile == "semantic":
            truth = self._format.truth(reader, writer)
            if truth.answer != "unknown":
                return truth.answer, truth.findings + truth.warnings, truth.how
        judgement = self._format.judge(reader, writer)
        verdict: Answer = "yes" if judgement.is_compatible else "no"
        if self._profile == "confluent":
            return verdict, judgement.breaks + judgement.hazards, ""
        # The rules decide what the data check can't, and the report says so.
        unproven = _not_proven(truth.how, judgement.is_compatible)
        warnings = tuple(replace(hazard, severity="warning") for hazard in judgement.hazards)
        return verdict, (*judgement.breaks, unproven, *warnings), truth.how


@dataclass(frozen=True, slots=True)
class PairResult:
    """A profile's result for one pair: the verdict, the items and their findings, and how `semantic` knows."""

    verdict: Answer
    items: tuple[ReportItem, ...]
    how: str
    findings: tuple[Incompatibility, ...]


def _not_proven(how: str, is_compatible: bool) -> Incompatibility:
    verdict = "compatible" if is_compatible else "incompatible"
    return Incompatibility(
        rule="NOT_PROVEN",
        kind="NOT_PROVEN",
        reader_pointer=None,
        writer_pointer=None,
        path="",
        before=None,
        after=None,
        severity="warning",
        message=f"whether all data can be read is unknown ({how.removesuffix('.')}); according to the rules it is {verdict}",
        why="Neither a proof nor a counterexample was found within the limits.",
        remedy_in_reader="review this change manually",
        remedy_in_writer="review this change manually",
    )


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
        why="Data in one serialization format can't be read as another.",
        remedy_in_reader="register the schema under another subject",
        remedy_in_writer="register the schema under another subject",
    )
