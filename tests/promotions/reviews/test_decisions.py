"""Who has to approve, who may, what an approval passes over, and what makes it no longer count."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.environments.board import rule_sentence
from registry.access.models import GroupGrant, RoleGrant, User
from registry.access.roles import Actor, TokenLimit
from registry.access.selectors import actor_of_user
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NotSignedIn, PlanChanged, RequestNotFound, WrongState
from registry.notifications.models import InboxEntry
from registry.promotions import selectors, services
from registry.promotions.board.readiness import can_promote
from registry.promotions.models import FreezeWindow, PromotionRequest, Review
from registry.promotions.requests.preconditions import reasons_of
from registry.subjects.selectors import list_versions
from registry.subjects.services import set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
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
    owned_by,
    register,
    rule,
    state_of,
)

pytestmark = pytest.mark.requirement("ORA-1", "CARD-4")


def actor(username: str) -> Actor:
    """The same person with the rights of now."""
    return actor_of_user(User.objects.get(username=username), channel="ui")


def approve(cast: Cast, number: int, who: str = "approver", **more: str) -> str:
    shown = PromotionRequest.objects.filter(pk=number).values_list("plan_hash", flat=True).first()
    more.setdefault("plan_hash", shown or "0" * 64)
    return services.approve(request_id=number, by=cast[who], **more)


def broken(cast: Cast, target: str = "staging") -> int:
    """A request whose version breaks what its target has."""
    register(V1, cast["steward"])
    set_config(registry="dev", subject=ORDERS, level="NONE", by=cast["steward"])
    register(BROKEN, cast["steward"])
    register(V1, cast["steward"], registry=target)
    return ask(cast, version=2, target=target)


# -- how many, and of whom --------------------------------------------------------------------------------------------


def test_an_environment_may_need_two(cast: Cast) -> None:
    register(V1, cast["steward"])
    change(reviews_needed=2)
    number = ask(cast)
    assert approve(cast, number) == "in review"
    with pytest.raises(WrongState, match="already reviewed this plan"):
        approve(cast, number)
    needed = selectors.get_request(number).needed
    assert [(item.given, item.needed) for item in needed.rules] == [(1, 2)]
    assert [one.username for one in needed.eligible] == ["admin", "approver2"]
    assert approve(cast, number, "approver2") == "approved"


@pytest.mark.parametrize("reviewers", ["owners", "role", "group"])
def test_a_rule_asks_for_those_whom_it_names_and_lets_them(cast: Cast, reviewers: str) -> None:
    register(V1, cast["steward"])
    owned_by("steward2")
    group = Group.objects.create(name="orders team")
    User.objects.get(username="steward2").groups.add(group)
    rule(
        subject_pattern="orders-*",
        reviewers=reviewers,
        name={"role": "steward", "group": "orders team"}.get(reviewers, ""),
    )
    number = ask(cast)
    assert approve(cast, number) == "in review"
    assert approve(cast, number, "steward2") == "approved"


def test_the_environments_own_number_takes_the_right_to_review(cast: Cast) -> None:
    """An owner without it is asked as an owner, and is no second approver."""
    register(V1, cast["steward"])
    owned_by("steward2")
    rule(reviewers="owners")
    number = ask(cast)
    assert approve(cast, number, "steward2") == "in review"
    assert approve(cast, number) == "approved"


def test_one_approval_counts_for_all_that_its_giver_is_named_in(cast: Cast) -> None:
    register(V1, cast["steward"])
    owned_by("approver")
    rule(reviewers="owners")
    rule(reviewers="role", name="approver")
    assert approve(cast, ask(cast)) == "approved"


@pytest.mark.parametrize(
    ("pattern", "verdict", "state"),
    [
        ("orders-*", "any", "in review"),
        ("customers-*", "any", "approved"),
        ("*", "breaking", "approved"),
        (":.*", "any", "approved"),
    ],
)
def test_a_rule_holds_for_its_subjects_and_verdicts(cast: Cast, pattern: str, verdict: str, state: str) -> None:
    register(V1, cast["steward"])
    rule(subject_pattern=pattern, verdict=verdict, reviewers="role", name="admin")
    assert approve(cast, ask(cast)) == state


def test_breaking_needs_more(cast: Cast) -> None:
    number = broken(cast)
    set_config(registry="staging", subject=ORDERS, level="NONE", by=cast["steward"])
    services.recheck(request_id=number, by=cast["steward"])
    rule("staging", verdict="breaking", reviewers="role", name="admin")
    assert approve(cast, number, comment="the topic is empty") == "in review"
    assert approve(cast, number, "admin", comment="so it is") == "approved"


def test_a_rule_about_owners_asks_those_of_every_subject(cast: Cast) -> None:
    register(V1, cast["steward"])
    register({**V1, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    owned_by("approver", "orders-*")
    owned_by("steward2", "customers-*")
    rule(reviewers="owners")
    number = ask(cast, items=[(CUSTOMERS, "latest")])
    assert approve(cast, number) == "in review"
    assert approve(cast, number, "steward2") == "approved"


def test_who_lost_the_right_no_longer_counts(cast: Cast) -> None:
    register(V1, cast["steward"])
    change(reviews_needed=2)
    number = ask(cast)
    approve(cast, number)
    RoleGrant.objects.filter(user__username="approver").delete()
    assert approve(cast, number, "approver2") == "in review"
    assert approve(cast, number, "admin") == "approved"


def test_rules_that_ask_for_more_by_now_send_it_back(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    approve(cast, number)
    change(reviews_needed=2)
    with pytest.raises(WrongState, match="1 so far"):
        services.apply(request_id=number, by=cast["approver"])
    shown = selectors.get_request(number)
    assert shown.state == "in review"
    assert "its approvals are no longer enough" in shown.moved
    assert approve(cast, number, "approver2") == "approved", "the first approval still counts"


def test_no_rule_at_all_still_takes_somebody(cast: Cast) -> None:
    register(V1, cast["steward"])
    change(reviews_needed=0)
    number = ask(cast)
    assert state_of(number) == "in review"
    services.recheck(request_id=number, by=cast["steward"])
    assert state_of(number) == "in review"
    assert selectors.get_request(number).needed.missing == "Needs 1 approval from a reviewer of prod (0 so far)."
    answer = can_promote(subject=ORDERS, source="dev", target="prod", by=cast["steward"])
    assert answer.reasons[0].sentence.startswith("prod needs 1 approval.")
    assert "A request needs 1 approval from another person." in rule_sentence(selectors.environment_info("prod"))
    assert approve(cast, number) == "approved"


# -- nobody their own -------------------------------------------------------------------------------------------------


def test_own_approval_only_where_it_is_allowed(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, by="approver")
    for decide in (services.reject, services.request_changes):
        with pytest.raises(NotAllowed, match="nother person"):
            decide(request_id=number, by=cast["approver"], comment="x")
    change(own_approval_allowed=True)
    assert approve(cast, number) == "approved"


@pytest.mark.parametrize("reviewers", ["owners", "role"])
def test_no_rule_makes_a_requester_their_own_reviewer(cast: Cast, reviewers: str) -> None:
    register(V1, cast["steward"])
    owned_by("steward")
    rule(reviewers=reviewers, name="steward" if reviewers == "role" else "")
    number = ask(cast)
    with pytest.raises(NotAllowed, match="nother person"):
        approve(cast, number, "steward")
    named = {one.username for state in selectors.get_request(number).needed.rules for one in state.who}
    assert "steward" not in named


def test_an_account_with_the_same_address_is_not_somebody_else(cast: Cast) -> None:
    register(V1, cast["steward"])
    User.objects.filter(username="steward").update(email="Anna@example.org")
    User.objects.filter(username="approver").update(email="anna@EXAMPLE.org ")
    number = ask(cast)
    with pytest.raises(NotAllowed, match=r"same person as the requester steward.*same email address"):
        approve(cast, number)
    assert "approver" not in {one.username for one in selectors.get_request(number).needed.eligible}
    assert approve(cast, number, "approver2") == "approved"


def test_people_without_an_address_are_not_the_same_person(cast: Cast) -> None:
    register(V1, cast["steward"])
    assert approve(cast, ask(cast)) == "approved"


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (TokenLimit("read"), "scope is read"),
        (TokenLimit("promote"), "scope is promote"),
        (TokenLimit("all", "dev"), "registry dev"),
        (TokenLimit("all", "", "customers-*"), "customers-"),
    ],
)
@pytest.mark.parametrize("who", ["approver", "steward2"])
def test_a_token_takes_away_what_it_does(cast: Cast, limit: TokenLimit, said: str, who: str) -> None:
    """Of those with the right, and of those whom a rule names."""
    register(V1, cast["steward"])
    rule(reviewers="role", name="steward")
    number = ask(cast)
    with pytest.raises((NotAllowed, RequestNotFound), match=f"{said}|not found"):
        approve_shown(request_id=number, by=replace(cast[who], limit=limit))
    assert not Review.objects.exists()


def test_a_stranger_gets_the_same_answer_for_what_is_there_and_what_is_not(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    said = set()
    for wanted in (number, 999_999):
        with pytest.raises(NotAllowed) as refused:
            approve(cast, wanted, "stranger")
        said.add(refused.value.message)
    assert len(said) == 1
    with pytest.raises(NotSignedIn):
        approve_shown(request_id=number, by=Actor("anonymous", "ui"))


def test_whoever_may_not_read_there_sees_nothing(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    RoleGrant.objects.filter(user__username="approver2").update(registry="dev")
    with pytest.raises(RequestNotFound):
        approve_shown(request_id=number, by=actor("approver2"))


def test_all_subjects_that_are_written_have_to_be_reviewed(cast: Cast) -> None:
    register(V1, cast["steward"])
    register({**V1, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    number = ask(cast, items=[(CUSTOMERS, 1)])
    RoleGrant.objects.filter(user__username="approver").update(subject_pattern="orders-*")
    RoleGrant.objects.create(user=User.objects.get(username="approver"), role="reader")
    with pytest.raises(NotAllowed):
        approve_shown(request_id=number, by=actor("approver"))


# -- nobody can -------------------------------------------------------------------------------------------------------


def test_a_request_that_nobody_can_approve_says_so_and_stays(cast: Cast) -> None:
    register(V1, cast["steward"])
    rule(reviewers="owners")
    number = ask(cast)
    said = selectors.get_request(number).needed.nobody_can
    assert "the owners of orders-value" in said
    assert "add an owner" in said
    change(reviews_needed=7)
    both = selectors.get_request(number).needed.nobody_can
    assert "It needs 7 approvals from reviewers of prod, but only" in both, "every rule that lacks people is named"
    assert "and 1 approval from the owners of orders-value, but nobody can" in both
    change(reviews_needed=1)
    owned_by("approver")
    assert selectors.get_request(number).needed.nobody_can == ""
    assert approve(cast, number) == "approved"


def test_who_has_left_cannot_approve_and_is_not_waited_for(cast: Cast) -> None:
    register(V1, cast["steward"])
    owned_by("approver")
    rule(reviewers="owners")
    number = ask(cast)
    assert not selectors.get_request(number).needed.nobody_can
    User.objects.filter(username="approver").update(is_active=False)
    assert selectors.get_request(number).needed.nobody_can
    with pytest.raises((NotAllowed, NotSignedIn)):
        approve_shown(request_id=number, by=actor("approver"))


def test_an_owner_without_any_role_is_not_waited_for(cast: Cast) -> None:
    """They may not even read it: naming them would be waiting for nobody."""
    register(V1, cast["steward"])
    owned_by("stranger")
    rule(reviewers="owners")
    assert selectors.get_request(ask(cast)).needed.nobody_can


def test_where_an_issuer_is_on_only_those_whom_it_knows_are_waited_for(cast: Cast, settings: Any) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    settings.OIDC_ISSUER, settings.OIDC_NAME = "https://id.example", "Example"
    assert selectors.get_request(number).needed.nobody_can
    from allauth.socialaccount.models import SocialAccount

    SocialAccount.objects.create(user=User.objects.get(username="approver"), provider="oidc-1", uid="s1")
    needed = selectors.get_request(number).needed
    assert (needed.nobody_can, [one.username for one in needed.eligible]) == ("", ["approver"])


def test_issuer_and_subject_have_one_account(cast: Cast) -> None:
    """So two accounts of one person at the issuer can't be."""
    from allauth.socialaccount.models import SocialAccount
    from django.db import IntegrityError, transaction

    SocialAccount.objects.create(user=User.objects.get(username="approver"), provider="oidc-1", uid="s1")
    with pytest.raises(IntegrityError), transaction.atomic():
        SocialAccount.objects.create(user=User.objects.get(username="approver2"), provider="oidc-1", uid="s1")


