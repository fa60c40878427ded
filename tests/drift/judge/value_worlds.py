"""Twenty topics with healthy values, made from a seed: seasonal, noisy, with weekends, nightly jobs, rollouts and a sale.

Every value is drawn and then profiled as a scan does it: masked ends and the number of different values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from registry.drift.judge import (
    DeclaredField,
    DeclaredFields,
    FieldDay,
    FieldKey,
    Memory,
    Registered,
    RegisteredVersion,
    SubjectSummary,
    TopicMemory,
    TopicVolume,
)
from registry.drift.judge.field_history import day_of, day_of_profile, day_sum
from registry.observations import FieldProfile, FramedMessages, Observation, RankedMessages, Span, TopicTotals
from registry.pipeline.workers.fields import magnitude, shown_magnitude, year_of
from registry.pipeline.workers.value_ranks import rank_of

DAY: Final = 86_400_000
FIRST: Final = 20_003  # a Monday
SALE: Final = range(25, 28)
ROLLOUT: Final = range(20, 24)  # days in which producers move to version 2, one fifth a day
TOPICS: Final = tuple(f"shop.{number}" for number in range(20))
MOST_RANKED: Final = 300  # messages
Values = list[Any]
Draw = Callable[[Random, int, int], Values]


def is_weekend(day: int) -> bool:
    return day % 7 in (5, 6)


def _each(one: Callable[[Random, int], Any]) -> Draw:
    return lambda random, day, number: [one(random, day) for _ in range(number)]


def _amounts(random: Random, day: int, number: int) -> Values:
    """Cents, lower on weekends and in a sale, with a nightly job that books few large ones."""
    factor = 0.7 if is_weekend(day) or day in SALE else 1.0
    nightly = [int(random.lognormvariate(13, 0.4)) for _ in range(8)]
    return [max(1, int(random.lognormvariate(8, 1.2) * factor)) for _ in range(number - 8)] + nightly


def _texts(shortest: int, longest: int) -> Draw:
    return _each(lambda random, day: "x" * random.randint(shortest, longest - 8) + f"{random.randrange(10**8):08}")


#: field → its type in Avro, and how its values are drawn
FIELDS: Final[dict[str, tuple[str, Draw]]] = {
    "id": ("long", lambda random, day, number: [10**7 + day * 10**5 + index for index in range(number)]),
    "amount": ("long", _amounts),
    "price": ("double", _each(lambda random, day: random.lognormvariate(3, 1))),
    "degrees": ("int", _each(lambda random, day: round(random.gauss(8, 9)))),
    "created": ("long", _each(lambda random, day: (FIRST + day) * DAY + random.randrange(DAY))),
    "at": ("timestamp", _each(lambda random, day: (FIRST + day) * DAY + random.randrange(DAY))),
    "expires": ("timestamp", _each(lambda random, day: (FIRST + day + random.randint(30, 1500)) * DAY)),
    "name": ("string", _texts(1, 30)),
    "code": ("string", _each(lambda random, day: f"{random.randrange(10**8):08}")),
    "when": ("string", _each(lambda random, day: f"2026-11-21T{random.randrange(10**6):06}Z")),
    "country": ("string", _each(lambda random, day: f"c{min(11, int(random.expovariate(0.35)))}")),
    "status": ("enum", _each(lambda random, day: random.choice(["NEW", "PAID", "PAID", "SENT"]))),
    "customer": ("long", _each(lambda random, day: int(random.paretovariate(0.7)) % 50_000)),
    "seconds": ("double", _each(lambda random, day: random.paretovariate(1.5))),
    "tags": ("array", _each(lambda random, day: [0] * random.randint(0, 6))),
    "note": ("string", lambda random, day, number: [
        None if random.random() < (0.6 if is_weekend(day) else 0.4) else "n" * random.randint(1, 120) for _ in range(number)
    ]),
    "delta": ("int", _each(lambda random, day: -5 if random.random() < 0.004 else random.randint(0, 90))),
    "comment": ("string", _each(lambda random, day: "" if random.random() < 0.002 else "c" * random.randint(4, 60))),
    "quantity": ("int", _each(lambda random, day: 1 + int(random.expovariate(0.8)))),
    "rare": ("string", _each(lambda random, day: "odd" if random.random() < 0.001 else f"r{random.randrange(5)}")),
}  # fmt: skip
NAMES: Final = tuple(FIELDS)


def fields_of(topic: str) -> tuple[str, ...]:
    """Seven fields of a topic: each field is in seven topics."""
    number = int(topic.rpartition(".")[2])
    return tuple(NAMES[(number + 3 * index) % len(NAMES)] for index in range(7))


def profile(topic: str, path: str, values: Values, version: int = 1) -> FieldProfile:
    """The values as a scan observes them."""
    kind = FIELDS[path][0]
    filled = [value for value in values if value is not None]
    counts = {kind: len(filled)} | ({"null": len(values) - len(filled)} if len(filled) < len(values) else {})
    low, high, distinct, symbols = None, None, None, {}
    if kind == "enum":
        symbols = {name: filled.count(name) for name in sorted(set(filled))}
        distinct = len(symbols)
    elif kind == "array":
        sizes = [len(value) for value in filled]
        low, high = f"{min(sizes)} items", f"{max(sizes)} items"
    elif kind == "string":
        sizes = [len(value) for value in filled]
        low, high, distinct = f"{min(sizes):,} characters", f"{max(sizes):,} characters", len(set(filled))
    elif kind == "timestamp":
        low, high, distinct = str(year_of(min(filled), "ms")), str(year_of(max(filled), "ms")), len(set(filled))
    else:
        low, high = (shown_magnitude(magnitude(end)) for end in (min(filled), max(filled)))
        distinct = len(set(filled))
    return FieldProfile(
        topic, "value", "id", _mark(topic, version), path, len(values), len(values), len(values) - len(filled),
        counts, distinct, low, high, symbols,
    )  # fmt: skip


def _mark(topic: str, version: int) -> str:
    return str(100 * version + int(topic.rpartition(".")[2]))


@dataclass
class ValueWorld:
    """The days so far, as scans stored them. Half of the topics roll out a second version."""

    seed: int
    random: Random = field(init=False)
    days: dict[FieldKey, list[FieldDay]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def volume(self, day: int) -> int:
        busy = 0.45 if is_weekend(day) else 2.0 if day in SALE else 1.0
        return int(700 * busy * self.random.uniform(0.85, 1.15))

    def draws(self, topic: str, day: int) -> dict[str, Values]:
        """The values of each field."""
        number = self.volume(day)
        return {path: FIELDS[path][1](self.random, day, number) for path in fields_of(topic)}

    def versions(self, topic: str, day: int) -> list[tuple[int, float]]:
        """The versions in use and their shares."""
        if int(topic.rpartition(".")[2]) % 2 or day < ROLLOUT.start:
            return [(1, 1.0)]
        moved = min(1.0, (day - ROLLOUT.start + 1) / 5)
        return [(2, 1.0)] if moved == 1.0 else [(1, 1 - moved), (2, moved)]

    def observe(self, topic: str, day: int, draws: dict[str, Values]) -> list[Observation]:
        """What a scan of the day observes of those values."""
        observations: list[Observation] = []
        begin = (FIRST + day) * DAY
        for version, share in self.versions(topic, day):
            last = version == self.versions(topic, day)[-1][0]
            parts: dict[str, Values] = {}
            for path, values in draws.items():
                cut = round(len(values) * (share if len(self.versions(topic, day)) > 1 else 1))
                part = values[-cut:] if last else values[:cut]
                if part:
                    observations.append(profile(topic, path, part, version))
                    parts[path] = part
            observations.append(ranked(topic, parts, version))
            number = max((len(values) for values in draws.values()), default=0)
            span = Span(number, number * 80, day * 10**5, day * 10**5 + number - 1, begin, begin + DAY - 1)
            observations.append(FramedMessages(topic, "value", 0, "id", _mark(topic, version), span))
        return [*observations, TopicTotals(topic, number, number * 80, None)]

    def remember(self, day: int, observations: Iterable[Observation]) -> None:
        """Store the day, as the product does: a second scan of a day is added to the first."""
        for item in observations:
            if isinstance(item, FieldProfile):
                key = FieldKey(item.topic, item.side, item.framing or "", item.mark, item.path)
                row = day_of_profile(item, day_of((FIRST + day) * DAY))
                days = self.days.setdefault(key, [])
                if days and days[-1].day == row.day:
                    row = day_sum(days.pop(), row)
                days.append(row)

    def memory(self, day: int, **more: Any) -> Memory:
        """What the scans before left."""
        return Memory(
            as_of=(FIRST + day) * DAY + DAY // 2,
            all_topics=frozenset(TOPICS),
            discovered=True,
            baselines={key: tuple(days[-28:]) for key, days in self.days.items()},
            **more,
        )

    def copy(self) -> ValueWorld:
        """The same past, for another future."""
        other = ValueWorld(self.seed + 1)
        other.days = {key: list(days) for key, days in self.days.items()}
        return other


def registered(day: int) -> Registered:
    """Two versions of every second topic's subject, one of the others; all released."""
    versions: dict[Any, tuple[RegisteredVersion, ...]] = {}
    histories: dict[str, tuple[RegisteredVersion, ...]] = {}
    for topic in TOPICS:
        subject = f"{topic}-value"
        first = RegisteredVersion(subject, 1, schema_id=int(_mark(topic, 1)), released=True, schema_type="AVRO")
        second = replace(first, version=2, schema_id=int(_mark(topic, 2)), registered_at=(FIRST + ROLLOUT.start) * DAY)
        histories[subject] = (first, second) if day >= ROLLOUT.start else (first,)
        versions |= {("id", str(row.schema_id)): (row,) for row in histories[subject]}
    return Registered(
        registry="prod",
        versions=versions,
        subjects={name: SubjectSummary(name, len(rows)) for name, rows in histories.items()},
        histories=histories,
        declared={
            (row.subject, row.version): DeclaredFields(dict.fromkeys(_order_of(row), DeclaredField(None)))
            for rows in histories.values()
            for row in rows
        },
    )


