"""Masks: what may be known of a value without the value. Of a text its length and the classes of its characters, of a
number its sign and magnitude, of bytes their length, of a date its year.
"""

from __future__ import annotations

import base64
import json
import math
import re
from typing import Any

SHAPE = 40  # characters of a text's shape
SHOWN = 200  # characters of a revealed value
SAMPLE = 4_000  # characters of a sample
DEEPEST = 20
WIDEST = 50  # items and fields of a sample
# A name that somebody gave a field. Keys that are data themselves (ids, addresses) stand for any key.
NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]{0,63}")
DATA_LIKE = re.compile(r"[0-9]{4}|[0-9a-fA-F]{8}-|[0-9a-fA-F]{16}")
SECONDS = {"date": 86_400, "ms": 0.001, "us": 0.000_001, "ns": 0.000_000_001}
YEAR = 31_556_952  # seconds, on average


def shape(text: str) -> str:
    """The classes of a text's characters and its length: `Ada-42` is `Aaa-99 (6)`."""
    classes = []
    for character in text[:SHAPE]:
        if character.isdigit():
            classes.append("9")
        elif character.isalpha():
            classes.append("A" if character.isupper() else "a")
        else:
            classes.append(character if " " <= character <= "~" else "?")
    cut = "…" if len(text) > SHAPE else ""
    return f"{''.join(classes)}{cut} ({len(text)})"


def magnitude(number: Any) -> int:
    """A number's sign and order of magnitude as one number that sorts as the numbers do; 0 for zero.

    `1e3` to `9.99e3` give 400 + 3, and their negatives the negative of it.
    """
    if number == 0:
        return 0
    size = abs(number)
    if isinstance(size, int):
        exponent = min(len(str(size)) - 1, 999) if size < 10**400 else 400
    else:
        exponent = math.floor(math.log10(size)) if size != math.inf else 400
    return (exponent + 400) if number > 0 else -(exponent + 400)


def shown_magnitude(code: int) -> str:
    """`0`, `1e3` or `-1e3`: the power of ten that a number reaches."""
    if code == 0:
        return "0"
    return f"{'-' if code < 0 else ''}1e{abs(code) - 400}"


def year_of(number: int, calendar: str) -> int:
    """The year of a date or time, a day off at most at its turn."""
    return 1970 + math.floor(number * SECONDS[calendar] / YEAR)


def masked_key(name: str) -> str:
    """A field's name, or `{}` for a key that looks like data."""
    return name if NAME.fullmatch(name) and not DATA_LIKE.search(name) else "{}"


def clean(text: str) -> str:
    """A text that can be stored: halves of surrogate pairs and zero characters are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def sample_text(value: Any, reveal: bool) -> str:
    """A decoded value as JSON for people, masked unless revealed, and cut."""
    text = clean(json.dumps(_plain(value) if reveal else masked(value), ensure_ascii=False, default=str))
    return text if len(text) <= SAMPLE else f"{text[:SAMPLE]}…"


def masked(value: Any, depth: int = 0) -> Any:
    """A decoded value with everything masked but its form."""
    if value is None or isinstance(value, bool):
        return value
    if depth >= DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {masked_key(str(name)): masked(inner, depth + 1) for name, inner in list(value.items())[:WIDEST]}
    if isinstance(value, (list, tuple)):
        return [masked(inner, depth + 1) for inner in value[:WIDEST]]
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    if isinstance(value, (int, float)):
        return shown_magnitude(magnitude(value)) if value == value else "NaN"  # noqa: PLR0124
    return shape(str(value))


def _plain(value: Any, depth: int = 0) -> Any:
    if depth >= DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return value
