"""Confluent's registry API: which resources (topics) use which subjects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.confluent.answers import associated_answer, association_answer
from registry.api.confluent.association_requests import (
    CREATE,
    DELETE,
    Filter,
    context_of,
    dry_run,
    filters,
    read_associations,
    read_batch,
    read_operations,
    read_resource,
)
from registry.api.confluent.base import ConfluentView
from registry.api.confluent.errors import code_of, describe
from registry.api.confluent.requests import flag, object_body, page
from registry.errors import InvalidSchema, SchemadeskError, SubjectNotFound, VersionNotFound
from registry.subjects.association_errors import InvalidAssociation
from registry.subjects.associations import TOPIC, Resource, check_resource
from registry.subjects.selectors.associations import (
    AssociationInfo,
    associations_of_id,
    associations_of_name,
    associations_of_subject,
)
from registry.subjects.selectors.versions import VersionInfo, get_version
from registry.subjects.selectors.visible import require_visible
from registry.subjects.services.associations import associate, dissociate

MULTI_STATUS = 207
INVALID_IN_BATCH = 42212


class Associations(ConfluentView):
    """`/associations`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Associate a resource that is made now."""
        body = object_body(request)
        done = associate(
            registry=self.registry.name,
            resource=read_resource(body),
            asked=read_associations(body),
            by=self.actor,
            context=context_of(request, self.context),
            create=True,
            dry_run=dry_run(request),
        )
        return Response(associated_answer(done.resource, done.associations, done.versions))

    def put(self, request: Request, **address: Any) -> Response:
        """Add associations to a resource that is there; the body alone says which one."""
        return put(self, request, None)


class AssociationsOfId(ConfluentView):
    """`/associations/resources/{id}`."""

    def authorize(self) -> None:
        """Reading is also for who may read some subjects alone: of these it answers."""
        if self.request.method in ("GET", "HEAD"):
            require_visible(self.registry, self.actor)
        else:
            super().authorize()

    def get(self, request: Request, resource_id: str, **address: Any) -> Response:
        """What the resource of that id uses."""
        wanted = filters(request)
        found = associations_of_id(self.registry, resource_id, **vars(wanted))
        return listed(request, visible(self, found))

    def put(self, request: Request, resource_id: str, **address: Any) -> Response:
        """Add associations to a resource that is there."""
        return put(self, request, resource_id)

    def delete(self, request: Request, resource_id: str, **address: Any) -> Response:
        """Take associations back; with `cascadeLifecycle` along with what the resource owns."""
        wanted = filters(request)
        dissociate(
            registry=self.registry.name,
            resource_id=resource_id,
            by=self.actor,
            resource_type=wanted.resource_type,
            types=wanted.types,
            cascade=flag(request, "cascadeLifecycle"),
            dry_run=dry_run(request),
        )
        return Response(status=204)


class AssociationsOfName(ConfluentView):
    """`/associations/resources/{namespace}/{name}`, which serializers ask for the subject of a topic."""

    reads_parts = True

    def get(self, request: Request, namespace: str, name: str, **address: Any) -> Response:
        """What the resources of that name use; `-` is any namespace, or any name."""
        wanted = filters(request)
        return listed(request, visible(self, associations_of_name(self.registry, name, namespace, **vars(wanted))))


class AssociationsOfSubject(ConfluentView):
    """`/associations/subjects/{subject}`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Who uses the subject."""
        wanted = filters(request)
        return listed(request, associations_of_subject(self.registry, self.named_subject, **vars(wanted)))


class BatchOfChanges(ConfluentView):
    """`/associations:batchMutate`, at first called `/associations:batch`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Each request of the batch done or undone as a whole, with its own answer."""
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
                self._take_back(resource, step.asked[0].association_type, cascade=step.cascade, dry=dry)
                continue
            done = associate(
                registry=self.registry.name,
                resource=resource,
                asked=step.asked,
                by=self.actor,
                context=context,
                create=step.kind == CREATE,
                dry_run=dry,
            )
            versions |= done.versions
        found = [] if dry else associations_of_id(self.registry, resource.id or "", resource_type=resource.type)
        return associated_answer(resource, found, versions)

    def _take_back(self, resource: Resource, association_type: str, *, cascade: bool, dry: bool) -> None:
        """One that isn't there needn't be taken back."""
        known = associations_of_id(self.registry, resource.id or "", types=(association_type,))
        if known:
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
        """What many resources use; with `includeSchemas` along with the latest versions."""
        with_schemas = flag(request, "includeSchemas")
        requests = read_batch(object_body(request))
        results = [_result(partial(self._look_up, item, with_schemas)) for item in requests]
        return Response({"results": results}, status=MULTI_STATUS)

    def _look_up(self, body: dict[str, Any], with_schemas: bool) -> dict[str, Any]:
        resource, wanted = read_resource(body), _filter_of(body)
        if resource.id:
            found = associations_of_id(self.registry, resource.id, **vars(wanted))
        else:
            found = associations_of_name(self.registry, resource.name, resource.namespace or "-", **vars(wanted))
        found = visible(self, found)
        first = found[0].resource if found else resource
        versions = self._latest(found) if with_schemas else {}
        named = Resource(
            resource.name or first.name,
            resource.namespace or first.namespace,
            resource.id or first.id,
            first.type or TOPIC,
        )
        return associated_answer(named, found, versions)

    def _latest(self, found: list[AssociationInfo]) -> dict[str, VersionInfo]:
        versions = {}
        for item in found:
            try:
                versions[item.association_type] = get_version(self.registry, item.subject, "latest")
            except (SubjectNotFound, VersionNotFound):
                continue  # deleted since
        return versions


def put(view: ConfluentView, request: Request, resource_id: str | None) -> Response:
    """Add associations to a resource that is there."""
    body = object_body(request)
    done = associate(
        registry=view.registry.name,
        resource=read_resource(body, resource_id),
        asked=read_associations(body),
        by=view.actor,
        context=context_of(request, view.context),
        create=False,
        dry_run=dry_run(request),
    )
    return Response(associated_answer(done.resource, done.associations, done.versions))


def visible(view: ConfluentView, found: list[AssociationInfo]) -> list[AssociationInfo]:
    """Those whose subject the caller may read."""
    return [item for item in found if view.visible.has_subject(item.subject)]


def listed(request: Request, found: list[AssociationInfo]) -> Response:
    """A page of associations."""
    return Response(page(request, [association_answer(item) for item in found]))


def _filter_of(body: dict[str, Any]) -> Filter:
    types = body.get("associationTypes") or []
    return Filter(str(body.get("resourceType") or TOPIC), tuple(map(str, types)), str(body.get("lifecycle") or ""))


def _result(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What one request of a batch came to: its answer, or its error."""
    try:
        return {"result": call()}
    except SchemadeskError as error:
        code = INVALID_IN_BATCH if isinstance(error, InvalidSchema) else code_of(error) or 500
        return {"error": {"error_code": code, "message": describe(error)}}
