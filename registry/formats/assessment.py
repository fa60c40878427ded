"""All that is to say of a new schema before it is registered: one object for the API, the page, commands and CI.

A level's verdict is cheap and decides at registration; this is what people read before: every level, every version,
what the data say beside the rules, a proof for each problem, and the edits that would make it pass.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from registry.errors import InvalidSchema
from registry.formats.base import Answer, Difference, Edit, Incompatibility, ParsedSchema, SchemaFormat, Witness
from registry.formats.compatibility import Checker, History, LevelStrip, level_named
from registry.formats.lint import LintFinding
from registry.formats.report import CHECKER_VERSION, DECISIVE, Direction, Profile, Report, ReportItem

#: an edited text of the new schema, with the references of the first one
Parse = Callable[[str], ParsedSchema]

MAX_WITNESSES: Final = 50
MAX_COMPARED_WITH_DATA: Final = 50
MAX_EDITS: Final = 20
#: fields that are compared again for the edits of suspected renames: each edit takes as many as the schema has
MAX_FIELDS_EDITED: Final = 2_000
#: how safe an edit is for the data, the safest first
Safety = Literal["rename", "kept", "invented"]
_DIRECTIONS: Final[tuple[Direction, ...]] = ("BACKWARD", "FORWARD")


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the established rules and the data part, or the data can't tell: one version in one direction.

    The version 0 is a schema that isn't registered.
    """

    version: int
    direction: Direction
    by_rules: Answer
    by_data: Answer
    how: str
    witness: Witness | None = None

    @property
    def sentence(self) -> str:
        """The parting for people."""
        old = f"version {self.version}" if self.version else "the old schema"
        reading = (
            f"the new schema reads data of {old}"
            if self.direction == "BACKWARD"
            else f"{old} reads data of the new schema"
        )
        rules = "accept" if self.by_rules == "yes" else "refuse"
        outcomes = {
            "yes": "all data are read unchanged",
            "no": "data are lost or can't be read",
            "unknown": "the data don't decide it",
            "differs": "it depends on the decoder",
        }
        return f"Whether {reading}: the established rules {rules} it; {outcomes[self.by_data]} ({self.how})."

    def to_dict(self) -> dict[str, Any]:
        """The parting as JSON values."""
        return {
            "version": self.version,
            "direction": self.direction,
            "by_rules": self.by_rules,
            "by_data": self.by_data,
            "how": self.how,
            "sentence": self.sentence,
            "witness": self.witness.to_dict() if self.witness else None,
        }


@dataclass(frozen=True, slots=True)
class SuspectedRename:
    """A field dropped and one added that look like one renamed, and the edit that would make it known as such.

    `is_edit_tried` is False where none was looked for, of very many.
    """

    path: str
    message: str
    score: float
    reasons: tuple[str, ...]
    edit: Edit | None
    is_edit_tried: bool = True
    before: str = ""
    after: str = ""

    @property
    def from_path(self) -> str:
        """The path of the field that went: that of the one that came, with the old name."""
        return self.path.removesuffix(self.after) + self.before

    def to_dict(self) -> dict[str, Any]:
        """The suspicion as JSON values."""
        return {
            "path": self.path,
            "message": self.message,
            "score": self.score,
            "reasons": list(self.reasons),
            "edit": _edit_dict(self.edit),
        }


@dataclass(frozen=True, slots=True)
class Patch:
    """Edits of the new schema, one after the other: the text after them all, and whether it would pass the level."""

    titles: tuple[str, ...]
    text: str
    diff: str
    passes: bool

    def to_dict(self) -> dict[str, Any]:
        """The patch as JSON values; `diff` is unified."""
        return {"titles": list(self.titles), "text": self.text, "diff": self.diff, "passes": self.passes}


