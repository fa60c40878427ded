"""Confluent's registry API: which resources (topics) use which subjects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction

from registry.api.confluent.base import ConfluentView
from registry.api.confluent.http import Request, Response, code_of, describe
from registry.api.confluent.serializers import (
    associated_answer,
    association_answer,
    flag,
    object_body,
    page,
    read_schema_body,
    typed,
)
from registry.errors import InvalidInput, InvalidSchema, SchemadeskError, SubjectNotFound, VersionNotFound
from registry.subjects.associations.requests import (
    LIFECYCLES,
    TOPIC,
    AssociationSpec,
    InvalidAssociation,
    Resource,
    SchemaSpec,
    check_resource,
    check_type,
)
from registry.subjects.associations.rules import (
    AssociationInfo,
    associations_of_id,
    associations_of_name,
    associations_of_subject,
)
from registry.subjects.associations.services import associate, dissociate
from registry.subjects.permissions import require_visible
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, check_context
from registry.subjects.versions.versions import VersionInfo

#: the most requests of one batch
MAX_BATCH = 1000
CREATE, UPSERT, DELETE = "CREATE", "UPSERT", "DELETE"
#: a value of `lifecycle` in a schema search: subjects without an association
NONE = "NONE"


@dataclass(frozen=True)
class Filter:
    """The associations that a call is about; empty parts match all."""

    resource_type: str
    types: tuple[str, ...]
    lifecycle: str = ""


@dataclass(frozen=True)
class Operation:
    """A step of a batch: associations to add together, or (`DELETE`) one type to remove."""

    kind: str
    associations: tuple[AssociationSpec, ...]
    cascade: bool = False


def filters(request: Request) -> Filter:
    """Return the parameters `resourceType`, `associationType` and `lifecycle`. Raises InvalidInput."""
    parameters = request.query_params
    lifecycle = parameters.get("lifecycle", "")
    if lifecycle and lifecycle not in LIFECYCLES:
        raise InvalidInput(f"The parameter lifecycle is {lifecycle[:40]!r}; it must be {' or '.join(LIFECYCLES)}.")
    types = tuple(text for text in parameters.getlist("associationType") if text)
    return Filter(parameters.get("resourceType") or TOPIC, types, lifecycle)


def search_filters(request: Request) -> tuple[Filter, frozenset[str]] | None:
    """Return the filter of a schema search, with several lifecycles, also NONE; None if there are no parameters."""
    parameters = request.query_params
    lifecycles = frozenset(text for text in parameters.getlist("lifecycle") if text)
    unknown = sorted(lifecycles - {*LIFECYCLES, NONE})
    if unknown:
        raise InvalidInput(f"The parameter lifecycle is {unknown[0][:40]!r}; it must be STRONG, WEAK or NONE.")
    types = tuple(text for text in parameters.getlist("associationType") if text)
    if not (lifecycles or types or "resourceType" in parameters):
        return None
    return Filter(parameters.get("resourceType", ""), types), lifecycles


def context_of(request: Request, address: str) -> str:
    """Return the context of subjects without one: the parameter's, else the URL's. Raises InvalidName."""
    text = request.query_params.get("context", "")
    return check_context(text) if text and address == DEFAULT_CONTEXT else address


def dry_run(request: Request) -> bool:
    """Return the parameter `dryRun`. Raises InvalidInput."""
    return flag(request, "dryRun")


def read_resource(body: dict[str, Any], resource_id: str | None = None) -> Resource:
    """Return the resource in a body; its id must match that of the URL. Raises InvalidInput, InvalidAssociation."""
    name, namespace, kind = (
        typed(body, part, str, "") for part in ("resourceName", "resourceNamespace", "resourceType")
    )
    own = typed(body, "resourceId", str, None)
    if own is not None and resource_id is not None and own != resource_id:
        raise InvalidAssociation(
            "resourceId", "Resource ID in the path parameter does not match the resource ID in the request body"
        )
    return Resource(name, namespace, resource_id if own is None else own, kind)


def read_associations(body: dict[str, Any]) -> tuple[AssociationSpec, ...]:
    """Return the associations in a body. Raises InvalidInput, InvalidRuleSet."""
    items = typed(body, "associations", list, [])
    return tuple(_association(item, f"associations/{position}/") for position, item in enumerate(items))


def read_operations(body: dict[str, Any]) -> tuple[Operation, ...]:
    """Return a batch request's steps, grouping neighbours of one kind. Raises InvalidInput, InvalidAssociation."""
    operations: list[Operation] = []
    for position, item in enumerate(typed(body, "associations", list, [])):
        where = f"associations/{position}/"
        if not isinstance(item, dict):
            raise InvalidInput(f"/{where.rstrip('/')} must be an object.")
        kind = typed(item, "opType", str, "", where)
        if kind not in (CREATE, UPSERT, DELETE):
            raise InvalidInput(f"/{where}opType is {kind[:40]!r}; it must be CREATE, UPSERT or DELETE.")
        if kind == DELETE:
            cascade = typed(item, "cascadeLifecycle", bool, False, where)
            association = AssociationSpec(check_type(typed(item, "associationType", str, "", where)))
            operations.append(Operation(DELETE, (association,), cascade=cascade))
            continue
        association = _association(item, where)
        if operations and operations[-1].kind == kind:
            operations[-1] = Operation(kind, (*operations[-1].associations, association))
        else:
            operations.append(Operation(kind, (association,)))
    _refuse_twice([item.association_type or "value" for step in operations for item in step.associations])
    return tuple(operations)


