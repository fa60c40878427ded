"""A plan as it is kept with its request, which a fault of a disk or an old program may have damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: the steps in SQL, none where they are no list; for a template of a Func
STEPS: Final = (
    "CASE jsonb_typeof(%(expressions)s -> 'steps') WHEN 'array' THEN %(expressions)s -> 'steps' ELSE '[]' END"
)


def readable(stored: Any) -> dict[str, Any]:
    """A stored plan, or where it isn't one (a fault has damaged it) an empty one that says so: `unreadable` is true.

    No list and no page fails because of one such request. Nothing is done by it: before that the plan is made again.
    """
    return dict(stored) if _is_readable(stored) else {"steps": [], "checks": [], "unreadable": True}


def _is_readable(stored: Any) -> bool:
    if not isinstance(stored, Mapping):
        return False
    named = (("steps", ("subject",)), ("checks", ("verdict", "name", "sentence")))
    return all(
        isinstance(stored.get(part), list)
        and all(isinstance(item, Mapping) and all(name in item for name in names) for item in stored[part])
        for part, names in named
    )
