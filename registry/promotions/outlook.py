"""What other apps know of a promotion's effect beyond the registry: they fill these tables when they start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from registry.promotions.plan import Check, Plan, Step
from registry.subjects.models import Registry

#: of what a plan does at the target, and of the finding that it answers (by number; None: of none), the checks that
#: another app adds; in a constant number of queries
Outlook = Callable[[Registry, Sequence[Step], int | None], Sequence[Check]]
#: of registries and subjects (None: of all), what those checks depend on for each that has anything: any text that changes
#: with it, by the registry's key and the subject; in a constant number of queries. Subjects are named as the dialects
#: write them
Facts = Callable[[Collection[Registry], Collection[str] | None], Mapping[int, Mapping[str, str]]]
#: of a registry and subjects, the numbers of the open break findings of each that has any; one query
OpenBreaks = Callable[[Registry, Collection[str]], Mapping[str, Sequence[int]]]
#: name → whom to ask
BREAKS: Final[dict[str, OpenBreaks]] = {}
#: name → whom to ask
OUTLOOKS: Final[dict[str, Outlook]] = {}
#: name → what its answers depend on, so that those worked out ahead are known to be old
FACTS: Final[dict[str, Facts]] = {}


def outlook(name: str, ask: Outlook, facts: Facts | None = None) -> None:
    """Adds one, or replaces the one of that name; called when an app starts.

    Without `facts` its checks count as ones that never fail: the board doesn't watch for their changes.
    """
    OUTLOOKS[name] = ask
    FACTS.pop(name, None)
    if facts is not None:
        FACTS[name] = facts


def find_breaks(name: str, ask: OpenBreaks) -> None:
    """Adds one, or replaces the one of that name; called when an app starts."""
    BREAKS[name] = ask


def open_breaks(registry: Registry, subjects: Collection[str]) -> dict[str, list[int]]:
    """The open break findings of the subjects, by number; subjects without any aren't there."""
    found: dict[str, list[int]] = {}
    for ask in BREAKS.values():
        for subject, numbers in ask(registry, subjects).items():
            found.setdefault(subject, []).extend(numbers)
    return found


def checks_from_outside(target: Registry, plan: Plan, answers: int | None = None) -> tuple[Check, ...]:
    """The checks of all of them for a plan."""
    return tuple(check for ask in OUTLOOKS.values() for check in ask(target, plan.steps, answers))


def facts_of(targets: Collection[Registry], subjects: Collection[str] | None = None) -> dict[int, dict[str, str]]:
    """By registry, for each of the subjects that another app has something to say of, all that it says."""
    found: dict[int, dict[str, list[str]]] = {}
    for name, ask in sorted(FACTS.items()):
        for registry, said in ask(targets, subjects).items():
            for subject, fact in said.items():
                found.setdefault(registry, {}).setdefault(subject, []).append(f"{name}: {fact}")
    return {registry: {name: "; ".join(facts) for name, facts in said.items()} for registry, said in found.items()}
