"""Any two versions side by side, with proof: of one subject or two, of one registry or two."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.utils import timezone

from registry.errors import InvalidReference, InvalidSchema, SchemaTooCostly
from registry.formats import format_of
from registry.formats.assessment import Disagreement
from registry.formats.base import Answer, Difference, Judgement, OutlineField, ParsedSchema, Reference, Truth
from registry.formats.report import Direction, Profile, Report, ReportItem
from registry.formats.suggested_edits import SuspectedRename
from registry.subjects.comparison.comparison import Comparison
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry
from registry.subjects.versions.parsed_schemas import parse_schema, parser_of, read_graph, resolve_references
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import SchemaInfo, VersionInfo, infos_of, joined_rows

#: findings of a direction that are proved; the others have no witness
MAX_WITNESSES: Final = 50


@dataclass(frozen=True)
class Side:
    """A version (a number or `latest`) of a subject of a registry; soft-deleted ones can be compared too."""

    registry: Registry
    subject: SubjectName
    version: int | str


@dataclass(frozen=True)
class ProvedComparison(Comparison):
    """A comparison whose findings have a witness, with where the data disagrees with the rules.

    `unchanged` are the fields that are equal on both sides. `problem` says why a side can't be read; then `differences`
    is None although the formats are the same. `unproved` says why the findings have no witnesses.
    """

    disagreements: tuple[Disagreement, ...] = ()
    renames: tuple[SuspectedRename, ...] = ()
    unchanged: tuple[OutlineField, ...] = ()
    new_text: str = ""
    problem: str = ""
    unproved: str = ""


@dataclass(frozen=True)
class Text:
    """An unregistered text, as if in a subject of a registry, where its references are resolved."""

    registry: Registry
    subject: SubjectName
    text: str
    schema_type: str
    references: Sequence[Reference] = ()


def compare_sides(old: Side | Text, new: Side | Text, *, profile: Profile = "confluent") -> ProvedComparison:
    """Compare two versions or texts: differences, reports of both directions with witnesses, suspected renames.

    A text's version number and id are 0. Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    sides_stored = [side for side in (old, new) if isinstance(side, Side)]
    stored_rows = joined_rows([(side.registry, side.subject, side.version) for side in sides_stored])
    rows = dict(zip(map(id, sides_stored), stored_rows, strict=True))
    graph = read_graph({row.schema_id for row in stored_rows})
    infos_by_side = dict(zip(rows, infos_of(stored_rows, graph.references()), strict=True))
    beside = next(iter(infos_by_side.values()), None)
    infos = [infos_by_side[id(side)] if isinstance(side, Side) else _as_version(side, beside) for side in (old, new)]
    bare = ProvedComparison(infos[0], infos[1], None, same_meaning=False, backward=None, forward=None)
    if infos[0].schema.schema_type != infos[1].schema.schema_type:
        return bare
    try:
        parse = parser_of([row.schema for row in stored_rows], graph)
        schemas = [parse(rows[id(side)].schema) if isinstance(side, Side) else _parsed(side) for side in (old, new)]
        sides = [_compared_side(*pair) for pair in zip((old, new), infos, schemas, strict=True)]
        return _compared(replace(bare, old=sides[0], new=sides[1]), schemas, infos[0].version, profile)
    except (InvalidSchema, InvalidReference) as error:
        return replace(bare, problem=error.message)


