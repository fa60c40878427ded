"""The product's own API: the list of subjects, what is written about them, and the search."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import may, may_somewhere, require
from registry.access.selectors import owners_of
from registry.api.product.base import AT, FormatField, ProductView, WholeNumberField, as_it_was
from registry.api.product.lifecycle import SubjectView
from registry.errors import InvalidInput
from registry.formats.compatibility import LEVELS
from registry.search.query import MAX_CHARACTERS
from registry.search.results import GROUPS, MAX_LIMIT, SearchResult
from registry.search.selectors import search, search_group
from registry.search.subject_list import VALUES, Page, Signs, SubjectFilter, find_subjects, signs_of
from registry.subjects.comparison.parsed_versions import tags_of_info
from registry.subjects.lifecycle.notes import (
    ANY_STATE,
    MAX_REASON,
    MOST,
    Note,
    change_tags,
    note_of,
    set_note,
    tag_counts,
)
from registry.subjects.models import Subject
from registry.subjects.models.registries import MAX_DOC, MAX_TAGS
from registry.subjects.selectors import SubjectRow
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import parse_subject

MAX_SUBJECTS_PER_PAGE: Final = 500


class SubjectsSerializer(serializers.Serializer[Any]):
    """Which subjects, and which page of them: `after` and `before` are the cursors that another page gave."""

    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    format = FormatField(required=False, default="", allow_blank=True)
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
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MAX_SUBJECTS_PER_PAGE)


class Subjects(ProductView):
    """`/api/v1/registries/{registry}/subjects`."""

    @extend_schema(parameters=[SubjectsSerializer, AT], responses=None)
    @as_it_was
    def get(self, request: Request, registry: str) -> Response:
        """A page of the list: what needs attention first, or as `sort` says; `needs` is why, the worst first."""
        require(self.actor, "schema.read", registry=registry)
        parameters = request.query_params.dict()
        values = self.filters_of(SubjectsSerializer, parameters)
        page = Page(values.pop("after"), values.pop("before"), limit=values.pop("limit"))
        registry_row = get_registry(registry)
        signs = signs_of(registry_row)
        page_of_rows = find_subjects(registry_row, SubjectFilter(**values), page, signs=signs)
        return Response(
            {
                "subjects": [self._row_dict(row, signs) for row in page_of_rows.rows],
                "total": page_of_rows.total,
                "before": page_of_rows.before,
                "after": page_of_rows.after,
            }
        )

    def _row_dict(self, row: SubjectRow, signs: Signs) -> dict[str, Any]:
        """A line; of other registries only those that the caller may read."""
        name = row.subject.qualified
        return {
            "subject": name,
            "format": row.schema_type,
            "deleted": row.deleted,
            "latest_version": row.latest_version,
            "live_versions": row.live_versions,
            "versions": {
                registry: version
                for registry, version in row.versions.items()
                if may(self.actor, "schema.read", registry=registry, subject=name)
            },
            "level": row.level,
            "level_is_own": row.level_is_own,
            "changed_at": row.changed_at,
            "changed_by": row.changed_by,
            "needs": [] if row.deleted else list(signs.of(row)),
        }


class NoteSerializer(serializers.Serializer[Any]):
    """The whole of what should be written; `reason` goes to the audit."""

    tags = serializers.ListField(child=serializers.CharField(max_length=200), max_length=4 * MAX_TAGS)
    doc = serializers.CharField(allow_blank=True, max_length=2 * MAX_DOC, trim_whitespace=False)
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_REASON)


class TagChangeSerializer(serializers.Serializer[Any]):
    """Tags to add to several subjects, and to take from them."""

    subjects = serializers.ListField(child=serializers.CharField(max_length=1280), min_length=1, max_length=MOST)
    add = serializers.ListField(child=serializers.CharField(max_length=200), required=False, max_length=MAX_TAGS)
    remove = serializers.ListField(child=serializers.CharField(max_length=200), required=False, max_length=MAX_TAGS)
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_REASON)


class SubjectNotes(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/notes`."""

    @extend_schema(parameters=[AT], responses=None)
    @as_it_was
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """Tags and text of a subject, its owners, and the tags of its newest version's fields. The ETag is for `PUT`."""
        registry_row, name = self.registry_and_subject(registry, subject)
        note = note_of(registry_row, name)
        newest = _newest(get_subject(registry_row, name, deleted=True))
        tags = tags_of_info(registry_row, get_version(registry_row, name, newest, deleted=True), note)
        owners = owners_of(registry_row.name, name.qualified)
        return _note_response(
            note,
            {
                "subject": name.qualified,
                "owners": {"people": [owner.username for owner in owners.people], "groups": list(owners.groups)},
                "effective_tags": list(tags.everywhere),
                "fields": [
                    {"path": field.path, "tags": list(field.tags), "personal": field.is_personal}
                    for field in tags.fields
                    if field.tags or field.is_personal
                ],
                "personal_tags": list(settings.PERSONAL_TAGS),
            },
        )

    @extend_schema(
        request=NoteSerializer,
        responses=None,
        parameters=[OpenApiParameter("If-Match", str, OpenApiParameter.HEADER, required=True)],
    )
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Replace tags and text, unless they changed since the state that `If-Match` names (412); `*` is any state."""
        _, name = self.registry_and_subject(registry, subject)
        require(self.actor, "subject.describe", registry=registry, subject=name.qualified)
        values = self.valid(NoteSerializer)
        state = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"')
        if not state:
            raise InvalidInput(
                f"Send If-Match with the ETag of what you read, or {ANY_STATE} to replace whatever is there.",
                header="If-Match",
            )
        return _note_response(set_note(registry=registry, subject=name, by=self.actor, expected=state, **values), {})


class SubjectTags(ProductView):
    """`/api/v1/registries/{registry}/tags`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str) -> Response:
        """The tags of the registry's subjects, with how many have each."""
        require(self.actor, "schema.read", registry=registry)
        return Response([{"tag": tag, "subjects": count} for tag, count in tag_counts(get_registry(registry)).items()])

    @extend_schema(request=TagChangeSerializer, responses=None)
    def post(self, request: Request, registry: str) -> Response:
        """Add tags to several subjects and take others from them, all or none."""
        values = self.valid(TagChangeSerializer)
        names = [parse_subject(text) for text in values.pop("subjects")]
        done = change_tags(registry=registry, subjects=names, by=self.actor, **values)
        return Response([{"subject": name.qualified, "tags": list(note.tags)} for name, note in done.items()])


