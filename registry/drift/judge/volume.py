"""Compares the number of messages of each topic with the same hours of the last weeks: silence, and changes of volume.

The numbers are those of offsets between scans, whatever a scan could read of them. An hour is compared with the same
hour of the week, in up to four weeks. While fewer than three weeks are known, it is compared with the same hour of the
last days instead, of which at least seven must be known.

What most topics of a source do at the same time, as in a sale or on a holiday, isn't a change of one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Final

from registry.drift.judge.field_values import confidence_of, confidence_of_new, distance
from registry.drift.judge.finding_builder import counted, messages_between, percent, subject_of_topic
from registry.drift.judge.model import (
    HOUR_MS,
    MOST_HOURS,
    JudgedFinding,
    Memory,
    Registered,
    TopicMemory,
    TopicVolume,
    fingerprint_of,
    make_finding,
)

DAY: Final = 24  # hours
WEEK: Final = 7 * DAY
LONGEST: Final = 2 * DAY  # hours between scans: what came within a longer time can't be said by hour
MIN_WEEKS, MOST_WEEKS = 3, 4
MIN_SAME_DAYS, MOST_SAME_DAYS = 7, 14
MIN_USUAL: Final = 100  # messages in the hours that are compared
MIN_EXPECTED: Final = 10  # messages in the least of the same hours, for silence
NOISE: Final = 0.15  # the smallest deviation of the logarithm that counts as one
ROSE, FELL = math.log(2), math.log(0.4)
BESIDE_OTHERS: Final = math.log(1.7)  # the change must be this much more than that of the other topics
SHOWN_PERIODS: Final = 28
MIN_TOPICS: Final = 5  # from which on they are compared with each other


@dataclass(frozen=True)
class _Period:
    """Hours of a topic, and the messages of the same hours before: of weeks or of days."""

    topic: str
    volume: TopicVolume
    first: int
    last: int
    messages: int
    before: tuple[int, ...]
    of_weeks: bool

    @property
    def usual(self) -> float:
        return median(self.before)

    @property
    def change(self) -> float:
        """Return the logarithm of the ratio to the usual."""
        return math.log((self.messages + 1) / (self.usual + 1))


def judge_volume(registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """Yield topics that fell silent, and those whose volume changed beside that of the other topics."""
    volumes = {name: topic for name, topic in sorted(memory.topics.items()) if topic.volume and not topic.gone}
    periods = {name: period for name, topic in volumes.items() if (period := _last_period(memory, name, topic))}
    changes = [period.change for period in periods.values() if period.usual >= MIN_USUAL]
    others = median(changes) if len(changes) >= MIN_TOPICS else 0.0
    for name, topic in volumes.items():
        silence = _silence(memory, name, topic)
        if silence is not None:
            yield _silent(registered, topic, silence)
        elif name in periods and (confidence := _changed(memory, periods[name], others)) is not None:
            yield _moved(registered, topic, periods[name], confidence)


def _last_period(memory: Memory, name: str, topic: TopicMemory) -> _Period | None:
    """Return the hours that are over since the last scan, at least one."""
    assert topic.volume is not None
    first = min(topic.volume.since, topic.volume.now - 1)
    return _period(memory, "VOLUME_CHANGED", name, topic.volume, first, topic.volume.now)


def _period(memory: Memory, rule: str, name: str, volume: TopicVolume, first: int, last: int) -> _Period | None:
    """Return the hours with the same hours of the last weeks or days; None if too few are known.

    While a finding is unresolved, only hours before it count; once a person has accepted it, only those since.
    """
    messages = volume.between(first, last)
    if messages is None or last - first > LONGEST:
        return None
    fingerprint = fingerprint_of(rule, (name,))
    finding, accepted = memory.findings.get(fingerprint), memory.accepted.get(fingerprint)
    begin = (accepted or 0) // HOUR_MS
    until = finding.since // HOUR_MS if finding is not None and finding.since and accepted is None else last
    for step, least, most in ((WEEK, MIN_WEEKS, MOST_WEEKS), (DAY, MIN_SAME_DAYS, MOST_SAME_DAYS)):
        starts = [first - step * number for number in range(1, MOST_HOURS // step + 1)]
        same = [
            volume.between(start, start + last - first)
            for start in starts
            if start >= begin and start + last - first <= min(until, first)
        ]
        known = [number for number in same if number is not None][:most]
        if len(known) >= least:
            return _Period(name, volume, first, last, messages, tuple(known), step == WEEK)
    return None


def _silence(memory: Memory, name: str, topic: TopicMemory) -> _Period | None:
    """Return the hours since the last message if the same hours before always had messages."""
    volume = topic.volume
    assert volume is not None
    last = max((index for index, number in enumerate(volume.hours) if number), default=None)
    if last is None or last == len(volume.hours) - 1:
        return None
    first = max(volume.start + last + 1, volume.now - LONGEST)
    period = _period(memory, "TOPIC_SILENT", name, volume, first, volume.now)
    return period if period is not None and period.before and min(period.before) >= MIN_EXPECTED else None


def _changed(memory: Memory, period: _Period, others: float) -> float | None:
    """Return the confidence that the volume changed; None if it didn't, in this period and the one before."""
    if not _departs(period, others):
        return None
    if fingerprint_of("VOLUME_CHANGED", (period.topic,)) not in memory.findings:
        length = period.last - period.first
        earlier = _period(
            memory, "VOLUME_CHANGED", period.topic, period.volume, period.first - length, period.last - length
        )
        if earlier is None or not _departs(earlier, others) or (earlier.change > 0) != (period.change > 0):
            return None
    logs = [math.log(number + 1) for number in period.before]
    return confidence_of(distance(math.log(period.messages + 1), logs, NOISE))


