"""Compares the values of a field with those of the last weeks: their unit, their number, and their range.

What is known of values is masked: orders of magnitude, lengths, years, and how many differ. Each comparison is against
all of the days before, so that weekends and nightly jobs are part of what is usual. What a single message can cause is
reported when two scans in a row show it.

The confidence is a lower limit that assumes no distribution. For a distance from the usual it is Cantelli's inequality
with the median and the median absolute deviation. For what no day had, it is the rule of succession.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from registry.drift.judge.field_history import (
    MIN_DAY,
    MIN_DAYS,
    ORDER,
    ORDER_OF_ONE,
    PART_OF_A_DAY,
    YEAR,
    FieldHistory,
    end_of,
    family,
    history_of,
)
from registry.drift.judge.finding_builder import percent
from registry.drift.judge.model import GRACE, FieldDay, JudgedFinding

if TYPE_CHECKING:
    from registry.drift.judge.fields import Bodies

MIN_VALUES: Final = 200  # of the scan
TRANSITION: Final = 3  # days in which producers move
MIN_Z: Final = 5.0
MOST_CONFIDENT: Final = 0.999
LISTED_DAYS: Final = 28
RECENT_VERSION: Final = 2 * GRACE  # a version this young may have brought a new symbol
UNITS: Final = (2, 3, 6, 9)  # powers of ten between units: cents, milliseconds, microseconds, nanoseconds
UNIT_TOLERANCE: Final = 0.75
FAR_YEARS: Final = 10
MANY_TIMES: Final = 4  # more or fewer different values
CLOSED_SET: Final = 50  # the most values of a closed set
MIN_DISTINCT: Final = 5  # below it, fewer values may be chance
NEW_SYMBOL: Final = 20  # messages
EPOCH_DIGITS: Final = {10: "seconds", 13: "milliseconds", 16: "microseconds", 19: "nanoseconds"}
GREATEST: Final = "the greatest value is"
MIN_SPREAD: Final = 3  # characters between the shortest and the longest of texts that vary
#: the smallest deviation that counts as one, by unit; and how far outside of all days an end has to be
_NOISE: Final = {ORDER: 0.3, YEAR: 1.0, "distinct": 0.1}
_MARGIN: Final = {ORDER: 2.0, YEAR: 10.0}
_SIZE_NOISE: Final = 0.1
_SIZE_MARGIN: Final = math.log10(MANY_TIMES)


@dataclass(frozen=True)
class ValueRange:
    """The least and the greatest value of a day: ranks in one unit (see `end_of`)."""

    unit: str
    low: int
    high: int

    @property
    def is_size(self) -> bool:
        """Return whether the values are lengths or numbers of items."""
        return self.unit not in (ORDER, YEAR)


@dataclass(frozen=True)
class Change:
    """What changed in words, how sure that is, and the number of days compared; `is_minor`: it is only a notice.

    `is_lack`: something usual is missing, as in the quiet hours of a day. Such a change needs most of a day.
    """

    words: str
    confidence: float
    is_minor: bool = False
    is_lack: bool = False
    days: int = 0


@dataclass(frozen=True)
class Compared:
    """A field's scan and the days that it is compared with, with their ranges (None: unknown)."""

    history: FieldHistory
    scan: FieldDay
    days: tuple[FieldDay, ...]
    has_new_version: bool = False

    @property
    def now(self) -> ValueRange | None:
        """Return the range of the scan."""
        return range_of(self.scan)

    @property
    def before(self) -> list[ValueRange]:
        """Return the ranges of the days in the scan's unit; empty if a day has none."""
        now, ranges = self.now, [range_of(day) for day in self.days]
        known = [each for each in ranges if each is not None and now is not None and each.unit == now.unit]
        return known if len(known) == len(ranges) else []


def judge_values(bodies: Bodies, path: str, days: Sequence[FieldDay]) -> Iterator[JudgedFinding]:
    """Yield how a field's values changed: the first of unit, number and range that did."""
    for rule, judged, needs_two in (
        ("UNIT_CHANGED", unit_change, False),
        ("DISTINCT_VALUES_CHANGED", distinct_change, False),
        ("DISTINCT_VALUES_CHANGED", new_value, True),
        ("VALUES_OUT_OF_RANGE", range_change, True),
    ):
        compared = _compared(bodies, rule, path, days)
        change = confirmed(compared, judged) if needs_two else after_transition(compared, judged)
        if change is not None:
            yield _finding(bodies, rule, path, compared, change)
            return