def _order_of(version: RegisteredVersion) -> tuple[str, ...]:
    """The second version has the fields in the opposite order: the bytes of many pairs of fields may be swapped."""
    fields = fields_of(version.subject.removesuffix("-value"))
    return fields if version.version == 1 else fields[::-1]


def ranked(topic: str, parts: dict[str, Values], version: int) -> RankedMessages:
    """Some of the messages, each with the ranks of its values."""
    rows = zip(*parts.values(), strict=False)
    ranks = tuple((0, offset, tuple(map(rank_of, row))) for offset, row in zip(range(MOST_RANKED), rows, strict=False))
    return RankedMessages(topic, "value", "id", _mark(topic, version), tuple(parts), ranks)


# ---- volume ---------------------------------------------------------------------------------------------------------

HOUR: Final = 3_600_000
SCAN_HOURS: Final = 2
HOLIDAY: Final = 37
#: kinds of topics: the messages of an hour of the day, at most
BUSINESS = tuple(0 if hour < 6 or hour > 21 else 400 for hour in range(24))
STEADY = tuple(300 + 250 * (8 <= hour <= 20) for hour in range(24))
NIGHTLY = tuple(2_000 * (hour == 2) for hour in range(24))
RARE = tuple(3 for _ in range(24))
SHAPES: Final = (STEADY, BUSINESS, NIGHTLY, RARE, STEADY)


