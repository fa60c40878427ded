"""People, groups and owners."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from registry.access.models import GroupGrant, Ownership, RoleGrant, User
from registry.access.roles import Actor, may
from registry.access.selectors import actor_of_token, actor_of_user, full_admins, owners_of, owners_of_many
from registry.access.services import (
    add_member,
    add_owner,
    add_person,
    grant,
    grant_to_group,
    issue_token,
    make_group,
    remove_group,
    remove_group_grant,
    remove_member,
    revoke_grant,
    set_active,
)
from registry.audit.models import AuditEvent
from registry.errors import Conflict, InvalidInput, NotAllowed, NotFound, SchemadeskError
from registry.promotions.models import Environment, SamePerson
from tests.conftest import RawClient, signed_in

pytestmark = pytest.mark.requirement("CARD-4")


def now(name: str) -> Actor:
    return actor_of_user(User.objects.get(username=name), channel="ui")


def test_a_group_gives_its_roles_and_takes_them_again(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    person("stranger")
    make_group(name="orders", by=admin)
    number = grant_to_group(group="orders", role="steward", registry="dev", subject_pattern="orders-*", by=admin)
    assert not may(now("stranger"), "version.register", registry="dev", subject="orders-value")
    add_member(group="orders", username="stranger", by=admin)
    assert may(now("stranger"), "version.register", registry="dev", subject="orders-value")
    assert not may(now("stranger"), "version.register", registry="dev", subject="payments-value")
    remove_group_grant(grant_id=number, by=admin)
    assert not may(now("stranger"), "version.register", registry="dev", subject="orders-value")


def test_an_actor_takes_one_query_however_many_groups(
    person: Callable[[str], Actor], django_assert_num_queries
) -> None:
    person("stranger")
    user = User.objects.get(username="stranger")
    for number in range(20):
        group = Group.objects.create(name=f"g{number}")
        GroupGrant.objects.create(group=group, role="reader", registry=f"r{number}")
        user.groups.add(group)
    with django_assert_num_queries(1):
        assert len(actor_of_user(user, channel="ui").grants) == 20


def test_the_last_admin_stays(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    number = RoleGrant.objects.get(role="admin").pk
    for change in (
        lambda: revoke_grant(grant_id=number, by=admin),
        lambda: set_active(username="admin", active=False, by=admin),
    ):
        with pytest.raises(Conflict):
            change()
    assert full_admins() == {admin.user_id}


def test_nobody_takes_their_own_admin_right_and_another_admin_can(person: Callable[[str], Actor]) -> None:
    Environment.objects.update(is_closed=False)
    first, second = person("admin"), person("admin2")
    own = RoleGrant.objects.get(role="admin", user_id=first.user_id).pk
    with pytest.raises(Conflict, match="your own admin role"):
        revoke_grant(grant_id=own, by=first)
    revoke_grant(grant_id=own, by=second)
    assert full_admins() == {second.user_id}
    with pytest.raises(NotAllowed):
        grant(username="admin", role="admin", by=now("admin"))


def test_an_admin_through_a_group_counts(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    Environment.objects.update(is_closed=False)
    make_group(name="admins", by=admin)
    person("stranger")
    add_member(group="admins", username="stranger", by=admin)
    grant_to_group(group="admins", role="admin", by=admin)
    number = RoleGrant.objects.get(role="admin").pk
    revoke_grant(grant_id=number, by=now("stranger"))
    for change in (
        lambda: remove_group(name="admins", by=now("stranger")),
        lambda: remove_member(group="admins", username="stranger", by=now("stranger")),
        lambda: remove_group_grant(grant_id=GroupGrant.objects.get().pk, by=now("stranger")),
    ):
        with pytest.raises(Conflict, match="no admin"):
            change()
    assert full_admins() == {now("stranger").user_id}


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_remove_each_other_at_once_leave_one(person: Callable[[str], Actor]) -> None:
    pair = [person("admin"), person("admin2")]
    Environment.objects.update(is_closed=False)
    start, outcomes = threading.Barrier(2), []

    def remove(by: Actor, other: Actor) -> None:
        start.wait()
        try:
            set_active(username=other.name, active=False, by=by)
            outcomes.append("done")
        except Conflict:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=remove, args=(pair[at], pair[1 - at])) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert sorted(outcomes) == ["done", "refused"]
    assert len(full_admins()) == 1


@pytest.mark.parametrize("role", ["stranger", "reader", "steward", "approver"])
def test_only_admins_change_people(person: Callable[[str], Actor], role: str) -> None:
    by = person(role)
    for change in (
        lambda: add_person(username="x", by=by),
        lambda: grant(username=role, role="admin", by=by),
        lambda: set_active(username=role, active=False, by=by),
        lambda: make_group(name="g", by=by),
        lambda: add_owner(subject_pattern="*", username=role, by=by),
    ):
        with pytest.raises(NotAllowed):
            change()


@pytest.mark.parametrize("name", ["", " ", "a b", "a\x00b", "a\nb", "x" * 151, "<b>"])
def test_names_that_cannot_be(person: Callable[[str], Actor], name: str) -> None:
    admin = person("admin")
    with pytest.raises(InvalidInput):
        add_person(username=name, by=admin)


@pytest.mark.parametrize("name", ["a\x00b", "nobody", ""])
def test_names_that_nobody_has(person: Callable[[str], Actor], name: str) -> None:
    admin = person("admin")
    for change in (
        lambda: grant(username=name, role="reader", by=admin),
        lambda: set_active(username=name, active=True, by=admin),
        lambda: remove_group(name=name, by=admin),
        lambda: add_member(group=name, username="admin", by=admin),
    ):
        with pytest.raises(NotFound):
            change()


def test_owners_are_all_whom_a_pattern_names(person: Callable[[str], Actor], django_assert_num_queries) -> None:
    admin = person("admin")
    for name in ("ann", "bob", "cid", "gone"):
        person(name)
    make_group(name="team", by=admin)
    for name in ("bob", "cid"):
        add_member(group="team", username=name, by=admin)
    add_owner(subject_pattern="orders-*", registry="dev", username="ann", by=admin)
    add_owner(subject_pattern="orders-*", username="gone", by=admin)
    add_owner(subject_pattern="*-value", group="team", by=admin)
    add_owner(subject_pattern="orders-value", username="bob", by=admin)
    set_active(username="gone", active=False, by=admin)
    with django_assert_num_queries(1):
        found = owners_of("dev", "orders-value")
    assert [(owner.username, owner.groups) for owner in found.people] == [("ann", ()), ("bob", ()), ("cid", ("team",))]
    assert found.groups == ("team",)
    assert [owner.username for owner in owners_of("prod", "orders-key").people] == []
    for number in range(30):
        Ownership.objects.create(subject_pattern=f"s{number}", user_id=admin.user_id)
    with django_assert_num_queries(1):
        many = owners_of_many("dev", [f"s{number}" for number in range(30)])
    assert all(owners.user_ids == {admin.user_id} for owners in many.values())


def test_an_ownership_has_one_owner(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    make_group(name="team", by=admin)
    for named in ({}, {"username": "admin", "group": "team"}):
        with pytest.raises(InvalidInput, match="one of the two"):
            add_owner(subject_pattern="*", by=admin, **named)
    first = add_owner(subject_pattern="*", username="admin", by=admin)
    assert add_owner(subject_pattern="*", username="admin", by=admin) == first


def test_changes_are_in_the_audit_with_who_and_why(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    person("stranger")
    make_group(name="team", by=admin)
    add_member(group="team", username="stranger", by=admin)
    grant(username="stranger", role="reader", registry="dev", by=admin)
    set_active(username="stranger", active=False, by=admin)
    events = {event.table: event for event in AuditEvent.objects.order_by("pk")}
    for table, why in {
        "auth_group": "create the group team",
        "access_user_groups": "add stranger to the group team",
        "access_rolegrant": "grant stranger the role reader for all subjects in dev",
        "access_user": "deactivate the account stranger",
    }.items():
        assert (events[table].actor, events[table].why) == ("admin", why)


def test_the_api_does_all_of_it(api: Callable[[str], Client]) -> None:
    admin = api("admin")

    def call(method: str, path: str, body: object = None) -> tuple[int, object]:
        answer = admin.generic(method, f"/api/v1/{path}", __import__("json").dumps(body), "application/json")
        return answer.status_code, answer.json() if answer.content else None

    status, made = call("POST", "people", {"username": "ann"})
    assert status == 201
    assert RawClient().login(username="ann", password=made["password"])
    assert call("POST", "people", {"username": "ann"})[0] == 409
    status, given = call("POST", "people/ann/grants", {"role": "reader", "registry": "dev"})
    assert status == 201
    assert call("POST", "groups", {"name": "team"})[0] == 201
    assert call("PUT", "groups/team/members/ann")[0] == 204
    assert call("POST", "groups/team/grants", {"role": "steward"})[0] == 201
    (ann,) = call("GET", "people?q=ann")[1]
    assert [(row["role"], row["group"]) for row in ann["grants"]] == [("reader", ""), ("steward", "team")]
    assert ann["groups"] == ["team"]
    status, owner = call("POST", "owners", {"group": "team", "subject_pattern": "orders-*"})
    assert status == 201
    assert call("GET", "owners?registry=dev&subject=orders-value")[1]["people"][0]["username"] == "ann"
    assert len(call("GET", "owners")[1]) == 1
    assert call("DELETE", f"owners/{owner['ownership_id']}")[0] == 204
    assert call("DELETE", f"grants/{given['grant_id']}")[0] == 204
    assert call("DELETE", "groups/team/members/ann")[0] == 204
    assert call("GET", "groups")[1][0]["members"] == []
    assert call("DELETE", "groups/team")[0] == 204
    assert call("PATCH", "people/ann", {"active": False})[0] == 204
    assert not RawClient().login(username="ann", password=made["password"])
    assert call("DELETE", f"grants/{10**30}")[0] == 404


def test_the_page_changes_people(person: Callable[[str], Actor], django_assert_max_num_queries) -> None:
    person("admin")
    client = signed_in("admin")

    def do(what: str, **values: str) -> int:
        return client.post("/ui/people/change", {"do": what, **values}).status_code

    assert do("add", username="ann") == 201
    assert do("grant", username="ann", role="steward", registry="dev", subject_pattern="a-*") == 302
    assert do("make_group", name="team") == 302
    assert do("join", group="team", username="ann") == 302
    assert do("grant_to_group", group="team", role="reader") == 302
    assert do("own_group", group="team", subject_pattern="orders-*") == 302
    with django_assert_max_num_queries(25):
        page = client.get("/ui/people").content.decode()
    for text in ("ann", "subjects a-* in dev", "from the group", "subjects orders-* in all registries"):
        assert text in page
    asked = {
        tuple(re.findall(r'name="do" value="([^"]+)"', each))
        for each in re.findall(r"<details.*?</details>", page, re.S)
    }
    losing = {"revoke", "revoke_from_group", "leave", "disown", "remove_group", "shut"}
    assert {(each,) for each in losing} <= asked, "what takes something away says so, and is asked once more"
    assert do("disown", ownership_id=str(Ownership.objects.get().pk)) == 302
    assert do("revoke_from_group", grant_id=str(GroupGrant.objects.get().pk)) == 302
    assert do("revoke", grant_id=str(RoleGrant.objects.get(role="steward").pk)) == 302
    assert do("leave", group="team", username="ann") == 302
    assert do("remove_group", name="team") == 302
    assert do("shut", username="ann") == 302
    assert not User.objects.get(username="ann").is_active
    assert do("open", username="ann") == 302
    assert do("shut", username="admin") == 422
    assert do("revoke", grant_id="x") == 422
    assert do("no such thing") == 422
    shut = User.objects.get(username="ann")
    other = RawClient()
    other.force_login(shut)
    assert other.get("/ui/people").status_code == 403


def test_the_page_says_which_accounts_are_one_persons(person: Callable[[str], Actor]) -> None:
    for name in ("admin", "approver", "approver2"):
        person(name)
    Environment.objects.update(is_closed=False)
    client = signed_in("admin")

    def do(what: str, **values: str) -> int:
        return client.post("/ui/people/change", {"do": what, **values}).status_code

    pair = {"one": "approver2", "other": "approver", "reason": "She said <so>"}
    assert "No linked accounts" in client.get("/ui/people").content.decode()
    assert do("same", **{**pair, "other": "approver2"}) == 422
    assert do("same", **{**pair, "reason": ""}) == 422
    assert do("same", **pair) == 302
    assert do("same", **pair) == 422
    shown = client.get("/ui/people").content.decode()
    assert "She said &lt;so&gt;" in shown and "Unlink accounts" in shown
    (row,) = SamePerson.objects.all()
    assert (row.one.username, row.other.username, row.stated_by) == ("approver", "approver2", "admin")
    assert do("two", statement_id=str(row.pk)) == 302
    assert do("two", statement_id=str(row.pk)) == 422
    client.force_login(User.objects.get(username="approver"))
    assert do("same", **pair) == 403
    assert not SamePerson.objects.exists()


def test_a_session_ends_with_its_account(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    person("reader")
    client = signed_in("reader")
    assert client.get("/ui/tokens").status_code == 200
    set_active(username="reader", active=False, by=admin)
    assert client.get("/ui/tokens").status_code != 200


def test_a_reactivated_account_gets_nothing_back(person: Callable[[str], Actor], system: Actor) -> None:
    admin = person("admin")
    person("reader")
    client = signed_in("reader")
    secret = issue_token(username="reader", name="build", by=system)
    set_active(username="reader", active=False, by=admin)
    event = AuditEvent.objects.filter(table="access_apitoken", operation="UPDATE").get()
    assert (event.actor, event.why, event.before["revoked_at"]) == ("admin", "deactivate the account reader", None)
    set_active(username="reader", active=True, by=admin)
    assert actor_of_token(secret, channel="product") is None
    assert client.get("/ui/tokens").status_code != 200
    client.force_login(User.objects.get(username="reader"))
    assert client.get("/ui/tokens").status_code == 200


def test_an_account_that_was_shut_before_gets_nothing_back(person: Callable[[str], Actor], system: Actor) -> None:
    admin = person("admin")
    person("reader")
    secret = issue_token(username="reader", name="build", by=system)
    User.objects.filter(username="reader").update(is_active=False)  # as before tokens were revoked with it
    set_active(username="reader", active=True, by=admin)
    assert actor_of_token(secret, channel="product") is None


def test_errors_are_documented_ones(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    with pytest.raises(SchemadeskError):
        grant(username="admin", role="emperor", by=admin)
    with pytest.raises(InvalidInput):
        grant(username="admin", role="reader", registry="a\x00", by=admin)
    with pytest.raises(InvalidInput):
        grant(username="admin", role="reader", subject_pattern="x" * 256, by=admin)
