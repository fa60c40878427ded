"""Two versions side by side, and a proposal compared with everything it affects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import connection

from registry.access.roles import Actor, require
from registry.errors import InvalidSchema
from registry.formats import format_of
from registry.formats.assessment import Assessment, ReservedReport, check_reserved
from registry.formats.base import Difference, ParsedSchema, Reference, ResolvedReference
from registry.formats.compatibility import LevelOverview, level_named
from registry.formats.lint import TAG_RULES, LintFinding
from registry.formats.policies import PolicyReport
from registry.formats.report import Profile, Report
from registry.formats.schema_format import RESTRICTED
from registry.formats.suggested_edits import FindingRepairs, SuspectedRename
from registry.subjects.engine import schema_engine
from registry.subjects.lifecycle.notes import note_of
from registry.subjects.models import Registry, Schema, SchemaVersion, Subject
from registry.subjects.policy import effective_policy
from registry.subjects.policy.data_contracts import Contract, property_of
from registry.subjects.references.reference_graph import dependants_of
from registry.subjects.usage.clients import clients_against
from registry.subjects.versions.lookup import columns_of, get_subject, row_of, width_of
from registry.subjects.versions.one_version import PLACE, named
from registry.subjects.versions.parsed_schemas import parse_schema, parse_stored, resolve_references
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import VersionInfo, live, no_version, parse_version, version_infos, version_row

#: the compatibility policy that allows closed content models in JSON Schema
LENIENT_POLICY = "LENIENT"
History = Sequence[tuple[int, ParsedSchema]]


@dataclass(frozen=True)
class Comparison:
    """Two versions, their differences, and the report of each reading direction.

    `differences` is None if the formats differ, so that only the texts can be compared. `backward` is the new schema
    reading the old one's data, `forward` the old one reading the new one's.
    """

    old: VersionInfo
    new: VersionInfo
    differences: tuple[Difference, ...] | None
    same_meaning: bool
    backward: Report | None
    forward: Report | None


@dataclass(frozen=True)
class Proposal:
    """What registering a text would do: the whole report under the effective settings.

    `equal_version` is the live version with exactly this schema, so that nothing would be registered.
    """

    subject: SubjectName
    schema: ParsedSchema
    config: effective_policy.EffectiveConfig
    assessment: Assessment
    policy: PolicyReport | None
    equal_version: int | None

    @property
    def is_accepted(self) -> bool:
        """Whether it would be registered without force."""
        return self.assessment.is_compatible and (self.policy is None or self.policy.is_accepted())


def live_rows(subject: Subject) -> list[SchemaVersion]:
    """Return the live versions with their schemas, ascending."""
    return list(live(subject.versions.all()).select_related("schema").order_by("version"))


def of_group(rows: list[SchemaVersion], *, group: str | None, like: Contract | None) -> list[SchemaVersion]:
    """Return the rows whose property `group` has its value in the metadata `like`; all if `group` is None."""
    if not group:
        return rows
    value = property_of(like, group)
    return [row for row in rows if property_of(row.schema.metadata, group) == value]


def parsed_history(rows: list[SchemaVersion], *, refer: bool = True) -> list[tuple[int, ParsedSchema]]:
    """Return the versions with their parsed schemas; `refer` False means that no schema refers to another."""
    parsed = parse_stored([row.schema for row in rows], refer=refer)
    return list(zip((row.version for row in rows), parsed, strict=True))


def compare_versions(
    registry: Registry, subject: SubjectName, *, old: int | str, new: int | str, new_registry: Registry | None = None
) -> Comparison:
    """Compare two versions of a subject; `new_registry` is the registry of the new one, if it is another.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    old_row = version_row(get_subject(registry, subject, deleted=True), parse_version(old), deleted=True)
    new_row = version_row(
        get_subject(new_registry or registry, subject, deleted=True), parse_version(new), deleted=True
    )
    old_info, new_info = version_infos([old_row, new_row])
    if old_row.schema.schema_type != new_row.schema.schema_type:
        return Comparison(old_info, new_info, None, same_meaning=False, backward=None, forward=None)
    old_schema, new_schema = parse_stored([old_row.schema, new_row.schema])
    backward, forward = schema_engine.check_both(new_schema, (old_row.version, old_schema), profile="confluent")
    return Comparison(
        old=old_info,
        new=new_info,
        differences=schema_engine.diff(old_schema, new_schema),
        same_meaning=old_schema.fingerprint == new_schema.fingerprint,
        backward=backward,
        forward=forward,
    )


