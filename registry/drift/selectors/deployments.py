"""Deployments that were told: listed, and those that may have to do with a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final

from django.db.models import Q

from registry.drift.deployment_model import Deployment
from registry.errors import InvalidInput
from registry.subjects.models import Client
from registry.subjects.names import parse_subject

#: deployments of a span of time that are looked at, the newest
MAX_LOOKED_AT: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: digits of a number in a cursor
_DIGITS: Final = 18


@dataclass(frozen=True)
class DeploymentInfo:
    """A deployment: what, when it began, where it is to be seen, and whose messages it may have changed."""

    id: int
    registry: str
    label: str
    at: datetime
    url: str
    subjects: str
    topics: str
    client: str
    told_at: datetime
    told_by: str


@dataclass(frozen=True)
class DeploymentPage:
    """Deployments, newest first; `before` is the cursor of the next page, "" where there is none."""

    rows: tuple[DeploymentInfo, ...]
    before: str


@dataclass(frozen=True)
class Concerned:
    """What a finding is about, as deployments are held against it."""

    registry: str
    subject: str
    topic: str


def list_deployments(*, registry: str = "", label: str = "", before: str = "", limit: int = 100) -> DeploymentPage:
    """Deployments by when they began, newest first; one query whichever page it is. Raises InvalidInput."""
    wanted = Q(registry__name=registry) if registry else Q()
    if label:
        wanted &= Q(label=label)
    if before:
        at, number = _cursor(before)
        wanted &= Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=number))
    rows = Deployment.objects.filter(wanted).select_related("registry").order_by("-at", "-pk")
    found = [_info(row) for row in rows[: limit + 1]]
    page = tuple(found[:limit])
    return DeploymentPage(page, _cursor_of(page[-1]) if len(found) > limit else "")


def deployments_about(concerned: Concerned, since: datetime, until: datetime) -> tuple[DeploymentInfo, ...]:
    """Those that began in the time, the last included, and may concern it, newest first; one query, or two."""
    rows = Deployment.objects.filter(registry__name=concerned.registry, at__gt=since, at__lte=until)
    found = [_info(row) for row in rows.select_related("registry").order_by("-at", "-pk")[:MAX_LOOKED_AT]]
    fitting = [info for info in found if _fits(info, concerned)]
    clients = _clients(concerned, {info.client for info in fitting} - {""})
    return tuple(info for info in fitting if not info.client or info.client in clients)


def _fits(info: DeploymentInfo, concerned: Concerned) -> bool:
    """Each pattern that was told narrows it; what the finding doesn't have fits none."""
    pairs = ((info.subjects, concerned.subject), (info.topics, concerned.topic))
    return all(not pattern or (bool(name) and fnmatchcase(name, pattern)) for pattern, name in pairs)


def _clients(concerned: Concerned, names: Iterable[str]) -> frozenset[str]:
    """Of these clients the ones that are declared for the finding's subject."""
    if not names or not concerned.subject:
        return frozenset()
    name = parse_subject(concerned.subject)
    rows = Client.objects.filter(
        subject__context__registry__name=concerned.registry,
        subject__context__name=name.context,
        subject__name=name.subject,
        name__in=names,
    )
    return frozenset(rows.values_list("name", flat=True))


def _info(row: Deployment) -> DeploymentInfo:
    return DeploymentInfo(
        id=row.pk,
        registry=row.registry.name,
        label=row.label,
        at=row.at,
        url=row.url,
        subjects=row.subjects,
        topics=row.topics,
        client=row.client,
        told_at=row.told_at,
        told_by=row.told_by,
    )


def _cursor_of(info: DeploymentInfo) -> str:
    return f"{(info.at - _EPOCH) // _MICROSECOND}-{info.id}"


def _cursor(text: str) -> tuple[datetime, int]:
    moment, _, number = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS for part in (moment, number)):
        raise InvalidInput("The cursor isn't one that a page gave.", field="before")
    try:
        return _EPOCH + int(moment) * _MICROSECOND, int(number)
    except OverflowError as error:
        raise InvalidInput("The cursor isn't one that a page gave.", field="before") from error
