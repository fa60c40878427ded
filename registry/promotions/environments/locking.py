"""The first steps of environment services: check arguments, lock the environment, refresh a remote one's mirror."""

from __future__ import annotations

import time
from typing import Any, Final

from django.utils import timezone

from registry.access.egress import EgressPolicy
from registry.access.roles import Actor, may_somewhere, require
from registry.errors import EnvironmentPartNotFound, InvalidInput, NotSignedIn, RegistryNotFound, RemoteUnavailable
from registry.formats.base import UNSTORABLE
from registry.promotions.models import Environment
from registry.subjects.models import Registry
from registry.subjects.registration.locks import lock_policy
from registry.subjects.remote.mirrors import sync_registry

MANAGE: Final = "registry.manage"
MAX_TEXT: Final = 2000


def locked_environment(name: str, *, alone: bool = False) -> Environment:
    """Return the environment, locked until the transaction ends; `alone` also waits for changes of its registry.

    The registry's policy lock comes first, as everywhere. Raises RegistryNotFound.
    """
    rows = Environment.objects.select_related("registry").filter(registry__name=name)
    environment = rows.first()
    if environment is not None and alone:
        lock_policy(environment.registry, exclusive=True)
    row = rows.select_for_update(of=("self",)).first()
    if row is None:
        raise RegistryNotFound(f"'{name[:80]}' is not an environment.", registry=name[:255])
    return row


def readable(text: str, field: str, *, limit: int = MAX_TEXT) -> str:
    """Return the stripped text. Raises InvalidInput for one that is empty, too long or can't be stored."""
    bare = text.strip()
    if not bare or len(bare) > limit:
        raise InvalidInput(f"{field} must have 1 to {limit} characters.", field=field)
    if UNSTORABLE.search(bare):
        raise InvalidInput(f"{field} has a character that can't be stored.", field=field)
    return bare


def person(by: Actor) -> int:
    """Return the actor's user id. Raises NotSignedIn for a program without an account."""
    if by.user_id is None:
        raise NotSignedIn("Sign in to do this.")
    return by.user_id


def require_any_permission(by: Actor, *actions: str) -> None:
    """Refuse an actor with none of these rights anywhere, before any lookup by number. Raises as `require` does."""
    if not any(may_somewhere(by, action) for action in actions):
        require(by, actions[0])


def one_of(value: str, field: str, choices: tuple[str, ...]) -> str:
    """Return the value, if it is one of the choices. Raises InvalidInput."""
    if value not in choices:
        raise InvalidInput(f"{field} must be one of {', '.join(choices)}.", field=field)
    return value


def environment_part(model: type[Any], number: int, what: str, by: Actor) -> Any:
    """Return a row that belongs to an environment, locked. Raises EnvironmentPartNotFound, NotSignedIn, NotAllowed."""
    require_any_permission(by, MANAGE)
    rows = model.objects.select_related("environment__registry").filter(pk=number)
    row = rows.first()
    if row is not None:
        # the caller checks next whether it is closed, which must stay true
        environment = locked_environment(row.environment.registry.name)
        row = rows.select_for_update(of=("self",)).first()
    if row is None:
        raise EnvironmentPartNotFound(f"No {what} {number} found.", number=number)
    row.environment = environment
    return row


#: how long to wait for a running sync of another worker
WAIT_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.2


def is_remote(environment: Environment) -> bool:
    """Return whether the environment is a remote registry with a mirror here."""
    return environment.registry.kind == Registry.REMOTE


def fresh(environment: Environment, *, policy: EgressPolicy | None = None) -> None:
    """Update the mirror of a remote environment; does nothing for a local registry.

    It calls another server, so no transaction may be open. Parts that can't be mirrored don't matter: the mirror lists
    them, and what is promoted is read back from the remote anyway.
    Raises RemoteUnavailable if the remote can't be read completely, or another worker reads it for too long.
    """
    if not is_remote(environment):
        return
    started_at, deadline = timezone.now(), time.monotonic() + WAIT_SECONDS
    while sync_registry(registry_id=environment.registry_id, policy=policy) is None:
        if time.monotonic() > deadline:
            raise RemoteUnavailable(f"{environment} is being synced by another worker. Try again in a minute.")
        time.sleep(PAUSE_SECONDS)
    row = Registry.objects.get(pk=environment.registry_id)
    if row.synced_at is None or row.synced_at < started_at:
        raise RemoteUnavailable(f"{environment} can't be read now, and its mirror is too old: {row.sync_error}")
