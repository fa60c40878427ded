"""The product's own API: checkpoints, streaming queries, their state, and checks of a restart."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.permission_filters import require_extent
from registry.access.roles import require
from registry.api.product.base import ProductView, WholeNumberField
from registry.drift.selectors import checkpoint_sources
from registry.streams.selectors import (
    BudgetInfo,
    CarriedInfo,
    QueryInfo,
    SchemaInfo,
    StateCheckInfo,
    VariableInfo,
    get_query,
    get_state_check,
    list_queries,
    variables_with_schemas,
)
from registry.streams.services import check_document, discover, discovery_dict


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

    id = WholeNumberField()
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
        return Response(_state_check_dict(get_state_check(number)), status=201)


class StateCheckOne(ProductView):
    """`/api/v1/state-checks/{id}`."""

    @extend_schema(responses={200: _KEPT})
    def get(self, request: Request, check_id: int) -> Response:
        """A check that was made before."""
        require(self.actor, "schema.read")
        return Response(_state_check_dict(get_state_check(check_id)))


def _state_check_dict(info: StateCheckInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "url": f"/ui/state-checks/{info.id}",
        "created_at": info.created_at,
        "created_by": info.created_by,
        "verdict": info.verdict,
        "report": info.report,
    }


MOST = 500


class QueryPageSerializer(serializers.Serializer[Any]):
    """Which rows of a list; `limit` is 500 at most."""

    offset = WholeNumberField(min_value=0, max_value=10**9, required=False, default=0)
    limit = WholeNumberField(min_value=1, max_value=MOST, required=False, default=100)


class DiscoverySerializer(serializers.Serializer[Any]):
    """A folder or an address to look below, for whoever may add what is found as sources of the registry."""

    registry = serializers.CharField(max_length=255)
    path = serializers.CharField(max_length=4096)
    store = StoreSerializer(required=False, allow_null=True, default=None, help_text="of an address")


class Discoveries(ProductView):
    """`/api/v1/checkpoints/discoveries`."""

    @extend_schema(request=DiscoverySerializer, responses=None)
    def post(self, request: Request) -> Response:
        """The checkpoints at and below the path, and which of them are sources already; nothing is kept of it."""
        values = self.valid(DiscoverySerializer)
        done = discover(path=values["path"], registry=values["registry"], store=values["store"], by=self.actor)
        return Response(discovery_dict(done, checkpoint_sources(values["registry"])))


class Queries(ProductView):
    """`/api/v1/queries`."""

    @extend_schema(parameters=[QueryPageSerializer], responses=None)
    def get(self, request: Request) -> Response:
        """The queries that scans have found, the fullest budget first; of registries that the caller may read."""
        require_extent(self.actor, "schema.read")
        page = self.valid_of(QueryPageSerializer, request.query_params)
        return Response([query_dict(query) for query in list_queries(by=self.actor, **page)])


class QueryVariables(ProductView):
    """`/api/v1/queries/{id}/variables`."""

    @extend_schema(responses=None)
    def get(self, request: Request, query_id: int) -> Response:
        """The state variables of a query with every version of their schemas, and what their rows hold."""
        query = get_query(query_id, by=self.actor)
        variables = [variable_dict(variable) for variable in variables_with_schemas(query_id)]
        return Response({"query": query_dict(query), "variables": variables})


def query_dict(query: QueryInfo) -> dict[str, Any]:
    """A query as JSON values."""
    values = vars(query) | {
        "worst": budget_dict(query.worst),
        "inputs": [
            {"topic": topic.topic, "side": topic.side, "subject": topic.subject.qualified if topic.subject else None}
            for topic in query.inputs
        ],
    }
    values.pop("source_id")
    return {**values, "source": query.source_id, "url": f"/ui/queries/{query.id}"}


def variable_dict(variable: VariableInfo) -> dict[str, Any]:
    """A variable as JSON values."""
    return vars(variable) | {
        "budget": budget_dict(variable.budget),
        "fields": [vars(field) for field in variable.fields],
        "schemas": [_schema_dict(schema) for schema in variable.schemas],
    }


def budget_dict(budget: BudgetInfo | None) -> dict[str, Any] | None:
    """A budget as JSON values, with what is left."""
    return None if budget is None else {**vars(budget), "left": budget.left}


def _schema_dict(schema: SchemaInfo) -> dict[str, Any]:
    return vars(schema) | {"carried": [_carried_dict(carried) for carried in schema.carried]}


def _carried_dict(carried: CarriedInfo) -> dict[str, Any]:
    return vars(carried) | {"subject": carried.subject.qualified}
