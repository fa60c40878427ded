"""A submitted schema: how it would be stored, whether a subject has it already, and the subject's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, OuterRef, Q, QuerySet

from registry.errors import InvalidSchema
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.formats.tags import EntityTags
from registry.notifications.events import ANY
from registry.notifications.services import HAS_SUBSCRIBERS
from registry.subjects.engine import schema_engine
from registry.subjects.events import REGISTERED
from registry.subjects.models import Registry, Schema, SchemaReference, SchemaVersion
from registry.subjects.policy.change_guard import guard_applies
from registry.subjects.policy.data_contracts import (
    VERSION_PROPERTY,
    Contract,
    merge_metadata,
    merge_rule_sets,
    version_in,
    with_version,
    without_version,
)
from registry.subjects.policy.effective_policy import (
    NAMED,
    SPOKEN,
    EffectiveConfig,
    OwnConfig,
    ScopeSettings,
    effective_config,
    scope_of,
    spoken_from,
)
from registry.subjects.versions.lookup import columns_of, row_of, width_of
from registry.subjects.versions.one_version import VERSION_COLUMNS, version_from
from registry.subjects.versions.parsed_schemas import (
    parse_measured,
    parse_schema,
    parse_stored,
    refuse_too_large,
    resolve_references,
)
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.schema_identity import Identity, digest_of, guid_of
from registry.subjects.versions.versions import VersionInfo, references_of, version_infos


@dataclass(frozen=True)
class Submission:
    """The input, parsed before any lock is taken. `metadata` and `rule_set` are None if they weren't sent."""

    schema: ParsedSchema
    resolved: tuple[ResolvedReference, ...]
    targets: tuple[SchemaVersion, ...]
    submitted: str
    metadata: Contract | None = None
    rule_set: Contract | None = None
    _identities: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def canonical(self, *, normalize: bool) -> str:
        """Return the text to store."""
        return schema_engine.normalize(self.schema) if normalize else self.schema.canonical

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references with the versions that they were resolved to."""
        return tuple(item.reference for item in self.resolved)

    def fingerprint(self, canonical: str) -> str:
        """Return the fingerprint of the text to store, which changes if normalization changes the text."""
        if canonical == self.schema.canonical:
            return self.schema.fingerprint
        return parse_schema(self.schema.schema_type, canonical, self.resolved, is_new=False).fingerprint

    def identity(self, canonical: str) -> Identity:
        """Return the schema's identity with that text."""
        digest = self.identities(canonical)[0]
        return Identity(digest, guid_of(canonical, self.references, self.metadata, self.rule_set))

    def identities(self, canonical: str) -> list[str]:
        """Return the digests that the schema may be stored under with that text: its own, and an earlier release's."""
        if canonical not in self._identities:
            earlier = self.schema.earlier_canonical
            texts = [canonical]
            if canonical == self.schema.canonical and earlier not in (None, canonical):
                texts.append(earlier)
            parts = self.references, self.metadata, self.rule_set
            self._identities[canonical] = [digest_of(self.schema.schema_type, text, *parts) for text in texts]
        return self._identities[canonical]

    def with_contract(self, scope: OwnConfig, previous: Schema | None, *, version: int | None = None) -> Submission:
        """Return it with the contract that it is stored with: the one that was sent, else the previous version's.

        The config's defaults are merged below it, its overrides above it. `version` is the next version's number if
        that was sent with the schema; it replaces any number in the metadata.
        """
        metadata = self.metadata if self.metadata is not None or previous is None else previous.metadata
        rule_set = self.rule_set if self.rule_set is not None or previous is None else previous.rule_set
        return replace(
            self,
            metadata=merge_metadata(scope.default_metadata, metadata, scope.override_metadata),
            rule_set=merge_rule_sets(scope.default_rule_set, rule_set, scope.override_rule_set),
        ).numbered(version)

    def numbered(self, version: int | None) -> Submission:
        """Return it with a version's number in its metadata; unchanged for None."""
        return self if version is None else replace(self, metadata=with_version(self.metadata, version))


def prepare(
    registry: Registry,
    subject: SubjectName,
    text: str,
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    metadata: Contract | None = None,
    rule_set: Contract | None = None,
    *,
    is_new: bool = True,
) -> Submission:
    """Return the submission of a text; if it isn't new, it was accepted earlier, or is looked up.

    Raises InvalidSchema, SchemaTooLarge, InvalidReference.
    """
    if not text.strip():
        raise InvalidSchema("Empty schema")
    refuse_too_large(text)
    targets = resolve_references(registry, references, context=subject.context)
    resolved = tuple(reference for reference, _ in targets)
    return Submission(
        schema=parse_measured(schema_type, text, resolved, is_new=is_new),
        resolved=resolved,
        targets=tuple(target for _, target in targets),
        submitted=text,
        metadata=metadata,
        rule_set=rule_set,
    )


