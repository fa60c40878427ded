"""JSON texts laid out for people, a line an item, or what fits on a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from registry.sandbox.cache import WeighedCache

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode

#: what was laid out last, by characters: a long text is on every page of its version
_kept = WeighedCache[str](4_000_000, len)


def laid_out(text: str, *, width: int = 0) -> str:
    """A JSON text as `json.dumps` indents it by two, in a third of the time: that asks of each value once for each level.

    What fits into `width` characters stays on one line. Raises ValueError for a text that is none, RecursionError for one
    that is nested too deep.
    """
    return _kept.get((text, width), lambda: _written(json.loads(text), "\n", width))


def _written(value: Any, indent: str, width: int) -> str:
    if isinstance(value, dict) and value:
        inner = f"{indent}  "
        members = []
        for key, item in value.items():
            members.append(f"{_ENCODE(key)}: {_written(item, inner, width)}")
        return _line(members, indent, width, "{ %s }") or f"{{{inner}{f',{inner}'.join(members)}{indent}}}"
    if isinstance(value, list) and value:
        inner = f"{indent}  "
        items = []
        for item in value:
            items.append(_written(item, inner, width))  # noqa: PERF401  a comprehension is one more frame a level
        return _line(items, indent, width, "[%s]") or f"[{inner}{f',{inner}'.join(items)}{indent}]"
    return _ENCODE(value)


def _line(parts: Sequence[str], indent: str, width: int, around: str) -> str:
    """The parts on one line; "" where they don't fit."""
    if not width or len(indent) + sum(len(part) + 2 for part in parts) > width or any("\n" in part for part in parts):
        return ""
    return around % ", ".join(parts)
