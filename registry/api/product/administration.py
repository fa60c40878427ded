"""The product's own API: people, groups, owners, linked accounts, API tokens and the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, NotRequired

from django.db import transaction
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access import selectors, services
from registry.access.contact_channels import MAX_CHANNEL
from registry.access.permission_filters import require_extent
from registry.access.roles import ALL, ROLES, SCOPES, Actor, require, scope_warning
from registry.access.tokens import DEFAULT_DAYS, MAX_DAYS, refuse_stranger
from registry.api.product.base import AT, ProductView, WholeNumberField, as_it_was
from registry.api.product.description import FILE, either, many, shape
from registry.audit.selectors import FORMS, AuditFilter, export_events
from registry.errors import InvalidInput, InvalidName
from registry.promotions.reviews import linked_accounts
from registry.search.audit_filter import events_shown

NEW_GRANT: Final = shape("NewGrant", grant_id=int, warning=NotRequired[str])


class PersonSerializer(serializers.Serializer[Any]):
    """The person to add."""

    username = serializers.CharField(max_length=150)


class ChangedPersonSerializer(serializers.Serializer[Any]):
    """Whether the account is active, and its email address; omitted fields stay."""

    active = serializers.BooleanField(required=False)
    email = serializers.CharField(required=False, allow_blank=True, max_length=254)


class NameSerializer(serializers.Serializer[Any]):
    """A group's name."""

    name = serializers.CharField(max_length=150)


class GroupChannelSerializer(serializers.Serializer[Any]):
    """Where the members talk: a URL of a chat, an email address, or a `#name`; "" removes it."""

    channel = serializers.CharField(allow_blank=True, max_length=2 * MAX_CHANNEL)


class PlaceSerializer(serializers.Serializer[Any]):
    """The scope."""

    registry = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    subject_pattern = serializers.CharField(required=False, default="*", max_length=255)


class GrantSerializer(PlaceSerializer):
    """The role to grant."""

    role = serializers.ChoiceField(choices=list(ROLES))


class OwnerSerializer(PlaceSerializer):
    """The owner: a person or a group."""

    username = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)
    group = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)


def warning_property(values: Mapping[str, Any], by: Actor) -> dict[str, str]:
    """`warning` for an answer, where a scope's pattern fits no subject yet."""
    warning = scope_warning(values["registry"], values["subject_pattern"], by)
    return {"warning": warning} if warning else {}


class AdminView(ProductView):
    """Refuses everybody but admins, before anything is looked up."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the right first."""
        super().initial(request, *args, **kwargs)
        require(self.actor, "people.manage")


class People(AdminView):
    """`/api/v1/people`."""

    @extend_schema(parameters=[OpenApiParameter("q", str)], responses=many(selectors.PersonInfo))
    def get(self, request: Request) -> Response:
        """List people with their roles, groups and last sign-in. `q` is a part of a name or an address."""
        return Response([asdict(info) for info in selectors.list_people(text=request.query_params.get("q", ""))])

    @extend_schema(request=PersonSerializer, responses={201: shape("NewAccount", username=str, password=str)})
    def post(self, request: Request) -> Response:
        """Create an account without a role. The response has its password, which isn't shown again."""
        values = self.valid(PersonSerializer)
        password = services.add_person(username=values["username"], by=self.actor)
        body = {"username": values["username"].strip(), "password": password}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class PersonOne(AdminView):
    """`/api/v1/people/{username}`."""

    @extend_schema(request=ChangedPersonSerializer)
    def patch(self, request: Request, username: str) -> Response:
        """Activate or deactivate an account, or change its email address."""
        values = self.valid(ChangedPersonSerializer)
        if not values:
            raise InvalidInput("Give active or email.")
        with transaction.atomic():
            if "active" in values:
                services.set_active(username=username, active=values["active"], by=self.actor)
            if "email" in values:
                services.set_email(username=username, email=values["email"], by=self.actor)
        return Response(status=204)


class PersonGrants(AdminView):
    """`/api/v1/people/{username}/grants`."""

    @extend_schema(request=GrantSerializer, responses={201: NEW_GRANT})
    def post(self, request: Request, username: str) -> Response:
        """Grant a role to a person."""
        values = self.valid(GrantSerializer)
        number = services.grant(username=username, by=self.actor, **values)
        return Response({"grant_id": number, **warning_property(values, self.actor)}, status=201)


class GrantOne(AdminView):
    """`/api/v1/grants/{id}`."""

    def delete(self, request: Request, grant_id: int) -> Response:
        """Revoke a role."""
        services.revoke_grant(grant_id=grant_id, by=self.actor)
        return Response(status=204)


