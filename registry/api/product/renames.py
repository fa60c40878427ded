"""The product's own API: what was decided of fields that look renamed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.standing import SubjectView
from registry.promotions.models.renames import MAX_PATH
from registry.promotions.selectors.renames import renames_of
from registry.promotions.services.renaming import ACTION, MAX_REASON, decide_rename, undecide_rename
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_subject


class PairSerializer(serializers.Serializer[Any]):
    """The field that went and the one that came, as the diff names them."""

    from_path = serializers.CharField(max_length=2 * MAX_PATH)
    to_path = serializers.CharField(max_length=2 * MAX_PATH)


class RenameSerializer(PairSerializer):
    """Whether the two are one field under two names, and why."""

    is_rename = serializers.BooleanField()
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=2 * MAX_REASON)


class Renames(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/renames`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """What was decided, in the order in which it was."""
        place, name = self.place(registry, subject)
        get_subject(place, name, deleted=True)
        return Response([asdict(info) for info in renames_of(place, name)])

    @extend_schema(request=RenameSerializer, responses=None)
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Decide of one pair. Said twice it has one effect."""
        name = parse_subject(subject)
        require(self.actor, ACTION, registry=registry, subject=name.qualified)
        decide_rename(registry=registry, subject=name, by=self.actor, **self.valid(RenameSerializer))
        return Response(status=204)

    @extend_schema(request=PairSerializer, responses=None)
    def delete(self, request: Request, registry: str, subject: str) -> Response:
        """Take back what was decided of one pair: it is suspected again."""
        name = parse_subject(subject)
        require(self.actor, ACTION, registry=registry, subject=name.qualified)
        undecide_rename(registry=registry, subject=name, by=self.actor, **self.valid(PairSerializer))
        return Response(status=204)
