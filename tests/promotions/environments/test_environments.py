"""What environments ask of what comes into them, who may change that, and how one is closed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import Ownership, User
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import (
    EnvironmentPartNotFound,
    InvalidInput,
    NotAllowed,
    NotSignedIn,
    RegistryNotFound,
    ReleaseRequired,
    SchemadeskError,
    SecondPersonRequired,
    WrongState,
)
from registry.promotions import services
from registry.promotions.models import BreakGlass, Environment, FreezeWindow, ReviewRule
from registry.promotions.models.environments import change_in_words
from registry.promotions.selectors import environment_info, environment_infos
from registry.subjects.selectors import list_versions
from registry.subjects.services import register_version
from registry.subjects.versions.lookup import get_registry
from tests.conftest import signed_in
from tests.promotions.closed_environment import ORDERS, V1, V2, beside, fill
from tests.promotions.factories import Cast, change
from tests.subjects.test_integrity import wait_for_a_waiter

pytestmark = pytest.mark.requirement("ORA-1")
HOUR = timedelta(hours=1)


def test_the_first_start_closes_production_and_lets_it_be_read_only(registries: None) -> None:
    found = [(info.name, info.position, info.is_closed, info.mode) for info in environment_infos()]
    assert found == [("dev", 1, False, "READWRITE"), ("staging", 2, False, "READWRITE"), ("prod", 3, True, "READONLY")]


@pytest.mark.parametrize(
    "change",
    [
        {"reviews_needed": 2},
        {"own_approval_allowed": True},
        {"owners_only": True},
        {"drift_blocks": False},
        {"threads_block": True},
        {"max_evidence_hours": 24, "evidence_required": True},
        {"is_closed": True, "reviews_needed": 3},
    ],
)
def test_rules_are_changed_and_the_audit_says_from_what_to_what(cast: Cast, change: dict[str, Any]) -> None:
    before = environment_info("dev")
    services.change_environment(environment="dev", by=cast["admin"], **change)
    after = environment_info("dev")
    assert after.settings == {**before.settings, **change}
    event = AuditEvent.objects.filter(table="promotions_environment").latest("id")
    said = change_in_words(before.settings, change)
    assert (event.actor, event.why) == ("admin", f"change the environment dev: {said}")


def test_a_change_of_rules_is_reported_by_their_labels() -> None:
    before = {"is_closed": True, "reviews_needed": 2, "max_evidence_hours": 24}
    assert change_in_words(before, {"is_closed": False, "reviews_needed": 1, "max_evidence_hours": 0}) == (
        "closed: yes → no, approvals required: 2 → 1, maximum age of evidence in hours: 24 → 0"
    )


def test_what_is_so_already_is_no_change(cast: Cast) -> None:
    count = AuditEvent.objects.count()
    services.change_environment(environment="prod", by=cast["admin"], is_closed=True, reviews_needed=1)
    assert AuditEvent.objects.count() == count


#: what a manager does to prod; each takes the right, and finds no environment of another name
MANAGING: dict[str, Callable[[Actor, str], Any]] = {
    "change": lambda by, name: services.change_environment(environment=name, by=by, reviews_needed=2),
    "add a rule": lambda by, name: services.add_review_rule(environment=name, by=by),
    "freeze": lambda by, name: services.add_freeze(
        environment=name, by=by, starts_at=timezone.now(), ends_at=timezone.now() + HOUR, reason="a holiday"
    ),
    "break the glass": lambda by, name: services.open_break_glass(environment=name, by=by, reason="the broker is down"),
}
#: what they do by number
BY_NUMBER: dict[str, Callable[[Actor, int], None]] = {
    "remove a rule": lambda by, number: services.remove_review_rule(rule_id=number, by=by),
    "end a freeze": lambda by, number: services.remove_freeze(freeze_id=number, by=by),
    "close break-glass": lambda by, number: services.close_break_glass(break_glass_id=number, by=by),
}


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize("who", ["reader", "steward", "approver", "stranger"])
def test_whoever_does_not_manage_the_registry_changes_no_rule(cast: Cast, who: str) -> None:
    count = AuditEvent.objects.count()
    for act in MANAGING.values():
        for name in ("prod", "no-such"):
            with pytest.raises(NotAllowed):
                act(cast[who], name)
    for remove in BY_NUMBER.values():
        with pytest.raises(NotAllowed):
            remove(cast[who], 1)
    assert AuditEvent.objects.count() == count


def test_what_is_not_there_is_said(cast: Cast) -> None:
    for act in MANAGING.values():
        with pytest.raises(RegistryNotFound, match="'no-such' is not an environment"):
            act(cast["admin"], "no-such")
    for remove in BY_NUMBER.values():
        with pytest.raises(EnvironmentPartNotFound, match=r"^(No .* 999|Break-glass 999 not) found\.$"):
            remove(cast["admin"], 999)


def test_a_freeze_and_break_glass_need_a_person(registries: None, system: Actor) -> None:
    for act in ("freeze", "break the glass"):
        with pytest.raises(NotSignedIn):
            MANAGING[act](system, "prod")


NOW = timezone.now()


@pytest.mark.parametrize(
    ("service", "values", "said"),
    [
        ("change_environment", {"reviews_needed": -1}, "0 to 20"),
        ("change_environment", {"reviews_needed": 21}, "0 to 20"),
        ("change_environment", {"reviews_needed": 0}, "at least one approval"),
        ("change_environment", {"environment": "dev", "is_closed": True, "reviews_needed": 0}, "at least one approval"),
        ("add_review_rule", {"subject_pattern": " "}, "subject_pattern must have"),
        ("add_review_rule", {"subject_pattern": "a" * 1025}, "subject_pattern must have"),
        ("add_review_rule", {"subject_pattern": "a\x00b"}, "can't be stored"),
        ("add_review_rule", {"verdict": "bad"}, "any, breaking"),
        ("add_review_rule", {"reviewers": "everybody"}, "owners, role, group"),
        ("add_review_rule", {"reviewers": "owners", "name": "x"}, "has no name"),
        ("add_review_rule", {"reviewers": "role", "name": "king"}, "reader, steward, approver, admin"),
        ("add_review_rule", {"reviewers": "group", "name": ""}, "name must have 1 to 150"),
        ("add_review_rule", {"reviewers": "group", "name": "\ud800"}, "can't be stored"),
        ("add_review_rule", {"reviewers": "group", "name": "nobody"}, "There is no group 'nobody'"),
        ("add_review_rule", {"count": 0}, "1 to 20"),
        ("add_review_rule", {"count": 21}, "1 to 20"),
        ("add_freeze", {"starts_at": NOW, "ends_at": NOW, "reason": "x"}, "must end after it starts"),
        ("add_freeze", {"starts_at": NOW - 2 * HOUR, "ends_at": NOW - HOUR, "reason": "x"}, "already ended"),
        ("add_freeze", {"starts_at": NOW, "ends_at": NOW + HOUR, "reason": "  "}, "reason must have"),
        ("add_freeze", {"starts_at": NOW, "ends_at": NOW + HOUR, "reason": "x" * 2001}, "reason must have"),
        ("add_freeze", {"starts_at": datetime(2026, 1, 1), "ends_at": NOW + HOUR, "reason": "x"}, "time zone"),
    ],
)
def test_what_cannot_be_a_rule_is_refused(cast: Cast, service: str, values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        getattr(services, service)(**{"environment": "prod", **values}, by=cast["admin"])


def test_review_rules_come_and_go_and_none_is_there_twice(cast: Cast) -> None:
    admin = cast["admin"]
    Group.objects.create(name="payments")
    numbers = [
        services.add_review_rule(environment="prod", by=admin),
        services.add_review_rule(
            environment="prod", by=admin, verdict="breaking", reviewers="role", name="admin", count=2
        ),
        services.add_review_rule(
            environment="prod", by=admin, subject_pattern="pay-*", reviewers="group", name="payments"
        ),
    ]
    assert [rule.sentence for rule in environment_info("prod").rules] == [
        "1 approval from the subject's owners for requests",
        "2 approvals from the admin role for breaking requests",
        "1 approval from the group payments for requests that match pay-*",
    ]
    with pytest.raises(WrongState, match="already has this rule"):
        services.add_review_rule(environment="prod", by=admin, count=3)
    change("prod", is_closed=False)
    services.remove_review_rule(rule_id=numbers[1], by=admin)
    assert [rule.id for rule in environment_info("prod").rules] == [numbers[0], numbers[2]]
    assert environment_info("staging").rules == ()


def test_a_freeze_is_shown_until_it_is_over(cast: Cast) -> None:
    admin, now = cast["admin"], timezone.now()
    later = services.add_freeze(
        environment="prod", by=admin, starts_at=now + HOUR, ends_at=now + 2 * HOUR, reason="a sale"
    )
    assert not environment_info("prod").is_frozen
    services.add_freeze(environment="prod", by=admin, starts_at=now, ends_at=now + HOUR, reason="a holiday")
    found = environment_info("prod")
    assert [(freeze.reason, freeze.is_now, freeze.made_by) for freeze in found.freezes] == [
        ("a holiday", True, "admin"),
        ("a sale", False, "admin"),
    ]
    assert found.is_frozen
    change("prod", is_closed=False)
    services.remove_freeze(freeze_id=later, by=admin)
    FreezeWindow.objects.update(starts_at=now - 2 * HOUR, ends_at=now - HOUR)
    assert environment_info("prod").freezes == ()


@pytest.mark.parametrize(
    ("constraint", "model", "values"),
    [
        ("freeze_ends_later", FreezeWindow, {"starts_at": NOW, "ends_at": NOW, "reason": "x"}),
        ("known_rule_verdict", ReviewRule, {"reviewers": "owners", "verdict": "odd"}),
        ("rule_names_its_reviewers", ReviewRule, {"reviewers": "role", "name": ""}),
        ("rule_names_its_reviewers", ReviewRule, {"reviewers": "owners", "name": "x"}),
        ("rule_asks_for_somebody", ReviewRule, {"reviewers": "owners", "count": 0}),
        ("break_glass_has_a_reason", BreakGlass, {"reason": "", "ends_at": NOW}),
        ("confirmed_by_and_at", BreakGlass, {"reason": "x", "ends_at": NOW, "confirmed_at": NOW}),
    ],
)
def test_the_database_refuses_it_too(cast: Cast, constraint: str, model: Any, values: dict[str, Any]) -> None:
    names = {field.name for field in model._meta.get_fields()}
    people = {name: cast["admin"].user_id for name in ("made_by", "opened_by") if name in names}
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        model.objects.create(
            environment=Environment.objects.get(registry__name="prod"),
            **values,
            **{f"{name}_id": number for name, number in people.items()},
        )


def test_to_open_a_closed_environment_takes_break_glass(cast: Cast) -> None:
    admin = cast["admin"]
    with pytest.raises(SecondPersonRequired, match="prod is closed, and this change loosens its rules"):
        services.change_environment(environment="prod", by=admin, is_closed=False)
    assert environment_info("prod").is_closed
    number = services.open_break_glass(environment="prod", by=admin, reason="we move house")
    services.change_environment(environment="prod", by=admin, is_closed=False)
    assert not environment_info("prod").is_closed
    event = AuditEvent.objects.filter(table="promotions_environment").latest("id")
    loosens = "LOOSENS A CLOSED ENVIRONMENT: "
    assert event.why.startswith(
        f"{loosens}break-glass {number}: we move house; change the environment prod: closed: yes → no"
    )


def test_environments_are_read_with_as_many_queries_however_much_there_is(cast: Cast) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            environment_infos()
        return len(captured)

    first = queries()
    admin, now = cast["admin"], timezone.now()
    for name in ("staging", "prod"):
        for count in range(3):
            services.add_review_rule(environment=name, by=admin, subject_pattern=f"{count}*")
            services.add_freeze(
                environment=name, by=admin, starts_at=now, ends_at=now + HOUR, reason=f"the {count}th sale"
            )
            BreakGlass.objects.create(
                environment=Environment.objects.get(registry__name=name),
                reason="x",
                opened_by_id=admin.user_id,
                ends_at=now,
            )
    assert queries() == first
    assert [len(info.break_glass) for info in environment_infos()] == [0, 3, 3]


def test_closing_waits_for_the_registration_that_runs(transactional_db: None, cast: Cast) -> None:
    """It found the environment open, so it is done before that is closed."""
    with beside() as submit:
        with transaction.atomic():
            register_version(registry="dev", subject=ORDERS, text=json.dumps(V1), by=cast["steward"])
            closing = submit(services.change_environment, environment="dev", by=cast["admin"], is_closed=True)
            wait_for_a_waiter()
            assert not environment_info("dev").is_closed
        closing.result()
    assert environment_info("dev").is_closed
    with pytest.raises(ReleaseRequired):
        register_version(registry="dev", subject=ORDERS, text=json.dumps(V2), by=cast["steward"])
    assert list_versions(get_registry("dev"), ORDERS) == [1]


def test_a_registration_that_waited_for_the_closing_is_refused(transactional_db: None, cast: Cast) -> None:
    with beside() as submit:
        with transaction.atomic():
            services.change_environment(environment="dev", by=cast["admin"], is_closed=True)
            asked = {"registry": "dev", "subject": ORDERS, "text": json.dumps(V1), "by": cast["steward"]}
            registration = submit(register_version, **asked)
            wait_for_a_waiter()
        with pytest.raises(ReleaseRequired):
            registration.result()


def send(client: Client, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status and body of a call of the product's API."""
    answer = client.generic(method, f"/api/v1{path}", json.dumps(body) if body is not None else "", "application/json")
    return answer.status_code, json.loads(answer.content or "null")


