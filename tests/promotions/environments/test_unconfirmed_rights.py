"""What one person alone gave makes nobody a second person of a closed environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from registry.access import services as access
from registry.access.models import GroupGrant, RoleGrant, User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_token, actor_of_user
from registry.errors import InvalidInput, NotAllowed, SecondPersonRequired
from registry.promotions import selectors, services
from registry.promotions.environments.selectors import environment_info
from registry.promotions.models import BreakGlass, SamePerson
from registry.promotions.reviews.linked_accounts import is_same_person, withdraw_same_person
from registry.promotions.reviews.reviewers import approvers_of
from tests.promotions.factories import V1, Cast, approve_shown, ask, register, rule
from tests.promotions.factories import change as change_rules

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("ORA-1", "CARD-4")]


def actor(name: str) -> Actor:
    return actor_of_user(User.objects.get(username=name), channel="ui")


def opened(by: Actor) -> int:
    return services.open_break_glass(environment="prod", by=by, reason="the broker is down")


def asked(by: Actor, **values: Any) -> int:
    return services.request_environment_change(
        environment="prod", action="change", values=values or {"is_closed": False}, reason="we move house", by=by
    )


def refuses_all(name: str, change: int, glass: int) -> None:
    """Neither the change nor the break-glass is decided by that account, and the refusal says why and who could."""
    pattern = f"The role of {name} in prod doesn't count for this.*break-glass {glass} .*Who can decide: a"
    with pytest.raises(NotAllowed, match=pattern):
        services.approve_environment_change(change_id=change, by=actor(name))
    with pytest.raises(NotAllowed, match=pattern):
        services.reject_environment_change(change_id=change, by=actor(name), comment="no")
    with pytest.raises(NotAllowed, match=pattern):
        services.confirm_break_glass(break_glass_id=glass, by=actor(name))


def test_one_admin_alone_does_not_open_an_environment_by_the_api(cast: Cast, api: Callable[[str], Client]) -> None:
    def post(client: Client, path: str, body: dict[str, Any]) -> Any:
        return client.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")

    admin = api("admin")
    sent = {"action": "change", "values": {"is_closed": False}, "reason": "we move house"}
    change = post(admin, "environments/prod/changes", sent).json()["change_id"]
    assert post(admin, "people", {"username": "sock"}).status_code == 201
    SamePerson.objects.all().delete()  # whoever adds an account counts as its person; this is about its role
    glass = post(admin, "environments/prod/break-glass", {"reason": "it burns", "minutes": 5}).json()["break_glass_id"]
    assert post(admin, "people/sock/grants", {"role": "admin"}).status_code == 201
    assert post(admin, f"break-glass/{glass}/close", {}).status_code == 204
    token = access.issue_token(username="sock", name="ci", by=actor("sock"))
    sock = Client(headers={"Authorization": f"Bearer {token}"})
    for path in (f"break-glass/{glass}/confirm", f"environment-changes/{change}/approve"):
        refused = post(sock, path, {})
        assert (refused.status_code, refused.json()["error"]) == (403, "NotAllowed")
        assert "Who can decide: admin" not in refused.json()["message"]
        assert "approver" in refused.json()["message"]
    assert environment_info("prod").is_closed
    assert BreakGlass.objects.get().confirmed_at is None


def by_own_role(admin: Actor) -> None:
    access.grant(username="reader", role="approver", by=admin)


def by_two_roles(admin: Actor) -> None:
    access.grant(username="reader", role="approver", by=admin)
    access.grant(username="reader", role="admin", registry="prod", by=admin)


def by_a_new_group(admin: Actor) -> None:
    access.make_group(name="friends", by=admin)
    access.add_member(group="friends", username="reader", by=admin)
    access.grant_to_group(group="friends", role="approver", by=admin)


def by_a_group_that_is_there(admin: Actor) -> None:
    access.add_member(group="reviewers", username="reader", by=admin)


def by_an_account_that_was_shut(admin: Actor) -> None:
    access.set_active(username="shut", active=True, by=admin)


def while_it_is_open(admin: Actor) -> None:
    services.change_environment(environment="prod", by=admin, is_closed=False)
    access.grant(username="reader", role="approver", by=admin)
    services.change_environment(environment="prod", by=admin, is_closed=True)


WAYS = {
    by_own_role: "reader",
    by_two_roles: "reader",
    by_a_new_group: "reader",
    by_a_group_that_is_there: "reader",
    by_an_account_that_was_shut: "shut",
    while_it_is_open: "reader",
}


@pytest.fixture
def others(cast: Cast) -> None:
    """A group of reviewers, and a reviewer whose account is shut."""
    GroupGrant.objects.create(group=Group.objects.create(name="reviewers"), role="approver")
    RoleGrant.objects.create(user=User.objects.create(username="shut", is_active=False), role="approver")


@pytest.mark.parametrize("give", WAYS, ids=lambda give: give.__name__)
@pytest.mark.parametrize("is_first", [True, False], ids=["given first", "asked first"])
def test_what_is_given_with_break_glass_decides_nothing_until_it_is_confirmed(
    cast: Cast, others: None, give: Callable[[Actor], None], is_first: bool
) -> None:
    admin, name = cast["admin"], WAYS[give]
    change = 0 if is_first else asked(admin)
    glass = opened(admin)
    give(admin)
    services.close_break_glass(break_glass_id=glass, by=admin)
    change = change or asked(admin)
    refuses_all(name, change, glass)
    assert name not in approvers_of(environment_info("prod")).names
    services.confirm_break_glass(break_glass_id=glass, by=cast["approver"])
    services.approve_environment_change(change_id=change, by=actor(name))
    assert not environment_info("prod").is_closed


def test_what_is_never_confirmed_never_counts_until_another_person_approves_it(cast: Cast) -> None:
    admin = cast["admin"]
    glass = opened(admin)
    given = access.grant(username="reader", role="approver", by=admin)
    ago = timezone.now() - timedelta(minutes=1)
    BreakGlass.objects.filter(pk=glass).update(ends_at=ago)
    change = asked(admin)
    refuses_all("reader", change, glass)
    access.revoke_grant(grant_id=given, by=admin)
    values = {"username": "reader", "role": "approver", "registry": "", "subject_pattern": "*"}
    again = services.request_environment_change(
        environment="prod", action="grant", values=values, reason="she is new", by=admin
    )
    services.approve_environment_change(change_id=again, by=cast["approver"])
    services.approve_environment_change(change_id=change, by=actor("reader"))


def test_a_second_account_does_not_ask_or_open_for_its_maker_either(cast: Cast) -> None:
    """Otherwise the maker would approve what their other account asks for, which then lets in a third one."""
    admin = cast["admin"]
    glass = opened(admin)
    access.grant(username="reader", role="admin", by=admin)
    services.close_break_glass(break_glass_id=glass, by=admin)
    change = asked(actor("reader"))
    with pytest.raises(NotAllowed, match="The role of reader in prod doesn't count"):
        services.approve_environment_change(change_id=change, by=admin)
    second = opened(actor("reader"))
    access.grant(username="stranger", role="admin", by=actor("reader"))
    services.close_break_glass(break_glass_id=second, by=actor("reader"))
    for number, by in ((second, admin), (glass, actor("stranger")), (second, actor("stranger"))):
        with pytest.raises(NotAllowed, match="doesn't count for this"):
            services.confirm_break_glass(break_glass_id=number, by=by)
    services.confirm_break_glass(break_glass_id=glass, by=cast["approver"])
    services.confirm_break_glass(break_glass_id=second, by=cast["approver"])


def test_two_accounts_that_one_person_took_apart_stay_one_person(cast: Cast) -> None:
    ids = sorted(cast[name].user_id or 0 for name in ("admin", "approver"))
    statement = SamePerson.objects.create(one_id=ids[0], other_id=ids[1], reason="both are hers", stated_by="tests")
    User.objects.filter(username__in=("admin", "approver2")).update(email="a@example.org")
    RoleGrant.objects.create(user_id=cast["steward2"].user_id, role="approver")
    glass = opened(cast["admin"])
    withdraw_same_person(statement_id=statement.pk, by=cast["admin"])
    access.set_email(username="approver2", email="other@example.org", by=cast["admin"])
    services.close_break_glass(break_glass_id=glass, by=cast["admin"])
    for name in ("approver", "approver2"):
        with pytest.raises(NotAllowed, match="opened it with this or a linked account"):
            services.confirm_break_glass(break_glass_id=glass, by=cast[name])
    services.confirm_break_glass(break_glass_id=glass, by=actor("steward2"))
    admin, *two = (cast[name].user_id or 0 for name in ("admin", "approver", "approver2"))
    assert not any(is_same_person(admin, number) for number in two)


@pytest.mark.parametrize(
    "alike", ["\u212aate@x.org", "kate@x.or\uff47", "KATE@X.ORG", "kate@x.org\u200b", "kate@x\u00ad.org"]
)
def test_letters_that_look_alike_make_no_second_address(
    registries: None, person: Callable[[str], Actor], alike: str
) -> None:
    admin = person("admin")
    person("approver")
    person("reader")
    access.set_email(username="admin", email="kate@x.org", by=admin)
    with pytest.raises((InvalidInput, SecondPersonRequired)):
        access.set_email(username="approver", email=alike, by=admin)
    User.objects.filter(username="admin").update(email=alike)  # as an issuer may send it
    with pytest.raises(SecondPersonRequired, match="change the email address of approver"):
        access.set_email(username="approver", email="kate@x.org", by=admin)
    with pytest.raises(SecondPersonRequired):
        access.grant(username="reader", role="admin", by=admin)


@pytest.mark.parametrize("odd", ["\u212aate@x.org", "\u017fam@x.org", "kate@x.or\uff47", "a@stra\u00dfe.de"])
def test_an_address_has_no_letters_that_stand_for_others(cast: Cast, odd: str) -> None:
    with pytest.raises(InvalidInput, match="Write the email address as"):
        access.set_email(username="reader", email=odd, by=cast["admin"])
    access.set_email(username="reader", email="Jose@m\u00fcnchen.de", by=cast["admin"])


def chained(cast: Cast) -> int:
    """admin and steward have one address, and so have reader and approver; steward and reader are linked."""
    User.objects.filter(username__in=("admin", "steward")).update(email="m@x.org")
    User.objects.filter(username__in=("reader", "approver")).update(email="n@x.org")
    ids = sorted(cast[name].user_id or 0 for name in ("steward", "reader"))
    return SamePerson.objects.create(one_id=ids[0], other_id=ids[1], reason="both are hers", stated_by="tests").pk


def test_accounts_are_one_person_through_others(cast: Cast) -> None:
    chained(cast)
    admin, approver, other = (cast[name].user_id or 0 for name in ("admin", "approver", "approver2"))
    assert is_same_person(admin, approver)
    assert not is_same_person(other, approver)
    with pytest.raises(NotAllowed, match="with this or a linked account"):
        services.approve_environment_change(change_id=asked(cast["admin"]), by=cast["approver"])


@pytest.mark.parametrize("how", ["link", "address"])
def test_a_chain_is_not_taken_apart_in_the_middle_by_one_person(cast: Cast, how: str) -> None:
    statement = chained(cast)
    with pytest.raises(SecondPersonRequired):
        if how == "link":
            withdraw_same_person(statement_id=statement, by=cast["admin"])
        else:
            access.set_email(username="steward", email="", by=cast["admin"])


@pytest.fixture
def two_closed(registries: None, person: Callable[[str], Actor], system: Actor) -> dict[str, Actor]:
    """prod is reviewed by admin only, staging also by stranger; both are closed."""
    people = {name: person(name) for name in ("admin", "reader", "stranger")}
    access.grant(username="stranger", role="approver", registry="staging", by=system)
    change_rules("staging", is_closed=True)
    return {**people, "stranger": actor("stranger")}


def test_each_closed_environment_is_asked(two_closed: dict[str, Actor]) -> None:
    admin = two_closed["admin"]
    for registry in ("", "staging"):
        with pytest.raises(SecondPersonRequired) as refused:
            access.grant(username="reader", role="approver", registry=registry, by=admin)
        assert refused.value.details["environment"] == "staging"
    opened(admin)
    with pytest.raises(SecondPersonRequired, match="staging is closed"):
        access.grant(username="reader", role="approver", by=admin)


def test_an_approval_of_one_environment_leaves_the_first_reviewer_of_another_waiting(
    two_closed: dict[str, Actor],
) -> None:
    admin = two_closed["admin"]
    values = {"username": "reader", "role": "approver", "registry": "", "subject_pattern": "*"}
    number = services.request_environment_change(
        environment="staging", action="grant", values=values, reason="she is new", by=admin
    )
    services.approve_environment_change(change_id=number, by=two_closed["stranger"])
    with pytest.raises(NotAllowed, match="added them alone as the first other reviewer"):
        services.approve_environment_change(change_id=asked(admin), by=actor("reader"))


def test_who_reviews_both_approves_for_both(cast: Cast, system: Actor) -> None:
    access.grant(username="stranger", role="approver", registry="staging", by=system)
    change_rules("staging", is_closed=True)
    values = {"username": "reader", "role": "approver", "registry": "", "subject_pattern": "*"}
    wanted = {"action": "grant", "values": values, "reason": "she is new", "by": cast["admin"]}
    number = services.request_environment_change(environment="staging", **wanted)
    with pytest.raises(SecondPersonRequired, match="prod is closed"):
        services.approve_environment_change(change_id=number, by=actor("stranger"))
    services.approve_environment_change(change_id=number, by=cast["approver"])
    services.approve_environment_change(change_id=asked(cast["admin"]), by=actor("reader"))


def test_the_first_other_reviewer_counts_after_a_day(
    registries: None, person: Callable[[str], Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = person("admin")
    person("reader")
    access.grant(username="reader", role="approver", by=admin)
    change = asked(admin)
    with pytest.raises(NotAllowed, match=r"added them alone as the first other reviewer.*Who can decide: nobody"):
        services.approve_environment_change(change_id=change, by=actor("reader"))
    monkeypatch.setattr("registry.promotions.reviews.linked_accounts.FIRST_WAITS", timedelta())
    services.approve_environment_change(change_id=change, by=actor("reader"))


def days_ago(glass: int) -> None:
    """The break-glass was opened two days ago, and nobody has confirmed it."""
    ago = timezone.now() - timedelta(days=2)
    BreakGlass.objects.filter(pk=glass).update(opened_at=ago, ends_at=ago + timedelta(hours=1))


def shut_out(admin: Actor) -> int:
    """The only other reviewer loses the account under a break-glass that is red now."""
    glass = opened(admin)
    access.set_active(username="approver", active=False, by=admin)
    days_ago(glass)
    return glass


@pytest.mark.parametrize("way", ["a role", "a group"])
def test_nobody_replaces_the_reviewers_who_were_shut_out_under_break_glass(
    registries: None, person: Callable[[str], Actor], system: Actor, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    admin, _, _ = person("admin"), person("approver"), person("reader")
    glass = shut_out(admin)
    by_a_new_group(admin) if way == "a group" else access.grant(username="reader", role="admin", by=admin)
    monkeypatch.setattr("registry.promotions.reviews.linked_accounts.FIRST_WAITS", timedelta())
    change = asked(admin)
    pattern = f"given after break-glass {glass} was opened in prod.*an operator can give the role on the server"
    with pytest.raises(NotAllowed, match=pattern):
        services.approve_environment_change(change_id=change, by=actor("reader"))
    for given in RoleGrant.objects.filter(user__username="reader", role="admin"):
        access.revoke_grant(grant_id=given.pk, by=admin)
    access.grant(username="reader", role="approver", by=system)
    services.approve_environment_change(change_id=change, by=actor("reader"))


def test_a_role_given_while_break_glass_had_opened_the_environment_stays_out(cast: Cast) -> None:
    admin = cast["admin"]
    glass = opened(admin)
    services.change_environment(environment="prod", by=admin, is_closed=False)
    days_ago(glass)
    access.grant(username="reader", role="approver", by=admin)
    services.change_environment(environment="prod", by=admin, is_closed=True)
    refuses_all("reader", asked(admin), glass)


def test_a_later_break_glass_that_is_confirmed_counts(cast: Cast) -> None:
    admin = cast["admin"]
    glass = opened(admin)
    services.change_environment(environment="prod", by=admin, own_approval_allowed=True)
    days_ago(glass)
    later = opened(admin)
    access.grant(username="reader", role="approver", by=admin)
    services.close_break_glass(break_glass_id=later, by=admin)
    services.confirm_break_glass(break_glass_id=later, by=cast["approver"])
    services.approve_environment_change(change_id=asked(admin), by=actor("reader"))


def test_it_reviews_no_release_into_the_environment(cast: Cast) -> None:
    admin = cast["admin"]
    register(V1, cast["steward"])
    rule(reviewers="group", name="security")
    Group.objects.create(name="security")
    glass = opened(admin)
    access.grant(username="reader", role="approver", by=admin)
    access.add_member(group="security", username="stranger", by=admin)
    services.close_break_glass(break_glass_id=glass, by=admin)
    number = ask(cast)
    needed = selectors.get_request(number).needed
    assert {who.username for who in needed.eligible} == {"admin", "approver", "approver2"}
    for name in ("reader", "stranger"):
        with pytest.raises(NotAllowed):
            approve_shown(request_id=number, by=actor(name))
    reader = actor("reader").user_id or 0
    assert (selectors.count_waiting_for(reader), selectors.list_requests(waiting_for=reader)) == (0, [])
    with pytest.raises(NotAllowed, match="The role of reader in prod doesn't count"):
        approve_shown(request_id=number, by=actor("reader"))
    services.confirm_break_glass(break_glass_id=glass, by=cast["approver"])
    assert selectors.count_waiting_for(reader) == 1
    approve_shown(request_id=number, by=actor("reader"))


def test_others_decide_as_before(cast: Cast) -> None:
    """Whoever could review before still does, and so does everybody if break-glass wasn't used."""
    admin = cast["admin"]
    unused = opened(admin)
    access.grant(username="approver", role="steward", by=admin)
    services.close_break_glass(break_glass_id=unused, by=admin)
    glass = opened(admin)
    access.grant_to_group(group=_everybody(cast), role="approver", by=admin)
    services.close_break_glass(break_glass_id=glass, by=admin)
    services.approve_environment_change(
        change_id=asked(admin, reviews_needed=1, own_approval_allowed=True), by=cast["approver"]
    )
    services.confirm_break_glass(break_glass_id=glass, by=cast["approver2"])


def _everybody(cast: Cast) -> str:
    group = Group.objects.create(name="everybody")
    for name in ("approver", "approver2", "reader"):
        User.objects.get(username=name).groups.add(group)
    return group.name


def test_a_token_gives_no_more_than_its_person(cast: Cast) -> None:
    admin = cast["admin"]
    change, glass = asked(admin), opened(admin)
    by_own_role(admin)
    by = actor_of_token(access.issue_token(username="reader", name="ci", by=actor("reader")), channel="product")
    assert by is not None
    with pytest.raises(NotAllowed, match=f"break-glass {glass}"):
        services.approve_environment_change(change_id=change, by=by)
