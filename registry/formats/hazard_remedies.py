"""What avoids the read-modify-write hazard, in words: a table of remedies, told with the fields and versions at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way out: what to do, and what it costs or asks for."""

    id: str
    title: str
    text: str


# Values: {fields}, {older} and {newer} (version numbers), {knows} and {lacks} (the versions that know or lose them).
_ADDED: Final = Remedy(
    "UPGRADE_ORDER",
    "Upgrade first, use later",
    "Upgrade every client that writes from version {older} to version {newer} before any client sets {fields}. "
    "Until then a client on version {older} that modifies a record resets {fields}.",
)
_REMOVED: Final = Remedy(
    "UPGRADE_ORDER",
    "Stop using it first, remove it later",
    "Let all clients on version {older} stop relying on {fields} before the first client on version {newer} "
    "writes. From then on a client on version {newer} that modifies a record resets {fields}.",
)
_CHANGED: Final = Remedy(
    "UPGRADE_ORDER",
    "Upgrade all writers at once",
    "Upgrade every client that writes, from version {older} to version {newer}, before any of them writes a value "
    "that the other version can't hold in {fields}.",
)
_ALWAYS: Final = (
    Remedy(
        "FREEZE_WRITERS",
        "Freeze the writers that lose it",
        "While versions {knows} and {lacks} are in use together, let clients on version {lacks} only read: "
        "they must not write back records that hold {fields}.",
    ),
    Remedy(
        "FIELD_OWNERSHIP",
        "Give the field an owner",
        "Keep {fields} in a record of its own, under a key of its own, that only clients which know it write; "
        "or let each client update the fields that it owns instead of writing back the whole record.",
    ),
)


def worded(paths: Sequence[str], known_in: int, lost_in: int, *, goes_to_default: bool) -> tuple[Remedy, ...]:
    """The remedies for the fields that version `known_in` knows and `lost_in` resets."""
    values = {
        "fields": _listed(paths),
        "older": str(min(known_in, lost_in)),
        "newer": str(max(known_in, lost_in)),
        "knows": str(known_in),
        "lacks": str(lost_in),
    }
    # A field that the older version lacks was added, one that the newer lacks was removed.
    order = _CHANGED if not goes_to_default else _ADDED if lost_in < known_in else _REMOVED
    return tuple(Remedy(row.id, row.title, row.text.format_map(values)) for row in (order, *_ALWAYS))


def _listed(paths: Sequence[str]) -> str:
    shown = [f'"{path}"' for path in dict.fromkeys(paths)]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")
