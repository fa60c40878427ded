"""The timeline of a subject's versions: requested, released, deprecated, deleted, or unapproved.

An unapproved version was added to an environment without a request, for example registered directly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef, Q, Subquery, TextField
from django.db.models.functions import Cast

from registry.access.roles import Actor, may
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput
from registry.promotions.models import Environment, PromotionRequest, Release, RequestItem
from registry.subjects.models import Registry, SchemaVersion, VersionStatus
from registry.subjects.models.versions import SchemaVersionQuerySet
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import StatusInfo, joined_status

PAGE: Final = 100
MAX_WORDS: Final = 8
#: states of an unapproved version: undecided, adoption requested, quarantined
UNDECIDED, ASKED, QUARANTINED = "undecided", "asked", VersionStatus.QUARANTINED
STATES: Final = (UNDECIDED, ASKED, QUARANTINED)
#: the open requests that would adopt a version
_ADOPTING: Final = RequestItem.objects.filter(
    request__kind=PromotionRequest.ADOPT,
    request__state__in=PromotionRequest.OPEN_STATES,
    request__target__registry=OuterRef("subject__context__registry"),
    context_name=OuterRef("subject__context__name"),
    subject_name=OuterRef("subject__name"),
    version_number=OuterRef("version"),
)
#: the versions of a remote registry's first day count as approved
FIRST_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class UnapprovedVersion:
    """A live version that was added without a request; `request` is the open request that would adopt it, or None."""

    id: int
    environment: str
    subject: SubjectName
    version: int
    schema_id: int
    schema_type: str
    fingerprint: str
    registered_at: datetime
    registered_by: str
    channel: str
    status: StatusInfo | None
    request: int | None


def unrequested(registry: Registry) -> Q | None:
    """Return the condition on a registry's versions that were added without a request, also soft-deleted ones.

    None if versions need no request: the registry isn't an environment, or it is the first one and open. One query. An
    unapproved version was registered after the environment was created, by no import and by no release of that number
    and text. A mirror imports everything: there it is a version added more than a day after the remote was connected.
    """
    return conditions([registry.pk]).get(registry.pk)


def conditions(registries: Collection[int] | None = None) -> dict[int, Q]:
    """Return the conditions of several registries (None: all environments), by registry key; one query."""
    made = AuditEvent.objects.filter(
        table=Environment._meta.db_table, operation="INSERT", row_id=Cast(OuterRef("pk"), TextField())
    ).order_by("-id")
    rows = Environment.objects.select_related("registry").annotate(made_at=Subquery(made.values("at")[:1]))
    order = list(rows.order_by("position"))
    targets = [environment for number, environment in enumerate(order) if number or environment.is_closed]
    if registries is not None:
        targets = [environment for environment in targets if environment.registry_id in registries]
    return {
        environment.registry_id: _condition(environment, environment.made_at or environment.registry.created_at)
        for environment in targets
    }


def _condition(environment: Environment, since: datetime) -> Q:
    registry = environment.registry
    released = Release.objects.filter(
        environment=environment,
        context_name=OuterRef("subject__context__name"),
        subject_name=OuterRef("subject__name"),
        version_number=OuterRef("version"),
        fingerprint=OuterRef("schema__fingerprint"),
    )
    if registry.kind == Registry.REMOTE:
        came = Q(created_at__gt=max(since, registry.created_at + FIRST_DAY))
    else:
        came = Q(created_at__gt=since, imported=False)
    return Q(~Exists(released), subject__context__registry=registry) & came


@dataclass(frozen=True)
class UnapprovedVersionPage:
    """Unapproved versions, newest first; `before` is the id after which the next page starts, None on the last."""

    rows: list[UnapprovedVersion]
    before: int | None


def unapproved_versions_of(
    *,
    by: Actor,
    environment: str = "",
    subject: SubjectName | None = None,
    before: int | None = None,
    limit: int = PAGE,
) -> list[UnapprovedVersion]:
    """Return the unapproved versions of an environment ("": all) that `by` may read, newest first.

    At most five queries. `before` is the id of the last one on the previous page.
    """
    return unapproved_version_page(by=by, environment=environment, subject=subject, before=before, limit=limit).rows


def unapproved_version_page(
    *,
    by: Actor,
    environment: str = "",
    subject: SubjectName | None = None,
    text: str = "",
    state: str = "",
    before: int | None = None,
    limit: int = PAGE,
) -> UnapprovedVersionPage:
    """Return a page of unapproved versions with all words of `text` in the name, and one of STATES ("": any).

    Raises InvalidInput for an unknown state.
    """
    if state and state not in STATES:
        raise InvalidInput(f"Unknown state {state[:40]!r} of an unapproved version. Use one of {', '.join(STATES)}.")
    order = Environment.objects.select_related("registry").order_by("position")
    names = {row.registry_id: row.registry.name for row in order if environment in ("", row.registry.name)}
    rows = _of(names, subject, text, state)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    rows = rows.select_related("schema", "subject__context", "status").defer(
        "submitted", "schema__canonical", "schema__metadata", "schema__rule_set"
    )
    versions = list(rows.visible_to(by).order_by("-pk")[: limit + 1])
    shown = versions[:limit]
    requests = _adoptions(shown)
    return UnapprovedVersionPage(
        [_info(row, names, requests) for row in shown], versions[limit - 1].pk if len(versions) > limit else None
    )


def _of(names: Mapping[int, str], subject: SubjectName | None, text: str, state: str) -> SchemaVersionQuerySet:
    condition_of_any = Q(pk__in=())
    for condition in conditions(names.keys()).values():
        condition_of_any |= condition
    rows = SchemaVersion.objects.filter(condition_of_any, deleted_at=None)
    if subject is not None:
        rows = rows.filter(subject__context__name=subject.context, subject__name=subject.subject)
    for word in text.split()[:MAX_WORDS]:
        rows = rows.filter(subject__name__icontains=word)
    if state == QUARANTINED:
        return rows.filter(status__status=QUARANTINED)
    if state:
        has_adoption = Exists(_ADOPTING)
        return rows.filter(has_adoption) if state == ASKED else rows.filter(~has_adoption, status=None)
    return rows


def is_unapproved(environment: Environment, version: SchemaVersion) -> bool:
    """Return whether a version of an environment was added without a request; three queries."""
    condition = unrequested(environment.registry)
    return condition is not None and SchemaVersion.objects.filter(condition, pk=version.pk).exists()


def _name(row: SchemaVersion) -> SubjectName:
    return SubjectName(row.subject.context.name, row.subject.name)


#: (registry's row, subject, version) → the open request
_Adoptions = Mapping[tuple[int, SubjectName, int], int]


def _adoptions(rows: Collection[SchemaVersion]) -> _Adoptions:
    if not rows:
        return {}
    items = RequestItem.objects.filter(
        request__kind=PromotionRequest.ADOPT,
        request__state__in=PromotionRequest.OPEN_STATES,
        fingerprint__in={row.schema.fingerprint for row in rows},
    )
    return {
        (registry, SubjectName(context, name), version): request
        for registry, context, name, version, request in items.values_list(
            "request__target__registry_id", "context_name", "subject_name", "version_number", "request_id"
        )
    }


def _info(row: SchemaVersion, names: Mapping[int, str], requests: _Adoptions) -> UnapprovedVersion:
    registry = row.subject.context.registry_id
    return UnapprovedVersion(
        id=row.pk,
        environment=names[registry],
        subject=_name(row),
        version=row.version,
        schema_id=row.schema.schema_id,
        schema_type=row.schema.schema_type,
        fingerprint=row.schema.fingerprint,
        registered_at=row.created_at,
        registered_by=row.created_by,
        channel=row.channel,
        status=joined_status(row),
        request=requests.get((registry, _name(row), row.version)),
    )


@dataclass(frozen=True)
class RequestOfVersion:
    """An open request for the version's text."""

    id: int
    kind: str
    state: str
    target: str


