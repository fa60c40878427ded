"""The product's own API: which versions data still need, what a message is, and what messages make of a new schema."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.api.product.compatibility import ReferenceSerializer
from registry.drift.data_evidence import replay_and_weigh
from registry.drift.messages import decode_message
from registry.drift.pasted import ENCODINGS, MAX_HEADERS, MAX_TEXT
from registry.drift.replay import DEFAULT_MESSAGES, MOST_MESSAGES
from registry.drift.retiring import retirement_of
from registry.errors import InvalidInput
from registry.formats.base import Reference
from registry.subjects.names import DEFAULT_CONTEXT, check_context, parse_subject
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.visible import Visible, require_references

_NO = ("0", "false", "no")


class SubjectUsage(ProductView):
    """`/api/v1/registries/{registry}/subjects/{subject}/usage`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """Where each version is used, and whether it can be retired.

        `ask=false` leaves out what the clusters say now (offsets, retention, consumer groups).
        """
        place, name = get_registry(registry), parse_subject(subject)
        require(self.actor, "schema.read", registry=place.name, subject=name.qualified)
        ask = request.query_params.get("ask", "true").lower() not in _NO
        return Response(retirement_of(place, name, by=self.actor, ask=ask).to_dict())


class MessageSerializer(serializers.Serializer[Any]):
    """A message as it was pasted; `headers` are lines of `name: value`."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    context = serializers.CharField(  # type: ignore[assignment]  # a field of the body, not DRF's
        max_length=256, required=False, default="", allow_blank=True
    )
    message = serializers.CharField(max_length=MAX_TEXT, trim_whitespace=False)
    headers = serializers.CharField(
        max_length=MAX_HEADERS, required=False, default="", allow_blank=True, trim_whitespace=False
    )
    side = serializers.ChoiceField(choices=["key", "value"], required=False, default="value")
    encoding = serializers.ChoiceField(choices=ENCODINGS, required=False, default="auto")


class DecodedMessages(ProductView):
    """`/api/v1/messages/decode`."""

    @extend_schema(request=MessageSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """The schema that a message names, its versions, and its value; `error` says where decoding stopped."""
        values = self.valid(MessageSerializer)
        found = decode_message(
            get_registry(values["registry"]),
            text=values["message"],
            headers=values["headers"],
            side=values["side"],
            encoding=values["encoding"],
            context=check_context(values["context"]) if values["context"] else DEFAULT_CONTEXT,
            by=self.actor,
        )
        return Response(found.to_dict())


class ReplaySerializer(serializers.Serializer[Any]):
    """A schema to read real messages with: a text, or a version that is there."""

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1024)
    schema = serializers.CharField(trim_whitespace=False, required=False, default="", allow_blank=True)
    schemaType = serializers.CharField(max_length=16, required=False, default="AVRO")  # noqa: N815 - the API's name
    references = ReferenceSerializer(many=True, required=False)
    version = serializers.CharField(max_length=12, required=False, default="", allow_blank=True)
    topic = serializers.CharField(max_length=249, required=False, default="", allow_blank=True)
    messages = serializers.IntegerField(min_value=1, max_value=MOST_MESSAGES, required=False, default=DEFAULT_MESSAGES)


class Replays(ProductView):
    """`/api/v1/replays`."""

    @extend_schema(request=ReplaySerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Read the newest messages of the subject's topic with a schema; nothing is registered, no value is shown."""
        values = self.valid(ReplaySerializer)
        if bool(values["schema"]) == bool(values["version"]):
            raise InvalidInput("Give a schema, or a version that is there: one of the two.")
        place, subject = get_registry(values["registry"]), parse_subject(values["subject"])
        references = [Reference(**item) for item in values.get("references", [])]
        require_references(Visible(place, self.actor), references, context=subject.context)
        found = replay_and_weigh(
            place,
            subject,
            by=self.actor,
            text=values["schema"],
            schema_type=values["schemaType"],
            references=references,
            version=values["version"],
            topic=values["topic"],
            messages=values["messages"],
        )
        return Response(found.to_dict())
