"""When a share departs from the last weeks: never on a small sample, never by a small amount.

A share of today is held against the shares of the days before. Three things must be true at once: the sample is large
enough; the two proportions differ beyond chance (a two-proportion z test, strict because thousands of fields are
tested every day); and the share lies outside of the range of the days before by a margin. The range holds what
chance doesn't explain: weekdays, seasons, a changing mix of records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MIN_DAYS: Final = 7  # all weekdays
MIN_DAY: Final = 50  # messages, for a day to count
MIN_BASELINE: Final = 1_000  # messages of all days
MIN_NOW: Final = 200  # messages of today
PART_OF_A_DAY: Final = 0.5  # of the usual day: before that, today may be its odd hours alone
MIN_Z: Final = 6.0
NULL_FLOOR: Final = 0.10  # the least change of a share that is worth telling
VALUE_FLOOR: Final = 0.30
FILLED_FLOOR: Final = 20.0  # as many filled messages are expected where none is: by chance once in e^20


@dataclass(frozen=True)
class Share:
    """`part` of `whole`."""

    part: int
    whole: int

    @property
    def value(self) -> float:
        """From 0 to 1; 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0


@dataclass(frozen=True)
class Departure:
    """A share that departs from its baseline: the range of the days before, how many they are, and the z score."""

    now: Share
    least: float
    most: float
    days: int
    z: float


def z_score(now: Share, before: Share) -> float:
    """Of a two-proportion test with the pooled variance; 0 where either sample is empty, infinite for certainty."""
    if not now.whole or not before.whole:
        return 0.0
    pooled = (now.part + before.part) / (now.whole + before.whole)
    error = math.sqrt(pooled * (1 - pooled) * (1 / now.whole + 1 / before.whole))
    return (now.value - before.value) / error if error else 0.0


def usable(now: int, days: Sequence[int], usual: int) -> bool:
    """Whether samples of those sizes (messages today, and of each day before) can be compared at all.

    `usual` is how many messages a day like today has, all in all.
    """
    counted = [day for day in days if day >= MIN_DAY]
    return len(counted) >= MIN_DAYS and sum(counted) >= MIN_BASELINE and now >= max(MIN_NOW, PART_OF_A_DAY * usual)


def departure(now: Share, days: Sequence[Share], *, floor: float, usual: int) -> Departure | None:
    """How `now` departs from the days before, None where it doesn't or nothing can be said. See the module's text."""
    counted = [day for day in days if day.whole >= MIN_DAY]
    if not usable(now.whole, [day.whole for day in days], usual):
        return None
    least, most = min(day.value for day in counted), max(day.value for day in counted)
    margin = max(floor, (most - least) / 2)
    if least - margin < now.value < most + margin:
        return None
    before = Share(sum(day.part for day in counted), sum(day.whole for day in counted))
    z = z_score(now, before)
    return Departure(now, least, most, len(counted), z) if abs(z) >= MIN_Z else None


def vanished(now: Share, days: Sequence[Share], *, usual: int) -> Departure | None:
    """The same for a share that fell to nothing, however small it was: there, the number that is missing decides.

    The smallest share of any day before must make FILLED_FLOOR of today's messages expected.
    """
    counted = [day for day in days if day.whole >= MIN_DAY]
    if now.part or not usable(now.whole, [day.whole for day in days], usual):
        return None
    least, most = min(day.value for day in counted), max(day.value for day in counted)
    if least * now.whole < FILLED_FLOOR:
        return None
    before = Share(sum(day.part for day in counted), sum(day.whole for day in counted))
    return Departure(now, least, most, len(counted), z_score(now, before))
