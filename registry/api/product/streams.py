"""The product's own API: checkpoints below a folder, streaming queries, and the history of their state."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.extent import require_extent
from registry.api.product.base import ProductView
from registry.api.product.state_checks import StoreSerializer
from registry.drift.selectors import checkpoint_sources
from registry.streams.discovered import discovery_dict
from registry.streams.infos import BudgetInfo, CarriedInfo, QueryInfo, SchemaInfo, VariableInfo
from registry.streams.queries import get_query, list_queries, variables_with_schemas
from registry.streams.services import discover

MOST = 500


class PageSerializer(serializers.Serializer[Any]):
    """Which rows of a list; `limit` is 500 at most."""

    offset = serializers.IntegerField(min_value=0, max_value=10**9, required=False, default=0)
    limit = serializers.IntegerField(min_value=1, max_value=MOST, required=False, default=100)


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
        given = self.valid(DiscoverySerializer)
        done = discover(path=given["path"], registry=given["registry"], store=given["store"], by=self.actor)
        return Response(discovery_dict(done, checkpoint_sources(given["registry"])))


class Queries(ProductView):
    """`/api/v1/queries`."""

    @extend_schema(parameters=[PageSerializer], responses=None)
    def get(self, request: Request) -> Response:
        """The queries that scans have found, the fullest budget first; of registries that the caller may read."""
        require_extent(self.actor, "schema.read")
        page = self.valid_of(PageSerializer, request.query_params)
        return Response([query_dict(each) for each in list_queries(by=self.actor, **page)])


class QueryVariables(ProductView):
    """`/api/v1/queries/{id}/variables`."""

    @extend_schema(responses=None)
    def get(self, request: Request, query_id: int) -> Response:
        """The state variables of a query with every version of their schemas, and what their rows hold."""
        query = get_query(query_id, by=self.actor)
        variables = [variable_dict(each) for each in variables_with_schemas(query_id)]
        return Response({"query": query_dict(query), "variables": variables})


def query_dict(query: QueryInfo) -> dict[str, Any]:
    """A query as JSON values."""
    known = vars(query) | {
        "worst": budget_dict(query.worst),
        "inputs": [
            {"topic": each.topic, "side": each.side, "subject": each.subject.qualified if each.subject else None}
            for each in query.inputs
        ],
    }
    known.pop("source_id")
    return {**known, "source": query.source_id, "url": f"/ui/queries/{query.id}"}


def variable_dict(variable: VariableInfo) -> dict[str, Any]:
    """A variable as JSON values."""
    return vars(variable) | {
        "budget": budget_dict(variable.budget),
        "fields": [vars(each) for each in variable.fields],
        "schemas": [_schema_dict(each) for each in variable.schemas],
    }


def budget_dict(budget: BudgetInfo | None) -> dict[str, Any] | None:
    """A budget as JSON values, with what is left."""
    return None if budget is None else {**vars(budget), "left": budget.left}


def _schema_dict(schema: SchemaInfo) -> dict[str, Any]:
    return vars(schema) | {"carried": [_carried_dict(each) for each in schema.carried]}


def _carried_dict(carried: CarriedInfo) -> dict[str, Any]:
    return vars(carried) | {"subject": carried.subject.qualified}
