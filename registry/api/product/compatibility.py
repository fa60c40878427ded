"""The product's own API: compatibility reports, policies, and what versions make of each other's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final, NotRequired, get_type_hints

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import AT, ProductRenderer, ProductView, SchemaTextField, WholeNumberField, as_it_was
from registry.api.product.description import body_of, either, many, shape
from registry.formats import DEFAULT_FORMAT
from registry.formats.assessment import Assessment, Disagreement
from registry.formats.base import Reference, Resolution
from registry.formats.ci_findings import assessment_junit, assessment_sarif
from registry.formats.compatibility import LEVELS, MatrixRow
from registry.formats.json_change import Change
from registry.formats.read_modify_write import Simulation
from registry.formats.rendering import assessment_markdown, assessment_text
from registry.formats.report import PROFILES, Report
from registry.formats.suggested_edits import SuspectedRename
from registry.promotions.board.readiness import Reason
from registry.promotions.requests.level_simulation import RequestsUnder, requests_under
from registry.promotions.requests.preconditions import CONFIG, MODE, SettingsPreconditions, settings_preconditions
from registry.subjects import selectors
from registry.subjects.comparison.simulation import Hazards as HazardsFound
from registry.subjects.history.level_history import MAX_SUBJECTS, SubjectTrial, WhatIf, what_if
from registry.subjects.permissions import Visible, require_references
from registry.subjects.policy.effective_policy import EffectiveConfig, OwnConfig
from registry.subjects.policy.policy_tree import MAX_NODES, PolicyNode, policy_tree, scope_of
from registry.subjects.remote.remote_writer import RemoteVerdict, ask_remote
from registry.subjects.services import delete_config, set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


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


_RENAME: Final = shape(
    "SuspectedRename",
    SuspectedRename,
    without=("is_edit_tried", "before", "after", "passes", "pointer"),
    edit=either(shape("RenameEdit", title=str, text=str, passes=bool | None), None),
)
#: as docs/reference/compatibility-report.schema.json
REPORT: Final = shape(
    "CompatibilityReport",
    Assessment,
    without=("report", "strip"),
    **get_type_hints(shape("Verdict", Report, "verdict", without=("old_schemas", "differing"))),
    checker=str,
    levels=dict[str, bool],
    order=str,
    matrix=many(MatrixRow),
    disagreements=many(shape("Disagreement", Disagreement, "sentence")),
    renames=many(_RENAME),
    registry_answer=NotRequired[either(shape("RemoteVerdict", RemoteVerdict, agrees=bool | None), None)],
)
_TRIAL: Final = shape("SubjectTrial", SubjectTrial, subject=str)
WHAT_IF: Final = shape(
    "WhatIf", WhatIf, without=("scope",), context=str, subject=str, subjects=many(_TRIAL), requests=RequestsUnder | None
)
NODE: Final = shape(
    "PolicyNode",
    PolicyNode,
    without=("scope", "config", "settings", "mode"),
    context=str,
    subject=str,
    own=shape("OwnSettings", OwnConfig, partial=True),
    effective=shape("EffectivePolicy", EffectiveConfig, mode=str, mode_origin=str),
    reasons=shape("SettingsReasons", config=many(Reason), mode=many(Reason)),
)


class ReferenceSerializer(serializers.Serializer[Any]):
    """The subject and version that a reference's name refers to."""

    name = serializers.CharField(max_length=1024)
    subject = serializers.CharField(max_length=1024)
    version = WholeNumberField()


class ReportSerializer(serializers.Serializer[Any]):
    """The schema to check.

    With `askRegistry` the schema is sent to the server behind a mirror, and its verdict is in `registry_answer`.
    """

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024)
    schema = SchemaTextField()
    schemaType = serializers.CharField(max_length=16, required=False, default=DEFAULT_FORMAT)  # noqa: N815 - the API's name
    references = ReferenceSerializer(many=True, required=False)
    profile = serializers.ChoiceField(choices=PROFILES, required=False, allow_null=True, default=None)
    level = serializers.ChoiceField(choices=list(LEVELS), required=False, allow_null=True, default=None)
    askRegistry = serializers.BooleanField(required=False, default=False)  # noqa: N815 - the API's name


