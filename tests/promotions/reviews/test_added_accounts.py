"""An account that one person added: in closed environments it is no second person beside them until somebody else says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from registry.access import services as access
from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.errors import NotAllowed, SecondPersonRequired, WrongState
from registry.promotions import selectors, services
from registry.promotions.models import SamePerson
from registry.promotions.reviews.linked_accounts import is_same_person, state_same_person, withdraw_same_person
from tests.conftest import RawClient
from tests.promotions.factories import V1, Cast, approve_shown, ask, register

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("ORA-1", "CARD-4")]
SAID = "admin added the account maria, so in a closed environment they count as one person"


def user(name: str, role: str = "") -> Actor:
    row, _ = User.objects.get_or_create(username=name)
    if role:
        RoleGrant.objects.get_or_create(user=row, role=role, registry="", subject_pattern="*")
    return actor_of_user(row, channel="ui")


@pytest.fixture
def maria(cast: Cast) -> Actor:
    """Whom admin added, as a steward."""
    access.add_person(username="maria", by=cast["admin"])
    access.grant(username="maria", role="steward", by=cast["admin"])
    return user("maria")


def requested(cast: Cast, by: Actor, target: str = "prod") -> int:
    register(V1, cast["steward"])
    return ask({**cast, "steward": by}, target=target)


def test_who_added_an_account_approves_nothing_of_it_in_a_closed_environment(cast: Cast, maria: Actor) -> None:
    number = requested(cast, maria)
    assert "admin" not in [one.username for one in selectors.get_request(number).needed.eligible]
    assert selectors.count_waiting_for(cast["admin"].user_id or 0) == 0
    assert selectors.count_waiting_for(cast["approver"].user_id or 0) == 1
    with pytest.raises(NotAllowed, match=SAID):
        approve_shown(request_id=number, by=cast["admin"])
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"


def test_in_an_open_environment_it_does(cast: Cast, maria: Actor) -> None:
    number = requested(cast, maria, "staging")
    assert selectors.count_waiting_for(cast["admin"].user_id or 0) == 1
    assert approve_shown(request_id=number, by=cast["admin"]) == "approved"


def test_the_two_are_one_for_every_decision(cast: Cast, maria: Actor) -> None:
    RoleGrant.objects.create(user_id=maria.user_id, role="admin")
    reviewer = user("maria")
    number = services.request_environment_change(
        environment="prod", action="change", values={"drift_blocks": False}, reason="x", by=reviewer
    )
    with pytest.raises(NotAllowed, match=SAID):
        services.approve_environment_change(change_id=number, by=cast["admin"])
    glass = services.open_break_glass(environment="prod", by=cast["admin"], reason="x", minutes=5)
    services.close_break_glass(break_glass_id=glass, by=cast["admin"])
    with pytest.raises(NotAllowed, match=SAID):
        services.confirm_break_glass(break_glass_id=glass, by=reviewer)


def test_two_accounts_that_one_person_added_are_one(cast: Cast, maria: Actor) -> None:
    access.add_person(username="nina", by=cast["admin"])
    number = requested(cast, maria)
    with pytest.raises(NotAllowed, match="counts as the same person as the requester maria"):
        approve_shown(request_id=number, by=user("nina", "approver"))


def test_who_added_it_does_not_unlink_it_alone_and_another_admin_does(cast: Cast, maria: Actor) -> None:
    number, link = requested(cast, maria), SamePerson.objects.get()
    with pytest.raises(SecondPersonRequired):
        withdraw_same_person(statement_id=link.pk, by=cast["admin"])
    with pytest.raises(SecondPersonRequired):
        withdraw_same_person(statement_id=link.pk, by=user("maria", "admin"))
    withdraw_same_person(statement_id=link.pk, by=user("other", "admin"))
    assert approve_shown(request_id=number, by=cast["admin"]) == "approved"


@pytest.mark.parametrize("how", ["the link of an added account", "a stated link", "an address"])
def test_a_sole_reviewer_makes_no_second_person_by_taking_accounts_apart(
    registries: None, person: Callable[[str], Actor], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    admin = person("admin")
    access.add_person(username="maria", by=admin)
    access.grant(username="maria", role="approver", by=admin)
    if how == "a stated link":
        state_same_person(one="admin", other="maria", reason="hers too", by=admin)
    if how == "an address":
        SamePerson.objects.all().delete()
        User.objects.filter(username__in=("admin", "maria")).update(email="a@example.org")

    def apart() -> None:
        if how == "an address":
            access.set_email(username="maria", email="m@example.org", by=admin)
        else:
            withdraw_same_person(statement_id=SamePerson.objects.get().pk, by=admin)

    with pytest.raises(SecondPersonRequired, match="or open break-glass"):
        apart()
    services.open_break_glass(environment="prod", by=admin, reason="nobody else is there", minutes=5)
    apart()
    one, other = admin.user_id or 0, User.objects.get(username="maria").pk
    monkeypatch.setattr("registry.promotions.reviews.linked_accounts.FIRST_WAITS", timedelta())
    assert is_same_person(one, other), "until another person confirms the break-glass, however long that takes"


def test_another_reviewer_approves_that_who_added_it_unlinks_it(cast: Cast, maria: Actor) -> None:
    number, link = requested(cast, maria), SamePerson.objects.get()
    change = services.request_environment_change(
        environment="prod",
        action="withdraw_same_person",
        values={"statement_id": link.pk},
        reason="x",
        by=cast["admin"],
    )
    services.approve_environment_change(change_id=change, by=cast["approver"])
    assert approve_shown(request_id=number, by=cast["admin"]) == "approved"


def test_a_statement_replaces_the_link_and_counts_everywhere(cast: Cast, maria: Actor) -> None:
    state_same_person(one="admin", other="maria", reason="hers too", by=cast["admin"])
    link = SamePerson.objects.get()
    assert (link.is_added, link.reason) == (False, "hers too")
    with pytest.raises(WrongState):
        state_same_person(one="admin", other="maria", reason="again", by=cast["admin"])
    with pytest.raises(NotAllowed, match="accounts are linked"):
        approve_shown(request_id=requested(cast, maria, "staging"), by=cast["admin"])


def test_a_program_on_the_server_links_nothing(db: None, system: Actor) -> None:
    access.add_person(username="maria", by=system)
    assert not SamePerson.objects.exists()


def test_pages_and_the_api_say_so(cast: Cast, token: Callable[[str], str], look: Callable[[str], Client]) -> None:
    headers: dict[str, Any] = {"authorization": f"Bearer {token('admin')}"}
    made = RawClient().post("/api/v1/people", {"username": "maria"}, content_type="application/json", headers=headers)
    assert made.status_code == 201
    (row,) = RawClient().get("/api/v1/same-person", headers=headers).json()
    assert (row["one"], row["other"], row["is_added"]) == ("admin", "maria", True)
    page = look("admin").get("/ui/people").content.decode()
    assert "admin added the account and saw its first password." in page
    assert "In closed environments only." in page
    number = requested(cast, user("maria", "steward"))
    assert SAID in look("admin").get(f"/ui/promotions/{number}").content.decode()
