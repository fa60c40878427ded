"""A field today and on the days before: what its values, shares and kinds are compared with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from registry.drift.judge.model import FieldDay, Memory, TopicSide, fingerprint_of
from registry.observations import FieldProfile

if TYPE_CHECKING:
    from registry.drift.judge.fields import Bodies

MIN_DAYS: Final = 7  # all weekdays
MIN_DAY: Final = 50  # messages, for a day to count
PART_OF_A_DAY: Final = 0.5  # of the usual day: earlier, today may only have its unusual hours
KNOWN_FLOOR: Final = 0.75  # of the change that a new finding needs
#: in place of a framing: all versions of a subject together, so that a new version is compared with older ones
ALL_VERSIONS: Final = "subject"
COVERAGE: Final = 0.8  # of a subject's messages must have the path
#: kinds that count as one: one producer writes both 1 and 1.5
_FAMILIES: Final[Mapping[str, str]] = {"integer": "number"}


@dataclass(frozen=True)
class FieldHistory:
    """A field today (all scans of today) and on the days before, as compared.

    `scan` is what this scan alone read, `last` what the scan or day before it had. `is_known`: a finding of the rule is
    unresolved.
    """

    today: FieldDay
    days: tuple[FieldDay, ...]
    scan: FieldDay
    last: FieldDay | None = None
    is_known: bool = False

    @property
    def usual(self) -> int:
        """Return the messages of a day like today; of a known finding at most those that there are since it began."""
        return min(self.usual_day, self.today.messages) if self.is_known else self.usual_day

    def floor(self, least: float) -> float:
        """Return the smallest reported change of a share: less for a known finding, or it would come and go."""
        return least * KNOWN_FLOOR if self.is_known else least

    @property
    def usual_day(self) -> int:
        """Return the messages of a day like today: the minimum of the same weekdays, or the median of all days."""
        like = [day.messages for day in self.days if _weekday(day.day) == _weekday(self.today.day)]
        if like:
            return min(like)
        return sorted(day.messages for day in self.days)[len(self.days) // 2] if self.days else 0


def history_of(bodies: Bodies, rule: str, path: str, days: Sequence[FieldDay]) -> FieldHistory:
    """Return today, including earlier scans of today, and the days before.

    While a finding with the same fingerprint is unresolved, the days since it began are excluded: otherwise drift would
    become its own baseline. Once a person has accepted it, only the days since it began count. A known finding is
    compared with as many of the newest messages as a new one needs: one of several scans a day proves nothing alone.
    """
    where = bodies.where
    profile = bodies.profiles.get(path)
    today = day_of(where.memory.as_of)
    scan = FieldDay(today, bodies.messages, 0, 0) if profile is None else day_of_profile(profile, today)
    fingerprint = fingerprint_of(rule, (where.reading.topic, where.side or "", bodies.framing, bodies.mark, path))
    finding, accepted = where.memory.findings.get(fingerprint), where.memory.accepted.get(fingerprint)
    is_known = finding is not None and accepted is None
    until = min(today, day_of(finding.since)) if finding and finding.since and is_known else today
    begin = day_of(accepted) if accepted is not None else ""
    ordered = sorted((day for day in days if begin <= day.day <= today), key=lambda day: day.day)
    before = tuple(day for day in ordered if day.day < until)
    history = FieldHistory(scan, before, scan, ordered[-1] if ordered else None, is_known)
    for earlier in reversed(ordered):
        if earlier.day < until or (is_known and history.today.messages >= PART_OF_A_DAY * history.usual_day):
            break
        history = replace(history, today=replace(day_sum(earlier, history.today), day=today))
    return history


def baselines_of(memory: Memory, where: TopicSide, marks: Collection[tuple[str, str]]) -> dict[str, list[FieldDay]]:
    """Return each path's days over some marks of a topic's side, without days when most messages lacked the path.

    While producers move from a version without the path to one with it, its share only shows who has moved.
    """
    days_by_path: dict[str, dict[str, FieldDay]] = {}
    for key, counted_days in memory.baselines_of_side.get(where, ()):
        if (key.framing, key.mark) in marks:
            days = days_by_path.setdefault(key.path, {})
            for day in counted_days:
                days[day.day] = day_sum(days[day.day], day) if day.day in days else day
    totals = Counter[str]()
    for mark, messages in messages_by_mark(memory, where).items():
        if mark in marks:
            totals.update(messages)
    return {
        path: [day for name, day in sorted(days.items()) if day.messages >= COVERAGE * totals[name]]
        for path, days in days_by_path.items()
    }


def messages_by_mark(memory: Memory, where: TopicSide) -> dict[tuple[str, str], dict[str, int]]:
    """Return the decoded messages of each mark of a topic's side by day: as many as its most frequent field had."""
    by_mark: dict[tuple[str, str], dict[str, int]] = {}
    for key, counted_days in memory.baselines_of_side.get(where, ()):
        days = by_mark.setdefault((key.framing, key.mark), {})
        for day in counted_days:
            if day.messages:
                days[day.day] = max(days.get(day.day, 0), day.messages)
    return by_mark


