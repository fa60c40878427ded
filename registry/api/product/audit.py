"""The audit, for auditors' programs: filtered, and exported whole as JSON lines or CSV."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from registry.access.extent import require_extent
from registry.api.product.base import ProductView
from registry.audit.export import FORMS, export_events
from registry.audit.selectors import AuditFilter
from registry.search.trail_sight import events_shown


class FilterSerializer(serializers.Serializer[Any]):
    """Which events. `subject` is a qualified name, `registry` alone means all that is in it."""

    text = serializers.CharField(required=False, default="", max_length=200)
    actor = serializers.CharField(required=False, default="", max_length=200)
    door = serializers.CharField(required=False, default="", max_length=20)
    table = serializers.CharField(required=False, default="", max_length=100)
    row_id = serializers.CharField(required=False, default="", max_length=100)
    registry = serializers.CharField(required=False, default="", max_length=255)
    subject = serializers.CharField(required=False, default="", max_length=1300, trim_whitespace=False)
    since = serializers.DateTimeField(required=False, default=None, allow_null=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)


class Audit(ProductView):
    """`/api/v1/audit`."""

    @extend_schema(
        parameters=[FilterSerializer, OpenApiParameter("as", enum=[*FORMS], default="jsonl")], responses=None
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The events that the filter names and the caller may read, oldest first, as JSON lines or CSV.

        Those of people, roles, tokens and clusters are of no registry: they are for whoever may read the whole audit.
        """
        require_extent(self.actor, "audit.read")
        given = request.query_params.dict()
        form = given.pop("as", "jsonl")
        values = self.filters_of(FilterSerializer, given)
        about = events_shown(self.actor, registry=values.pop("registry"), subject=values.pop("subject"))
        export = export_events(AuditFilter(**values, about=about), form)
        response = StreamingHttpResponse(export.text, content_type=export.media)
        response["Content-Disposition"] = f'attachment; filename="{export.name}"'
        return response
