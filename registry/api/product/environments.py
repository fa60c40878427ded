"""The product's own API: environments, their rules, freezes, break-glass, and changes that need a second person."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar, Final

from django.db import models
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import may, may_somewhere, require
from registry.api.product.base import AT, ProductView, WholeNumberField, as_it_was
from registry.api.product.description import body_of, many, shape
from registry.promotions import services
from registry.promotions.environments import selectors
from registry.promotions.environments.change_requests import ACTIONS
from registry.promotions.environments.freezes import MAX_LAST_DAYS, MIDNIGHT
from registry.promotions.environments.locking import require_any_permission
from registry.promotions.models import Environment, RecurringFreeze, ReviewRule
from registry.promotions.models.environments import SETTINGS, setting_type
from registry.promotions.reviews.reviewers import shortages

READ = "schema.read"
BREAK_GLASS: Final = shape("BreakGlass", selectors.BreakGlassInfo, "is_confirmed")
_SETTINGS: Final[dict[str, Any]] = {name: setting_type(name) for name in SETTINGS}
ENVIRONMENT: Final = shape(
    "Environment",
    selectors.EnvironmentInfo,
    "is_frozen",
    "has_red",
    without=("settings",),
    break_glass=many(BREAK_GLASS),
    **_SETTINGS,
)
NEW_FREEZE: Final = shape("NewFreeze", freeze_id=int)


class EnvironmentSerializer(serializers.ModelSerializer[Environment]):
    """The settings to change; omitted ones stay."""

    serializer_field_mapping: ClassVar[Any] = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.PositiveSmallIntegerField: WholeNumberField,
    }

    class Meta:
        model = Environment
        fields = tuple(SETTINGS)
        extra_kwargs: ClassVar[Any] = {
            name: {"required": False, "min_value": 0} for name in SETTINGS if setting_type(name) is int
        }


class RuleSerializer(serializers.Serializer[Any]):
    """Whose approvals are required."""

    subject_pattern = serializers.CharField(required=False, default="*", max_length=1024)
    verdict = serializers.ChoiceField(choices=[ReviewRule.ANY, ReviewRule.BREAKING], required=False, default="any")
    reviewers = serializers.ChoiceField(choices=[ReviewRule.OWNERS, ReviewRule.ROLE, ReviewRule.GROUP])
    name = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)
    count = WholeNumberField(required=False, default=1, min_value=1, max_value=20)


class FreezeSerializer(serializers.Serializer[Any]):
    """The time in which nothing is applied, and why."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField(max_length=2000)


class RecurringFreezeSerializer(serializers.Serializer[Any]):
    """A recurring time: weekly from a day (0 is Monday) and time to another, or the last days of each month."""

    kind = serializers.ChoiceField(choices=list(RecurringFreeze.KINDS))
    zone = serializers.CharField(max_length=64)
    from_day = WholeNumberField(required=False, min_value=0, max_value=6)
    from_time = serializers.TimeField(required=False, default=MIDNIGHT)
    to_day = WholeNumberField(required=False, min_value=0, max_value=6)
    to_time = serializers.TimeField(required=False, default=MIDNIGHT)
    last_days = WholeNumberField(required=False, min_value=1, max_value=MAX_LAST_DAYS)
    reason = serializers.CharField(max_length=2000)


class BreakGlassSerializer(serializers.Serializer[Any]):
    """Why the closed environment must be changed directly, and for how long."""

    reason = serializers.CharField(max_length=2000)
    minutes = WholeNumberField(required=False, default=60, min_value=1, max_value=240)


class SecondPersonSerializer(serializers.Serializer[Any]):
    """The second person's comment."""

    comment = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=2000,
        help_text="Required to reject a change, otherwise optional.",
    )


class Environments(ProductView):
    """`/api/v1/environments`."""

    @extend_schema(parameters=[AT], responses=many(ENVIRONMENT))
    @as_it_was
    def get(self, request: Request) -> Response:
        """List the environments that the caller can read, in promotion order."""
        if not may_somewhere(self.actor, READ):
            require(self.actor, READ)
        infos = (info for info in selectors.environment_infos() if may(self.actor, READ, registry=info.name))
        return Response([_body(info) for info in infos])


