"""The product's own API: which versions data and clients still need, and what messages make of a new schema."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView, SchemaTextField, WholeNumberField
from registry.api.product.compatibility import ReferenceSerializer
from registry.api.product.description import many, shape
from registry.api.product.lifecycle import SubjectView
from registry.drift.replay import rule_trial
from registry.drift.replay.evidence import EvidenceLine, replay_and_weigh
from registry.drift.replay.schema_replay import DEFAULT_MESSAGES, MOST_MESSAGES, ReplayReport
from registry.drift.scan_context.contract_rules import TYPES
from registry.drift.selectors.messages import ENCODINGS, MAX_HEADERS, MAX_TEXT, DecodedMessage, decode_message
from registry.drift.services import minimum_version
from registry.drift.usage.retirement import retirement_of
from registry.drift.usage.retirement_rules import Reason, Retirement
from registry.drift.usage.version_usage import Coverage, VersionUse
from registry.errors import InvalidInput
from registry.formats.base import Reference
from registry.subjects.models.registries import MAX_CONTACT, MAX_FIELD, MAX_FIELDS
from registry.subjects.permissions import Visible, require_references
from registry.subjects.usage.clients import ACTION as CLIENT_ACTION
from registry.subjects.usage.clients import ClientInfo, clients_of, declare_client, withdraw_client
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, check_context, parse_subject
from registry.subjects.versions.versions import MAX_VERSION

_NO = ("0", "false", "no")
_RETIREMENT: Final = shape("Retirement", Retirement, "sentence", reasons=many(shape("RetirementReason", Reason)))
_EVIDENCE: Final = many(shape("Evidence", Evidence, without=("names",)))
USAGE: Final = shape(
    "SubjectUsage",
    registry=str,
    subject=str,
    retirement=_RETIREMENT,
    versions=many(shape("VersionUse", VersionUse, retirement=_RETIREMENT, evidence=_EVIDENCE)),
    coverage=many(shape("Coverage", Coverage, "sentence")),
    problems=many(str),
    asked_at=datetime | None,
)


class SubjectUsage(ProductView):
    """`/api/v1/registries/{registry}/subjects/{subject}/usage`."""

    @extend_schema(responses=USAGE)
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """Get where each version is used, and whether it can be retired.

        With `ask=false` the clusters aren't queried for offsets, retention and consumer groups.
        """
        registry_row, name = get_registry(registry), parse_subject(subject)
        require(self.actor, "schema.read", registry=registry_row.name, subject=name.qualified)
        ask = request.query_params.get("ask", "true").lower() not in _NO
        return Response(retirement_of(registry_row, name, by=self.actor, ask=ask).to_dict())


@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}], "default": ""}
)
class HeadersField(serializers.CharField):
    """A message's headers: an object, or a text with a line for each."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError."""
        if isinstance(data, dict):
            data = "\n".join(f"{name}: {value}" for name, value in data.items())
        return super().to_internal_value(data)


class MessageSerializer(serializers.Serializer[Any]):
    """A message as text; `headers` is an object, or a text with one `name: value` per line."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    context = serializers.CharField(max_length=256, required=False, default="", allow_blank=True)  # type: ignore[assignment]  # a field of the body, not DRF's
    message = serializers.CharField(max_length=MAX_TEXT, trim_whitespace=False)
    headers = HeadersField(max_length=MAX_HEADERS, required=False, default="", allow_blank=True, trim_whitespace=False)
    side = serializers.ChoiceField(choices=["key", "value"], required=False, default="value")
    encoding = serializers.ChoiceField(choices=ENCODINGS, required=False, default="auto")


class DecodedMessages(ProductView):
    """`/api/v1/messages/decode`."""

    @extend_schema(request=MessageSerializer, responses=DecodedMessage)
    def post(self, request: Request) -> Response:
        """Decode a message: its schema, the versions with that schema, and its value.

        If decoding fails, `error` says where.
        """
        values = self.valid(MessageSerializer)
        decoded = decode_message(
            get_registry(values["registry"]),
            text=values["message"],
            headers=values["headers"],
            side=values["side"],
            encoding=values["encoding"],
            context=check_context(values["context"]) if values["context"] else DEFAULT_CONTEXT,
            by=self.actor,
        )
        return Response(decoded.to_dict())


class ReplaySerializer(serializers.Serializer[Any]):
    """The schema to read real messages with: a text, by default of the subject's format, or an existing version."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024)
    schema = SchemaTextField(required=False, default="", allow_blank=True)
    schemaType = serializers.CharField(max_length=16, required=False, default="", allow_blank=True)  # noqa: N815 - the API's name
    references = ReferenceSerializer(many=True, required=False)
    version = serializers.CharField(max_length=12, required=False, default="", allow_blank=True)
    topic = serializers.CharField(max_length=249, required=False, default="", allow_blank=True)
    messages = WholeNumberField(min_value=1, max_value=MOST_MESSAGES, required=False, default=DEFAULT_MESSAGES)


class Replays(ProductView):
    """`/api/v1/replays`."""

    @extend_schema(
        request=ReplaySerializer, responses=shape("Replay", ReplayReport, "missing", evidence=many(EvidenceLine))
    )
    def post(self, request: Request) -> Response:
        """Read the newest messages of the subject's topic with a schema.

        Nothing is registered, and the response contains no values.
        """
        values = self.valid(ReplaySerializer)
        if bool(values["schema"]) == bool(values["version"]):
            raise InvalidInput("Give either a schema or an existing version.")
        registry_row, subject = get_registry(values["registry"]), parse_subject(values["subject"])
        references = [Reference(**item) for item in values.get("references", [])]
        require_references(Visible(registry_row, self.actor), references, context=subject.context)
        sent: dict[str, Any] = {"text": values["schema"], "schema_type": values["schemaType"], "references": references}
        chosen: dict[str, Any] = {name: values[name] for name in ("version", "topic", "messages")}
        result = replay_and_weigh(registry_row, subject, by=self.actor, **sent, **chosen)
        return Response(result.to_dict())