def with_tags(submission: Submission, add: Sequence[EntityTags], remove: Sequence[EntityTags]) -> Submission:
    """Return the submission of the text with other tags. Raises InvalidSchema for an unknown path."""
    text = schema_engine.with_tags(submission.schema, add, remove)
    refuse_too_large(text)
    schema = parse_schema(submission.schema.schema_type, text, submission.resolved, is_new=False)
    return replace(submission, schema=schema, submitted=text)


def repeat(
    registry: Registry, subject: SubjectName, previous: Schema, submission: Submission | None = None
) -> Submission:
    """Return the submission that repeats a version's schema. Raises InvalidSchema, InvalidReference."""
    references = references_of([previous.pk]).get(previous.pk, ())
    again = prepare(registry, subject, previous.canonical, previous.schema_type, references, is_new=False)
    return again if submission is None else replace(again, metadata=submission.metadata, rule_set=submission.rule_set)


def versions_of(registry: Registry, subject: SubjectName, *, deleted: bool = False) -> QuerySet[SchemaVersion]:
    """Return the versions of a subject by its name, newest first; by default only live ones."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    )
    rows = rows if deleted else rows.filter(deleted_at=None)
    return rows.select_related("schema", "status").order_by("-version")


#: the schemas with an identity in the context `named`, which precedes it. While the tables are small, PostgreSQL may
#: choose the index on contexts instead of that on identities, and keeps that plan: `+ 0` excludes it.
SAME_IDENTITY: Final = """alike AS MATERIALIZED (
    SELECT d.id, d.schema_id, d.guid FROM subjects_schema d
    WHERE d.identity = ANY(%(identities)s) AND d.context_id + 0 = (SELECT id FROM named)
)"""

_PLACE: Final = """place AS MATERIALIZED (
    SELECT id FROM subjects_subject WHERE context_id = (SELECT id FROM named) AND name = %(subject)s::text
)"""
#: the newest version of `place` with a schema of `alike`: among the live ones or all; or only if it is the newest
_TWIN: Final = f"""SELECT {VERSION_COLUMNS}
FROM alike a JOIN subjects_schema d ON d.id = a.id
JOIN subjects_schemaversion v ON v.schema_id = d.id AND v.subject_id + 0 = (SELECT id FROM place)
LEFT JOIN subjects_versionstanding t ON t.version_id = v.id
WHERE (%(deleted)s::boolean OR v.deleted_at IS NULL) AND (NOT %(latest)s::boolean OR NOT EXISTS (
    SELECT FROM subjects_schemaversion n
    WHERE n.subject_id = v.subject_id AND n.deleted_at IS NULL AND n.version > v.version))
