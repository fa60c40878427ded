"""The product's own API: the list of a registry's subjects, with the filters that its page has."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import may, require
from registry.api.product.base import AT, ProductView, as_it_was
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS
from registry.search.health import Signs, signs_of
from registry.search.subject_list import VALUES, Page, SubjectFilter, find_subjects
from registry.subjects.selectors import SubjectRow
from registry.subjects.selectors.places import get_registry

MOST: Final = 500


class SubjectsSerializer(serializers.Serializer[Any]):
    """Which subjects, and which page of them: `after` and `before` are the cursors that another page gave."""

    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    format = serializers.ChoiceField(choices=sorted(FORMATS), required=False, default="", allow_blank=True)
    level = serializers.ChoiceField(choices=list(LEVELS), required=False, default="", allow_blank=True)
    tag = serializers.CharField(required=False, default="", allow_blank=True, max_length=64)
    owner = serializers.CharField(required=False, default="", allow_blank=True, max_length=160)
    state = serializers.ChoiceField(choices=VALUES["state"], required=False, default="", allow_blank=True)
    attention = serializers.ChoiceField(choices=VALUES["attention"], required=False, default="", allow_blank=True)
    mode = serializers.ChoiceField(choices=VALUES["mode"], required=False, default="", allow_blank=True)
    level_from = serializers.ChoiceField(choices=VALUES["level_from"], required=False, default="", allow_blank=True)
    references = serializers.ChoiceField(choices=VALUES["references"], required=False, default="", allow_blank=True)
    use = serializers.ChoiceField(choices=VALUES["use"], required=False, default="", allow_blank=True)
    sort = serializers.ChoiceField(choices=VALUES["sort"], required=False, default="", allow_blank=True)
    after = serializers.CharField(required=False, default="", allow_blank=True, max_length=1400, trim_whitespace=False)
    before = serializers.CharField(required=False, default="", allow_blank=True, max_length=1400, trim_whitespace=False)
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=MOST)


class Subjects(ProductView):
    """`/api/v1/registries/{registry}/subjects`."""

    @extend_schema(parameters=[SubjectsSerializer, AT], responses=None)
    @as_it_was
    def get(self, request: Request, registry: str) -> Response:
        """A page of the list: what needs attention first, or as `sort` says; `needs` is why, the worst first."""
        require(self.actor, "schema.read", registry=registry)
        given = request.query_params.dict()
        values = self.filters_of(SubjectsSerializer, given)
        page = Page(values.pop("after"), values.pop("before"), limit=values.pop("limit"))
        place = get_registry(registry)
        signs = signs_of(place)
        found = find_subjects(place, SubjectFilter(**values), page, signs=signs)
        return Response(
            {
                "subjects": [self._told(row, signs) for row in found.rows],
                "total": found.total,
                "before": found.before,
                "after": found.after,
            }
        )

    def _told(self, row: SubjectRow, signs: Signs) -> dict[str, Any]:
        """A line; of other registries only those that the caller may read."""
        name = row.subject.qualified
        return {
            "subject": name,
            "format": row.schema_type,
            "deleted": row.deleted,
            "latest_version": row.latest_version,
            "live_versions": row.live_versions,
            "versions": {
                place: version
                for place, version in row.versions.items()
                if may(self.actor, "schema.read", registry=place, subject=name)
            },
            "level": row.level,
            "level_is_own": row.level_is_own,
            "changed_at": row.changed_at,
            "changed_by": row.changed_by,
            "needs": [] if row.deleted else list(signs.of(row)),
        }
