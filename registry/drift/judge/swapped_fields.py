"""Finds messages in which the values of two fields are swapped, although each of them decodes.

Bytes that were written with another schema than their id says decode if both schemas have the same types in the same
places. The values tell: in each message the one field is smaller than the other, in all but some messages the same one,
and no value of the two is as large as one of the other. Fields whose values overlap are never reported.

Some data is like that without a fault: a debit and a credit. So there must be a reason: a version of the subject has the
two fields in each other's place, or the ranges of the two never met on the days before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from registry.drift.judge.declared_fields import parent_of
from registry.drift.judge.field_history import MIN_DAY, MIN_DAYS, ORDER, day_of_profile, history_of
from registry.drift.judge.field_values import (
    ValueRange,
    confidence_of_new,
    filled,
    joint_confidence,
    range_of,
    shown,
)
from registry.drift.judge.finding_builder import both, mark_words, named, offending_at, owners, percent
from registry.drift.judge.model import FieldDay, JudgedFinding, Mark, RegisteredVersion
from registry.formats import format_of
from registry.observations import FieldProfile, RankedMessages

if TYPE_CHECKING:
    from registry.drift.judge.fields import Bodies

RULE: Final = "FIELDS_SWAPPED"
MIN_MESSAGES: Final = 50
MIN_SWAPPED: Final = 10
UNCLEAR: Final = 50  # one message of so many may have values between the two ranges
LEAST_ALIKE: Final = 0.8  # of the swapped values are in the usual range of the other field
MOST_EXAMPLES: Final = 20
TEXTS: Final = frozenset({"string", "bytes", "fixed"})
_NUMBER, _LENGTH, _DIGITS, _CAPITALS = ORDER, "characters", "% digits", "% capitals"
#: what a rank says of a value (see `pipeline.workers.value_ranks`)
_VIEWS: Final[Mapping[str, Callable[[int], int]]] = {
    _NUMBER: lambda rank: rank,
    _LENGTH: lambda rank: rank // 10_000,
    _DIGITS: lambda rank: rank // 100 % 100,
    _CAPITALS: lambda rank: rank % 100,
}


@dataclass(frozen=True)
class RankedMessage:
    """A message with the ranks of two fields."""

    mark: tuple[str, str]
    partition: int
    offset: int
    ranks: tuple[int, int]


@dataclass(frozen=True)
class Swap:
    """Two fields with the messages in which they are swapped, and with their usual values as the view shows them."""

    paths: tuple[str, str]
    view: str
    swapped: tuple[RankedMessage, ...]
    usual: tuple[RankedMessage, ...]
    compared: int
    days: int = 0  # on which the ranges of the two fields didn't meet; 0: unknown

    def words(self, field: int) -> str:
        """Return the usual values of a field."""
        view = _VIEWS[self.view]
        values = [view(message.ranks[field]) for message in self.usual]
        values += [view(message.ranks[1 - field]) for message in self.swapped]
        low, high = min(values), max(values)
        if self.view == _NUMBER:
            ends = [shown(ValueRange(ORDER, 0, 0), _order(end)) for end in (low, high)]
        else:
            ends = [str(end if self.view == _LENGTH else end * 10) for end in (low, high)]
        text = ends[0] if ends[0] == ends[1] else " to ".join(ends)
        return text if self.view == _NUMBER else f"{text} {self.view}"


def judge_swapped(bodies: Bodies, days: Mapping[str, Sequence[FieldDay]]) -> Iterator[JudgedFinding]:
    """Yield the pairs of fields that are swapped in some of a subject's messages, or of JSON without a schema."""
    ranked = [item for item in bodies.where.reading.ranked.get(bodies.where.side, ()) if _mark(item) in bodies.marks]
    orders = _orders(bodies) if ranked else {}
    reordered = {pair for one, other in combinations(orders.values(), 2) for pair in _swapped_places(one, other)}
    reported: set[str] = set()
    for pair, sign in _pairs(bodies.profiles, {path for item in ranked for path in item.paths}):
        before = _ranges_before(bodies, pair, days)
        usual = _usual_sign(before)
        has_reason = pair in reordered or (usual != 0 and len(before) >= MIN_DAYS)
        if not has_reason or (sign and sign == (usual or sign)) or not reported.isdisjoint(pair):
            continue
        swap = find_swap(pair, _messages(ranked, pair), before, is_text=_is_text(bodies.profiles[pair[0]]))
        others = _fitting(bodies, orders, swap) if swap is not None else []
        if swap is not None and (others or swap.days >= MIN_DAYS):
            reported.update(pair)
            yield _finding(bodies, swap, others)


# ---- what is compared -----------------------------------------------------------------------------------------------


def _mark(item: RankedMessages) -> tuple[str, str]:
    return item.framing or "", item.mark


