"""Deployments, in the product's own API: told by pipelines, shown where a finding began soon after one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.drift import selectors, services
from registry.drift.deployment_model import MAX_LABEL, MAX_URL


class DeploymentSerializer(serializers.Serializer[Any]):
    """What is deployed to what `registry` serves; empty patterns mean any, `at` is when it began (else now)."""

    registry = serializers.CharField(max_length=255)
    label = serializers.CharField(max_length=2 * MAX_LABEL)  # type: ignore[assignment]  # a field of the body
    at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    url = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_URL)
    subjects = serializers.CharField(required=False, default="", allow_blank=True, max_length=512)
    topics = serializers.CharField(required=False, default="", allow_blank=True, max_length=249)
    client = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)


class FilterSerializer(serializers.Serializer[Any]):
    """Which deployments; `before` is the cursor that another page gave."""

    registry = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    label = serializers.CharField(  # type: ignore[assignment]  # a filter, not DRF's
        required=False, default="", allow_blank=True, max_length=MAX_LABEL
    )
    before = serializers.CharField(required=False, default="", allow_blank=True, max_length=40)
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=500)


class Deployments(ProductView):
    """`/api/v1/deployments`."""

    @extend_schema(parameters=[FilterSerializer], responses=None)
    def get(self, request: Request) -> Response:
        """Deployments by when they began, newest first; `before` is the cursor of the next page, "" on the last one."""
        given = request.query_params.dict()
        chosen = self.filters_of(FilterSerializer, given)
        require(self.actor, "schema.read", registry=chosen["registry"])
        page = selectors.list_deployments(**chosen)
        return Response({"deployments": [asdict(row) for row in page.rows], "before": page.before})

    @extend_schema(request=DeploymentSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Tell of a deployment: 201 for a new one, 200 where it was told before. Said twice it has one effect."""
        told = services.tell_deployment(by=self.actor, **self.valid(DeploymentSerializer))
        return Response({"deployment": told.id}, status=201 if told.is_new else 200)