def report_proposal(
    registry: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str,
    by: Actor,
    references: Sequence[Reference] = (),
    profile: Profile | None = None,
    level: str | None = None,
) -> Proposal:
    """Return the whole compatibility report of an unregistered text; profile and level default to those in force.

    Of the subjects that refer to this one, it includes those that `by` may read.

    Raises InvalidSchema, InvalidReference, InvalidCompatibility.
    """
    resolved, schema, config = _read(registry, subject, text, schema_type, references, profile, level)
    versions = _live_history(registry, subject)
    assessment = schema_engine.assess(schema, versions, config.level, references=resolved, profile=config.profile)
    return Proposal(
        subject=subject,
        schema=schema,
        config=config,
        assessment=replace(
            assessment,
            lint=_applicable_advice(assessment.lint, registry, subject),
            clients=clients_against(registry, subject, schema),
            dependants=dependants_of(registry, subject, schema, resolved, by=by),
        ),
        policy=None
        if config.policy == effective_policy.NO_POLICY
        else schema_engine.check_policy(config.policy, schema, versions),
        equal_version=next((number for number, other in versions if schema.is_stored_as(other.text)), None),
    )


@dataclass(frozen=True)
class TextCheck:
    """The feedback on a text while it is written: the effective settings, all seven levels, and advice.

    `assessment` has the edits that would make it pass; None if the text passes already. `newest` is the subject's
    newest live version; 0 if it has no live version.
    """

    config: effective_policy.EffectiveConfig
    levels: LevelOverview
    lint: tuple[LintFinding, ...]
    assessment: Assessment | None = None
    newest: int = 0


def check_text(
    registry: Registry, subject: SubjectName, *, text: str, schema_type: str, references: Sequence[Reference] = ()
) -> TextCheck:
    """Return which of the seven levels an unregistered text would pass, and advice on it.

    Raises InvalidSchema, InvalidReference.
    """
    resolved, schema, config = _read(registry, subject, text, schema_type, references)
    history = _live_history(registry, subject)
    levels = schema_engine.check_all_levels(schema, history, profile=config.profile)
    passes = levels.reports[config.level].is_compatible
    return TextCheck(
        config=config,
        levels=levels,
        assessment=None
        if passes
        else schema_engine.assess(schema, history, config.level, references=resolved, profile=config.profile),
        lint=_applicable_advice(schema_engine.lint(schema), registry, subject),
        newest=history[-1][0] if history else 0,
    )


@dataclass(frozen=True)
class TextProblems:
    """The findings of a text under a level, all seven levels, advice, repairs, and likely renames with their places."""

    config: effective_policy.EffectiveConfig
    levels: LevelOverview
    lint: tuple[LintFinding, ...]
    repairs: tuple[FindingRepairs, ...]
    renames: tuple[tuple[SuspectedRename, tuple[int, int] | None], ...] = ()


def find_problems(
    registry: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str,
    by: Actor,
    references: Sequence[Reference] = (),
    profile: Profile | None = None,
    level: str | None = None,
) -> TextProblems:
    """Return the problems of an unregistered text; profile and level default to those in force.

    Raises NotAllowed, InvalidSchema, InvalidReference, InvalidCompatibility.
    """
    require(by, "schema.read", registry=registry.name, subject=subject.qualified)
    resolved, schema, config = _read(registry, subject, text, schema_type, references, profile or None, level or None)
    history = _live_history(registry, subject)
    levels = schema_engine.check_all_levels(schema, history, profile=config.profile)
    repairs: tuple[FindingRepairs, ...] = ()
    if levels.reports[config.level].items:
        repairs = schema_engine.repairs_of(schema, history, config.level, references=resolved, profile=config.profile)
    is_comparable = bool(history) and history[-1][1].schema_type == schema.schema_type
    renames = schema_engine.suspected_renames(history[-1][1], schema) if is_comparable else ()
    return TextProblems(
        config=config,
        levels=levels,
        lint=_applicable_advice(schema_engine.lint(schema), registry, subject),
        repairs=repairs,
        renames=tuple((rename, schema_engine.position(schema, rename.pointer)) for rename in renames),
    )


def _read(
    registry: Registry,
    subject: SubjectName,
    text: str,
    schema_type: str,
    references: Sequence[Reference],
    profile: Profile | None = None,
    level: str | None = None,
) -> tuple[tuple[ResolvedReference, ...], ParsedSchema, effective_policy.EffectiveConfig]:
    """Return the resolved references, the schema, and the config in force with the given profile and level instead."""
    resolved = tuple(reference for reference, _ in resolve_references(registry, references, context=subject.context))
    schema = parse_schema(schema_type, text, resolved)
    config = effective_policy.effective_config(registry, subject)
    if profile is not None:
        config = replace(config, profile=profile)
    if level is not None:
        config = replace(config, level=level_named(level).name)
    return resolved, schema, config


