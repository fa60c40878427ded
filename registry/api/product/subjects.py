"""The product's own API: the list of subjects, what is written about them, and the search."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.contact_channels import MAX_CHANNEL
from registry.access.permission_filters import require_extent
from registry.access.roles import may, may_somewhere, require
from registry.access.selectors import owners_of
from registry.api.product.base import AT, FormatField, ProductView, WholeNumberField, as_it_was
from registry.api.product.description import body_of, many, shape
from registry.api.product.lifecycle import SubjectView
from registry.errors import InvalidInput
from registry.formats.compatibility import LEVELS
from registry.search.query import MAX_CHARACTERS
from registry.search.results import GROUPS, MAX_LIMIT, Group, SearchResult
from registry.search.selectors import search, search_group
from registry.search.subject_list import VALUES, HealthData, Page, SubjectFilter, find_subjects, read_health
from registry.search.team_figures import ALL_SUBJECTS, DayFigures, OwnerFigures, days_of, team_figures
from registry.subjects.comparison.parsed_versions import tags_of_info
from registry.subjects.lifecycle import notes
from registry.subjects.models import Subject
from registry.subjects.models.registries import MAX_DOC, MAX_TAGS
from registry.subjects.permissions import Visible
from registry.subjects.selectors import SubjectRow
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import parse_subject

MAX_SUBJECTS_PER_PAGE: Final = 500
ROW: Final = shape(
    "SubjectRow", SubjectRow, without=("schema_type", "schemas"), subject=str, format=str, needs=many(str)
)
PAGE: Final = shape("SubjectPage", subjects=many(ROW), total=int | None, before=str, after=str)
_OWNERS: Final = shape("SubjectOwners", people=many(str), groups=many(str))
_FIELD: Final = shape("TaggedField", path=str, tags=many(str), personal=bool)
NOTES: Final = shape(
    "SubjectNotes",
    notes.Note,
    subject=str,
    owners=_OWNERS,
    channels=many(str),
    effective_tags=many(str),
    fields=many(_FIELD),
    personal_tags=many(str),
)
_GROUP: Final = shape("SearchGroup", Group, without=("name",), group=str)
FOUND: Final = shape("SearchPage", query=str, groups=many(_GROUP), suggestions=many(str), indexing=bool)


class SubjectsSerializer(serializers.Serializer[Any]):
    """Filters; `after` and `before` are cursors from another page."""

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
    lacks = serializers.ChoiceField(choices=VALUES["lacks"], required=False, default="", allow_blank=True)
    sort = serializers.ChoiceField(choices=VALUES["sort"], required=False, default="", allow_blank=True)
    after = serializers.CharField(required=False, default="", allow_blank=True, max_length=1400, trim_whitespace=False)
    before = serializers.CharField(required=False, default="", allow_blank=True, max_length=1400, trim_whitespace=False)
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MAX_SUBJECTS_PER_PAGE)


class Subjects(ProductView):
    """`/api/v1/registries/{registry}/subjects`."""

    @extend_schema(parameters=[SubjectsSerializer, AT], responses=PAGE)
    @as_it_was
    def get(self, request: Request, registry: str) -> Response:
        """List subjects, those that need attention first, or as `sort` says. `needs` has the reasons, worst first."""
        require_extent(self.actor, "schema.read", registry=registry)
        parameters = request.query_params.dict()
        values = self.filters_of(SubjectsSerializer, parameters)
        page = Page(values.pop("after"), values.pop("before"), limit=values.pop("limit"))
        registry_row = get_registry(registry)
        signs = read_health(registry_row)
        chosen = SubjectFilter(**values, readable=Visible(registry_row, self.actor).extent)
        page_of_rows = find_subjects(registry_row, chosen, page, signs=signs)
        return Response(body_of(PAGE, page_of_rows, subjects=[self._row_dict(row, signs) for row in page_of_rows.rows]))

    def _row_dict(self, row: SubjectRow, signs: HealthData) -> dict[str, Any]:
        """A line; of other registries only those that the caller may read."""
        name = row.subject.qualified
        readable = {
            registry: version
            for registry, version in row.versions.items()
            if may(self.actor, "schema.read", registry=registry, subject=name)
        }
        needs = [] if row.deleted else list(signs.of(row))
        return body_of(ROW, row, format=row.schema_type, versions=readable, needs=needs)


class NoteSerializer(serializers.Serializer[Any]):
    """The new tags, text and channel, which stays if it is omitted; `reason` is recorded in the audit."""

    tags = serializers.ListField(child=serializers.CharField(max_length=200), max_length=4 * MAX_TAGS)
    doc = serializers.CharField(allow_blank=True, max_length=2 * MAX_DOC, trim_whitespace=False)
    channel = serializers.CharField(required=False, allow_blank=True, max_length=2 * MAX_CHANNEL)
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=notes.MAX_REASON)


class TagChangeSerializer(serializers.Serializer[Any]):
    """Tags to add to several subjects, and to remove from them."""

    subjects = serializers.ListField(child=serializers.CharField(max_length=1280), min_length=1, max_length=notes.MOST)
    add = serializers.ListField(child=serializers.CharField(max_length=200), required=False, max_length=MAX_TAGS)
    remove = serializers.ListField(child=serializers.CharField(max_length=200), required=False, max_length=MAX_TAGS)
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=notes.MAX_REASON)


class SubjectNotes(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/notes`."""

    @extend_schema(parameters=[AT], responses=NOTES)
    @as_it_was
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """Get the tags, text and channel of a subject, its owners, and the tags of the fields of its newest version.

        `channels` is where to ask: the subject's own `channel`, or those of the groups that own it. Send the ETag with `PUT`.
        """
        registry_row, name = self.registry_and_subject(registry, subject)
        note = notes.note_of(registry_row, name)
        newest = _newest(get_subject(registry_row, name, deleted=True))
        tags = tags_of_info(registry_row, get_version(registry_row, name, newest, deleted=True), note)
        owners = owners_of(registry_row.name, name.qualified)
        return _note_response(
            note,
            {
                "subject": name.qualified,
                "owners": {"people": [owner.username for owner in owners.people], "groups": list(owners.groups)},
                "channels": list(notes.channels_of(note, owners)),
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
        responses=notes.Note,
        parameters=[OpenApiParameter("If-Match", str, OpenApiParameter.HEADER, required=True)],
    )
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Replace tags and text, and the channel if it is given.

        `If-Match` has the ETag of the state that was read, or `*` for any; if it changed since, the response is 412.
        """
        _, name = self.registry_and_subject(registry, subject)
        require(self.actor, "subject.describe", registry=registry, subject=name.qualified)
        values = self.valid(NoteSerializer)
        state = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"')
        if not state:
            raise InvalidInput(
                f"Send If-Match with the ETag of what you read, or {notes.ANY_STATE} to replace whatever is there.",
                header="If-Match",
            )
        return _note_response(
            notes.set_note(registry=registry, subject=name, by=self.actor, expected=state, **values), {}
        )


class TeamFiguresSerializer(serializers.Serializer[Any]):
    """The owner of the `days`: `group:NAME`, `user:NAME`, `all` or `unowned`."""

    owner = serializers.CharField(required=False, default=ALL_SUBJECTS, max_length=160)


class TeamFigures(ProductView):
    """`/api/v1/registries/{registry}/team-figures`."""

    @extend_schema(
        parameters=[TeamFiguresSerializer],
        responses=shape("TeamFigures", owners=many(OwnerFigures), days=many(DayFigures)),
    )
    def get(self, request: Request, registry: str) -> Response:
        """Count which subjects of each owner have a description and a channel, and which of their fields have a doc.

        The figures count subjects that the caller may read. `all` counts each subject once, `unowned` those without an
        owner. `days` has what was counted once a day, for callers who may read the whole registry.
        """
        owner = self.filters_of(TeamFiguresSerializer, request.query_params.dict())["owner"]
        figures = team_figures(registry, by=self.actor)
        days = days_of(registry, owner, by=self.actor)
        return Response({"owners": [asdict(row) for row in figures], "days": [asdict(row) for row in days]})


class SubjectTags(ProductView):
    """`/api/v1/registries/{registry}/tags`."""

    @extend_schema(responses=many(shape("TagCount", tag=str, subjects=int)))
    def get(self, request: Request, registry: str) -> Response:
        """List the tags of the registry's subjects, with the number of subjects that have each."""
        require(self.actor, "schema.read", registry=registry)
        return Response(
            [{"tag": tag, "subjects": count} for tag, count in notes.tag_counts(get_registry(registry)).items()]
        )

    @extend_schema(request=TagChangeSerializer, responses=many(shape("SubjectTags", subject=str, tags=many(str))))
    def post(self, request: Request, registry: str) -> Response:
        """Add tags to several subjects and remove others, all or nothing."""
        values = self.valid(TagChangeSerializer)
        names = [parse_subject(text) for text in values.pop("subjects")]
        done = notes.change_tags(registry=registry, subjects=names, by=self.actor, **values)
        return Response([{"subject": name.qualified, "tags": list(note.tags)} for name, note in done.items()])


def _newest(row: Subject) -> int:
    """The number of the newest version, a live one where there is one."""
    versions = row.versions.order_by("-version")
    newest = versions.filter(deleted_at=None).first() or versions[0]
    return newest.version


def _note_response(note: notes.Note, more: dict[str, Any]) -> Response:
    body = {"tags": list(note.tags), "doc": note.doc, "updated_at": note.updated_at, "updated_by": note.updated_by}
    body["channel"] = note.channel
    return Response({**body, **more}, headers={"ETag": f'"{note.state}"'})


class SearchSerializer(serializers.Serializer[Any]):
    """Words and operators (`field:`, `id:`, `type:`, `doc:`, `tag:`, `compat:`, `drift:`, `ref:`); all must match.

    With `group` the response has only a page of that group; `cursor` is the one from the previous page.
    """

    q = serializers.CharField(max_length=MAX_CHARACTERS, trim_whitespace=True)
    group = serializers.ChoiceField(choices=GROUPS, required=False)
    cursor = serializers.CharField(max_length=4_000, required=False, default="", allow_blank=True)
    limit = WholeNumberField(min_value=1, max_value=MAX_LIMIT, required=False, default=20)


class Search(ProductView):
    """`/api/v1/search`."""

    @extend_schema(parameters=[SearchSerializer], responses=FOUND)
    def get(self, request: Request) -> Response:
        """Search the subjects, fields, types, docs, ids, requests and tags that the caller can read."""
        require_some(self)
        query = self.filters_of(SearchSerializer, request.query_params.dict())
        if "group" in query:
            page = search_group(query["q"], query["group"], by=self.actor, cursor=query["cursor"], limit=query["limit"])
            result = SearchResult(query=query["q"], groups=(page,))
        else:
            result = search(query["q"], by=self.actor, limit=query["limit"])
        groups = [body_of(_GROUP, group, group=group.name) for group in result.groups]
        return Response(body_of(FOUND, result, query=query["q"], groups=groups))


def require_some(view: ProductView) -> None:
    """Raise NotSignedIn or NotAllowed for whoever may read nothing, before the query is looked at."""
    if not may_somewhere(view.actor, "schema.read"):
        require(view.actor, "schema.read")