class EnvironmentOne(ProductView):
    """`/api/v1/environments/{name}`."""

    @extend_schema(parameters=[AT], responses=ENVIRONMENT)
    @as_it_was
    def get(self, request: Request, registry: str) -> Response:
        """Get an environment."""
        require(self.actor, READ, registry=registry)
        return Response(_body(selectors.environment_info(registry)))

    @extend_schema(
        request=EnvironmentSerializer, responses=shape("ChangedEnvironment", ENVIRONMENT, warnings=many(str))
    )
    def patch(self, request: Request, registry: str) -> Response:
        """Change the settings of an environment. Opening a closed one requires open break-glass."""
        require(self.actor, "registry.manage", registry=registry)
        services.change_environment(environment=registry, by=self.actor, **self.valid(EnvironmentSerializer))
        info = selectors.environment_info(registry)
        return Response({**_body(info), "warnings": shortages(info)})


class Rules(ProductView):
    """`/api/v1/environments/{name}/rules`."""

    @extend_schema(request=RuleSerializer, responses={201: shape("NewReviewRule", rule_id=int, warnings=many(str))})
    def post(self, request: Request, registry: str) -> Response:
        """Add a review rule that requires approvals by owners, a role or a group.

        `warnings` names the approvals that too few people can give.
        """
        require(self.actor, "registry.manage", registry=registry)
        number = services.add_review_rule(environment=registry, by=self.actor, **self.valid(RuleSerializer))
        return Response({"rule_id": number, "warnings": shortages(selectors.environment_info(registry))}, status=201)


class RuleOne(ProductView):
    """`/api/v1/review-rules/{id}`."""

    def delete(self, request: Request, rule_id: int) -> Response:
        """Remove a review rule."""
        services.remove_review_rule(rule_id=rule_id, by=self.actor)
        return Response(status=204)


class Freezes(ProductView):
    """`/api/v1/environments/{name}/freezes`."""

    @extend_schema(request=FreezeSerializer, responses={201: NEW_FREEZE})
    def post(self, request: Request, registry: str) -> Response:
        """Add a freeze, during which nothing is applied."""
        require(self.actor, "registry.manage", registry=registry)
        number = services.add_freeze(environment=registry, by=self.actor, **self.valid(FreezeSerializer))
        return Response({"freeze_id": number}, status=201)


class FreezeOne(ProductView):
    """`/api/v1/freezes/{id}`."""

    def delete(self, request: Request, freeze_id: int) -> Response:
        """End a freeze, or cancel a future one."""
        services.remove_freeze(freeze_id=freeze_id, by=self.actor)
        return Response(status=204)


class RecurringFreezes(ProductView):
    """`/api/v1/environments/{name}/recurring-freezes`."""

    @extend_schema(request=RecurringFreezeSerializer, responses={201: NEW_FREEZE})
    def post(self, request: Request, registry: str) -> Response:
        """Add a recurring freeze in a time zone."""
        require(self.actor, "registry.manage", registry=registry)
        values = self.valid(RecurringFreezeSerializer)
        number = services.add_recurring_freeze(environment=registry, by=self.actor, **values)
        return Response({"freeze_id": number}, status=201)


class RecurringFreezeOne(ProductView):
    """`/api/v1/recurring-freezes/{id}`."""

    def delete(self, request: Request, freeze_id: int) -> Response:
        """Remove a recurring freeze."""
        services.remove_recurring_freeze(freeze_id=freeze_id, by=self.actor)
        return Response(status=204)


