"""The product's own API: the status of versions, retirement, and several subjects at once."""

from __future__ import annotations

import io
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.permission_filters import require_extent
from registry.access.roles import may, may_somewhere, require
from registry.api.product.base import AT, ProductView, VersionField, WholeNumberField, as_it_was
from registry.api.product.description import FILE, body_of, many, shape
from registry.api.response_marks import marked
from registry.drift.usage.subject_topics import last_seen
from registry.drift.usage.unused_subjects import MAX_ROWS, UnusedSubject, UnusedSubjectPage, find_unused_subjects
from registry.promotions import selectors as promotions
from registry.promotions import services as promotion_services
from registry.promotions.requests import timeline
from registry.subjects.lifecycle import retirement
from registry.subjects.lifecycle.bulk import Outcome, deprecate_several, export_subjects
from registry.subjects.lifecycle.notes import MOST
from registry.subjects.models import Registry, VersionStatus
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import StatusInfo, VersionWithStatus, list_version_statuses

MAX_VERSIONS_PER_PAGE = 500
LISTED: Final = shape("ListedVersionStatus", StatusInfo, id=int, subject=str, version=int, deleted=bool)
UNAPPROVED: Final = shape("UnapprovedVersion", timeline.UnapprovedVersion, subject=str, seen_at=datetime | None)
UNUSED_SUBJECT: Final = shape("UnusedSubject", UnusedSubject, subject=str)
UNUSED_SUBJECTS: Final = shape("UnusedSubjectPage", UnusedSubjectPage, without=("rows",), subjects=many(UNUSED_SUBJECT))
OUTCOME: Final = shape("Outcome", Outcome, subject=str)


class StatusSerializer(serializers.Serializer[Any]):
    """The status to set; `ends_at` is only for a deprecated version."""

    status = serializers.ChoiceField(choices=VersionStatus.STATUSES)
    message = serializers.CharField(max_length=retirement.MAX_MESSAGE)
    ends_at = serializers.DateTimeField(required=False, default=None, allow_null=True)


class StatusPageSerializer(serializers.Serializer[Any]):
    """Filters; `after` is the last id of the previous page."""

    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    status = serializers.ChoiceField(choices=VersionStatus.STATUSES, required=False, default="", allow_blank=True)
    after = WholeNumberField(required=False, default=0, min_value=0, max_value=2**62)
    limit = WholeNumberField(required=False, default=100, min_value=1, max_value=MAX_VERSIONS_PER_PAGE)


class UnapprovedVersionsSerializer(serializers.Serializer[Any]):
    """Filters; `before` is the last id of the previous page."""

    environment = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)
    state = serializers.ChoiceField(choices=timeline.STATES, required=False, default="", allow_blank=True)
    before = WholeNumberField(required=False, default=None, allow_null=True, min_value=1, max_value=2**62)
    limit = WholeNumberField(required=False, default=100, min_value=1, max_value=MAX_VERSIONS_PER_PAGE)


class AdoptionSerializer(serializers.Serializer[Any]):
    """The unapproved version to review after the fact."""

    environment = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280)
    version = VersionField()
    reason = serializers.CharField(max_length=4000)


class SubjectView(ProductView):
    """A call about the versions of one subject."""

    def registry_and_subject(self, registry: str, subject: str) -> tuple[Registry, SubjectName]:
        """Where. Raises NotAllowed, RegistryNotFound, InvalidName."""
        name = parse_subject(subject)
        require(self.actor, "schema.read", registry=registry, subject=name.qualified)
        return get_registry(registry), name


