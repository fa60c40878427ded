"""The life cycle of a subject's versions: asked for, released where, deprecated, deleted, or come without a request."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from registry.access.roles import Actor, may
from registry.promotions.models import PromotionRequest, Release, RequestItem
from registry.promotions.selectors.ghosts import unrequested
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.standing import Standing, joined_standing


@dataclass(frozen=True)
class RequestOfVersion:
    """An open request that carries the version's text: draft, in review, approved, …"""

    id: int
    kind: str
    state: str
    target: str


@dataclass(frozen=True)
class ReleaseOfVersion:
    """Where, as which version, by which request and when the text was released."""

    environment: str
    version: int
    request: int
    released_by: str
    released_at: datetime


@dataclass(frozen=True)
class VersionLife:
    """What became of a version so far."""

    version: int
    registered_at: datetime
    registered_by: str
    deleted_at: datetime | None
    is_ghost: bool
    standing: Standing | None
    requests: tuple[RequestOfVersion, ...]
    releases: tuple[ReleaseOfVersion, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """The states in words, from the beginning of its life to the end."""
        words = ["ghost"] if self.is_ghost else []
        words += [f"{each.state} (request {each.id} to {each.target})" for each in self.requests]
        words += [f"released to {each.environment} (request {each.request})" for each in self.releases]
        words += [self.standing.standing] if self.standing else []
        return (*words, "soft-deleted") if self.deleted_at else tuple(words)


def life_of(
    registry: Registry, subject: SubjectName, *, by: Actor, only: Collection[int] | None = None
) -> tuple[VersionLife, ...]:
    """The life of every version of a subject (or of `only` those), newest first, soft-deleted ones too.

    Six queries, however many there are.

    What is asked for and released goes by the text: a version that an environment has under another number counts. Told
    is what `by` may read of the subject in the environment; of drafts they see their own alone.
    """
    versions = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    )
    rows = list(
        (versions if only is None else versions.filter(version__in=only))
        .select_related("schema", "standing")
        .defer("submitted", "schema__canonical", "schema__metadata", "schema__rule_set")
        .order_by("-version")
    )
    fingerprints = {row.schema.fingerprint for row in rows}
    ghosts = _ghosts(registry, subject)
    requests, releases = _requests(subject, fingerprints, by), _releases(subject, fingerprints, by)
    return tuple(
        VersionLife(
            version=row.version,
            registered_at=row.created_at,
            registered_by=row.created_by,
            deleted_at=row.deleted_at,
            is_ghost=row.version in ghosts,
            standing=joined_standing(row),
            requests=tuple(requests.get(row.schema.fingerprint, ())),
            releases=tuple(releases.get(row.schema.fingerprint, ())),
        )
        for row in rows
    )


def _ghosts(registry: Registry, subject: SubjectName) -> set[int]:
    condition = unrequested(registry)
    if condition is None:
        return set()
    rows = SchemaVersion.objects.filter(
        condition, subject__context__name=subject.context, subject__name=subject.subject
    )
    return set(rows.values_list("version", flat=True))


def _requests(subject: SubjectName, fingerprints: Collection[str], by: Actor) -> dict[str, list[RequestOfVersion]]:
    items = RequestItem.objects.filter(
        context_name=subject.context,
        subject_name=subject.subject,
        fingerprint__in=fingerprints,
        request__state__in=PromotionRequest.OPEN_STATES,
    )
    found: dict[str, list[RequestOfVersion]] = {}
    for item in items.select_related("request__target__registry").defer("request__plan").order_by("request_id"):
        request = item.request
        if request.state == PromotionRequest.DRAFT and request.requested_by_id != by.user_id:
            continue
        if not _may_read(request.target.registry.name, subject, by):
            continue
        told = RequestOfVersion(request.pk, request.kind, request.state, request.target.registry.name)
        found.setdefault(item.fingerprint, []).append(told)
    return found


def _releases(subject: SubjectName, fingerprints: Collection[str], by: Actor) -> dict[str, list[ReleaseOfVersion]]:
    rows = Release.objects.filter(
        context_name=subject.context, subject_name=subject.subject, fingerprint__in=fingerprints
    ).select_related("environment__registry", "released_by")
    found: dict[str, list[ReleaseOfVersion]] = {}
    for row in rows.order_by("environment__position", "id"):
        if not _may_read(row.environment.registry.name, subject, by):
            continue
        told = ReleaseOfVersion(
            environment=row.environment.registry.name,
            version=row.version_number,
            request=row.request_id,
            released_by=row.released_by.get_username(),
            released_at=row.released_at,
        )
        found.setdefault(row.fingerprint, []).append(told)
    return found


def _may_read(registry: str, subject: SubjectName, by: Actor) -> bool:
    return may(by, "schema.read", registry=registry, subject=subject.qualified)
