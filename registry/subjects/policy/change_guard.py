"""Whether a registry may be changed directly: other apps guard it, every changing service asks them.

They register in `registry.hooks`: promotions guards closed environments. A service asks after the right is checked and before the change is written, in the transaction of the
change and under the registry's policy lock: closing an environment takes that lock alone, so whoever was let in is done
before it is closed, and whoever comes later finds it closed.
"""

from __future__ import annotations

from typing import Final

from django.db.models import Q

from registry import hooks
from registry.access.roles import Actor
from registry.subjects.models import Registry

READONLY: Final = "READONLY"


def ask(action: str, registry: Registry, subject: str, by: Actor, *, release: bool = False) -> bool:
    """Whether the change passes the mode READONLY, as releases and break-glass do; READONLY_OVERRIDE stops them too.

    `release` is said by the applying of an approved promotion alone. Raises ReleaseRequired where the registry takes
    releases only.
    """
    if release:
        return True
    answers = [guard(action, registry, subject, by) for guard in hooks.change_guards]  # any of them may refuse
    return any(answers)


def stops(mode: str, *, passes: bool) -> bool:
    """Whether a mode stops a change; `passes` is what `ask` gave."""
    return mode.startswith(READONLY) and not (passes and mode == READONLY)


def unrequested(registry: Registry) -> Q | None:
    """The condition on versions of the registry that came without a request, soft-deleted ones too.

    None where versions may come as they like: it is no environment that takes releases.
    """
    conditions = [condition for ask in hooks.unrequested_versions if (condition := ask(registry)) is not None]
    if not conditions:
        return None
    whole = conditions[0]
    for condition in conditions[1:]:
        whole |= condition
    return whole