class RuleTrialSerializer(serializers.Serializer[Any]):
    """A condition of a data contract in CEL. `tags` are those of the fields that a CEL_FIELD condition reads."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024)
    expression = serializers.CharField(max_length=rule_trial.LONGEST)
    type = serializers.ChoiceField(choices=TYPES, required=False, default=TYPES[0])
    tags = serializers.ListField(
        child=serializers.CharField(max_length=255), required=False, default=list, max_length=100
    )
    topic = serializers.CharField(max_length=249, required=False, default="", allow_blank=True)
    messages = WholeNumberField(
        min_value=1, max_value=rule_trial.MOST_MESSAGES, required=False, default=rule_trial.DEFAULT_MESSAGES
    )


class RuleTrials(ProductView):
    """`/api/v1/rule-trials`."""

    @extend_schema(request=RuleTrialSerializer, responses=rule_trial.RuleTrial)
    def post(self, request: Request) -> Response:
        """Evaluate a rule on the newest messages of the subject's topic, as a scan does.

        Nothing is stored. `first` are some messages that break the rule, masked, without a value if the caller may not see
        samples. `not_checked` counts messages by why the rule couldn't be evaluated on them.
        """
        values = self.valid(RuleTrialSerializer)
        registry, subject = get_registry(values.pop("registry")).name, parse_subject(values.pop("subject"))
        return Response(asdict(rule_trial.try_rule(registry, subject, by=self.actor, **values)))


class ClientSerializer(serializers.Serializer[Any]):
    """How a client uses the data. A client whose `version` is null takes the newest version at each start."""

    reads = serializers.BooleanField(required=False, default=True)
    writes = serializers.BooleanField(required=False, default=False)
    version = WholeNumberField(required=False, default=None, allow_null=True)
    fields = serializers.ListField(  # type: ignore[assignment]  # a field of the body, not DRF's
        child=serializers.CharField(max_length=2 * MAX_FIELD), required=False, default=list, max_length=2 * MAX_FIELDS
    )
    contact = serializers.CharField(required=False, default="", allow_blank=True, max_length=2 * MAX_CONTACT)


class Clients(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/clients`."""

    @extend_schema(responses=many(ClientInfo))
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """List the declared clients by name, each with its current version."""
        registry_row, name = self.registry_and_subject(registry, subject)
        get_subject(registry_row, name, deleted=True)
        return Response([asdict(client) for client in clients_of(registry_row, name)])


class ClientOne(ProductView):
    """`/api/v1/registries/{registry}/subjects/{subject}/clients/{name}`."""

    @extend_schema(request=ClientSerializer, responses={201: None, 204: None})
    def put(self, request: Request, registry: str, subject: str, name: str) -> Response:
        """Declare a client, or confirm that it still exists: 201 for a new one, otherwise 204.

        The call is idempotent.
        """
        subject_name = parse_subject(subject)
        require(self.actor, CLIENT_ACTION, registry=registry, subject=subject_name.qualified)
        values = self.valid(ClientSerializer)
        is_new = declare_client(registry=registry, subject=subject_name, name=name, by=self.actor, **values)
        return Response(status=201 if is_new else 204)

    def delete(self, request: Request, registry: str, subject: str, name: str) -> Response:
        """Withdraw a declared client."""
        withdraw_client(registry=registry, subject=parse_subject(subject), name=name, by=self.actor)
        return Response(status=204)


class MinimumVersionSerializer(serializers.Serializer[Any]):
    """The minimum version to write with, and why older ones should no longer be used."""

    version = WholeNumberField(min_value=1, max_value=MAX_VERSION)
    reason = serializers.CharField(max_length=2 * minimum_version.MAX_REASON)


class MinimumVersionOne(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/minimum-version`."""

    @extend_schema(
        responses=shape(
            "OptionalMinimumVersion",
            minimum_version.MinimumVersionInfo,
            without=("version",),
            partial=True,
            version=int | None,
        )
    )
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """Get the minimum version with its reason; `{"version": null}` if there is none."""
        registry_row, name = self.registry_and_subject(registry, subject)
        get_subject(registry_row, name, deleted=True)
        info = minimum_version.minimum_version_of(registry_row, name)
        return Response(asdict(info) if info else {"version": None})

    @extend_schema(request=MinimumVersionSerializer, responses=minimum_version.MinimumVersionInfo)
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Set the minimum version.

        Messages that are written with an older one from now on become a finding; nothing is refused.
        """
        _, name = self.registry_and_subject(registry, subject)
        require(self.actor, minimum_version.ACTION, registry=registry, subject=name.qualified)
        values = self.valid(MinimumVersionSerializer)
        return Response(
            asdict(minimum_version.set_minimum_version(registry=registry, subject=name, by=self.actor, **values))
        )

    def delete(self, request: Request, registry: str, subject: str) -> Response:
        """Remove the minimum version."""
        _, name = self.registry_and_subject(registry, subject)
        minimum_version.clear_minimum_version(registry=registry, subject=name, by=self.actor)
        return Response(status=204)
