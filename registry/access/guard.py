"""Whether somebody may be given rights by one person alone: other apps keep the guard, every granting service asks it.

They fill `KEEPERS` when they start, so that this app can ask without importing them: promotions keeps who may review
for closed environments. A service asks after the right is checked and the change is recorded, before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.access.roles import Actor, Grant


@dataclass(frozen=True)
class RightsChange:
    """What may widen who decides: `action` and `values` are the service and its arguments, `sentence` says it in words.

    `grants` are roles that people get, `groups` the names of groups that they get into; `owner` says that they become
    owners of subjects, `accounts` are accounts that no longer count as one person, `joined` those that do from now on.
    With `removes` the people lose the grants instead.
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


#: what changes and by whom; raises SecondPersonRequired
Keeper = Callable[[RightsChange, Actor], None]
#: name → whom to ask
KEEPERS: Final[dict[str, Keeper]] = {}


def keep(name: str, keeper: Keeper) -> None:
    """Add a keeper, or replace the one of that name; called when an app starts."""
    KEEPERS[name] = keeper


def ask(change: RightsChange, by: Actor) -> None:
    """Raise SecondPersonRequired where the change takes another person's approval."""
    for keeper in KEEPERS.values():
        keeper(change, by)
