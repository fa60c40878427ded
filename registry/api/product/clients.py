"""The product's own API: the programs that read and write a subject's data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.api.product.standing import SubjectView
from registry.subjects.models.clients import MAX_CONTACT, MAX_FIELD, MAX_FIELDS
from registry.subjects.names import parse_subject
from registry.subjects.selectors.clients import clients_of
from registry.subjects.selectors.places import get_subject
from registry.subjects.services.clients import ACTION, declare_client, withdraw_client


class ClientSerializer(serializers.Serializer[Any]):
    """What a program does with the data; `version` null: it takes the newest at each start."""

    reads = serializers.BooleanField(required=False, default=True)
    writes = serializers.BooleanField(required=False, default=False)
    version = serializers.IntegerField(required=False, default=None, allow_null=True)
    fields = serializers.ListField(  # type: ignore[assignment]  # a field of the body, not DRF's
        child=serializers.CharField(max_length=2 * MAX_FIELD), required=False, default=list, max_length=2 * MAX_FIELDS
    )
    contact = serializers.CharField(required=False, default="", allow_blank=True, max_length=2 * MAX_CONTACT)


class Clients(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/clients`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """The declared clients by name, with the version that each has now."""
        place, name = self.place(registry, subject)
        get_subject(place, name, deleted=True)
        return Response([asdict(client) for client in clients_of(place, name)])


class ClientOne(ProductView):
    """`/api/v1/registries/{registry}/subjects/{subject}/clients/{name}`."""

    @extend_schema(request=ClientSerializer, responses=None)
    def put(self, request: Request, registry: str, subject: str, name: str) -> Response:
        """Declare a client, or report that it is still there: 201 for a new one. Said twice it has one effect."""
        place = parse_subject(subject)
        require(self.actor, ACTION, registry=registry, subject=place.qualified)
        values = self.valid(ClientSerializer)
        is_new = declare_client(registry=registry, subject=place, name=name, by=self.actor, **values)
        return Response(status=201 if is_new else 204)

    @extend_schema(request=None, responses=None)
    def delete(self, request: Request, registry: str, subject: str, name: str) -> Response:
        """The client is gone."""
        withdraw_client(registry=registry, subject=parse_subject(subject), name=name, by=self.actor)
        return Response(status=204)
