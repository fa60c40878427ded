"""A report's findings for programs of CI: one list of all that it says, whatever the file that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from registry.errors import InvalidSchema
from registry.formats.assessment import Assessment
from registry.formats.lint import LintFinding
from registry.formats.rendering import READING
from registry.formats.report import DECISIVE, Report, ReportItem

Level = Literal["error", "warning", "note"]

SYNTAX_RULE: Final = "SYNTAX"
DEPENDANT_RULE: Final = "DEPENDANT_BREAKS"
_SYNTAX_WHY: Final = "A text that doesn't parse is no schema: it can be neither compared nor registered."
_SYNTAX_CURE: Final = "mend the text at the place that is named"
CLIENT_RULE: Final = "CLIENT_BREAKS"
_CLIENT_WHY: Final = "A declared client goes on with the version that it has until its people bring it to another one."
_CLIENT_CURE: Final = "talk to its people, and bring it to a version that goes with the new schema first"
RENAME_RULE: Final = "FIELD_RENAME_SUSPECTED"
_RENAME_WHY: Final = "Readers take a renamed field for one dropped and one added: they lose its data in silence."
_DEPENDANT_WHY: Final = "A subject that refers to this one is read with its newest version before long."
_DEPENDANT_CURE: Final = "let the other subject go on referring to an earlier version, or change both"


@dataclass(frozen=True, slots=True)
class Told:
    """One finding: its rule with what is said of it, how heavy it is, and where. `version` is the one it is against."""

    rule: str
    level: Level
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    why: str = ""
    cure: str = ""
    version: int | None = None


def told_of(assessment: Assessment) -> tuple[Told, ...]:
    """All findings of the level that counts, the clients and the subjects that would break, and advice on the schema alone."""
    report = assessment.report
    broken = [item for item in assessment.dependants if item.answer == "no"]
    return (
        *(_item(report, item) for item in report.items),
        *(
            Told(
                RENAME_RULE,
                "warning",
                rename.message,
                path=rename.path,
                why=_RENAME_WHY,
                cure=rename.edit.title if rename.edit else "",
            )
            for rename in assessment.renames
        ),
        *(
            Told(CLIENT_RULE, "warning", client.sentence, why=_CLIENT_WHY, cure=_CLIENT_CURE, version=client.version)
            for client in assessment.clients
            if client.answer == "no"
        ),
        *(
            Told(
                DEPENDANT_RULE,
                "warning",
                f"{item.subject} version {item.version} refers to it: {item.message}",
                why=_DEPENDANT_WHY,
                cure=_DEPENDANT_CURE,
            )
            for item in broken
        ),
        *(_advice(item) for item in assessment.lint),
    )


def told_of_error(error: InvalidSchema) -> Told:
    """A text that doesn't parse."""
    return Told(
        SYNTAX_RULE,
        "error",
        error.message,
        line=error.line,
        column=error.column,
        why=_SYNTAX_WHY,
        cure=_SYNTAX_CURE,
    )


def _item(report: Report, item: ReportItem) -> Told:
    """What decides is an error; a loss that the level lets pass is a warning, the rest is a note."""
    level: Level = (
        "error" if item.severity in DECISIVE[report.profile] else "warning" if item.severity != "warning" else "note"
    )
    reading = READING[item.direction].format(item.against_version)
    return Told(
        item.rule,
        level,
        f"{item.message} ({reading})",
        path=item.named_path,
        line=item.line,
        column=item.column,
        why=item.why,
        cure=item.remedy,
        version=item.against_version,
    )


def _advice(item: LintFinding) -> Told:
    return Told(
        item.rule,
        "warning" if item.weight == "warning" else "note",
        f"{item.message} ({item.more} more places)" if item.more else item.message,
        path=item.path,
        line=item.line,
        column=item.column,
        why=item.why,
        cure=item.cure,
    )