def compare_text(old: Side, text: str, schema_type: str, references: Sequence[Reference]) -> ProvedComparison:
    """Compare a version with an unregistered text that would follow it in the same subject.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    return compare_sides(old, Text(old.registry, old.subject, text, schema_type, references))


def _as_version(side: Text, beside: VersionInfo | None) -> VersionInfo:
    """Return a text as a version, with metadata and rules of the version `beside` it in the comparison."""
    return VersionInfo(
        id=0,
        subject=side.subject,
        version=0,
        schema=SchemaInfo(
            schema_id=0,
            context=side.subject.context,
            schema_type=side.schema_type,
            text=side.text,
            guid="",
            fingerprint="",
            references=tuple(side.references),
            metadata=beside.schema.metadata if beside else None,
            rule_set=beside.schema.rule_set if beside else None,
        ),
        submitted=side.text,
        created_at=beside.created_at if beside else timezone.now(),
        created_by="",
        channel="",
        deleted=False,
    )


def _compared_side(side: Side | Text, info: VersionInfo, schema: ParsedSchema) -> VersionInfo:
    """Return the side with the text that is compared; that of an unregistered text is computed here."""
    if isinstance(side, Side):
        return info
    return replace(info, schema=replace(info.schema, text=schema.canonical, fingerprint=schema.fingerprint))


def _parsed(side: Text) -> ParsedSchema:
    resolved = resolve_references(side.registry, side.references, context=side.subject.context)
    return parse_schema(side.schema_type, side.text, tuple(reference for reference, _ in resolved))


@dataclass(frozen=True)
class _PairResult:
    """Everything that a comparison says about two schemas, whichever versions have them."""

    differences: tuple[Difference, ...]
    backward: Report
    forward: Report
    disagreements: tuple[Disagreement, ...] = ()
    renames: tuple[SuspectedRename, ...] = ()
    unchanged: tuple[OutlineField, ...] = ()
    unproved: str = ""

    @property
    def weight(self) -> int:
        """The rows, plus one per 1,000 characters of data or edits; maximal if time ran out: a retry may do better."""
        if self.unproved:
            return sys.maxsize
        items = [*self.backward.items, *self.forward.items]
        witnesses = [*(item.witness for item in items), *(disagreement.witness for disagreement in self.disagreements)]
        texts = [witness.encoded for witness in witnesses if witness is not None]
        texts += [rename.edit.text for rename in self.renames if rename.edit is not None]
        rows = len(self.differences) + len(items) + len(self.renames) + len(self.unchanged)
        return rows + sum(1 + len(text) // 1_000 for text in texts)


def _compared(
    bare: ProvedComparison, schemas: Sequence[ParsedSchema], version: int, profile: Profile
) -> ProvedComparison:
    old, new = schemas
    result = schema_engine.of_pair(old, new, (version, profile), lambda: _pair_result(old, new, version, profile))
    return replace(
        bare,
        differences=result.differences,
        same_meaning=old.fingerprint == new.fingerprint,
        backward=result.backward,
        forward=result.forward,
        disagreements=result.disagreements,
        renames=result.renames,
        unchanged=result.unchanged,
        new_text=new.text,
        unproved=result.unproved,
    )


def _pair_result(old: ParsedSchema, new: ParsedSchema, version: int, profile: Profile) -> _PairResult:
    backward, forward = schema_engine.check_both(new, (version, old), profile=profile)
    result = _PairResult(differences=schema_engine.diff(old, new), backward=backward, forward=forward)
    try:
        result = replace(result, unchanged=_unchanged(schema_engine.outline(old), schema_engine.outline(new)))
        return _proved(result, old, new, version)
    except SchemaTooCostly as error:  # what is known without proof is still shown
        return replace(result, unproved=error.message)


def _proved(result: _PairResult, old: ParsedSchema, new: ParsedSchema, version: int) -> _PairResult:
    sides: tuple[tuple[Direction, ParsedSchema, ParsedSchema], ...] = (("BACKWARD", new, old), ("FORWARD", old, new))
    disagreements, reports = [], {}
    for direction, reader, writer in sides:
        judged = schema_engine.judge(reader, writer)
        if format_of(new.schema_type).offers("truth"):
            disagreements += _disagreement(judged, schema_engine.truth(reader, writer), version, direction)
        report = result.backward if direction == "BACKWARD" else result.forward
        reports[direction] = replace(report, items=_with_witnesses(report.items, judged, reader, writer))
    return replace(
        result,
        backward=reports["BACKWARD"],
        forward=reports["FORWARD"],
        disagreements=tuple(disagreements),
        renames=schema_engine.suspected_renames(old, new),
    )


def _disagreement(judged: Judgement, truth: Truth, version: int, direction: Direction) -> list[Disagreement]:
    """Return where rules and data disagree: one disagreement, or none."""
    by_rules: Answer = "yes" if judged.is_compatible else "no"
    if truth.answer == by_rules:
        return []
    witness = next((item.witness for item in truth.findings if item.witness), None)
    return [Disagreement(version, direction, by_rules, truth.answer, truth.how, witness)]


def _with_witnesses(
    items: Sequence[ReportItem], judged: Judgement, reader: ParsedSchema, writer: ParsedSchema
) -> tuple[ReportItem, ...]:
    """Return the items with witnesses; if there are very many, only the first get one."""
    findings = {(item.rule, item.path, item.location): item for item in (*judged.breaks, *judged.hazards)}
    budget = MAX_WITNESSES if format_of(reader.schema_type).offers("witness") else 0
    proved = []
    for item in items:
        finding = findings.get((item.rule, item.named_path, item.location))
        if item.witness is None and item.severity != "warning" and finding is not None and budget > 0:
            budget -= 1
            item = replace(item, witness=schema_engine.witness(reader, writer, finding))  # noqa: PLW2901
        proved.append(item)
    return tuple(proved)


def _unchanged(old: Sequence[OutlineField], new: Sequence[OutlineField]) -> tuple[OutlineField, ...]:
    """Return the fields that are equal on both sides, in the new schema's order, unless their inside changed."""
    before = {item.path: item for item in old}
    after = {item.path: item for item in new}
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    touched = changed | {holder for path in changed for holder in _holders(path)}
    return tuple(item for item in new if item.path not in touched)


def _holders(path: str) -> Iterator[str]:
    return (path[:at] for at, char in enumerate(path) if char in ".[{<")