ORDER BY v.version DESC LIMIT 1"""  # noqa: S608
#: the same, with the configs and modes that apply to a subject
_LOOK_UP: Final = f"""{NAMED}, {SAME_IDENTITY}, {_PLACE}
SELECT {SPOKEN}, twin.* FROM (VALUES (1)) AS one LEFT JOIN LATERAL ({_TWIN}) AS twin ON true"""  # noqa: S608


def settings_and_existing_version(
    registry: Registry, subject: SubjectName, identities: list[str], *, latest: bool = False, deleted: bool = False
) -> tuple[ScopeSettings, VersionInfo | None]:
    """Return the settings that apply, and the newest live version with a schema of those identities; one query.

    With `latest` only if it is the newest of all, with `deleted` also a soft-deleted one.
    """
    values = {**scope_of(registry, subject), "identities": identities, "deleted": deleted, "latest": latest}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, values)
        configs, modes, *columns = cursor.fetchone()
    return spoken_from(configs, modes), version_from(subject, columns) if columns[0] is not None else None


#: the schemas of the live versions of `place`, which precedes it
_LIVE: Final = """live AS MATERIALIZED (
    SELECT ARRAY(
        SELECT schema_id FROM subjects_schemaversion WHERE subject_id = (SELECT id FROM place) AND deleted_at IS NULL
    ) AS schemas
)"""
_EXACT: Final = """EXISTS (
    SELECT FROM alike d JOIN subjects_schemaversion v ON v.schema_id = d.id
    WHERE v.subject_id + 0 = (SELECT id FROM place) AND v.deleted_at IS NULL
)"""
_WITH_NUMBER: Final = """EXISTS (
    SELECT FROM subjects_schemaversion v
    WHERE v.subject_id = (SELECT id FROM place) AND v.version = %(number)s::integer AND v.deleted_at IS NULL
)"""
_NUMBERED: Final = f"""EXISTS (
    SELECT FROM subjects_schema d
    WHERE d.id = ANY((SELECT schemas FROM live)::bigint[]) AND d.metadata -> 'properties' ? '{VERSION_PROPERTY}'
)"""  # noqa: S608
_REFERRING: Final = """EXISTS (
    SELECT FROM subjects_schemareference r WHERE r.schema_id = ANY((SELECT schemas FROM live)::bigint[])
)"""


def _may_equal(*, has_number: bool, refers: bool) -> str:
    """Return whether `equal_version` has a candidate among the live versions of `place`, with those parameters.

    For embedding after `alike` and `live`. Each condition has its own index, so that no version's schema is read.
    """
    conditions = [_EXACT, _WITH_NUMBER if has_number else _NUMBERED, *([] if refers else [_REFERRING])]
    return " OR ".join(conditions)


def equal_version(rows: QuerySet[SchemaVersion], submission: Submission, canonical: str) -> SchemaVersion | None:
    """Return the newest version with exactly this schema, or else the newest equivalent one; one query.

    Equivalent means that it differs only in the version's number in its metadata, or that it refers to what the text
    includes.
    """
    number = version_in(submission.metadata)
    identities = submission.identities(canonical)
    says = Q(schema__metadata__properties__has_key=VERSION_PROPERTY) if number is None else Q(version=_number(number))
    if not submission.resolved:
        says |= Q(Exists(SchemaReference.objects.filter(schema=OuterRef("schema"))))
    candidates = list(rows.filter(Q(schema__identity__in=identities) | says))
    exact = next((row for row in candidates if row.schema.identity in identities), None)
    if exact is not None:
        return exact
    return next((row for row in candidates if _says_the_same(row, submission, canonical, number)), None)


def _number(text: str) -> int:
    """Return the version in a metadata number; 0, which no version has, if it is invalid."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _says_the_same(row: SchemaVersion, submission: Submission, canonical: str, number: str | None) -> bool:
    if row.schema.schema_type != submission.schema.schema_type:
        return False
    theirs = version_in(row.schema.metadata)
    if number is not None and (theirs is not None or number != str(row.version)):
        return False
    contracts = [(without_version(item.metadata), item.rule_set or {}) for item in (row.schema, submission)]
    if contracts[0] != contracts[1]:
        return False
    references = references_of([row.schema_id]).get(row.schema_id, ())
    if references == submission.references:
        return canonical == row.schema.canonical or (
            canonical == submission.schema.canonical and submission.schema.is_stored_as(row.schema.canonical)
        )
    if submission.references:
        return False
    whole = schema_engine.self_contained(parse_stored([row.schema])[0])
    return parse_schema(row.schema.schema_type, whole, is_new=False).canonical == submission.schema.canonical


def look_up(
    registry: Registry, subject: SubjectName, submission: Submission, *, normalize: bool | None, deleted: bool = False
) -> VersionInfo | None:
    """Return the subject's version with the schema: as it was sent, or with the contract that it would get.

    One query finds a schema that is stored as it was sent, which is the usual case.
    """
    likely = submission.canonical(normalize=bool(normalize))
    spoken, twin = settings_and_existing_version(registry, subject, submission.identities(likely), deleted=deleted)
    wants_normal = spoken.config().normalize if normalize is None else normalize
    canonical = submission.canonical(normalize=wants_normal)
    if canonical == likely and twin is not None:
        return twin
    row = _equal_in_other_words(registry, subject, submission, canonical, spoken.settings(), deleted=deleted)
    return version_infos([row])[0] if row else None


def _equal_in_other_words(
    registry: Registry, subject: SubjectName, submission: Submission, canonical: str, scope: OwnConfig, *, deleted: bool
) -> SchemaVersion | None:
    rows = versions_of(registry, subject, deleted=deleted)
    twin = equal_version(rows, submission, canonical)
    if twin is not None:
        return twin
    previous = versions_of(registry, subject).first()
    if previous is None:
        return None
    other = submission.with_contract(scope, previous.schema)
    if (other.metadata or {}, other.rule_set or {}) == (submission.metadata or {}, submission.rule_set or {}):
        return None
    return equal_version(rows, other, canonical)


