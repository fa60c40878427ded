"""The product's own API: registries, mirrors, exports, imports and archived copies."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any, Final

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, may_somewhere, require
from registry.api.product.base import ProductView, WholeNumberField
from registry.api.product.description import FILE, body_of, many, shape
from registry.errors import RegistryNotFound
from registry.subjects.archive.archive import MOST, RIGHTS, CopyInfo, deleted_copies, forget, require_any
from registry.subjects.archive.restore import apply_copy, plan_copy, send_file, write_copy
from registry.subjects.import_export.export_file import MAX_SENT, MEDIA_TYPE
from registry.subjects.import_export.import_plan import Line, Plan, RestoreOptions
from registry.subjects.import_export.registry_import import spooled_export
from registry.subjects.import_export.snapshot import Problem
from registry.subjects.models import ArchivedCopy
from registry.subjects.policy.registries import RegistryEntry, registries_for
from registry.subjects.remote import mirrors
from registry.subjects.remote.connection_test import Probe
from registry.subjects.tasks import sync_remote
from registry.subjects.versions.lookup import get_registry

PROBE: Final = shape("ConnectionTest", Probe, "ok")
_LINE: Final = shape("PlannedVersion", Line, subject=str)
PLAN: Final = shape("ImportPlan", digest=str, versions=many(_LINE), besides=many(str), problems=many(Problem))


class AddressSerializer(serializers.Serializer[Any]):
    """How to connect to a registry. `secret` is the name of the secret with the password, never the password itself."""

    url = serializers.CharField(max_length=2048)
    user = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    secret = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)


class MirrorSerializer(AddressSerializer):
    """How to mirror a remote registry."""

    every_seconds = WholeNumberField(required=False, default=mirrors.EVERY_SECONDS)


class NewMirrorSerializer(MirrorSerializer):
    """The remote registry, and its name here."""

    name = serializers.CharField(max_length=255)


class Registries(ProductView):
    """`/api/v1/registries`."""

    @extend_schema(responses=many(RegistryEntry))
    def get(self, request: Request) -> Response:
        """List the registries with their numbers of subjects and versions; mirrors with their last sync and its error."""
        if not may_somewhere(self.actor, "schema.read"):
            require(self.actor, "schema.read")
        return Response([asdict(entry) for entry in registries_for(self.actor)])

    @extend_schema(request=NewMirrorSerializer, responses={201: RegistryEntry})
    def post(self, request: Request) -> Response:
        """Add a mirror of a remote registry and queue its first sync."""
        values = self.valid(NewMirrorSerializer)
        sync_remote.delay_on_commit(mirrors.add_remote_registry(by=self.actor, **values))
        return Response(asdict(_entry(self.actor, values["name"])), status=201)


class RegistryOne(ProductView):
    """`/api/v1/registries/{registry}`."""

    @extend_schema(responses=RegistryEntry)
    def get(self, request: Request, registry: str) -> Response:
        """Get a registry."""
        require_extent(self.actor, "schema.read", registry=registry)
        return Response(asdict(_entry(self.actor, registry)))

    @extend_schema(request=MirrorSerializer, responses=RegistryEntry)
    def put(self, request: Request, registry: str) -> Response:
        """Change how a mirror connects, from its next sync on."""
        require(self.actor, "registry.manage", registry=registry)
        mirrors.update_remote_registry(name=registry, by=self.actor, **self.valid(MirrorSerializer))
        return Response(asdict(_entry(self.actor, registry)))

    def delete(self, request: Request, registry: str) -> Response:
        """Remove a mirror with all mirrored data. The remote registry isn't changed."""
        mirrors.remove_remote_registry(name=registry, by=self.actor)
        return Response(status=204)


class RegistryRefresh(ProductView):
    """`/api/v1/registries/{registry}/refresh`."""

    @extend_schema(responses={202: shape("RefreshQueued", queued=bool)})
    def post(self, request: Request, registry: str) -> Response:
        """Queue a sync of a mirror. `queued` is false if one was queued already."""
        number = mirrors.request_sync(name=registry, by=self.actor)
        if number is not None:
            sync_remote.delay_on_commit(number)
        return Response({"queued": number is not None}, status=202)


class RegistryTest(ProductView):
    """`/api/v1/registries/{registry}/test`."""

    @extend_schema(responses=PROBE)
    def post(self, request: Request, registry: str) -> Response:
        """Test the connection of a mirror without changing anything."""
        row = mirrors.get_mirror(registry, self.actor, "registry.manage")
        return Response(
            body_of(PROBE, mirrors.try_registry(url=row.url, user=row.user, secret=row.secret, by=self.actor))
        )


class AddressTest(ProductView):
    """`/api/v1/registry-tests`."""

    @extend_schema(request=AddressSerializer, responses=PROBE)
    def post(self, request: Request) -> Response:
        """Test the connection to an address before adding a mirror. Nothing is stored."""
        require(self.actor, "registry.manage")
        return Response(body_of(PROBE, mirrors.try_registry(by=self.actor, **self.valid(AddressSerializer))))


