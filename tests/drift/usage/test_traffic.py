"""The messages of each version by day, as scans kept them: on the page, as a file, and by the reader's rights."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, date, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.drift.models import FieldStatistic, Source, Topic
from registry.drift.usage.version_usage import traffic_by_day, versions_by_day
from registry.subjects.models import Registry
from tests.drift.usage.test_version_usage import SUBJECT, dev, ids, source, topic, use, used  # noqa: F401

pytestmark = pytest.mark.requirement("CARD-3")
PAGE = "/ui/registries/dev/subjects/orders-value/usage"


def count(where: Topic, mark: int, day: date, messages: int, *paths: str) -> None:
    for path in paths or ("a", "b"):
        FieldStatistic.objects.create(
            topic=where, side="value", framing="id", mark=str(mark), path=path, day=day, messages=messages,
            present=messages, nulls=0,
        )  # fmt: skip


@pytest.fixture
def days(dev: Registry, source: Source, ids: list[int]) -> tuple[date, date]:  # noqa: F811
    """Two days on which scans saw versions 1 and 2 in two topics; version 3 was never seen."""
    today = timezone.now().astimezone(UTC).date()
    old = today - timedelta(days=4)
    first, second = topic(source), topic(source, "orders-eu")
    for where in (first, second):
        for number in ids[:2]:
            use(where, number)
        count(where, ids[0], old, 1_000)
        count(where, ids[1], today, 30)
    count(first, ids[0], today, 7)
    count(first, 99, today, 5)  # another subject's schema
    return old, today


def test_each_message_counts_once_for_its_version_and_day(dev: Registry, days: tuple[date, date]) -> None:  # noqa: F811
    old, today = days
    assert traffic_by_day(used(dev), since=old) == {old: {1: 2_000}, today: {1: 7, 2: 60}}
    assert traffic_by_day(used(dev), since=today) == {today: {1: 7, 2: 60}}
    assert versions_by_day(dev, SUBJECT, since=old) == {today: [1, 2, 3]}


def test_the_page_draws_them_with_a_table_and_a_file(days: tuple[date, date], look: Callable[[str], Client]) -> None:
    old, today = days
    text = look("reader").get(PAGE).content.decode()
    assert "Versions in traffic" in text
    assert 'aria-label="Versions in traffic. Last 30 days. version 2: 60, version 1: 2,007."' in text
    assert f"{today}\nversion 2: 60\nversion 1: 7\nversion 1 registered" in text
    assert f'href="{PAGE}?as=csv"' in text
    response = look("reader").get(f"{PAGE}?as=csv")
    rows = list(csv.reader(io.StringIO(response.content.decode())))
    assert response["Content-Disposition"] == 'attachment; filename="traffic.csv"'
    assert rows[1] == [old.isoformat(), "0", "2000", ""]
    assert rows[2][:3] == [today.isoformat(), "60", "7"]


def test_nothing_is_drawn_without_profiles(dev: Registry, ids: list[int], look: Callable[[str], Client]) -> None:  # noqa: F811
    assert "Versions in traffic" not in look("reader").get(PAGE).content.decode()
    assert look("reader").get(f"{PAGE}?as=csv").content.decode().strip() == "day,marks"


def test_who_may_not_read_the_subject_gets_no_number(
    days: tuple[date, date], look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    person("reader")
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="customers-*")
    assert look("reader").get(f"{PAGE}?as=csv").status_code in (403, 404)
