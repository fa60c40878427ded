"""Text that others wrote, in Markdown, so that neither Markdown nor HTML makes anything of it."""

from __future__ import annotations

import re

_MARKS = re.compile(r"([\\`*_\[\]<>|#])")
_FENCES = re.compile("`+")


def plain(text: str) -> str:
    """A sentence in one line, its marks escaped."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """An inline code span, whatever backticks the text holds."""
    inside = " ".join(text.split())
    fence = "`" * (_longest(inside) + 1)
    return f"{fence} {inside} {fence}" if "`" in inside else f"{fence}{inside}{fence}"


def fenced(text: str, language: str) -> str:
    """A block of code."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest(text: str) -> int:
    return max((len(run) for run in _FENCES.findall(text)), default=0)