def test_over_the_api_from_the_rules_to_a_confirmed_break_glass(
    api: Callable[[str], Client], system: Actor, cast: Cast
) -> None:
    fill(system)
    admin, approver = api("admin"), api("approver")
    assert [row["name"] for row in send(approver, "GET", "/environments")[1]] == ["dev", "staging", "prod"]
    assert send(admin, "PATCH", "/environments/prod", {"reviews_needed": 2})[1]["reviews_needed"] == 2
    short = send(admin, "PATCH", "/environments/prod", {"reviews_needed": 20})[1]["warnings"]
    assert short == ["Requests need 20 approvals, but only 3 people may review all of prod."]
    Environment.objects.filter(registry__name="prod").update(reviews_needed=2)
    status, refused = send(admin, "PATCH", "/environments/prod", {"is_closed": False})
    assert (status, refused["error"]) == (409, "SecondPersonRequired")
    assert send(admin, "PATCH", "/environments/prod", {"reviews_needed": 99})[0] == 422
    status, rule = send(admin, "POST", "/environments/prod/rules", {"reviewers": "role", "name": "admin"})
    assert (status, rule["warnings"]) == (201, [])
    Group.objects.create(name="empty")
    status, unmet = send(admin, "POST", "/environments/prod/rules", {"reviewers": "group", "name": "empty"})
    said = "A rule needs 1 approval from the group empty for requests, but nobody can give it."
    assert (status, unmet["warnings"]) == (201, [said])
    page = signed_in("admin")
    assert said in page.get("/ui/environments/prod").content.decode()
    ReviewRule.objects.filter(pk=unmet["rule_id"]).delete()
    wanted = {"subject_pattern": "shop-*", "reviewers": "owners", "count": 2}
    status, unmet = send(admin, "POST", "/environments/prod/rules", wanted)
    said = "A rule needs 2 approvals from the subject's owners for requests that match shop-*, but"
    assert (status, unmet["warnings"]) == (201, [f"{said} nobody can give it."])
    ReviewRule.objects.filter(pk=unmet["rule_id"]).delete()
    for pattern, person in (("shop-orders-*", "approver"), ("billing-*", "admin")):
        Ownership.objects.create(subject_pattern=pattern, user=User.objects.get(username=person))
    status, unmet = send(admin, "POST", "/environments/prod/rules", wanted)
    assert unmet["warnings"] == [f"{said} only 1 person can give it."], "the owner of other subjects doesn't count"
    ReviewRule.objects.filter(pk=unmet["rule_id"]).delete()
    span = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2126-01-01T00:00:00Z", "reason": "for ever"}
    status, freeze = send(admin, "POST", "/environments/prod/freezes", span)
    assert status == 201
    shown = send(approver, "GET", "/environments/prod")[1]
    assert ([row["id"] for row in shown["rules"]], shown["is_frozen"]) == ([rule["rule_id"]], True)
    assert send(admin, "DELETE", f"/review-rules/{rule['rule_id']}")[0] == 409
    assert send(admin, "DELETE", f"/freezes/{freeze['freeze_id']}")[0] == 409
    change("prod", is_closed=False)
    assert send(admin, "DELETE", f"/review-rules/{rule['rule_id']}")[0] == 204
    assert send(admin, "DELETE", f"/freezes/{freeze['freeze_id']}")[0] == 204
    change("prod", is_closed=True)
    opening = {"reason": "the broker is down", "minutes": 5}
    status, glass = send(admin, "POST", "/environments/prod/break-glass", opening)
    assert status == 201
    assert send(admin, "POST", "/environments/prod/break-glass", opening)[0] == 409
    one = f"/break-glass/{glass['break_glass_id']}"
    assert send(approver, "POST", f"{one}/confirm", {"comment": "right"})[0] == 409
    assert send(approver, "POST", f"{one}/close")[0] == 403
    assert send(admin, "POST", f"{one}/close")[0] == 204
    assert send(admin, "POST", f"{one}/confirm", {})[0] == 403
    assert send(approver, "POST", f"{one}/confirm", {"comment": "right"})[0] == 204
    (row,) = send(approver, "GET", "/environments/prod/break-glass")[1]
    assert (row["confirmed_by"], row["comment"], row["is_confirmed"], row["is_red"]) == (
        "approver",
        "right",
        True,
        False,
    )
    assert send(approver, "GET", "/environments/prod")[1]["break_glass"] == []


@pytest.mark.requirement("CARD-4")
def test_over_the_api_nobody_learns_what_is_not_theirs(api: Callable[[str], Client], cast: Cast) -> None:
    stranger = api("stranger")
    for path in ("/environments", "/environments/prod", "/environments/no-such", "/environments/prod/break-glass"):
        assert send(stranger, "GET", path)[0] == 403
    assert send(api("reader"), "GET", "/environments/no-such")[0] == 404
    assert send(api("reader"), "GET", "/environments/no-such/break-glass")[0] == 404


def test_every_error_of_it_has_words_for_people(cast: Cast) -> None:
    """A message that names the environment or the number, and no bare class."""
    acts: list[Callable[[], Any]] = [
        lambda: services.change_environment(environment="prod", by=cast["admin"], is_closed=False),
        lambda: services.open_break_glass(environment="dev", by=cast["admin"], reason="x"),
        lambda: services.remove_freeze(freeze_id=7, by=cast["admin"]),
    ]
    for act, name in zip(acts, ("prod", "dev", "7"), strict=True):
        with pytest.raises(SchemadeskError, match=name):
            act()
