"""The product's own API: the search."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import may_somewhere, require
from registry.api.product.base import ProductView
from registry.search.found import GROUPS, MAX_LIMIT, Found
from registry.search.query import MAX_CHARACTERS
from registry.search.selectors import search, search_group


class AskedSerializer(serializers.Serializer[Any]):
    """A query of words and operators (`field:`, `id:`, `type:`, `doc:`, `tag:`, `compat:`, `drift:`, `ref:`), which hold together.

    With `group` a page of that group alone; `cursor` is what the page before gave.
    """

    q = serializers.CharField(max_length=MAX_CHARACTERS, trim_whitespace=True)
    group = serializers.ChoiceField(choices=GROUPS, required=False)
    cursor = serializers.CharField(max_length=4_000, required=False, default="", allow_blank=True)
    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, required=False, default=20)


class HitSerializer(serializers.Serializer[Any]):
    """A hit; which of these it has is of its group. `position` is a field's row in the structure of the version."""

    registry = serializers.CharField(required=False)
    subject = serializers.CharField(required=False)
    version = serializers.IntegerField(required=False)
    schema_type = serializers.CharField(required=False)
    field_count = serializers.IntegerField(required=False)
    doc = serializers.CharField(required=False)
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    problem = serializers.CharField(required=False)
    similar = serializers.BooleanField(required=False)
    position = serializers.IntegerField(required=False)
    name = serializers.CharField(required=False)
    path = serializers.CharField(required=False)
    type = serializers.CharField(required=False)
    schema_id = serializers.IntegerField(required=False)
    guid = serializers.CharField(required=False)
    context = serializers.CharField(required=False)  # type: ignore[assignment]  # a field of the body, not DRF's
    deleted = serializers.BooleanField(required=False)
    id = serializers.IntegerField(required=False)
    kind = serializers.CharField(required=False)
    target = serializers.CharField(required=False)
    state = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    tag = serializers.CharField(required=False)
    subject_count = serializers.IntegerField(required=False)
    more = serializers.BooleanField(required=False)


class GroupSerializer(serializers.Serializer[Any]):
    """Hits of a kind. `more`: there are more than `total`, which is counted to 1,000, and is null on later pages.

    `cursor` gives the next page, empty on the last one.
    """

    group = serializers.ChoiceField(choices=GROUPS)
    total = serializers.IntegerField(allow_null=True)
    more = serializers.BooleanField()
    cursor = serializers.CharField(allow_blank=True)
    hits = HitSerializer(many=True)


class FoundSerializer(serializers.Serializer[Any]):
    """The groups that were asked; `suggestions` are names of fields to try where nothing was found."""

    query = serializers.CharField()
    groups = GroupSerializer(many=True)
    suggestions = serializers.ListField(child=serializers.CharField())
    indexing = serializers.BooleanField()


class Search(ProductView):
    """`/api/v1/search`."""

    @extend_schema(
        parameters=[AskedSerializer],
        responses={200: OpenApiResponse(FoundSerializer, description="the beginning of each group, or a page of one")},
    )
    def get(self, request: Request) -> Response:
        """Subjects, fields, types, docs, ids, requests and tags that fit, of those that the caller may read."""
        require_some(self)
        asked = self.valid_of(AskedSerializer, request.query_params.dict())
        if "group" in asked:
            page = search_group(asked["q"], asked["group"], by=self.actor, cursor=asked["cursor"], limit=asked["limit"])
            found = Found(query=asked["q"], groups=(page,))
        else:
            found = search(asked["q"], by=self.actor, limit=asked["limit"])
        return Response(
            {
                "query": asked["q"],
                "groups": [group.to_dict() for group in found.groups],
                "suggestions": list(found.suggestions),
                "indexing": found.indexing,
            }
        )


def require_some(view: ProductView) -> None:
    """Raise NotSignedIn or NotAllowed for whoever may read nothing, before the query is looked at."""
    if not may_somewhere(view.actor, "schema.read"):
        require(view.actor, "schema.read")
