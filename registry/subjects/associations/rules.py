"""Which associations exist, and which may be created: the rules of the established server, in its order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet

from registry.access.roles import Actor, require
from registry.errors import OperationNotPermitted, ReferenceExists
from registry.subjects.associations.requests import (
    ANY,
    STRONG,
    WEAK,
    AskedAssociation,
    AssociationForResourceExists,
    AssociationForSubjectExists,
    AssociationFrozen,
    InvalidAssociation,
    NoActiveVersion,
    Resource,
    StrongAssociationExists,
    refuse_default_subject,
    refuse_other_frozen,
    refuse_other_subject,
    with_defaults,
)
from registry.subjects.models import Association, Registry, SchemaReference
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import effective_mode
from registry.subjects.registration.submission import is_registered, versions_of
from registry.subjects.versions.lookup import meant_subject
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


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


IMPORT = "IMPORT"
CHANGE = "config.change"


@dataclass(frozen=True)
class Wanted:
    """An association that is asked for beside the one that there is; `is_there` says that nothing is to be written."""

    asked: AskedAssociation
    subject: SubjectName
    stored: AssociationInfo | None
    is_there: bool = False

    @property
    def lifecycle(self) -> str:
        """What the association would be."""
        return self.asked.lifecycle or (self.stored.lifecycle if self.stored else "")


@dataclass(frozen=True)
class Request:
    """Associations that are asked for together, for one resource."""

    registry: Registry
    resource: Resource
    by: Actor
    create: bool
    dry_run: bool

    def judge(self, asked: Sequence[AskedAssociation], context: str) -> tuple[Wanted, ...]:
        """What is to be written.

        Raises InvalidAssociation, AssociationForResourceExists, AssociationForSubjectExists, StrongAssociationExists,
        AssociationFrozen, NoActiveVersion, ReferenceExists, OperationNotPermitted, ReleaseRequired, InvalidName,
        NotSignedIn, NotAllowed.
        """
        named = [self._placed(item, context) for item in asked]
        stored = self._stored([item.association_type for item in asked])
        wanted = tuple(self._one(item, stored.get(item.association_type)) for item in named)
        self._refuse_mixed(wanted)
        for item in wanted:
            self._refuse_by_subject(item, wanted)
        return wanted

    def _placed(self, asked: AskedAssociation, context: str) -> AskedAssociation:
        """With the subject that the name means below the context, behind its alias."""
        if asked.subject is None:
            return asked
        subject = meant_subject(self.registry, parse_subject(asked.subject, context=context))
        may_change(self.registry, subject, self.by)
        return replace(asked, subject=subject.qualified)

    def _stored(self, types: Sequence[str]) -> Mapping[str, AssociationInfo]:
        resource = self.resource
        if resource.id:
            found = associations_of_id(self.registry, resource.id, resource_type=resource.type, types=types)
        elif self.create:
            found = newest_resource(
                associations_of_name(
                    self.registry, resource.name, resource.namespace, resource_type=resource.type, types=types
                )
            )
        else:
            found = []
        return {item.association_type: item for item in found}

    def _one(self, asked: AskedAssociation, stored: AssociationInfo | None) -> Wanted:
        if stored is None and not self.create:
            asked = with_defaults(asked, create=False)
        is_named = asked.subject is not None
        asked = self._with_subject(asked, stored)
        subject = parse_subject(asked.subject or "")
        if not is_named:
            require(self.by, CHANGE, registry=self.registry.name, subject=subject.qualified)
            change_guard.ask(CHANGE, self.registry, subject.qualified, self.by)
        wanted = Wanted(asked, subject, stored)
        if not wanted.lifecycle:
            raise InvalidAssociation("lifecycle", "lifecycle must be set")
        if wanted.lifecycle == WEAK:
            if asked.schema is not None:
                raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
            refuse_default_subject(self.resource, replace(asked, lifecycle=WEAK))
        is_frozen = stored.is_frozen if stored else bool(asked.frozen)
        refuse_other_frozen(wanted.lifecycle, is_frozen if asked.frozen is None else asked.frozen)
        refuse_other_subject(self.resource, asked, frozen=is_frozen)
        if stored is None:
            self._refuse_new(wanted)
            return wanted
        return self._refuse_change(wanted, stored)

    def _with_subject(self, asked: AskedAssociation, stored: AssociationInfo | None) -> AskedAssociation:
        if asked.subject is not None:
            return asked
        if stored is not None:
            return replace(asked, subject=stored.subject.qualified)
        if asked.lifecycle == STRONG:
            return replace(asked, subject=self.resource.default_subject(asked.association_type))
        raise InvalidAssociation("subject", "must be provided for WEAK associations")

    def _refuse_new(self, wanted: Wanted) -> None:
        """A resource comes to own a subject when both are made, but where everything is replicated as it is elsewhere."""
        if wanted.lifecycle != STRONG or self._imports(wanted.subject):
            return
        if not self.create:
            raise InvalidAssociation(
                "lifecycle",
                "cannot be STRONG when creating an association; STRONG associations must be created with the topic",
            )
        if wanted.asked.schema is None:
            raise InvalidAssociation("schema", "schema must be provided when creating a frozen association")
        latest = versions_of(self.registry, wanted.subject).first()
        if latest is not None and (latest.version != 1 or not self._has_schema(wanted)):
            raise InvalidAssociation(
                "frozen", "cannot create a frozen association when schemas already exist in the subject"
            )

    def _refuse_change(self, wanted: Wanted, stored: AssociationInfo) -> Wanted:
        """What is there already is written no more; hardly anything else can be changed."""
        asked = wanted.asked
        same = wanted.subject == stored.subject and wanted.lifecycle == stored.lifecycle
        if same and asked.frozen in (None, stored.is_frozen):
            if self.create and asked.schema is not None and not self._has_schema(wanted):
                raise AssociationForResourceExists(stored.association_type, stored.resource.name)
            return replace(wanted, is_there=True)
        if self.create:
            raise AssociationForResourceExists(stored.association_type, stored.resource.name)
        if asked.lifecycle is None and asked.schema is None:
            raise InvalidAssociation("lifecycle", "at least lifecycle or schema must be provided for update")
        if wanted.subject != stored.subject:
            raise InvalidAssociation(
                "subject",
                f"subject of association cannot be changed from '{stored.subject.qualified}'"
                f" to '{wanted.subject.qualified}'",
            )
        default = self.resource.default_subject(stored.association_type)
        if stored.lifecycle == STRONG and asked.lifecycle == WEAK and stored.subject.qualified == default:
            raise InvalidAssociation(
                "lifecycle", f"cannot change to WEAK when subject matches default format '{default}'"
            )
        if asked.frozen is not None and asked.frozen != stored.is_frozen:
            raise InvalidAssociation("frozen", "frozen attribute of association cannot be changed")
        raise AssociationFrozen(stored.association_type, stored.subject.qualified)

    def _refuse_mixed(self, wanted: Sequence[Wanted]) -> None:
        """A resource owns all of its subjects or none."""
        resource = self.resource
        if resource.id:
            known = associations_of_id(self.registry, resource.id, resource_type=resource.type)
        else:
            known = newest_resource(
                associations_of_name(self.registry, resource.name, resource.namespace, resource_type=resource.type)
            )
        lifecycles = {item.association_type: item.lifecycle for item in known}
        lifecycles |= {item.asked.association_type: item.lifecycle for item in wanted}
        if len(set(lifecycles.values())) > 1:
            detail = ", ".join(f"{kind}={lifecycle}" for kind, lifecycle in lifecycles.items())
            raise InvalidAssociation(
                "lifecycle", f"all associations for a resource must have the same lifecycle, but got {detail}"
            )

    def _refuse_by_subject(self, wanted: Wanted, together: Sequence[Wanted]) -> None:
        name = wanted.subject.qualified
        if wanted.asked.schema is not None and self._imports(wanted.subject):
            raise InvalidAssociation("schema", f"cannot be provided while subject '{name}' is in IMPORT mode")
        if wanted.asked.schema is None and not versions_of(self.registry, wanted.subject).exists():
            raise NoActiveVersion(name)
        others = [
            item for item in associations_of_subject(self.registry, wanted.subject) if not _is(item, wanted.stored)
        ]
        if wanted.lifecycle == STRONG:
            if others:
                raise AssociationForSubjectExists(name)
            if self._is_referenced(wanted.subject) or _refer_to(wanted.subject, together):
                raise ReferenceExists(f"One or more references exist to the schema {name}.", subject=name)
        elif any(item.lifecycle == STRONG for item in others):
            raise StrongAssociationExists(name)

    def _is_referenced(self, subject: SubjectName) -> bool:
        return SchemaReference.objects.filter(
            target__subject__context__registry=self.registry,
            target__subject__context__name=subject.context,
            target__subject__name=subject.subject,
            schema__versions__isnull=False,
        ).exists()

    def _imports(self, subject: SubjectName) -> bool:
        return effective_mode(self.registry, subject).mode == IMPORT

    def _has_schema(self, wanted: Wanted) -> bool:
        """Whether the subject has the schema that the request brings."""
        schema = wanted.asked.schema
        assert schema is not None
        return is_registered(
            self.registry,
            wanted.subject,
            text=schema.text,
            schema_type=schema.schema_type,
            references=schema.references,
            metadata=schema.metadata,
            rule_set=schema.rule_set,
            tags=(schema.tags_to_add, schema.tags_to_remove),
            normalize=wanted.asked.normalize or None,
        )


def may_change(registry: Registry, subject: SubjectName, by: Actor) -> None:
    """Raise NotSignedIn, NotAllowed, ReleaseRequired or OperationNotPermitted unless what uses the subject may change."""
    require(by, CHANGE, registry=registry.name, subject=subject.qualified)
    passes = change_guard.ask(CHANGE, registry, subject.qualified, by)
    mode = effective_mode(registry, subject).mode
    if change_guard.stops(mode, passes=passes):
        raise OperationNotPermitted(
            f"Subject {subject.subject} in context {subject.context} is in read-only mode", mode=mode
        )


def _is(info: AssociationInfo, stored: AssociationInfo | None) -> bool:
    return stored is not None and info.guid == stored.guid


def _refer_to(subject: SubjectName, together: Sequence[Wanted]) -> bool:
    """Whether a schema of the same request refers to the subject: it isn't registered yet."""
    return any(
        parse_subject(reference.subject, context=item.subject.context) == subject
        for item in together
        if item.asked.schema is not None
        for reference in item.asked.schema.references
    )
