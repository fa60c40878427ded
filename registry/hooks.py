"""Every point at which one app calls another without importing it.

The app below owns a point and iterates it; apps above register a hook in `AppConfig.ready`. Hooks are
called in the order of their names, so that nothing depends on which app starts first. The types of hooks belong to the apps that own the
points: they are imported for mypy alone, and this module loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from django.db.models import Q

    from registry.access.roles import Actor, RightsChange, ScopeCatalog
    from registry.audit.time_travel import DerivedTable
    from registry.promotions.hook_points import CheckProvider, OriginFinding, ReleaseChecks
    from registry.subjects.models import Registry
    from registry.subjects.policy.change_guard import ChangeGuard
    from registry.subjects.usage.evidence import EvidenceProvider

Hook = TypeVar("Hook")


class HookPoint(Generic[Hook]):
    """Hooks of one type by name; iterating gives them in the order of their names."""

    def __init__(self, name: str) -> None:
        """`name` is the point's own, for errors."""
        self.name = name
        self.hooks: dict[str, Hook] = {}

    def register(self, name: str, hook: Hook) -> None:
        """Add a hook. An equal hook may register again; another one under its name raises ValueError."""
        if self.hooks.setdefault(name, hook) != hook:
            raise ValueError(f"The hook point {self.name} has a hook named {name!r} already. Choose another name.")

    def items(self) -> list[tuple[str, Hook]]:
        """Names and hooks in the order of iteration."""
        return sorted(self.hooks.items(), key=lambda item: item[0])

    def __iter__(self) -> Iterator[Hook]:
        return (hook for _, hook in self.items())


#: table → how its past is worked out from the views of other tables
derived_tables: Final[HookPoint[DerivedTable]] = HookPoint("derived_tables")
#: a change of rights and its actor; raises SecondPersonRequired where the actor may not make it alone
rights_guards: Final[HookPoint[Callable[[RightsChange, Actor], None]]] = HookPoint("rights_guards")
#: what else happens when a person adds an account: its number and that person
added_accounts: Final[HookPoint[Callable[[int, Actor], None]]] = HookPoint("added_accounts")
#: the registries and subjects that a right can be for
scope_catalogs: Final[HookPoint[ScopeCatalog]] = HookPoint("scope_catalogs")
#: whether a change may be made directly
change_guards: Final[HookPoint[ChangeGuard]] = HookPoint("change_guards")
#: a registry, what happens to a client there that the actor didn't declare: the service, its arguments and in words, and
#: the actor; raises SecondPersonRequired where the actor may not do so alone
client_guards: Final[HookPoint[Callable[[Registry, str, Mapping[str, Any], str, Actor], None]]] = HookPoint(
    "client_guards"
)
#: the condition on a registry's versions that came without the request that they needed; None where none is needed
unrequested_versions: Final[HookPoint[Callable[[Registry], Q | None]]] = HookPoint("unrequested_versions")
#: whether data, state or clients still need versions
version_evidence: Final[HookPoint[EvidenceProvider]] = HookPoint("version_evidence")
#: the checks that other apps add to a promotion's plan
promotion_checks: Final[HookPoint[CheckProvider]] = HookPoint("promotion_checks")
#: the checks of the jobs that are released together with a version
release_checks: Final[HookPoint[ReleaseChecks]] = HookPoint("release_checks")
#: the numbers of the open break findings by subject, for a registry and subjects; one query
open_breaks: Final[HookPoint[Callable[[Registry, Collection[str]], Mapping[str, Sequence[int]]]]] = HookPoint(
    "open_breaks"
)
#: the findings with these numbers that the actor may read, by number; one query
origin_findings: Final[HookPoint[Callable[[Collection[int], Actor], Mapping[int, OriginFinding]]]] = HookPoint(
    "origin_findings"
)
