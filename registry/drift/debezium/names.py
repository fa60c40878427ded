"""What becomes of the names of tables and columns: topics, Avro full names, fields; and which of them meet.

Two alphabets: a topic has letters, digits, `.`, `_` and `-`, an Avro name letters, digits and `_`. Topics are always
adjusted; full names and fields by the connector's `schema.name.adjustment.mode` and `field.name.adjustment.mode`. Full
names are made of the topic, so what the topic's alphabet lost is lost for them too. The rules are those of the
connector 3.7; tests hold them against what its own classes made of names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

Mode = Literal["none", "avro", "avro_unicode"]
T = TypeVar("T")

MAX_TOPIC: Final = 249
_NOT_IN_TOPICS: Final = re.compile(r"[^A-Za-z0-9._-]")
_AVRO_FULL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTER: Final = re.compile(r"[A-Za-z]")
_LETTER_OR_UNDERSCORE: Final = re.compile(r"[A-Za-z_]")
_DIGIT: Final = re.compile(r"[0-9]")


def topic_name(text: str) -> str:
    """The topic that a name becomes: other characters as `_` (one each of UTF-16), cut after 249 characters."""
    # Java's characters are those of UTF-16: one beyond the basic plane becomes two underscores.
    name = "".join(_NOT_IN_TOPICS.sub("_" * len(_units(char)), char) for char in text)[:MAX_TOPIC]
    return {".": "_", "..": "__"}.get(name, name)


def schema_name(text: str, mode: Mode) -> str:
    """The full name of a Connect schema under `schema.name.adjustment.mode`; dots divide it and stay."""
    return _adjusted(text, mode, dots=True)


def field_name(column: str, mode: Mode) -> str:
    """The name of a column's field under `field.name.adjustment.mode`."""
    return _adjusted(column, mode, dots=False)


def is_avro_full_name(text: str) -> bool:
    """Whether every part of a full name is an Avro name."""
    return _AVRO_FULL_NAME.fullmatch(text) is not None


def is_avro_name(text: str) -> bool:
    """Whether a field's name is an Avro name."""
    return _AVRO_NAME.fullmatch(text) is not None


def _adjusted(text: str, mode: Mode, *, dots: bool) -> str:
    if mode == "none" or not text:
        return text
    first_fits = _LETTER if mode == "avro_unicode" else _LETTER_OR_UNDERSCORE
    out = []
    for place, unit in enumerate(_units(text)):
        fits = bool(first_fits.fullmatch(unit)) or (
            place > 0 and (_DIGIT.fullmatch(unit) is not None or (dots and unit == "."))
        )
        if fits:
            out.append(unit)
        elif mode == "avro_unicode":
            out.append(_escaped(unit))
        else:
            # A digit that can't begin a name stays behind the underscore, those of other scripts too, which Avro
            # doesn't take.
            out.append("_" + (unit if place == 0 and unit.isdecimal() else ""))
    return "".join(out)


def _escaped(unit: str) -> str:
    """`_u` and the character's number in hexadecimal: as Java prints it, and `00` before two digits or one."""
    number = f"{ord(unit):x}"
    return f"_u{'00' if len(number) <= 2 else ''}{number}"


def _units(text: str) -> list[str]:
    """The characters of a text as Java counts them, surrogates apart."""
    if all(ord(char) <= 0xFFFF for char in text):
        return list(text)
    data = text.encode("utf-16-be", "surrogatepass")
    return [chr(int.from_bytes(data[place : place + 2], "big")) for place in range(0, len(data), 2)]


# ---- names that meet ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NamedTable:
    """A table that is captured, with the names that the connector gives it."""

    table: str
    topic: str
    full_name: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Meeting:
    """Names that become one: `kind` says which, `becomes` what they become, `names` the tables, topics or columns.

    `topic`: several tables share a topic. `broker`: topics that differ in `.` and `_` alone, of which the broker
    refuses the second. `full_name`: tables on topics of their own whose schemas have one Avro name. `field`: columns of
    one table (`table`) that become one field. `case`: columns of a table that differ in letter case alone.
    """

    kind: Literal["topic", "broker", "full_name", "field", "case"]
    becomes: str
    names: tuple[str, ...]
    table: str = ""


def meetings(tables: Sequence[NamedTable]) -> list[Meeting]:
    """Which names of the captured tables meet; in linear time."""
    found = [
        Meeting("topic", topic, tuple(sorted(each.table for each in group)))
        for topic, group in _grouped(tables, lambda each: each.topic)
    ]
    topics = sorted({each.topic for each in tables})
    found += [
        Meeting("broker", becomes, tuple(group))
        for becomes, group in _grouped(topics, lambda topic: topic.replace(".", "_"))
    ]
    by_topic = {each.topic: each for each in tables}
    found += [
        Meeting("full_name", name, tuple(sorted(each.table for each in group)))
        for name, group in _grouped(list(by_topic.values()), lambda each: each.full_name)
    ]
    for each in tables:
        found += [
            Meeting("field", field, tuple(sorted(columns)), each.table)
            for field, columns in _grouped(sorted(each.fields), lambda column, made=each.fields: made[column])  # type: ignore[misc]
        ]
        found += [
            Meeting("case", column, tuple(columns), each.table)
            for column, columns in _grouped(sorted(each.fields), str.lower)
        ]
    return found


def _grouped(things: Iterable[T], name: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    groups: dict[str, list[T]] = {}
    for thing in things:
        groups.setdefault(name(thing), []).append(thing)
    return [(becomes, group) for becomes, group in sorted(groups.items()) if len(group) > 1]
