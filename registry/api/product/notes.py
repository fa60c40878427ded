"""The product's own API: what is written about subjects, and tags of several at once."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.access.selectors import owners_of
from registry.api.product.base import AT, ProductView, as_it_was
from registry.api.product.standing import SubjectView
from registry.errors import InvalidInput
from registry.subjects.models import Subject
from registry.subjects.models.notes import MAX_DOC, MAX_TAGS
from registry.subjects.names import parse_subject
from registry.subjects.selectors.notes import Note, note_of, tag_counts
from registry.subjects.selectors.places import get_registry, get_subject
from registry.subjects.selectors.tags import tags_of_info
from registry.subjects.selectors.versions import get_version
from registry.subjects.services.notes import ANY_STATE, MAX_REASON, MOST, change_tags, set_note


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
        place, name = self.place(registry, subject)
        note = note_of(place, name)
        newest = _newest(get_subject(place, name, deleted=True))
        found = tags_of_info(place, get_version(place, name, newest, deleted=True), note)
        owners = owners_of(place.name, name.qualified)
        return _answer(
            note,
            {
                "subject": name.qualified,
                "owners": {"people": [owner.username for owner in owners.people], "groups": list(owners.groups)},
                "effective_tags": list(found.everywhere),
                "fields": [
                    {"path": field.path, "tags": list(field.tags), "personal": field.is_personal}
                    for field in found.fields
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
        _, name = self.place(registry, subject)
        require(self.actor, "subject.describe", registry=registry, subject=name.qualified)
        values = self.valid(NoteSerializer)
        state = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"')
        if not state:
            raise InvalidInput(
                f"Send If-Match with the ETag of what you read, or {ANY_STATE} to replace whatever is there.",
                header="If-Match",
            )
        return _answer(set_note(registry=registry, subject=name, by=self.actor, expected=state, **values), {})


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
    found = versions.filter(deleted_at=None).first() or versions[0]
    return found.version


def _answer(note: Note, more: dict[str, Any]) -> Response:
    body = {"tags": list(note.tags), "doc": note.doc, "updated_at": note.updated_at, "updated_by": note.updated_by}
    return Response({**body, **more}, headers={"ETag": f'"{note.state}"'})