@dataclass(frozen=True)
class ReleaseOfVersion:
    """A release of the version's text: where, as which version, by which request and when."""

    environment: str
    version: int
    request: int
    released_by: str
    released_at: datetime


@dataclass(frozen=True)
class VersionTimeline:
    """The history of a version: requests, releases, status and deletion."""

    version: int
    registered_at: datetime
    registered_by: str
    deleted_at: datetime | None
    is_unapproved: bool
    status: StatusInfo | None
    requests: tuple[RequestOfVersion, ...]
    releases: tuple[ReleaseOfVersion, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """The states in words, earliest first."""
        parts = ["unapproved"] if self.is_unapproved else []
        parts += [
            f"{environment.state} (request {environment.id} to {environment.target})" for environment in self.requests
        ]
        parts += [
            f"released to {environment.environment} (request {environment.request})" for environment in self.releases
        ]
        parts += [self.status.status] if self.status else []
        return (*parts, "soft-deleted") if self.deleted_at else tuple(parts)


def timelines_of(
    registry: Registry, subject: SubjectName, *, by: Actor, only: Collection[int] | None = None
) -> tuple[VersionTimeline, ...]:
    """Return the timeline of every version of a subject (or of `only` those), newest first, also soft-deleted ones.

    Always five queries. Requests and releases are matched by text, so a version with another number in an environment
    counts. Only what `by` may read is included, and only their own drafts.
    """
    versions = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    )
    rows = list(
        (versions if only is None else versions.filter(version__in=only))
        .select_related("schema", "status")
        .defer("submitted", "schema__canonical", "schema__metadata", "schema__rule_set")
        .order_by("-version")
    )
    fingerprints = {row.schema.fingerprint for row in rows}
    unapproved = _unapproved(registry, subject)
    requests, releases = _requests(subject, fingerprints, by), _releases(subject, fingerprints, by)
    return tuple(
        VersionTimeline(
            version=row.version,
            registered_at=row.created_at,
            registered_by=row.created_by,
            deleted_at=row.deleted_at,
            is_unapproved=row.version in unapproved,
            status=joined_status(row),
            requests=tuple(requests.get(row.schema.fingerprint, ())),
            releases=tuple(releases.get(row.schema.fingerprint, ())),
        )
        for row in rows
    )