def after_transition(compared: Compared, judged: Callable[[Compared], Change | None]) -> Change | None:
    """Return a change against the days before the last few: while producers are replaced, days have both."""
    kept = max(MIN_DAYS, len(compared.days) - TRANSITION)
    before = replace(compared, days=compared.days[:kept])
    return _judged(before, judged)


def _judged(compared: Compared, judged: Callable[[Compared], Change | None]) -> Change | None:
    change, history = judged(compared) if is_enough(compared) else None, compared.history
    if change is not None and change.is_lack and not history.is_known:
        is_day = history.today.messages >= PART_OF_A_DAY * history.usual
        change = judged(replace(compared, scan=history.today)) if is_day else None
    return None if change is None else replace(change, days=len(compared.days))


def confirmed(compared: Compared, judged: Callable[[Compared], Change | None]) -> Change | None:
    """Return a change that the scan or day before had too; a known one needs no second proof.

    The day before isn't part of what is usual: it would hide the change.
    """
    last, history = compared.history.last, compared.history
    if last is None:
        return None
    days = compared.days if last.day == history.today.day and not history.is_known else compared.days[:-1]
    shorter = replace(compared, days=days)
    change = _judged(shorter, judged)
    if change is None or history.is_known:
        return change
    return change if judged(replace(shorter, scan=last)) is not None else None


def is_enough(compared: Compared) -> bool:
    """Return whether the scan and the days have enough values to compare."""
    return len(compared.days) >= MIN_DAYS and filled(compared.scan) >= MIN_VALUES


def _compared(bodies: Bodies, rule: str, path: str, days: Sequence[FieldDay]) -> Compared:
    """Return the days with values of the scan's type: where a version declares another type, they start again."""
    history = history_of(bodies, rule, path, days)
    kinds = _families(history.scan)
    like = tuple(day for day in history.days if filled(day) >= MIN_DAY and _families(day) == kinds)
    memory, events = bodies.where.memory, bodies.where.registered.events
    subjects = {bodies.mark, *bodies.where.subjects}
    has_new_version = any(event.subject in subjects and event.at > memory.as_of - RECENT_VERSION for event in events)
    return Compared(history, history.scan, like, has_new_version)


def _families(day: FieldDay) -> frozenset[str]:
    return frozenset(family(kind) for kind, number in day.kinds.items() if number) - {"null"}


def filled(day: FieldDay) -> int:
    """Return the number of messages with a value."""
    return max(0, min(day.present - day.nulls, day.messages))


def range_of(day: FieldDay) -> ValueRange | None:
    """Return the range of a day's values; None if it is unknown or its ends have different units."""
    low, high = end_of(day.minimum), end_of(day.maximum)
    if low is None or high is None:
        return None
    return ValueRange(low[0], low[1], high[1]) if low[0] == high[0] else None


# ---- how sure -------------------------------------------------------------------------------------------------------


def distance(now: float, days: Sequence[float], noise: float) -> float:
    """Return how many robust standard deviations `now` is from the median of the days."""
    middle = median(days)
    spread = 1.4826 * median(abs(day - middle) for day in days)
    return (now - middle) / max(spread, noise)


def confidence_of(z: float) -> float:
    """Return the least probability that a value so far from the mean is no chance, by Cantelli's inequality."""
    return min(MOST_CONFIDENT, z * z / (1 + z * z))


def confidence_of_new(days: int, proofs: int = 2) -> float:
    """Return how sure it is that what none of the days had is no chance, seen so many times in a row."""
    return min(MOST_CONFIDENT, 1 - (1 / (days + 2)) ** proofs)


def joint_confidence(one: float, other: float) -> float:
    """Return how sure two independent reasons are together."""
    return min(MOST_CONFIDENT, 1 - (1 - one) * (1 - other))


# ---- unit and form --------------------------------------------------------------------------------------------------


def unit_change(compared: Compared) -> Change | None:
    """Return a change of unit or form: both ends moved alike, dates moved by decades, texts got another fixed length."""
    now, before = compared.now, compared.before
    if now is None or not before:
        return None
    if now.unit == ORDER:
        return _scaled(now, before)
    if now.unit == YEAR:
        return _moved_years(now, before)
    return _reformed(compared.scan, now, before) if now.unit == "characters" else None


