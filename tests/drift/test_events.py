"""A scan that fails is told of to those who manage sources: the first of a row, whichever way it ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift import services
from registry.drift.models import Scan, Source
from registry.drift.services.scans import MAX_ATTEMPTS, claim_scan, fail_scan, queue_scan, reclaim_lost_scans
from registry.notifications.models import InboxEntry
from tests.drift.scans import make_source

pytestmark = pytest.mark.requirement("SCS-3")


def run(source: Source, by: Actor, reason: str = "") -> None:
    """A scan that ends: failed with a reason, done without one."""
    claim = claim_scan(queue_scan(source_id=source.pk, by=by))
    assert claim is not None
    if reason:
        assert fail_scan(claim, reason=reason)
    else:
        Scan.objects.filter(pk=claim.scan_id).update(state="done", finished_at=timezone.now(), lease_until=None)


def told() -> list[tuple[str, str]]:
    rows = InboxEntry.objects.filter(notice__event="scan.failed").order_by("id")
    return list(rows.values_list("user__username", "notice__text"))


@pytest.fixture
def source(registries: None, person: Callable[[str], Actor]) -> Source:
    for name in ("reader", "steward"):
        person(name)
    return make_source()


def test_the_first_failure_of_a_row_is_reported(source: Source, system: Actor) -> None:
    first = ("steward", "The scan of topics failed: the broker is gone")
    run(source, system)
    run(source, system, "the broker is gone")
    run(source, system, "still gone")
    assert told() == [first]
    run(source, system)
    run(source, system, "gone again")
    assert told() == [first, ("steward", "The scan of topics failed: gone again")]


def test_sources_are_reported_one_by_one(source: Source, system: Actor) -> None:
    other = make_source(name="others")
    run(source, system, "gone")
    run(other, system, "gone")
    assert [text for _, text in told()] == ["The scan of topics failed: gone", "The scan of others failed: gone"]


def test_a_claim_that_was_lost_tells_nothing(source: Source, system: Actor) -> None:
    claim = claim_scan(queue_scan(source_id=source.pk, by=system))
    assert claim is not None
    services.cancel_scan(scan_id=claim.scan_id, by=system)
    assert not fail_scan(claim, reason="too late")
    assert told() == []


def test_a_scan_whose_workers_died_is_reported_too(source: Source, system: Actor) -> None:
    queue_scan(source_id=source.pk, by=system)
    past = timezone.now() - timedelta(minutes=5)
    for _ in range(MAX_ATTEMPTS):
        number = Scan.objects.get().pk
        assert claim_scan(number) is not None
        Scan.objects.update(lease_until=past)
        assert told() == []
        reclaim_lost_scans()
    assert [text for _, text in told()] == [
        f"The scan of topics failed: Its worker died {MAX_ATTEMPTS} times. Check the log of the scans worker."
    ]