# -- reasons ----------------------------------------------------------------------------------------------------------


def test_what_breaks_a_closed_environment_takes_its_subjects_name_at_every_channel(
    cast: Cast, api: Callable[[str], Client]
) -> None:
    number = broken(cast)
    change("staging", is_closed=True)
    said = {"comment": "the consumers are gone", "override": "the consumers are gone"}
    for typed in ("", "orders", "customers-value"):
        with pytest.raises(InvalidInput, match="To approve it anyway, type orders-value"):
            approve(cast, number, "admin", typed=typed, **said)
    path = f"/api/v1/promotions/{number}/approve"
    said["plan_hash"] = selectors.get_request(number).plan_hash
    answer = api("admin").post(path, json.dumps(said), content_type="application/json")
    assert (answer.status_code, answer.json()["details"]["field"]) == (422, "typed")
    assert not selectors.get_request(number).reviews
    sent = json.dumps({**said, "typed": "orders-value"})
    assert api("admin").post(path, sent, content_type="application/json").status_code == 200
    assert [review.verdict for review in selectors.get_request(number).reviews] == ["approve"]


def test_breaking_takes_a_reason(cast: Cast) -> None:
    number = broken(cast)
    set_config(registry="staging", subject=ORDERS, level="NONE", by=cast["steward"])
    services.recheck(request_id=number, by=cast["steward"])
    with pytest.raises(InvalidInput, match="breaking change"):
        approve(cast, number, comment="  ")
    assert approve(cast, number, comment="the topic is empty") == "approved"


