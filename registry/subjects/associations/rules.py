"""Which associations exist and which may be created: Confluent's rules, in Confluent's order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from registry.access.roles import Actor, require
from registry.errors import OperationNotPermitted, ReferenceExists
from registry.subjects.associations.requests import (
    ANY,
    STRONG,
    WEAK,
    AssociationForResourceExists,
    AssociationForSubjectExists,
    AssociationFrozen,
    AssociationSpec,
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
from registry.subjects.versions.lookup import resolve_alias
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


@dataclass(frozen=True)
class AssociationInfo:
    """A resource's use of a subject, as stored."""

    guid: str
    subject: SubjectName
    resource: Resource
    association_type: str
    lifecycle: str
    created_at: datetime
    updated_at: datetime

    @property
    def is_frozen(self) -> bool:
        """Whether it can't be changed: an owned subject is deleted with its owner."""
        return self.lifecycle == STRONG


def associations_of_subject(
    registry: Registry,
    subject: SubjectName,
    *,
    resource_type: str = "",
    types: Collection[str] = (),
    lifecycle: str = "",
) -> list[AssociationInfo]:
    """Return the associations of the subject, by resource; an empty filter matches all. One query."""
    rows = _rows(registry, resource_type, types, lifecycle)
    return _infos(rows.filter(subject__context__name=subject.context, subject__name=subject.subject))


def associations_of_id(
    registry: Registry, resource_id: str, *, resource_type: str = "", types: Collection[str] = (), lifecycle: str = ""
) -> list[AssociationInfo]:
    """Return the associations of the resource with that id. One query."""
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
    """Return the associations of the resources with that name; `-` is any name or namespace. One query."""
    rows = _rows(registry, resource_type, types, lifecycle)
    if name != ANY:
        rows = rows.filter(resource_name=name)
    if namespace != ANY:
        rows = rows.filter(resource_namespace=namespace)
    return _infos(rows)


def newest_resource(associations: Iterable[AssociationInfo]) -> list[AssociationInfo]:
    """Return those of the resource that changed last: several resources may have had the same name over time."""
    rows = list(associations)
    if not rows:
        return []
    newest = max(rows, key=lambda row: (row.updated_at, row.created_at, row.resource.id or ""))
    return [row for row in rows if row.resource.id == newest.resource.id]


def associations_by_subject(
    registry: Registry, subjects: Collection[SubjectName], *, resource_type: str = "", types: Collection[str] = ()
) -> dict[SubjectName, list[AssociationInfo]]:
    """Return the associations of each subject, without subjects that have none; one query."""
    rows = _rows(registry, resource_type, types, "").filter(subject__name__in={name.subject for name in subjects})
    associations: dict[SubjectName, list[AssociationInfo]] = {}
    for info in _infos(rows):
        if info.subject in subjects:
            associations.setdefault(info.subject, []).append(info)
    return associations


def is_in_use(registry: Registry, subject: SubjectName) -> bool:
    """Return whether a resource uses the subject."""
    rows = Association.objects.filter(registry=registry)
    return rows.filter(subject__context__name=subject.context, subject__name=subject.subject).exists()


def is_owned(subject: str) -> Exists:
    """Return the condition that a resource owns the subject in that column."""
    return Exists(Association.objects.filter(subject=OuterRef(subject), lifecycle=STRONG))


def owned_subjects(subject_pks: Collection[int]) -> set[int]:
    """Return the primary keys of the subjects that a resource owns; one query."""
    return set(Association.objects.filter(subject__in=subject_pks, lifecycle=STRONG).values_list("subject", flat=True))


def info_of(row: Association) -> AssociationInfo:
    """Return a row as a value."""
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
class AssociationPlan:
    """A requested association with the stored one; if `is_there`, nothing has to be written."""

    spec: AssociationSpec
    subject: SubjectName
    stored: AssociationInfo | None
    is_there: bool = False

    @property
    def lifecycle(self) -> str:
        """The lifecycle that the association would have."""
        return self.spec.lifecycle or (self.stored.lifecycle if self.stored else "")


