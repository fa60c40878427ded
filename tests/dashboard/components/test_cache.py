"""What is kept for a minute for everybody, and what happens without Valkey."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.core.cache import cache
from django.db import connection
from redis.exceptions import ConnectionError as RedisConnectionError

from dashboard.subjects.filters import cached
from registry.audit.time_travel import as_of


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Iterator[int]]:
    """What is read is another number each time."""
    monkeypatch.setattr("dashboard.subjects.filters.KEPT_SECONDS", 60)
    cache.clear()
    yield iter(range(10))
    cache.clear()


def test_it_is_read_once_and_tells_when(reads: Iterator[int]) -> None:
    first, at = cached("a", lambda: next(reads))
    assert cached("a", lambda: next(reads)) == (first, at)
    assert cached("b", lambda: next(reads))[0] != first


@pytest.mark.django_db
def test_the_past_is_kept_beside_the_present(reads: Iterator[int]) -> None:
    now, _ = cached("a", lambda: next(reads))
    with as_of(datetime(2026, 1, 1, tzinfo=UTC)):
        then, _ = cached("a", lambda: next(reads))
    assert now != then and connection.is_usable()


@pytest.mark.parametrize("part", ["get", "set"])
def test_without_valkey_it_is_read_again(reads: Iterator[int], monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def away(*_: object, **__: object) -> None:
        raise RedisConnectionError("away")

    monkeypatch.setattr(f"django.core.cache.backends.redis.RedisCache.{part}", away)
    assert [cached("a", lambda: next(reads))[0] for _ in range(2)] == [0, 1]
