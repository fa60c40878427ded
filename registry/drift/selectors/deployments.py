"""Deployments that programs reported: the list, and those that may have caused a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Q

from registry.access.name_patterns import name_pattern
from registry.drift.models import Deployment
from registry.errors import InvalidInput
from registry.frozen_rows import row_info
from registry.subjects.models import Client
from registry.subjects.versions.qualified_names import parse_subject

#: deployments read per time span, newest first
MAX_LOOKED_AT: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: maximum of digits in a cursor's numbers
_DIGITS: Final = 18


@dataclass(frozen=True)
class DeploymentInfo:
    """A deployment: its label, when it began, its address, and whose messages it may have changed."""

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
    """Deployments, newest first; `before` is the cursor of the next page, "" on the last."""

    rows: tuple[DeploymentInfo, ...]
    before: str


@dataclass(frozen=True)
class DeploymentTarget:
    """The subject and topic of a finding, to match with deployments."""

    registry: str
    subject: str
    topic: str


def list_deployments(*, registry: str = "", label: str = "", before: str = "", limit: int = 100) -> DeploymentPage:
    """Return deployments by when they began, newest first; one query per page. Raises InvalidInput."""
    condition = Q(registry__name=registry) if registry else Q()
    if label:
        condition &= Q(label=label)
    if before:
        at, number = _cursor(before)
        condition &= Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=number))
    rows = Deployment.objects.filter(condition).select_related("registry").order_by("-at", "-pk")
    infos = [_info(row) for row in rows[: limit + 1]]
    page = tuple(infos[:limit])
    return DeploymentPage(page, _cursor_of(page[-1]) if len(infos) > limit else "")


def deployments_about(concerned: DeploymentTarget, since: datetime, until: datetime) -> tuple[DeploymentInfo, ...]:
    """Return matching deployments that began after `since` and until `until`, newest first; one or two queries."""
    rows = Deployment.objects.filter(registry__name=concerned.registry, at__gt=since, at__lte=until)
    infos = [_info(row) for row in rows.select_related("registry").order_by("-at", "-pk")[:MAX_LOOKED_AT]]
    fitting = [info for info in infos if _fits(info, concerned)]
    clients = _clients(concerned, {info.client for info in fitting} - {""})
    return tuple(info for info in fitting if not info.client or info.client in clients)


def _fits(info: DeploymentInfo, concerned: DeploymentTarget) -> bool:
    """Return whether the patterns match; a pattern for something that the finding lacks matches nothing."""
    pairs = ((info.subjects, concerned.subject), (info.topics, concerned.topic))
    return all(not pattern or (bool(name) and name_pattern(pattern).allows(name)) for pattern, name in pairs)


def _clients(concerned: DeploymentTarget, names: Iterable[str]) -> frozenset[str]:
    """Return which of these clients are declared for the finding's subject."""
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
    return row_info(DeploymentInfo, row, registry=row.registry.name)


def _cursor_of(info: DeploymentInfo) -> str:
    return f"{(info.at - _EPOCH) // _MICROSECOND}-{info.id}"


def _cursor(text: str) -> tuple[datetime, int]:
    moment, _, number = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS for part in (moment, number)):
        raise InvalidInput("The cursor is invalid: use one returned with a page.", field="before")
    try:
        return _EPOCH + int(moment) * _MICROSECOND, int(number)
    except OverflowError as error:
        raise InvalidInput("The cursor is invalid: use one returned with a page.", field="before") from error
