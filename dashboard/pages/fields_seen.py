"""What data say of the fields of a version, for the table of its structure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.presenters.looks import Severity
from dashboard.presenters.subjects import FieldMarkLink, InData, SeenField
from dashboard.texts import later
from registry.drift.field_evidence import MAX_DAYS, FieldMark, FieldsSeen, fields_in_data
from registry.drift.weighing import FieldSeen
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName

#: rule of an open finding → what it says beside the field
WORDS: Final[Mapping[str, str]] = {
    "FIELD_UNDECLARED": later("not declared"),
    "FIELD_MISSING": later("missing, though required"),
    "FIELD_KIND_WRONG": later("another kind than declared"),
    "ENUM_VALUE_UNDECLARED": later("a value that isn’t listed"),
    "FIELD_KIND_NEW": later("a new kind of value"),
    "NULL_SHARE_ROSE": later("emptier than before"),
    "ENUM_SHARE_SHIFTED": later("values have shifted"),
    "FIELD_NEVER_FILLED": later("not filled any more"),
}
#: findings about fields that the version doesn't declare, that are listed below the table
MAX_ELSEWHERE: Final = 20


def seen_in_data(
    registry: Registry, subject: SubjectName, drawn: Iterable[str], declared: Iterable[str]
) -> tuple[InData, dict[str, SeenField]]:
    """What is known of the version, and of the fields that are `drawn`; `declared` are the paths of all its fields.

    A finding about a field of another part of the table is told there.
    """
    listed = list(drawn)
    known = fields_in_data(registry, subject, listed)
    others = {path.partition(".")[2].replace("{}", "[]") for path in declared}
    elsewhere = [mark for mark in known.elsewhere if mark.path.replace("{}", "[]") not in others]
    found = InData(
        is_scanned=known.is_scanned,
        days=MAX_DAYS,
        undeclared=tuple(_link(mark, named=True) for mark in elsewhere[:MAX_ELSEWHERE]),
        more_undeclared=max(0, len(elsewhere) - MAX_ELSEWHERE),
    )
    return found, {path: _field(path, known) for path in listed if path in known.seen or path in known.marks}


def _field(path: str, known: FieldsSeen) -> SeenField:
    seen = known.seen.get(path)
    marks = tuple(_link(mark) for mark in known.marks.get(path, ()))
    if seen is None or not seen.messages:
        return SeenField(marks=marks)
    is_always = seen.filled >= seen.messages  # which says how often it was present and null
    return SeenField(
        filled=_share(seen),
        never=not seen.filled,
        messages=seen.messages,
        present="" if is_always else _percent(seen.present, seen.messages),
        nulls="" if is_always else _percent(seen.nulls, seen.messages),
        last_day=seen.last_day if seen.present else None,
        marks=marks,
    )


def _share(seen: FieldSeen) -> str:
    """In how many of the messages the field had a value."""
    if not seen.filled:
        return gettext("never")
    if seen.filled >= seen.messages:
        return gettext("always")
    return _percent(seen.filled, seen.messages)


def _percent(part: int, whole: int) -> str:
    """A share; neither all nor none by rounding alone."""
    if not 0 < part < whole:
        return "0 %" if part <= 0 else "100 %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def _link(mark: FieldMark, *, named: bool = False) -> FieldMarkLink:
    word = WORDS.get(mark.rule, gettext("a finding"))
    return FieldMarkLink(
        word=word,
        path=mark.path if named else "",
        sentence=mark.sentence,
        severity=Severity.of(mark.severity),
        url=reverse("ui:finding", args=[mark.finding]),
    )