def _entry(actor: Actor, name: str) -> RegistryEntry:
    registry = next((entry for entry in registries_for(actor) if entry.name == name), None)
    if registry is None:
        raise RegistryNotFound(f"Registry '{name[:255]}' not found.", registry=name[:255])
    return registry


class WaysSerializer(serializers.Serializer[Any]):
    """How to restore:

    `only_missing` keeps versions that exist and skips those that can't be restored; `live` false leaves the restored versions soft-deleted.
    """

    only_missing = serializers.BooleanField(required=False, default=False)
    live = serializers.BooleanField(required=False, default=True)


class BringSerializer(WaysSerializer):
    """`plan` is the `digest` of the plan to carry out."""

    plan = serializers.CharField(max_length=64)


class CopiesSerializer(serializers.Serializer[Any]):
    """Filters; `before` is the last number of the previous page."""

    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    before = WholeNumberField(required=False, default=None, min_value=1, max_value=2**62)
    limit = WholeNumberField(required=False, default=100, min_value=1, max_value=MOST)


class RegistryExport(ProductView):
    """`/api/v1/registries/{registry}/export`."""

    @extend_schema(responses={(200, MEDIA_TYPE): FILE})
    def get(self, request: Request, registry: str) -> FileResponse:
        """Export the whole registry, in one consistent state, as a file for `import_registry --from`."""
        require(self.actor, "schema.read", registry=registry)
        file = spooled_export(registry=registry, by=self.actor)
        return FileResponse(file, as_attachment=True, filename=f"{registry}.jsonl", content_type=MEDIA_TYPE)


class RegistryImports(ProductView):
    """`/api/v1/registries/{registry}/imports`."""

    @extend_schema(request=OpenApiTypes.BINARY, responses={201: shape("NewCopy", number=int)})
    def post(self, request: Request, registry: str) -> Response:
        """Upload an export file as the body. The response has the number of the copy; get its plan next."""
        require(self.actor, RIGHTS[ArchivedCopy.SENT], registry=registry)
        data = request._request.read(MAX_SENT + 1)
        number = send_file(registry=registry, data=data, name="file", by=self.actor)
        return Response({"number": number}, status=201)


class Copies(ProductView):
    """`/api/v1/registries/{registry}/copies`."""

    @extend_schema(parameters=[CopiesSerializer], responses=many(CopyInfo))
    def get(self, request: Request, registry: str) -> Response:
        """List the archived copies of permanently deleted subjects, newest first."""
        require_extent(self.actor, RIGHTS[ArchivedCopy.DELETED], registry=registry)
        chosen = self.filters_of(CopiesSerializer, request.query_params.dict())
        copies = deleted_copies(get_registry(registry), by=self.actor, **chosen)
        return Response([asdict(copy) for copy in copies])


class CopyOne(ProductView):
    """`/api/v1/registries/{registry}/copies/{copy}`."""

    @extend_schema(parameters=[WaysSerializer], responses=PLAN)
    def get(self, request: Request, registry: str, copy_id: int) -> Response:
        """Get the plan of restoring a copy: each version, worst first, and the `digest` that confirms the plan."""
        ways = RestoreOptions(**self.filters_of(WaysSerializer, request.query_params.dict()))
        return Response(_plan_result(plan_copy(registry=registry, number=copy_id, ways=ways, by=self.actor)))

    def delete(self, request: Request, registry: str, copy_id: int) -> Response:
        """Delete a copy with all its schemas."""
        forget(registry=registry, number=copy_id, by=self.actor)
        return Response(status=204)


class CopyFile(ProductView):
    """`/api/v1/registries/{registry}/copies/{copy}/file`."""

    @extend_schema(responses={(200, MEDIA_TYPE): FILE})
    def get(self, request: Request, registry: str, copy_id: int) -> FileResponse:
        """Download a copy as an export file."""
        file = io.BytesIO()
        write_copy(registry=registry, number=copy_id, file=file, by=self.actor)
        file.seek(0)
        return FileResponse(file, as_attachment=True, filename=f"copy-{copy_id}.jsonl", content_type=MEDIA_TYPE)


class CopyRestore(ProductView):
    """`/api/v1/registries/{registry}/copies/{copy}/restore`."""

    @extend_schema(request=BringSerializer, responses=PLAN)
    def post(self, request: Request, registry: str, copy_id: int) -> Response:
        """Restore a copy as its plan says. The copy is deleted afterwards."""
        require_any(registry, self.actor)
        values = self.valid(BringSerializer)
        digest = values.pop("plan")
        done = apply_copy(
            registry=registry, number=copy_id, ways=RestoreOptions(**values), digest=digest, by=self.actor
        )
        return Response(_plan_result(done))


def _plan_result(plan: Plan) -> dict[str, Any]:
    return body_of(PLAN, plan, versions=[body_of(_LINE, line) for line in plan.lines], besides=list(plan.settings))
