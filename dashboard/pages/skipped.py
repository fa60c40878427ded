"""Which versions lie between two that are compared: of one registry, and of two environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext

from dashboard.texts import counted, listing
from registry.promotions.selectors import list_environments
from registry.subjects.selectors import SubjectPresence, VersionInfo

_NAMED: Final = 8


def skipped_between(presence: SubjectPresence, old: tuple[str, VersionInfo], new: tuple[str, VersionInfo]) -> str:
    """The versions that are passed over from the old side to the new one, each a registry and its version; "" for none.

    Of two environments the new side's are meant, after the one that has the content of the old side.
    """
    (there, before), (here, after) = old, new
    if there == here:
        between = _between(presence, here, before.version, after.version)
        return _listed(gettext("It skips"), between)
    order = list_environments()
    if not {there, here} <= set(order) or order.index(here) > order.index(there):
        return ""
    base = _base(presence, here, there, before.schema.fingerprint, after.version)
    if base is None:
        return ""
    start = gettext("Promoting %(here)s %(new)s over %(there)s %(old)s skips") % {
        "here": here,
        "new": after.version,
        "there": there,
        "old": before.version,
    }
    return _listed(start, _between(presence, here, base, after.version))


def _base(presence: SubjectPresence, here: str, there: str, fingerprint: str, limit: int) -> int | None:
    """The newest version here, below the limit, with the old side's content, or else with any that is there."""
    known = {number: mark for number, mark in presence.held.get(here, {}).items() if number < limit}
    same = [number for number, mark in known.items() if mark == fingerprint]
    any_there = set(presence.held.get(there, {}).values())
    return max(same or [number for number, mark in known.items() if mark in any_there], default=None)


def _between(presence: SubjectPresence, registry: str, old: int, new: int) -> list[int]:
    return sorted(number for number in presence.held.get(registry, {}) if old < number < new)


def _listed(start: str, numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    more = len(numbers) - _NAMED
    named = [str(number) for number in numbers[:_NAMED]]
    if more > 0:
        named.append(counted(more, "%(n)s more", "%(n)s more"))
    return counted(
        len(numbers),
        "%(start)s version %(numbers)s.",
        "%(start)s versions %(numbers)s.",
        start=start,
        numbers=listing(named),
    )
