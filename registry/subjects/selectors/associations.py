"""Which resources use which subjects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from registry.subjects.associations import ANY, STRONG, Resource
from registry.subjects.models import Association, Registry
from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class AssociationInfo:
    """A resource's use of a subject, as it is stored."""

    guid: str
    subject: SubjectName
    resource: Resource
    association_type: str
    lifecycle: str
    created_at: datetime
    updated_at: datetime

    @property
    def is_frozen(self) -> bool:
        """Whether it changes no more: what is owned goes with its owner."""
        return self.lifecycle == STRONG


def associations_of_subject(
    registry: Registry,
    subject: SubjectName,
    *,
    resource_type: str = "",
    types: Collection[str] = (),
    lifecycle: str = "",
) -> list[AssociationInfo]:
    """Who uses the subject, by resource; an empty filter takes all. One query."""
    rows = _rows(registry, resource_type, types, lifecycle)
    return _infos(rows.filter(subject__context__name=subject.context, subject__name=subject.subject))


def associations_of_id(
    registry: Registry,
    resource_id: str,
    *,
    resource_type: str = "",
    types: Collection[str] = (),
    lifecycle: str = "",
) -> list[AssociationInfo]:
    """What the resource of that id uses. One query."""
    return _infos(_rows(registry, resource_type, types, lifecycle).filter(resource_id=resource_id))


def associations_of_name(
    registry: Registry,
    name: str,
    namespace: str,
    *,
    resource_type: str = "",
    types: Collection[str] = (),
    lifecycle: str = "",
) -> list[AssociationInfo]:
    """What the resources of that name use; `-` is any name or namespace. One query."""
    rows = _rows(registry, resource_type, types, lifecycle)
    if name != ANY:
        rows = rows.filter(resource_name=name)
    if namespace != ANY:
        rows = rows.filter(resource_namespace=namespace)
    return _infos(rows)


def newest_resource(found: Iterable[AssociationInfo]) -> list[AssociationInfo]:
    """Those of the resource that changed last: several resources, one after the other, may have had one name."""
    rows = list(found)
    if not rows:
        return []
    newest = max(rows, key=lambda row: (row.updated_at, row.created_at, row.resource.id or ""))
    return [row for row in rows if row.resource.id == newest.resource.id]


def associations_by_subject(
    registry: Registry, subjects: Collection[SubjectName], *, resource_type: str = "", types: Collection[str] = ()
) -> dict[SubjectName, list[AssociationInfo]]:
    """Who uses each of the subjects; one query, subjects that nobody uses are left out."""
    rows = _rows(registry, resource_type, types, "").filter(subject__name__in={name.subject for name in subjects})
    found: dict[SubjectName, list[AssociationInfo]] = {}
    for info in _infos(rows):
        if info.subject in subjects:
            found.setdefault(info.subject, []).append(info)
    return found


def is_in_use(registry: Registry, subject: SubjectName) -> bool:
    """Whether a resource uses the subject."""
    rows = Association.objects.filter(registry=registry)
    return rows.filter(subject__context__name=subject.context, subject__name=subject.subject).exists()


def owned_subjects(subject_pks: Collection[int]) -> set[int]:
    """Those of the subjects, by primary key, that a resource owns; one query."""
    return set(Association.objects.filter(subject__in=subject_pks, lifecycle=STRONG).values_list("subject", flat=True))


def info_of(row: Association) -> AssociationInfo:
    """A row as a value."""
    return AssociationInfo(
        guid=str(row.guid),
        subject=SubjectName(row.subject.context.name, row.subject.name),
        resource=Resource(row.resource_name, row.resource_namespace, row.resource_id, row.resource_type),
        association_type=row.association_type,
        lifecycle=row.lifecycle,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _rows(registry: Registry, resource_type: str, types: Collection[str], lifecycle: str) -> QuerySet[Association]:
    rows = Association.objects.filter(registry=registry)
    if resource_type:
        rows = rows.filter(resource_type=resource_type)
    if types:
        rows = rows.filter(association_type__in=types)
    return rows.filter(lifecycle=lifecycle) if lifecycle else rows


def _infos(rows: QuerySet[Association]) -> list[AssociationInfo]:
    ordered = rows.select_related("subject__context").order_by(
        "resource_name", "resource_namespace", "resource_type", "association_type", "subject__name", "pk"
    )
    return [info_of(row) for row in ordered]
