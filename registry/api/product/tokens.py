"""API tokens, in the product's own API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access import selectors, services
from registry.access.roles import require
from registry.access.scopes import ALL, SCOPES
from registry.access.services.tokens import DEFAULT_DAYS, MAX_DAYS, refuse_stranger
from registry.api.product.base import ProductView


class TokenSerializer(serializers.Serializer[Any]):
    """A token to make."""

    name = serializers.CharField(max_length=100)
    scope = serializers.ChoiceField(choices=list(SCOPES), required=False, default=ALL)
    registry = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    subject_pattern = serializers.CharField(required=False, default="*", max_length=255)
    days = serializers.IntegerField(required=False, default=DEFAULT_DAYS, min_value=1, max_value=MAX_DAYS)


class Tokens(ProductView):
    """`/api/v1/tokens`."""

    @extend_schema(parameters=[OpenApiParameter("of", enum=["me", "everybody"], default="me")], responses=None)
    def get(self, request: Request) -> Response:
        """One's own tokens; `of=everybody` all, for admins. None says what a token is."""
        refuse_stranger(self.actor)
        user_id = self.actor.user_id
        if request.query_params.get("of") == "everybody":
            require(self.actor, "token.manage")
            user_id = None
        return Response([asdict(info) for info in selectors.list_tokens(user_id=user_id)])

    @extend_schema(request=TokenSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Make a token for oneself. The answer has it as `token`, this one time."""
        refuse_stranger(self.actor)
        values = self.valid(TokenSerializer)
        made = services.make_token(username=self.actor.name, by=self.actor, **values)
        body = {"token_id": made.token_id, "token": made.secret, "expires_at": made.expires_at}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class TokenOne(ProductView):
    """`/api/v1/tokens/{id}`."""

    @extend_schema(responses=None)
    def delete(self, request: Request, token_id: int) -> Response:
        """End a token at once."""
        services.revoke_token(token_id=token_id, by=self.actor)
        return Response(status=204)