def _unapproved(registry: Registry, subject: SubjectName) -> set[int]:
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
    by_fingerprint: dict[str, list[RequestOfVersion]] = {}
    for item in items.select_related("request__target__registry").defer("request__plan").order_by("request_id"):
        request = item.request
        if request.state == PromotionRequest.DRAFT and request.requested_by_id != by.user_id:
            continue
        if not _may_read(request.target.registry.name, subject, by):
            continue
        info = RequestOfVersion(request.pk, request.kind, request.state, request.target.registry.name)
        by_fingerprint.setdefault(item.fingerprint, []).append(info)
    return by_fingerprint


def _releases(subject: SubjectName, fingerprints: Collection[str], by: Actor) -> dict[str, list[ReleaseOfVersion]]:
    rows = Release.objects.filter(
        context_name=subject.context, subject_name=subject.subject, fingerprint__in=fingerprints
    ).select_related("environment__registry", "released_by")
    by_fingerprint: dict[str, list[ReleaseOfVersion]] = {}
    for row in rows.order_by("environment__position", "id"):
        if not _may_read(row.environment.registry.name, subject, by):
            continue
        info = ReleaseOfVersion(
            environment=row.environment.registry.name,
            version=row.version_number,
            request=row.request_id,
            released_by=row.released_by.get_username(),
            released_at=row.released_at,
        )
        by_fingerprint.setdefault(row.fingerprint, []).append(info)
    return by_fingerprint


def _may_read(registry: str, subject: SubjectName, by: Actor) -> bool:
    return may(by, "schema.read", registry=registry, subject=subject.qualified)
