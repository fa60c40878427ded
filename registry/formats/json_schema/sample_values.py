"""Sample strings and numbers: at the limits of a schema, in named formats, and matching a pattern."""

from __future__ import annotations

import random
import re._constants as constants  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import ceil
from typing import Any, Final

from registry.formats.json_schema.value_facts import Facts

MAX_PATTERN: Final = 1_000
_MAX_PATTERN_LENGTH: Final = 2_000
_MAX_REPEAT: Final = 200
_ANY: Final = "abcxyzABC019 _-"
_CATEGORIES: Final = {
    constants.CATEGORY_DIGIT: "0123456789",
    constants.CATEGORY_WORD: "abzAZ09_",
    constants.CATEGORY_SPACE: " \t",
    constants.CATEGORY_NOT_DIGIT: "ab _-",
    constants.CATEGORY_NOT_WORD: " -.!",
    constants.CATEGORY_NOT_SPACE: "ab09-",
}


class _TooLong(Exception):
    """The string is longer than useful."""


def matching_strings(pattern: str, seed: int, count: int = 4) -> list[str]:
    """Return a few strings that probably match the pattern; empty for an unsupported pattern."""
    if len(pattern) > MAX_PATTERN:
        return []
    try:
        tree = parser.parse(pattern)
        strings = [_Builder(random.Random(seed + number), is_short=number == 0).text(tree) for number in range(count)]  # noqa: S311 - no secret
    except (ValueError, OverflowError, RecursionError, _TooLong, re_error):
        return []
    return list(dict.fromkeys(strings))


re_error: Final[type[Exception]] = parser.error


class _Builder:
    """A builder of one string; a short one repeats as little as possible."""

    def __init__(self, chance: random.Random, *, is_short: bool) -> None:
        self._chance = chance
        self._is_short = is_short
        self._groups: dict[int, str] = {}
        self._length = 0

    def text(self, tree: Any) -> str:
        """Return the string for a sequence of nodes."""
        return "".join(self._node(kind, value) for kind, value in tree)

    def _node(self, kind: Any, value: Any) -> str:
        text = self._built(kind, value)
        self._length += 1
        if self._length > _MAX_PATTERN_LENGTH or len(text) > _MAX_PATTERN_LENGTH:
            raise _TooLong
        return text

    def _built(self, kind: Any, value: Any) -> str:
        if kind is constants.LITERAL:
            return chr(value)
        if kind is constants.NOT_LITERAL:
            return self._pick([char for char in _ANY if ord(char) != value])
        if kind is constants.ANY:
            return self._pick(list(_ANY))
        if kind is constants.IN:
            return self._pick(_members(value))
        if kind is constants.BRANCH:
            return self.text(self._chance.choice(value[1]))
        if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            return self._repeated(*value)
        if kind is constants.SUBPATTERN:
            text = self.text(value[-1])
            if value[0] is not None:
                self._groups[value[0]] = text
            return text
        if kind is constants.GROUPREF:
            return self._groups.get(value, "")
        if kind is constants.ATOMIC_GROUP:
            return self.text(value)
        return ""

    def _repeated(self, least: int, most: Any, tree: Any) -> str:
        limit = min(int(most), least + (0 if self._is_short else 3), _MAX_REPEAT)
        if least > _MAX_REPEAT * 5:
            raise _TooLong
        times = self._chance.randint(least, max(limit, least))
        return "".join(self.text(tree) for _ in range(times))

    def _pick(self, characters: list[str]) -> str:
        if not characters:
            raise _TooLong
        return self._chance.choice(characters)