def _newest(row: Subject) -> int:
    """The number of the newest version, a live one where there is one."""
    versions = row.versions.order_by("-version")
    newest = versions.filter(deleted_at=None).first() or versions[0]
    return newest.version


def _note_response(note: Note, more: dict[str, Any]) -> Response:
    body = {"tags": list(note.tags), "doc": note.doc, "updated_at": note.updated_at, "updated_by": note.updated_by}
    return Response({**body, **more}, headers={"ETag": f'"{note.state}"'})


class SearchSerializer(serializers.Serializer[Any]):
    """A query of words and operators (`field:`, `id:`, `type:`, `doc:`, `tag:`, `compat:`, `drift:`, `ref:`), which hold together.

    With `group` a page of that group alone; `cursor` is what the page before gave.
    """

    q = serializers.CharField(max_length=MAX_CHARACTERS, trim_whitespace=True)
    group = serializers.ChoiceField(choices=GROUPS, required=False)
    cursor = serializers.CharField(max_length=4_000, required=False, default="", allow_blank=True)
    limit = WholeNumberField(min_value=1, max_value=MAX_LIMIT, required=False, default=20)


class HitSerializer(serializers.Serializer[Any]):
    """A hit; which of these it has is of its group. `position` is a field's row in the structure of the version."""

    registry = serializers.CharField(required=False)
    subject = serializers.CharField(required=False)
    version = WholeNumberField(required=False)
    schema_type = serializers.CharField(required=False)
    field_count = WholeNumberField(required=False)
    doc = serializers.CharField(required=False)
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    problem = serializers.CharField(required=False)
    similar = serializers.BooleanField(required=False)
    position = WholeNumberField(required=False)
    name = serializers.CharField(required=False)
    path = serializers.CharField(required=False)
    type = serializers.CharField(required=False)
    schema_id = WholeNumberField(required=False)
    guid = serializers.CharField(required=False)
    context = serializers.CharField(required=False)  # type: ignore[assignment]  # a field of the body, not DRF's
    deleted = serializers.BooleanField(required=False)
    id = WholeNumberField(required=False)
    kind = serializers.CharField(required=False)
    target = serializers.CharField(required=False)
    state = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    tag = serializers.CharField(required=False)
    subject_count = WholeNumberField(required=False)
    more = serializers.BooleanField(required=False)


class GroupSerializer(serializers.Serializer[Any]):
    """Hits of a kind. `more`: there are more than `total`, which is counted to 1,000, and is null on later pages.

    `cursor` gives the next page, empty on the last one.
    """

    group = serializers.ChoiceField(choices=GROUPS)
    total = WholeNumberField(allow_null=True)
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
        parameters=[SearchSerializer],
        responses={200: OpenApiResponse(FoundSerializer, description="the beginning of each group, or a page of one")},
    )
    def get(self, request: Request) -> Response:
        """Subjects, fields, types, docs, ids, requests and tags that fit, of those that the caller may read."""
        require_some(self)
        query = self.filters_of(SearchSerializer, request.query_params.dict())
        if "group" in query:
            page = search_group(query["q"], query["group"], by=self.actor, cursor=query["cursor"], limit=query["limit"])
            result = SearchResult(query=query["q"], groups=(page,))
        else:
            result = search(query["q"], by=self.actor, limit=query["limit"])
        return Response(
            {
                "query": query["q"],
                "groups": [group.to_dict() for group in result.groups],
                "suggestions": list(result.suggestions),
                "indexing": result.indexing,
            }
        )


def require_some(view: ProductView) -> None:
    """Raise NotSignedIn or NotAllowed for whoever may read nothing, before the query is looked at."""
    if not may_somewhere(view.actor, "schema.read"):
        require(view.actor, "schema.read")
