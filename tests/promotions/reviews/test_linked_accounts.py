"""Two accounts of one person: as an admin states it, they count as one where a second is needed."""

from __future__ import annotations

import pytest

from registry.access.models import User
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NotFound, SchemadeskError, WrongState
from registry.promotions import selectors, services
from registry.promotions.models import SamePerson
from registry.promotions.reviews.linked_accounts import persons_of, state_same_person, withdraw_same_person
from tests.promotions.factories import V1, Cast, approve_shown, ask, change, register, state_of

pytestmark = pytest.mark.requirement("ORA-1")


def same(cast: Cast, one: str, other: str, by: str = "admin", reason: str = "her second account") -> int:
    return state_same_person(one=one, other=other, reason=reason, by=cast[by])


def test_neither_reviews_what_the_other_asked_for(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, by="approver")
    assert selectors.count_waiting_for(cast["approver2"].user_id or 0) == 1
    change("prod", is_closed=False)  # what loosens a closed one takes a second person
    stated = same(cast, "approver2", "approver")
    assert selectors.count_waiting_for(cast["approver2"].user_id or 0) == 0
    assert [row.id for row in selectors.list_requests(waiting_for=cast["approver2"].user_id or 0)] == []
    assert "approver2" not in [who.username for who in selectors.get_request(number).needed.eligible]
    with pytest.raises(NotAllowed, match="accounts are linked"):
        approve_shown(request_id=number, by=cast["approver2"])
    withdraw_same_person(statement_id=stated, by=cast["admin"])
    assert approve_shown(request_id=number, by=cast["approver2"]) == "approved"
    why = AuditEvent.objects.filter(table="promotions_sameperson").latest("id").why
    assert why == "unlink the accounts approver and approver2"


@pytest.mark.parametrize("by_address", [True, False])
def test_their_approvals_are_one(cast: Cast, by_address: bool) -> None:
    register(V1, cast["steward"])
    change(reviews_needed=2)
    number = ask(cast)
    if by_address:
        User.objects.filter(username__in=("approver", "approver2")).update(email="Maria@example.com ")
    else:
        same(cast, "approver", "approver2")
    approve_shown(request_id=number, by=cast["approver"])
    assert approve_shown(request_id=number, by=cast["approver2"]) == "in review"
    assert approve_shown(request_id=number, by=cast["admin"]) == "approved"
    assert state_of(number) == "approved"


def test_one_of_them_is_not_the_second_person_of_break_glass(cast: Cast) -> None:
    same(cast, "admin", "approver")
    number = services.open_break_glass(environment="prod", by=cast["admin"], reason="it burns", minutes=5)
    services.close_break_glass(break_glass_id=number, by=cast["admin"])
    with pytest.raises(NotAllowed, match="nother person"):
        services.confirm_break_glass(break_glass_id=number, by=cast["approver"])
    services.confirm_break_glass(break_glass_id=number, by=cast["approver2"])


def test_it_goes_on_from_one_to_the_next(cast: Cast) -> None:
    numbers = {name: actor.user_id or 0 for name, actor in cast.items()}
    same(cast, "reader", "steward")
    same(cast, "steward2", "steward")
    User.objects.filter(username__in=("steward2", "approver")).update(email="x@y")
    found = persons_of(numbers.values())
    alike = {name for name, number in numbers.items() if found[number] == found[numbers["reader"]]}
    assert alike == {"reader", "steward", "steward2", "approver"}
    assert len({found[numbers[name]] for name in ("admin", "approver2", "stranger")}) == 3


WRONG: dict[str, tuple[dict[str, str], type[SchemadeskError]]] = {
    "itself": ({"one": "steward", "other": "steward"}, InvalidInput),
    "nobody": ({"one": "steward", "other": "nobody"}, NotFound),
    "NUL": ({"one": "steward", "other": "a\0"}, NotFound),
    "no reason": ({"one": "steward", "other": "reader", "reason": " "}, InvalidInput),
    "not an admin": ({"one": "steward", "other": "reader", "by": "approver"}, NotAllowed),
    "twice": ({"one": "approver2", "other": "approver"}, WrongState),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(cast: Cast, case: str) -> None:
    same(cast, "approver", "approver2")
    given, error = WRONG[case]
    with pytest.raises(error):
        same(cast, **given)
    with pytest.raises((NotFound, NotAllowed)):
        withdraw_same_person(statement_id=999_999, by=cast["admin"])
    assert SamePerson.objects.count() == 1


def test_a_stranger_ends_none(cast: Cast) -> None:
    number = same(cast, "approver", "approver2")
    for who in (cast["approver"], Actor("anonymous", "product")):
        with pytest.raises(SchemadeskError):
            withdraw_same_person(statement_id=number, by=who)
    assert SamePerson.objects.exists()