class VersionStatusView(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/versions/{version}/status`."""

    @extend_schema(
        responses=shape("VersionStatus", StatusInfo, without=("status",), partial=True, version=int, status=str)
    )
    def get(self, request: Request, registry: str, subject: str, version: str) -> Response:
        """Get the status of a version. An active version has `"status": "active"`."""
        registry_row, name = self.registry_and_subject(registry, subject)
        info = get_version(registry_row, name, version, deleted=True)
        status = asdict(info.status) if info.status else {"status": "active"}
        return marked(Response({"version": info.version, **status}), info.status)

    @extend_schema(request=StatusSerializer, responses=StatusInfo)
    def put(self, request: Request, registry: str, subject: str, version: str) -> Response:
        """Mark a version as deprecated, retired or quarantined.

        Responses with the version get headers that say so; nothing stops working.
        """
        _, name = self.registry_and_subject(registry, subject)
        require(self.actor, "version.status", registry=registry, subject=name.qualified)
        values = self.valid(StatusSerializer)
        done = retirement.set_version_status(registry=registry, subject=name, version=version, by=self.actor, **values)
        return Response(asdict(done))

    def delete(self, request: Request, registry: str, subject: str, version: str) -> Response:
        """Clear the status of a version."""
        _, name = self.registry_and_subject(registry, subject)
        retirement.clear_version_status(registry=registry, subject=name, version=version, by=self.actor)
        return Response(status=204)


class VersionStatuses(ProductView):
    """`/api/v1/registries/{registry}/version-statuses`."""

    @extend_schema(parameters=[StatusPageSerializer], responses=many(LISTED))
    def get(self, request: Request, registry: str) -> Response:
        """List the versions that are deprecated, retired or quarantined, by id."""
        chosen = self.filters_of(StatusPageSerializer, request.query_params.dict())
        subject = parse_subject(chosen["subject"]) if chosen["subject"] else None
        require(self.actor, "schema.read", registry=registry, subject=subject.qualified if subject else "")
        statuses = list_version_statuses(get_registry(registry), **{**chosen, "subject": subject})
        return Response(
            [body_of(LISTED, item, **asdict(item.status)) for item in statuses if self._may_read(registry, item)]
        )

    def _may_read(self, registry: str, item: VersionWithStatus) -> bool:
        return may(self.actor, "schema.read", registry=registry, subject=item.subject.qualified)


class SubjectTimeline(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/timeline`."""

    @extend_schema(parameters=[AT], responses=many(shape("VersionTimeline", timeline.VersionTimeline, "states")))
    @as_it_was
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """List the history of each version: requests, releases, status and deletion."""
        registry_row, name = self.registry_and_subject(registry, subject)
        timelines = promotions.timelines_of(registry_row, name, by=self.actor)
        return Response([{**asdict(life), "states": life.states} for life in timelines])


class UnapprovedVersions(ProductView):
    """`/api/v1/unapproved-versions`."""

    @extend_schema(parameters=[UnapprovedVersionsSerializer, AT], responses=many(UNAPPROVED))
    @as_it_was
    def get(self, request: Request) -> Response:
        """List unapproved versions: those registered in an environment without a request, newest first.

        `seen_at` is when a message last had the version.

        The filter `state` is `undecided`, `asked` (an open request would adopt the version) or `quarantined`.
        """
        chosen = self.filters_of(UnapprovedVersionsSerializer, request.query_params.dict())
        require_extent(self.actor, "schema.read", registry=chosen["environment"])
        if chosen["environment"]:
            promotions.get_environment(chosen["environment"])
        subject = parse_subject(chosen["subject"]) if chosen["subject"] else None
        unapproved = timeline.unapproved_version_page(by=self.actor, **{**chosen, "subject": subject}).rows
        seen_at = last_seen([row.id for row in unapproved])
        return Response([body_of(UNAPPROVED, row, seen_at=seen_at.get(row.id)) for row in unapproved])


class Adoptions(ProductView):
    """`/api/v1/unapproved-versions/adoptions`."""

    @extend_schema(request=AdoptionSerializer, responses={201: shape("RequestNumber", request=int)})
    def post(self, request: Request) -> Response:
        """Request the review of an unapproved version. The response has the number of the request."""
        values = self.valid(AdoptionSerializer)
        values["subject"] = parse_subject(values["subject"])
        number = promotion_services.request_adoption(by=self.actor, **values)
        return Response({"request": number}, status=201)


class RetireSerializer(serializers.Serializer[Any]):
    """The step, for a version or, without one, for the whole subject.

    `confirmed` is the subject's name, required to delete. `message` and `ends_at` are for a deprecation. `force` is the
    reason to delete permanently what is or may be in use, or to restore what breaks the compatibility level.
    """

    choice = serializers.ChoiceField(choices=list(retirement.CHOICES))
    version = WholeNumberField(required=False, default=None, allow_null=True, min_value=1, max_value=2**31 - 1)
    confirmed = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    message = serializers.CharField(required=False, default="", allow_blank=True, max_length=retirement.MAX_MESSAGE)
    ends_at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    force = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class UnusedSubjectsSerializer(serializers.Serializer[Any]):
    """The page; `after` is the cursor from the previous one."""

    after = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    limit = WholeNumberField(required=False, default=100, min_value=1, max_value=MAX_ROWS)


class Retirement(ProductView):
    """`/api/v1/registries/{registry}/subjects/{subject}/retire`."""

    @extend_schema(request=RetireSerializer, responses=retirement.Retired)
    def post(self, request: Request, registry: str, subject: str) -> Response:
        """Deprecate, soft-delete, permanently delete or restore.

        The response has the changed versions and their schema ids.
        """
        name = parse_subject(subject)
        chosen = str(request.data.get("choice", "")) if isinstance(request.data, dict) else ""
        require(self.actor, retirement.RIGHTS.get(chosen, "version.status"), registry=registry, subject=name.qualified)
        return Response(
            asdict(retirement.retire(registry=registry, subject=name, by=self.actor, **self.valid(RetireSerializer)))
        )


class UnusedSubjects(ProductView):
    """`/api/v1/registries/{registry}/unused-subjects`."""

    @extend_schema(parameters=[UnusedSubjectsSerializer], responses=UNUSED_SUBJECTS)
    def get(self, request: Request, registry: str) -> Response:
        """List subjects that nothing is known to use, by name.

        `after` in the response is the cursor of the next page. Without a scanned topic the list is empty.
        """
        if not may_somewhere(self.actor, "schema.read"):
            require(self.actor, "schema.read", registry=registry)
        chosen = self.filters_of(UnusedSubjectsSerializer, request.query_params.dict())
        page = find_unused_subjects(get_registry(registry), by=self.actor, **chosen)
        return Response(body_of(UNUSED_SUBJECTS, page, subjects=[body_of(UNUSED_SUBJECT, row) for row in page.rows]))


class ExportSerializer(serializers.Serializer[Any]):
    """The subjects to export."""

    subjects = serializers.ListField(child=serializers.CharField(max_length=1280), min_length=1, max_length=MOST)


class DeprecationsSerializer(ExportSerializer):
    """The subjects, why they are deprecated and what to use instead, and the last date of use."""

    message = serializers.CharField(max_length=retirement.MAX_MESSAGE)
    ends_at = serializers.DateTimeField(required=False, default=None, allow_null=True)


class SubjectsExport(ProductView):
    """`/api/v1/registries/{registry}/exports`."""

    @extend_schema(request=ExportSerializer, responses={(200, "application/zip"): FILE})
    def post(self, request: Request, registry: str) -> HttpResponse:
        """Export subjects as a ZIP file for `import_registry --from`, with their versions, configs, modes and notes."""
        names = [parse_subject(text) for text in self.valid(ExportSerializer)["subjects"]]
        file = io.BytesIO()
        export_subjects(registry=registry, subjects=names, file=file, by=self.actor)
        headers = {"Content-Disposition": 'attachment; filename="subjects.zip"'}
        return HttpResponse(file.getvalue(), content_type="application/zip", headers=headers)


class SubjectsDeprecation(ProductView):
    """`/api/v1/registries/{registry}/deprecations`."""

    @extend_schema(request=DeprecationsSerializer, responses=many(OUTCOME))
    def post(self, request: Request, registry: str) -> Response:
        """Deprecate the live versions of several subjects.

        The response has the versions of each subject, or why it was skipped.
        """
        values = self.valid(DeprecationsSerializer)
        names = [parse_subject(text) for text in values.pop("subjects")]
        done = deprecate_several(registry=registry, subjects=names, by=self.actor, **values)
        return Response([body_of(OUTCOME, info) for info in done])