@dataclass(frozen=True)
class Request:
    """Associations that are requested together, for one resource."""

    registry: Registry
    resource: Resource
    by: Actor
    create: bool
    dry_run: bool

    def judge(self, specs: Sequence[AssociationSpec], context: str) -> tuple[AssociationPlan, ...]:
        """Return what has to be written.

        Raises InvalidAssociation, AssociationForResourceExists, AssociationForSubjectExists, StrongAssociationExists,
        AssociationFrozen, NoActiveVersion, ReferenceExists, OperationNotPermitted, ReleaseRequired, InvalidName,
        NotSignedIn, NotAllowed.
        """
        named = [self._with_full_subject(item, context) for item in specs]
        stored = self._stored([item.association_type for item in specs])
        plans = tuple(self._one(item, stored.get(item.association_type)) for item in named)
        self._refuse_mixed(plans)
        for item in plans:
            self._refuse_by_subject(item, plans)
        return plans

    def _with_full_subject(self, spec: AssociationSpec, context: str) -> AssociationSpec:
        """Resolve the subject's name in the context, and its alias."""
        if spec.subject is None:
            return spec
        subject = resolve_alias(self.registry, parse_subject(spec.subject, context=context))
        may_change(self.registry, subject, self.by)
        return replace(spec, subject=subject.qualified)

    def _stored(self, types: Sequence[str]) -> Mapping[str, AssociationInfo]:
        resource = self.resource
        if resource.id:
            associations = associations_of_id(self.registry, resource.id, resource_type=resource.type, types=types)
        elif self.create:
            associations = newest_resource(
                associations_of_name(
                    self.registry, resource.name, resource.namespace, resource_type=resource.type, types=types
                )
            )
        else:
            associations = []
        return {item.association_type: item for item in associations}

    def _one(self, spec: AssociationSpec, stored: AssociationInfo | None) -> AssociationPlan:
        if stored is None and not self.create:
            spec = with_defaults(spec, create=False)
        is_named = spec.subject is not None
        spec = self._with_subject(spec, stored)
        subject = parse_subject(spec.subject or "")
        if not is_named:
            require(self.by, CHANGE, registry=self.registry.name, subject=subject.qualified)
            change_guard.ask(CHANGE, self.registry, subject.qualified, self.by)
        plan = AssociationPlan(spec, subject, stored)
        if not plan.lifecycle:
            raise InvalidAssociation("lifecycle", "lifecycle must be set")
        if plan.lifecycle == WEAK:
            if spec.schema is not None:
                raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
            refuse_default_subject(self.resource, replace(spec, lifecycle=WEAK))
        is_frozen = stored.is_frozen if stored else bool(spec.frozen)
        refuse_other_frozen(plan.lifecycle, is_frozen if spec.frozen is None else spec.frozen)
        refuse_other_subject(self.resource, spec, frozen=is_frozen)
        if stored is None:
            self._refuse_new(plan)
            return plan
        return self._refuse_change(plan, stored)

    def _with_subject(self, spec: AssociationSpec, stored: AssociationInfo | None) -> AssociationSpec:
        if spec.subject is not None:
            return spec
        if stored is not None:
            return replace(spec, subject=stored.subject.qualified)
        if spec.lifecycle == STRONG:
            return replace(spec, subject=self.resource.default_subject(spec.association_type))
        raise InvalidAssociation("subject", "must be provided for WEAK associations")

    def _refuse_new(self, plan: AssociationPlan) -> None:
        """Refuse to own a subject unless both are created together; IMPORT mode replicates everything as it is."""
        if plan.lifecycle != STRONG or self._imports(plan.subject):
            return
        if not self.create:
            raise InvalidAssociation(
                "lifecycle",
                "cannot be STRONG when creating an association; STRONG associations must be created with the topic",
            )
        if plan.spec.schema is None:
            raise InvalidAssociation("schema", "schema must be provided when creating a frozen association")
        latest = versions_of(self.registry, plan.subject).first()
        if latest is not None and (latest.version != 1 or not self._has_schema(plan)):
            raise InvalidAssociation(
                "frozen", "cannot create a frozen association when schemas already exist in the subject"
            )

    def _refuse_change(self, plan: AssociationPlan, stored: AssociationInfo) -> AssociationPlan:
        """Return the plan, with `is_there` if nothing has to be written; hardly anything else can be changed."""
        spec = plan.spec
        same = plan.subject == stored.subject and plan.lifecycle == stored.lifecycle
        if same and spec.frozen in (None, stored.is_frozen):
            if self.create and spec.schema is not None and not self._has_schema(plan):
                raise AssociationForResourceExists(stored.association_type, stored.resource.name)
            return replace(plan, is_there=True)
        if self.create:
            raise AssociationForResourceExists(stored.association_type, stored.resource.name)
        if spec.lifecycle is None and spec.schema is None:
            raise InvalidAssociation("lifecycle", "at least lifecycle or schema must be provided for update")
        if plan.subject != stored.subject:
            raise InvalidAssociation(
                "subject",
                f"subject of association cannot be changed from '{stored.subject.qualified}'"
                f" to '{plan.subject.qualified}'",
            )
        default = self.resource.default_subject(stored.association_type)
        if stored.lifecycle == STRONG and spec.lifecycle == WEAK and stored.subject.qualified == default:
            raise InvalidAssociation(
                "lifecycle", f"cannot change to WEAK when subject matches default format '{default}'"
            )
        if spec.frozen is not None and spec.frozen != stored.is_frozen:
            raise InvalidAssociation("frozen", "frozen attribute of association cannot be changed")
        raise AssociationFrozen(stored.association_type, stored.subject.qualified)

    def _refuse_mixed(self, plans: Sequence[AssociationPlan]) -> None:
        """Refuse different lifecycles: a resource owns all of its subjects or none."""
        resource = self.resource
        if resource.id:
            associations = associations_of_id(self.registry, resource.id, resource_type=resource.type)
        else:
            associations = newest_resource(
                associations_of_name(self.registry, resource.name, resource.namespace, resource_type=resource.type)
            )
        lifecycles = {item.association_type: item.lifecycle for item in associations}
        lifecycles |= {item.spec.association_type: item.lifecycle for item in plans}
        if len(set(lifecycles.values())) > 1:
            detail = ", ".join(f"{kind}={lifecycle}" for kind, lifecycle in lifecycles.items())
            raise InvalidAssociation(
                "lifecycle", f"all associations for a resource must have the same lifecycle, but got {detail}"
            )

    def _refuse_by_subject(self, plan: AssociationPlan, together: Sequence[AssociationPlan]) -> None:
        name = plan.subject.qualified
        if plan.spec.schema is not None and self._imports(plan.subject):
            raise InvalidAssociation("schema", f"cannot be provided while subject '{name}' is in IMPORT mode")
        if plan.spec.schema is None and not versions_of(self.registry, plan.subject).exists():
            raise NoActiveVersion(name)
        others = [item for item in associations_of_subject(self.registry, plan.subject) if not _is(item, plan.stored)]
        if plan.lifecycle == STRONG:
            if others:
                raise AssociationForSubjectExists(name)
            if self._is_referenced(plan.subject) or _refer_to(plan.subject, together):
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

    def _has_schema(self, plan: AssociationPlan) -> bool:
        """Return whether the subject has the request's schema."""
        schema = plan.spec.schema
        assert schema is not None
        return is_registered(
            self.registry,
            plan.subject,
            text=schema.text,
            schema_type=schema.schema_type,
            references=schema.references,
            metadata=schema.metadata,
            rule_set=schema.rule_set,
            tags=(schema.tags_to_add, schema.tags_to_remove),
            normalize=plan.spec.normalize or None,
        )


def may_change(registry: Registry, subject: SubjectName, by: Actor) -> None:
    """Raise NotSignedIn, NotAllowed, ReleaseRequired or OperationNotPermitted unless the associations may change."""
    require(by, CHANGE, registry=registry.name, subject=subject.qualified)
    passes = change_guard.ask(CHANGE, registry, subject.qualified, by)
    mode = effective_mode(registry, subject).mode
    if change_guard.stops(mode, passes=passes):
        raise OperationNotPermitted(
            f"Subject {subject.subject} in context {subject.context} is in read-only mode", mode=mode
        )


def _is(info: AssociationInfo, stored: AssociationInfo | None) -> bool:
    return stored is not None and info.guid == stored.guid


def _refer_to(subject: SubjectName, together: Sequence[AssociationPlan]) -> bool:
    """Return whether a schema of the same request, which isn't registered yet, refers to the subject."""
    return any(
        parse_subject(reference.subject, context=item.subject.context) == subject
        for item in together
        if item.spec.schema is not None
        for reference in item.spec.schema.references
    )
