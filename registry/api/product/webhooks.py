"""The product's own API: webhooks, their keys and their delivery logs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView
from registry.api.product.notifications import MOST
from registry.errors import InvalidInput
from registry.notifications import webhooks
from registry.notifications.models import KINDS, SIGNED
from registry.notifications.selectors import get_webhook, list_deliveries, list_webhooks


class NewWebhookSerializer(serializers.Serializer[Any]):
    """A webhook to make; no events: all of them. Patterns are shell patterns."""

    name = serializers.CharField(max_length=100)
    url = serializers.CharField(max_length=2048)
    kind = serializers.ChoiceField(choices=KINDS, required=False, default=SIGNED)
    events = serializers.ListField(
        child=serializers.CharField(max_length=64), required=False, default=list, max_length=100
    )
    registry_pattern = serializers.CharField(required=False, default="*", max_length=255)
    subject_pattern = serializers.CharField(required=False, default="*", max_length=255)


class ChangedWebhookSerializer(serializers.Serializer[Any]):
    """What is to change."""

    name = serializers.CharField(required=False, max_length=100)
    url = serializers.CharField(required=False, max_length=2048)
    kind = serializers.ChoiceField(choices=KINDS, required=False)
    events = serializers.ListField(child=serializers.CharField(max_length=64), required=False, max_length=100)
    registry_pattern = serializers.CharField(required=False, max_length=255)
    subject_pattern = serializers.CharField(required=False, max_length=255)
    active = serializers.BooleanField(required=False)


class WebhookSerializer(NewWebhookSerializer):
    """A webhook; its key is shown when it is made and rotated, and never again."""

    id = serializers.CharField()
    owner = serializers.CharField()
    host = serializers.CharField()
    active = serializers.BooleanField()
    key_version = serializers.IntegerField()
    disabled_reason = serializers.CharField()
    failing_since = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class KeySerializer(serializers.Serializer[Any]):
    """A webhook's id and key."""

    webhook = serializers.CharField()
    secret = serializers.CharField()


class LogSerializer(serializers.Serializer[Any]):
    """Which part of the log."""

    before = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=2**63 - 1)
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=MOST)


class Webhooks(ProductView):
    """`/api/v1/webhooks`."""

    @extend_schema(responses=WebhookSerializer(many=True))
    def get(self, request: Request) -> Response:
        """One's own webhooks; all of them for who manages registries."""
        return Response([asdict(item) for item in list_webhooks(self.actor)])

    @extend_schema(request=NewWebhookSerializer, responses={201: KeySerializer})
    def post(self, request: Request) -> Response:
        """Make a webhook. The answer has its key, this one time."""
        made = webhooks.create_webhook(by=self.actor, **self.valid(NewWebhookSerializer))
        return Response(asdict(made), status=201)


class WebhookOne(ProductView):
    """`/api/v1/webhooks/{id}`."""

    @extend_schema(responses=WebhookSerializer)
    def get(self, request: Request, webhook: str) -> Response:
        """One webhook."""
        return Response(asdict(get_webhook(self.actor, webhook)))

    @extend_schema(request=ChangedWebhookSerializer, responses=WebhookSerializer)
    def patch(self, request: Request, webhook: str) -> Response:
        """Change a webhook, or switch it off and on."""
        changes = self.valid(ChangedWebhookSerializer)
        unknown = sorted(set(request.data) - set(ChangedWebhookSerializer().fields))
        if unknown:
            raise InvalidInput(f"A webhook has no {unknown[0][:40]!r} to change.")
        webhooks.update_webhook(webhook=webhook, changes=changes, by=self.actor)
        return Response(asdict(get_webhook(self.actor, webhook)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, webhook: str) -> Response:
        """Remove a webhook with its log."""
        webhooks.remove_webhook(webhook=webhook, by=self.actor)
        return Response(status=204)


class WebhookKey(ProductView):
    """`/api/v1/webhooks/{id}/rotate`."""

    @extend_schema(request=None, responses=KeySerializer)
    def post(self, request: Request, webhook: str) -> Response:
        """Sign with a new key from now on, and for a day with the former one too. The answer has the new one."""
        return Response(asdict(webhooks.rotate_key(webhook=webhook, by=self.actor)))


class WebhookTest(ProductView):
    """`/api/v1/webhooks/{id}/test`."""

    @extend_schema(request=None, responses={202: OpenApiResponse(description="`delivery`: its number in the log")})
    def post(self, request: Request, webhook: str) -> Response:
        """Queue a test message."""
        return Response({"delivery": webhooks.send_test(webhook=webhook, by=self.actor)}, status=202)


class Deliveries(ProductView):
    """`/api/v1/webhooks/{id}/deliveries`."""

    @extend_schema(
        parameters=[LogSerializer], responses={200: OpenApiResponse(description="deliveries with their attempts")}
    )
    def get(self, request: Request, webhook: str) -> Response:
        """The delivery log, newest first; go on with `before`, the number of the last one."""
        chosen = self.valid_of(LogSerializer, request.query_params.dict())
        return Response([asdict(item) for item in list_deliveries(self.actor, webhook, **chosen)])


class Replay(ProductView):
    """`/api/v1/webhooks/{id}/deliveries/{number}/replay`."""

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, webhook: str, delivery_id: int) -> Response:
        """Deliver a message again, with the same `webhook-id`."""
        webhooks.replay(webhook=webhook, delivery_id=delivery_id, by=self.actor)
        return Response(status=202)