def read_batch(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the requests of a batch. Raises InvalidAssociation, InvalidInput."""
    requests: list[dict[str, Any]] = typed(body, "requests", list, [])
    if not requests:
        raise InvalidAssociation("requests", "cannot be null or empty")
    if len(requests) > MAX_BATCH:
        raise InvalidAssociation("requests", f"has {len(requests)} items; at most {MAX_BATCH} are allowed")
    for position, item in enumerate(requests):
        if not isinstance(item, dict):
            raise InvalidInput(f"/requests/{position} must be an object.")
    return requests


def _refuse_twice(types: list[str]) -> None:
    twice = next((kind for kind in types if types.count(kind) > 1), None)
    if twice is not None:
        raise InvalidAssociation(
            "associationType", f"may only appear once per request, but '{twice}' appears more than once"
        )


def _association(item: Any, where: str) -> AssociationSpec:
    if not isinstance(item, dict):
        raise InvalidInput(f"/{where.rstrip('/')} must be an object.")
    lifecycle = typed(item, "lifecycle", str, None, where)
    if lifecycle is not None and lifecycle not in LIFECYCLES:
        raise InvalidInput(f"/{where}lifecycle is {lifecycle[:40]!r}; it must be {' or '.join(LIFECYCLES)}.")
    return AssociationSpec(
        association_type=typed(item, "associationType", str, "", where),
        subject=typed(item, "subject", str, None, where),
        lifecycle=lifecycle,
        frozen=typed(item, "frozen", bool, None, where),
        schema=_schema(typed(item, "schema", dict, None, where)),
        normalize=typed(item, "normalize", bool, False, where),
    )


def _schema(body: dict[str, Any] | None) -> SchemaSpec | None:
    if body is None:
        return None
    read = read_schema_body(body)
    return SchemaSpec(
        text=read.text,
        schema_type=read.schema_type,
        references=read.references,
        metadata=read.metadata,
        rule_set=read.rule_set,
        version=read.version,
        schema_id=read.schema_id,
        tags_to_add=read.tags_to_add,
        tags_to_remove=read.tags_to_remove,
        propagate_tags=read.propagate_tags,
    )


MULTI_STATUS = 207
INVALID_IN_BATCH = 42212


class Associations(ConfluentView):
    """`/associations`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Associate a resource that is being created."""
        body = object_body(request)
        done = associate(
            registry=self.registry.name,
            resource=read_resource(body),
            specs=read_associations(body),
            by=self.actor,
            context=context_of(request, self.context),
            create=True,
            dry_run=dry_run(request),
        )
        return Response(associated_answer(done.resource, done.associations, done.versions))

    def put(self, request: Request, **address: Any) -> Response:
        """Add associations to an existing resource, which only the body names."""
        return put(self, request, None)


class AssociationsOfId(ConfluentView):
    """`/associations/resources/{id}`."""

    def authorize(self) -> None:
        """Allow reading to callers who can read only some subjects: they get the associations of these."""
        if self.request.method in ("GET", "HEAD"):
            require_visible(self.registry, self.actor)
        else:
            super().authorize()

    def get(self, request: Request, resource_id: str, **address: Any) -> Response:
        """Return the associations of the resource with that id."""
        criteria = filters(request)
        associations = associations_of_id(self.registry, resource_id, **vars(criteria))
        return listed(request, visible(self, associations))

    def put(self, request: Request, resource_id: str, **address: Any) -> Response:
        """Add associations to an existing resource."""
        return put(self, request, resource_id)

    def delete(self, request: Request, resource_id: str, **address: Any) -> Response:
        """Remove associations; with `cascadeLifecycle` also the subjects that the resource owns."""
        criteria = filters(request)
        dissociate(
            registry=self.registry.name,
            resource_id=resource_id,
            by=self.actor,
            resource_type=criteria.resource_type,
            types=criteria.types,
            cascade=flag(request, "cascadeLifecycle"),
            dry_run=dry_run(request),
        )
        return Response(status=204)


class AssociationsOfName(ConfluentView):
    """`/associations/resources/{namespace}/{name}`, where serializers look up a topic's subject."""

    reads_parts = True

    def get(self, request: Request, namespace: str, name: str, **address: Any) -> Response:
        """Return the associations of the resources with that name; `-` is any namespace, or any name."""
        criteria = filters(request)
        return listed(request, visible(self, associations_of_name(self.registry, name, namespace, **vars(criteria))))


class AssociationsOfSubject(ConfluentView):
    """`/associations/subjects/{subject}`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the associations of the subject."""
        criteria = filters(request)
        return listed(request, associations_of_subject(self.registry, self.named_subject, **vars(criteria)))


class BatchOfChanges(ConfluentView):
    """`/associations:batchMutate`, originally `/associations:batch`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Do each request of the batch completely or not at all, and answer each separately."""
        context, dry = context_of(request, self.context), dry_run(request)
        requests = read_batch(object_body(request))
        results = [_result(partial(self._change, item, context, dry)) for item in requests]
        return Response({"results": results}, status=MULTI_STATUS)

    @transaction.atomic
    def _change(self, body: dict[str, Any], context: str, dry: bool) -> dict[str, Any]:
        resource = check_resource(read_resource(body), dry_run=dry)
        steps, versions = read_operations(body), dict[str, VersionInfo]()
        if not steps:
            raise InvalidAssociation("associations", "cannot be null or empty")
        for step in steps:
            if step.kind == DELETE:
                self._take_back(resource, step.associations[0].association_type, cascade=step.cascade, dry=dry)
                continue
            done = associate(
                registry=self.registry.name,
                resource=resource,
                specs=step.associations,
                by=self.actor,
                context=context,
                create=step.kind == CREATE,
                dry_run=dry,
            )
            versions |= done.versions
        associations = [] if dry else associations_of_id(self.registry, resource.id or "", resource_type=resource.type)
        return associated_answer(resource, associations, versions)

    def _take_back(self, resource: Resource, association_type: str, *, cascade: bool, dry: bool) -> None:
        """Remove an association; does nothing if it doesn't exist."""
        existing = associations_of_id(self.registry, resource.id or "", types=(association_type,))
        if existing:
            dissociate(
                registry=self.registry.name,
                resource_id=resource.id or "",
                by=self.actor,
                resource_type=resource.type,
                types=(association_type,),
                cascade=cascade,
                dry_run=dry,
            )


class BatchOfLookUps(ConfluentView):
    """`/associations:batchGet`."""

    reads_parts = True

    def post(self, request: Request, **address: Any) -> Response:
        """Return the associations of many resources; with `includeSchemas` also the latest versions."""
        with_schemas = flag(request, "includeSchemas")
        requests = read_batch(object_body(request))
        results = [_result(partial(self._look_up, item, with_schemas)) for item in requests]
        return Response({"results": results}, status=MULTI_STATUS)

    def _look_up(self, body: dict[str, Any], with_schemas: bool) -> dict[str, Any]:
        resource, criteria = read_resource(body), _filter_of(body)
        if resource.id:
            associations = associations_of_id(self.registry, resource.id, **vars(criteria))
        else:
            associations = associations_of_name(
                self.registry, resource.name, resource.namespace or "-", **vars(criteria)
            )
        associations = visible(self, associations)
        first = associations[0].resource if associations else resource
        versions = self._latest(associations) if with_schemas else {}
        named = Resource(
            resource.name or first.name,
            resource.namespace or first.namespace,
            resource.id or first.id,
            first.type or TOPIC,
        )
        return associated_answer(named, associations, versions)

    def _latest(self, associations: list[AssociationInfo]) -> dict[str, VersionInfo]:
        versions = {}
        for item in associations:
            try:
                versions[item.association_type] = get_version(self.registry, item.subject, "latest")
            except (SubjectNotFound, VersionNotFound):
                continue  # deleted meanwhile
        return versions


def put(view: ConfluentView, request: Request, resource_id: str | None) -> Response:
    """Add associations to an existing resource."""
    body = object_body(request)
    done = associate(
        registry=view.registry.name,
        resource=read_resource(body, resource_id),
        specs=read_associations(body),
        by=view.actor,
        context=context_of(request, view.context),
        create=False,
        dry_run=dry_run(request),
    )
    return Response(associated_answer(done.resource, done.associations, done.versions))


def visible(view: ConfluentView, associations: list[AssociationInfo]) -> list[AssociationInfo]:
    """Return the associations whose subject the caller may read."""
    return [item for item in associations if view.visible.has_subject(item.subject)]


def listed(request: Request, associations: list[AssociationInfo]) -> Response:
    """Return a page of associations."""
    return Response(page(request, [association_answer(item) for item in associations]))


def _filter_of(body: dict[str, Any]) -> Filter:
    types = body.get("associationTypes") or []
    return Filter(str(body.get("resourceType") or TOPIC), tuple(map(str, types)), str(body.get("lifecycle") or ""))


def _result(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of one request of a batch: its answer, or its error."""
    try:
        return {"result": call()}
    except SchemadeskError as error:
        code = INVALID_IN_BATCH if isinstance(error, InvalidSchema) else code_of(error) or 500
        return {"error": {"error_code": code, "message": describe(error)}}