@dataclass(frozen=True, slots=True)
class Dependant:
    """The latest version of a subject that refers to this one, and what would become of it with the new schema."""

    subject: str
    version: int
    answer: Answer
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The dependant as JSON values."""
        return {"subject": self.subject, "version": self.version, "answer": self.answer, "message": self.message}


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """A declared client of the subject, and whether it goes on with the new schema; `version` is the one that it has."""

    name: str
    does: str
    version: int | None
    contact: str
    answer: Answer
    message: str

    @property
    def sentence(self) -> str:
        """What is said of it, with what it does and whom to talk to."""
        version = f" version {self.version}" if self.version is not None else ""
        contact = f", {self.contact}" if self.contact else ""
        return f"{self.name} ({self.does}{version}{contact}) {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """The client as JSON values."""
        return {
            "name": self.name,
            "does": self.does,
            "version": self.version,
            "contact": self.contact,
            "answer": self.answer,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Assessment:
    """The whole compatibility report: the verdict of the level that counts, and all that helps to decide.

    `compared_with_data` counts the pairs of version and direction of which the data were asked, newest first.
    `lint` is advice on the new schema alone. `dependants` refer to the subject and `clients` are its declared ones: no
    schema says either, so whoever knows them adds them.
    """

    schema_type: str
    report: Report
    strip: LevelStrip
    partings: tuple[Parting, ...]
    compared_with_data: int
    renames: tuple[SuspectedRename, ...]
    patch: Patch | None
    dependants: tuple[Dependant, ...] = ()
    lint: tuple[LintFinding, ...] = ()
    clients: tuple[ClientAnswer, ...] = ()

    @property
    def is_compatible(self) -> bool:
        """The verdict of the level that counts."""
        return self.report.is_compatible

    @property
    def weight(self) -> int:
        """How many rows it has: findings of all versions, advice and the rest."""
        cells = sum(len(row.backward) + len(row.forward) + 1 for row in self.strip.matrix)
        return cells + len(self.report.items) + len(self.partings) + len(self.renames) + len(self.lint) + 1

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values; described by docs/reference/compatibility-report.schema.json."""
        return {
            "checker": CHECKER_VERSION,
            "schema_type": self.schema_type,
            **self.report.to_dict(),
            "levels": {name: report.is_compatible for name, report in self.strip.reports.items()},
            "order": self.strip.upgrade_order,
            "matrix": [row.to_dict() for row in self.strip.matrix],
            "partings": [parting.to_dict() for parting in self.partings],
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
    parse: Parse,
    profile: Profile = "confluent",
) -> Assessment:
    """The whole report of a new schema; `history` is in ascending order of versions.

    `parse` reads an edited text with the references of the new schema. Raises InvalidCompatibility for an unknown
    level.
    """
    checker = Checker(format, new, history, profile)
    report = _proved(format, checker, checker.report(level_named(level)))
    partings, compared = _partings(format, new, history, checker if profile == "confluent" else None)
    return Assessment(
        schema_type=new.schema_type,
        report=report,
        strip=checker.strip(),
        partings=partings,
        compared_with_data=compared,
        renames=_renames(format, new, history),
        patch=None if report.is_compatible else _patch(format, new, history, report, checker, parse),
        lint=format.lint(new),
    )


def _proved(format: SchemaFormat, checker: Checker, report: Report) -> Report:
    """The report with a witness at each item; of very many, at the first."""
    budget = MAX_WITNESSES
    proved: list[ReportItem] = []
    findings = _findings_of(checker, report)
    for item, finding in zip(report.items, findings, strict=True):
        if item.witness is None and item.severity != "warning" and budget > 0 and finding.kind != "SCHEMA_TYPE_CHANGED":
            budget -= 1
            reader, writer = checker.sides(item.against_version, item.direction)
            item = replace(item, witness=format.witness(reader, writer, finding))  # noqa: PLW2901
        proved.append(item)
    return replace(report, items=tuple(proved))


def _findings_of(checker: Checker, report: Report) -> list[Incompatibility]:
    pairs = dict.fromkeys((item.against_version, item.direction) for item in report.items)
    return [finding for version, direction in pairs for finding in checker.judge_pair(version, direction).findings]


def _partings(
    format: SchemaFormat, new: ParsedSchema, history: History, judged: Checker | None
) -> tuple[tuple[Parting, ...], int]:
    """Where rules and data part, newest version first, and how many pairs were asked.

    `judged` is a checker by the rules that has looked at pairs already, if there is one.
    """
    same = [(version, old) for version, old in reversed(history) if old.schema_type == new.schema_type]
    pairs = [(version, direction) for version, _ in same for direction in _DIRECTIONS][:MAX_COMPARED_WITH_DATA]
    rules = judged or Checker(format, new, same, "confluent")
    partings: list[Parting] = []
    for version, direction in pairs:
        reader, writer = rules.sides(version, direction)
        by_rules = rules.judge_pair(version, direction).verdict
        truth = format.truth(reader, writer)
        if truth.answer != by_rules:
            witness = next((finding.witness for finding in truth.findings if finding.witness), None)
            partings.append(Parting(version, direction, by_rules, truth.answer, truth.how, witness))
    return tuple(partings), len(pairs)