def _scaled(now: ValueRange, before: Sequence[ValueRange]) -> Change | None:
    """Return numbers whose ends grew or shrank by the same factor between units."""
    if any(day.high <= 0 or (day.low > 0) != (now.low > 0) for day in before) or now.high <= 0 or now.low == 0:
        return None
    ends = ((abs(now.low), [abs(day.low) for day in before]), (now.high, [day.high for day in before]))
    shifts = [end - median(days) for end, days in ends]
    sign = 1 if shifts[1] > 0 else -1
    if any(sign * end <= max(sign * day for day in days) for end, days in ends):
        return None
    shift = abs(sum(shifts)) / 2
    power = min(UNITS, key=lambda unit: abs(shift - unit))
    if abs(shift - power) > UNIT_TOLERANCE:
        return None
    sure = [confidence_of(distance(end, days, _NOISE[ORDER])) for end, days in ends]
    factor = f"{10**power:,} times {'larger' if sign > 0 else 'smaller'}"
    return Change(f"the numbers are about {factor}", joint_confidence(*sure))


def _moved_years(now: ValueRange, before: Sequence[ValueRange]) -> Change | None:
    lows, highs = [day.low for day in before], [day.high for day in before]
    if not (now.high < min(lows) - FAR_YEARS or now.low > max(highs) + FAR_YEARS):
        return None
    sure = joint_confidence(
        *(confidence_of(distance(*end, _NOISE[YEAR])) for end in ((now.low, lows), (now.high, highs)))
    )
    return Change(f"the dates moved to {_span(now.low, now.high)} from {_span(min(lows), max(highs))}", sure)


def _reformed(scan: FieldDay, now: ValueRange, before: Sequence[ValueRange]) -> Change | None:
    """Return texts that have one length now, and had another one or many."""
    if now.low != now.high or not now.low or (scan.distinct or 0) < MIN_DISTINCT:
        return None
    was_fixed = all(day.low == day.high == before[0].low for day in before) and before[0].low != now.low
    has_varied = all(day.high - day.low >= MIN_SPREAD for day in before)
    if not was_fixed and not has_varied:
        return None
    epoch = EPOCH_DIGITS.get(now.low)
    like = f", as a time in {epoch} has" if epoch else ""
    words = _span(min(day.low for day in before), max(day.high for day in before))
    words = f"all texts have {now.low} characters{like}, and had {words}"
    return Change(words, confidence_of_new(len(before)), is_lack=has_varied)


def _span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


# ---- how many values differ -----------------------------------------------------------------------------------------


def distinct_change(compared: Compared) -> Change | None:
    """Return a number of different values that fell or rose many times over, beyond what the volume explains."""
    now, scan = compared.scan.distinct, compared.scan
    days = [(day.distinct or 0, filled(day)) for day in compared.days]
    if not now or scan.values or any(not number for number, _ in days):
        return None
    numbers = [math.log10(number) for number, _ in days]
    z = distance(math.log10(now), numbers, _NOISE["distinct"])
    least = min(number * min(1.0, filled(scan) / whole) for number, whole in days)
    most = max(number * max(1.0, filled(scan) / whole) for number, whole in days)
    usual = _span(min(number for number, _ in days), max(number for number, _ in days))
    if z <= -MIN_Z and now * MANY_TIMES <= least and min(number for number, _ in days) >= MIN_DISTINCT:
        words = "all values are the same" if now == 1 else f"only {now:,} values differ"
        return Change(f"{words}, where it was {usual}", confidence_of(z), is_lack=True)
    if z >= MIN_Z and now >= most * MANY_TIMES and now >= MIN_DISTINCT:
        return Change(f"{now:,} values differ, where it was {usual}", confidence_of(z))
    return None


