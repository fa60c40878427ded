"""Which changes of an environment's rules loosen them: one table over its fields. Pure.

A change loosens if a request could be approved or applied after it that couldn't before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

#: whether a change from the first value to the second loosens
Loosens = Callable[[Any, Any], bool]


def _switched_off(before: Any, after: Any) -> bool:
    return bool(before) and not after


def _switched_on(before: Any, after: Any) -> bool:
    return not before and bool(after)


def _fewer(before: Any, after: Any) -> bool:
    return int(after) < int(before)


def _older(before: Any, after: Any) -> bool:
    """Of a limit in hours where 0 stands for no limit."""
    return before not in (0, after) and (after == 0 or after > before)


def _changed(before: Any, after: Any) -> bool:
    return bool(before != after)


#: field of `Environment` → whether its change loosens. Another registry or place in the order is another environment
LOOSENING: Final[Mapping[str, Loosens]] = {
    "registry": _changed,
    "position": _changed,
    "is_closed": _switched_off,
    "reviews_needed": _fewer,
    "own_approval_allowed": _switched_on,
    "owners_only": _switched_off,
    "drift_blocks": _switched_off,
    "threads_block": _switched_off,
    "clients_block": _switched_off,
    "max_evidence_hours": _older,
    "evidence_required": _switched_off,
}


def loosened(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of `after` that loosen what `before` has, in order. Raises KeyError for a field without a row."""
    return tuple(field for field, value in after.items() if LOOSENING[field](before[field], value))
