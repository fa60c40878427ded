"""Events of topics, read from a broker, decoded from each of the three ways to write them, and kept as JSON lines in `events/`."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Consumer, Message, TopicPartition

from dashboard.demo.shop import Converter

FOLDER = Path(__file__).parent / "events"


@dataclass(frozen=True)
class Event:
    """A message: `timestamp` in milliseconds, key, value and headers in the bytes of the wire."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def is_tombstone(self) -> bool:
        """Whether it has no value."""
        return self.value is None

    def header(self, name: str) -> bytes | None:
        """The first header of that name, None where there is none."""
        return next((value for found, value in self.headers if found == name), None)

    def to_line(self) -> str:
        """The event as a line of a file in `events/`."""
        found = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": _shown(self.key),
            "value": _shown(self.value),
            "headers": [[name, _shown(value)] for name, value in self.headers],
        }
        return json.dumps(found, ensure_ascii=False)

    @classmethod
    def of_line(cls, line: str) -> Event:
        """The event of such a line."""
        found = json.loads(line)
        headers = tuple((name, _bytes(value)) for name, value in found.pop("headers"))
        return cls(**{**found, "key": _bytes(found["key"]), "value": _bytes(found["value"]), "headers": headers})


def _shown(data: bytes | None) -> dict[str, str] | None:
    """Text that people can read where it is text, base64 where it isn't; None is no value at all."""
    if data is None:
        return None
    if data[:1] != b"\x00":
        try:
            return {"text": data.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(data).decode()}


def _bytes(shown: dict[str, str] | None) -> bytes | None:
    if shown is None:
        return None
    return shown["text"].encode() if "text" in shown else base64.b64decode(shown["base64"])


def recorded(scenario: str, converter: str) -> list[Event]:
    """The recorded events of a scenario, by topic, partition and offset."""
    path = FOLDER / f"{scenario}.{converter}.jsonl"
    return [Event.of_line(line) for line in path.read_text(encoding="utf-8").splitlines()]


def recorded_schemas() -> dict[int, dict[str, Any]]:
    """The registered schemas of all recorded Avro events, by id: `subject`, `version`, `schema` (a text)."""
    found = json.loads((FOLDER / "schemas.avro.json").read_text(encoding="utf-8"))
    return {int(number): schema for number, schema in found.items()}


def write(path: Path, events: Iterable[Event]) -> None:
    """Keeps the events, one a line."""
    path.write_text("".join(event.to_line() + "\n" for event in events), encoding="utf-8")


def read_topics(bootstrap: str, prefix: str) -> list[Event]:
    """All events on the topics whose names begin with `prefix`, by topic, partition and offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "debezium-tests", "enable.auto.commit": False})
    try:
        parts = []
        for topic, found in consumer.list_topics(timeout=60).topics.items():
            if topic.startswith(prefix):
                for partition in found.partitions:
                    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
                    parts.append((TopicPartition(topic, partition, low), high - low))
        consumer.assign([part for part, count in parts if count])
        events = [_event(message) for message in _messages(consumer, sum(count for _, count in parts))]
    finally:
        consumer.close()
    return sorted(events, key=lambda event: (event.topic, event.partition, event.offset))


def _messages(consumer: Consumer, count: int) -> Iterator[Message]:
    while count:
        found = consumer.consume(count, timeout=60)
        assert found, f"{count} messages are missing"
        for message in found:
            assert message.error() is None, message.error()
            yield message
        count -= len(found)


def _event(message: Message) -> Event:
    headers = tuple((name, value) for name, value in message.headers() or ())
    place = (message.topic(), message.partition(), message.offset(), message.timestamp()[1])
    return Event(*place, message.key(), message.value(), headers)


def decoded(data: bytes | None, converter: Converter, schemas: Mapping[int, Mapping[str, Any]]) -> Any:
    """What a key or value says, without its schema; None for no bytes at all."""
    if data is None:
        return None
    if converter == "avro":
        assert data[0] == 0
        schema = fastavro.parse_schema(json.loads(schemas[schema_id(data)]["schema"]))
        body = io.BytesIO(data[5:])
        found = fastavro.schemaless_reader(body, schema, None)
        assert body.read() == b""
        return found
    found = json.loads(data)
    if converter == "json_schema":
        assert set(found) == {"schema", "payload"}
        return found["payload"]
    return found


def schema_id(data: bytes) -> int:
    """The number in the framing."""
    return int.from_bytes(data[1:5], "big")
