"""The product's own API: what flows where, from databases' tables to the programs that read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView
from registry.api.product.description import many, shape
from registry.api.product.lifecycle import SubjectView
from registry.lineage.field_impact import FieldImpact, field_impact
from registry.lineage.graph import ALL, MAX_DISTANCE, Lineage, LineageEdge, LineageNode, narrowed
from registry.lineage.selectors import read_lineage

#: what a query may say about the distance → steps
DISTANCES: Final = {"all": ALL, **{str(steps): steps for steps in range(1, MAX_DISTANCE + 1)}}
MAX_ID: Final = 2_000
LINEAGE: Final = shape("Lineage", Lineage, nodes=many(LineageNode), edges=many(LineageEdge))


class LineageFilterSerializer(serializers.Serializer[Any]):
    """Which part of the lineage is wanted; a filter that is left out doesn't narrow it."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    owner = serializers.CharField(
        max_length=300, required=False, default="", allow_blank=True, help_text="`user:NAME` or `group:NAME`"
    )
    text = serializers.CharField(
        max_length=1_024, required=False, default="", allow_blank=True, help_text="a part of a node's name"
    )
    focus = serializers.CharField(
        max_length=MAX_ID, required=False, default="", allow_blank=True, help_text="a node's id"
    )
    distance = serializers.ChoiceField(
        choices=list(DISTANCES), required=False, default="all", help_text="steps up and down from what is chosen"
    )


class LineageView(ProductView):
    """`/api/v1/lineage`."""

    @extend_schema(parameters=[LineageFilterSerializer], responses=LINEAGE)
    def get(self, request: Request) -> Response:
        """Get what flows where: nodes, and edges with the evidence for each.

        `focus`, `text` and `owner` choose nodes; the response has these and what flows into and out of them. It has only
        what the caller can read.
        """
        chosen = self.filters_of(LineageFilterSerializer, request.query_params.dict())
        graph = read_lineage(self.actor, registry=chosen["registry"])
        narrow = {name: chosen[name] for name in ("text", "owner", "focus")}
        return Response(asdict(narrowed(graph, **narrow, distance=DISTANCES[chosen["distance"]])))


class FieldImpactView(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/fields/{path}/impact`."""

    @extend_schema(responses=FieldImpact)
    def get(self, request: Request, registry: str, subject: str, path: str) -> Response:
        """Get what breaks if a field of the newest version is removed, renamed or changed in type.

        Each edit is made in the schema and checked. A row has an effect for each edit: `breaks`, `care`, `fine`, or
        `unknown` if it wasn't checked; rows without effects are where the field comes from. `hidden` counts what the
        caller can't read.
        """
        registry_row, name = self.registry_and_subject(registry, subject)
        return Response(asdict(field_impact(registry_row, name, path, by=self.actor)))