def merge_profiles(profiles: Sequence[FieldProfile]) -> FieldProfile:
    """Merge one path's profiles of several marks."""
    whole = day_of_profile(profiles[0], "")
    for profile in profiles[1:]:
        whole = day_sum(whole, day_of_profile(profile, ""))
    return replace(
        profiles[0],
        messages=whole.messages,
        present=whole.present,
        nulls=whole.nulls,
        kinds=whole.kinds,
        values=whole.values,
        distinct=whole.distinct,
        minimum=whole.minimum,
        maximum=whole.maximum,
    )


def day_of_profile(profile: FieldProfile, day: str) -> FieldDay:
    """Return a scan's counts of a path as those of a day."""
    return FieldDay(
        day, profile.messages, profile.present, profile.nulls, profile.kinds, profile.values,
        profile.distinct, profile.minimum or "", profile.maximum or "",
    )  # fmt: skip


def day_sum(one: FieldDay, other: FieldDay) -> FieldDay:
    """Merge two counts of one day. Distinct values can't be added: the larger number is kept."""
    distinct = [number for number in (one.distinct, other.distinct) if number is not None]
    return FieldDay(
        one.day,
        one.messages + other.messages,
        one.present + other.present,
        one.nulls + other.nulls,
        _added(one.kinds, other.kinds),
        _added(one.values, other.values),
        max(distinct, default=None),
        outer_end(one.minimum, other.minimum, least=True),
        outer_end(one.maximum, other.maximum, least=False),
    )


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def family(kind: str) -> str:
    """Return the kind that a kind counts as."""
    return _FAMILIES.get(kind, kind)


_ORDER: Final = re.compile(r"(-?)1e(-?\d{1,4})")
_NUMBER: Final = re.compile(r"(-?\d[\d,]{0,18})(?:\.\d+)?(?: (characters|bytes|items))?")
ORDER, YEAR = "order", "year"
ORDER_OF_ONE: Final = 400  # the rank of 1e0; smaller numbers sort between zero and this


def end_of(text: str) -> tuple[str, int] | None:
    """Return the unit and rank of a masked minimum or maximum: `1e3`, `-1e3`, `12 characters`, `3 items`, `2026`.

    The rank of a number is its order of magnitude, shifted so that its sign is that of the number. None for other texts.
    """
    if order := _ORDER.fullmatch(text):
        rank = max(1, int(order[2]) + ORDER_OF_ONE)
        return ORDER, -rank if order[1] else rank
    if number := _NUMBER.fullmatch(text):
        rank = int(number[1].replace(",", ""))
        return number[2] or (YEAR if rank else ORDER), rank
    return None


def outer_end(one: str, other: str, *, least: bool) -> str:
    """Return the smaller or greater of two masked ends; an empty text is unknown."""
    if not one or not other:
        return one or other
    first, second = end_of(one), end_of(other)
    is_first = first[1] < second[1] if first and second and first[0] == second[0] else one < other
    return one if is_first == least else other


def day_of(milliseconds: int) -> str:
    """Return the day in UTC, such as `2026-11-21`; times outside the calendar are clamped."""
    bounded = min(max(milliseconds, 0), 253_402_300_799_000)
    return datetime.fromtimestamp(bounded / 1000, UTC).strftime("%Y-%m-%d")


def _weekday(day: str) -> int:
    return date.fromisoformat(day).weekday()