class Groups(AdminView):
    """`/api/v1/groups`."""

    @extend_schema(responses=many(selectors.GroupInfo))
    def get(self, request: Request) -> Response:
        """List the groups with their members, roles and channels."""
        return Response([asdict(info) for info in selectors.list_groups()])

    @extend_schema(request=NameSerializer, responses={201: shape("NewGroup", name=str)})
    def post(self, request: Request) -> Response:
        """Create a group."""
        name = self.valid(NameSerializer)["name"]
        services.make_group(name=name, by=self.actor)
        return Response({"name": name}, status=201)


class GroupOne(AdminView):
    """`/api/v1/groups/{name}`."""

    @extend_schema(request=GroupChannelSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Say where the members of a group talk. Subjects that it owns have this channel unless they have their own."""
        services.set_group_channel(group=name, by=self.actor, **self.valid(GroupChannelSerializer))
        return Response(status=204)

    def delete(self, request: Request, name: str) -> Response:
        """Delete a group with its roles and ownerships."""
        services.remove_group(name=name, by=self.actor)
        return Response(status=204)


class GroupMember(AdminView):
    """`/api/v1/groups/{name}/members/{username}`."""

    def put(self, request: Request, name: str, username: str) -> Response:
        """Add a person to the group."""
        services.add_member(group=name, username=username, by=self.actor)
        return Response(status=204)

    def delete(self, request: Request, name: str, username: str) -> Response:
        """Remove a person from the group."""
        services.remove_member(group=name, username=username, by=self.actor)
        return Response(status=204)


class GroupGrants(AdminView):
    """`/api/v1/groups/{name}/grants`."""

    @extend_schema(request=GrantSerializer, responses={201: NEW_GRANT})
    def post(self, request: Request, name: str) -> Response:
        """Grant a role to everybody in the group."""
        values = self.valid(GrantSerializer)
        number = services.grant_to_group(group=name, by=self.actor, **values)
        return Response({"grant_id": number, **warning_property(values, self.actor)}, status=201)


class GroupGrantOne(AdminView):
    """`/api/v1/group-grants/{id}`."""

    def delete(self, request: Request, grant_id: int) -> Response:
        """Revoke a role of a group."""
        services.remove_group_grant(grant_id=grant_id, by=self.actor)
        return Response(status=204)


class Owners(ProductView):
    """`/api/v1/owners`."""

    @extend_schema(
        parameters=[OpenApiParameter("registry", str), OpenApiParameter("subject", str), AT],
        responses=either(many(selectors.OwnershipInfo), selectors.Owners),
    )
    @as_it_was
    def get(self, request: Request) -> Response:
        """Get the owners of a `subject` in a `registry`; the caller must be able to read it.

        Without a subject, admins get all ownership rules.
        """
        registry, subject = request.query_params.get("registry", ""), request.query_params.get("subject", "")
        if not subject:
            require(self.actor, "people.manage")
            return Response([asdict(info) for info in selectors.list_ownerships()])
        require(self.actor, "schema.read", registry=registry, subject=subject)
        if not registry.isprintable():
            raise InvalidName("A registry name can't contain invisible characters.")
        return Response(asdict(selectors.owners_of(registry, subject)))

    @extend_schema(
        request=OwnerSerializer, responses={201: shape("NewOwnership", ownership_id=int, warning=NotRequired[str])}
    )
    def post(self, request: Request) -> Response:
        """Make a person or a group the owner of the subjects that match a pattern."""
        require(self.actor, "people.manage")
        values = self.valid(OwnerSerializer)
        number = services.add_owner(by=self.actor, **values)
        return Response({"ownership_id": number, **warning_property(values, self.actor)}, status=201)


class OwnerOne(AdminView):
    """`/api/v1/owners/{id}`."""

    def delete(self, request: Request, ownership_id: int) -> Response:
        """Remove an ownership."""
        services.remove_owner(ownership_id=ownership_id, by=self.actor)
        return Response(status=204)


class SamePersonSerializer(serializers.Serializer[Any]):
    """Two usernames, and how it is known that they are one person's."""

    one = serializers.CharField(max_length=150)
    other = serializers.CharField(max_length=150)
    reason = serializers.CharField(max_length=2000)


class SamePersons(AdminView):
    """`/api/v1/same-person`."""

    @extend_schema(responses=many(linked_accounts.SamePersonInfo))
    def get(self, request: Request) -> Response:
        """List the linked accounts."""
        return Response([asdict(info) for info in linked_accounts.same_person_statements()])

    @extend_schema(request=SamePersonSerializer, responses={201: shape("NewStatement", statement_id=int)})
    def post(self, request: Request) -> Response:
        """Link two accounts, so that they count as one person where a second person is needed."""
        return Response(
            {"statement_id": linked_accounts.state_same_person(by=self.actor, **self.valid(SamePersonSerializer))},
            status=201,
        )


class SamePersonOne(AdminView):
    """`/api/v1/same-person/{id}`."""

    def delete(self, request: Request, statement_id: int) -> Response:
        """Unlink two accounts."""
        linked_accounts.withdraw_same_person(statement_id=statement_id, by=self.actor)
        return Response(status=204)


class TokenSerializer(serializers.Serializer[Any]):
    """The token to create."""

    name = serializers.CharField(max_length=100)
    scope = serializers.ChoiceField(choices=list(SCOPES), required=False, default=ALL)
    registry = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    subject_pattern = serializers.CharField(required=False, default="*", max_length=255)
    days = WholeNumberField(required=False, default=DEFAULT_DAYS, min_value=1, max_value=MAX_DAYS)


class TokenFilterSerializer(serializers.Serializer[Any]):
    """Whose tokens to list."""

    of = serializers.ChoiceField(choices=["me", "everybody"], required=False, default="me")


class Tokens(ProductView):
    """`/api/v1/tokens`."""

    @extend_schema(parameters=[TokenFilterSerializer], responses=many(selectors.TokenInfo))
    def get(self, request: Request) -> Response:
        """List the caller's tokens; with `of=everybody`, admins get all of them. The secrets aren't included."""
        refuse_stranger(self.actor)
        user_id = self.actor.user_id
        if self.filters_of(TokenFilterSerializer, request.query_params.dict())["of"] == "everybody":
            require(self.actor, "token.manage")
            user_id = None
        return Response([asdict(info) for info in selectors.list_tokens(user_id=user_id)])

    @extend_schema(
        request=TokenSerializer,
        responses={201: shape("NewToken", token_id=int, token=str, expires_at=datetime, warning=NotRequired[str])},
    )
    def post(self, request: Request) -> Response:
        """Create a token for the caller. The response has its secret as `token`, which isn't shown again."""
        refuse_stranger(self.actor)
        values = self.valid(TokenSerializer)
        made = services.make_token(username=self.actor.name, by=self.actor, **values)
        body = {"token_id": made.token_id, "token": made.secret, "expires_at": made.expires_at}
        body |= warning_property(values, self.actor)
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class TokenOne(ProductView):
    """`/api/v1/tokens/{id}`."""

    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke a token immediately."""
        services.revoke_token(token_id=token_id, by=self.actor)
        return Response(status=204)


class AuditFilterSerializer(serializers.Serializer[Any]):
    """Filters. `subject` is a qualified name; `registry` alone matches everything in the registry."""

    text = serializers.CharField(required=False, default="", max_length=200)
    actor = serializers.CharField(required=False, default="", max_length=200)
    door = serializers.CharField(required=False, default="", max_length=20, source="channel")
    table = serializers.CharField(required=False, default="", max_length=100)
    row_id = serializers.CharField(required=False, default="", max_length=100)
    registry = serializers.CharField(required=False, default="", max_length=255)
    subject = serializers.CharField(required=False, default="", max_length=1300, trim_whitespace=False)
    since = serializers.DateTimeField(required=False, default=None, allow_null=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)


class Audit(ProductView):
    """`/api/v1/audit`."""

    @extend_schema(
        parameters=[AuditFilterSerializer, OpenApiParameter("as", enum=[*FORMS], default="jsonl")],
        responses={(200, "application/x-ndjson", "text/csv"): FILE},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export the matching events that the caller can read, oldest first, as JSON lines or CSV.

        Events about people, roles, tokens and clusters belong to no registry; only callers who can read the whole audit
        get them.
        """
        require_extent(self.actor, "audit.read")
        parameters = request.query_params.dict()
        form = parameters.pop("as", "jsonl")
        values = self.filters_of(AuditFilterSerializer, parameters)
        about = events_shown(self.actor, registry=values.pop("registry"), subject=values.pop("subject"))
        export = export_events(AuditFilter(**values, about=about), form)
        response = StreamingHttpResponse(export.text, content_type=export.media)
        response["Content-Disposition"] = f'attachment; filename="{export.name}"'
        return response
