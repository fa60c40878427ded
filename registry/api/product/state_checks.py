"""The product's own API: what a restart with planned state schemas does to a streaming query's state."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.streams.selectors import StateCheckInfo, get_state_check
from registry.streams.services import check_document


class StoreSerializer(serializers.Serializer[Any]):
    """The object store of a checkpoint; `secret` is the name of the secret key's secret, never the key."""

    endpoint = serializers.CharField(max_length=2048)
    region = serializers.CharField(max_length=40, required=False, allow_blank=True)
    access_key_id = serializers.CharField(max_length=128, required=False, allow_blank=True)
    secret = serializers.CharField(max_length=64, required=False, allow_blank=True)


class PlannedStateSerializer(serializers.Serializer[Any]):
    """A checkpoint's path or address, and the plan: a JSON object, or its text."""

    checkpoint = serializers.CharField(max_length=4096)
    store = StoreSerializer(required=False, allow_null=True, default=None, help_text="of an address that is no source")
    plan = serializers.JSONField(
        help_text='{"variables": [{"name", "kind", "value_schema", "user_key_schema", "key_schema", "ttl"}], "removed",'
        ' "settings", "language", "operator", "time_mode", "output_mode", "api", "operators"}; schemas are Spark DDL or StructType JSON'
    )


class StateCheckSerializer(serializers.Serializer[Any]):
    """A check that was kept; `report` is docs/reference/state-check.schema.json."""

    id = serializers.IntegerField()
    url = serializers.CharField(help_text="the page of the report")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    verdict = serializers.CharField()
    report = serializers.JSONField()


_KEPT = OpenApiResponse(StateCheckSerializer, description="the report, which stays under this number")


class StateChecks(ProductView):
    """`/api/v1/state-checks`."""

    @extend_schema(request=PlannedStateSerializer, responses={201: _KEPT})
    def post(self, request: Request) -> Response:
        """Check what a restart with the plan does to a checkpoint. Nothing is started; the report is kept."""
        values = self.valid(PlannedStateSerializer)
        number = check_document(by=self.actor, **values)
        return Response(_answer(get_state_check(number)), status=201)


class StateCheckOne(ProductView):
    """`/api/v1/state-checks/{id}`."""

    @extend_schema(responses={200: _KEPT})
    def get(self, request: Request, check_id: int) -> Response:
        """A check that was made before."""
        require(self.actor, "schema.read")
        return Response(_answer(get_state_check(check_id)))


def _answer(info: StateCheckInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "url": f"/ui/state-checks/{info.id}",
        "created_at": info.created_at,
        "created_by": info.created_by,
        "verdict": info.verdict,
        "report": info.report,
    }
