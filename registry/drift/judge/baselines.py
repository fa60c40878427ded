"""Compares the fields of a topic's messages with those of the last weeks, and decides when a share has changed.

Today's share is compared with the shares of the days before. Three conditions must hold: the sample is large enough;
the two proportions differ beyond chance (a two-proportion z test, strict because thousands of fields are tested every
day); and the share is outside the range of the days before by a margin. That range covers variation that isn't chance:
weekdays, seasons, a changing mix of records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from registry.drift.judge.field_history import MIN_DAY, MIN_DAYS, PART_OF_A_DAY, FieldHistory, family, history_of
from registry.drift.judge.field_values import judge_values
from registry.drift.judge.finding_builder import counted, kind_words, percent, share_of
from registry.drift.judge.model import FieldDay, JudgedFinding

if TYPE_CHECKING:
    from registry.drift.judge.fields import Bodies


MIN_BASELINE: Final = 1_000  # messages of all days
MIN_NOW: Final = 200  # messages of today
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
_SAFE_VALUES: Final = frozenset({"true", "false"})


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
    history = history_of(bodies, "FIELD_NEVER_FILLED", path, days)
    gone = departure_to_zero(_filled(history.today), [_filled(day) for day in history.days], usual=history.usual)
    if gone is not None:
        yield _never_filled(bodies, path, gone)
        return
    history = history_of(bodies, "NULL_SHARE_INCREASED", path, days)
    rose = departure(
        _empty(history.today),
        [_empty(day) for day in history.days],
        floor=history.floor(NULL_FLOOR),
        usual=history.usual,
    )
    if rose is not None and rose.now.value > rose.most:
        yield _rose(bodies, path, rose)
    yield from _new_kind(bodies, path, history_of(bodies, "FIELD_TYPE_NEW", path, days))
    yield from _shifted(bodies, path, history_of(bodies, "ENUM_SHARE_SHIFTED", path, days))
    yield from judge_values(bodies, path, days)


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
    return bodies.finding("NULL_SHARE_INCREASED", path, rose.now.part, names, _numbers(rose))


def _new_kind(bodies: Bodies, path: str, history: FieldHistory) -> Iterator[JudgedFinding]:
    """Yield a kind that the days before didn't have, in data without a schema that restricts kinds."""
    if bodies.framing and not bodies.versions:
        return  # Avro and Protobuf: decoding enforces their schema
    if any(path in declared.fields for declared in bodies.declared):
        return
    days = history.days
    if not usable(history.today.messages, [day.messages for day in days], history.usual):
        return
    before = {family(kind) for day in days for kind, number in day.kinds.items() if number} - {"null"}
    whole = sum(day.messages for day in days)
    for kind, number in sorted(history.today.kinds.items()):
        now = Share(min(number, history.today.messages), history.today.messages)
        is_new = before and kind != "null" and family(kind) not in before
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
            "FIELD_TYPE_NEW", path, now.part, names, {"kind": kind, "before": sorted(before), "days": len(days)}
        )
        return


def _shifted(bodies: Bodies, path: str, history: FieldHistory) -> Iterator[JudgedFinding]:
    """Yield the symbol whose share changed most."""
    symbols = sorted({value for day in (history.today, *history.days) for value in day.values})
    now = sum(history.today.values.values())
    moved = []
    for value in symbols:
        days = [Share(day.values.get(value, 0), sum(day.values.values())) for day in history.days]
        shift_found = departure(
            Share(history.today.values.get(value, 0), now),
            days,
            floor=history.floor(VALUE_FLOOR),
            usual=_usual_values(history),
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


def _usual_values(history: FieldHistory) -> int:
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
