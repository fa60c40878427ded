"""The product's own API: one's own drafts of schemas."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import Actor
from registry.api.product.base import ProductView
from registry.api.product.compatibility import ReferenceSerializer
from registry.api.product.promotion_bodies import again_field, number_field, references_of, text_field
from registry.errors import NotSignedIn
from registry.promotions import selectors, services
from registry.promotions.services.drafts import MAX_ORIGIN, require_author
from registry.promotions.services.requesting import MAX_REFERENCES
from registry.subjects.names import parse_subject


class DraftSerializer(serializers.Serializer[Any]):
    """A schema as far as it is written; it takes the place of the earlier draft of the subject.

    `reason` becomes the request's; `finding` is the number of the drift finding that it answers, `origin` any words.
    `seen` is `changed_at` of the draft as it was read, empty for none: if it was changed since, the answer is 409.
    """

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1280)
    schema = serializers.CharField(trim_whitespace=False, allow_blank=True)
    schemaType = serializers.CharField(max_length=16, required=False, default="AVRO")  # noqa: N815 - the API's name
    references = serializers.ListField(child=ReferenceSerializer(), required=False, max_length=MAX_REFERENCES)
    reason = text_field()
    origin = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_ORIGIN)
    seen = serializers.CharField(required=False, default=None, allow_null=True, allow_blank=True, max_length=40)
    finding = number_field()
    again_of = again_field()


class Drafts(ProductView):
    """`/api/v1/drafts`."""

    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        """One's drafts without their texts, the one that was changed last first."""
        return Response([asdict(info) for info in selectors.list_drafts(_author(self.actor))])

    @extend_schema(request=DraftSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Keep a draft; it isn't read, so it may be half a schema."""
        values = self.valid(DraftSerializer)
        number = services.save_draft(
            registry=values["registry"],
            subject=parse_subject(values["subject"]),
            text=values["schema"],
            schema_type=values["schemaType"],
            references=references_of(values),
            reason=values["reason"],
            origin=values["origin"],
            finding=values["finding"],
            again_of=values["again_of"],
            seen=values["seen"],
            by=self.actor,
        )
        return Response(asdict(selectors.get_draft(number, user_id=_author(self.actor))), status=201)


class DraftOne(ProductView):
    """`/api/v1/drafts/{id}`."""

    @extend_schema(responses=None)
    def get(self, request: Request, draft_id: str) -> Response:
        """One of one's drafts."""
        return Response(asdict(selectors.get_draft(int(draft_id), user_id=_author(self.actor))))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, draft_id: str) -> Response:
        """Throw one away."""
        services.delete_draft(draft_id=int(draft_id), by=self.actor)
        return Response(status=204)


def _author(by: Actor) -> int:
    """Who asks for their own. Raises NotSignedIn, NotAllowed."""
    require_author(by)
    if by.user_id is None:
        raise NotSignedIn("Drafts are somebody's own: sign in.")
    return by.user_id
