"""Subjects that refer to another one: what would become of them if that one changed."""

from __future__ import annotations

from registry.access.roles import Actor, may
from registry.errors import InvalidReference, InvalidSchema
from registry.formats.assessment import Dependant
from registry.formats.base import ParsedSchema, ResolvedReference
from registry.formats.report import Report
from registry.subjects import engines
from registry.subjects.models import Registry, SchemaReference, SchemaVersion
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.effective import EffectiveConfig, effective_configs
from registry.subjects.selectors.parsed import parse_stored

MAX_DEPENDANTS = 50


def dependants_of(
    registry: Registry,
    subject: SubjectName,
    new: ParsedSchema,
    references: tuple[ResolvedReference, ...],
    *,
    by: Actor | None = None,
) -> tuple[Dependant, ...]:
    """What the latest version of each subject that refers to this one would become if it referred to `new`.

    A reference names a version, so nothing breaks by itself: this is what its owner meets when moving on. At most
    50 subjects, a constant number of queries. With `by` those alone that they may read: the message of a dependant tells
    what its schema has.
    """
    rows = _latest_referrers(registry, subject)
    if by is not None:
        rows = [row for row in rows if may(by, "schema.read", registry=registry.name, subject=_name(row).qualified)]
    configs = effective_configs(registry, {_name(row) for row in rows})
    parsed = zip(rows, parse_stored([row.schema for row in rows]), strict=True)
    return tuple(_dependant(row, old, subject, new, references, configs[_name(row)]) for row, old in parsed)


def count_referrers(registry: Registry, subject: SubjectName, version: int) -> int:
    """How many other subjects have a live version that refers to that one; one query."""
    target = {
        "target__subject__name": subject.subject,
        "target__subject__context__name": subject.context,
        "target__subject__context__registry": registry,
        "target__version": version,
    }
    schemas = SchemaReference.objects.filter(**target).values("schema")
    rows = SchemaVersion.objects.filter(schema__in=schemas, deleted_at=None, subject__context__registry=registry)
    itself = {"subject__name": subject.subject, "subject__context__name": subject.context}
    return rows.exclude(**itself).values("subject").distinct().count()


def _latest_referrers(registry: Registry, subject: SubjectName) -> list[SchemaVersion]:
    """The latest live version of each other subject, where it refers to a version of this one.

    Step by step, as most subjects have none: PostgreSQL starts workers for a single statement of it all.
    """
    referring = SchemaReference.objects.filter(
        target__subject__name=subject.subject,
        target__subject__context__name=subject.context,
        target__subject__context__registry=registry,
    )
    itself = {"subject__name": subject.subject, "subject__context__name": subject.context}
    subjects = set(
        SchemaVersion.objects.filter(
            schema__in=referring.values("schema"), deleted_at=None, subject__context__registry=registry
        )
        .exclude(**itself)
        .values_list("subject", flat=True)
    )
    if not subjects:
        return []
    latest = dict(
        SchemaVersion.objects.filter(subject__in=subjects, deleted_at=None)
        .order_by("subject_id", "-version")
        .distinct("subject_id")
        .values_list("pk", "schema_id")
    )
    using = set(referring.filter(schema__in=latest.values()).values_list("schema", flat=True))
    found = [pk for pk, schema in latest.items() if schema in using][:MAX_DEPENDANTS]
    rows = SchemaVersion.objects.filter(pk__in=found).select_related("schema", "subject__context")
    return list(rows.order_by("subject_id"))


def _name(row: SchemaVersion) -> SubjectName:
    return SubjectName(row.subject.context.name, row.subject.name)


def _dependant(
    row: SchemaVersion,
    old: ParsedSchema,
    subject: SubjectName,
    new: ParsedSchema,
    references: tuple[ResolvedReference, ...],
    config: EffectiveConfig,
) -> Dependant:
    name = _name(row)

    moved_references = tuple(
        ResolvedReference(item.name, item.subject, item.version + 1, new.text, references)
        if parse_subject(item.subject, context=name.context) == subject
        else item
        for item in engines.references_of(old)
    )
    try:
        moved = engines.parse(row.schema.schema_type, row.schema.canonical, moved_references, is_new=False)
        if set(moved.missing_types) - set(old.missing_types):
            lost = ", ".join(moved.missing_types)[:300]
            return Dependant(name.qualified, row.version, "no", f"with the new schema nothing declares {lost}")
        report = engines.check(moved, [(row.version, old)], config.level, profile=config.profile)
    except (InvalidSchema, InvalidReference) as error:
        return Dependant(name.qualified, row.version, "no", f"with the new schema it doesn't parse: {error.message}")
    return _said(name, row.version, report, config)


def _said(name: SubjectName, version: int, report: Report, config: EffectiveConfig) -> Dependant:
    if report.is_compatible:
        return Dependant(name.qualified, version, "yes", f"still fits under {config.level}")
    first = report.breaks[0]
    more = f" and {len(report.breaks) - 1} more" if len(report.breaks) > 1 else ""
    said = f"breaks under {config.level}: {first.message} at {first.named_path or 'its root'}{more}"
    return Dependant(name.qualified, version, "no", said)
