"""Messages whose bytes were written with another schema than their id says, in real topics: each of them decodes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, Final

import pytest

from registry.access.roles import Actor
from registry.drift import selectors, services
from registry.drift.models import Finding
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.test_faults import scan
from tests.pipeline.topics import fill, framed, make_topic, string, zigzag

pytestmark = [
    pytest.mark.slow,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.requirement("CARD-3"),
    pytest.mark.django_db(transaction=True),
]
NAMES: Final = ("id", "quantity", "cents")
SWAPPED: Final = ("id", "cents", "quantity")


def avro(order: tuple[str, ...]) -> str:
    fields = [{"name": name, "type": "string" if name == "id" else "long"} for name in order]
    return json.dumps({"type": "record", "name": "Line", "fields": fields})


def protobuf(order: tuple[str, ...]) -> str:
    kinds = {"id": "string", "quantity": "int64", "cents": "int64"}
    fields = "".join(f"  {kinds[name]} {name} = {number};\n" for number, name in enumerate(order, 1))
    return f'syntax = "proto3";\nmessage Line {{\n{fields}}}\n'


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def avro_body(text: str, first: int, second: int) -> bytes:
    return string(text) + zigzag(first) + zigzag(second)


def protobuf_body(text: str, first: int, second: int) -> bytes:
    encoded = text.encode()
    return b"\x00\x0a" + varint(len(encoded)) + encoded + b"\x10" + varint(first) + b"\x18" + varint(second)


@pytest.mark.parametrize(
    ("kind", "text", "body"),
    [("AVRO", avro, avro_body), ("PROTOBUF", protobuf, protobuf_body)],
    ids=["avro", "protobuf"],
)
def test_sixty_of_360_messages_with_swapped_fields_are_found(
    registries: None,
    settings: Any,
    kafka_bootstrap: str,
    spark_remote: str,
    system: Actor,
    kind: str,
    text: Callable[[tuple[str, ...]], str],
    body: Callable[[str, int, int], bytes],
) -> None:
    settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = kafka_bootstrap, spark_remote
    topic = make_topic(kafka_bootstrap, [], partitions=2)
    subject = SubjectName(".", f"{topic}-value")
    set_config(registry="dev", subject=subject, level="NONE", by=system)
    first, _ = (
        register_version(registry="dev", subject=subject, text=text(order), schema_type=kind, by=system).schema_id
        for order in (NAMES, SWAPPED)
    )
    rows = [(f"line-{number}", 1 + number % 9, 1_500 + 37 * number) for number in range(360)]
    messages = []
    for number, (name, quantity, cents) in enumerate(rows):
        is_swapped = number % 6 == 0
        values = (cents, quantity) if is_swapped else (quantity, cents)
        messages.append((number % 2, None, framed(first, body(name, *values))))
    fill(kafka_bootstrap, topic, messages)
    services.connect_cluster(name="real", bootstrap=kafka_bootstrap, by=system)
    source = services.add_source(
        registry="dev", kind="kafka", name=f"s-{uuid.uuid4().hex[:8]}", cluster="real", include=(topic,), by=system
    )
    scan(source, system)
    (finding,) = Finding.objects.exclude(rule__in=["LEVEL_NONE", "LEVEL_RELAXED"])
    assert (finding.rule, finding.severity, finding.count) == ("FIELDS_SWAPPED", "risk", 60)
    evidence = finding.evidence
    assert (evidence["field"], evidence["other_field"]) == ("cents", "quantity")
    assert (evidence["swapped_messages"], evidence["compared_messages"]) == (60, 360)
    assert (evidence["usual"], evidence["usual_other"]) == ("1e3 to 1e4", "1e0")
    assert (evidence["fits"], evidence["schemas"]) == ([f"{subject.qualified} version 2"], [f"schema id {first}"])
    offsets = selectors.finding_offsets(finding.pk, by=system)
    listed = {(item.partition, item.first_offset, item.last_offset) for item in offsets.ranges}
    assert listed == {(0, number, number) for number in range(0, 180, 3)}
    assert (offsets.listed, offsets.messages) == (60, 60)