def _pairs(profiles: Mapping[str, FieldProfile], ranked: Iterable[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the siblings that both are texts, or both numbers, and which of them is greater in the whole scan."""
    paths = sorted(path for path in ranked if path in profiles and "#" not in path)
    known = {path: (parent_of(path), _is_text(profiles[path])) for path in paths}
    ranges = {path: range_of(day_of_profile(profiles[path], "")) for path in paths}
    for one, other in combinations(paths, 2):
        if known[one] == known[other]:
            yield (one, other), _usual_sign(_same_unit(ranges[one], ranges[other]))


def _same_unit(one: ValueRange | None, other: ValueRange | None) -> list[tuple[ValueRange, ValueRange]]:
    return [(one, other)] if one is not None and other is not None and one.unit == other.unit else []


def _is_text(profile: FieldProfile) -> bool:
    return not TEXTS.isdisjoint(kind for kind, number in profile.kinds.items() if number)


def _messages(ranked: Iterable[RankedMessages], pair: tuple[str, str]) -> list[RankedMessage]:
    """Return the messages with a value of both fields; zeros and empty texts may be of either."""
    messages = []
    for item in ranked:
        if not set(pair) <= set(item.paths):
            continue
        first, second = (item.paths.index(path) for path in pair)
        messages += [
            RankedMessage(_mark(item), partition, offset, (one, other))
            for partition, offset, ranks in item.rows
            if (one := ranks[first]) and (other := ranks[second])
        ]
    return messages


def _ranges_before(
    bodies: Bodies, pair: tuple[str, str], days: Mapping[str, Sequence[FieldDay]]
) -> list[tuple[ValueRange, ValueRange]]:
    """Return the ranges of both fields on the days before; with none before today, those of the last scan."""
    history = history_of(bodies, RULE, pair[0], days.get(pair[0], ()))
    first = history.days or ((history.last,) if history.last is not None and not history.is_known else ())
    second = {day.day: day for day in days.get(pair[1], ())}
    ranges: list[tuple[ValueRange, ValueRange]] = []
    for day in first:
        other = second.get(day.day)
        if other is None or min(filled(day), filled(other)) < MIN_DAY:
            continue
        ranges += _same_unit(range_of(day), range_of(other))
    return ranges


# ---- the values -----------------------------------------------------------------------------------------------------


def find_swap(
    paths: tuple[str, str],
    messages: Sequence[RankedMessage],
    before: Sequence[tuple[ValueRange, ValueRange]],
    *,
    is_text: bool,
) -> Swap | None:
    """Return the messages in which two fields are swapped; None if there are too few, or the values overlap."""
    if len(messages) < MIN_MESSAGES:
        return None
    for number, view in enumerate((_LENGTH, _DIGITS, _CAPITALS) if is_text else (_NUMBER,)):
        signs = _signs([(_VIEWS[view](m.ranks[0]), _VIEWS[view](m.ranks[1])) for m in messages])
        known = _usual_sign(before) if number == 0 else 0
        usual = known or (1 if signs.count(1) >= signs.count(-1) else -1)
        swap = Swap(
            paths,
            view,
            swapped=tuple(m for m, sign in zip(messages, signs, strict=False) if sign == -usual),
            usual=tuple(m for m, sign in zip(messages, signs, strict=False) if sign == usual),
            compared=len(messages),
            days=len(before) if known else 0,
        )
        if len(swap.swapped) >= max(MIN_SWAPPED, 3 * signs.count(0)) and _is_alike(swap, before):
            return swap
    return None


def _signs(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each message which value is the greater one: 1 the second, -1 the first, 0 unclear.

    Empty if the smaller values of the messages and the greater ones overlap.
    """
    smaller, greater = sorted(map(min, pairs)), sorted(map(max, pairs))
    for spare in (0, len(pairs) // UNCLEAR):
        low, high = smaller[-1 - spare], greater[spare]
        if low < high:
            middle = (low + high) / 2
            return [0 if not min(pair) <= middle < max(pair) else 1 if pair[0] < pair[1] else -1 for pair in pairs]
    return []


def _usual_sign(before: Sequence[tuple[ValueRange, ValueRange]]) -> int:
    """Return the field that was always greater: 1 the second, -1 the first; 0 if the ranges met or none is known."""
    if not before:
        return 0
    if max(one.high for one, _ in before) < min(other.low for _, other in before):
        return 1
    return -1 if max(other.high for _, other in before) < min(one.low for one, _ in before) else 0


def _is_alike(swap: Swap, before: Sequence[tuple[ValueRange, ValueRange]]) -> bool:
    """Return whether each field's swapped values are in the other's usual range: of other messages, or the days before."""
    view = _VIEWS[swap.view]
    for field in (0, 1):
        values = [view(message.ranks[1 - field]) for message in swap.swapped]
        usual = [view(message.ranks[field]) for message in swap.usual]
        if len(usual) < MIN_SWAPPED:
            if not swap.days:
                return False
            values = [_order(value) if swap.view == _NUMBER else value for value in values]
            usual = [end for day in before for end in (day[field].low, day[field].high)]
        inside = sum(min(usual) <= value <= max(usual) for value in values)
        if inside < LEAST_ALIKE * len(values):
            return False
    return True


def _order(rank: int) -> int:
    """Return the order of magnitude of a number's rank, as `field_history.end_of` gives it."""
    return rank // 10 if rank > 0 else -(-rank // 10)


# ---- the schemas ----------------------------------------------------------------------------------------------------


def _orders(bodies: Bodies) -> dict[tuple[str, int], tuple[RegisteredVersion, list[str]]]:
    """Return the versions of the subject whose bytes have no names, with their fields in the order of the bytes."""
    registered = bodies.where.registered
    return {
        (version.subject, version.version): (version, list(declared.fields))
        for version in registered.histories.get(bodies.mark, ())
        if not format_of(version.schema_type).has_value_rules
        and (declared := registered.declared.get((version.subject, version.version))) is not None
    }


def _swapped_places(
    one: tuple[RegisteredVersion, list[str]], other: tuple[RegisteredVersion, list[str]]
) -> set[tuple[str, str]]:
    """Return the pairs of fields that are in each other's place among their siblings."""
    places, others, pairs = _places(one[1]), _places(other[1]), set()
    by_place = {place: path for path, place in others.items()}
    for path, place in places.items():
        here = by_place.get(place, path)
        if here != path and others.get(path) == places.get(here):
            pairs.add((min(path, here), max(path, here)))
    return pairs


def _places(paths: Iterable[str]) -> dict[str, tuple[str, int]]:
    numbers: dict[str, int] = {}
    places = {}
    for path in paths:
        parent = parent_of(path)
        places[path] = (parent, numbers.setdefault(parent, 0))
        numbers[parent] += 1
    return places


def _fitting(
    bodies: Bodies, orders: Mapping[tuple[str, int], tuple[RegisteredVersion, list[str]]], swap: Swap
) -> list[RegisteredVersion]:
    """Return the versions that have the two fields in each other's place, compared with those that the messages name."""
    marks = {message.mark for message in swap.swapped}
    versions = bodies.where.registered.versions
    own = {key for mark in marks for key in named(versions.get(mark, ()))} & orders.keys()  # type: ignore[arg-type]
    return [
        order[0]
        for key, order in orders.items()
        if any(key != mine and swap.paths in _swapped_places(orders[mine], order) for mine in own)
    ]


# ---- the finding ----------------------------------------------------------------------------------------------------


def _finding(bodies: Bodies, swap: Swap, others: Sequence[RegisteredVersion]) -> JudgedFinding:
    marks: list[Mark] = sorted({message.mark for message in swap.swapped} - {("", "")})  # type: ignore[arg-type]
    sure = joint_confidence(
        1 - 1 / (len(swap.usual) + 2) if others else 0.0,
        confidence_of_new(swap.days) if swap.days >= MIN_DAYS else 0.0,
    )
    names = {
        "other": swap.paths[1],
        "share": f"{len(swap.swapped):,} of {swap.compared:,} compared messages",
        "marks": f", with {both([mark_words(mark) for mark in marks])}" if marks else "",
        "usual": swap.words(0),
        "usual_other": swap.words(1),
        "why": _reason(bodies, others),
        "sure": percent(sure),
    }
    places = sorted((message.partition, message.offset) for message in swap.swapped)
    evidence = {
        "other_field": swap.paths[1],
        "usual": names["usual"],
        "usual_other": names["usual_other"],
        "compared_messages": swap.compared,
        "swapped_messages": len(swap.swapped),
        "schemas": [mark_words(mark) for mark in marks],
        "fits": [f"{version.subject} version {version.version}" for version in others],
        "confidence": round(sure, 3),
        "example": [{"partition": partition, "offset": offset} for partition, offset in places[:MOST_EXAMPLES]],
    }
    count = max(len(places), round(len(places) / swap.compared * bodies.messages))
    finding = bodies.finding(RULE, swap.paths[0], count, names, evidence)
    return replace(finding, offending=offending_at((partition, offset, offset) for partition, offset in places))


def _reason(bodies: Bodies, others: Sequence[RegisteredVersion]) -> str:
    if others:
        have = "has" if len(others) == 1 else "have"
        return f"The bytes fit {owners(others)}, which {have} the two fields in each other's place."
    versions = bodies.where.registered.histories.get(bodies.mark, ())
    if versions and not any(format_of(version.schema_type).has_value_rules for version in versions):
        return "No registered version has the two fields in each other's place."
    return "The messages name their fields, so their producer assigned the values to the wrong ones."
