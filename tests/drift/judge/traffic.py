"""Correct traffic as it really is, made from a seed: volumes and mixes that change, versions that evolve, slow producers.

A world is asked for one day after the other. `scan` gives what a daily scan observes, what is registered by then, and
what the scans before left; nothing in it is drift. Weekends have a third of the volume and other null shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from registry.drift.judge import (
    DeclaredFields,
    Event,
    FieldDay,
    FieldKey,
    Mark,
    MarkUse,
    Memory,
    Registered,
    RegisteredVersion,
    SubjectSummary,
    TopicMemory,
    declared_fields,
    message_types_by_side,
)
from registry.drift.judge.field_history import day_of, day_sum
from registry.drift.scan.aggregation import merged_types
from registry.formats import FORMATS
from registry.observations import (
    FieldProfile,
    FramedMessages,
    MessageIndexes,
    NullMessages,
    Observation,
    PartitionRead,
    ScanTotals,
    Side,
    Span,
    TopicTotals,
    UnframedMessages,
)

DAY = 86_400_000
FIRST = 20_000
PARTITIONS = 4
CART = '{"type":"object","required":["id","lines"],"properties":{"id":{"type":"string"},"lines":{"type":"array"},"gift":{"type":["boolean","null"]}}}'
REFUND = 'syntax = "proto3"; package shop; message Refund { string id = 1; } message Receipt { string id = 1; }'
#: the same message, moved to another place in its file
REFUND_MOVED = 'syntax = "proto3"; package shop; message Head { string id = 1; } message Refund { string id = 1; }'
MOVED_AFTER = 3  # days in which all producers of refunds follow
GUID = "6f1a2b3c-0000-4000-8000-00000000000a"
PRODUCERS = 5
#: schema id → (subject, version, day of its registration, format)
VERSIONS = {
    11: ("orders-value", 1, -100, "AVRO"),
    12: ("orders-value", 2, 8, "AVRO"),
    13: ("orders-value", 3, 19, "AVRO"),
    20: ("orders-key", 1, -100, "AVRO"),
    30: ("carts-value", 1, -50, "JSON"),
    40: ("refunds-value", 1, -50, "PROTOBUF"),
    41: ("refunds-value", 2, 12, "PROTOBUF"),
    50: ("shipments-value", 1, -50, "AVRO"),
}
TOPICS = ("orders", "carts", "clicks", "refunds", "shipments")


@dataclass
class ConnectorFacts:
    """The state between scans."""

    seed: int
    scans_a_day: int = 1
    part: int = 0  # of the day that is scanned next: the first and the last are its quiet hours
    random: Random = field(init=False)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    lows: dict[tuple[str, int], int] = field(default_factory=dict)
    uses: dict[tuple[str, Side, Mark], MarkUse] = field(default_factory=dict)
    days: dict[FieldKey, list[FieldDay]] = field(default_factory=dict)
    types: dict[str, dict[str, Any]] = field(default_factory=dict)
    delays: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.ends = {(topic, part): self.random.randrange(10**6) for topic in TOPICS for part in range(PARTITIONS)}
        # Every producer follows to a new version within five days.
        self.delays = {
            (number, producer): 0.5 + self.random.random() * 4.5 for number in VERSIONS for producer in range(PRODUCERS)
        }
        # Some fill a field nearly always, some hardly ever: who moved to a version first is no drift.
        self.habits = [self.random.choice([0.0, 0.1, 1.0]) for _ in range(PRODUCERS)]
        self.base = {topic: self.random.choice([900, 4_000, 60_000]) for topic in TOPICS}
        self.shares = {name: self.random.uniform(0.02, 0.2) for name in ("mail", "zip", "gift", "amt")}

    # ---- what is registered

    def registered(self, day: int) -> Registered:
        """What the registry holds on a day."""
        versions: dict[Mark, tuple[RegisteredVersion, ...]] = {}
        histories: dict[str, list[RegisteredVersion]] = {}
        for number, (subject, version, since, kind) in VERSIONS.items():
            if since <= day:
                row = RegisteredVersion(
                    subject,
                    version,
                    schema_id=number,
                    released=True,
                    registered_at=(FIRST + since) * DAY,
                    registered_by="ci",
                    schema_type=kind,
                )
                versions["id", str(number)] = (row,)
                histories.setdefault(subject, []).append(row)
        versions["guid", GUID] = versions["id", "50"]
        return Registered(
            registry="prod",
            versions=versions,
            subjects={name: SubjectSummary(name, len(rows), rows[0].registered_at) for name, rows in histories.items()},
            histories={name: tuple(rows) for name, rows in histories.items()},
            declared=_declared(),
            events=tuple(
                Event(row.registered_at, f"version {row.version} of {row.subject} was registered by ci", row.subject)
                for rows in histories.values()
                for row in rows
            ),
        )

    def memory(self, day: int) -> Memory:
        """What the scans before left."""
        return Memory(
            as_of=(FIRST + day) * DAY + DAY // 2,
            topics={
                name: TopicMemory(compacted=name == "orders", message_types=self.types.get(name, {})) for name in TOPICS
            },
            all_topics=frozenset(TOPICS),
            discovered=True,
            uses=tuple(self.uses.values()),
            baselines={key: tuple(days[-28:]) for key, days in self.days.items()},
        )

    # ---- what is observed

    def scan(self, day: int) -> list[Observation]:
        """What a scan sees of one more day."""
        observations: list[Observation] = []
        for topic in TOPICS:
            volume = self._volume(topic, day)
            observations += self._partitions(topic, volume)
            observations += {
                "orders": self._orders,
                "carts": self._carts,
                "clicks": self._clicks,
                "refunds": self._refunds,
                "shipments": self._shipments,
            }[topic](day, volume)
            observations.append(TopicTotals(topic, volume, volume * 80, None))
        observations.append(ScanTotals(len(TOPICS), sum(self.base.values()), 0, None, 1.0))
        return observations

    def remember(self, day: int, observations: list[Observation]) -> None:
        """Keep what the scan saw, as the product does."""
        for (topic, side), types in message_types_by_side(observations, self.registered(day)).items():
            side_types = self.types.setdefault(topic, {})
            side_types[side] = merged_types(side_types.get(side, {}), types)
        for observation in observations:
            if isinstance(observation, FramedMessages):
                key = observation.topic, observation.side, (observation.framing, observation.mark)
                old = self.uses.get(key)
                first = observation.span.first_time if old is None else min(old.first_time, observation.span.first_time)
                number = observation.span.messages + (old.messages if old else 0)
                self.uses[key] = MarkUse(
                    observation.topic,
                    observation.side,
                    observation.framing,
                    observation.mark,
                    number,
                    first,
                    observation.span.last_time,
                )
            elif isinstance(observation, FieldProfile):
                field_key = FieldKey(
                    observation.topic, observation.side, observation.framing or "", observation.mark, observation.path
                )
                row = FieldDay(
                    day_of((FIRST + day) * DAY),
                    observation.messages,
                    observation.present,
                    observation.nulls,
                    observation.kinds,
                    observation.values,
                )
                days = self.days.setdefault(field_key, [])
                if days and days[-1].day == row.day:
                    row = day_sum(days.pop(), row)
                days.append(row)

    def weekend(self, day: int) -> bool:
        """Two days of seven."""
        return day % 7 in (5, 6)

    def _volume(self, topic: str, day: int) -> int:
        busy = 0.3 if self.weekend(day) else 1.0
        return int(self.base[topic] * busy * self.random.uniform(0.7, 1.3) * (1 + day / 60) * self._hours())

    def _quiet(self) -> bool:
        return self.scans_a_day > 1 and self.part in (0, self.scans_a_day - 1)

    def _hours(self) -> float:
        """The share of a day's volume that falls into the part."""
        if self.scans_a_day == 1:
            return 1.0
        return 0.1 if self._quiet() else 0.8 / (self.scans_a_day - 2)

    def _partitions(self, topic: str, volume: int) -> Iterator[Observation]:
        for part in range(PARTITIONS):
            start = self.ends[topic, part]
            end = self.ends[topic, part] = start + volume // PARTITIONS + self.random.randrange(3)
            low = self.lows[topic, part] = max(self.lows.get((topic, part), 0), start - 3 * volume)
            yield PartitionRead(topic, part, start, end, low, end, volume // PARTITIONS)

    def _part(self, topic: str, day: int, messages: int) -> Span:
        begin = (FIRST + day) * DAY
        return Span(
            messages, messages * 80, self.ends[topic, 0] - messages, self.ends[topic, 0] - 1, begin, begin + DAY - 1
        )

    def _framed(self, topic: str, side: Side, mark: Mark, day: int, messages: int) -> Iterator[Observation]:
        for part in range(PARTITIONS):
            if messages // PARTITIONS:
                span = self._part(topic, day, messages // PARTITIONS)
                yield FramedMessages(topic, side, part, *mark, span)

    def _some(self, whole: int, share: float) -> int:
        """A binomial draw, by its normal approximation."""
        sigma = (whole * share * (1 - share)) ** 0.5
        return min(whole, max(0, round(self.random.gauss(whole * share, sigma))))

    def _writes(self, day: int, producer: int) -> int:
        """The schema id that a producer of orders writes with on a day."""
        ready = [
            number
            for number, (subject, _, since, _) in VERSIONS.items()
            if subject == "orders-value" and since + self.delays[number, producer] <= day
        ]
        return max(ready, default=11)

    def _orders(self, day: int, volume: int) -> Iterator[Observation]:
        yield NullMessages("orders", "value", 0, self._part("orders", day, max(1, volume // 50)))
        yield from self._framed("orders", "key", ("id", "20"), day, volume)
        for number in sorted({self._writes(day, producer) for producer in range(PRODUCERS)}):
            producers = [producer for producer in range(PRODUCERS) if self._writes(day, producer) == number]
            messages = volume * len(producers) // PRODUCERS
            mark: Mark = ("id", str(number))
            yield from self._framed("orders", "value", mark, day, messages)
            yield from self._fields_of_orders(day, number, messages, producers)

    def _fields_of_orders(self, day: int, number: int, messages: int, producers: list[int]) -> Iterator[Observation]:
        def profile(path: str, kind: str, empty: float, values: dict[str, int] | None = None) -> FieldProfile:
            nulls = self._some(messages, empty)
            return FieldProfile(
                "orders", "value", "id", str(number), path, messages, messages, nulls, {kind: messages - nulls},
                None, None, None, values or {},
            )  # fmt: skip

        wave = self.random.uniform(-0.02, 0.02)
        yield profile("id", "long", 0.0)
        yield profile(
            "mail", "string", self.shares["mail"] + wave + (0.3 if self.weekend(day) or self._quiet() else 0.0)
        )
        yield profile("habit", "string", sum(self.habits[producer] for producer in producers) / len(producers))
        if number < 13:  # the last version leaves it out
            yield profile("note", "string", 0.9)
        yield profile("ship", "record", 0.0)
        yield profile("ship.zip", "string", max(0.0, self.shares["zip"] + wave))
        sent = self._some(messages, 0.6 + day * 0.004 + wave)
        yield profile("state", "enum", 0.0, {"NEW": messages - sent, "SENT": sent})
        if number >= 12:  # a new optional field that fills slowly
            yield profile("coupon", "string", 1 - min(0.6, max(0.0, (day - 8) * 0.05)))
        if number >= 13:
            yield profile("channel", "string", 1 - min(0.9, max(0.0, (day - 19) * 0.1)))

    def _carts(self, day: int, volume: int) -> Iterator[Observation]:
        yield from self._framed("carts", "value", ("id", "30"), day, volume)
        gift = self._some(volume, self.shares["gift"])
        rows = (("id", volume, 0, {"string": volume}), ("lines", volume, 0, {"array": volume}),
                ("gift", gift, gift // 3, {"boolean": gift - gift // 3, "null": gift // 3}))  # fmt: skip
        for path, present, nulls, kinds in rows:
            values = {"true": gift // 3, "false": gift // 3} if path == "gift" else {}
            yield FieldProfile(
                "carts", "value", "id", "30", path, volume, present, nulls, kinds, None, None, None, values
            )

    def _clicks(self, day: int, volume: int) -> Iterator[Observation]:
        """Plain JSON that no schema describes."""
        yield UnframedMessages("clicks", "key", 0, "text", self._part("clicks", day, volume))
        yield UnframedMessages("clicks", "value", 0, "json_object", self._part("clicks", day, volume))
        whole = self._some(volume, self.shares["amt"])
        for path, kinds in (("amt", {"integer": whole, "number": volume - whole}), ("page", {"string": volume})):
            yield FieldProfile("clicks", "value", None, "", path, volume, volume, 0, kinds, None, None, None, {})
        if day % 3 == 0:  # a rare path comes and goes
            yield FieldProfile("clicks", "value", None, "", "debug", volume, 2, 0, {"object": 2}, None, None, None, {})

    def _refunds(self, day: int, volume: int) -> Iterator[Observation]:
        number, indexes = ("41", "1") if day >= VERSIONS[41][2] + MOVED_AFTER else ("40", "0")
        yield from self._framed("refunds", "value", ("id", number), day, volume)
        yield MessageIndexes("refunds", "value", 0, "id", number, indexes, self._part("refunds", day, volume))

    def _shipments(self, day: int, volume: int) -> Iterator[Observation]:
        yield from self._framed("shipments", "value", ("guid", GUID), day, volume)


def _declared() -> dict[tuple[str, int], DeclaredFields]:
    parsed = {
        ("carts-value", 1): declared_fields(FORMATS["JSON"].parse(CART)),
        ("refunds-value", 1): declared_fields(FORMATS["PROTOBUF"].parse(REFUND)),
        ("refunds-value", 2): declared_fields(FORMATS["PROTOBUF"].parse(REFUND_MOVED)),
    }
    return {key: declared for key, declared in parsed.items() if declared is not None}
