"""The product's own API: what versions make of each other's data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.formats.json_change import Change
from registry.subjects import selectors
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry


class PlaceSerializer(serializers.Serializer[Any]):
    """A subject."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024)


class ResolutionSerializer(PlaceSerializer):
    """Two versions, and a datum of the writer's in the format's JSON form; without one it is generated."""

    reader = serializers.CharField(max_length=12)
    writer = serializers.CharField(max_length=12)
    datum = serializers.JSONField(required=False, allow_null=True, default=None)


class ChangeSerializer(serializers.Serializer[Any]):
    """What the client in the middle modifies: a JSON Pointer into its datum, and the new value."""

    pointer = serializers.CharField(max_length=1024, allow_blank=True)
    value = serializers.JSONField(allow_null=True)


class SimulationSerializer(PlaceSerializer):
    """A datum written by one version, modified through another."""

    written_by = serializers.CharField(max_length=12)
    modified_by = serializers.CharField(max_length=12)
    datum = serializers.JSONField(required=False, allow_null=True, default=None)
    change = ChangeSerializer(required=False, allow_null=True, default=None)


class HazardSerializer(PlaceSerializer):
    """Versions that are in use at the same time."""

    versions = serializers.ListField(child=serializers.CharField(max_length=12))


class _PlaceView(ProductView):
    serializer: type[serializers.Serializer[Any]]

    def place(self) -> tuple[dict[str, Any], Any, Any]:
        """The body's values, the registry and the subject, which the caller may read."""
        values = self.valid(self.serializer)
        place, subject = get_registry(values.pop("registry")), parse_subject(values.pop("subject"))
        require(self.actor, "schema.read", registry=place.name, subject=subject.qualified)
        return values, place, subject


class Resolutions(_PlaceView):
    """`/api/v1/resolutions`."""

    serializer = ResolutionSerializer

    @extend_schema(request=ResolutionSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """What the reader gets, each field kept, filled, dropped or converted; encoded bytes in hexadecimal."""
        values, place, subject = self.place()
        return Response(asdict(selectors.resolve_datum(place, subject, **values)))


class Simulations(_PlaceView):
    """`/api/v1/simulations`."""

    serializer = SimulationSerializer

    @extend_schema(request=SimulationSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """The three steps of a read-modify-write, with their bytes and the fields that they reset."""
        values, place, subject = self.place()
        change = values.pop("change")
        found = selectors.simulate(place, subject, **values, change=Change(**change) if change else None)
        return Response(asdict(found))


class Hazards(_PlaceView):
    """`/api/v1/hazards`."""

    serializer = HazardSerializer

    @extend_schema(request=HazardSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """The fields that read-modify-writes by versions in use together reset, and what avoids it."""
        values, place, subject = self.place()
        return Response(asdict(selectors.find_hazards(place, subject, **values)))
