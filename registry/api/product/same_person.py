"""Accounts that are one person's, in the product's own API; for admins."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.people import AdminView
from registry.promotions.selectors.same_person import same_person_statements
from registry.promotions.services.same_person import state_same_person, withdraw_same_person


class SamePersonSerializer(serializers.Serializer[Any]):
    """Two accounts by their names, and how it is known."""

    one = serializers.CharField(max_length=150)
    other = serializers.CharField(max_length=150)
    reason = serializers.CharField(max_length=2000)


class SamePersons(AdminView):
    """`/api/v1/same-person`."""

    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        """All that is stated."""
        return Response([asdict(info) for info in same_person_statements()])

    @extend_schema(request=SamePersonSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Count two accounts as one person where a second one is needed."""
        return Response(
            {"statement_id": state_same_person(by=self.actor, **self.valid(SamePersonSerializer))}, status=201
        )


class SamePersonOne(AdminView):
    """`/api/v1/same-person/{id}`."""

    @extend_schema(responses=None)
    def delete(self, request: Request, statement_id: int) -> Response:
        """Count them as two again."""
        withdraw_same_person(statement_id=statement_id, by=self.actor)
        return Response(status=204)