class BreakGlasses(ProductView):
    """`/api/v1/environments/{name}/break-glass`."""

    @extend_schema(responses=many(BREAK_GLASS))
    def get(self, request: Request, registry: str) -> Response:
        """List the last hundred uses of break-glass, newest first."""
        require(self.actor, READ, registry=registry)
        selectors.environment_info(registry)
        return Response([body_of(BREAK_GLASS, info) for info in selectors.break_glass_history(registry)])

    @extend_schema(request=BreakGlassSerializer, responses={201: shape("NewBreakGlass", break_glass_id=int)})
    def post(self, request: Request, registry: str) -> Response:
        """Open break-glass for the caller."""
        require(self.actor, "registry.manage", registry=registry)
        number = services.open_break_glass(environment=registry, by=self.actor, **self.valid(BreakGlassSerializer))
        return Response({"break_glass_id": number}, status=201)


class BreakGlassClosing(ProductView):
    """`/api/v1/break-glass/{id}/close`."""

    def post(self, request: Request, break_glass_id: int) -> Response:
        """Close break-glass early."""
        services.close_break_glass(break_glass_id=break_glass_id, by=self.actor)
        return Response(status=204)


class BreakGlassConfirmation(ProductView):
    """`/api/v1/break-glass/{id}/confirm`."""

    @extend_schema(request=SecondPersonSerializer)
    def post(self, request: Request, break_glass_id: int) -> Response:
        """Confirm, as a second person, that the use of break-glass was justified."""
        services.confirm_break_glass(break_glass_id=break_glass_id, by=self.actor, **self.valid(SecondPersonSerializer))
        return Response(status=204)


def _body(info: selectors.EnvironmentInfo) -> dict[str, Any]:
    return body_of(ENVIRONMENT, info, **info.settings)


class EnvironmentChangeSerializer(serializers.Serializer[Any]):
    """`action` and `values` from the `details` of the refused call, and the reason for the change."""

    action = serializers.ChoiceField(choices=list(ACTIONS))
    values = serializers.DictField()  # type: ignore[assignment]  # a field of the body, not DRF's
    reason = serializers.CharField(max_length=2000)


class EnvironmentChanges(ProductView):
    """`/api/v1/environments/{name}/changes`."""

    @extend_schema(responses=many(selectors.EnvironmentChangeInfo))
    def get(self, request: Request, registry: str) -> Response:
        """List the last hundred change requests, pending ones first."""
        require(self.actor, "schema.read", registry=registry)
        selectors.environment_info(registry)
        return Response([asdict(info) for info in selectors.environment_changes(registry)])

    @extend_schema(request=EnvironmentChangeSerializer, responses={201: shape("NewEnvironmentChange", change_id=int)})
    def post(self, request: Request, registry: str) -> Response:
        """Request a change that weakens the rules of a closed environment; another reviewer there approves it."""
        require_any_permission(self.actor, "client.change")
        number = services.request_environment_change(
            environment=registry, by=self.actor, **self.valid(EnvironmentChangeSerializer)
        )
        return Response({"change_id": number}, status=201)


class EnvironmentChangeApproval(ProductView):
    """`/api/v1/environment-changes/{id}/approve`."""

    @extend_schema(request=SecondPersonSerializer)
    def post(self, request: Request, change_id: int) -> Response:
        """Approve a change as a second person, which makes it."""
        services.approve_environment_change(change_id=change_id, by=self.actor, **self.valid(SecondPersonSerializer))
        return Response(status=204)


class EnvironmentChangeRejection(ProductView):
    """`/api/v1/environment-changes/{id}/reject`."""

    @extend_schema(request=SecondPersonSerializer)
    def post(self, request: Request, change_id: int) -> Response:
        """Reject a change as a second person, with a comment."""
        services.reject_environment_change(change_id=change_id, by=self.actor, **self.valid(SecondPersonSerializer))
        return Response(status=204)


class EnvironmentChangeWithdrawal(ProductView):
    """`/api/v1/environment-changes/{id}/withdraw`."""

    def post(self, request: Request, change_id: int) -> Response:
        """Withdraw a change. Its requester and people who manage the environment can."""
        services.withdraw_environment_change(change_id=change_id, by=self.actor)
        return Response(status=204)