def is_registered(
    registry: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    normalize: bool | None = None,
    metadata: Contract | None = None,
    rule_set: Contract | None = None,
    tags: tuple[Sequence[EntityTags], Sequence[EntityTags]] = ((), ()),
) -> bool:
    """Return whether a live version has the schema with `tags` (to add, to remove) applied.

    Raises InvalidSchema, InvalidReference.
    """
    submission = prepare(registry, subject, text, schema_type, references, metadata, rule_set, is_new=False)
    if any(tags):
        submission = with_tags(submission, *tags)
    return look_up(registry, subject, submission, normalize=normalize) is not None


def submission_identity(
    registry: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    normalize: bool | None = None,
    metadata: Contract | None = None,
    rule_set: Contract | None = None,
) -> list[str]:
    """Return the identities that a text may be stored under, for lookups. Raises InvalidSchema, InvalidReference."""
    submission = prepare(registry, subject, text, schema_type, references, metadata, rule_set)
    wants_normal = effective_config(registry, subject).normalize if normalize is None else normalize
    return submission.identities(submission.canonical(normalize=wants_normal))


@dataclass(frozen=True)
class RegistrationFacts:
    """A subject's effective settings, its newest versions, and whether a submitted schema may exist already.

    `highest` is the highest version number, including soft-deleted ones, 0 without any; `latest` the newest live
    version with its schema, and `latest_refers` whether that schema has references. `may_equal` is False if
    `equal_version` would find nothing; `is_known` says whether the context has exactly this schema, `is_guarded`
    whether a change guard applies, `has_subscribers` whether anybody may subscribe to registrations.
    """

    config: EffectiveConfig
    scope: OwnConfig
    mode: str
    highest: int
    latest: SchemaVersion | None
    latest_refers: bool
    may_equal: bool
    is_known: bool
    is_guarded: bool
    has_subscribers: bool


#: `{may_equal}` is that of the submission, `{guard_applies}` that of the change guards
_SITUATION: Final = f"""{NAMED}, {SAME_IDENTITY}, {_PLACE}, {_LIVE}
SELECT {SPOKEN},
    (SELECT max(version) FROM subjects_schemaversion WHERE subject_id = (SELECT id FROM place)),
    EXISTS (SELECT FROM subjects_schemareference r WHERE r.schema_id = p.schema_id),
    {{may_equal}},
    EXISTS (SELECT FROM alike),
    {{guard_applies}},
    {HAS_SUBSCRIBERS},
    {columns_of(SchemaVersion, "p")}, {columns_of(Schema, "s")}
FROM (VALUES (1)) AS one
LEFT JOIN LATERAL (
    SELECT v.* FROM subjects_schemaversion v WHERE v.subject_id = (SELECT id FROM place) AND v.deleted_at IS NULL
    ORDER BY v.version DESC LIMIT 1
) AS p ON true
LEFT JOIN subjects_schema s ON s.id = p.schema_id
"""  # noqa: S608


@cache
def _situation(*, has_number: bool, refers: bool) -> str:
    may_equal = _may_equal(has_number=has_number, refers=refers)
    return _SITUATION.format(may_equal=may_equal, guard_applies=guard_applies())


def read_situation(
    cursor: CursorWrapper, registry: Registry, subject: SubjectName, submission: Submission | None, canonical: str
) -> None:
    """Read the situation of a subject for `situation_of`; `canonical` is the text that would be stored."""
    number = version_in(submission.metadata) if submission else None
    values = {
        **scope_of(registry, subject),
        "identities": submission.identities(canonical) if submission else [],
        "events": [ANY, REGISTERED],
        **({} if number is None else {"number": _number(number)}),
    }
    refers = submission is None or bool(submission.resolved)
    cursor.execute(_situation(has_number=number is not None, refers=refers), values)


def situation_of(registry: Registry, cursor: CursorWrapper) -> RegistrationFacts:
    """Return what `read_situation` has read; without the subject, no versions."""
    configs, modes, highest, latest_refers, *answers = cursor.fetchone()
    may_equal, is_known, is_guarded, has_subscribers, *columns = answers
    spoken = spoken_from(configs, modes)
    return RegistrationFacts(
        config=spoken.config(),
        scope=spoken.settings(),
        mode=spoken.mode(registry).mode,
        highest=highest or 0,
        latest=_version(columns),
        latest_refers=latest_refers,
        may_equal=may_equal,
        is_known=is_known,
        is_guarded=is_guarded,
        has_subscribers=has_subscribers,
    )


def _version(columns: list[object]) -> SchemaVersion | None:
    width = width_of(SchemaVersion)
    if columns[0] is None:
        return None
    version_row = row_of(SchemaVersion, columns[:width])
    version_row.schema = row_of(Schema, columns[width:])
    return version_row
