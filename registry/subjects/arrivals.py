"""Whether versions had to come by a request, and which didn't: promotions knows, and fills `ASKED` when it starts.

So this app and those beside it can ask without importing promotions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db.models import Q

from registry.subjects.models import Registry

#: of a registry, the condition on its versions that came without the request that they needed; None where none is needed
Unrequested = Callable[[Registry], Q | None]
#: name → whom to ask
ASKED: Final[dict[str, Unrequested]] = {}


def tell_unrequested(name: str, ask: Unrequested) -> None:
    """Adds one, or replaces the one of that name; called when an app starts."""
    ASKED[name] = ask


def unrequested(registry: Registry) -> Q | None:
    """The condition on versions of the registry that came without a request, soft-deleted ones too.

    None where versions may come as they like: it is no environment that takes releases.
    """
    found = [condition for ask in ASKED.values() if (condition := ask(registry)) is not None]
    if not found:
        return None
    whole = found[0]
    for condition in found[1:]:
        whole |= condition
    return whole
