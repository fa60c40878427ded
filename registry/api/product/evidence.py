"""The product's own API: the evidence pack of a request."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView
from registry.promotions.evidence_pack import evidence_of


class Evidence(ProductView):
    """`/api/v1/promotions/{id}/evidence`."""

    @extend_schema(responses={200: dict})
    def get(self, request: Request, request_id: str) -> Response:
        """What the request changed, who agreed, what is registered now, and the audit's events with their seals."""
        return Response(evidence_of(int(request_id), self.actor))