class CompatibilityReports(ProductView):
    """`/api/v1/compatibility-reports`."""

    renderer_classes = (ProductRenderer, MarkdownRenderer, TextRenderer, SarifRenderer, JUnitRenderer)

    @extend_schema(
        request=ReportSerializer,
        responses={200: REPORT, (200, "text/markdown", "text/plain", "application/sarif+json", "application/xml"): str},
    )
    def post(self, request: Request) -> Response:
        """Get the full compatibility report of a schema against a subject. Nothing is registered.

        `Accept` selects JSON, Markdown, text, SARIF 2.1.0 (`application/sarif+json`) or JUnit (`application/xml`).
        """
        values = self.valid(ReportSerializer)
        registry_row, subject = get_registry(values["registry"]), parse_subject(values["subject"])
        require(self.actor, "schema.read", registry=registry_row.name, subject=subject.qualified)
        references = [Reference(**item) for item in values.get("references", [])]
        require_references(Visible(registry_row, self.actor), references, context=subject.context)
        sent: dict[str, Any] = {"text": values["schema"], "schema_type": values["schemaType"], "references": references}
        proposal = selectors.report_proposal(
            registry_row, subject, by=self.actor, profile=values["profile"], level=values["level"], **sent
        )
        render = _TEXTS.get(request.accepted_renderer.format)
        if render:
            return Response(render(proposal.assessment, subject.qualified))
        report = proposal.assessment.to_dict()
        if values["askRegistry"]:
            remote_verdict = ask_remote(registry_row, subject, by=self.actor, **sent)
            report["registry_answer"] = remote_verdict and remote_verdict.to_dict(proposal.assessment.is_compatible)
        return Response(report)


class ConfigSerializer(serializers.Serializer[Any]):
    """The settings of a registry, a context (`:.name:`) or a subject; omitted ones stay."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024, required=False, default="", allow_blank=True)
    level = serializers.CharField(max_length=32, required=False)
    normalize = serializers.BooleanField(required=False)
    profile = serializers.CharField(max_length=32, required=False)
    policy = serializers.CharField(max_length=32, required=False)


class Configs(ProductView):
    """`/api/v1/config`."""

    @extend_schema(responses=EffectiveConfig)
    def get(self, request: Request) -> Response:
        """Get the effective settings of `subject` in `registry`, and the scope that sets the level."""
        registry_row, subject = self._registry_and_subject(
            request.query_params.get("registry", ""), request.query_params.get("subject", "")
        )
        require(self.actor, "schema.read", registry=registry_row.name)
        return Response(asdict(selectors.effective_config(registry_row, subject)))

    @extend_schema(request=ConfigSerializer, responses=OwnConfig)
    def put(self, request: Request) -> Response:
        """Set the level, `normalize`, the profile (confluent, semantic) or the policy (none, oracle_nosql, …)."""
        values = self.valid(ConfigSerializer)
        registry_row, subject = self._registry_and_subject(values.pop("registry"), values.pop("subject"))
        own = set_config(registry=registry_row.name, subject=subject, by=self.actor, **values)
        return Response(asdict(Visible(registry_row, self.actor).settings(own, subject)))

    @extend_schema(responses=OwnConfig)
    def delete(self, request: Request) -> Response:
        """Remove all settings of a scope. The response has the removed settings."""
        registry_row, subject = self._registry_and_subject(
            request.query_params.get("registry", ""), request.query_params.get("subject", "")
        )
        own = delete_config(registry=registry_row.name, subject=subject, by=self.actor)
        return Response(asdict(Visible(registry_row, self.actor).settings(own, subject)))

    @staticmethod
    def _registry_and_subject(registry: str, subject: str) -> tuple[Any, SubjectName | None]:
        return get_registry(registry), parse_subject(subject) if subject else None


class TreeSerializer(serializers.Serializer[Any]):
    """The page; `cursor` is the one from the previous page."""

    cursor = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    limit = WholeNumberField(required=False, default=MAX_NODES, min_value=1, max_value=MAX_NODES)


class WhatIfSerializer(serializers.Serializer[Any]):
    """The level to try on a subject, a context or, without either, the whole registry."""

    level = serializers.CharField(max_length=32)
    context = serializers.CharField(required=False, default="", allow_blank=True, max_length=260)  # type: ignore[assignment]  # a field of the query, not DRF's
    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    cursor = serializers.CharField(required=False, default="", allow_blank=True, max_length=1300)
    limit = WholeNumberField(required=False, default=MAX_SUBJECTS, min_value=1, max_value=MAX_SUBJECTS)


class Policy(ProductView):
    """`/api/v1/registries/{registry}/policy`."""

    @extend_schema(
        parameters=[TreeSerializer, AT], responses=shape("Policy", root=NODE, places=many(NODE), total=int, cursor=str)
    )
    @as_it_was
    def get(self, request: Request, registry: str) -> Response:
        """Get the registry, and each context and subject with settings of its own, with the effective settings.

        `reasons` says for each why the caller can't change its config or mode now; empty if the caller can.
        """
        require(self.actor, "schema.read", registry=registry)
        page = self.filters_of(TreeSerializer, request.query_params.dict())
        registry_row = get_registry(registry)
        tree, preconditions = policy_tree(registry_row, **page), settings_preconditions(registry_row, self.actor)
        return Response(
            {
                "root": _node_with_reasons(tree.root, preconditions),
                "places": [_node_with_reasons(node, preconditions) for node in tree.nodes],
                "total": tree.total,
                "cursor": tree.cursor,
            }
        )


def _node_with_reasons(node: PolicyNode, preconditions: SettingsPreconditions) -> dict[str, Any]:
    reasons = {
        name: [asdict(reason) for reason in preconditions.reasons(action, node.scope, node.mode.mode)]
        for name, action in (("config", CONFIG), ("mode", MODE))
    }
    return {**node.to_dict(), "reasons": reasons}


class WhatIfs(ProductView):
    """`/api/v1/registries/{registry}/what-if`."""

    @extend_schema(parameters=[WhatIfSerializer], responses=WHAT_IF)
    def get(self, request: Request, registry: str) -> Response:
        """Get the past registrations that a level would refuse, and the open requests whose verdict it would change.

        A response covers at most 200 subjects and takes a few seconds; `cursor` gets the next one. Only the first has
        `requests`.
        """
        parameters = self.filters_of(WhatIfSerializer, request.query_params.dict())
        scope = scope_of(parameters["context"], parameters["subject"])
        name = scope.qualified if scope and scope.subject else ""
        require(self.actor, "schema.read", registry=registry, subject=name)
        registry_row = get_registry(registry)
        page = what_if(registry_row, parameters["level"], scope, cursor=parameters["cursor"], limit=parameters["limit"])
        under = (
            None if parameters["cursor"] else requests_under(registry_row, parameters["level"], scope, by=self.actor)
        )
        about = {"context": scope.context if scope else "", "subject": name}
        return Response(body_of(WHAT_IF, page, **about, requests=under and asdict(under)))


class PlaceSerializer(serializers.Serializer[Any]):
    """A subject."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024)


