"""A subject's references and dependants, two steps each way; and what a change would do to the dependants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import connection
from django.db.models import Count, F, Max, Window
from django.db.models.functions import RowNumber

from registry.access.roles import Actor, may
from registry.errors import InvalidReference, InvalidSchema
from registry.formats.assessment import Dependant
from registry.formats.base import ParsedSchema, ResolvedReference
from registry.formats.report import Report
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, SchemaReference, SchemaVersion
from registry.subjects.policy.effective_policy import EffectiveConfig, effective_configs
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.parsed_schemas import parse_stored
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import parse_version, version_row

MAX_DEPENDANTS = 50


def dependants_of(
    registry: Registry,
    subject: SubjectName,
    new: ParsedSchema,
    references: tuple[ResolvedReference, ...],
    *,
    by: Actor | None = None,
) -> tuple[Dependant, ...]:
    """Check what the latest version of each subject that refers to this one becomes if it refers to `new`.

    A reference names a version, so nothing breaks by itself: this is what its owner gets after updating the reference.
    At most 50 subjects, a constant number of queries. With `by`, only subjects that they may read: a dependant's
    message reveals parts of its schema.
    """
    return referrers_of(registry, subject, by=by).against(new, references)


@dataclass(frozen=True)
class Referrers:
    """The latest versions that refer to a subject, at most MAX_DEPENDANTS, with their schemas and configs.

    `hidden` counts those that the reader may not read, `more` those beyond the limit.
    """

    subject: SubjectName
    rows: tuple[tuple[SchemaVersion, ParsedSchema, EffectiveConfig], ...] = ()
    hidden: int = 0
    more: int = 0

    def against(self, new: ParsedSchema, references: tuple[ResolvedReference, ...]) -> tuple[Dependant, ...]:
        """Return what each becomes if it refers to `new`."""
        return tuple(_dependant(row, old, self.subject, new, references, config) for row, old, config in self.rows)


def referrers_of(registry: Registry, subject: SubjectName, *, by: Actor | None = None) -> Referrers:
    """Return the subjects that refer to this one; with `by`, those that they may read. A constant number of queries."""
    every, count = _latest_referrers(registry, subject)
    rows = [
        row
        for row in every
        if by is None or may(by, "schema.read", registry=registry.name, subject=_name(row).qualified)
    ]
    configs = effective_configs(registry, {_name(row) for row in rows}) if rows else {}
    parsed = parse_stored([row.schema for row in rows]) if rows else []
    read = tuple((row, old, configs[_name(row)]) for row, old in zip(rows, parsed, strict=True))
    return Referrers(subject, read, len(every) - len(rows), count - len(every))


def count_referrers(registry: Registry, subject: SubjectName, version: int) -> int:
    """Return how many other subjects have a live version that refers to that version; one query."""
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


def _latest_referrers(registry: Registry, subject: SubjectName) -> tuple[list[SchemaVersion], int]:
    """Return the latest live version of each other subject, if it refers to a version of this one, and their number.

    Step by step, because most subjects have none: for a single statement, PostgreSQL starts parallel workers.
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
        return [], 0
    latest = dict(
        SchemaVersion.objects.filter(subject__in=subjects, deleted_at=None)
        .order_by("subject_id", "-version")
        .distinct("subject_id")
        .values_list("pk", "schema_id")
    )
    using = set(referring.filter(schema__in=latest.values()).values_list("schema", flat=True))
    version_pks = [pk for pk, schema in latest.items() if schema in using]
    rows = SchemaVersion.objects.filter(pk__in=version_pks[:MAX_DEPENDANTS]).select_related(
        "schema", "subject__context"
    )
    return list(rows.order_by("subject_id")), len(version_pks)


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
        for item in schema_engine.references_of(old)
    )
    try:
        moved = schema_engine.parse(row.schema.schema_type, row.schema.canonical, moved_references, is_new=False)
        if set(moved.missing_types) - set(old.missing_types):
            lost = ", ".join(moved.missing_types)[:300]
            return Dependant(name.qualified, row.version, "no", f"with the new schema, nothing declares {lost}")
        report = schema_engine.check(moved, [(row.version, old)], config.level, profile=config.profile)
    except (InvalidSchema, InvalidReference) as error:
        return Dependant(name.qualified, row.version, "no", f"with the new schema, it can't be parsed: {error.message}")
    return _verdict_on(name, row.version, report, config)


def _verdict_on(name: SubjectName, version: int, report: Report, config: EffectiveConfig) -> Dependant:
    if report.is_compatible:
        return Dependant(name.qualified, version, "yes", f"still compatible under {config.level}")
    first = report.breaks[0]
    more = f" and {len(report.breaks) - 1} more" if len(report.breaks) > 1 else ""
    sentence = f"incompatible under {config.level}: {first.message} at {first.named_path or 'its root'}{more}"
    return Dependant(name.qualified, version, "no", sentence)


