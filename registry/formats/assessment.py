"""The full assessment of a new schema before registration: one object for the API, the page, commands and CI.

Registration needs only one level's verdict, which is cheap. The assessment is for people: all levels, all versions, the
result of the data check next to the rules, a proof for each problem, and edits that would make it pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.formats import suggested_edits
from registry.formats.base import Answer, ParsedSchema, Witness, values_of
from registry.formats.compatibility import Checker, History, LevelOverview, level_named
from registry.formats.lint import LintFinding
from registry.formats.report import CHECKER_VERSION, Direction, Profile, Report, ReportItem
from registry.formats.schema_format import SchemaFormat

MAX_WITNESSES: Final = 50
MAX_COMPARED_WITH_DATA: Final = 50
_DIRECTIONS: Final[tuple[Direction, ...]] = ("BACKWARD", "FORWARD")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A (version, direction) pair for which the data check disagrees with the established rules, or can't decide.

    Version 0 means a schema that isn't registered.
    """

    version: int
    direction: Direction
    by_rules: Answer
    by_data: Answer
    how: str
    witness: Witness | None = None

    @property
    def sentence(self) -> str:
        """The disagreement as a sentence for people."""
        old = f"version {self.version}" if self.version else "the old schema"
        reading = (
            f"the new schema reads data of {old}"
            if self.direction == "BACKWARD"
            else f"{old} reads data of the new schema"
        )
        rules = "accept" if self.by_rules == "yes" else "refuse"
        outcomes = {
            "yes": "all data is read unchanged",
            "no": "data is lost or can't be read",
            "unknown": "the data doesn't decide it",
            "differs": "it depends on the decoder",
        }
        return f"Whether {reading}: the established rules {rules} it; {outcomes[self.by_data]} ({self.how.removesuffix('.')})."

    def to_dict(self) -> dict[str, Any]:
        """Return the disagreement as JSON values."""
        witness = self.witness.to_dict() if self.witness else None
        return {**values_of(self, "witness"), "sentence": self.sentence, "witness": witness}


