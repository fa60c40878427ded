"""Texts and shell patterns in patterns of PostgreSQL's LIKE. Pure."""

from __future__ import annotations


def escaped(text: str) -> str:
    """A text with nothing in it that LIKE reads as a pattern."""
    return "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in text)


def like(pattern: str) -> str:
    """A shell pattern without brackets as one of LIKE."""
    return "".join({"*": "%", "?": "_"}.get(sign) or escaped(sign) for sign in pattern)