def _departs(period: _Period, others: float) -> bool:
    """Return whether the volume doubled or fell to 0.4 of the usual, outside of the periods and beside other topics.

    Of four periods, one may have been a holiday or a sale.
    """
    if period.usual < MIN_USUAL:
        return False
    odd = 1 if len(period.before) > MIN_WEEKS else 0
    ordered = sorted(period.before)
    if period.change >= ROSE:
        return period.messages >= 1.5 * ordered[-1 - odd] and period.change - others >= BESIDE_OTHERS
    is_less = period.change <= FELL and period.messages <= 0.6 * ordered[odd]
    return is_less and others - period.change >= BESIDE_OTHERS


# ---- the findings ---------------------------------------------------------------------------------------------------


def _silent(registered: Registered, topic: TopicMemory, period: _Period) -> JudgedFinding:
    hours = counted(period.last - period.first, "hour")
    change = f"no message in the last {hours}, where the same hours had {messages_between(period.before)}"
    return _finding("TOPIC_SILENT", registered, topic, period, change, confidence_of_new(len(period.before)))


def _moved(registered: Registered, topic: TopicMemory, period: _Period, confidence: float) -> JudgedFinding:
    hours = counted(period.last - period.first, "hour")
    change = (
        f"{counted(period.messages, 'message')} in {hours}, where the same hours had {messages_between(period.before)}"
    )
    more: dict[str, Any] = {"severity": "notice"} if period.change > 0 else {}
    return _finding("VOLUME_CHANGED", registered, topic, period, change, confidence, **more)


def _finding(
    rule: str,
    registered: Registered,
    topic: TopicMemory,
    period: _Period,
    change: str,
    confidence: float,
    **more: Any,
) -> JudgedFinding:
    name = period.topic
    periods = counted(len(period.before), "week" if period.of_weeks else "day")
    names = {"topic": name, "change": change, "periods": periods, "sure": percent(confidence)}
    evidence = {
        "topic": name,
        "change": change,
        "confidence": round(confidence, 3),
        "periods": len(period.before),
        "by_day": list(_rows(period)),
    }
    subject = subject_of_topic(name, registered, topic)
    return make_finding(rule, names, (name,), location=name, evidence=evidence, topic=name, subject=subject, **more)


def _rows(period: _Period) -> Iterator[Mapping[str, Any]]:
    """Yield the same hours of the days before, and the period itself."""
    length = period.last - period.first
    step = max(length, DAY)
    for start in (period.first - step * number for number in range(SHOWN_PERIODS, 0, -1)):
        messages = period.volume.between(start, start + length)
        if messages is not None:
            yield {"when": _hour(start), "messages": messages}
    yield {"when": "now", "messages": period.messages}


def _hour(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m-%d %H:%M UTC")