def test_a_broken_level_is_passed_over_by_somebody_who_may_force(cast: Cast) -> None:
    number = broken(cast)
    with pytest.raises(WrongState, match="A person with the admin role can override it with a reason"):
        approve(cast, number, "admin", comment="fine")
    with pytest.raises(NotAllowed, match="A person with the admin role can override it with a reason"):
        approve(cast, number, override="the topic is empty")
    assert approve(cast, number, "admin", override="the topic is empty") == "approved"
    review = selectors.get_request(number).reviews[0]
    assert (review.override, review.overrides) == ("the topic is empty", ("compatibility",))
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    assert list_versions(get_registry("staging"), ORDERS) == [1, 2]


def test_after_an_override_others_approve_as_ever(cast: Cast) -> None:
    number = broken(cast)
    change("staging", reviews_needed=2)
    approve(cast, number, "admin", override="the topic is empty")
    assert approve(cast, number, comment="I know the topic") == "approved"


def test_an_override_is_for_what_fails(cast: Cast) -> None:
    register(V1, cast["steward"])
    with pytest.raises(InvalidInput, match="No failing check"):
        approve(cast, ask(cast), "admin", override="to be sure")


def test_a_freeze_stops_applying_not_approving(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    now = timezone.now()
    window = FreezeWindow.objects.create(
        environment=change(),
        starts_at=now - timedelta(hours=1),
        ends_at=now + timedelta(hours=1),
        reason="the shops are full",
        made_by=User.objects.get(username="admin"),
    )
    assert approve(cast, number) == "approved"
    with pytest.raises(WrongState, match="the shops are full"):
        services.apply(request_id=number, by=cast["approver"])
    window.delete()
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_an_override_of_something_else_opens_no_freeze(cast: Cast) -> None:
    number = broken(cast)
    approve(cast, number, "admin", override="the topic is empty")
    now = timezone.now()
    window = {
        "starts_at": now - timedelta(hours=1),
        "ends_at": now + timedelta(hours=1),
        "reason": "the shops are full",
    }
    FreezeWindow.objects.create(environment=change("staging"), made_by=User.objects.get(username="admin"), **window)
    with pytest.raises(WrongState, match="the shops are full"):
        services.apply(request_id=number, by=cast["approver"])


def test_a_freeze_is_overridden_with_a_reason(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    now = timezone.now()
    window = {
        "starts_at": now - timedelta(hours=1),
        "ends_at": now + timedelta(hours=1),
        "reason": "the shops are full",
    }
    FreezeWindow.objects.create(environment=change(), made_by=User.objects.get(username="admin"), **window)
    assert approve(cast, number, override="it repairs the shops") == "approved"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


@pytest.mark.parametrize("who", ["approver", "approver2"], ids=["the approver", "another reviewer"])
def test_a_freeze_that_begins_after_the_approval_is_overridden_too(cast: Cast, who: str) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    assert approve(cast, number) == "approved"
    with pytest.raises(InvalidInput, match="No failing check"):
        approve(cast, number, who, override="in case")
    FreezeWindow.objects.create(
        environment=change(),
        starts_at=timezone.now() - timedelta(hours=1),
        ends_at=timezone.now() + timedelta(hours=1),
        reason="the shops are full",
        made_by=User.objects.get(username="admin"),
    )
    with pytest.raises(WrongState, match="ask a reviewer to override it with a reason"):
        services.apply(request_id=number, by=cast["approver"])
    with pytest.raises(WrongState, match="Only a request in review"):
        approve(cast, number, who)
    with pytest.raises(NotAllowed):
        approve(cast, number, "steward", override="it repairs the shops")
    services.recheck(request_id=number, by=cast["steward"])
    against = reasons_of(selectors.get_request(number), cast[who])["approve"]
    assert [(item.code, item.passable) for item in against] == [("freeze", True)]
    assert approve(cast, number, who, override="it repairs the shops") == "approved"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


# -- asking for changes, rejecting ------------------------------------------------------------------------------------


def test_who_asks_for_changes_holds_it_up_until_they_say_otherwise(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    with pytest.raises(InvalidInput):
        services.request_changes(request_id=number, by=cast["approver"], comment=" ")
    assert services.request_changes(request_id=number, by=cast["approver"], comment="a doc, please") == "in review"
    assert approve(cast, number, "approver2") == "in review"
    assert selectors.get_request(number).needed.changes_by == ("approver",)
    assert approve(cast, number, comment="fine now") == "approved"
    assert Review.objects.count() == 2
    changed = AuditEvent.objects.filter(table="promotions_review", operation="UPDATE").get()
    assert (changed.before["verdict"], changed.after["verdict"]) == ("changes", "approve")


def test_another_plan_ends_what_was_asked_for(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    services.request_changes(request_id=number, by=cast["approver"], comment="the level, please")
    set_config(registry="staging", subject=ORDERS, level="FULL", by=cast["steward"])
    services.recheck(request_id=number, by=cast["steward"])
    assert approve(cast, number, "approver2") == "approved"


@pytest.mark.parametrize("decide", [services.request_changes, services.reject])
def test_an_approved_one_can_still_be_stopped(cast: Cast, decide: Any) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    approve(cast, number)
    decide(request_id=number, by=cast["approver"], comment="I was wrong")
    assert state_of(number) == ("in review" if decide is services.request_changes else "rejected")
    with pytest.raises(WrongState):
        services.apply(request_id=number, by=cast["approver"])


def test_rejecting_needs_no_plan_that_can_be_made(cast: Cast) -> None:
    """The version is gone at the source: it can't be approved any more, and can be ended."""
    from registry.subjects.services import delete_version

    register(V1, cast["steward"])
    register(V2, cast["steward"])
    number = ask(cast, version=2)
    delete_version(registry="dev", subject=ORDERS, version=2, by=cast["steward"])
    assert services.reject(request_id=number, by=cast["approver"], comment="it is gone") == "rejected"


# -- what voids -------------------------------------------------------------------------------------------------------


def test_movement_voids_visibly_and_is_reported(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    approve(cast, number)
    set_config(registry="staging", subject=ORDERS, level="FULL", by=cast["steward"])
    services.recheck(request_id=number, by=cast["steward"])
    shown = selectors.get_request(number)
    assert (shown.state, [review.counts for review in shown.reviews]) == ("in review", [False])
    assert "FULL" in shown.moved
    told = InboxEntry.objects.filter(user_id=cast["approver"].user_id, notice__event="promotion.voided").get()
    assert "FULL" in told.notice.text


def test_what_came_back_counts_again(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    approve(cast, number)
    for level, state in (("FULL", "in review"), ("BACKWARD", "approved")):
        set_config(registry="staging", subject=ORDERS, level=level, by=cast["steward"])
        if level == "BACKWARD":
            from registry.subjects.services import delete_config

            delete_config(registry="staging", subject=ORDERS, by=cast["steward"])
        assert services.recheck(request_id=number, by=cast["steward"]) == state


def test_elsewhere_may_move_what_it_likes(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    plan = selectors.get_request(number).plan_hash
    register({**V1, "name": "Other"}, cast["steward"], registry="staging", subject=CUSTOMERS)
    assert approve(cast, number, plan_hash=plan) == "approved", "another subject, and another next schema id"


def test_what_moves_while_it_is_read_is_not_approved(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    read = selectors.get_request(number).plan_hash
    register({**V1, "doc": "x"}, cast["steward"], registry="staging")
    with pytest.raises(PlanChanged):
        approve(cast, number, plan_hash=read)
    with pytest.raises(PlanChanged, match="plan has changed since"):
        approve(cast, number, plan_hash=read)
    assert not Review.objects.exists()


# -- told, and found --------------------------------------------------------------------------------------------------


def test_owners_are_asked_without_a_subscription(cast: Cast) -> None:
    register(V1, cast["steward"])
    owned_by("reader")
    number = ask(cast)
    told = InboxEntry.objects.filter(notice__event="promotion.requested", notice__data__request=number)
    names = set(told.values_list("user__username", flat=True))
    assert names == {"reader", "approver", "approver2", "admin"}


def test_what_waits_for_somebody_follows_the_rules(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast)

    def waits_for(who: str) -> bool:
        user_id = cast[who].user_id
        assert user_id is not None
        return [info.id for info in selectors.list_requests(waiting_for=user_id)] == [number]

    assert [who for who in cast if waits_for(who)] == ["approver", "approver2", "admin"]
    owned_by("steward2")
    rule(reviewers="owners")
    assert waits_for("steward2")
    services.request_changes(request_id=number, by=cast["approver"], comment="x")
    assert waits_for("approver"), "it is their turn as long as they hold it up"
    approve(cast, number, "steward2")
    assert not waits_for("steward2")
    services.reject(request_id=number, by=cast["admin"], comment="no")
    assert not any(waits_for(who) for who in cast)


def test_needs_take_the_same_queries_however_many(cast: Cast) -> None:
    group = Group.objects.create(name="team")
    GroupGrant.objects.create(group=group, role="reader")
    User.objects.get(username="steward2").groups.add(group)
    owned_by("steward2", "*")
    for reviewers, name in (("owners", ""), ("role", "steward"), ("group", "team")):
        rule(reviewers=reviewers, name=name)
    for number in range(12):
        subject = SubjectName(".", f"orders-{number}")
        register(V1, cast["steward"], subject=subject)
        ask(cast, subject=subject)
    user_id = cast["steward2"].user_id or 0
    counts: dict[str, set[int]] = {"list": set(), "waiting": set()}
    for limit in (1, 12):
        with CaptureQueriesContext(connection) as captured:
            assert len(selectors.list_requests(state="open", limit=limit)) == limit
        counts["list"].add(len(captured))
        with CaptureQueriesContext(connection) as captured:
            assert len(selectors.list_requests(waiting_for=user_id, limit=limit)) == limit
        counts["waiting"].add(len(captured))
    assert {name: len(found) for name, found in counts.items()} == {"list": 1, "waiting": 1}
    assert max(counts["list"]) <= 16
    assert max(counts["waiting"]) <= 24


@pytest.mark.parametrize("field", ["comment", "override"])
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "x" * 10_001])
def test_what_cannot_be_kept_is_refused(cast: Cast, field: str, text: str) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    with pytest.raises(InvalidInput):
        approve(cast, number, **{field: text})
    assert state_of(number) == "in review"


def test_no_state_is_left_but_by_the_table(cast: Cast) -> None:
    from registry.promotions.requests.state_machine import TRANSITIONS, move

    register(V1, cast["steward"])
    row = PromotionRequest.objects.get(pk=ask(cast))
    assert set(TRANSITIONS) == set(PromotionRequest.STATES)
    for state in PromotionRequest.STATES:
        row.state = state
        for other in set(PromotionRequest.STATES) - TRANSITIONS[state]:
            with pytest.raises(WrongState):
                move(row, other)
    assert not any(TRANSITIONS[state] for state in PromotionRequest.CLOSED_STATES)


@pytest.mark.parametrize("issuer", ["", "https://id.example"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("verdict", ["any", "breaking"])
@pytest.mark.parametrize(
    ("reviewers", "name"), [("owners", ""), ("role", "steward"), ("role", "reader"), ("group", "team")]
)
def test_what_waits_is_what_needs_say(
    cast: Cast, settings: Any, issuer: str, own: bool, verdict: str, reviewers: str, name: str
) -> None:
    """The list for one person and the needs of a request are worked out apart, and say the same."""
    register(V1, cast["steward"])
    change(own_approval_allowed=own)
    group = Group.objects.create(name="team")
    User.objects.get(username="steward2").groups.add(group)
    User.objects.filter(username__in=("steward", "admin")).update(email="same@example.org")
    owned_by("reader")
    owned_by("stranger")
    rule(verdict=verdict, reviewers=reviewers, name=name)
    number = ask(cast)
    settings.OIDC_ISSUER = issuer
    if issuer:
        from allauth.socialaccount.models import SocialAccount

        for who in ("reader", "steward2", "approver", "stranger"):
            SocialAccount.objects.create(user=User.objects.get(username=who), provider="oidc-1", uid=who)
    eligible = {one.username for one in selectors.get_request(number).needed.eligible}
    waits = {who for who in cast if selectors.count_waiting_for(cast[who].user_id or 0)}
    assert waits == eligible
    assert ("approver" in eligible, "stranger" in eligible) == (True, False)


def test_to_count_what_waits_takes_one_query_where_nothing_does_and_two_else(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    """The frame of every page counts it."""
    approver, reader = cast["approver"], cast["reader"]
    with django_assert_num_queries(1):
        assert selectors.count_waiting_for(approver.user_id or 0, approver.grants) == 0
    for version, schema in enumerate((V1, V2), start=1):
        register(schema, cast["steward"])
        ask(cast, version=version, by=("steward", "steward2")[version - 1])
    with django_assert_num_queries(2):
        assert selectors.count_waiting_for(approver.user_id or 0, approver.grants) == 2
    with django_assert_num_queries(3):
        assert selectors.count_waiting_for(approver.user_id or 0) == 2
    with django_assert_num_queries(2):
        assert selectors.count_waiting_for(reader.user_id or 0, reader.grants) == 0, "and no rule names them"
