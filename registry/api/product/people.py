"""People, groups and owners, in the product's own API; for admins, but for who owns a subject."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access import selectors, services
from registry.access.roles import ROLES, require
from registry.api.product.base import AT, ProductView, as_it_was
from registry.errors import InvalidInput, InvalidName


class PersonSerializer(serializers.Serializer[Any]):
    """A person to add."""

    username = serializers.CharField(max_length=150)


class ChangedPersonSerializer(serializers.Serializer[Any]):
    """Whether an account is open, and where its mail goes; what is left out stays."""

    active = serializers.BooleanField(required=False)
    email = serializers.CharField(required=False, allow_blank=True, max_length=254)


class NameSerializer(serializers.Serializer[Any]):
    """A group's name."""

    name = serializers.CharField(max_length=150)


class PlaceSerializer(serializers.Serializer[Any]):
    """Where something counts."""

    registry = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    subject_pattern = serializers.CharField(required=False, default="*", max_length=255)


class GrantSerializer(PlaceSerializer):
    """A role to give."""

    role = serializers.ChoiceField(choices=list(ROLES))


class OwnerSerializer(PlaceSerializer):
    """An owner to name: a person or a group."""

    username = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)
    group = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)


class AdminView(ProductView):
    """Refuses everybody but admins, before anything is looked up."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the right first."""
        super().initial(request, *args, **kwargs)
        require(self.actor, "people.manage")


class People(AdminView):
    """`/api/v1/people`."""

    @extend_schema(parameters=[OpenApiParameter("q", str)], responses=None)
    def get(self, request: Request) -> Response:
        """People with their roles, groups and last sign-in; `q` is a part of a name or an address."""
        return Response([asdict(info) for info in selectors.list_people(text=request.query_params.get("q", ""))])

    @extend_schema(request=PersonSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Make an account without any role. The answer has its password, this one time."""
        values = self.valid(PersonSerializer)
        password = services.add_person(username=values["username"], by=self.actor)
        body = {"username": values["username"].strip(), "password": password}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class PersonOne(AdminView):
    """`/api/v1/people/{username}`."""

    @extend_schema(request=ChangedPersonSerializer, responses=None)
    def patch(self, request: Request, username: str) -> Response:
        """Shut or open the account, or say where its mail goes."""
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

    @extend_schema(request=GrantSerializer, responses=None)
    def post(self, request: Request, username: str) -> Response:
        """Give a role."""
        number = services.grant(username=username, by=self.actor, **self.valid(GrantSerializer))
        return Response({"grant_id": number}, status=201)


class GrantOne(AdminView):
    """`/api/v1/grants/{id}`."""

    @extend_schema(responses=None)
    def delete(self, request: Request, grant_id: int) -> Response:
        """Take a role away."""
        services.revoke_grant(grant_id=grant_id, by=self.actor)
        return Response(status=204)


class Groups(AdminView):
    """`/api/v1/groups`."""

    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        """All groups with members and roles."""
        return Response([asdict(info) for info in selectors.list_groups()])

    @extend_schema(request=NameSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Make a group."""
        name = self.valid(NameSerializer)["name"]
        services.make_group(name=name, by=self.actor)
        return Response({"name": name}, status=201)


class GroupOne(AdminView):
    """`/api/v1/groups/{name}`."""

    @extend_schema(responses=None)
    def delete(self, request: Request, name: str) -> Response:
        """Remove a group with its roles and what it owns."""
        services.remove_group(name=name, by=self.actor)
        return Response(status=204)


class GroupMember(AdminView):
    """`/api/v1/groups/{name}/members/{username}`."""

    @extend_schema(request=None, responses=None)
    def put(self, request: Request, name: str, username: str) -> Response:
        """Put a person into the group."""
        services.add_member(group=name, username=username, by=self.actor)
        return Response(status=204)

    @extend_schema(responses=None)
    def delete(self, request: Request, name: str, username: str) -> Response:
        """Take a person out of the group."""
        services.remove_member(group=name, username=username, by=self.actor)
        return Response(status=204)


class GroupGrants(AdminView):
    """`/api/v1/groups/{name}/grants`."""

    @extend_schema(request=GrantSerializer, responses=None)
    def post(self, request: Request, name: str) -> Response:
        """Give everybody in the group a role."""
        number = services.grant_to_group(group=name, by=self.actor, **self.valid(GrantSerializer))
        return Response({"grant_id": number}, status=201)


class GroupGrantOne(AdminView):
    """`/api/v1/group-grants/{id}`."""

    @extend_schema(responses=None)
    def delete(self, request: Request, grant_id: int) -> Response:
        """Take a role from a group."""
        services.remove_group_grant(grant_id=grant_id, by=self.actor)
        return Response(status=204)


class Owners(ProductView):
    """`/api/v1/owners`."""

    @extend_schema(parameters=[OpenApiParameter("registry", str), OpenApiParameter("subject", str), AT], responses=None)
    @as_it_was
    def get(self, request: Request) -> Response:
        """Who owns a `subject` of a `registry`, for whoever may read it; without a subject all rules, for admins."""
        registry, subject = request.query_params.get("registry", ""), request.query_params.get("subject", "")
        if not subject:
            require(self.actor, "people.manage")
            return Response([asdict(info) for info in selectors.list_ownerships()])
        require(self.actor, "schema.read", registry=registry, subject=subject)
        if not registry.isprintable():
            raise InvalidName("A registry's name has no character that doesn't show.")
        return Response(asdict(selectors.owners_of(registry, subject)))

    @extend_schema(request=OwnerSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Name a person or a group as owner of the subjects of a pattern."""
        require(self.actor, "people.manage")
        number = services.add_owner(by=self.actor, **self.valid(OwnerSerializer))
        return Response({"ownership_id": number}, status=201)


class OwnerOne(AdminView):
    """`/api/v1/owners/{id}`."""

    @extend_schema(responses=None)
    def delete(self, request: Request, ownership_id: int) -> Response:
        """End an ownership."""
        services.remove_owner(ownership_id=ownership_id, by=self.actor)
        return Response(status=204)
