"""Finds versions whose messages stopped while the rest of their topic goes on: one of several producers is missing.

Messages don't say which producer wrote them, but producers of different releases write different versions. Where all
messages of the new release come in place of the old one's, nothing is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from statistics import median
from typing import Any, Final, cast

from registry.drift.judge.field_history import MIN_DAY, MIN_DAYS, day_of, messages_by_mark
from registry.drift.judge.field_values import confidence_of_new
from registry.drift.judge.finding_builder import counted, mark_evidence, mark_words, messages_between, owners, percent
from registry.drift.judge.model import (
    JudgedFinding,
    Mark,
    Memory,
    Registered,
    RegisteredVersion,
    fingerprint_of,
    make_finding,
)
from registry.drift.judge.topic_observations import TopicObservations, count_of

#: the topic must have at least this share of the other versions' usual messages, or the topic as a whole has less
REST: Final = 0.5
#: the topic's messages must be less than on any day before, by this share of the version's usual ones
MISSING: Final = 0.5
MIN_SHARE: Final = 0.1  # of the topic's messages: less is lost in the variation of the others
MIN_SAME_WEEKDAYS: Final = 3  # from which on only these are compared
Days = Mapping[str, int]


def judge_silent_versions(
    reading: TopicObservations, registered: Registered, memory: Memory
) -> Iterator[JudgedFinding]:
    """Yield the active versions of a topic's values without a message since at least one whole day."""
    by_mark = {
        cast("Mark", mark): days
        for mark, days in messages_by_mark(memory, (reading.topic, "value")).items()
        if mark[0]  # messages without framing name no version
    }
    if len(by_mark) < 2:
        return
    today = day_of(memory.as_of)
    for mark, days in sorted(by_mark.items()):
        active = [each for each in registered.versions.get(mark, ()) if not each.deleted and not each.status]
        identity = (reading.topic, "value", *mark)
        accepted = memory.accepted.get(fingerprint_of("VERSION_SILENT", identity))
        begin = day_of(accepted) if accepted is not None else ""
        known = {day: number for day, number in days.items() if begin <= day <= today}
        if not (active and known) or count_of(reading.framed.get(("value", mark), ())):
            continue
        others = Counter[str]()
        for other in by_mark.keys() - {mark}:
            others.update({day: n for day, n in by_mark[other].items() if begin <= day < today})
        if _is_missing(known, others):
            yield _silent(reading, registered, mark, active, known)


def _is_missing(days: Days, others: Days) -> bool:
    """Return whether a version that came each day is gone, and nothing took its place.

    `others` are the messages of the other versions, without today's, which isn't over yet.
    """
    whole = _whole_days(days)
    first, last = min(days), max(days)
    before = sorted(day for day in {*whole, *others} if first < day < last)
    since = [day for day in others if day > last]
    if not since or len(whole) < MIN_DAYS or min(whole.get(day, 0) for day in before) < MIN_DAY:
        return False
    usual = median(whole.values())
    if usual < MIN_SHARE * median(whole[day] + others.get(day, 0) for day in before):
        return False
    return all(
        others[day] >= REST * min(others.get(like, 0) for like in _like(day, before))
        and others[day] + MISSING * usual <= min(whole[like] + others.get(like, 0) for like in _like(day, before))
        for day in since
    )


def _whole_days(days: Days) -> dict[str, int]:
    """Return the days between the first and the last, of which the version may have only a part."""
    first, last = min(days), max(days)
    return {day: number for day, number in days.items() if first < day < last}


def _like(day: str, before: Sequence[str]) -> Sequence[str]:
    """Return the same weekdays, if there are enough of them."""
    weekday = date.fromisoformat(day).weekday()
    same = [other for other in before if date.fromisoformat(other).weekday() == weekday]
    return same if len(same) >= MIN_SAME_WEEKDAYS else before


def _silent(
    reading: TopicObservations, registered: Registered, mark: Mark, active: Sequence[RegisteredVersion], days: Days
) -> JudgedFinding:
    whole, last = _whole_days(days), max(days)
    usual = messages_between(whole.values())
    sure = confidence_of_new(len(whole))
    names = {
        "topic": reading.topic,
        "mark": mark_words(mark),
        "owners": owners(active),
        "last": last,
        "days": counted(len(whole), "day"),
        "usual": usual,
        "sure": percent(sure),
    }
    evidence: dict[str, Any] = {
        "topic": reading.topic,
        **mark_evidence(mark),
        "owners": owners(active),
        "change": f"no message after {last}, where each of {counted(len(whole), 'day')} before had {usual}",
        "confidence": round(sure, 3),
        "periods": len(whole),
        "by_day": [
            *({"when": day, "messages": number} for day, number in sorted(days.items())),
            {"when": "now", "messages": 0},
        ],
    }
    return make_finding(
        "VERSION_SILENT",
        names,
        (reading.topic, "value", *mark),
        location=reading.topic,
        evidence=evidence,
        topic=reading.topic,
        subject=active[0].subject,
    )
