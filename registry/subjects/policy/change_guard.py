"""Whether a registry may be changed directly: other apps keep the gate, every changing service asks it.

They fill `KEEPERS` when they start, so that this app can ask without importing them: promotions keeps closed
environments. A service asks after the right is checked and before the change is written, in the transaction of the
change and under the registry's policy lock: closing an environment takes that lock alone, so whoever was let in is done
before it is closed, and whoever comes later finds it closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db.models import Q

from registry.access.roles import Actor
from registry.subjects.models import Registry

#: what is done (an action of registry/access/roles.py), where, to which subject ("": to all of it) and by whom → whether
#: the mode READONLY is passed too; raises ReleaseRequired
Keeper = Callable[[str, Registry, str, Actor], bool]
#: name → whom to ask
KEEPERS: Final[dict[str, Keeper]] = {}
READONLY: Final = "READONLY"


def keep(name: str, keeper: Keeper) -> None:
    """Adds a keeper, or replaces the one of that name; called when an app starts."""
    KEEPERS[name] = keeper


def ask(action: str, registry: Registry, subject: str, by: Actor, *, release: bool = False) -> bool:
    """Whether the change passes the mode READONLY, as releases and break-glass do; READONLY_OVERRIDE stops them too.

    `release` is said by the applying of an approved promotion alone. Raises ReleaseRequired where the registry takes
    releases only.
    """
    if release:
        return True
    answers = [keeper(action, registry, subject, by) for keeper in KEEPERS.values()]  # any of them may refuse
    return any(answers)


def stops(mode: str, *, passes: bool) -> bool:
    """Whether a mode stops a change; `passes` is what `ask` gave."""
    return mode.startswith(READONLY) and not (passes and mode == READONLY)


#: of a registry, the condition on its versions that came without the request that they needed; None where none is needed
Unrequested = Callable[[Registry], Q | None]
#: name → whom to ask
UNREQUESTED: Final[dict[str, Unrequested]] = {}


def tell_unrequested(name: str, ask: Unrequested) -> None:
    """Adds one, or replaces the one of that name; called when an app starts."""
    UNREQUESTED[name] = ask


def unrequested(registry: Registry) -> Q | None:
    """The condition on versions of the registry that came without a request, soft-deleted ones too.

    None where versions may come as they like: it is no environment that takes releases.
    """
    conditions = [condition for ask in UNREQUESTED.values() if (condition := ask(registry)) is not None]
    if not conditions:
        return None
    whole = conditions[0]
    for condition in conditions[1:]:
        whole |= condition
    return whole
