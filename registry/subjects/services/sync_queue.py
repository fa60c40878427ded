"""Which syncs of mirrors are handed to workers: those that are due, and those that somebody asks for.

A sync that is handed out and not begun is marked in its registry's row, so asking twice hands out one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.errors import WrongState
from registry.subjects.models import Registry
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.remotes import QUEUED

EVERY_SECONDS: Final = 300
#: how long a sync that was handed out is waited for: then its message counts as lost
HANDED: Final = timedelta(seconds=60)


def get_mirror(name: str, by: Actor, action: str) -> Registry:
    """The row of a mirror for whoever may do that, once the right is checked. Raises RegistryNotFound, NotAllowed, WrongState."""
    require(by, action, registry=name)
    place = get_registry(name)
    if place.kind != Registry.REMOTE:
        raise WrongState(f"Registry {place.name} is one of ours, not a mirror.")
    return place


@transaction.atomic
def queue_due_syncs() -> list[int]:
    """The mirrors that are due, or were handed out and lost, each given to one caller; the next time is counted from now."""
    now = timezone.now()
    lost = Q(sync_tag=QUEUED, sync_lease_until__lt=now)
    mirrors = Registry.objects.filter(Q(next_sync_at__lte=now) | lost, kind=Registry.REMOTE)
    due = list(mirrors.select_for_update(skip_locked=True))
    for row in due:
        _hand_out(row, now)
    return [row.pk for row in due]


@transaction.atomic
def request_sync(*, name: str, by: Actor) -> int | None:
    """Hand out a sync of a mirror now and give its number; None where one is queued or running already.

    Raises RegistryNotFound, NotAllowed, WrongState for a registry of ours.
    """
    place = get_mirror(name, by, "registry.refresh")
    row, now = Registry.objects.select_for_update().get(pk=place.pk), timezone.now()
    if row.sync_lease_until is not None and row.sync_lease_until > now:
        return None
    _hand_out(row, now)
    return row.pk


def _hand_out(row: Registry, now: datetime) -> None:
    """Mark a sync as queued, unless one runs; the row is locked."""
    row.next_sync_at = now + timedelta(seconds=row.every_seconds or EVERY_SECONDS)
    if row.sync_tag in ("", QUEUED) or row.sync_lease_until is None or row.sync_lease_until <= now:
        row.sync_tag, row.sync_lease_until = QUEUED, now + HANDED
    row.save(update_fields=["next_sync_at", "sync_tag", "sync_lease_until"])