#: neighbours of a node that are read in the first and in the second step
WIDTHS: Final = (50, 10)

#: the dependants of subjects, each by its newest live version that refers to any version of the subject; not the
#: subject itself
_DEPENDANTS: Final = """
WITH edge AS (
    SELECT t.subject_id AS target, v.subject_id AS source, v.version, t.version AS pinned,
           t.deleted_at IS NOT NULL AS is_gone, r.name
    FROM subjects_schemaversion t
    JOIN subjects_schemareference r ON r.target_id = t.id
    JOIN subjects_schemaversion v ON v.schema_id = r.schema_id AND v.deleted_at IS NULL
    WHERE t.subject_id = ANY(%(subjects)s) AND v.subject_id <> t.subject_id
), newest AS (
    SELECT target, source, max(version) AS version FROM edge GROUP BY target, source
), pair AS (
    SELECT target, source, version, array_agg(DISTINCT pinned ORDER BY pinned) AS pins,
           coalesce(array_agg(DISTINCT pinned ORDER BY pinned) FILTER (WHERE is_gone), '{}') AS gone, min(name) AS name
    FROM edge JOIN newest USING (target, source, version)
    GROUP BY target, source, version
), placed AS (
    SELECT pair.*, c.name AS context, s.name AS subject, count(*) OVER (PARTITION BY target) AS many,
           row_number() OVER (PARTITION BY target ORDER BY c.name, s.name) AS place
    FROM pair JOIN subjects_subject s ON s.id = pair.source JOIN subjects_context c ON c.id = s.context_id
)
SELECT target, source, context, subject, version, pins, gone, name, many FROM placed
WHERE place <= %(width)s ORDER BY target, place
"""
_DEPENDANTS_COUNTED: Final = """
SELECT t.subject_id, count(DISTINCT v.subject_id)
FROM subjects_schemaversion t
JOIN subjects_schemareference r ON r.target_id = t.id
JOIN subjects_schemaversion v ON v.schema_id = r.schema_id AND v.deleted_at IS NULL
WHERE t.subject_id = ANY(%(subjects)s) AND v.subject_id <> t.subject_id
GROUP BY t.subject_id
"""


@dataclass(frozen=True)
class ReferenceNode:
    """A subject in the graph, seen from its predecessor.

    For a reference, `version` is its target; for a dependant, its newest version that refers here, and `pins` are the
    versions that it refers to. `latest` is the subject's newest live version, None if it has none. `broken` are pinned
    versions that were deleted. `nodes` are its own neighbours that are included, `more` counts the others.
    """

    subject: SubjectName
    version: int
    latest: int | None
    name: str
    pins: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()
    nodes: tuple[ReferenceNode, ...] = ()
    more: int = 0
    is_readable: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the node as JSON values."""
        return {
            "subject": self.subject.qualified,
            "version": self.version,
            "latest": self.latest,
            "name": self.name,
            "pins": list(self.pins),
            "broken": list(self.broken),
            "nodes": [node.to_dict() for node in self.nodes],
            "more": self.more,
        }


@dataclass(frozen=True)
class ReferenceGraph:
    """A version of a subject with its references, and the dependants of any version of the subject.

    `more_references` and `more_dependants` count those that aren't included: too many, or not readable.
    """

    subject: SubjectName
    version: int
    latest: int | None
    references: tuple[ReferenceNode, ...]
    dependants: tuple[ReferenceNode, ...]
    more_references: int = 0
    more_dependants: int = 0


def reference_graph(
    registry: Registry, subject: SubjectName, version: int | str = "latest", *, by: Actor, steps: int = 2
) -> ReferenceGraph:
    """Return the graph, one or two steps each way; a constant number of queries.

    Dependants are named only to people who may read them. Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    row = get_subject(registry, subject, deleted=True)
    number = parse_version(version)
    start = _start(row, number)
    reading = _Reading(registry, by, WIDTHS[:steps])
    references = reading.references({start.schema_id})
    dependants = reading.dependants({row.pk})
    reading.latest = _latest({*reading.reached, row.pk})
    out, more_out = reading.nodes(references, start.schema_id)
    into, more_into = reading.nodes(dependants, row.pk)
    return ReferenceGraph(
        subject=subject,
        version=start.version,
        latest=reading.latest.get(row.pk),
        references=out,
        dependants=into,
        more_references=more_out,
        more_dependants=more_into,
    )


def _start(row: Any, number: int | None) -> SchemaVersion:
    """Return the requested version; for `latest` of a subject without a live version, the newest deleted one."""
    if number is None and not row.versions.filter(deleted_at=None).exists():
        return version_row(row, None, deleted=True)
    return version_row(row, number, deleted=number is not None)


