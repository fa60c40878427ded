"""The product's own API: the least version of a subject that producers may still write."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.standing import SubjectView
from registry.drift.selectors.least import least_version_of
from registry.drift.services.least import ACTION, MAX_REASON, clear_least_version, set_least_version
from registry.subjects.selectors.places import get_subject
from registry.subjects.selectors.versions import MAX_VERSION


class LeastSerializer(serializers.Serializer[Any]):
    """The least version, and why older ones should no longer be written."""

    version = serializers.IntegerField(min_value=1, max_value=MAX_VERSION)
    reason = serializers.CharField(max_length=2 * MAX_REASON)


class LeastVersionOne(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/least-version`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """The least version with its reason; `{"version": null}` where any may be written."""
        place, name = self.place(registry, subject)
        get_subject(place, name, deleted=True)
        info = least_version_of(place, name)
        return Response(asdict(info) if info else {"version": None})

    @extend_schema(request=LeastSerializer, responses=None)
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Messages that are written with an older version from now on are a finding; nothing is refused."""
        _, name = self.place(registry, subject)
        require(self.actor, ACTION, registry=registry, subject=name.qualified)
        values = self.valid(LeastSerializer)
        return Response(asdict(set_least_version(registry=registry, subject=name, by=self.actor, **values)))

    @extend_schema(request=None, responses=None)
    def delete(self, request: Request, registry: str, subject: str) -> Response:
        """Any version may be written again."""
        _, name = self.place(registry, subject)
        clear_least_version(registry=registry, subject=name, by=self.actor)
        return Response(status=204)
