"""Remote registries and how fresh their mirrors are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from registry.subjects.models import Registry

#: a registry's `sync_tag` while a sync is handed out and not begun
QUEUED: Final = "queued"


@dataclass(frozen=True)
class MirrorState:
    """A mirror: where from, when it was last read as a whole, and what is wrong since when, if something is.

    `age` is None before the first sync. `is_stale` says that three syncs in a row are missing, `is_queued` that a sync is
    handed out and not begun. `secret` is the name of the secret that signs `user` in, never the secret.
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
    is_queued: bool = False
    number: int = 0
    next_at: datetime | None = None
    user: str = ""
    secret: str = ""


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
    leased = row.sync_lease_until is not None and row.sync_lease_until > now
    return MirrorState(
        registry=row.name,
        kind=row.kind,
        url=row.url,
        every_seconds=every,
        synced_at=row.synced_at,
        age=age,
        error=row.sync_error,
        failing_since=row.failing_since,
        is_running=leased and row.sync_tag != QUEUED,
        is_stale=age is None or age > timedelta(seconds=3 * every),
        is_queued=leased and row.sync_tag == QUEUED,
        number=row.pk,
        next_at=row.next_sync_at,
        user=row.user,
        secret=row.secret,
    )
