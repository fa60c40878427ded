"""Messages by the hour of the time that they carry."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from dashboard.pages.evidence_bars import bar_tables
from registry.access.roles import Actor
from registry.drift.hours import MOST_HOURS, ByHour, by_hour
from registry.drift.judge.reading import part_of, positions
from registry.drift.models import Finding
from registry.observations import Span
from tests.drift.scans import judged, make_source, scan, topic

pytestmark = pytest.mark.requirement("CARD-3")
NINE = 1_795_251_600_000  # 2026-11-21 09:00 UTC
HOUR = 3_600_000


def part(messages: int, first: int, last: int | None = None) -> dict[str, Any]:
    return {"partition": 0, "messages": messages, "first_time": first, "last_time": first if last is None else last}


#: parts → counts, spread, earlier
CASES = {
    "within an hour": ([part(5, NINE, NINE + HOUR - 1)], {"2026-11-21 09:00": 5}, 0, 0),
    "over three": (
        [part(10, NINE, NINE + 2 * HOUR)],
        {"2026-11-21 09:00": 3, "2026-11-21 10:00": 3, "2026-11-21 11:00": 4}, 10, 0,
    ),
    "one message over two hours": ([part(1, NINE, NINE + HOUR)], {"2026-11-21 10:00": 1}, 1, 0),
    "two partitions": ([part(2, NINE), part(3, NINE + 5)], {"2026-11-21 09:00": 5}, 0, 0),
    "times turned round": ([part(2, NINE + HOUR, NINE)], {"2026-11-21 09:00": 1, "2026-11-21 10:00": 1}, 2, 0),
    "counted by the scan": (
        [part(70, NINE, NINE + 2 * HOUR) | {"hours": {str(NINE // HOUR): 1, str(NINE // HOUR + 2): 60}}],
        {"2026-11-21 09:00": 1, "2026-11-21 11:00": 60}, 0, 9,
    ),
    "counted in one partition, spread in another": (
        [part(6, NINE, NINE + HOUR) | {"hours": {str(NINE // HOUR): 6}}, part(2, NINE, NINE + HOUR)],
        {"2026-11-21 09:00": 7, "2026-11-21 10:00": 1}, 2, 0,
    ),
    "no time at all": ([part(2, -1)], {"1970-01-01 00:00": 2}, 0, 0),
    "beyond all calendars": ([part(2, 2**62)], {"9999-12-31 23:00": 2}, 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_spans_become_hours(case: str) -> None:
    parts, counts, spread, earlier = CASES[case]
    assert by_hour(ByHour({}), parts) == ByHour(counts, spread, earlier)


@given(
    st.lists(
        st.builds(part, st.integers(1, 10_000), st.integers(-1, 2**60), st.integers(-1, 2**60)), min_size=1, max_size=6
    )
)
def test_no_message_is_lost_and_the_counts_are_bounded(parts: list[dict[str, Any]]) -> None:
    found = by_hour(ByHour({}), parts)
    assert sum(found.counts.values()) + found.earlier == sum(item["messages"] for item in parts)
    assert len(found.counts) <= MOST_HOURS
    assert ByHour.of_evidence(found.to_evidence()) == found


@pytest.mark.django_db
def test_scans_add_up_and_what_is_read_again_is_not_counted_again(registries: None, system: Actor) -> None:
    source = make_source()
    for number, first in ((3, NINE), (4, NINE + HOUR)):
        scan(source, system, judged("a", evidence={"topic": "orders", "partitions": [part(number, first)]}))
    assert Finding.objects.get().evidence["ids_by_hour"] == {"2026-11-21 09:00": 3, "2026-11-21 10:00": 4}
    whole = judged("a", evidence={"topic": "orders", "partitions": [part(7, NINE)]})
    scan(source, system, whole, topics=(topic(again=True),))
    assert Finding.objects.get().evidence["ids_by_hour"] == {"2026-11-21 09:00": 7}


@pytest.mark.django_db
def test_what_a_scan_counted_is_kept_once_for_all_partitions(registries: None, system: Actor) -> None:
    source, hour = make_source(), NINE // HOUR
    counted = [
        part(10, NINE, NINE + HOUR) | {"partition": number, "hours": {str(hour): 9, str(hour + 1): 1}}
        for number in range(3)
    ]
    scan(source, system, judged("a", evidence={"topic": "orders", "partitions": counted}))
    evidence = Finding.objects.get().evidence
    assert evidence["ids_by_hour"] == {"2026-11-21 09:00": 27, "2026-11-21 10:00": 3}
    assert evidence["ids_by_hour_spread"] == 0
    assert not any("hours" in each for each in evidence["partitions"])
    scan(source, system, judged("b", rule="UNFRAMED_DATA", evidence={"topic": "orders", "partitions": counted}))
    assert not any("hours" in each for each in Finding.objects.get(rule="UNFRAMED_DATA").evidence["partitions"])


def test_the_judgement_hands_on_what_the_scan_counted() -> None:
    span = Span(3, 30, 0, 2, NINE, NINE + HOUR)
    one = part_of(0, span, {str(NINE // HOUR): 2, str(NINE // HOUR + 1): 1})
    (whole,) = positions([one, part_of(0, span, {str(NINE // HOUR): 3})])["partitions"]
    assert whole["hours"] == {str(NINE // HOUR): 5, str(NINE // HOUR + 1): 1}
    (unsure,) = positions([one, part_of(0, span)])["partitions"]
    assert "hours" not in unsure, "a part that wasn't counted leaves the whole to be spread"


def test_the_table_says_what_it_rests_on() -> None:
    found = by_hour(ByHour({}), [part(2, NINE, NINE + HOUR), part(5, NINE - 90 * HOUR)])
    (table,) = bar_tables(found.to_evidence())
    assert [(bar.label, bar.count) for bar in table.bars][-1] == ("2026-11-21 10:00", 1)
    assert table.note == (
        "Of what scans read. 2 messages lie in spans of several hours and are spread evenly over them."
    )
    cut = by_hour(ByHour({}), [part(100, NINE, NINE + 49 * HOUR)])
    assert bar_tables(cut.to_evidence())[0].note.endswith("52 earlier messages are not drawn.")
    assert bar_tables({"topic": "orders"}) == ()


@pytest.mark.django_db
def test_a_truncate_of_before_is_read_as_any_other(registries: None, system: Actor) -> None:
    source, places = make_source(), [part(3, NINE)]
    old = {"topic": "orders", "partitions": 3, "truncates": places}
    for fingerprint, evidence in (("a", old), ("b", {"topic": "orders", "partitions": places})):
        scan(source, system, judged(fingerprint, rule="UNFRAMED_DATA", evidence={"topic": "orders"}))
        Finding.objects.filter(fingerprint=fingerprint * 64).update(rule="TRUNCATE_OUT_OF_ORDER", evidence=evidence)
    with connection.cursor() as cursor:
        cursor.execute(import_module("registry.drift.migrations.0005_places_of_truncates").MOVE)
    assert [finding.evidence for finding in Finding.objects.order_by("pk")] == [
        {"topic": "orders", "topic_partitions": 3, "partitions": places},
        {"topic": "orders", "partitions": places},
    ]
