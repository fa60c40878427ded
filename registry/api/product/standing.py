"""The product's own API: the standing of versions, their life cycle, and those that came without a request."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.extent import require_extent
from registry.access.roles import may, require
from registry.api.product.base import AT, ProductView, as_it_was
from registry.api.standing import marked
from registry.drift.selectors.seen import last_seen
from registry.promotions import selectors as promotions
from registry.promotions import services as promotion_services
from registry.promotions.selectors.ghosts import STATES, ghost_page
from registry.subjects.models import Registry, VersionStanding
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.standing import StandingOfVersion, list_standings
from registry.subjects.selectors.versions import get_version
from registry.subjects.services.standing import MAX_MESSAGE, clear_standing, set_standing

MOST = 500


class StandingSerializer(serializers.Serializer[Any]):
    """What a version's standing should be; `ends_at` of a deprecated one alone."""

    standing = serializers.ChoiceField(choices=VersionStanding.STANDINGS)
    message = serializers.CharField(max_length=MAX_MESSAGE)
    ends_at = serializers.DateTimeField(required=False, default=None, allow_null=True)


class PageSerializer(serializers.Serializer[Any]):
    """Which standings: `after` is the id of the last one that was seen."""

    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    standing = serializers.ChoiceField(choices=VersionStanding.STANDINGS, required=False, default="", allow_blank=True)
    after = serializers.IntegerField(required=False, default=0, min_value=0, max_value=2**62)
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=MOST)


class GhostsSerializer(serializers.Serializer[Any]):
    """Which ghosts: `before` is the id of the last one that was seen."""

    environment = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)
    state = serializers.ChoiceField(choices=STATES, required=False, default="", allow_blank=True)
    before = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=2**62)
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=MOST)


class AdoptionSerializer(serializers.Serializer[Any]):
    """A ghost that should be reviewed after the fact."""

    environment = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280)
    version = serializers.CharField(max_length=12)
    reason = serializers.CharField(max_length=4000)


class SubjectView(ProductView):
    """A call about the versions of one subject."""

    def place(self, registry: str, subject: str) -> tuple[Registry, SubjectName]:
        """Where. Raises NotAllowed, RegistryNotFound, InvalidName."""
        name = parse_subject(subject)
        require(self.actor, "schema.read", registry=registry, subject=name.qualified)
        return get_registry(registry), name


class VersionStandingOne(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/versions/{version}/standing`."""

    @extend_schema(responses=None)
    def get(self, request: Request, registry: str, subject: str, version: str) -> Response:
        """The standing of a version; `{"standing": "good"}` for most."""
        place, name = self.place(registry, subject)
        info = get_version(place, name, version, deleted=True)
        told = asdict(info.standing) if info.standing else {"standing": "good"}
        return marked(Response({"version": info.version, **told}), info.standing)

    @extend_schema(request=StandingSerializer, responses=None)
    def put(self, request: Request, registry: str, subject: str, version: str) -> Response:
        """Deprecate, retire or quarantine a version: readers are told in headers; nothing stops working."""
        _, name = self.place(registry, subject)
        require(self.actor, "version.standing", registry=registry, subject=name.qualified)
        values = self.valid(StandingSerializer)
        done = set_standing(registry=registry, subject=name, version=version, by=self.actor, **values)
        return Response(asdict(done))

    @extend_schema(responses=None)
    def delete(self, request: Request, registry: str, subject: str, version: str) -> Response:
        """Bring it back into good standing."""
        _, name = self.place(registry, subject)
        clear_standing(registry=registry, subject=name, version=version, by=self.actor)
        return Response(status=204)


class Standings(ProductView):
    """`/api/v1/registries/{registry}/standings`."""

    @extend_schema(parameters=[PageSerializer], responses=None)
    def get(self, request: Request, registry: str) -> Response:
        """The versions that aren't in good standing, in the order of their ids."""
        chosen = self.filters_of(PageSerializer, request.query_params.dict())
        subject = parse_subject(chosen["subject"]) if chosen["subject"] else None
        require(self.actor, "schema.read", registry=registry, subject=subject.qualified if subject else "")
        found = list_standings(get_registry(registry), **{**chosen, "subject": subject})
        return Response([_row(item) for item in found if self._may_read(registry, item)])

    def _may_read(self, registry: str, item: StandingOfVersion) -> bool:
        return may(self.actor, "schema.read", registry=registry, subject=item.subject.qualified)


def _row(item: StandingOfVersion) -> dict[str, Any]:
    return {
        "id": item.id,
        "subject": item.subject.qualified,
        "version": item.version,
        "deleted": item.deleted,
        **asdict(item.standing),
    }


class Life(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/life`."""

    @extend_schema(parameters=[AT], responses=None)
    @as_it_was
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """What became of each version: requests, releases, standing, deletion, and whether it is a ghost."""
        place, name = self.place(registry, subject)
        found = promotions.life_of(place, name, by=self.actor)
        return Response([{**asdict(life), "states": life.states} for life in found])


class Ghosts(ProductView):
    """`/api/v1/ghosts`."""

    @extend_schema(parameters=[GhostsSerializer, AT], responses=None)
    @as_it_was
    def get(self, request: Request) -> Response:
        """Versions that came into an environment without a request, newest first, and when messages carried them last.

        `state` is `undecided`, `asked` (an open request would adopt it) or `quarantined`.
        """
        chosen = self.filters_of(GhostsSerializer, request.query_params.dict())
        require_extent(self.actor, "schema.read", registry=chosen["environment"])
        if chosen["environment"]:
            promotions.get_environment(chosen["environment"])
        subject = parse_subject(chosen["subject"]) if chosen["subject"] else None
        found = ghost_page(by=self.actor, **{**chosen, "subject": subject}).rows
        seen = last_seen([ghost.id for ghost in found])
        return Response(
            [{**asdict(ghost), "subject": ghost.subject.qualified, "seen_at": seen.get(ghost.id)} for ghost in found]
        )


class Adoptions(ProductView):
    """`/api/v1/ghosts/adoptions`."""

    @extend_schema(request=AdoptionSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Ask for the review of a ghost; answers the number of the request."""
        values = self.valid(AdoptionSerializer)
        values["subject"] = parse_subject(values["subject"])
        number = promotion_services.request_adoption(by=self.actor, **values)
        return Response({"request": number}, status=201)