def _renames(format: SchemaFormat, new: ParsedSchema, history: History) -> tuple[SuspectedRename, ...]:
    if not history or history[-1][1].schema_type != new.schema_type:
        return ()
    old = history[-1][1]
    return renames_of(
        format.diff(old, new), lambda item: format.accept_rename(old, new, item), lambda: len(format.outline(new))
    )


def renames_of(
    differences: Sequence[Difference], accept: Callable[[Difference], Edit | None], fields: Callable[[], int]
) -> tuple[SuspectedRename, ...]:
    """The suspected renames, the likeliest first; of large schemas only the first get an edit.

    `accept` makes an edit, which reads the whole new schema again; `fields` says how many fields that has.
    """
    suspected = [(item.score, item) for item in differences if item.score is not None]
    if not suspected:
        return ()
    suspected.sort(key=lambda pair: -pair[0])
    tries = max(1, MAX_FIELDS_EDITED // max(1, fields()))
    return tuple(
        SuspectedRename(
            item.path,
            item.message,
            score,
            item.reasons,
            accept(item) if index < tries else None,
            is_edit_tried=index < tries,
            before=str(item.before),
            after=str(item.after),
        )
        for index, (score, item) in enumerate(suspected)
    )


def _patch(
    format: SchemaFormat, new: ParsedSchema, history: History, report: Report, checker: Checker, parse: Parse
) -> Patch | None:
    """Edits until the level is passed, or no edit is known; None if not even one, or with too many places to edit.

    The safest come first: what makes a likely rename known, then what keeps all data, and last what invents a value.
    """
    schema, texts = new, {new.text}
    titles: list[str] = []
    safety: list[Safety] = ["rename", "kept", "invented"]
    if len({(item.rule, item.named_path) for item in report.breaks}) > MAX_EDITS:
        return None
    while len(titles) < MAX_EDITS and not report.is_compatible:
        step = (
            _next_rename(format, report, schema, history, parse, texts)
            if safety[0] == "rename"
            else _next_edit(format, checker, report, schema, parse, texts, may_invent=safety[0] == "invented")
        )
        if step is None:
            safety.pop(0)
            if not safety:
                break
            continue
        title, schema = step
        texts.add(schema.text)
        titles.append(title)
        checker = Checker(format, schema, history, report.profile)
        report = checker.report(level_named(report.level))
    if not titles:
        return None
    return Patch(tuple(titles), schema.text, _unified(new.text, schema.text), report.is_compatible)


def _next_rename(
    format: SchemaFormat, report: Report, schema: ParsedSchema, history: History, parse: Parse, texts: set[str]
) -> tuple[str, ParsedSchema] | None:
    """The edit of the likeliest rename that leaves fewer problems, and the schema after it.

    Where readers still need the old name, the field must come back under it, and a rename would double its data.
    """
    for rename in _renames(format, schema, history):
        if rename.edit is None or rename.edit.text in texts:
            continue
        try:
            changed = parse(rename.edit.text)
        except InvalidSchema:
            continue
        after = Checker(format, changed, history, report.profile).report(level_named(report.level))
        needs_old_name = any(item.named_path.rpartition(".")[2] == rename.before for item in after.breaks)
        if len(after.breaks) < len(report.breaks) and not needs_old_name:
            return rename.edit.title, changed
    return None


def _next_edit(
    format: SchemaFormat,
    checker: Checker,
    report: Report,
    schema: ParsedSchema,
    parse: Parse,
    texts: set[str],
    *,
    may_invent: bool,
) -> tuple[str, ParsedSchema] | None:
    """The first edit for a finding that decides, and the schema after it; one that invents values only if it may."""
    for item, finding in zip(report.items, _findings_of(checker, report), strict=True):
        if item.severity not in DECISIVE[report.profile] or finding.kind == "SCHEMA_TYPE_CHANGED":
            continue
        reader, writer = checker.sides(item.against_version, item.direction)
        other = writer if item.direction == "BACKWARD" else reader
        edit = format.repair(schema, other, finding, is_reader=item.direction == "BACKWARD")
        if edit is None or edit.text in texts or (edit.is_invented and not may_invent):
            continue
        try:
            return edit.title, parse(edit.text)
        except InvalidSchema:
            continue  # an edit that doesn't hold in this schema, say a name that is taken by another type
    return None


def _unified(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "proposed", "patched", lineterm="")
    return "\n".join(lines)


def _edit_dict(edit: Edit | None) -> dict[str, str] | None:
    return None if edit is None else {"title": edit.title, "text": edit.text}
