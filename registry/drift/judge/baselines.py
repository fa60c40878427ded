"""Compares the fields of a topic's messages with those of the last weeks, and decides when a share has changed.

Today's share is compared with the shares of the days before. Three conditions must hold: the sample is large enough;
the two proportions differ beyond chance (a two-proportion z test, strict because thousands of fields are tested every
day); and the share is outside the range of the days before by a margin. That range covers variation that isn't chance:
weekdays, seasons, a changing mix of records.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from registry.drift.judge.finding_builder import counted, kind_words, percent, share_of
from registry.drift.judge.model import FieldDay, JudgedFinding, Memory, TopicSide, fingerprint_of
from registry.observations import FieldProfile

if TYPE_CHECKING:
    from registry.drift.judge.fields import Bodies


MIN_DAYS: Final = 7  # all weekdays
MIN_DAY: Final = 50  # messages, for a day to count
MIN_BASELINE: Final = 1_000  # messages of all days
MIN_NOW: Final = 200  # messages of today
PART_OF_A_DAY: Final = 0.5  # of the usual day: earlier, today may only have its unusual hours
MIN_Z: Final = 6.0
NULL_FLOOR: Final = 0.10  # the smallest reported change of a share
VALUE_FLOOR: Final = 0.30
FILLED_FLOOR: Final = 20.0  # expected filled messages if none is filled: by chance once in e^20


@dataclass(frozen=True)
class Share:
    """`part` of `whole`."""

    part: int
    whole: int

    @property
    def value(self) -> float:
        """Return a value from 0 to 1; 0 if `whole` is 0."""
        return self.part / self.whole if self.whole else 0.0


@dataclass(frozen=True)
class ShareDeparture:
    """A share that departs from its baseline: the range and the number of the days before, and the z score."""

    now: Share
    least: float
    most: float
    days: int
    z: float


def z_score(now: Share, before: Share) -> float:
    """Return the z score of a two-proportion test with pooled variance; 0 for an empty sample or no variance."""
    if not now.whole or not before.whole:
        return 0.0
    pooled = (now.part + before.part) / (now.whole + before.whole)
    error = math.sqrt(pooled * (1 - pooled) * (1 / now.whole + 1 / before.whole))
    return (now.value - before.value) / error if error else 0.0


def usable(now: int, days: Sequence[int], usual: int) -> bool:
    """Return whether samples of these sizes (messages today, and on each day before) can be compared.

    `usual` is the number of messages on a day like today.
    """
    counted = [day for day in days if day >= MIN_DAY]
    return len(counted) >= MIN_DAYS and sum(counted) >= MIN_BASELINE and now >= max(MIN_NOW, PART_OF_A_DAY * usual)


def departure(now: Share, days: Sequence[Share], *, floor: float, usual: int) -> ShareDeparture | None:
    """Return how `now` departs from the days before; None without a departure or without enough data."""
    counted = [day for day in days if day.whole >= MIN_DAY]
    if not usable(now.whole, [day.whole for day in days], usual):
        return None
    least, most = min(day.value for day in counted), max(day.value for day in counted)
    margin = max(floor, (most - least) / 2)
    if least - margin < now.value < most + margin:
        return None
    before = Share(sum(day.part for day in counted), sum(day.whole for day in counted))
    z = z_score(now, before)
    return ShareDeparture(now, least, most, len(counted), z) if abs(z) >= MIN_Z else None


def departure_to_zero(now: Share, days: Sequence[Share], *, usual: int) -> ShareDeparture | None:
    """Return the departure of a share that fell to zero, however small it was: the expected number decides.

    The smallest share of any day before must make at least FILLED_FLOOR of today's messages expected.
    """
    counted = [day for day in days if day.whole >= MIN_DAY]
    if now.part or not usable(now.whole, [day.whole for day in days], usual):
        return None
    least, most = min(day.value for day in counted), max(day.value for day in counted)
    if least * now.whole < FILLED_FLOOR:
        return None
    before = Share(sum(day.part for day in counted), sum(day.whole for day in counted))
    return ShareDeparture(now, least, most, len(counted), z_score(now, before))


NEW_KIND_MESSAGES: Final = 20  # minimum of messages, and of their share, for reporting a new kind
NEW_KIND_SHARE: Final = 0.005
#: kinds that count as one: one producer writes both 1 and 1.5
_FAMILIES: Final[Mapping[str, str]] = {"integer": "number"}
#: in place of a framing: all versions of a subject together, so that a new version is compared with older ones
ALL_VERSIONS: Final = "subject"
COVERAGE: Final = 0.8  # of a subject's messages must have the path
_SAFE_VALUES: Final = frozenset({"true", "false"})


@dataclass(frozen=True)
class _History:
    """A field today and on the days before, as compared."""

    today: FieldDay
    days: tuple[FieldDay, ...]

    @property
    def usual(self) -> int:
        """Return the messages of a day like today: the minimum of the same weekdays, or the median of all days."""
        like = [day.messages for day in self.days if _weekday(day.day) == _weekday(self.today.day)]
        if like:
            return min(like)
        return sorted(day.messages for day in self.days)[len(self.days) // 2] if self.days else 0


def judge_baselines(
    bodies: Bodies, baselines: Mapping[str, Sequence[FieldDay]], *, reported: set[str]
) -> Iterator[JudgedFinding]:
    """Yield shares that departed from the last weeks, except for `reported` fields and the fields inside them."""
    if not bodies.messages:
        return
    silent = set(reported)
    for path in sorted({*bodies.profiles, *baselines}, key=lambda path: (path.count("."), path)):
        if any(path == above or path.startswith((f"{above}.", f"{above}[", f"{above}{{")) for above in silent):
            continue
        if "#" in path and bodies.framing and not bodies.versions:
            continue  # Protobuf's undeclared fields: declaring them is no loss
        for finding in _of_field(bodies, path, baselines.get(path, ())):
            silent.add(path)
            yield finding


def _of_field(bodies: Bodies, path: str, days: Sequence[FieldDay]) -> Iterator[JudgedFinding]:
    history = _history(bodies, "FIELD_NEVER_FILLED", path, days)
    gone = departure_to_zero(_filled(history.today), [_filled(day) for day in history.days], usual=history.usual)
    if gone is not None:
        yield _never_filled(bodies, path, gone)
        return
    history = _history(bodies, "NULL_SHARE_ROSE", path, days)
    rose = departure(
        _empty(history.today), [_empty(day) for day in history.days], floor=NULL_FLOOR, usual=history.usual
    )
    if rose is not None and rose.now.value > rose.most:
        yield _rose(bodies, path, rose)
    yield from _new_kind(bodies, path, _history(bodies, "FIELD_KIND_NEW", path, days))
    yield from _shifted(bodies, path, _history(bodies, "ENUM_SHARE_SHIFTED", path, days))


def _never_filled(bodies: Bodies, path: str, gone: ShareDeparture) -> JudgedFinding:
    names = {
        "messages": counted(gone.now.whole, "message"),
        "days": gone.days,
        "least": percent(gone.least),
        "most": percent(gone.most),
    }
    return bodies.finding("FIELD_NEVER_FILLED", path, gone.now.whole, names, _numbers(gone))


def _rose(bodies: Bodies, path: str, rose: ShareDeparture) -> JudgedFinding:
    names = {
        "now": percent(rose.now.value),
        "messages": counted(rose.now.whole, "message"),
        "days": rose.days,
        "least": percent(rose.least),
        "most": percent(rose.most),
    }
    return bodies.finding("NULL_SHARE_ROSE", path, rose.now.part, names, _numbers(rose))


def _new_kind(bodies: Bodies, path: str, history: _History) -> Iterator[JudgedFinding]:
    """Yield a kind that the days before didn't have, in data without a schema that restricts kinds."""
    if bodies.framing and not bodies.versions:
        return  # Avro and Protobuf: decoding enforces their schema
    if any(path in declared.fields for declared in bodies.declared):
        return
    days = history.days
    if not usable(history.today.messages, [day.messages for day in days], history.usual):
        return
    before = {_family(kind) for day in days for kind, number in day.kinds.items() if number} - {"null"}
    whole = sum(day.messages for day in days)
    for kind, number in sorted(history.today.kinds.items()):
        now = Share(min(number, history.today.messages), history.today.messages)
        is_new = before and kind != "null" and _family(kind) not in before
        if not is_new or number < NEW_KIND_MESSAGES or now.value < NEW_KIND_SHARE:
            continue
        if z_score(now, Share(0, whole)) < MIN_Z:
            continue
        names = {
            "observed": kind_words([kind]),
            "share": share_of(now.part, now.whole),
            "days": len(days),
            "before": kind_words(before),
        }
        yield bodies.finding(
            "FIELD_KIND_NEW", path, now.part, names, {"kind": kind, "before": sorted(before), "days": len(days)}
        )
        return


