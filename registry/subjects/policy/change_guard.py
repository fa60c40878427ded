"""Whether a registry can be changed directly: other apps guard it, and every service that changes it asks them.

They register in `registry.hooks`: promotions guards closed environments. A service asks after checking the permission
and before writing the change, in the same transaction and under the registry's policy lock. Closing an environment
takes that lock exclusively: changes that passed the guard finish before it is closed, and later ones find it closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from registry import hooks
from registry.access.roles import Actor
from registry.subjects.models import Registry

READONLY: Final = "READONLY"


@dataclass(frozen=True)
class ChangeGuard:
    """`decide` gets an action (registry/access/roles.py), a registry, a subject ("": all of it) and an actor.

    It returns whether the change passes the mode READONLY too, or raises ReleaseRequired. `applies` is an SQL condition
    on `%(registry)s`; a registration, which reads it with other facts, doesn't call `decide` while it is false.
    """

    applies: str
    decide: Callable[[str, Registry, str, Actor], bool]


def guard_applies() -> str:
    """Return the SQL condition that at least one guard applies."""
    return " OR ".join(["false", *(f"({guard.applies})" for guard in hooks.change_guards)])


def ask(action: str, registry: Registry, subject: str, by: Actor, *, release: bool = False) -> bool:
    """Return whether the change passes the mode READONLY, as releases and break-glass do, but not READONLY_OVERRIDE.

    Only applying an approved promotion sets `release`. Raises ReleaseRequired if the registry changes only by releases.
    """
    if release:
        return True
    answers = [guard.decide(action, registry, subject, by) for guard in hooks.change_guards]  # any of them may refuse
    return any(answers)


def stops(mode: str, *, passes: bool) -> bool:
    """Return whether a mode blocks a change; `passes` is the result of `ask`."""
    return mode.startswith(READONLY) and not (passes and mode == READONLY)


def unrequested(registry: Registry) -> Q | None:
    """Return the condition on the registry's versions added without a request, including soft-deleted ones.

    None if versions need no request, because the registry isn't an environment that changes only by releases.
    """
    conditions = [condition for ask in hooks.unrequested_versions if (condition := ask(registry)) is not None]
    if not conditions:
        return None
    whole = conditions[0]
    for condition in conditions[1:]:
        whole |= condition
    return whole
