"""All messages of a finding by offset: found by scans, kept within a limit, paged, and exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.drift import selectors
from registry.drift.judge.model import OffendingMessages
from registry.drift.models import Finding, FindingRange
from registry.drift.scan import offsets
from registry.pipeline import profile
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.amounts import how_many
from tests.drift.scans import judged, make_source, scan, topic
from tests.drift.test_faults import UNKNOWN, add, house, register
from tests.drift.test_faults import scan as real_scan
from tests.pipeline.topics import fill, framed, make_topic, string

pytestmark = [pytest.mark.requirement("CARD-4")]
SCATTERED = how_many("scattered messages of a topic")
__all__ = ["house"]


def kept(finding: Finding) -> list[tuple[int, int, int]]:
    shown = selectors.finding_offsets(finding.pk, by=None)
    return [(item.partition, item.first_offset, item.last_offset) for item in shown.ranges]


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("few", [SCATTERED // 5, SCATTERED])
def test_a_scan_lists_scattered_messages(few: int, house: str, system: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted natively in its large slices, and through Python only."""
    monkeypatch.setattr(profile, "FEW", few)
    name = make_topic(house, [], partitions=1)
    good = framed(register(name, system), string("somebody"))
    values = {0: framed(UNKNOWN, b"?"), 1: good + b"left over"}
    fill(house, name, ((0, b"k", values.get(offset % 5, good)) for offset in range(SCATTERED)))
    row = real_scan(add(system, name), system)
    assert row.state == "done", row.error
    for rule, first in (("UNKNOWN_SCHEMA_ID", 0), ("UNDECODABLE", 1)):
        finding = Finding.objects.get(source=row.source, rule=rule)
        assert kept(finding) == [(0, offset, offset) for offset in range(first, SCATTERED, 5)], rule
        assert finding.count == SCATTERED // 5


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
def test_a_scan_lists_the_messages_in_which_a_field_is_wrong(house: str, system: Actor) -> None:
    """Framed JSON, and JSON without a schema whose topic has a subject."""
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "integer"}, "state": {"type": "string", "enum": ["NEW", "PAID"]}},
    }
    names = [make_topic(house, [], partitions=1) for _ in range(2)]
    numbers = [
        register_version(
            registry="dev",
            subject=SubjectName(".", f"{name}-value"),
            text=json.dumps(schema),
            schema_type="JSON",
            by=system,
        ).schema_id
        for name in names
    ]
    changes: dict[int, Any] = {0: {"extra": 1}, 1: {"id": "x"}, 2: {"state": "LOST"}, 3: {}}
    for name, number in zip(names, numbers, strict=True):
        values = []
        for offset in range(400):
            value = {"id": offset, "state": "PAID"} | (changes.get(offset % 50 - 10) or {})
            if offset % 50 == 13:
                del value["id"]
            body = json.dumps(value).encode()
            values.append((0, b"k", framed(number, body) if name == names[0] else body))
        fill(house, name, values)
        row = real_scan(add(system, name), system)
        assert row.state == "done", row.error
    expected = {"FIELD_UNDECLARED": 10, "FIELD_TYPE_WRONG": 11, "ENUM_VALUE_UNDECLARED": 12, "FIELD_MISSING": 13}
    for name in names:
        for rule, first in (
            expected.items() if name == names[0] else [*list(expected.items())[:2], ("FIELD_MISSING", 13)]
        ):
            finding = Finding.objects.get(topic__name=name, rule=rule)
            assert kept(finding) == [(0, offset, offset) for offset in range(first, 400, 50)], (name, rule)
            assert finding.count == 8


def offending(*ranges: tuple[int, int]) -> tuple[OffendingMessages, ...]:
    return (OffendingMessages(0, ranges),)


@pytest.mark.django_db
def test_new_ranges_are_added_and_those_read_again_replaced(
    registries: None, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_source()
    scan(source, system, judged(count=3, offending=offending((0, 1), (4, 4))))
    row = Finding.objects.get()
    scan(source, system, judged(count=2, offending=offending((7, 8))))
    assert kept(row) == [(0, 0, 1), (0, 4, 4), (0, 7, 8)]
    monkeypatch.setattr(offsets, "MOST_RANGES", 2)
    scan(source, system, judged(count=1, offending=offending((10, 10))))
    assert kept(row) == [(0, 7, 8), (0, 10, 10)], "the newest"
    scan(source, system, judged(count=1, offending=offending((4, 4))), topics=(topic(again=True),))
    assert kept(row) == [(0, 4, 4)]


@pytest.mark.django_db
def test_a_finding_whose_messages_are_only_counted_says_so(
    registries: None,
    person: Callable[[str], Actor],
    look: Callable[[str], Client],
    api: Callable[[str], Client],
    system: Actor,
) -> None:
    person("reader")
    scan(
        make_source(),
        system,
        judged(rule="NULL_SHARE_INCREASED", count=7),
        judged("b", rule="TOPIC_SILENT", severity="risk"),
    )
    number, other = Finding.objects.order_by("rule").values_list("pk", flat=True)
    body = api("reader").get(f"/api/v1/findings/{number}/offsets").json()
    assert (body["collected"], body["listed"], body["messages"]) == (False, 0, 7)
    assert api("reader").get(f"/api/v1/findings/{number}/offsets?as=csv").status_code == 422
    assert (
        "scans count these messages without listing them"
        in look("reader").get(f"/ui/findings/{number}").content.decode()
    )
    assert api("reader").get(f"/api/v1/findings/{other}/offsets").json()["collected"], "it is about no messages"


@pytest.mark.django_db
def test_the_page_and_the_api_page_through_all_and_export_them(
    registries: None,
    person: Callable[[str], Actor],
    look: Callable[[str], Client],
    api: Callable[[str], Client],
    system: Actor,
) -> None:
    person("reader")
    ranges = [(number * 3, number * 3 + 1) for number in range(120)]
    scan(make_source(), system, judged(count=100_000, offending=offending(*ranges)))
    number = Finding.objects.get().pk
    page = look("reader").get(f"/ui/findings/{number}").content.decode()
    assert "240 of 100,000 messages are listed" in page
    assert f"?after=0%40{49 * 3}" in page or f"?after=0@{49 * 3}" in page
    later = look("reader").get(f"/ui/findings/{number}?after=0@{99 * 3}").content.decode()
    assert str(119 * 3 + 1) in later and 'rel="next"' not in later
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        body = api("reader").get(f"/api/v1/findings/{number}/offsets?limit=50&after={after}").json()
        found += body["ranges"]
        after = body["next"]
        if not after:
            break
    assert [(item["first_offset"], item["last_offset"]) for item in found] == ranges
    assert (body["listed"], body["messages"]) == (240, 100_000)
    for csv in (
        api("reader").get(f"/api/v1/findings/{number}/offsets?as=csv"),
        look("reader").get(f"/ui/findings/{number}/offsets?as=csv"),
    ):
        assert csv.content.decode().splitlines()[:2] == ["partition,first_offset,last_offset,messages", "0,0,1,2"]
        assert len(csv.content.splitlines()) == 121
    assert json.loads(look("reader").get(f"/ui/findings/{number}/offsets?as=json").content)["ranges"] == found
    assert api("reader").get(f"/api/v1/findings/{number}/offsets?after=x").status_code == 422
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="payments-*")
    assert api("reader").get(f"/api/v1/findings/{number}/offsets").status_code == 404
    assert look("reader").get(f"/ui/findings/{number}/offsets?as=csv").status_code == 404
    assert FindingRange.objects.count() == 120