def _shifted(bodies: Bodies, path: str, history: _History) -> Iterator[JudgedFinding]:
    """Yield the symbol whose share changed most."""
    symbols = sorted({value for day in (history.today, *history.days) for value in day.values})
    now = sum(history.today.values.values())
    moved = []
    for value in symbols:
        days = [Share(day.values.get(value, 0), sum(day.values.values())) for day in history.days]
        shift_found = departure(
            Share(history.today.values.get(value, 0), now), days, floor=VALUE_FLOOR, usual=_usual_values(history)
        )
        if shift_found is not None:
            moved.append((abs(shift_found.z), value, shift_found))
    if not moved:
        return
    _, value, shift = max(moved, key=lambda item: (item[0], item[1]))
    shown = value if value in _SAFE_VALUES or (bodies.framing and not bodies.versions) else "(masked)"
    names = {
        "value": shown,
        "now": percent(shift.now.value),
        "messages": counted(shift.now.whole, "message"),
        "days": shift.days,
        "least": percent(shift.least),
        "most": percent(shift.most),
    }
    yield bodies.finding("ENUM_SHARE_SHIFTED", path, shift.now.part, names, {**_numbers(shift), "value": shown})


def _usual_values(history: _History) -> int:
    """Return the number of the field's values on a day like today."""
    values, messages = sum(history.today.values.values()), history.today.messages
    return round(history.usual * values / messages) if messages else 0


