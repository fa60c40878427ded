"""Remote registries and how fresh their mirrors are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from registry.subjects.models import Registry


@dataclass(frozen=True)
class MirrorState:
    """A mirror: where from, when it was last read as a whole, and what is wrong since when, if something is.

    `age` is None before the first sync. `is_stale` says that three syncs in a row are missing.
    """

    registry: str
    kind: str
    url: str
    every_seconds: int
    synced_at: datetime | None
    age: timedelta | None
    error: str
    failing_since: datetime | None
    is_running: bool
    is_stale: bool


def mirror_of(registry: Registry) -> MirrorState | None:
    """The state of a registry's mirror; None for a registry of ours."""
    return _state(registry, timezone.now()) if registry.kind == Registry.REMOTE else None


def list_mirrors() -> list[MirrorState]:
    """All mirrors, by name."""
    now = timezone.now()
    return [_state(row, now) for row in Registry.objects.filter(kind=Registry.REMOTE).order_by("name")]


def _state(row: Registry, now: datetime) -> MirrorState:
    every = row.every_seconds or 0
    age = now - row.synced_at if row.synced_at else None
    return MirrorState(
        registry=row.name,
        kind=row.kind,
        url=row.url,
        every_seconds=every,
        synced_at=row.synced_at,
        age=age,
        error=row.sync_error,
        failing_since=row.failing_since,
        is_running=row.sync_lease_until is not None and row.sync_lease_until > now,
        is_stale=age is None or age > timedelta(seconds=3 * every),
    )