def messages_in(random: Random, topic: int, day: int, hour: int) -> int:
    """The messages of an hour: with noise, weekends, a job that varies by an hour, a sale and a holiday."""
    shape = SHAPES[topic % len(SHAPES)]
    if shape is NIGHTLY:
        late = Random(f"{topic} {day}").random() < 0.2  # an hour late on one day of five
        usual = shape[(hour - late) % 24] * (day % 7 not in (5, 6) or topic % 2)
    else:
        usual = shape[hour] * (0.4 if is_weekend(day) else 1.0)
        usual *= 2.1 if day in SALE and topic < 14 else 0.4 if day == HOLIDAY else 1.0
    return max(0, round(random.gauss(usual, usual**0.5) * random.lognormvariate(0, 0.12)))


@dataclass
class VolumeWorld:
    """The topics' volumes as scans every two hours stored them."""

    seed: int
    random: Random = field(init=False)
    volumes: dict[str, TopicVolume] = field(default_factory=dict)
    now: int = FIRST * DAY

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.volumes = {name: TopicVolume(0, (), 0).with_scan(0, self.now, self.now) for name in TOPICS}

    def scan(self, changes: dict[int, Callable[[int, int], float]] | None = None) -> Memory:
        """What is known at the next scan; a change gets the day and the hour, and gives a factor."""
        before, self.now = self.now, self.now + SCAN_HOURS * HOUR
        for topic, name in enumerate(TOPICS):
            ended = 0
            for at in range(before // HOUR, self.now // HOUR):
                day, hour = at // 24 - FIRST, at % 24
                factor = (changes or {}).get(topic, lambda day, hour: 1.0)(day, hour)
                ended += round(messages_in(self.random, topic, day, hour) * factor)
            self.volumes[name] = self.volumes[name].with_scan(self.volumes[name].end + ended, before, self.now)
        topics = {name: TopicMemory(volume=volume) for name, volume in self.volumes.items()}
        return Memory(as_of=self.now, topics=topics)
