"""The product's own API: several subjects at once, exported into a file and deprecated."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView
from registry.subjects.names import parse_subject
from registry.subjects.services.notes import MOST
from registry.subjects.services.several import deprecate_several, export_subjects
from registry.subjects.services.standing import MAX_MESSAGE


class ExportSerializer(serializers.Serializer[Any]):
    """The subjects that the file should have."""

    subjects = serializers.ListField(child=serializers.CharField(max_length=1280), min_length=1, max_length=MOST)


class DeprecationsSerializer(ExportSerializer):
    """Why, what to use instead, and until when at most."""

    message = serializers.CharField(max_length=MAX_MESSAGE)
    ends_at = serializers.DateTimeField(required=False, default=None, allow_null=True)


class SubjectsExport(ProductView):
    """`/api/v1/registries/{registry}/exports`."""

    @extend_schema(request=ExportSerializer, responses=None)
    def post(self, request: Request, registry: str) -> HttpResponse:
        """A zip with a file that `import_registry --from` takes: versions, configs, modes and notes of these subjects."""
        names = [parse_subject(text) for text in self.valid(ExportSerializer)["subjects"]]
        file = io.BytesIO()
        export_subjects(registry=registry, subjects=names, file=file, by=self.actor)
        headers = {"Content-Disposition": 'attachment; filename="subjects.zip"'}
        return HttpResponse(file.getvalue(), content_type="application/zip", headers=headers)


class SubjectsDeprecation(ProductView):
    """`/api/v1/registries/{registry}/deprecations`."""

    @extend_schema(request=DeprecationsSerializer, responses=None)
    def post(self, request: Request, registry: str) -> Response:
        """Deprecate what is live of each; answers the versions of each subject, or why there are none."""
        values = self.valid(DeprecationsSerializer)
        names = [parse_subject(text) for text in values.pop("subjects")]
        done = deprecate_several(registry=registry, subjects=names, by=self.actor, **values)
        return Response([asdict(each) | {"subject": each.subject.qualified} for each in done])