@dataclass(frozen=True)
class _Edge:
    """A neighbour: its node without neighbours, the key for the next step, and the subject's primary key."""

    node: ReferenceNode
    key: int
    subject_pk: int


@dataclass(frozen=True)
class _Level:
    """The neighbours of each key, and how many exist."""

    edges: Mapping[int, tuple[_Edge, ...]]
    many: Mapping[int, int]


@dataclass
class _Reading:
    """Reads one graph: levels of edges, then the newest versions of all subjects that occur."""

    registry: Registry
    by: Actor
    widths: Sequence[int]

    def __post_init__(self) -> None:
        self.reached: set[int] = set()
        self.latest: dict[int, int] = {}

    def references(self, schemas: Collection[int]) -> list[_Level]:
        """Return the references of schemas, level by level; the last level has only counts."""
        levels = []
        for width in self.widths:
            levels.append(self._references_of(schemas, width))
            schemas = _keys(levels[-1])
        counted = SchemaReference.objects.filter(schema__in=schemas).order_by().values_list("schema")
        levels.append(_Level({}, dict(counted.annotate(count=Count("pk")))))
        return levels

    def dependants(self, subjects: Collection[int]) -> list[_Level]:
        """Return the dependants of subjects, level by level; the last level has only counts."""
        levels = []
        for width in self.widths:
            levels.append(self._dependants_of(subjects, width))
            subjects = _keys(levels[-1])
        levels.append(_Level({}, dict(_rows(_DEPENDANTS_COUNTED, subjects=list(subjects)))))
        return levels

    def _references_of(self, schemas: Collection[int], width: int) -> _Level:
        rows = (
            SchemaReference.objects.filter(schema__in=schemas)
            .annotate(
                rank=Window(RowNumber(), partition_by=F("schema_id"), order_by=F("position").asc()),
                many=Window(Count("pk"), partition_by=F("schema_id")),
            )
            .filter(rank__lte=width)
            .order_by("schema_id", "position")
            .values_list(
                "schema_id", "name", "many", "target__version", "target__deleted_at", "target__schema_id",
                "target__subject_id", "target__subject__name", "target__subject__context__name",
            )
        )  # fmt: skip
        edges: dict[int, list[_Edge]] = {}
        counts: dict[int, int] = {}
        for schema, name, many, version, deleted_at, target_schema, pk, subject, context in rows:
            whole = SubjectName(context, subject)
            broken = (version,) if deleted_at else ()
            node = ReferenceNode(whole, version, None, name, broken=broken, is_readable=self._may_read(whole))
            edges.setdefault(schema, []).append(_Edge(node, target_schema, pk))
            counts[schema] = many
            self.reached.add(pk)
        return _Level({schema: tuple(neighbours) for schema, neighbours in edges.items()}, counts)

    def _dependants_of(self, subjects: Collection[int], width: int) -> _Level:
        edges: dict[int, list[_Edge]] = {}
        counts: dict[int, int] = {}
        for target, source, context, subject, version, pins, gone, name, many in _rows(
            _DEPENDANTS, subjects=list(subjects), width=width
        ):
            counts[target] = many
            whole = SubjectName(context, subject)
            if self._may_read(whole):
                node = ReferenceNode(whole, version, None, name, tuple(pins), tuple(gone))
                edges.setdefault(target, []).append(_Edge(node, source, source))
                self.reached.add(source)
        return _Level({target: tuple(neighbours) for target, neighbours in edges.items()}, counts)

    def _may_read(self, subject: SubjectName) -> bool:
        return may(self.by, "schema.read", registry=self.registry.name, subject=subject.qualified)

    def nodes(self, levels: Sequence[_Level], key: int) -> tuple[tuple[ReferenceNode, ...], int]:
        """Return the neighbours of a key with theirs, and how many more there are."""
        first, rest = levels[0], levels[1:]
        edges = first.edges.get(key, ())
        return tuple(self._whole(edge, rest) for edge in edges), first.many.get(key, 0) - len(edges)

    def _whole(self, edge: _Edge, rest: Sequence[_Level]) -> ReferenceNode:
        """Return a node with its own neighbours; an unreadable subject has no further details."""
        if not edge.node.is_readable:
            return edge.node
        nodes, more = self.nodes(rest, edge.key) if rest else ((), 0)
        return replace(edge.node, latest=self.latest.get(edge.subject_pk), nodes=nodes, more=more)


def _keys(level: _Level) -> set[int]:
    return {edge.key for edges in level.edges.values() for edge in edges if edge.node.is_readable}


def _latest(subjects: Collection[int]) -> dict[int, int]:
    rows = SchemaVersion.objects.filter(subject__in=subjects, deleted_at=None).order_by().values_list("subject")
    return dict(rows.annotate(latest=Max("version")))


def _rows(statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
