"""Promotion requests, in the product's own API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.promotions import selectors as promotions
from registry.promotions import services as promotion_services
from registry.subjects.names import parse_subject


class PromotionSerializer(serializers.Serializer[Any]):
    """A promotion to ask for."""

    source = serializers.CharField(max_length=255)  # type: ignore[assignment]  # a field of the body, not DRF's
    target = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1024)
    version = serializers.CharField(max_length=12)
    reason = serializers.CharField(required=False, default="", allow_blank=True)


class Promotions(ProductView):
    """`/api/v1/promotions`."""

    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        """Requests, newest first; `state` filters, `open` for all that aren't closed."""
        require(self.actor, "schema.read")
        return Response(
            [asdict(info) for info in promotions.list_requests(state=request.query_params.get("state", ""))]
        )

    @extend_schema(request=PromotionSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Ask for a version of one environment in a later one."""
        values = self.valid(PromotionSerializer)
        values["subject"] = parse_subject(values["subject"])
        number = promotion_services.request_promotion(by=self.actor, **values)
        return Response(asdict(promotions.get_request(number)), status=201)


class DecisionSerializer(serializers.Serializer[Any]):
    """A decision on a request."""

    comment = serializers.CharField(required=False, default="", allow_blank=True)
    plan_hash = serializers.CharField(required=False, default="", allow_blank=True)


class Decision(ProductView):
    """`/api/v1/promotions/{id}/{approve,reject,withdraw,apply}`."""

    @extend_schema(request=DecisionSerializer, responses=None)
    def post(self, request: Request, request_id: int, decision: str) -> Response:
        """Approve, reject, withdraw or apply a request."""
        values = self.valid(DecisionSerializer)
        if decision == "approve":
            promotion_services.approve(request_id=request_id, by=self.actor, **values)
        elif decision == "reject":
            promotion_services.reject(request_id=request_id, by=self.actor, comment=values["comment"])
        elif decision == "withdraw":
            promotion_services.withdraw(request_id=request_id, by=self.actor)
        else:
            promotion_services.apply(request_id=request_id, by=self.actor)
        return Response(asdict(promotions.get_request(request_id)))
