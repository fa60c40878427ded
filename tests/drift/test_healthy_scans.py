"""Scans of healthy topics, in every format and framing that scans decode, make no finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer

from registry.access.roles import Actor
from registry.drift.models import Finding, SchemaUse, Source
from registry.formats.base import Reference
from registry.subjects.models import SchemaVersion
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.amounts import how_many
from tests.drift.test_faults import UNKNOWN, add, house, scan
from tests.pipeline.topics import Headers, fill, framed, make_topic, string, zigzag

pytestmark = [
    pytest.mark.slow,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.requirement("CARD-3"),
    pytest.mark.django_db(transaction=True),
]
__all__ = ["house"]
SCANS, MESSAGES = how_many("scans of healthy topics"), 12
#: the rounds before which version 2 is registered, and before which producers write it alone
REGISTERED, MOVED = SCANS // 4, SCANS // 2
Message = tuple[bytes | None, bytes | None, Headers]


def avro(version: int, money: str = '"long"') -> str:
    note: list[Any] = [{"name": "note", "type": ["null", "string"], "default": None}] * (version - 1)
    fields = [{"name": "id", "type": json.loads(money)}, {"name": "name", "type": "string"}, *note]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def avro_body(number: int, version: int) -> bytes:
    note = [b"", zigzag(0) if number % 3 else zigzag(1) + string("a note")][version - 1]
    return zigzag(number) + string(f"customer {number % 9}") + note


def protobuf(version: int, money: bool = False) -> str:
    first = "Money total = 1;" if money else "int64 id = 1;"
    imported = 'import "money.proto"; ' if money else ""
    note = "string note = 3;" * (version - 1)
    return f'syntax = "proto3"; {imported}message Order {{ {first} string name = 2; {note} }}'


def protobuf_body(number: int, version: int, money: bool = False) -> bytes:
    amount = b"\x08" + bytes([number % 100 + 1])
    first = b"\x0a" + bytes([len(amount)]) + amount if money else amount
    return first + b"\x12\x03Ada" + b"\x1a\x04note" * (version - 1)


def json_schema(version: int, money: bool = False) -> str:
    note = {"note": {"type": "string"}} if version > 1 else {}
    first = {"$ref": "money.json"} if money else {"type": "integer"}
    properties = {"id": first, **note}
    return json.dumps({"type": "object", "properties": properties, "required": ["id"], "additionalProperties": False})


def json_body(number: int, version: int) -> bytes:
    return json.dumps({"id": number, **({"note": "n"} if version > 1 else {})}).encode()


@dataclass(frozen=True)
class Version:
    """A registered version, as producers name it."""

    subject: str
    number: int
    schema_id: int
    guid: bytes


def by_id(version: Version, body: bytes, indexes: bytes) -> tuple[bytes, Headers]:
    return framed(version.schema_id, indexes + body), []


def by_guid_in_header(version: Version, body: bytes, indexes: bytes) -> tuple[bytes, Headers]:
    return body, [("__value_schema_id", b"\x01" + version.guid + indexes)]


def by_guid(version: Version, body: bytes, indexes: bytes) -> tuple[bytes, Headers]:
    return b"\x01" + version.guid + indexes + body, []


def by_content_type(version: Version, body: bytes, indexes: bytes) -> tuple[bytes, Headers]:
    return body, [("contentType", f"application/vnd.{version.subject}.v{version.number}+avro".encode())]


@dataclass(frozen=True)
class Healthy:
    """A topic of the test; with `keys`, its keys have a schema too, and with `is_compacted` some values are null."""

    kind: str
    text: Callable[[int], str]
    body: Callable[[int, int], bytes]
    frame: Callable[[Version, bytes, bytes], tuple[bytes, Headers]] = by_id
    codec: str = "none"
    reference: Reference | None = None
    keys: bool = False
    is_compacted: bool = False
    in_transactions: bool = False


AVRO_MONEY, PROTOBUF_MONEY, JSON_MONEY = (Reference(*names, 1) for names in (("Money", "money"), ("money.proto", "money-proto"), ("money.json", "money-json")))  # fmt: skip
TOPICS = (
    *(Healthy("AVRO", avro, avro_body, codec=codec) for codec in ("gzip", "snappy", "lz4", "zstd")),
    *(Healthy("AVRO", avro, avro_body, frame) for frame in (by_guid_in_header, by_guid, by_content_type)),
    Healthy("AVRO", lambda version: avro(version, '"Money"'), avro_body, reference=AVRO_MONEY, keys=True),
    Healthy("AVRO", avro, avro_body, is_compacted=True),
    Healthy("AVRO", avro, avro_body, in_transactions=True),
    *(Healthy("PROTOBUF", protobuf, protobuf_body, frame) for frame in (by_id, by_guid_in_header, by_guid)),
    Healthy("PROTOBUF", lambda version: protobuf(version, True), lambda number, version: protobuf_body(number, version, True), reference=PROTOBUF_MONEY),
    *(Healthy("JSON", json_schema, json_body, frame) for frame in (by_id, by_guid_in_header)),
    Healthy("JSON", lambda version: json_schema(version, True), json_body, reference=JSON_MONEY),
)  # fmt: skip


class HealthyTopic:
    """A topic with its registered versions, and the producer of each scan's messages."""

    def __init__(self, bootstrap: str, healthy: Healthy, by: Actor) -> None:
        config = {"cleanup.policy": "compact"} if healthy.is_compacted else {}
        self.bootstrap, self.healthy, self.by = bootstrap, healthy, by
        self.name = make_topic(bootstrap, [], partitions=2, **config)
        self.key = register("AVRO", f"{self.name}-key", '"string"', by) if healthy.keys else None
        self.versions = [self.register(1)]
        self.producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": self.name})
        if healthy.in_transactions:
            self.producer.init_transactions(30)

    def register(self, number: int) -> Version:
        references = [self.healthy.reference] if self.healthy.reference else []
        return register(self.healthy.kind, f"{self.name}-value", self.healthy.text(number), self.by, references)

    def message(self, number: int, version: Version) -> Message:
        indexes = b"\x00" if self.healthy.kind == "PROTOBUF" else b""
        value, headers = self.healthy.frame(version, self.healthy.body(number, version.number), indexes)
        key = framed(self.key.schema_id, string("k")) if self.key else b"k%d" % (number % 5)
        return key, None if self.healthy.is_compacted and number % 4 == 0 else value, headers

    def produce(self, round_: int) -> None:
        """Write the messages of a round: of version 1, of both while producers move, then of version 2."""
        used = self.versions[-1:] if round_ >= MOVED else self.versions
        numbers = range(round_ * MESSAGES, (round_ + 1) * MESSAGES)
        messages = [self.message(number, used[number // 2 % len(used)]) for number in numbers]
        if not self.healthy.in_transactions:
            rows = ((number % 2, *message) for number, message in enumerate(messages))
            fill(self.bootstrap, self.name, rows, **{"compression.type": self.healthy.codec})
            return
        for is_committed, values in ((False, [framed(UNKNOWN, b"?")]), (True, [value for _, value, _ in messages])):
            self.producer.begin_transaction()
            for value in values:
                self.producer.produce(self.name, value, b"k")
            self.producer.flush(30)
            (self.producer.commit_transaction if is_committed else self.producer.abort_transaction)(30)


def register(kind: str, subject: str, text: str, by: Actor, references: list[Reference] | None = None) -> Version:
    made = register_version(registry="dev", subject=SubjectName(".", subject), text=text, by=by, schema_type=kind, references=references or [])  # fmt: skip
    row = SchemaVersion.objects.get(subject__name=subject, version=made.version)
    return Version(subject, made.version, made.schema_id, row.schema.guid.bytes)


def test_scans_of_healthy_topics_make_no_finding(house: str, system: Actor, settings: Any) -> None:
    money = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}
    register("AVRO", "money", json.dumps(money), system)
    register("PROTOBUF", "money-proto", 'syntax = "proto3"; message Money { int64 cents = 1; }', system)
    register("JSON", "money-json", '{"type": "integer"}', system)
    topics = [HealthyTopic(house, healthy, system) for healthy in TOPICS]
    settings.SCAN_DEADLINE_SECONDS = 3600  # a busy machine is no reason for slices
    source = add(system, *(topic.name for topic in topics), max_seconds=3600)
    for round_ in range(SCANS):
        for topic in topics:
            if round_ == REGISTERED:
                topic.versions.append(topic.register(2))
            topic.produce(round_)
        row = scan(source, system)
        assert row.state == "done", row.error
        assert row.read is not None and row.read["messages"] == MESSAGES * len(topics), round_
        assert not row.read.get("not_decoded") and not row.read.get("limits"), row.read
        assert list(Finding.objects.values_list("rule", "sentence")) == [], round_
    marks = SchemaUse.objects.filter(topic__source=Source.objects.get(pk=source), side="value")
    assert marks.values("topic", "mark").distinct().count() == 2 * len(topics), "each version was identified"
