"""What other apps know of a promotion's effect beyond the registry: they fill `OUTLOOKS` when they start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from registry.promotions.plan import Check, Plan, Step
from registry.subjects.models import Registry

#: of what a plan registers at the target, the checks that another app adds; in a constant number of queries
Outlook = Callable[[Registry, Sequence[Step]], Sequence[Check]]
#: name → whom to ask
OUTLOOKS: Final[dict[str, Outlook]] = {}


def outlook(name: str, ask: Outlook) -> None:
    """Adds one, or replaces the one of that name; called when an app starts."""
    OUTLOOKS[name] = ask


def checks_from_outside(target: Registry, plan: Plan) -> tuple[Check, ...]:
    """The checks of all of them for a plan."""
    return tuple(check for ask in OUTLOOKS.values() for check in ask(target, plan.steps))
