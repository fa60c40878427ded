"""The product's own API: what a registry holds as a file, what comes out of one, and copies of what was deleted for good."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.extent import require_extent
from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.subjects.export_file import MEDIA_TYPE
from registry.subjects.models import KeptCopy
from registry.subjects.plan_of_copy import Plan, Ways
from registry.subjects.selectors.copies import MOST, deleted_copies
from registry.subjects.selectors.places import get_registry
from registry.subjects.sent_file import MAX_SENT
from registry.subjects.services.bringing import bring_copy, plan_copy, send_file, write_copy
from registry.subjects.services.keeping import RIGHTS, forget, require_any
from registry.subjects.services.moving_in import spooled_export


class WaysSerializer(serializers.Serializer[Any]):
    """How a copy comes: a file's `only_missing` leaves what is there; what was deleted lives again, or not `live`."""

    only_missing = serializers.BooleanField(required=False, default=False)
    live = serializers.BooleanField(required=False, default=True)


class BringSerializer(WaysSerializer):
    """The `digest` of the plan that is confirmed."""

    plan = serializers.CharField(max_length=64)


class CopiesSerializer(serializers.Serializer[Any]):
    """Which page: `before` is the number of the last one of the page before; `subject` one name alone."""

    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    before = serializers.IntegerField(required=False, default=None, min_value=1, max_value=2**62)
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=MOST)


class RegistryExport(ProductView):
    """`/api/v1/registries/{registry}/export`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str) -> FileResponse:
        """All that the registry holds at one moment, as the file that `import_registry --from` takes."""
        require(self.actor, "schema.read", registry=registry)
        file = spooled_export(registry=registry, by=self.actor)
        return FileResponse(file, as_attachment=True, filename=f"{registry}.jsonl", content_type=MEDIA_TYPE)


class RegistryImports(ProductView):
    """`/api/v1/registries/{registry}/imports`."""

    @extend_schema(request=OpenApiTypes.BINARY, responses=None)
    def post(self, request: Request, registry: str) -> Response:
        """Read an export file, which is the body; answers the number of its copy, whose plan is asked for next."""
        require(self.actor, RIGHTS[KeptCopy.SENT], registry=registry)
        data = request._request.read(MAX_SENT + 1)
        number = send_file(registry=registry, data=data, name="file", by=self.actor)
        return Response({"number": number}, status=201)


class Copies(ProductView):
    """`/api/v1/registries/{registry}/copies`."""

    @extend_schema(parameters=[CopiesSerializer], responses=None)
    def get(self, request: Request, registry: str) -> Response:
        """What was deleted for good and is kept still, newest first."""
        require_extent(self.actor, RIGHTS[KeptCopy.DELETED], registry=registry)
        chosen = self.valid_of(CopiesSerializer, request.query_params.dict())
        found = deleted_copies(get_registry(registry), by=self.actor, **chosen)
        return Response([asdict(each) for each in found])


class CopyOne(ProductView):
    """`/api/v1/registries/{registry}/copies/{copy}`."""

    @extend_schema(parameters=[WaysSerializer], responses=None)
    def get(self, request: Request, registry: str, copy_id: int) -> Response:
        """What bringing it in would do now: each version, worst first, and the `digest` that confirms it."""
        ways = _ways(self.valid_of(WaysSerializer, request.query_params.dict()))
        return Response(_told(plan_copy(registry=registry, number=copy_id, ways=ways, by=self.actor)))

    @extend_schema(request=None, responses=None)
    def delete(self, request: Request, registry: str, copy_id: int) -> Response:
        """Forget it now, with all its texts."""
        forget(registry=registry, number=copy_id, by=self.actor)
        return Response(status=204)


class CopyFile(ProductView):
    """`/api/v1/registries/{registry}/copies/{copy}/file`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str, copy_id: int) -> FileResponse:
        """It as an export file."""
        file = io.BytesIO()
        write_copy(registry=registry, number=copy_id, file=file, by=self.actor)
        file.seek(0)
        return FileResponse(file, as_attachment=True, filename=f"copy-{copy_id}.jsonl", content_type=MEDIA_TYPE)


class CopyBring(ProductView):
    """`/api/v1/registries/{registry}/copies/{copy}/bring`."""

    @extend_schema(request=BringSerializer, responses=None)
    def post(self, request: Request, registry: str, copy_id: int) -> Response:
        """Do what the plan said, once; then the copy is kept no longer."""
        require_any(registry, self.actor)
        values = self.valid(BringSerializer)
        digest = values.pop("plan")
        done = bring_copy(registry=registry, number=copy_id, ways=_ways(values), digest=digest, by=self.actor)
        return Response(_told(done))


def _ways(values: Mapping[str, bool]) -> Ways:
    return Ways(only_missing=values["only_missing"], live=values["live"])


def _told(plan: Plan) -> dict[str, Any]:
    lines = [asdict(line) | {"subject": line.subject.qualified} for line in plan.lines]
    problems = [asdict(each) for each in plan.problems]
    return {"digest": plan.digest, "versions": lines, "besides": list(plan.settings), "problems": problems}
