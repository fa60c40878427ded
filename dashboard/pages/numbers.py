"""Numbers in addresses and forms, which anybody can write."""

from __future__ import annotations


def whole_number(text: str, *, digits: int = 9) -> int | None:
    """The number, or None for anything but at most so many ASCII digits: other digits and larger ones fit no column."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
