"""What points to a finding's producer: one partition alone, where that says something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.drift.hints import OnePartition, one_partition
from registry.drift.models import Finding
from tests.drift.scans import judged, make_source, scan, topic

pytestmark = pytest.mark.requirement("CARD-3")


def part(partition: int = 3, messages: int = 10, last: Any = 60_000) -> dict[str, Any]:
    return {"partition": partition, "messages": messages, "first_time": 0, "last_time": last}


@pytest.mark.parametrize(
    ("evidence", "partitions", "hint"),
    [
        ({"partitions": [part()]}, 12, OnePartition(3, 12, 10)),
        ({"partitions": [part()]}, 1, None),
        ({"partitions": [part(messages=9)]}, 12, None),
        ({"partitions": [part(last=59_999)]}, 12, None),
        ({"partitions": [part(), part(4)]}, 12, None),
        ({"partitions": []}, 12, None),
        ({"partitions": [7]}, 12, None),
        ({"partitions": [part(last=None)]}, 12, None),
        ({"partitions": "x"}, 12, None),
        ({}, 12, None),
    ],
)
def test_one_partition_stands_out(evidence: dict[str, Any], partitions: int, hint: OnePartition | None) -> None:
    assert one_partition(evidence, partitions) == hint


@pytest.mark.django_db
def test_pages_and_programs_are_told(
    registries: None, system: Actor, look: Callable[[str], Client], api: Callable[[str], Client]
) -> None:
    places = [part() | {"first_offset": 0, "last_offset": 9}]
    found = judged("a", evidence={"topic": "orders", "partitions": places})
    scan(make_source(), system, found, topics=(topic(partitions=12),))
    number, reader = Finding.objects.get().pk, look("reader")
    assert "Producer hint: all in partition 3, of 12" in reader.get("/ui/findings").content.decode()
    assert reader.get(f"/ui/findings/{number}").context["page"].finding.producer == "all in partition 3, of 12"
    assert api("reader").get(f"/api/v1/findings/{number}").json()["producer_hint"] == {
        "partition": 3,
        "of": 12,
        "messages": 10,
    }
