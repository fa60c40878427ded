"""Why somebody can't approve, apply or schedule a request: all of it, and the same as what the services say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import RoleGrant
from registry.access.roles import Actor, TokenLimit
from registry.errors import NotAllowed, SchemadeskError, WrongState
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest
from registry.promotions.requests.preconditions import ASKED, applying, approving, reasons_of, scheduling
from tests.promotions.factories import (
    BROKEN,
    CUSTOMERS,
    ORDERS,
    V1,
    V2,
    Cast,
    approve_shown,
    ask,
    change,
    register,
    rule,
)

pytestmark = pytest.mark.requirement("ORA-1", "CARD-4")
EVERYBODY = ("reader", "steward", "steward2", "approver", "approver2", "admin")


def codes(found: Any) -> list[str]:
    return [item.code for item in found]


def frozen(cast: Cast) -> None:
    now = timezone.now()
    services.add_freeze(
        environment="prod", starts_at=now, ends_at=now + timedelta(days=1), reason="a sale", by=cast["admin"]
    )


def _in_review(cast: Cast) -> int:
    register(V1, cast["steward"])
    return ask(cast)


def _approved(cast: Cast) -> int:
    number = _in_review(cast)
    approve_shown(request_id=number, by=cast["approver"])
    return number


def _scheduled(cast: Cast) -> int:
    number = _approved(cast)
    services.schedule(request_id=number, by=cast["approver"], at=timezone.now() + timedelta(hours=2))
    return number


def _half_reviewed(cast: Cast) -> int:
    change(reviews_needed=2)
    return _approved(cast)


def _breaking(cast: Cast) -> int:
    register(V1, cast["steward"])
    register(V1, cast["steward"], registry="staging")
    register(BROKEN, cast["admin"], force="tests")
    return ask(cast, version=2, target="staging")


def _frozen_and_approved(cast: Cast) -> int:
    number = _approved(cast)
    frozen(cast)
    services.recheck(request_id=number, by=cast["steward"])
    return number


def _rejected(cast: Cast) -> int:
    number = _in_review(cast)
    services.reject(request_id=number, by=cast["approver"], comment="no")
    return number


def _of_an_approver(cast: Cast) -> int:
    register(V1, cast["steward"])
    return ask(cast, by="approver")


def _with_a_mode_that_stops(cast: Cast) -> int:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    PromotionRequest.objects.filter(pk=number).update(plan=_failing(number))
    return number


def _failing(number: int) -> dict[str, Any]:
    """The stored plan with two more checks that fail hard."""
    plan = PromotionRequest.objects.get(pk=number).plan
    more = [
        {"code": code, "name": code, "verdict": "fail", "sentence": f"The {code} stops it.", "cure": "Mend it.",
         "overridable": False, "subject": "orders-value"}
        for code in ("mode", "status")
    ]  # fmt: skip
    return {**plan, "checks": [*plan["checks"], *more]}


SITUATIONS: dict[str, Callable[[Cast], int]] = {
    "in review": _in_review,
    "approved": _approved,
    "scheduled": _scheduled,
    "half reviewed": _half_reviewed,
    "breaking": _breaking,
    "frozen and approved": _frozen_and_approved,
    "rejected": _rejected,
    "of an approver": _of_an_approver,
}


def is_done(call: Callable[[], object]) -> bool:
    """Whether a service would do it; it is undone."""
    try:
        with transaction.atomic():
            call()
            transaction.set_rollback(True)
    except SchemadeskError:
        return False
    return True


@pytest.mark.parametrize("situation", SITUATIONS)
def test_they_say_what_the_services_say(cast: Cast, situation: str) -> None:
    """Nothing stands against it exactly where the service does it: with a reason where one may pass over a check."""
    number = SITUATIONS[situation](cast)
    info = selectors.get_request(number)
    must = (info.failing and info.state == "approved") or any(check.get("code") != "freeze" for check in info.failing)
    override = "it has to be" if must else ""
    at = timezone.now() + timedelta(days=2)
    calls: dict[str, Callable[[Actor], object]] = {
        "approve": lambda by: approve_shown(request_id=number, by=by, comment="fine", override=override),
        "apply": lambda by: services.apply(request_id=number, by=by),
        "schedule": lambda by: services.schedule(request_id=number, by=by, at=at),
    }
    differ = []
    for name in EVERYBODY:
        for what, call in calls.items():
            by = cast[name]
            against = [item for item in ASKED[what](info, by) if not item.passable]
            done = is_done(lambda call=call, by=by: call(by))
            if done == bool(against):
                differ.append((name, what, done, codes(against)))
    assert differ == []


def test_all_that_fails_is_listed_and_not_the_first_alone(cast: Cast) -> None:
    number = _with_a_mode_that_stops(cast)
    register({**V1, "doc": "came"}, cast["admin"], registry="staging")
    info = selectors.get_request(number)
    found = approving(info, cast["steward"])
    assert codes(found) == ["rights", "stale", "mode", "status"]
    assert "Possible reviewers: admin, approver, approver2." in found[0].cure
    assert found[2].sentence == "A check fails: The mode stops it." and found[2].cure == "Mend it."
    assert found[2].subject == "orders-value"
    assert codes(applying(info, cast["reader"])) == ["approval", "rights", "stale", "mode", "status"]
    assert codes(scheduling(info, cast["reader"])) == ["approval", "rights"]


def test_ones_own_request_names_who_could(cast: Cast) -> None:
    info = selectors.get_request(_of_an_approver(cast))
    (found,) = approving(info, cast["approver"])
    assert (found.code, found.sentence) == ("own-request", "You requested this, so another person must review it.")
    assert found.cure == "Possible reviewers: admin, approver2."
    assert approving(info, cast["approver2"]) == ()


def test_nobody_can_is_the_cure_where_nobody_can(cast: Cast) -> None:
    register(V1, cast["steward"])
    rule(reviewers="group", name="nobody-here")
    info = selectors.get_request(ask(cast))
    assert "the group nobody-here" in approving(info, cast["reader"])[0].cure
    (found,) = applying(info, cast["approver"])
    assert "the group nobody-here" in found.sentence
    assert found.cure == ""


def test_who_may_override_a_freeze_is_said_once(cast: Cast) -> None:
    number = _approved(cast)
    frozen(cast)
    services.recheck(request_id=number, by=cast["steward"])
    (found,) = applying(selectors.get_request(number), cast["approver"])
    assert found.cure.count("override it with a reason") == 1
    with pytest.raises(WrongState) as refused:
        services.apply(request_id=number, by=cast["approver"])
    assert refused.value.message.count("override it with a reason") == 1


def test_who_may_force_passes_over_a_break_and_others_read_who_may(cast: Cast) -> None:
    info = selectors.get_request(_breaking(cast))
    (passable,) = approving(info, cast["admin"])
    assert (passable.code, passable.passable) == ("compatibility", True)
    who = "A person with the admin role can override it with a reason."
    assert who in passable.cure
    (stops,) = approving(info, cast["approver"])
    assert (stops.code, stops.passable, stops.subject) == ("compatibility", False, "orders-value")
    assert f"{who} You need the admin role in staging" in stops.cure
    for values, said in (({}, who), ({"override": "agreed"}, f"{who} You need the admin role in staging")):
        with pytest.raises((WrongState, NotAllowed)) as refused:
            services.approve(request_id=info.id, by=cast["approver"], plan_hash=info.plan_hash, **values)
        assert said in refused.value.message


def test_a_freeze_stops_applying_alone_and_what_an_approval_passes_over_stops_nothing(cast: Cast) -> None:
    number = _in_review(cast)
    frozen(cast)
    services.recheck(request_id=number, by=cast["steward"])
    info = selectors.get_request(number)
    assert approving(info, cast["approver"]) == ()
    assert codes(applying(info, cast["approver"])) == ["approval", "freeze"]
    approve_shown(request_id=number, by=cast["approver"], override="the sale needs it")
    assert applying(selectors.get_request(number), cast["approver"]) == ()


def test_a_right_for_other_subjects_is_lacking_for_each_that_is_written(cast: Cast) -> None:
    register(V1, cast["steward"])
    register({**V1, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    items = [(name, "1") for name in (CUSTOMERS, ORDERS)]
    number = services.request_promotion(source="dev", target="prod", items=items, by=cast["steward"])
    approve_shown(request_id=number, by=cast["approver"])
    info = selectors.get_request(number)
    grants = RoleGrant.objects.filter(user_id=cast["approver2"].user_id)
    grants.update(subject_pattern="orders-*")
    limited = replace(
        cast["approver2"], grants=tuple(replace(g, subject_pattern="orders-*") for g in cast["approver2"].grants)
    )
    (lacking,) = applying(info, limited)
    assert (lacking.code, lacking.subject) == ("rights", "customers-value")


def test_a_token_that_may_not_review_is_the_reason_though_its_person_may(cast: Cast) -> None:
    info = selectors.get_request(_in_review(cast))
    assert approving(info, cast["approver"]) == ()
    limited = replace(cast["approver"], limit=TokenLimit("read"))
    (found,) = approving(info, limited)
    assert found.code == "rights" and "This token's scope is read" in found.sentence


def test_a_damaged_plan_stops_both(cast: Cast) -> None:
    number = _approved(cast)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE promotions_promotionrequest SET plan = '3' WHERE id = %s", [number])
    assert "stale" in codes(applying(selectors.get_request(number), cast["approver"]))


def test_they_take_no_query(cast: Cast) -> None:
    info = selectors.get_request(_breaking(cast))
    with CaptureQueriesContext(connection) as queries:
        for name in EVERYBODY:
            reasons_of(info, cast[name])
    assert len(queries) == 0


def test_the_api_says_them_of_one_and_of_many(cast: Cast, api: Callable[[str], Client]) -> None:
    number = _of_an_approver(cast)
    for path in (f"/api/v1/promotions/{number}", "/api/v1/promotions"):
        answer = json.loads(api("approver").get(path).content)
        found = (answer[0] if isinstance(answer, list) else answer)["reasons"]
        assert list(found) == ["approve", "apply", "schedule"]
        assert found["approve"] == [
            {
                "code": "own-request",
                "sentence": "You requested this, so another person must review it.",
                "cure": "Possible reviewers: admin, approver2.",
                "subject": "",
                "passable": False,
                "url": "",
            }
        ]
        assert [item["code"] for item in found["apply"]] == ["approval"]
    assert json.loads(api("approver2").get(f"/api/v1/promotions/{number}").content)["reasons"]["approve"] == []


def test_what_was_approved_already_is_a_reason(cast: Cast) -> None:
    info = selectors.get_request(_half_reviewed(cast))
    (found,) = approving(info, cast["approver"])
    assert (found.code, found.cure) == ("reviewed", "Possible reviewers: admin, approver2.")
    register(V2, cast["steward"])
    assert approving(info, cast["approver2"]) == ()