def _numbers(departure: ShareDeparture) -> dict[str, Any]:
    return {
        "share": round(departure.now.value, 4),
        "share_before": [round(departure.least, 4), round(departure.most, 4)],
        "days": departure.days,
        "z": round(departure.z, 1),
    }


def _filled(day: FieldDay) -> Share:
    return Share(max(0, min(day.present - day.nulls, day.messages)), day.messages)


def _empty(day: FieldDay) -> Share:
    filled = _filled(day)
    return Share(filled.whole - filled.part, filled.whole)


def _family(kind: str) -> str:
    return _FAMILIES.get(kind, kind)


# ---- the days -----------------------------------------------------------------------------------------------------


def baselines_of(memory: Memory, where: TopicSide, marks: Collection[tuple[str, str]]) -> dict[str, list[FieldDay]]:
    """Return each path's days over some marks of a topic's side, without days when most messages lacked the path.

    While producers move from a version without the path to one with it, its share only shows who has moved.
    """
    days_by_path: dict[str, dict[str, FieldDay]] = {}
    whole: dict[str, dict[tuple[str, str], int]] = {}
    for key, counted_days in memory.baselines_of_side.get(where, ()):
        mark = (key.framing, key.mark)
        if mark not in marks:
            continue
        days = days_by_path.setdefault(key.path, {})
        for day in counted_days:
            days[day.day] = day_sum(days[day.day], day) if day.day in days else day
            of_day = whole.setdefault(day.day, {})
            of_day[mark] = max(of_day.get(mark, 0), day.messages)
    totals = {day: sum(of_day.values()) for day, of_day in whole.items()}
    return {
        path: [day for name, day in sorted(days.items()) if day.messages >= COVERAGE * totals[name]]
        for path, days in days_by_path.items()
    }


def merge_profiles(profiles: Sequence[FieldProfile]) -> FieldProfile:
    """Merge one path's profiles of several marks."""
    first = profiles[0]
    whole = FieldDay("", first.messages, first.present, first.nulls, first.kinds, first.values)
    for profile in profiles[1:]:
        whole = day_sum(
            whole, FieldDay("", profile.messages, profile.present, profile.nulls, profile.kinds, profile.values)
        )
    return replace(
        first, messages=whole.messages, present=whole.present, nulls=whole.nulls, kinds=whole.kinds, values=whole.values
    )


def _history(bodies: Bodies, rule: str, path: str, days: Sequence[FieldDay]) -> _History:
    """Return today, including earlier scans of today, and the days before.

    While a finding with the same fingerprint is unresolved, the days since it began are excluded: otherwise drift would
    become its own baseline.
    """
    where = bodies.where
    profile = bodies.profiles.get(path)
    today = day_of(where.memory.as_of)
    now = FieldDay(today, bodies.messages, 0, 0)
    if profile is not None:
        now = FieldDay(today, profile.messages, profile.present, profile.nulls, profile.kinds, profile.values)
    identity = (where.reading.topic, where.side or "", bodies.framing, bodies.mark, path)
    finding = where.memory.findings.get(fingerprint_of(rule, identity))
    until = min(today, day_of(finding.since)) if finding is not None and finding.since else today
    if finding is None:
        for earlier in days:
            if earlier.day == today:
                now = day_sum(earlier, now)
    return _History(now, tuple(sorted((day for day in days if day.day < until), key=lambda day: day.day)))


def day_sum(one: FieldDay, other: FieldDay) -> FieldDay:
    """Merge two counts of one day."""
    return FieldDay(
        one.day,
        one.messages + other.messages,
        one.present + other.present,
        one.nulls + other.nulls,
        _added(one.kinds, other.kinds),
        _added(one.values, other.values),
    )


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def day_of(milliseconds: int) -> str:
    """Return the day in UTC, such as `2026-11-21`; times outside the calendar are clamped."""
    bounded = min(max(milliseconds, 0), 253_402_300_799_000)
    return datetime.fromtimestamp(bounded / 1000, UTC).strftime("%Y-%m-%d")


def _weekday(day: str) -> int:
    return date.fromisoformat(day).weekday()
