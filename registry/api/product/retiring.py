"""The product's own API: retiring a version or a subject, and the subjects that nothing is known to need."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import may_somewhere, require
from registry.api.product.base import ProductView
from registry.drift.orphans import MAX_ROWS, orphans_of
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry
from registry.subjects.services.retiring import CHOICES, RIGHTS, retire
from registry.subjects.services.standing import MAX_MESSAGE


class RetireSerializer(serializers.Serializer[Any]):
    """What to do, to a version or (without one) to the whole subject.

    `confirmed` is the subject's name, for what deletes; `message` and `ends_at` are of a deprecation; `force` is the reason
    to delete for good what is or may be in use, and to restore what breaks the level.
    """

    choice = serializers.ChoiceField(choices=list(CHOICES))
    version = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=2**31 - 1)
    confirmed = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    message = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_MESSAGE)
    ends_at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    force = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class OrphansSerializer(serializers.Serializer[Any]):
    """Which page: `after` is what the one before gave."""

    after = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=MAX_ROWS)


class Retirement(ProductView):
    """`/api/v1/registries/{registry}/subjects/{subject}/retire`."""

    @extend_schema(request=RetireSerializer, responses=None)
    def post(self, request: Request, registry: str, subject: str) -> Response:
        """Do one step; answers the versions that it changed and their schema ids."""
        name = parse_subject(subject)
        chosen = str(request.data.get("choice", "")) if isinstance(request.data, dict) else ""
        require(self.actor, RIGHTS.get(chosen, "version.standing"), registry=registry, subject=name.qualified)
        return Response(asdict(retire(registry=registry, subject=name, by=self.actor, **self.valid(RetireSerializer))))


class OrphanSubjects(ProductView):
    """`/api/v1/registries/{registry}/orphans`."""

    @extend_schema(parameters=[OrphansSerializer], responses=None)
    def get(self, request: Request, registry: str) -> Response:
        """By name; the next page begins `after` what this one gives. Without topics nothing is known: no rows."""
        if not may_somewhere(self.actor, "schema.read"):
            require(self.actor, "schema.read", registry=registry)
        chosen = self.valid_of(OrphansSerializer, request.query_params.dict())
        found = orphans_of(get_registry(registry), by=self.actor, **chosen)
        rows = [
            {"subject": row.subject.qualified, "versions": row.versions, "newest": row.newest, "since": row.since}
            for row in found.rows
        ]
        known = {"total": found.total, "topics": found.topics, "read": found.read, "after": found.after}
        return Response({"orphans": rows, **known})
