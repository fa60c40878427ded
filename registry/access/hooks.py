"""The hook by which other apps veto a change of rights that one person may not make alone.

They register in `KEEPERS` when they start, so that this app doesn't import them: promotions guards who may review for
closed environments. A service calls the hook after it has checked the right and recorded the change, before it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.access.roles import Actor, Grant


@dataclass(frozen=True)
class RightsChange:
    """A change that may affect who decides: `action` and `values` are the service and its arguments, `sentence` the text.

    `grants` are roles that `users` get, `groups` the names of groups that they join; `owner` means that they become owners
    of subjects. `accounts` are accounts that no longer count as one person, `joined` those that do from now on. With
    `removes` the users lose the grants instead.
    """

    action: str
    values: Mapping[str, Any]
    sentence: str
    users: tuple[int, ...] = ()
    grants: tuple[Grant, ...] = ()
    groups: tuple[str, ...] = ()
    owner: bool = False
    accounts: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    removes: bool = False


#: checks a change by an actor; raises SecondPersonRequired
Keeper = Callable[[RightsChange, Actor], None]
#: name → the check
KEEPERS: Final[dict[str, Keeper]] = {}


def keep(name: str, keeper: Keeper) -> None:
    """Add a keeper, or replace the one of that name; called when an app starts."""
    KEEPERS[name] = keeper


def ask(change: RightsChange, by: Actor) -> None:
    """Raise SecondPersonRequired if the change needs another person's approval."""
    for keeper in KEEPERS.values():
        keeper(change, by)
