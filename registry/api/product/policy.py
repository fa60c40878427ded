"""The product's own API: what places hold versions to and why they can't be changed, and what another level would say."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import AT, ProductView, as_it_was
from registry.errors import InvalidInput
from registry.promotions.changing import CONFIG, MODE, Changing, changing
from registry.promotions.selectors.what_if import requests_under
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.policy_tree import MAX_PLACES, PolicyPlace, policy_tree, scope_of
from registry.subjects.selectors.what_if import MAX_SUBJECTS, what_if


class TreeSerializer(serializers.Serializer[Any]):
    """Which page of the tree: `cursor` is that of the page before."""

    cursor = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    limit = serializers.IntegerField(required=False, default=MAX_PLACES, min_value=1, max_value=MAX_PLACES)


class WhatIfSerializer(serializers.Serializer[Any]):
    """Which level, where: for a subject, a context or (neither) the whole registry."""

    level = serializers.CharField(max_length=32)
    context = serializers.CharField(  # type: ignore[assignment]  # a field of the query, not DRF's
        required=False, default="", allow_blank=True, max_length=260
    )
    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    cursor = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    limit = serializers.IntegerField(required=False, default=MAX_SUBJECTS, min_value=1, max_value=MAX_SUBJECTS)


class Policy(ProductView):
    """`/api/v1/registries/{registry}/policy`."""

    @extend_schema(parameters=[TreeSerializer, AT], responses=None)
    @as_it_was
    def get(self, request: Request, registry: str) -> Response:
        """The registry, and each context and subject that sets something itself, with what counts there from where.

        `reasons` say for each why the caller couldn't change its config or mode now; empty where they could.
        """
        require(self.actor, "schema.read", registry=registry)
        asked = self.valid_of(TreeSerializer, _known(request, TreeSerializer))
        place = get_registry(registry)
        tree, held = policy_tree(place, **asked), changing(place, self.actor)
        return Response(
            {
                "root": _told(tree.root, held),
                "places": [_told(item, held) for item in tree.places],
                "total": tree.total,
                "cursor": tree.cursor,
            }
        )


def _told(place: PolicyPlace, held: Changing) -> dict[str, Any]:
    reasons = {
        name: [asdict(reason) for reason in held.reasons(action, place.scope, place.mode.mode)]
        for name, action in (("config", CONFIG), ("mode", MODE))
    }
    return {**place.to_dict(), "reasons": reasons}


class WhatIfs(ProductView):
    """`/api/v1/registries/{registry}/what-if`."""

    @extend_schema(parameters=[WhatIfSerializer], responses=None)
    def get(self, request: Request, registry: str) -> Response:
        """The registrations of the past that a level would have refused, and the open requests it would judge otherwise.

        At most 200 subjects and some seconds an answer: `cursor` asks for the next. `requests` stand in the first alone.
        """
        asked = self.valid_of(WhatIfSerializer, _known(request, WhatIfSerializer))
        scope = scope_of(asked["context"], asked["subject"])
        name = scope.qualified if scope and scope.subject else ""
        require(self.actor, "schema.read", registry=registry, subject=name)
        place = get_registry(registry)
        found = what_if(place, asked["level"], scope, cursor=asked["cursor"], limit=asked["limit"])
        under = None if asked["cursor"] else requests_under(place, asked["level"], scope, by=self.actor)
        return Response({**found.to_dict(), "requests": under.to_dict() if under else None})


def _known(request: Request, serializer: type[serializers.Serializer[Any]]) -> dict[str, str]:
    """The query. Raises InvalidInput for a parameter that nothing reads."""
    given = request.query_params.dict()
    unknown = sorted(set(given) - set(serializer().fields))
    if unknown:
        known = ", ".join(serializer().fields)
        raise InvalidInput(f"There is no parameter {unknown[0][:40]!r}; known are {known}.")
    return given
