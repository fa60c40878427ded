"""Loosening a closed environment takes a second person or break-glass, through every channel."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.utils import timezone

from dashboard.components.badges import EnvironmentChangeState
from registry.access import services as access
from registry.access.models import GroupGrant, RoleGrant, User
from registry.access.roles import Actor, TokenLimit, may
from registry.access.selectors import actor_of_user
from registry.audit.models import AuditEvent
from registry.errors import (
    EnvironmentPartNotFound,
    InvalidInput,
    NotAllowed,
    SchemadeskError,
    SecondPersonRequired,
    WrongState,
)
from registry.notifications.models import InboxEntry
from registry.promotions import services
from registry.promotions.environments.change_guard import loosened
from registry.promotions.environments.selectors import environment_info
from registry.promotions.models import Environment, EnvironmentChange, ReviewRule, SamePerson
from registry.promotions.models.environments import SETTINGS
from registry.promotions.reviews.linked_accounts import state_same_person, withdraw_same_person
from tests.promotions.factories import PEOPLE, V1, Cast, approve_shown, ask, change, register, rule, state_of

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("ORA-1", "CARD-4")]
#: a change of the rules of prod → the rules that it starts from
LOOSER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "open it": ({"is_closed": False}, {}),
    "fewer reviews": ({"reviews_needed": 1}, {"reviews_needed": 2}),
    "own approvals": ({"own_approval_allowed": True}, {}),
    "anybody asks": ({"owners_only": False}, {"owners_only": True}),
    "drift is no matter": ({"drift_blocks": False}, {"drift_blocks": True}),
    "discussions are no matter": ({"threads_block": False}, {"threads_block": True}),
    "clients are no matter": ({"clients_block": False}, {"clients_block": True}),
    "older evidence": ({"max_evidence_hours": 48}, {"max_evidence_hours": 24}),
    "evidence of any age": ({"max_evidence_hours": 0}, {"max_evidence_hours": 24}),
    "no evidence": ({"evidence_required": False}, {"evidence_required": True}),
    "tighter and looser at once": ({"reviews_needed": 3, "own_approval_allowed": True}, {}),
}
TIGHTER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"reviews_needed": 2}, {}),
    ({"own_approval_allowed": False}, {"own_approval_allowed": True}),
    ({"owners_only": True, "drift_blocks": True, "threads_block": True, "clients_block": True}, {}),
    ({"max_evidence_hours": 24}, {}),
    ({"max_evidence_hours": 12, "evidence_required": True}, {"max_evidence_hours": 24}),
]


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> Cast:
    return {name: person(name) for name in PEOPLE}


def asked(cast: Cast, values: dict[str, Any], action: str = "change", by: str = "admin") -> int:
    return services.request_environment_change(
        environment="prod", action=action, values=values, reason="the auditors agreed", by=cast[by]
    )


def values_of(fields: dict[str, Any]) -> dict[str, Any]:
    row = Environment.objects.get(registry__name="prod")
    return {name: getattr(row, name) for name in fields}


# -- the table --------------------------------------------------------------------------------------------------------


def test_every_field_of_an_environment_has_a_row() -> None:
    fields = {field.name for field in Environment._meta.concrete_fields} - {"id"}
    assert set(SETTINGS) == fields - {"registry", "position"}


@pytest.mark.parametrize("field", sorted(SETTINGS))
def test_no_change_loosens_nothing_and_of_two_ways_one_loosens_at_least(field: str) -> None:
    pairs = (
        [(False, True), (True, False)]
        if field not in ("max_evidence_hours", "reviews_needed", "position")
        else [(1, 2), (2, 1)]
    )
    assert not any(loosened({field: value}, {field: value}) for pair in pairs for value in pair)
    assert any(loosened({field: before}, {field: after}) for before, after in pairs)


# -- one person alone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOOSER)
def test_one_admin_alone_loosens_nothing(cast: Cast, kind: str) -> None:
    values, before = LOOSER[kind]
    change("prod", **before)
    was = values_of(values)
    with pytest.raises(SecondPersonRequired, match="approval from another reviewer") as refused:
        services.change_environment(environment="prod", by=cast["admin"], **values)
    assert values_of(values) == was
    assert refused.value.details["action"] == "change"
    assert refused.value.details["values"] == values


@pytest.mark.parametrize(("values", "before"), TIGHTER)
def test_tightening_is_immediate(cast: Cast, values: dict[str, Any], before: dict[str, Any]) -> None:
    change("prod", **before)
    services.change_environment(environment="prod", by=cast["admin"], **values)
    assert values_of(values) == values


def test_an_open_environment_is_changed_as_before(cast: Cast) -> None:
    services.change_environment(environment="dev", by=cast["admin"], own_approval_allowed=True, reviews_needed=0)
    assert environment_info("dev").settings["own_approval_allowed"]


def test_the_way_of_one_admin_to_release_alone_is_shut(cast: Cast, api: Callable[[str], Client]) -> None:
    """Allow own approvals by PATCH, ask, approve, apply, set it back: refused at the first step, with what to do."""
    client = api("admin")
    body = json.dumps({"own_approval_allowed": True})
    answer = client.patch("/api/v1/environments/prod", body, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (409, "SecondPersonRequired")
    assert "/api/v1/environments/prod/changes" in answer.json()["message"]
    register(V1, cast["steward"])
    number = ask(cast, by="admin")
    with pytest.raises(NotAllowed, match="another person must review it"):
        approve_shown(request_id=number, by=cast["admin"])


def test_rules_and_freezes_of_a_closed_environment_are_not_removed_alone(cast: Cast) -> None:
    admin, now = cast["admin"], timezone.now()
    kept = rule("prod", reviewers="owners")
    freeze = services.add_freeze(
        environment="prod",
        by=admin,
        starts_at=now - timedelta(hours=1),
        ends_at=now + timedelta(hours=1),
        reason="sale",
    )
    weekly = services.add_recurring_freeze(
        environment="prod", by=admin, kind="monthly", zone="UTC", last_days=1, reason="books are closed"
    )
    for remove in (
        lambda: services.remove_review_rule(rule_id=kept.pk, by=admin),
        lambda: services.remove_freeze(freeze_id=freeze, by=admin),
        lambda: services.remove_recurring_freeze(freeze_id=weekly, by=admin),
    ):
        with pytest.raises(SecondPersonRequired):
            remove()
    number = asked(cast, {"rule_id": kept.pk}, "remove_review_rule")
    services.approve_environment_change(change_id=number, by=cast["approver"])
    assert not ReviewRule.objects.exists()
    again = asked(cast, {"freeze_id": weekly}, "remove_recurring_freeze")
    services.approve_environment_change(change_id=again, by=cast["approver"])
    assert environment_info("prod").recurring == ()


# -- a second person --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOOSER)
def test_a_second_person_approves_and_it_is_notified_and_stands_out(cast: Cast, kind: str) -> None:
    values, before = LOOSER[kind]
    change("prod", **before)
    number = asked(cast, values)
    assert values_of(values) != values
    assert InboxEntry.objects.filter(user_id=cast["approver"].user_id, notice__event="environment.loosening_requested")
    services.approve_environment_change(change_id=number, by=cast["approver"], comment="fine")
    assert values_of(values) == values
    event = AuditEvent.objects.filter(table="promotions_environment").latest("id")
    assert event.actor == "approver"
    assert event.why.startswith(
        f"LOOSENS A CLOSED ENVIRONMENT: change {number}, requested by admin, approved by approver"
    )
    for who in ("approver2", "admin"):
        assert InboxEntry.objects.filter(user_id=cast[who].user_id, notice__event="environment.loosened").exists(), who
    with pytest.raises(WrongState, match="already approved"):
        services.approve_environment_change(change_id=number, by=cast["approver2"])


def test_its_requester_decides_by_no_account(cast: Cast) -> None:
    number = asked(cast, {"own_approval_allowed": True})
    with pytest.raises(NotAllowed, match="Another person must decide"):
        services.approve_environment_change(change_id=number, by=cast["admin"])
    SamePerson.objects.create(
        one_id=min(cast["admin"].user_id, cast["approver"].user_id),  # type: ignore[type-var]
        other_id=max(cast["admin"].user_id, cast["approver"].user_id),  # type: ignore[type-var]
        reason="both are hers",
        stated_by="tests",
    )
    with pytest.raises(NotAllowed, match="with this or a linked account"):
        services.approve_environment_change(change_id=number, by=cast["approver"])
    User.objects.filter(username__in=("admin", "approver2")).update(email="One@example.org")
    with pytest.raises(NotAllowed, match="with this or a linked account"):
        services.approve_environment_change(change_id=number, by=cast["approver2"])
    assert not environment_info("prod").settings["own_approval_allowed"]


@pytest.mark.parametrize("who", ["reader", "steward", "stranger"])
def test_whoever_may_not_review_there_decides_nothing(cast: Cast, who: str) -> None:
    number = asked(cast, {"own_approval_allowed": True})
    for act in (services.approve_environment_change, services.reject_environment_change):
        with pytest.raises(SchemadeskError) as refused:
            act(change_id=number, by=cast[who], comment="no")
        assert isinstance(refused.value, (NotAllowed, EnvironmentPartNotFound))
    with pytest.raises(NotAllowed):
        asked(cast, {"threads_block": False}, by=who)


def test_a_token_that_is_limited_decides_nothing(cast: Cast) -> None:
    number = asked(cast, {"own_approval_allowed": True})
    with pytest.raises(NotAllowed, match="scope is promote"):
        services.approve_environment_change(change_id=number, by=replace(cast["approver"], limit=TokenLimit("promote")))
    other = replace(cast["approver"], limit=TokenLimit(registry="staging"))
    with pytest.raises((NotAllowed, EnvironmentPartNotFound)):
        services.approve_environment_change(change_id=number, by=other)


def test_what_changed_since_is_asked_for_again(cast: Cast, look: Callable[[str], Client]) -> None:
    change("prod", reviews_needed=3)
    number = asked(cast, {"reviews_needed": 2})
    services.change_environment(environment="prod", by=cast["admin"], reviews_needed=5)
    with pytest.raises(WrongState, match="have changed since"):
        services.approve_environment_change(change_id=number, by=cast["approver"])
    assert environment_info("prod").settings["reviews_needed"] == 5
    (row,) = look("approver").get("/ui/environments/prod").context["page"].changes
    assert row.state is EnvironmentChangeState.OUTDATED
    assert row.decide_refused.startswith("The settings have changed since this was requested.")


@pytest.mark.parametrize("kind", ["fewer reviews", "no rule", "nothing"])
def test_a_request_with_enough_approvals_under_looser_rules_is_approved(cast: Cast, kind: str) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    if kind == "no rule":
        kept = rule("prod", reviewers=ReviewRule.ROLE, name="admin", subject_pattern="*")
        change_number = asked(cast, {"rule_id": kept.pk}, "remove_review_rule")
    else:
        change("prod", reviews_needed=3)
        change_number = asked(cast, {"reviews_needed": 1 if kind == "fewer reviews" else 2})
    approve_shown(request_id=number, by=cast["approver"])
    assert state_of(number) == "in review"
    services.approve_environment_change(change_id=change_number, by=cast["approver"])
    assert state_of(number) == ("in review" if kind == "nothing" else "approved")
    told = InboxEntry.objects.filter(user_id=cast["steward"].user_id, notice__text__contains="It is approved now.")
    assert told.exists() == (kind != "nothing")


def test_a_requester_who_lost_the_right_changes_nothing_any_more(cast: Cast) -> None:
    number = asked(cast, {"own_approval_allowed": True})
    RoleGrant.objects.filter(user_id=cast["admin"].user_id).delete()
    with pytest.raises(WrongState, match="no longer has permission"):
        services.approve_environment_change(change_id=number, by=cast["approver"])


def test_it_is_turned_down_with_a_comment_or_withdrawn(cast: Cast) -> None:
    number = asked(cast, {"own_approval_allowed": True})
    with pytest.raises(InvalidInput):
        services.reject_environment_change(change_id=number, by=cast["approver"], comment=" ")
    services.reject_environment_change(change_id=number, by=cast["approver"], comment="no")
    again = asked(cast, {"own_approval_allowed": True})
    with pytest.raises(NotAllowed):
        services.withdraw_environment_change(change_id=again, by=cast["steward"])
    services.withdraw_environment_change(change_id=again, by=cast["admin"])
    assert list(EnvironmentChange.objects.values_list("state", flat=True)) == ["withdrawn", "rejected"]
    notices = InboxEntry.objects.filter(user_id=cast["approver2"].user_id).order_by("pk")
    assert [name.rpartition("_")[2] for name in notices.values_list("notice__event", flat=True)] == [
        "requested", "declined", "requested", "withdrawn",
    ]  # fmt: skip
    assert not environment_info("prod").settings["own_approval_allowed"]


@pytest.mark.parametrize(
    ("action", "values", "error"),
    [
        ("change", {"reviews_needed": 4}, WrongState),
        ("change", {"reviews_needed": 0}, InvalidInput),
        ("change", {"reviews_needed": "1"}, InvalidInput),
        ("change", {"reviews_needed": True}, InvalidInput),
        ("change", {"position": 3}, InvalidInput),
        ("change", {}, InvalidInput),
        ("paint", {"is_closed": False}, InvalidInput),
        ("remove_review_rule", {"rule_id": 999}, EnvironmentPartNotFound),
        ("grant", {"username": "reader", "role": "king"}, InvalidInput),
        ("add_member", {"group": "nobody's"}, InvalidInput),
    ],
)
def test_what_could_not_be_done_is_not_asked_for(
    cast: Cast, action: str, values: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        asked(cast, values, action)
    assert not EnvironmentChange.objects.exists()


def test_the_same_is_asked_for_once(cast: Cast) -> None:
    asked(cast, {"own_approval_allowed": True})
    with pytest.raises(WrongState, match="already requested"):
        asked(cast, {"own_approval_allowed": True})


@pytest.mark.django_db(transaction=True)
def test_two_clicks_of_two_people_are_one_change(cast: Cast) -> None:
    number = asked(cast, {"own_approval_allowed": True})
    said: list[str] = []

    def click(who: str) -> None:
        try:
            services.approve_environment_change(change_id=number, by=cast[who])
            said.append("done")
        except SchemadeskError as error:
            said.append(type(error).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=click, args=(who,)) for who in ("approver", "approver2", "approver", "admin")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) in (
        ["WrongState", "WrongState", "WrongState", "done"],
        ["NotAllowed", "WrongState", "WrongState", "done"],
    )
    assert AuditEvent.objects.filter(table="promotions_environment", operation="UPDATE").count() == 1


# -- break-glass ------------------------------------------------------------------------------------------------------


def test_break_glass_loosens_is_counted_and_reported(cast: Cast) -> None:
    glass = services.open_break_glass(environment="prod", by=cast["admin"], reason="the broker is down")
    services.change_environment(environment="prod", by=cast["admin"], own_approval_allowed=True)
    assert environment_info("prod").break_glass[0].uses == 1
    event = AuditEvent.objects.filter(table="promotions_environment").latest("id")
    assert event.why.startswith(f"LOOSENS A CLOSED ENVIRONMENT: break-glass {glass}: the broker is down; change the")
    assert InboxEntry.objects.filter(user_id=cast["approver"].user_id, notice__event="environment.loosened").exists()


# -- who reviews ------------------------------------------------------------------------------------------------------


def widenings(cast: Cast) -> dict[str, Callable[[], object]]:
    """Ways to widen who approves in prod, each by an admin."""
    admin = cast["admin"]
    Group.objects.get_or_create(name="security")
    GroupGrant.objects.get_or_create(group=Group.objects.get_or_create(name="reviewers")[0], role="approver")
    rule("prod", reviewers="group", name="security")
    rule("prod", reviewers="owners")
    statement = SamePerson.objects.create(
        one_id=min(cast["admin"].user_id, cast["approver2"].user_id),  # type: ignore[type-var]
        other_id=max(cast["admin"].user_id, cast["approver2"].user_id),  # type: ignore[type-var]
        reason="both are hers",
        stated_by="tests",
    )
    User.objects.filter(username__in=("steward", "steward2")).update(email="s@example.org")
    RoleGrant.objects.create(user_id=cast["steward2"].user_id, role="approver")
    shut = User.objects.create(username="shut", is_active=False)
    RoleGrant.objects.create(user=shut, role="approver", registry="prod")
    return {
        "the role, everywhere": lambda: access.grant(username="reader", role="approver", by=admin),
        "the role, there for some": lambda: access.grant(
            username="reader", role="admin", registry="prod", subject_pattern="orders-*", by=admin
        ),
        "the role, to a group": lambda: access.grant_to_group(group="security", role="approver", by=admin),
        "into a group of reviewers": lambda: access.add_member(group="reviewers", username="reader", by=admin),
        "oneself into the group of a rule": lambda: access.add_member(group="security", username="admin", by=admin),
        "oneself an owner": lambda: access.add_owner(subject_pattern="*", username="admin", by=admin),
        "two people of one": lambda: withdraw_same_person(statement_id=statement.pk, by=admin),
        "two addresses of one": lambda: access.set_email(username="steward2", email="else@example.org", by=admin),
        "an account that was shut": lambda: access.set_active(username="shut", active=True, by=admin),
    }


KINDS = (
    "the role, everywhere",
    "the role, there for some",
    "the role, to a group",
    "into a group of reviewers",
    "oneself into the group of a rule",
    "oneself an owner",
    "two people of one",
    "two addresses of one",
    "an account that was shut",
)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_made_a_reviewer_of_a_closed_environment_by_one_person(cast: Cast, kind: str) -> None:
    ways = widenings(cast)
    assert set(ways) == set(KINDS)
    with pytest.raises(SecondPersonRequired) as refused:
        ways[kind]()
    details = refused.value.details
    number = asked(cast, details["values"], details["action"])
    services.approve_environment_change(change_id=number, by=cast["approver"])
    ways[kind]() if kind != "two people of one" else None
    event = AuditEvent.objects.filter(why__startswith="LOOSENS A CLOSED ENVIRONMENT: change").exists()
    assert event


def joined(group: str, *names: str) -> None:
    made, _ = Group.objects.get_or_create(name=group)
    made.user_set.add(*User.objects.filter(username__in=names))


#: a change of rights that names a group or an account → what its sentence names, and what happens to that meanwhile
MOVED: dict[str, tuple[str, dict[str, Any], str, Callable[[Actor], object], str]] = {
    "a member comes into the group": (
        "grant_to_group",
        {"group": "g3", "role": "approver", "registry": "prod", "subject_pattern": "*"},
        "(members: steward2)",
        lambda by: access.add_member(group="g3", username="stranger", by=by),
        "members: stranger was added",
    ),
    "a member of the group is another": (
        "grant_to_group",
        {"group": "g3", "role": "approver", "registry": "prod", "subject_pattern": "*"},
        "(members: steward2)",
        lambda by: access.remove_member(group="g3", username="steward2", by=by),
        "members: steward2 was removed",
    ),
    "a member comes into the group that shall own": (
        "add_owner",
        {"group": "g3", "username": "", "subject_pattern": "*", "registry": ""},
        "(members: steward2)",
        lambda by: access.add_member(group="g3", username="stranger", by=by),
        "members: stranger was added",
    ),
    "the group gives more": (
        "add_member",
        {"group": "reviewers", "username": "reader"},
        "(roles: approver for subjects orders-* in prod; ownerships: none)",
        lambda by: access.grant_to_group(group="reviewers", role="steward", registry="prod", by=by),
        "roles: steward for all subjects in prod was added",
    ),
    "the shut account gets another role": (
        "set_active",
        {"username": "shut", "active": True},
        "roles: approver for all subjects in prod",
        lambda by: access.grant(username="shut", role="steward", registry="prod", by=by),
        "roles: steward for all subjects in prod was added",
    ),
}


@pytest.mark.parametrize("kind", MOVED)
def test_an_approval_is_of_the_people_and_rights_that_the_request_named(
    cast: Cast, api: Callable[[str], Client], look: Callable[[str], Client], kind: str
) -> None:
    action, values, named, meanwhile, difference = MOVED[kind]
    joined("g3", "steward2")
    joined("reviewers")
    GroupGrant.objects.create(
        group=Group.objects.get(name="reviewers"), role="approver", registry="prod", subject_pattern="orders-*"
    )
    shut = User.objects.create(username="shut", is_active=False)
    RoleGrant.objects.create(user=shut, role="approver", registry="prod")
    rule("prod", reviewers="owners")
    number = asked(cast, values, action)
    assert named in EnvironmentChange.objects.get().sentence
    meanwhile(cast["admin"])
    with pytest.raises(WrongState, match=f"has changed since it was requested.*{difference}.*request it again"):
        services.approve_environment_change(change_id=number, by=cast["approver"])
    (shown,) = api("approver").get("/api/v1/environments/prod/changes").json()
    assert (shown["is_outdated"], difference in shown["outdated"]) == (True, True)
    (row,) = look("approver").get("/ui/environments/prod").context["page"].changes
    assert row.state is EnvironmentChangeState.OUTDATED
    assert difference in row.decide_refused
    services.withdraw_environment_change(change_id=number, by=cast["admin"])
    again = asked(cast, values, action)
    services.approve_environment_change(change_id=again, by=cast["approver"])


def test_nobody_joins_a_group_with_rights_alone_once_it_was_approved(cast: Cast) -> None:
    joined("g3", "steward2")
    values = {"group": "g3", "role": "approver", "registry": "prod", "subject_pattern": "*"}
    services.approve_environment_change(change_id=asked(cast, values, "grant_to_group"), by=cast["approver"])
    with pytest.raises(SecondPersonRequired):
        access.add_member(group="g3", username="stranger", by=cast["admin"])


@pytest.mark.parametrize(
    "harmless",
    [
        lambda by: access.grant(username="reader", role="steward", registry="prod", by=by),
        lambda by: access.grant(username="reader", role="approver", registry="dev", by=by),
        lambda by: access.grant(username="approver", role="approver", registry="prod", by=by),
        lambda by: access.add_owner(subject_pattern="*", username="reader", by=by),
        lambda by: access.set_email(username="reader", email="reader@example.org", by=by),
    ],
)
def test_other_rights_are_given_as_before(cast: Cast, harmless: Callable[[Actor], object]) -> None:
    harmless(cast["admin"])


def test_the_first_second_person_is_let_in_and_it_stands_out(registries: None, person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    person("reader")
    access.grant(username="reader", role="approver", by=admin)
    now = actor_of_user(User.objects.get(username="reader"), channel="ui")
    assert may(now, "promotion.review", registry="prod")
    assert "the first other reviewer of prod" in AuditEvent.objects.filter(table="access_rolegrant").latest("id").why
    person("steward")
    with pytest.raises(SecondPersonRequired):
        access.grant(username="steward", role="approver", by=admin)


def test_the_last_other_reviewer_is_not_removed_by_one_person(registries: None, person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    person("approver")
    mine = RoleGrant.objects.get(user__username="approver")
    for act in (
        lambda: access.revoke_grant(grant_id=mine.pk, by=admin),
        lambda: access.set_active(username="approver", active=False, by=admin),
    ):
        with pytest.raises(SecondPersonRequired):
            act()
    person("approver2")
    access.revoke_grant(grant_id=mine.pk, by=admin)


def test_the_last_other_reviewer_is_not_made_the_same_person_by_one_person(
    registries: None, person: Callable[[str], Actor]
) -> None:
    admin = person("admin")
    for name in ("approver", "reader"):
        person(name)
    User.objects.filter(username="admin").update(email="a@example.org")
    access.set_email(username="reader", email="r@example.org", by=admin)
    state_same_person(one="reader", other="approver", reason="two accounts", by=admin)
    for act in (
        lambda: state_same_person(one="admin", other="approver", reason="x", by=admin),
        lambda: state_same_person(one="admin", other="reader", reason="by way of a third account", by=admin),
        lambda: access.set_email(username="approver", email="A@Example.org", by=admin),
        lambda: access.set_email(username="admin", email="r@example.org", by=admin),
    ):
        with pytest.raises(SecondPersonRequired):
            act()
    assert SamePerson.objects.count() == 1
    person("approver2")
    state_same_person(one="admin", other="approver", reason="there is another reviewer", by=admin)


# -- channels ---------------------------------------------------------------------------------------------------------


def test_by_the_api(cast: Cast, api: Callable[[str], Client]) -> None:
    def post(who: str, path: str, body: dict[str, Any]) -> Any:
        return api(who).post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")

    refused = api("admin").patch(
        "/api/v1/environments/prod", json.dumps({"is_closed": False}), content_type="application/json"
    )
    details = refused.json()["details"]
    sent = {"action": details["action"], "values": details["values"], "reason": "we move house"}
    made = post("admin", "environments/prod/changes", sent)
    assert made.status_code == 201
    number = made.json()["change_id"]
    (listed,) = api("reader").get("/api/v1/environments/prod/changes").json()
    assert (listed["id"], listed["state"], listed["values"]) == (number, "open", {"is_closed": False})
    own = post("admin", f"environment-changes/{number}/approve", {})
    assert (own.status_code, own.json()["error"]) == (403, "NotAllowed")
    assert post("approver", f"environment-changes/{number}/approve", {}).status_code == 204
    assert not environment_info("prod").is_closed
    assert post("approver", "environment-changes/999/approve", {}).status_code == 404


def test_by_the_pages(cast: Cast, look: Callable[[str], Client]) -> None:
    admin = look("admin")
    form = {"reviews_needed": "1", "is_closed": "1", "drift_blocks": "1", "own_approval_allowed": "1"}
    refused = admin.post("/ui/environments/prod/change", form)
    assert refused.status_code == 409
    assert "This change needs a second person" in refused.content.decode()
    loosening = refused.context["page"].loosening
    address = "/ui/environments/prod/changes"
    sent = {**loosening.initial, "reason": "we are two"}
    assert admin.post(address, sent).status_code == 302
    (view,) = admin.get("/ui/environments/prod").context["page"].changes
    assert view.decide_refused
    approver = look("approver")
    (view,) = approver.get("/ui/environments/prod").context["page"].changes
    assert not view.decide_refused
    assert approver.post(f"{address}/{view.info.id}/approve", {"comment": "fine"}).status_code == 302
    assert environment_info("prod").settings["own_approval_allowed"]
    assert "Approved" in approver.get("/ui/environments/prod").content.decode()
    assert admin.post(address, {**sent, "values": "["}).status_code == 422


def test_the_page_of_people_leads_to_the_second_person(cast: Cast, look: Callable[[str], Client]) -> None:
    sent = {"do": "grant", "username": "reader", "role": "approver", "registry": "", "subject_pattern": "*"}
    refused = look("admin").post("/ui/people/change", sent)
    assert refused.status_code == 409
    assert "This change needs a second person" in refused.content.decode()
    assert not RoleGrant.objects.filter(user__username="reader", role="approver").exists()
