"""The product's own API: what a schema that isn't registered yet would break, and what places hold versions to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.formats.assessment import Assessment
from registry.formats.base import Reference
from registry.formats.compatibility import LEVELS
from registry.formats.junit import assessment_junit
from registry.formats.rendering import assessment_markdown, assessment_text
from registry.formats.report import PROFILES
from registry.formats.sarif import assessment_sarif
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.remote_verdict import ask_remote
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.visible import Visible, require_references
from registry.subjects.services import delete_config, set_config


class MarkdownRenderer(BaseRenderer):
    """For a merge request; the view gives the text."""

    media_type = "text/markdown"
    format = "markdown"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """The text, or an error as JSON."""
        return data.encode("utf-8", "backslashreplace") if isinstance(data, str) else JSONRenderer().render(data)


class TextRenderer(MarkdownRenderer):
    """For a terminal."""

    media_type = "text/plain"
    format = "text"


class SarifRenderer(MarkdownRenderer):
    """For code scanning and editors."""

    media_type = "application/sarif+json"
    format = "sarif"


class JUnitRenderer(MarkdownRenderer):
    """For the list of tests of a CI run."""

    media_type = "application/xml"
    format = "junit"


_TEXTS: Mapping[str, Callable[[Assessment, str], str]] = {
    "markdown": lambda assessment, subject: assessment_markdown(assessment),
    "text": lambda assessment, subject: assessment_text(assessment),
    "sarif": lambda assessment, subject: assessment_sarif(assessment, subject=subject),
    "junit": lambda assessment, subject: assessment_junit(assessment, subject=subject),
}


class ReferenceSerializer(serializers.Serializer[Any]):
    """What a reference's name stands for."""

    name = serializers.CharField(max_length=1024)
    subject = serializers.CharField(max_length=1024)
    version = serializers.IntegerField()


class ReportSerializer(serializers.Serializer[Any]):
    """A schema to report on.

    With `askRegistry` the server behind a mirror is sent the schema, and what it says stands in `registry_answer`.
    """

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024)
    schema = serializers.CharField(trim_whitespace=False)
    schemaType = serializers.CharField(max_length=16, required=False, default="AVRO")  # noqa: N815 - the API's name
    references = ReferenceSerializer(many=True, required=False)
    profile = serializers.ChoiceField(choices=PROFILES, required=False, allow_null=True, default=None)
    level = serializers.ChoiceField(choices=list(LEVELS), required=False, allow_null=True, default=None)
    askRegistry = serializers.BooleanField(required=False, default=False)  # noqa: N815 - the API's name


class CompatibilityReports(ProductView):
    """`/api/v1/compatibility-reports`."""

    renderer_classes = (JSONRenderer, MarkdownRenderer, TextRenderer, SarifRenderer, JUnitRenderer)

    @extend_schema(request=ReportSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """The whole report of a schema against a subject; nothing is registered.

        JSON, Markdown, text, SARIF 2.1.0 (`application/sarif+json`) or JUnit (`application/xml`) by `Accept`.
        """
        values = self.valid(ReportSerializer)
        place, subject = get_registry(values["registry"]), parse_subject(values["subject"])
        require(self.actor, "schema.read", registry=place.name, subject=subject.qualified)
        references = [Reference(**item) for item in values.get("references", [])]
        require_references(Visible(place, self.actor), references, context=subject.context)
        proposal = selectors.report_proposal(
            place,
            subject,
            text=values["schema"],
            schema_type=values["schemaType"],
            by=self.actor,
            references=references,
            profile=values["profile"],
            level=values["level"],
        )
        render = _TEXTS.get(request.accepted_renderer.format)
        if render:
            return Response(render(proposal.assessment, subject.qualified))
        answer = proposal.assessment.to_dict()
        if values["askRegistry"]:
            said = ask_remote(
                place,
                subject,
                text=values["schema"],
                schema_type=values["schemaType"],
                references=references,
                by=self.actor,
            )
            answer["registry_answer"] = said and said.to_dict(proposal.assessment.is_compatible)
        return Response(answer)


class ConfigSerializer(serializers.Serializer[Any]):
    """Settings of a registry, a context (`:.name:`) or a subject; what is left out stays as it is."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024, required=False, default="", allow_blank=True)
    level = serializers.CharField(max_length=32, required=False)
    normalize = serializers.BooleanField(required=False)
    profile = serializers.CharField(max_length=32, required=False)
    policy = serializers.CharField(max_length=32, required=False)


class Configs(ProductView):
    """`/api/v1/config`."""

    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        """What counts for `subject` in `registry`, and the scope that says the level."""
        place, subject = self._place(request.query_params.get("registry", ""), request.query_params.get("subject", ""))
        require(self.actor, "schema.read", registry=place.name)
        return Response(asdict(selectors.effective_config(place, subject)))

    @extend_schema(request=ConfigSerializer, responses=None)
    def put(self, request: Request) -> Response:
        """Set the level, `normalize`, the profile (confluent, semantic) or the policy (none, oracle_nosql, …)."""
        values = self.valid(ConfigSerializer)
        place, subject = self._place(values.pop("registry"), values.pop("subject"))
        return Response(asdict(set_config(registry=place.name, subject=subject, by=self.actor, **values)))

    @extend_schema(responses=None)
    def delete(self, request: Request) -> Response:
        """Unset all of a place; answers what it was."""
        place, subject = self._place(request.query_params.get("registry", ""), request.query_params.get("subject", ""))
        return Response(asdict(delete_config(registry=place.name, subject=subject, by=self.actor)))

    @staticmethod
    def _place(registry: str, subject: str) -> tuple[Any, SubjectName | None]:
        return get_registry(registry), parse_subject(subject) if subject else None