def _members(items: Any) -> list[str]:
    """Return the characters of a class, a few of each range."""
    is_negated = bool(items) and items[0][0] is constants.NEGATE
    characters: list[str] = []
    for kind, value in items:
        if kind is constants.LITERAL:
            characters.append(chr(value))
        elif kind is constants.RANGE:
            low, high = value
            characters.extend(chr(code) for code in {low, (low + high) // 2, high})
        elif kind is constants.CATEGORY:
            characters.extend(_CATEGORIES.get(value, ""))
    characters = [char for char in characters if not "\ud800" <= char <= "\udfff"]
    if not is_negated:
        return characters
    barred = _Barred(items)
    return [char for char in _ANY + "éß." if char not in barred]


class _Barred:
    """The characters that a negated class excludes."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __contains__(self, char: str) -> bool:
        for kind, value in self._items:
            if kind is constants.LITERAL and ord(char) == value:
                return True
            if kind is constants.RANGE and value[0] <= ord(char) <= value[1]:
                return True
            if kind is constants.CATEGORY and char in _CATEGORIES.get(value, ""):
                return True
        return False


#: strings of each format, a typical one first (JSON Schema 2020-12, Validation, section 7.3)
_SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "date-time": ("2020-01-31T12:30:00Z",),
    "date": ("2020-01-31",),
    "time": ("12:30:00Z",),
    "duration": ("P1D", "P1Y2M3DT4H5M6S"),
    "email": ("user@example.com", "a@b.co"),
    "idn-email": ("user@example.com", "a@b.co"),
    "hostname": ("example.com", "a"),
    "idn-hostname": ("example.com", "a"),
    "ipv4": ("192.0.2.1", "127.0.0.1"),
    "ipv6": ("2001:db8::1", "::1"),
    "uri": ("https://example.com/a", "a:b"),
    "uri-reference": ("https://example.com/a", "/a"),
    "iri": ("https://example.com/a", "a:b"),
    "iri-reference": ("https://example.com/a", "/a"),
    "uuid": ("0f8fad5b-d9cb-469f-a165-70867728950e",),
    "uri-template": ("https://example.com/{a}", "/{a}"),
    "json-pointer": ("/a", ""),
    "relative-json-pointer": ("1/a", "0"),
    "regex": ("^a$", "a"),
}
#: (before, character, after): repeating the character fills a string of the format up to a length
_AROUND: Final[Mapping[str, tuple[str, str, str]]] = {
    "date-time": ("2020-01-31T12:30:00.", "1", "Z"),
    "time": ("12:30:00.", "1", "Z"),
    "email": ("", "a", "@example.com"),
    "idn-email": ("", "a", "@example.com"),
    "hostname": ("", "a", ".example.com"),
    "idn-hostname": ("", "a", ".example.com"),
    "uri": ("https://example.com/", "a", ""),
    "uri-reference": ("/", "a", ""),
    "iri": ("https://example.com/", "a", ""),
    "iri-reference": ("/", "a", ""),
    "uri-template": ("/", "a", ""),
    "json-pointer": ("/", "a", ""),
    "relative-json-pointer": ("1/", "a", ""),
    "regex": ("", "a", ""),
}


def format_samples(format: str, lengths: Iterator[int]) -> Iterator[str]:
    """Yield strings of a format, typical ones first, then one of each length; none for an unknown format."""
    yield from _SAMPLES.get(format, ())
    around = _AROUND.get(format)
    if around is not None:
        before, filling, after = around
        for length in lengths:
            count = length - len(before) - len(after)
            if count > 0:
                yield before + filling * count + after


_MAX_STRING_LENGTH: Final = 20_000
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_HALF: Final = Decimal("0.5")
_PLAIN_NUMBERS: Final[tuple[int | Decimal, ...]] = (0, 1, -1, _HALF, 7, 1000, -1000, Decimal("1.25"), Decimal("-0.75"))
_PLAIN_TEXTS: Final = ("a", "", "0", "A", "abc", "2020-01-31", "x y", "é", "-", "1.5", "user@example.com", "zz-top_9")
_ALPHABET: Final = "abcdefghijklmnop"

Number = int | Decimal


def numbers(facts: Facts, hints: list[Mapping[str, Any]], *, is_whole: bool) -> Iterator[Number]:
    """Yield numbers around every bound and multiple, within the writer's bounds."""
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
    """Yield strings of the formats, of every relevant length, and some that match the patterns."""
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
        yield from format_samples(format, (length for length in lengths if 0 <= length <= _MAX_STRING_LENGTH))
    built = [text for pattern in patterns for text in matching_strings(pattern, seed, 6)]
    yield from built
    for length in lengths:
        if 0 <= length <= _MAX_STRING_LENGTH:
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
