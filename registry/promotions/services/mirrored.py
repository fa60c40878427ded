"""Environments elsewhere: what is planned against the mirror of a remote registry is planned against a fresh one."""

from __future__ import annotations

import time
from typing import Final

from django.utils import timezone

from registry.access.egress import EgressPolicy
from registry.errors import RemoteUnavailable
from registry.promotions.models import Environment
from registry.subjects.models import Registry
from registry.subjects.services.remotes import sync_registry

#: for a sync of somebody else that is under way
WAIT_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.2


def is_remote(environment: Environment) -> bool:
    """Whether the environment is a registry elsewhere, of which we hold a mirror."""
    return environment.registry.kind == Registry.REMOTE


def fresh(environment: Environment, *, policy: EgressPolicy | None = None) -> None:
    """Bring the mirror of a remote environment to the remote's state; nothing to do for a registry of ours.

    It calls another server, so no transaction may be open. Parts that can't be mirrored don't count: they stand with the
    mirror, and what is promoted is read back from the remote in any case.
    Raises RemoteUnavailable where the remote can't be read as a whole, or is being read by another worker for too long.
    """
    if not is_remote(environment):
        return
    asked, deadline = timezone.now(), time.monotonic() + WAIT_SECONDS
    while sync_registry(registry_id=environment.registry_id, policy=policy) is None:
        if time.monotonic() > deadline:
            raise RemoteUnavailable(f"{environment} is being mirrored by another worker; try again in a minute.")
        time.sleep(PAUSE_SECONDS)
    row = Registry.objects.get(pk=environment.registry_id)
    if row.synced_at is None or row.synced_at < asked:
        raise RemoteUnavailable(
            f"{environment} can't be read now, and its mirror is too old to go by: {row.sync_error}"
        )
