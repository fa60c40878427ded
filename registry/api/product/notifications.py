"""The product's own API: the inbox, subscriptions, webhooks and their delivery logs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView, WholeNumberField
from registry.api.product.description import many, shape
from registry.errors import InvalidInput
from registry.notifications import selectors, services, webhooks
from registry.notifications.digests import DigestInfo, choose_digest, digest_of
from registry.notifications.models import EVERY, KINDS, SIGNED, Subscription

MOST = 200


class InboxPageSerializer(serializers.Serializer[Any]):
    """The page of the inbox."""

    unread = serializers.BooleanField(required=False, default=False)
    before = WholeNumberField(required=False, default=None, allow_null=True, min_value=1, max_value=2**63 - 1)
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MOST)


class ReadSerializer(serializers.Serializer[Any]):
    """The entries to mark: those in `ids`, or all up to the number `up_to`."""

    ids = serializers.ListField(
        child=WholeNumberField(min_value=1, max_value=2**63 - 1), required=False, max_length=1000
    )
    up_to = WholeNumberField(required=False, min_value=1, max_value=2**63 - 1)


class WishSerializer(serializers.Serializer[Any]):
    """A subscription; patterns are shell patterns. With `wanted` false the events aren't notified."""

    event = serializers.CharField(max_length=64)
    registry_pattern = serializers.CharField(required=False, default="*", max_length=255)
    subject_pattern = serializers.CharField(required=False, default="*", max_length=255)
    wanted = serializers.BooleanField(required=False, default=True)


class Notifications(ProductView):
    """`/api/v1/notifications`."""

    @extend_schema(
        parameters=[InboxPageSerializer], responses=shape("Inbox", unread=int, items=many(selectors.EntryInfo))
    )
    def get(self, request: Request) -> Response:
        """List the caller's notices, newest first. `before` is the last id of the previous page."""
        chosen = self.filters_of(InboxPageSerializer, request.query_params.dict())
        items = [asdict(entry) for entry in selectors.list_entries(self.actor, **chosen)]
        return Response({"unread": selectors.unread_entries(selectors.person_of(self.actor)).count(), "items": items})


class NotificationsRead(ProductView):
    """`/api/v1/notifications/read`."""

    @extend_schema(request=ReadSerializer, responses=shape("MarkedNotices", marked=int))
    def post(self, request: Request) -> Response:
        """Mark entries of the caller's inbox as read. `marked` is how many of them were unread."""
        values = self.valid(ReadSerializer)
        if len(values) != 1:
            raise InvalidInput("Give either ids or up_to.")
        marked = services.mark_read(by=self.actor, entries=values.get("ids"), up_to=values.get("up_to"))
        return Response({"marked": marked})


class Events(ProductView):
    """`/api/v1/notifications/events`."""

    @extend_schema(
        responses=many(shape("EventType", id=str, title=str, told_without_subscription=str, told_to_owners=bool))
    )
    def get(self, request: Request) -> Response:
        """List the event types, and the permission by which people get each without a subscription."""
        selectors.person_of(self.actor)
        return Response(selectors.event_rows())


class DigestSerializer(serializers.Serializer[Any]):
    """How often to mail unread notices, and at which hour of which time zone."""

    every = serializers.ChoiceField(choices=EVERY)
    hour = WholeNumberField(required=False, default=7)
    zone = serializers.CharField(required=False, default="UTC", max_length=64)


class DigestView(ProductView):
    """`/api/v1/notifications/digest`."""

    @extend_schema(responses=DigestInfo)
    def get(self, request: Request) -> Response:
        """Get the settings of the caller's email digest, its address, and the result of the last one."""
        return Response(asdict(digest_of(self.actor)))

    @extend_schema(request=DigestSerializer, responses=DigestInfo)
    def put(self, request: Request) -> Response:
        """Change the email digest, or turn it off."""
        choose_digest(by=self.actor, **self.valid(DigestSerializer))
        return Response(asdict(digest_of(self.actor)))


class Subscriptions(ProductView):
    """`/api/v1/notifications/subscriptions`."""

    @extend_schema(responses=many(selectors.SubscriptionInfo))
    def get(self, request: Request) -> Response:
        """List the caller's subscriptions."""
        return Response([asdict(item) for item in selectors.list_subscriptions(self.actor)])

    @extend_schema(request=WishSerializer, responses={201: selectors.SubscriptionInfo})
    def post(self, request: Request) -> Response:
        """Subscribe to an event. The same event and patterns again change `wanted`."""
        number = services.subscribe(by=self.actor, **self.valid(WishSerializer))
        made = selectors.subscription_info(Subscription.objects.get(pk=number))
        return Response(asdict(made), status=201)


class SubscriptionOne(ProductView):
    """`/api/v1/notifications/subscriptions/{id}`."""

    def delete(self, request: Request, subscription_id: int) -> Response:
        """Remove one of the caller's subscriptions."""
        services.unsubscribe(subscription_id=subscription_id, by=self.actor)
        return Response(status=204)


