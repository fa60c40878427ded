"""Creating and removing associations between resources and subjects."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from registry.access.roles import Actor
from registry.audit.context import record, recorded
from registry.subjects.associations.requests import (
    STRONG,
    AssociationFrozen,
    AssociationNotFound,
    AssociationSpec,
    Resource,
    SchemaSpec,
    check_resource,
    check_specs,
)
from registry.subjects.associations.rules import (
    IMPORT,
    AssociationInfo,
    AssociationPlan,
    Request,
    associations_of_id,
    info_of,
    may_change,
)
from registry.subjects.lifecycle.deletion import remove_subject
from registry.subjects.models import Association, Registry
from registry.subjects.policy.effective_policy import effective_mode
from registry.subjects.registration.locks import lock_policy, retried
from registry.subjects.registration.registration import register_version
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT
from registry.subjects.versions.versions import VersionInfo


@dataclass(frozen=True)
class Associated:
    """The associations that were written, and the registered versions by type; empty for a dry run."""

    resource: Resource
    associations: tuple[AssociationInfo, ...]
    versions: Mapping[str, VersionInfo]


class _Undo(Exception):
    """Rolls back a dry run."""


@retried
def associate(
    *,
    registry: str,
    resource: Resource,
    specs: Sequence[AssociationSpec],
    by: Actor,
    context: str = DEFAULT_CONTEXT,
    create: bool,
    dry_run: bool = False,
) -> Associated:
    """Associate a resource with subjects, all of them or none; schemas in the request are registered.

    `create` means that the resource is being created: only then can it own subjects (STRONG). Otherwise only WEAK
    associations are added. An existing equal association stays. A dry run does everything and rolls it back. Raises
    NotSignedIn, NotAllowed, InvalidAssociation, AssociationForResourceExists, AssociationForSubjectExists,
    StrongAssociationExists, AssociationFrozen, NoActiveVersion, ReferenceExists, and the errors of `register_version`.
    """
    checked = check_resource(resource, dry_run=dry_run)
    wishes = check_specs(specs, checked, create=create)
    registry_row = get_registry(registry)
    done: list[Associated] = []
    try:
        with transaction.atomic():
            record(by=by, why=f"associate {checked.type} {checked.name} of {checked.namespace} in {registry_row.name}")
            lock_policy(registry_row, exclusive=True)
            request = Request(registry_row, checked, by, create, dry_run)
            done.append(_write(registry, request, request.judge(wishes, context), by))
            if dry_run:
                raise _Undo
    except _Undo:
        return Associated(checked, (), {})
    return done[0]


@retried
def dissociate(
    *,
    registry: str,
    resource_id: str,
    by: Actor,
    resource_type: str,
    types: Collection[str] = (),
    cascade: bool = False,
    dry_run: bool = False,
) -> int:
    """Remove a resource's associations of these types, or all of them, and return how many.

    `cascade` is for a deleted resource: the subjects that it owned are deleted permanently with it. Without it no
    STRONG association can be removed. Raises NotSignedIn, NotAllowed, AssociationNotFound, AssociationFrozen,
    OperationNotPermitted, ReferenceExists; then nothing has changed.
    """
    registry_row = get_registry(registry)
    associations = associations_of_id(registry_row, resource_id, resource_type=resource_type, types=types)
    if not associations:
        raise AssociationNotFound(resource_id)
    record(by=by, why=f"dissociate {resource_type} {resource_id}{', with what it owns' if cascade else ''}")
    lock_policy(registry_row, exclusive=True)
    associations = associations_of_id(registry_row, resource_id, resource_type=resource_type, types=types)
    for item in associations:
        _refuse_removal(registry_row, item, by, cascade=cascade)
    if dry_run:
        return len(associations)
    for item in associations:
        Association.objects.filter(registry=registry_row, guid=item.guid).delete()
        owned = item.lifecycle == STRONG and effective_mode(registry_row, item.subject).mode != IMPORT
        if cascade and owned:
            remove_subject(registry=registry, subject=item.subject, by=by)
    return len(associations)


def _write(registry: str, request: Request, plans: Sequence[AssociationPlan], by: Actor) -> Associated:
    registry_row, resource = request.registry, request.resource
    versions: dict[str, VersionInfo] = {}
    why = recorded()
    for item in plans:
        if item.spec.schema is not None:
            versions[item.spec.association_type] = _register(registry, registry_row, item, item.spec.schema, by)
    record(by=by, why=why)  # the audit reason is no longer that of a registration
    new = [item for item in plans if not item.is_there]
    if request.dry_run:
        return Associated(resource, (), {})
    return Associated(resource, tuple(_create(registry_row, resource, item) for item in new), versions)


def _register(
    registry: str, registry_row: Registry, item: AssociationPlan, schema: SchemaSpec, by: Actor
) -> VersionInfo:
    done = register_version(
        registry=registry,
        subject=item.subject,
        text=schema.text,
        by=by,
        schema_type=schema.schema_type,
        references=schema.references,
        normalize=item.spec.normalize or None,
        metadata=schema.metadata,
        rule_set=schema.rule_set,
        schema_id=schema.schema_id,
        version=schema.version,
        tags_to_add=schema.tags_to_add,
        tags_to_remove=schema.tags_to_remove,
        propagate_tags=schema.propagate_tags,
    )
    return get_version(registry_row, item.subject, done.version)


def _create(registry: Registry, resource: Resource, item: AssociationPlan) -> AssociationInfo:
    """Create the row; a resource that was created again with its old name replaces the earlier one."""
    subject = get_subject(registry, item.subject)
    named = {
        "registry": registry,
        "resource_namespace": resource.namespace,
        "resource_name": resource.name,
        "resource_type": resource.type,
        "association_type": item.spec.association_type,
        "subject": subject,
    }
    Association.objects.filter(**named).delete()
    row = Association.objects.create(
        **named, guid=uuid.uuid4(), resource_id=resource.id or "", lifecycle=item.lifecycle
    )
    return info_of(row)


def _refuse_removal(registry: Registry, item: AssociationInfo, by: Actor, *, cascade: bool) -> None:
    may_change(registry, item.subject, by)
    if item.is_frozen and not cascade:
        raise AssociationFrozen(item.association_type, item.subject.qualified)
