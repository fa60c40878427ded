"""Registries in the product's own API: what is there, and those elsewhere that are mirrored."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import Actor, may_somewhere, require
from registry.api.product.base import ProductView
from registry.errors import RegistryNotFound
from registry.subjects.remote_probe import Probe
from registry.subjects.selectors.registries import RegistryEntry, registries_for
from registry.subjects.services.remotes import (
    add_remote_registry,
    remove_remote_registry,
    try_registry,
    update_remote_registry,
)
from registry.subjects.services.sync_queue import EVERY_SECONDS, get_mirror, request_sync
from registry.subjects.tasks import sync_remote


class AddressSerializer(serializers.Serializer[Any]):
    """Where a registry is; `secret` is the name of the secret that signs in, never the secret."""

    url = serializers.CharField(max_length=2048)
    user = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    secret = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)


class MirrorSerializer(AddressSerializer):
    """How a registry elsewhere is mirrored."""

    every_seconds = serializers.IntegerField(required=False, default=EVERY_SECONDS)


class NewMirrorSerializer(MirrorSerializer):
    """A registry to connect, and its name here."""

    name = serializers.CharField(max_length=255)


class Registries(ProductView):
    """`/api/v1/registries`."""

    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        """All registries with what is in them; mirrors with their age and what is wrong with them."""
        if not may_somewhere(self.actor, "schema.read"):
            require(self.actor, "schema.read")
        return Response([asdict(entry) for entry in registries_for(self.actor)])

    @extend_schema(request=NewMirrorSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Mirror a registry elsewhere from now on; its first sync is queued."""
        values = self.valid(NewMirrorSerializer)
        sync_remote.delay_on_commit(add_remote_registry(by=self.actor, **values))
        return Response(asdict(_entry(self.actor, values["name"])), status=201)


class RegistryOne(ProductView):
    """`/api/v1/registries/{registry}`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str) -> Response:
        """One registry."""
        require(self.actor, "schema.read", registry=registry)
        return Response(asdict(_entry(self.actor, registry)))

    @extend_schema(request=MirrorSerializer, responses=None)
    def put(self, request: Request, registry: str) -> Response:
        """How a mirror is reached from its next sync on."""
        require(self.actor, "registry.manage", registry=registry)
        update_remote_registry(name=registry, by=self.actor, **self.valid(MirrorSerializer))
        return Response(asdict(_entry(self.actor, registry)))

    @extend_schema(request=None, responses=None)
    def delete(self, request: Request, registry: str) -> Response:
        """End a mirror, with all that was mirrored; nothing changes at the registry that it was read from."""
        remove_remote_registry(name=registry, by=self.actor)
        return Response(status=204)


class RegistryRefresh(ProductView):
    """`/api/v1/registries/{registry}/refresh`."""

    @extend_schema(request=None, responses=None)
    def post(self, request: Request, registry: str) -> Response:
        """Read a mirror anew: one sync is queued, however often it is asked for; `queued` false where one was already."""
        number = request_sync(name=registry, by=self.actor)
        if number is not None:
            sync_remote.delay_on_commit(number)
        return Response({"queued": number is not None}, status=202)


class RegistryTest(ProductView):
    """`/api/v1/registries/{registry}/test`."""

    @extend_schema(request=None, responses=None)
    def post(self, request: Request, registry: str) -> Response:
        """Test the connection of a mirror; nothing is changed, here or there."""
        row = get_mirror(registry, self.actor, "registry.manage")
        return Response(_told(try_registry(url=row.url, user=row.user, secret=row.secret, by=self.actor)))


class AddressTest(ProductView):
    """`/api/v1/registry-tests`."""

    @extend_schema(request=AddressSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Test an address before it is connected; nothing is kept."""
        require(self.actor, "registry.manage")
        return Response(_told(try_registry(by=self.actor, **self.valid(AddressSerializer))))


def _entry(actor: Actor, name: str) -> RegistryEntry:
    found = next((entry for entry in registries_for(actor) if entry.name == name), None)
    if found is None:
        raise RegistryNotFound(f"Registry '{name[:255]}' not found.", registry=name[:255])
    return found


def _told(found: Probe) -> dict[str, Any]:
    """A test with its outcome."""
    return {"ok": found.ok, **asdict(found)}
