"""Calls at the same moment, each on a connection of its own: whatever happens could have happened one after the other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from registry.errors import SchemadeskError
from registry.promotions import selectors, services
from registry.promotions.models import Acknowledgement, PromotionRequest, Release, RequestItem, Review
from registry.subjects.selectors import list_versions
from registry.subjects.services import set_config
from registry.subjects.usage.clients import declare_client
from registry.subjects.versions.lookup import get_registry
from tests.promotions.factories import CUSTOMERS, ORDERS, V1, Cast, approve_shown, ask, change, register, state_of

pytestmark = [
    pytest.mark.usefixtures("transactional_db", "registries"),
    pytest.mark.requirement("CARD-4"),
    pytest.mark.slow,
]
#: each is another interleaving
ROUNDS = range(2)


def race(calls: Sequence[Callable[[], object]]) -> list[object]:
    """What each of them gave, begun together: its value, or the class of the error of ours that refused it."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        try:
            barrier.wait(timeout=30)
            return call()
        except SchemadeskError as error:
            return type(error).__name__
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.mark.parametrize("seed", ROUNDS)
def test_two_approvers_at_once_are_both_counted(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    change(reviews_needed=2)
    number = ask(cast)
    found = race([lambda who=who: approve_shown(request_id=number, by=cast[who]) for who in ("approver", "approver2")])
    assert Counter(found) == {"in review": 1, "approved": 1}
    assert Review.objects.count() == 2


@pytest.mark.parametrize("seed", ROUNDS)
def test_one_approver_with_four_clicks_is_one_review(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    change(reviews_needed=2)
    number = ask(cast)
    found = race([lambda: approve_shown(request_id=number, by=cast["approver"])] * 4)
    assert Counter(found) == {"in review": 1, "WrongState": 3}
    assert Review.objects.count() == 1
    assert state_of(number) == "in review"


def test_four_acknowledgements_at_once_are_one(cast: Cast) -> None:
    register(V1, cast["admin"], registry="staging")
    declare_client(registry="staging", subject=ORDERS, name="billing", version=1, contact="reader", by=cast["admin"])
    narrow = {**V1, "fields": [{"name": "note", "type": ["null", "string"], "default": None}]}
    register(narrow, cast["steward"])
    number = ask(cast, target="staging")
    read = PromotionRequest.objects.get(pk=number).plan_hash
    sent = {
        "request_id": number,
        "subject": ORDERS.qualified,
        "client": "billing",
        "plan_hash": read,
        "by": cast["reader"],
    }
    found = race([lambda: services.acknowledge(**sent)] * 4)
    assert Counter(found) == {True: 1, False: 3}
    assert Acknowledgement.objects.count() == 1


@pytest.mark.parametrize("seed", ROUNDS)
def test_approved_while_it_is_withdrawn(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    approved, withdrawn = race(
        [
            lambda: approve_shown(request_id=number, by=cast["approver"]),
            lambda: services.withdraw(request_id=number, by=cast["steward"]),
        ]
    )
    assert withdrawn == "withdrawn", "an approved one can be withdrawn too"
    assert approved in ("approved", "WrongState")
    assert state_of(number) == "withdrawn"
    assert not RequestItem.objects.exclude(open_in=None).exists()


@pytest.mark.parametrize("seed", ROUNDS)
def test_approved_while_it_is_rejected(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    race(
        [
            lambda: approve_shown(request_id=number, by=cast["approver"]),
            lambda: services.reject(request_id=number, by=cast["approver2"], comment="no"),
        ]
    )
    assert state_of(number) == "rejected"


@pytest.mark.parametrize("seed", ROUNDS)
def test_a_request_that_is_made_four_times_is_one(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    found = race([lambda: ask(cast)] * 4)
    assert Counter(type(one) for one in found) == {int: 1, str: 3}
    assert set(found) - {one for one in found if isinstance(one, int)} == {"WrongState"}
    assert (PromotionRequest.objects.count(), RequestItem.objects.count()) == (1, 1)


@pytest.mark.parametrize("seed", ROUNDS)
def test_sets_that_overlap_in_another_order_wait_one_way(cast: Cast, seed: int) -> None:
    """No deadlock: one of them is made, the others are refused."""
    register(V1, cast["steward"])
    register({**V1, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    items = [(ORDERS, 1), (CUSTOMERS, 1)]

    def request(order: int) -> Callable[[], object]:
        return lambda: services.request_promotion(source="dev", target="prod", items=items[::order], by=cast["steward"])

    found = race([request(1), request(-1), request(1), request(-1)])
    assert Counter(isinstance(one, int) for one in found) == {True: 1, False: 3}


@pytest.mark.parametrize("seed", ROUNDS)
def test_drafts_that_are_submitted_together_are_one_request(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    drafts = [ask(cast, by=who, draft=True) for who in ("steward", "steward2", "admin")]
    calls = [
        lambda number=number, who=who: services.submit(request_id=number, by=cast[who])
        for number, who in zip(drafts, ("steward", "steward2", "admin"), strict=True)
    ]
    assert Counter(race(calls)) == {"in review": 1, "WrongState": 2}
    assert Counter(state_of(number) for number in drafts) == {"in review": 1, "draft": 2}


@pytest.mark.parametrize("seed", ROUNDS)
def test_approved_and_applied_while_the_target_moves(cast: Cast, seed: int) -> None:
    """Either what was approved ran before the move, or it didn't run at all."""
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    read = selectors.get_request(number).plan_hash
    services.approve(request_id=number, by=cast["approver"], plan_hash=read)
    other = {**V1, "fields": [{"name": "id", "type": "int"}]}
    applied, _ = race(
        [
            lambda: services.apply(request_id=number, by=cast["approver"]),
            lambda: register(other, cast["steward"], registry="staging"),
        ]
    )
    versions = list_versions(get_registry("staging"), ORDERS)
    shown = selectors.get_request(number)
    if applied == "applied":
        (release,) = Release.objects.all()
        assert release.version_number == 1, "it came first, as it was approved"
        assert versions in ([1], [1, 2])
    else:
        assert applied in ("PlanChanged", "IncompatibleSchema")
        assert versions == [1]
        assert not Release.objects.exists()
        assert shown.state in ("in review", "approved")


@pytest.mark.parametrize("seed", ROUNDS)
def test_an_approval_is_of_the_level_that_was_read(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    read = selectors.get_request(number).plan_hash
    approved, _ = race(
        [
            lambda: services.approve(request_id=number, by=cast["approver"], plan_hash=read),
            lambda: set_config(registry="staging", subject=ORDERS, level="FULL", by=cast["steward"]),
        ]
    )
    assert approved in ("approved", "PlanChanged")
    if approved == "approved":
        assert Review.objects.get().plan_hash == read
        assert race([lambda: services.apply(request_id=number, by=cast["approver"])]) == ["PlanChanged"]
    else:
        assert not Review.objects.exists()
    assert state_of(number) == "in review"
    assert not Release.objects.exists()


@pytest.mark.parametrize("seed", ROUNDS)
def test_applied_twice_at_once_is_one_release(cast: Cast, seed: int) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    approve_shown(request_id=number, by=cast["approver"])
    found = race([lambda: services.apply(request_id=number, by=cast["approver"])] * 3)
    assert Counter(found) == {"applied": 1, "WrongState": 2}
    assert Release.objects.count() == 1