class ResolutionSerializer(PlaceSerializer):
    """Two versions, and a datum of the writer in the format's JSON encoding; by default one is generated."""

    reader = serializers.CharField(max_length=12)
    writer = serializers.CharField(max_length=12)
    datum = serializers.JSONField(required=False, allow_null=True, default=None)


class ChangeSerializer(serializers.Serializer[Any]):
    """What the modifying client changes: a JSON Pointer into its datum, and the new value."""

    pointer = serializers.CharField(max_length=1024, allow_blank=True)
    value = serializers.JSONField(allow_null=True)


class SimulationSerializer(PlaceSerializer):
    """A datum written by one version, modified through another."""

    written_by = serializers.CharField(max_length=12)
    modified_by = serializers.CharField(max_length=12)
    datum = serializers.JSONField(required=False, allow_null=True, default=None)
    change = ChangeSerializer(required=False, allow_null=True, default=None)


class HazardSerializer(PlaceSerializer):
    """Versions that are in use at the same time."""

    versions = serializers.ListField(child=serializers.CharField(max_length=12))


class _PlaceView(ProductView):
    serializer: type[serializers.Serializer[Any]]

    def values_registry_and_subject(self) -> tuple[dict[str, Any], Any, Any]:
        """The body's values, the registry and the subject, which the caller may read."""
        values = self.valid(self.serializer)
        registry_row, subject = get_registry(values.pop("registry")), parse_subject(values.pop("subject"))
        require(self.actor, "schema.read", registry=registry_row.name, subject=subject.qualified)
        return values, registry_row, subject


class Resolutions(_PlaceView):
    """`/api/v1/resolutions`."""

    serializer = ResolutionSerializer

    @extend_schema(request=ResolutionSerializer, responses=Resolution)
    def post(self, request: Request) -> Response:
        """Get what the reader makes of the datum: each field is kept, filled, dropped or converted.

        Encoded bytes are hexadecimal.
        """
        values, registry_row, subject = self.values_registry_and_subject()
        return Response(asdict(selectors.resolve_datum(registry_row, subject, **values)))


class Simulations(_PlaceView):
    """`/api/v1/simulations`."""

    serializer = SimulationSerializer

    @extend_schema(request=SimulationSerializer, responses=Simulation)
    def post(self, request: Request) -> Response:
        """Simulate the three steps of a read-modify-write, with their bytes and the fields that they reset."""
        values, registry_row, subject = self.values_registry_and_subject()
        change = values.pop("change")
        simulation = selectors.simulate(registry_row, subject, **values, change=Change(**change) if change else None)
        return Response(asdict(simulation))


class Hazards(_PlaceView):
    """`/api/v1/hazards`."""

    serializer = HazardSerializer

    @extend_schema(request=HazardSerializer, responses=HazardsFound)
    def post(self, request: Request) -> Response:
        """Find the fields that read-modify-writes reset if these versions are in use together, and how to avoid it."""
        values, registry_row, subject = self.values_registry_and_subject()
        return Response(asdict(selectors.find_hazards(registry_row, subject, **values)))