@dataclass(frozen=True, slots=True)
class Dependant:
    """The latest version of a subject that refers to this one, and how the new schema would affect it."""

    subject: str
    version: int
    answer: Answer
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return the dependant as JSON values."""
        return values_of(self)


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """A declared client of the subject, and whether it works with the new schema; `version` is the client's own."""

    name: str
    does: str
    version: int | None
    contact: str
    answer: Answer
    message: str

    @property
    def sentence(self) -> str:
        """The effect on the client as a sentence, with what the client does and its contact."""
        version = f" version {self.version}" if self.version is not None else ""
        contact = f", {self.contact}" if self.contact else ""
        return f"{self.name} ({self.does}{version}{contact}) {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """Return the client as JSON values."""
        return values_of(self)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The complete compatibility report: the verdict of the effective level, and everything that helps to decide.

    `compared_with_data` counts the (version, direction) pairs that the data check examined, newest first. `lint` is
    advice on the new schema alone. `dependants` refer to the subject and `clients` are declared for it. Neither follows
    from a schema, so a caller that knows them adds them.
    """

    schema_type: str
    report: Report
    strip: LevelOverview
    disagreements: tuple[Disagreement, ...]
    compared_with_data: int
    renames: tuple[suggested_edits.SuspectedRename, ...]
    patch: suggested_edits.Patch | None
    dependants: tuple[Dependant, ...] = ()
    lint: tuple[LintFinding, ...] = ()
    clients: tuple[ClientAnswer, ...] = ()

    @property
    def is_compatible(self) -> bool:
        """The verdict of the effective level."""
        return self.report.is_compatible

    @property
    def breaks_clients(self) -> bool:
        """Whether a declared client can't continue without a change."""
        return any(client.answer == "no" for client in self.clients)

    @property
    def breaks_dependants(self) -> bool:
        """Whether a subject that refers to this one can't work with the new schema."""
        return any(dependant.answer == "no" for dependant in self.dependants)

    @property
    def deployment(self) -> str:
        """The upgrade order that the schemas allow, plus a warning if it breaks declared clients."""
        first = "; move the affected clients first" if self.breaks_clients else ""
        return f"{self.strip.upgrade_order}{first}"

    @property
    def weight(self) -> int:
        """The number of rows: findings of all versions, advice and the rest."""
        cells = sum(len(row.backward) + len(row.forward) + 1 for row in self.strip.matrix)
        return cells + len(self.report.items) + len(self.disagreements) + len(self.renames) + len(self.lint) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, as described by docs/reference/compatibility-report.schema.json."""
        return {
            "checker": CHECKER_VERSION,
            "schema_type": self.schema_type,
            **self.report.to_dict(),
            # computed from these schemas, like `order`; the level alone guarantees less
            "upgrade_order": self.strip.upgrade_order,
            "levels": {name: report.is_compatible for name, report in self.strip.reports.items()},
            "order": self.strip.upgrade_order,
            "matrix": [row.to_dict() for row in self.strip.matrix],
            "disagreements": [disagreement.to_dict() for disagreement in self.disagreements],
            "compared_with_data": self.compared_with_data,
            "renames": [rename.to_dict() for rename in self.renames],
            "patch": self.patch.to_dict() if self.patch else None,
            "clients": [client.to_dict() for client in self.clients],
            "dependants": [dependant.to_dict() for dependant in self.dependants],
            "lint": [finding.to_dict() for finding in self.lint],
        }


def assess(
    format: SchemaFormat,
    new: ParsedSchema,
    history: History,
    level: str,
    *,
    parse: suggested_edits.Parse,
    profile: Profile = "confluent",
) -> Assessment:
    """Return the complete report of a new schema; `history` is in ascending order of versions.

    `parse` reads an edited text with the references of the new schema. Raises InvalidCompatibility for an unknown
    level.
    """
    checker = Checker(format, new, history, profile)
    report = _proved(format, checker, checker.report(level_named(level)))
    disagreements, compared = _disagreements(format, new, history, checker if profile == "confluent" else None)
    return Assessment(
        schema_type=new.schema_type,
        report=report,
        strip=checker.strip(),
        disagreements=disagreements,
        compared_with_data=compared,
        renames=suggested_edits.measured_renames(
            format, suggested_edits.suspected_renames(format, new, history), history, report, parse
        ),
        patch=None if report.is_compatible else suggested_edits.patch_of(format, new, history, report, checker, parse),
        lint=format.lint(new),
    )


def _proved(format: SchemaFormat, checker: Checker, report: Report) -> Report:
    """Return the report with a witness for each of the first MAX_WITNESSES items that need one."""
    budget = MAX_WITNESSES if format.offers("witness") else 0
    proved: list[ReportItem] = []
    findings = checker.findings_of(report)
    for item, finding in zip(report.items, findings, strict=True):
        if item.witness is None and item.severity != "warning" and budget > 0 and finding.kind != "SCHEMA_TYPE_CHANGED":
            budget -= 1
            reader, writer = checker.sides(item.against_version, item.direction)
            item = replace(item, witness=format.witness(reader, writer, finding))  # noqa: PLW2901
        proved.append(item)
    return replace(report, items=tuple(proved))


def _disagreements(
    format: SchemaFormat, new: ParsedSchema, history: History, judged: Checker | None
) -> tuple[tuple[Disagreement, ...], int]:
    """Return the disagreements between rules and data, newest version first, and the number of pairs examined.

    `judged` is a checker of the `confluent` profile whose cached results can be reused; None creates one.
    """
    if not format.offers("truth"):
        return (), 0
    same = [(version, old) for version, old in reversed(history) if old.schema_type == new.schema_type]
    pairs = [(version, direction) for version, _ in same for direction in _DIRECTIONS][:MAX_COMPARED_WITH_DATA]
    rules = judged or Checker(format, new, same, "confluent")
    disagreements: list[Disagreement] = []
    for version, direction in pairs:
        reader, writer = rules.sides(version, direction)
        by_rules = rules.judge_pair(version, direction).verdict
        truth = format.truth(reader, writer)
        if truth.answer != by_rules:
            witness = next((finding.witness for finding in truth.findings if finding.witness), None)
            disagreements.append(Disagreement(version, direction, by_rules, truth.answer, truth.how, witness))
    return tuple(disagreements), len(pairs)


#: Metadata property that lists reserved field names, as Confluent's `validateFields` reads it. A reserved name must
#: stay reserved, and no top-level field of the schema may use it.
RESERVED: Final = "confluent:reserved"


@dataclass(frozen=True, slots=True)
class ReservedReport:
    """The problems with a schema's reserved fields; empty if there are none."""

    problems: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict: "refused" or "accepted"."""
        return "refused" if self.problems else "accepted"

    def is_accepted(self, *, force: bool = False) -> bool:
        """Return whether there are no problems, or `force` is set."""
        return force or not self.problems

    def messages(self) -> list[str]:
        """Return the problems as sentences."""
        return list(self.problems)


def reserved_in(metadata: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the names that the metadata reserves."""
    text = (metadata or {}).get("properties", {}).get(RESERVED, "")
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def check_reserved(
    metadata: Mapping[str, Any] | None, previous: Mapping[str, Any] | None, has_field: Callable[[str], bool]
) -> ReservedReport:
    """Check a schema with `metadata` after a version with `previous`; `has_field` tests for a top-level field."""
    reserved, before = reserved_in(metadata), reserved_in(previous)
    gone = [
        f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's metadata."
        for name in sorted(before - reserved)
    ]
    used = [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in sorted(reserved)
        if has_field(name)
    ]
    return ReservedReport((*gone, *used))
