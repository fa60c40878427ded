"""A change of rights: whether it needs a second person, and whether the registry and subjects of a right exist.

Other apps answer both through `registry.hooks`: promotions guards who may review for closed environments. A service asks
the guards after it has checked the right and recorded the change, before it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry import hooks
from registry.access.roles import Actor, Grant
from registry.errors import InvalidInput

MAX_LISTED: Final = 20


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


def guard(change: RightsChange, by: Actor) -> None:
    """Raise SecondPersonRequired if the change needs another person's approval."""
    for rights_guard in hooks.rights_guards:
        rights_guard(change, by)


@dataclass(frozen=True)
class ScopeCatalog:
    """The registries and subjects that an actor may know of.

    `registries` lists names of registries; `has_subject` says whether a shell pattern fits a subject of a registry ("": of
    any registry).
    """

    registries: Callable[[Actor], Sequence[str]]
    has_subject: Callable[[str, str, Actor], bool]


def refuse_unknown_registry(registry: str, by: Actor) -> None:
    """Raise InvalidInput, with the registries that there are, for one that doesn't exist or that `by` can't see."""
    for catalog in hooks.scope_catalogs:
        if registry and registry not in (names := catalog.registries(by)):
            raise InvalidInput(
                f"There is no registry {registry[:60]!r}. {_listed(names)} Leave the registry empty to mean all.",
                field="registry",
            )


def scope_warning(registry: str, subject_pattern: str, by: Actor) -> str:
    """A sentence where the pattern fits no subject yet, such as one of a context to come; else ""."""
    registry, pattern = registry.strip(), subject_pattern.strip() or "*"
    if pattern == "*" or any(catalog.has_subject(registry, pattern, by) for catalog in hooks.scope_catalogs):
        return ""
    return f"The pattern {pattern[:60]!r} fits no subject of {registry or 'any registry'} so far."


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "There is no registry yet."
    listed = ", ".join(names[:MAX_LISTED])
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"The registry is {listed}." if len(names) == 1 else f"The registries are {listed}{more}."