class NewWebhookSerializer(serializers.Serializer[Any]):
    """The webhook to create; without events it gets all of them. Patterns are shell patterns."""

    name = serializers.CharField(max_length=100)
    url = serializers.CharField(max_length=2048)
    kind = serializers.ChoiceField(choices=KINDS, required=False, default=SIGNED)
    events = serializers.ListField(
        child=serializers.CharField(max_length=64), required=False, default=list, max_length=100
    )
    registry_pattern = serializers.CharField(required=False, default="*", max_length=255)
    subject_pattern = serializers.CharField(required=False, default="*", max_length=255)


class ChangedWebhookSerializer(serializers.Serializer[Any]):
    """The fields to change."""

    name = serializers.CharField(required=False, max_length=100)
    url = serializers.CharField(required=False, max_length=2048)
    kind = serializers.ChoiceField(choices=KINDS, required=False)
    events = serializers.ListField(child=serializers.CharField(max_length=64), required=False, max_length=100)
    registry_pattern = serializers.CharField(required=False, max_length=255)
    subject_pattern = serializers.CharField(required=False, max_length=255)
    active = serializers.BooleanField(required=False)


class LogSerializer(serializers.Serializer[Any]):
    """The page of the log."""

    before = WholeNumberField(required=False, default=None, allow_null=True, min_value=1, max_value=2**63 - 1)
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MOST)


class Webhooks(ProductView):
    """`/api/v1/webhooks`."""

    @extend_schema(responses=many(selectors.WebhookInfo))
    def get(self, request: Request) -> Response:
        """List the caller's webhooks; all webhooks for people who manage registries."""
        return Response([asdict(item) for item in selectors.list_webhooks(self.actor)])

    @extend_schema(request=NewWebhookSerializer, responses={201: webhooks.NewKey})
    def post(self, request: Request) -> Response:
        """Create a webhook. The response has its key, which isn't shown again."""
        made = webhooks.create_webhook(by=self.actor, **self.valid(NewWebhookSerializer))
        return Response(asdict(made), status=201)


class WebhookOne(ProductView):
    """`/api/v1/webhooks/{id}`."""

    @extend_schema(responses=selectors.WebhookInfo)
    def get(self, request: Request, webhook: str) -> Response:
        """Get a webhook."""
        return Response(asdict(selectors.get_webhook(self.actor, webhook)))

    @extend_schema(request=ChangedWebhookSerializer, responses=selectors.WebhookInfo)
    def patch(self, request: Request, webhook: str) -> Response:
        """Change, enable or disable a webhook."""
        changes = self.valid(ChangedWebhookSerializer)
        webhooks.update_webhook(webhook=webhook, changes=changes, by=self.actor)
        return Response(asdict(selectors.get_webhook(self.actor, webhook)))

    def delete(self, request: Request, webhook: str) -> Response:
        """Remove a webhook with its delivery log."""
        webhooks.remove_webhook(webhook=webhook, by=self.actor)
        return Response(status=204)


class WebhookKey(ProductView):
    """`/api/v1/webhooks/{id}/rotate`."""

    @extend_schema(responses=webhooks.NewKey)
    def post(self, request: Request, webhook: str) -> Response:
        """Rotate the key.

        Messages are also signed with the old key for a day. The response has the new key, which isn't shown again.
        """
        return Response(asdict(webhooks.rotate_key(webhook=webhook, by=self.actor)))


class WebhookTest(ProductView):
    """`/api/v1/webhooks/{id}/test`."""

    @extend_schema(responses={202: shape("QueuedDelivery", delivery=int)})
    def post(self, request: Request, webhook: str) -> Response:
        """Queue a test message. `delivery` is its number in the delivery log."""
        return Response({"delivery": webhooks.send_test(webhook=webhook, by=self.actor)}, status=202)


class Deliveries(ProductView):
    """`/api/v1/webhooks/{id}/deliveries`."""

    @extend_schema(parameters=[LogSerializer], responses=many(selectors.DeliveryInfo))
    def get(self, request: Request, webhook: str) -> Response:
        """List deliveries with their attempts, newest first. `before` is the last id of the previous page."""
        chosen = self.filters_of(LogSerializer, request.query_params.dict())
        return Response([asdict(item) for item in selectors.list_deliveries(self.actor, webhook, **chosen)])


class Replay(ProductView):
    """`/api/v1/webhooks/{id}/deliveries/{number}/replay`."""

    @extend_schema(responses={202: None})
    def post(self, request: Request, webhook: str, delivery_id: int) -> Response:
        """Redeliver a message with the same `webhook-id`."""
        webhooks.replay(webhook=webhook, delivery_id=delivery_id, by=self.actor)
        return Response(status=202)
