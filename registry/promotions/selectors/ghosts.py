"""Ghosts: versions that came into an environment without a request, as by registration with its registry directly."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from registry.access.extent import extent_of
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput
from registry.promotions.models import Environment, PromotionRequest, Release, RequestItem
from registry.subjects.models import Registry, SchemaVersion, VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.naming import qualified
from registry.subjects.selectors.standing import Standing, joined_standing

PAGE: Final = 100
MAX_WORDS: Final = 8
#: a ghost's state: nobody has decided of it, its adoption is asked for, it is in quarantine
UNDECIDED, ASKED, QUARANTINED = "undecided", "asked", VersionStanding.QUARANTINED
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
#: what a remote registry held when it was connected is taken as it is
FIRST_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class GhostInfo:
    """A live version that no request brought; `request` is the open one that would adopt it, None for none."""

    id: int
    environment: str
    subject: SubjectName
    version: int
    schema_id: int
    schema_type: str
    fingerprint: str
    registered_at: datetime
    registered_by: str
    door: str
    standing: Standing | None
    request: int | None


def unrequested(registry: Registry) -> Q | None:
    """The condition on versions of a registry that came without a request, soft-deleted ones too.

    None where versions need none: it is no environment, or the first one and open. Two queries. A ghost was registered
    after the environment was made, by no import and by no release of that number and text. A mirror imports all it has:
    there it is what came more than a day after the remote was connected.
    """
    return conditions([registry.pk]).get(registry.pk)


def conditions(registries: Collection[int] | None = None) -> dict[int, Q]:
    """The same for several registries (None: all environments), by their rows; two queries."""
    order = list(Environment.objects.select_related("registry").order_by("position"))
    targets = [each for number, each in enumerate(order) if number or each.is_closed]
    if registries is not None:
        targets = [each for each in targets if each.registry_id in registries]
    since = _made_at(targets)
    return {each.registry_id: _condition(each, since.get(each.pk, each.registry.created_at)) for each in targets}


def _made_at(environments: Collection[Environment]) -> dict[int, datetime]:
    """Since when they are environments: the audit has it, in the transaction that made them."""
    if not environments:
        return {}
    made = AuditEvent.objects.filter(
        table=Environment._meta.db_table, operation="INSERT", row_id__in=[str(each.pk) for each in environments]
    )
    return {int(row_id): at for row_id, at in made.order_by("id").values_list("row_id", "at")}


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
class GhostPage:
    """Ghosts, newest first; `before` is the id that the next page begins after, None on the last."""

    rows: list[GhostInfo]
    before: int | None


def ghosts_of(
    *,
    by: Actor,
    environment: str = "",
    subject: SubjectName | None = None,
    before: int | None = None,
    limit: int = PAGE,
) -> list[GhostInfo]:
    """The ghosts of an environment (empty: of all), newest first, that `by` may read; five queries at most.

    `before` is the id of the last one that was seen.
    """
    return ghost_page(by=by, environment=environment, subject=subject, before=before, limit=limit).rows


def ghost_page(
    *,
    by: Actor,
    environment: str = "",
    subject: SubjectName | None = None,
    text: str = "",
    state: str = "",
    before: int | None = None,
    limit: int = PAGE,
) -> GhostPage:
    """The same with all words of `text` in the name and in one of STATES (empty: any), and where the next page begins.

    Raises InvalidInput for a state that is none.
    """
    if state and state not in STATES:
        raise InvalidInput(f"{state[:40]!r} is no state of a ghost: use one of {', '.join(STATES)}.")
    order = Environment.objects.select_related("registry").order_by("position")
    names = {each.registry_id: each.registry.name for each in order if environment in ("", each.registry.name)}
    rows = _of(names, subject, text, state)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    rows = rows.select_related("schema", "subject__context", "standing").defer(
        "submitted", "schema__canonical", "schema__metadata", "schema__rule_set"
    )
    found = list(_in_sight(rows, by).order_by("-pk")[: limit + 1])
    shown = found[:limit]
    requests = _adoptions(shown)
    return GhostPage(
        [_info(row, names, requests) for row in shown], found[limit - 1].pk if len(found) > limit else None
    )


def _of(names: Mapping[int, str], subject: SubjectName | None, text: str, state: str) -> QuerySet[SchemaVersion]:
    wanted = Q(pk__in=())
    for condition in conditions(names.keys()).values():
        wanted |= condition
    rows = SchemaVersion.objects.filter(wanted, deleted_at=None)
    if subject is not None:
        rows = rows.filter(subject__context__name=subject.context, subject__name=subject.subject)
    for word in text.split()[:MAX_WORDS]:
        rows = rows.filter(subject__name__icontains=word)
    if state == QUARANTINED:
        return rows.filter(standing__standing=QUARANTINED)
    if state:
        asked = Exists(_ADOPTING)
        return rows.filter(asked) if state == ASKED else rows.filter(~asked, standing=None)
    return rows


def is_ghost(environment: Environment, version: SchemaVersion) -> bool:
    """Whether a version of an environment came without a request; three queries."""
    condition = unrequested(environment.registry)
    return condition is not None and SchemaVersion.objects.filter(condition, pk=version.pk).exists()


def _in_sight(rows: QuerySet[SchemaVersion], by: Actor) -> QuerySet[SchemaVersion]:
    """Those that `by` may read."""
    extent = extent_of(by, "schema.read")
    if extent.is_whole:
        return rows
    named = rows.alias(qualified=qualified(F("subject__context__name"), F("subject__name")))
    return named.filter(extent.subjects("subject__context__registry__name", "qualified"))


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


def _info(row: SchemaVersion, names: Mapping[int, str], requests: _Adoptions) -> GhostInfo:
    registry = row.subject.context.registry_id
    return GhostInfo(
        id=row.pk,
        environment=names[registry],
        subject=_name(row),
        version=row.version,
        schema_id=row.schema.schema_id,
        schema_type=row.schema.schema_type,
        fingerprint=row.schema.fingerprint,
        registered_at=row.created_at,
        registered_by=row.created_by,
        door=row.door,
        standing=joined_standing(row),
        request=requests.get((registry, _name(row), row.version)),
    )
