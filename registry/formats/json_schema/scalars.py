"""Numbers and strings at the edges of what a writer and a reader say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import ceil
from typing import Any, Final

from registry.formats.json_schema.conjunction import Facts
from registry.formats.json_schema.format_samples import format_samples
from registry.formats.json_schema.strings import matching_strings

_MAX_LENGTH: Final = 20_000
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_HALF: Final = Decimal("0.5")
_PLAIN_NUMBERS: Final[tuple[int | Decimal, ...]] = (0, 1, -1, _HALF, 7, 1000, -1000, Decimal("1.25"), Decimal("-0.75"))
_PLAIN_TEXTS: Final = ("a", "", "0", "A", "abc", "2020-01-31", "x y", "é", "-", "1.5", "user@example.com", "zz-top_9")
_ALPHABET: Final = "abcdefghijklmnop"

Number = int | Decimal


def numbers(facts: Facts, hints: list[Mapping[str, Any]], *, is_whole: bool) -> Iterator[Number]:
    """Numbers around every bound and multiple, within the writer's bounds."""
    points: dict[Number, None] = {}
    for hint in (*hints, *facts.items):
        for keyword in _BOUNDS:
            bound = hint.get(keyword)
            if isinstance(bound, (int, Decimal)) and not isinstance(bound, bool):
                points.update(dict.fromkeys((bound, bound + 1, bound - 1, bound + _HALF, bound - _HALF)))
        points.update(dict.fromkeys(value for value in _listed(hint) if _is_number(value)))
    points.update(dict.fromkeys(_PLAIN_NUMBERS))
    steps = [value for hint in (*facts.items, *hints) for value in _steps(hint)]
    own_steps = [value for item in facts.items for value in _steps(item)]
    for point in list(points):
        for step in steps[:4]:
            nearest = step * ceil(point / Decimal(step)) if step else point
            points.update(dict.fromkeys((nearest, nearest + step, nearest - step)))
    for point in points:
        if is_whole and point != int(point):
            continue
        if own_steps or _within(point, facts):
            yield int(point) if is_whole else point


def texts(facts: Facts, hints: list[Mapping[str, Any]], seed: int) -> Iterator[str]:
    """Strings of the formats, of every length that matters, and some that the patterns match."""
    lengths: dict[int, None] = {}
    patterns: dict[str, None] = {}
    listed: dict[str, None] = {}
    for hint in (*facts.items, *hints):
        for keyword in ("minLength", "maxLength"):
            if keyword in hint:
                lengths.update(dict.fromkeys(int(hint[keyword]) + change for change in (0, 1, -1)))
        if isinstance(hint.get("pattern"), str):
            patterns[hint["pattern"]] = None
        listed.update(dict.fromkeys(value for value in _listed(hint) if isinstance(value, str)))
    formats = dict.fromkeys(hint["format"] for hint in (*facts.items, *hints) if isinstance(hint.get("format"), str))
    for format in formats:
        yield from format_samples(format, (length for length in lengths if 0 <= length <= _MAX_LENGTH))
    built = [text for pattern in patterns for text in matching_strings(pattern, seed, 6)]
    yield from built
    for length in lengths:
        if 0 <= length <= _MAX_LENGTH:
            yield (_ALPHABET * (length // len(_ALPHABET) + 1))[:length]
            yield from (_stretched(text, length) for text in built[:4] if text)
    yield from listed
    yield from _PLAIN_TEXTS


def _stretched(text: str, length: int) -> str:
    return (text + text[-1] * length)[:length] if length else ""


def _steps(hint: Mapping[str, Any]) -> list[Number]:
    value = hint.get("multipleOf")
    return [value] if isinstance(value, (int, Decimal)) and value else []


def _listed(hint: Mapping[str, Any]) -> list[Any]:
    return [*([hint["const"]] if "const" in hint else []), *hint.get("enum", ())[:200]]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _within(number: Number, facts: Facts) -> bool:
    return (
        all(number <= bound for bound in facts.values("maximum"))
        and all(number >= bound for bound in facts.values("minimum"))
        and all(number < bound for bound in facts.values("exclusiveMaximum"))
        and all(number > bound for bound in facts.values("exclusiveMinimum"))
    )
