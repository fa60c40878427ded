"""What a plan advises: lint, owners and descriptions are checks that are read and weigh nothing."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.pages.promotions_plan import worst
from dashboard.presenters.looks import Verdict
from registry.access.models import Ownership, User
from registry.promotions import selectors, services
from registry.promotions.plan import ADVICE
from registry.promotions.together import why_alone
from registry.subjects.services.notes import set_note
from tests.promotions.parts import CUSTOMERS, ORDERS, Cast, ask, register, state_of

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
TIDY: dict[str, Any] = {
    "type": "record", "name": "Order", "namespace": "com.example", "doc": "An order of the shop.",
    "fields": [{"name": "id", "type": "long", "doc": "Its number."}],
}  # fmt: skip
#: without a namespace, and with an optional field that has no default
UNTIDY = {"type": "record", "name": "Order", "fields": [{"name": "note", "type": ["null", "string"]}]}


def advice(number: int) -> dict[str, dict[str, Any]]:
    """The checks that advise, by code."""
    return {check["code"]: check for check in selectors.get_request(number).checks if check["code"] in ADVICE}


def owned(username: str, pattern: str) -> None:
    Ownership.objects.create(subject_pattern=pattern, user=User.objects.get(username=username))


def test_what_is_seen_to_passes(cast: Cast) -> None:
    register(TIDY, cast["steward"])
    owned("steward", "orders-*")
    set_note(registry="dev", subject=ORDERS, tags=(), doc="What was bought.", expected="*", by=cast["steward"])
    found = advice(ask(cast))
    assert {code: check["verdict"] for code, check in found.items()} == dict.fromkeys(ADVICE, "pass"), found


def test_what_nobody_saw_to_is_named_and_stops_nothing(cast: Cast) -> None:
    register(UNTIDY, cast["steward"])
    register({**TIDY, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    owned("steward", "customers-*")
    number = services.request_promotion(
        source="dev", target="prod", items=[(ORDERS, 1), (CUSTOMERS, 1)], by=cast["steward"]
    )
    found = advice(number)
    assert {code: check["verdict"] for code, check in found.items()} == dict.fromkeys(ADVICE, "warn")
    assert "orders-value: " in found["lint"]["sentence"] and "customers-value: " not in found["lint"]["sentence"]
    assert found["owners"]["sentence"] == "Nobody owns orders-value in prod."
    assert "customers-value, orders-value" in found["descriptions"]["sentence"]
    assert all(check["cure"] and not check["overridable"] for check in found.values())
    info = selectors.get_request(number)
    assert worst(list(found.values())) is Verdict.OK and why_alone({"checks": list(found.values())}) == ""
    services.approve(request_id=number, by=cast["approver"], plan_hash=info.plan_hash)
    owned("steward", "orders-*")
    services.recheck(request_id=number, by=cast["steward"])
    assert state_of(number) == "approved", "advice that changes voids no approval"
    assert advice(number)["owners"]["verdict"] == "pass"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