def new_value(compared: Compared) -> Change | None:
    """Return a value that a closed set didn't have. A symbol that a young version may have added isn't new."""
    scan, days = compared.scan, compared.days
    if scan.values:
        known = {value for day in days for value, number in day.values.items() if number}
        had, more = len(known), sum(n >= NEW_SYMBOL and value not in known for value, n in scan.values.items())
        is_closed = not compared.has_new_version
    else:
        had = min(day.distinct or 0 for day in days)
        more = (scan.distinct or 0) - had
        is_closed = (
            all(day.distinct == had and filled(day) >= had * MIN_DAY for day in days) and more < had * MANY_TIMES
        )
    if not is_closed or more <= 0 or not 2 <= had <= CLOSED_SET:
        return None
    words = f"{more:,} new {'value' if more == 1 else 'values'} beside the {had:,} that it always had"
    return Change(words, confidence_of_new(len(days)), is_minor=True)


# ---- the range ------------------------------------------------------------------------------------------------------


def range_change(compared: Compared) -> Change | None:
    """Return what is outside of the range of every day before: a sign, empty texts or lists, an end far away."""
    now, before = compared.now, compared.before
    if now is None or not before:
        return None
    sure = confidence_of_new(len(before))
    lows, highs = [day.low for day in before], [day.high for day in before]
    if now.unit == ORDER and now.low < 0 <= min(lows):
        return Change("there are negative numbers, and there were none", sure)
    if now.unit == ORDER and max(lows) < 0 <= now.low and min(highs) > 0:
        is_long = len(before) >= 3 * MIN_DAYS - 1
        return Change("there are no negative numbers any more", sure, is_lack=True) if is_long else None
    if now.unit == "characters" and now.low == 0 < min(lows):
        return Change("there are empty texts, and there were none", sure)
    if now.unit == "items" and now.high == 0 < min(highs):
        return Change("the lists are all empty, and they never were", sure, is_lack=True)
    return _far_end(now, before)


def _far_end(now: ValueRange, before: Sequence[ValueRange]) -> Change | None:
    """Return an end far outside of all days: greater, less, or a greatest value that is far less than ever."""
    lows, highs = [day.low for day in before], [day.high for day in before]
    margin = _MARGIN.get(now.unit, _SIZE_MARGIN)
    tests = [(GREATEST, now.high, highs)]
    if now.unit == YEAR or (now.unit == ORDER and now.low < 0):
        tests.append(("the least value is", now.low, lows))
    for words, end, days in tests:
        scaled = [_scale(now, day) for day in days]
        z = distance(_scale(now, end), scaled, _NOISE.get(now.unit, _SIZE_NOISE))
        is_above = _scale(now, end) >= max(scaled) + margin
        is_below = _scale(now, end) <= min(scaled) - margin and (end > 0 or now.unit == ORDER)
        if abs(z) >= MIN_Z and (is_above or is_below):
            ends = f"{shown(now, end)}, where it was {shown(now, min(days))} to {shown(now, max(days))}"
            is_lack = is_below if words == GREATEST else is_above
            return Change(f"{words} {ends}", confidence_of(z), is_lack=is_lack)
    return None


def _scale(now: ValueRange, rank: int) -> float:
    return math.log10(1 + rank) if now.is_size else float(rank)


def shown(now: ValueRange, rank: int) -> str:
    """Return a rank as text for people."""
    if now.unit == ORDER:
        return "0" if rank == 0 else f"{'-' if rank < 0 else ''}1e{abs(rank) - ORDER_OF_ONE}"
    return str(rank) if now.unit == YEAR else f"{rank:,} {now.unit}"


# ---- the finding ----------------------------------------------------------------------------------------------------


def _finding(bodies: Bodies, rule: str, path: str, compared: Compared, change: Change) -> JudgedFinding:
    scan = compared.scan
    names: dict[str, Any] = {"change": change.words, "days": change.days, "sure": percent(change.confidence)}
    rows = [*compared.days[-LISTED_DAYS:], scan]
    evidence = {
        "change": change.words,
        "confidence": round(change.confidence, 3),
        "days": change.days,
        "by_day": [_row(day, is_now=day is rows[-1]) for day in rows],
    }
    more: dict[str, Any] = {"severity": "notice"} if change.is_minor else {}
    return bodies.finding(rule, path, filled(scan), names, evidence, **more)


def _row(day: FieldDay, *, is_now: bool) -> dict[str, Any]:
    return {
        "when": "now" if is_now else day.day,
        "messages": filled(day),
        **({"distinct": day.distinct} if day.distinct is not None else {}),
        **({"minimum": day.minimum, "maximum": day.maximum} if day.minimum and day.maximum else {}),
    }
