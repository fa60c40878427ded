"""Changes that loosen a closed environment in the product's own API: asked for by one person, decided by another."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.promotions import services
from registry.promotions.selectors.environment_changes import environment_changes
from registry.promotions.selectors.environments import environment_info
from registry.promotions.services.environment_changes import ACTIONS


class EnvironmentChangeSerializer(serializers.Serializer[Any]):
    """What the refused call named in `details`: `action` and `values`; and why."""

    action = serializers.ChoiceField(choices=list(ACTIONS))
    values = serializers.DictField()  # type: ignore[assignment]  # a field of the body, not DRF's
    reason = serializers.CharField(max_length=2000)


class DecisionSerializer(serializers.Serializer[Any]):
    """What the second person says; turning a change down takes it."""

    comment = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class EnvironmentChanges(ProductView):
    """`/api/v1/environments/{name}/changes`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str) -> Response:
        """The last hundred, those that wait first."""
        require(self.actor, "schema.read", registry=registry)
        environment_info(registry)
        return Response([asdict(info) for info in environment_changes(registry)])

    @extend_schema(request=EnvironmentChangeSerializer, responses=None)
    def post(self, request: Request, registry: str) -> Response:
        """Ask another person who may review there for a change that loosens a closed environment."""
        require(self.actor, "registry.manage", registry=registry)
        number = services.request_environment_change(
            environment=registry, by=self.actor, **self.valid(EnvironmentChangeSerializer)
        )
        return Response({"change_id": number}, status=201)


class EnvironmentChangeApproval(ProductView):
    """`/api/v1/environment-changes/{id}/approve`."""

    @extend_schema(request=DecisionSerializer, responses=None)
    def post(self, request: Request, change_id: int) -> Response:
        """Approve it as a second person, which carries it out."""
        comment = self.valid(DecisionSerializer)["comment"]
        services.approve_environment_change(change_id=change_id, by=self.actor, comment=comment)
        return Response(status=204)


class EnvironmentChangeRejection(ProductView):
    """`/api/v1/environment-changes/{id}/reject`."""

    @extend_schema(request=DecisionSerializer, responses=None)
    def post(self, request: Request, change_id: int) -> Response:
        """Turn it down as a second person, with a comment."""
        comment = self.valid(DecisionSerializer)["comment"]
        services.reject_environment_change(change_id=change_id, by=self.actor, comment=comment)
        return Response(status=204)


class EnvironmentChangeWithdrawal(ProductView):
    """`/api/v1/environment-changes/{id}/withdraw`."""

    @extend_schema(request=None, responses=None)
    def post(self, request: Request, change_id: int) -> Response:
        """Take it back: its requester, or whoever manages the environment."""
        services.withdraw_environment_change(change_id=change_id, by=self.actor)
        return Response(status=204)