def _applicable_advice(
    findings: tuple[LintFinding, ...], registry: Registry, subject: SubjectName
) -> tuple[LintFinding, ...]:
    """Return the advice, without that on tags if the whole subject has a tag."""
    if not any(item.rule in TAG_RULES for item in findings) or not note_of(registry, subject).tags:
        return findings
    return tuple(item for item in findings if item.rule not in TAG_RULES)


@dataclass(frozen=True)
class Verdict:
    """Whether a text could be registered, and if not, the reasons in Confluent's shape."""

    is_compatible: bool
    messages: list[str]


def check_proposal(
    registry: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str,
    references: Sequence[Reference] = (),
    version: int | str | None = None,
    metadata: Contract | None = None,
) -> Verdict:
    """Return the verdict under the level in force, against one version or (None) those that the level requires.

    Any text is compatible with a missing subject, also as its `latest`. Raises InvalidSchema,
    InvalidReference, InvalidVersion, VersionNotFound.
    """
    number = None if version is None else parse_version(version)
    resolved = resolve_references(registry, references, context=subject.context)
    config, settings = effective_policy.config_and_settings(registry, subject)
    references_in = tuple(reference for reference, _ in resolved)
    schema = parse_schema(schema_type, text, references_in, is_new=settings.validate_new_schemas is not False)
    every, refer = _live_rows(registry, subject)
    versions = parsed_history(of_group(every, group=settings.compatibility_group, like=metadata), refer=refer)
    if number is not None:
        if all(row.version != number for row in every):
            raise no_version(number)
        versions = [(version_number, other) for version_number, other in versions if version_number == number]
        every = [row for row in every if row.version == number]
    elif version is not None:
        versions = versions[-1:]
    reserved = check_fields(schema, settings, metadata, every[-1].schema.metadata if every else None)
    lenient = settings.compatibility_policy == LENIENT_POLICY
    report = schema_engine.check(schema, versions, config.level, profile=config.profile, lenient=lenient)
    return Verdict(report.is_compatible and reserved.is_accepted(), refusals(report, reserved, settings))


def check_fields(
    schema: ParsedSchema, settings: effective_policy.OwnConfig, metadata: Contract | None, previous: Contract | None
) -> ReservedReport:
    """Return what the schema does to reserved fields, if the config checks them. Raises InvalidSchema."""
    if not settings.validate_fields:
        return ReservedReport()
    if name := format_of(schema.schema_type).restricted_name(schema)[:80]:
        raise InvalidSchema(f"Field names cannot start with {RESTRICTED} prefix: {name}", pointer=f"/properties/{name}")
    return check_reserved(metadata, previous, lambda name: schema_engine.has_top_level_field(schema, name))


def refusals(report: Report, reserved: ReservedReport, settings: effective_policy.OwnConfig) -> list[str]:
    """Return why a schema can't be registered, in Confluent's shape; empty if it can."""
    if report.is_compatible and reserved.is_accepted():
        return []
    checked = "true" if settings.validate_fields else "false"
    reasons = report.messages()[:-1] if not report.is_compatible else []
    return [*reserved.messages(), *reasons, f"{{validateFields: '{checked}', compatibility: '{report.level}'}}"]


def _live_history(registry: Registry, subject: SubjectName) -> History:
    rows, refer = _live_rows(registry, subject)
    return parsed_history(rows, refer=refer)


#: the live versions of a subject with their schemas, ascending, and whether each schema has references
_LIVE: Final = f"""{PLACE}
SELECT EXISTS (SELECT FROM subjects_schemareference r WHERE r.schema_id = d.id), {columns_of(SchemaVersion, "v")},
    {columns_of(Schema, "d")}
FROM subjects_schemaversion v JOIN subjects_schema d ON d.id = v.schema_id
WHERE v.subject_id = (SELECT id FROM place) AND v.deleted_at IS NULL ORDER BY v.version"""  # noqa: S608


def _live_rows(registry: Registry, subject: SubjectName) -> tuple[list[SchemaVersion], bool]:
    """Return `live_rows` of a subject by its name, none if it doesn't exist; and whether any schema has references."""
    with connection.cursor() as cursor:
        cursor.execute(_LIVE, named(registry, subject))
        found = cursor.fetchall()
    rows, width = [], width_of(SchemaVersion)
    for _, *columns in found:
        row = row_of(SchemaVersion, columns[:width])
        row.schema = row_of(Schema, columns[width:])
        rows.append(row)
    return rows, any(refers for refers, *_ in found)


def stored_version(
    registry: Registry, subject: SubjectName, version: int | None, *, deleted: bool = False
) -> tuple[VersionInfo, ParsedSchema]:
    """Return a version with its parsed schema, by default a live one. Raises SubjectNotFound, VersionNotFound."""
    row = version_row(get_subject(registry, subject, deleted=deleted), version, deleted=deleted)
    return version_infos([row])[0], parse_stored([row.schema])[0]
