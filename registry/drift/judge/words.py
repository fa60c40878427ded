"""Numbers, times and marks as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from registry.drift.judge.model import Mark, RegisteredVersion
from registry.formats.policies.spark_state import StateChange

HINTS: Final = {
    "empty": "nothing at all",
    "cut_frame": "a frame that is cut off",
    "json_object": "a JSON object",
    "json_array": "a JSON array",
    "xml": "XML",
    "avro_file": "an Avro file",
    "gzip": "gzip",
    "text": "text",
    "binary": "binary data",
}
FRAMINGS: Final = {
    "id": "a schema id in the body",
    "guid": "a schema GUID in a header",
    "content_type": "a content type that names the schema",
}
_MARKS: Final = {"id": "schema id", "guid": "schema GUID", "content_type": "content type"}
_KINDS: Final = {
    "string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "a list", "null": "null",
}  # fmt: skip
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_LAST_TIME: Final = 253_402_300_799_000  # the end of the year 9999
LONGEST_MARK: Final = 200  # characters of a header's text
SHOWN: Final = 4  # names in a sentence; the evidence has them all


def counted(number: int, noun: str) -> str:
    """`1 message`, `1,234 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """`3 %`, `0.2 %`; never `0 %` for more than nothing, nor `100 %` for less than all."""
    value = share * 100
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    if value < 0.1:
        return "under 0.1 %"
    if value > 99.9:
        return "over 99.9 %"
    return f"{value:.1f} %" if value < 10 or value > 99 else f"{value:.0f} %"


def share_of(part: int, whole: int) -> str:
    """`41 of 5,000 messages`, `all 5,000 messages`."""
    if part == whole:
        return counted(whole, "message") if whole == 1 else f"all {counted(whole, 'message')}"
    return f"{part:,} of {counted(whole, 'message')}"


def moment(milliseconds: int) -> str:
    """`2026-11-21 09:14 UTC`; a time beyond the calendar as its number."""
    if not 0 <= milliseconds <= _LAST_TIME:
        return f"time {milliseconds:,}"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def span_of_time(milliseconds: int) -> str:
    """`3 minutes`, in the largest unit that fits."""
    seconds = max(0, milliseconds) // 1000
    for unit, name in _UNITS:
        if seconds >= unit:
            return counted(seconds // unit, name)
    return "less than a second"


def mark_words(mark: Mark) -> str:
    """`schema id 7`, `schema GUID …`, `content type vnd.orders.v1`."""
    framing, text = mark
    return f"{_MARKS[framing]} {text if len(text) <= LONGEST_MARK else text[:LONGEST_MARK] + '…'}"


def change_words(change: StateChange) -> str:
    """`age added (long)`, `age removed (long)`, `age integer → long`; by position, where the name moved, its sentence."""
    if change.rule.startswith("POSITION"):
        return change.message
    if change.before is None:
        return f"{change.path} added ({change.after})"
    if change.after is None:
        return f"{change.path} removed ({change.before})"
    return f"{change.path} {change.before} → {change.after}"


def capitalised(text: str) -> str:
    """With a capital at the beginning, the rest as it is."""
    return text[:1].upper() + text[1:]


def kind_words(kinds: Iterable[str]) -> str:
    """`a string or null`."""
    return either([_KINDS.get(kind, kind) for kind in sorted(kinds, key=lambda kind: (kind == "null", kind))])


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return _listed(names, "or")


def both(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return _listed(names, "and")


def _listed(names: Sequence[str], word: str) -> str:
    if len(names) > SHOWN + 1:
        names = [*names[:SHOWN], f"{len(names) - SHOWN:,} more"]
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def named(versions: Iterable[RegisteredVersion]) -> list[tuple[str, int]]:
    """The subject and number of each, once."""
    return sorted({(version.subject, version.version) for version in versions})


def owners(versions: Iterable[RegisteredVersion]) -> str:
    """`orders-value version 3, archive-value version 1`."""
    names = named(versions)
    shown = [f"{subject} version {version}" for subject, version in names[:SHOWN]]
    return ", ".join(shown + ([f"{len(names) - SHOWN:,} more"] if len(names) > SHOWN else []))
