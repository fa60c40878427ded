"""People of declared clients that don't go on acknowledge a plan: who may, of which plan, and what waits for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, TokenLimit
from registry.access.selectors import actor_of_user, people_named
from registry.audit.models import AuditEvent
from registry.errors import (
    ClientNotFound,
    InvalidInput,
    NotAllowed,
    NotSignedIn,
    PlanChanged,
    PlanHashRequired,
    SecondPersonRequired,
    WrongState,
)
from registry.notifications.models import InboxEntry
from registry.promotions import selectors, services
from registry.promotions.apply.execution import apply_due
from registry.promotions.board.readiness import can_promote
from registry.promotions.checks.consumers import CONSUMERS, AffectedClient, acknowledged_check, with_rule
from registry.promotions.models import Acknowledgement, EnvironmentChange, PromotionRequest
from registry.promotions.requests.evidence_pack import evidence_of
from registry.promotions.reviews.affected_consumers import consumers_of, pending_acknowledgements
from registry.subjects.models import Registry
from registry.subjects.usage.clients import clients_of, declare_client, withdraw_client
from tests.promotions.factories import ORDERS, V1, Cast, approve_shown, ask, change, register, state_of

pytestmark = pytest.mark.requirement("CARD-4")

#: reads what V1 wrote, and is read by nobody who has V1
NARROW = {**V1, "fields": [{"name": "note", "type": ["null", "string"], "default": None}]}
HOSTILE = '<img src=x onerror="alert(1)">'
SUBJECT = "orders-value"


@pytest.fixture
def number(cast: Cast) -> int:
    """A request in review for staging that hurts billing; the reader is in the group that its contact names."""
    Group.objects.create(name="Payments").user_set.add(User.objects.get(username="reader"))
    register(V1, cast["admin"], registry="staging")
    declare(cast, "billing", contact="payments, #billing-help")
    register(NARROW, cast["steward"])
    return ask(cast, target="staging")


def declare(cast: Cast, name: str, **more: Any) -> None:
    declare_client(registry="staging", subject=ORDERS, name=name, version=1, by=cast["admin"], **more)


def say(cast: Cast, number: int, who: str = "reader", client: str = "billing", **more: str) -> bool:
    more.setdefault("plan_hash", hash_of(number))
    return services.acknowledge(request_id=number, by=cast[who], subject=SUBJECT, client=client, **more)


def check_of(number: int) -> dict[str, Any]:
    (found,) = [check for check in selectors.get_request(number).checks if check["code"] == CONSUMERS]
    return found


def hash_of(number: int) -> str:
    return selectors.get_request(number).plan_hash


def told(cast: Cast, who: str, event: str) -> int:
    return InboxEntry.objects.filter(user_id=cast[who].user_id, notice__event=event).count()


A, B = AffectedClient("a", "one"), AffectedClient("b", "two")


@pytest.mark.parametrize(
    ("hurt", "given", "voided", "blocks", "verdict", "said"),
    [
        ([], [], [], True, None, ""),
        ([A], [], [], False, "warn", "0 of 1 acknowledged. Not yet: one of a."),
        ([A], [], [], True, "fail", "0 of 1 acknowledged. Not yet: one of a."),
        ([A], [A], [], True, "pass", "Acknowledged for one of a."),
        ([A, B], [A], [], False, "warn", "1 of 2 acknowledged. Not yet: two of b."),
        ([A, B], [], [A], True, "fail", "Not yet: one of a, two of b. 1 acknowledgement of an earlier plan"),
        ([A, B], [A, B], [A], True, "pass", "Acknowledged for one of a, two of b."),
        ([AffectedClient("a", str(n)) for n in range(8)], [], [], False, "warn", "4 of a and 3 more."),
    ],
)
def test_the_check_counts_those_who_know(
    hurt: list[AffectedClient],
    given: list[AffectedClient],
    voided: list[AffectedClient],
    blocks: bool,
    verdict: str | None,
    said: str,
) -> None:
    found = acknowledged_check(hurt, given, voided, blocks=blocks)
    assert [check.verdict for check in found] == ([verdict] if verdict else [])
    if found:
        assert said in found[0].sentence
        turned = with_rule({"checks": [found[0].to_dict()]}, blocks=not blocks)["checks"][0]
        other = {"warn": "fail", "fail": "warn", "pass": "pass"}[found[0].verdict]
        assert (turned["verdict"], turned["overridable"]) == (other, other == "fail")


@pytest.mark.parametrize(
    ("contact", "names"),
    [
        ("", []),
        ("#billing", []),
        ("reader", ["reader"]),
        ("@Reader; approver", ["approver", "reader"]),
        ("mailto:Pay@Shop.example", ["steward"]),
        ("payments", ["approver", "reader"]),
        ("Payments, reader, nobody", ["approver", "reader"]),
        ("stranger", []),
        ("\x7f,,;", []),
    ],
)
def test_a_contact_names_people_and_groups(cast: Cast, contact: str, names: list[str]) -> None:
    group = Group.objects.create(name="Payments")
    group.user_set.add(*User.objects.filter(username__in=["reader", "approver"]))
    User.objects.filter(username="steward").update(email="pay@shop.example")
    User.objects.filter(username="stranger").update(is_active=False)
    assert [one.username for one in people_named([contact])[contact]] == names


def test_whoever_speaks_for_it_acknowledges_once(cast: Cast, number: int) -> None:
    assert check_of(number)["verdict"] == "warn" and check_of(number)["concerned"] == ["billing"]
    assert told(cast, "reader", "promotion.affects") == 1
    assert say(cast, number, note="moved on Monday", plan_hash=hash_of(number))
    assert not say(cast, number), "a second click has no effect"
    assert check_of(number)["verdict"] == "pass"
    (said,) = selectors.get_request(number).acknowledgements
    assert (said.client, said.person, said.note, said.counts) == ("billing", "reader", "moved on Monday", True)
    assert told(cast, "steward", "promotion.acknowledged") == 1
    event = AuditEvent.objects.get(table="promotions_acknowledgement")
    assert event.why == f"acknowledge request {number} for billing of orders-value"
    pack = evidence_of(number, cast["admin"])
    assert [item["client"] for item in pack["acknowledgements"]] == ["billing"]
    assert "promotions_acknowledgement" in {item["table"] for item in pack["audit"]["events"]}


def test_an_acknowledgement_leaves_the_plan_and_its_approvals_alone(cast: Cast, number: int) -> None:
    before = hash_of(number)
    services.approve(request_id=number, by=cast["approver"], plan_hash=before)
    say(cast, number)
    info = selectors.get_request(number)
    assert (info.state, info.plan_hash) == ("approved", before)


@pytest.mark.parametrize("who", ["steward", "steward2", "approver", "admin"])
def test_nobody_else_speaks_for_a_client_whose_people_are_known(cast: Cast, number: int, who: str) -> None:
    with pytest.raises(NotAllowed, match="Only contacts of billing can acknowledge it: reader"):
        say(cast, number, who)
    assert not Acknowledgement.objects.exists()


@pytest.mark.parametrize(
    ("contact", "who"), [("#billing", "approver"), ("nobody@shop.example", "admin"), ("steward", "approver")]
)
def test_where_nobody_is_known_a_reviewer_does(cast: Cast, number: int, contact: str, who: str) -> None:
    """As for a contact that names the requester alone, who never speaks for those whom the request hurts."""
    declare(cast, "billing", contact=contact)
    for other in ("reader", "steward"):
        with pytest.raises(NotAllowed):
            say(cast, number, other)
    assert say(cast, number, who)


def test_the_requester_acknowledges_where_they_may_approve_too(cast: Cast, number: int) -> None:
    declare(cast, "billing", contact="steward")
    change("staging", own_approval_allowed=True)
    assert say(cast, number, "steward")


def test_the_requesters_other_account_is_the_requester(cast: Cast, number: int) -> None:
    User.objects.filter(username__in=["steward", "reader"]).update(email="s@shop.example")
    (consumer,) = consumers_of(selectors.get_request(number))
    assert not consumer.people
    with pytest.raises(NotAllowed):
        say(cast, number)


def test_what_one_may_not_read_one_does_not_acknowledge(cast: Cast, number: int) -> None:
    RoleGrant.objects.filter(user__username="reader").update(registry="dev")
    (consumer,) = consumers_of(selectors.get_request(number))
    assert not consumer.people, "so that a reviewer can"
    reader = actor_of_user(User.objects.get(username="reader"), channel="ui")
    with pytest.raises(Exception, match="not found"):
        services.acknowledge(request_id=number, by=reader, subject=SUBJECT, client="billing", plan_hash=hash_of(number))
    with pytest.raises(NotSignedIn):
        services.acknowledge(
            request_id=number, by=Actor("anonymous", "ui"), subject=SUBJECT, client="billing", plan_hash=hash_of(number)
        )


def test_a_token_that_reads_acknowledges_nothing(cast: Cast, number: int) -> None:
    limited = {**cast, "reader": replace(cast["reader"], limit=TokenLimit("read"))}
    with pytest.raises(NotAllowed, match="scope is read"):
        say(limited, number)
    assert say({**cast, "reader": replace(cast["reader"], limit=TokenLimit("promote"))}, number)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"client": "ledger"}, ClientNotFound),
        ({"subject": "other-value"}, ClientNotFound),
        ({"note": "x" * 2001}, InvalidInput),
        ({"note": "a\0b"}, InvalidInput),
        ({"plan_hash": "0" * 64}, PlanChanged),
        ({"plan_hash": ""}, PlanHashRequired),
    ],
)
def test_what_the_plan_does_not_say_is_refused(
    cast: Cast, number: int, given: dict[str, str], error: type[Exception]
) -> None:
    values = {"subject": SUBJECT, "client": "billing", "plan_hash": hash_of(number), **given}
    with pytest.raises(error):
        services.acknowledge(request_id=number, by=cast["reader"], **values)
    assert not Acknowledgement.objects.exists()


def test_when_the_target_moves_it_no_longer_counts_and_comes_back_with_the_plan(cast: Cast, number: int) -> None:
    say(cast, number)
    register({**V1, "doc": "moved"}, cast["admin"], registry="staging")
    read = hash_of(number)
    services.recheck(request_id=number, by=cast["steward"])
    with pytest.raises(PlanChanged):
        say(cast, number, plan_hash=read)
    info = selectors.get_request(number)
    assert [said.counts for said in info.acknowledgements] == [False]
    assert "1 acknowledgement of an earlier plan no longer counts" in check_of(number)["sentence"]
    assert told(cast, "reader", "promotion.affects") == 2, "whoever spoke for it is asked anew"
    assert told(cast, "reader", "promotion.voided") == 1
    assert say(cast, number, plan_hash=hash_of(number))
    assert [said.counts for said in selectors.get_request(number).acknowledgements] == [False, True]


def test_a_client_that_is_declared_later_is_asked_without_voiding_anything(cast: Cast, number: int) -> None:
    say(cast, number)
    approve_shown(request_id=number, by=cast["approver"])
    declare(cast, "ledger", contact="approver2")
    services.recheck(request_id=number, by=cast["steward"])
    assert selectors.get_request(number).state == "approved"
    assert check_of(number)["sentence"] == "1 of 2 acknowledged. Not yet: ledger of orders-value."
    assert (told(cast, "approver2", "promotion.affects"), told(cast, "reader", "promotion.affects")) == (1, 1)


@pytest.mark.parametrize("channel", ["apply", "scheduled", "api"])
def test_it_stops_the_release_at_every_channel_where_the_rule_says_so(
    cast: Cast, number: int, channel: str, api: Callable[[str], Client]
) -> None:
    services.change_environment(environment="staging", by=cast["admin"], clients_block=True)
    services.recheck(request_id=number, by=cast["steward"])
    assert services.approve(request_id=number, by=cast["approver"], plan_hash=hash_of(number)) == "approved"
    if channel == "apply":
        with pytest.raises(WrongState, match="Not yet: billing of orders-value"):
            services.apply(request_id=number, by=cast["approver"])
    elif channel == "api":
        answer = api("approver").post(f"/api/v1/promotions/{number}/apply", content_type="application/json")
        assert answer.status_code == 409, answer.content
        shown = api("approver").get(f"/api/v1/promotions/{number}").json()
        assert [(item["code"], item["url"]) for item in shown["reasons"]["apply"]] == [
            (CONSUMERS, f"/ui/promotions/{number}#consumers")
        ]
    else:
        services.schedule(request_id=number, by=cast["approver"], at=timezone.now() + timedelta(seconds=60))
        PromotionRequest.objects.filter(pk=number).update(apply_at=timezone.now() - timedelta(seconds=1))
        assert apply_due(request_id=number) == "approved"
        assert "Not yet: billing" in selectors.get_request(number).failure
    assert can_promote(subject=ORDERS, source="dev", target="staging", by=cast["steward"]).reasons[0].code == CONSUMERS
    say(cast, number)
    assert can_promote(subject=ORDERS, source="dev", target="staging", by=cast["steward"]).verdict == "yes"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_a_reviewer_may_pass_over_it_with_a_reason(cast: Cast, number: int) -> None:
    change("staging", clients_block=True)
    services.recheck(request_id=number, by=cast["steward"])
    approve_shown(request_id=number, by=cast["approver"], override="they are on holiday")
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_elsewhere_it_is_said_and_stops_nothing(cast: Cast, number: int) -> None:
    approve_shown(request_id=number, by=cast["approver"])
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    with pytest.raises(WrongState):
        say(cast, number)


@pytest.fixture
def approved(cast: Cast) -> int:
    """An approved request for a closed environment that hurts billing, whose acknowledgement it requires."""
    register(V1, cast["admin"], registry="staging")
    declare_closed("reader", cast, contact="reader")
    change("staging", is_closed=True, clients_block=True)
    register(NARROW, cast["steward"])
    number = ask(cast, target="staging")
    approve_shown(request_id=number, by=cast["approver"], comment="known")
    return number


def declare_closed(who: str, cast: Cast, **more: Any) -> None:
    declare_client(registry="staging", subject=ORDERS, name="billing", version=1, by=cast[who], **more)


@pytest.mark.parametrize("who", ["steward", "steward2", "reader2", "admin"])
def test_nobody_lifts_the_block_of_a_closed_environment_alone(
    cast: Cast, approved: int, person: Callable[[str], Actor], who: str
) -> None:
    person("reader2")
    RoleGrant.objects.get_or_create(user=User.objects.get(username="reader2"), role="reader")
    actor = actor_of_user(User.objects.get(username=who), channel="product")
    refusal = NotAllowed if who == "reader2" else SecondPersonRequired
    with pytest.raises(refusal):
        withdraw_client(registry="staging", subject=ORDERS, name="billing", by=actor)
    for changed in ({"contact": who}, {"contact": "reader", "writes": True}):
        with pytest.raises(refusal):
            declare_client(registry="staging", subject=ORDERS, name="billing", by=actor, **{"version": 1, **changed})
    (found,) = clients_of(Registry.objects.get(name="staging"), ORDERS)
    assert (found.contact, found.writes, found.declared_by) == ("reader", False, "reader")
    assert state_of(approved) == "approved"


def test_with_a_second_person_it_is_withdrawn_and_voids_the_approval(cast: Cast, approved: int) -> None:
    values = {"subject": SUBJECT, "name": "billing"}
    number = services.request_environment_change(
        environment="staging", action="withdraw_client", values=values, reason="it was shut down", by=cast["admin"]
    )
    assert "which reader declared (declaration: reads version 1; contact: reader)" in (
        EnvironmentChange.objects.get().sentence
    )
    services.approve_environment_change(change_id=number, by=cast["approver"])
    with pytest.raises(PlanChanged, match="approver withdrew the affected client billing of orders-value at 20"):
        services.apply(request_id=approved, by=cast["approver"])
    assert state_of(approved) == "in review"
    assert "withdrew the affected client billing" in selectors.get_request(approved).moved


def test_its_declarer_withdraws_or_changes_it_alone_and_voids_the_approval(cast: Cast, approved: int) -> None:
    declare_closed("reader", cast, contact="approver2")
    with pytest.raises(PlanChanged, match="reader changed the affected client billing"):
        services.apply(request_id=approved, by=cast["approver"])
    approve_shown(request_id=approved, by=cast["approver"], comment="known")
    withdraw_client(registry="staging", subject=ORDERS, name="billing", by=cast["approver2"])
    with pytest.raises(PlanChanged, match="approver2 withdrew the affected client billing"):
        services.apply(request_id=approved, by=cast["approver"])


@pytest.mark.parametrize("channel", ["api", "page"])
def test_with_a_second_person_a_steward_replaces_anothers_declaration(
    cast: Cast, approved: int, api: Callable[[str], Client], look: Callable[[str], Client], channel: str
) -> None:
    declaration = {"writes": True, "fields": ["id"], "contact": "ops"}
    if channel == "api":
        client, kind = api("steward"), "application/json"
        url = f"/api/v1/registries/staging/subjects/{SUBJECT}/clients/billing"
        refused = client.put(url, json.dumps(declaration), content_type=kind)
        assert (refused.status_code, refused.json()["error"]) == (409, "SecondPersonRequired")
        wanted = {name: refused.json()["details"][name] for name in ("action", "values")}
        sent = json.dumps({**wanted, "reason": "it has moved"})
        assert client.post("/api/v1/environments/staging/changes", sent, content_type=kind).status_code == 201
    else:
        client, url = look("steward"), f"/ui/registries/staging/subjects/{SUBJECT}/clients"
        given = {"name": "billing", "does": "both", "fields": "id", "contact": "ops"}
        page = client.post(url, given)
        assert page.status_code == 409 and "This change needs a second person" in page.content.decode()
        wanted = page.context["page"].loosening.initial
        answer = client.post("/ui/environments/staging/changes", {**wanted, "reason": "it has moved"})
        assert answer.status_code == 302
    (row,) = EnvironmentChange.objects.all()
    assert row.sentence == (
        "change the client billing of orders-value, which reader declared, to: reads and writes newest version, fields id;"
        " contact: ops (present declaration: reads version 1; present contact: reader)"
    )
    services.approve_environment_change(change_id=row.pk, by=cast["approver"])
    (found,) = clients_of(Registry.objects.get(name="staging"), ORDERS)
    assert (found.writes, found.fields, found.contact, found.declared_by) == (True, ("id",), "ops", "reader")


@pytest.mark.parametrize("values", [{"fields": [1]}, {"version": None}, {"reads": "yes"}])
def test_a_declaration_of_other_types_is_not_requested(cast: Cast, approved: int, values: dict[str, Any]) -> None:
    values = {"subject": SUBJECT, "name": "billing", **values}
    with pytest.raises(InvalidInput, match="values"):
        services.request_environment_change(
            environment="staging", action="declare_client", values=values, reason="new", by=cast["steward"]
        )


@pytest.mark.parametrize(
    ("name", "given", "verb"),
    [
        ("ledger", {}, "declared"),
        ("billing", {"contact": "approver2"}, "changed"),
        ("billing", {"contact": "reader", "fields": ["id"]}, "changed"),
    ],
)
def test_an_approval_in_an_open_environment_binds_to_the_affected_clients_too(
    cast: Cast, number: int, name: str, given: dict[str, Any], verb: str
) -> None:
    change("staging", clients_block=True)
    services.recheck(request_id=number, by=cast["steward"])
    approve_shown(request_id=number, by=cast["approver"])
    declare(cast, name, **given)
    with pytest.raises(PlanChanged, match=f"admin {verb} the affected client {name} of orders-value at 20"):
        services.apply(request_id=number, by=cast["approver"])
    assert state_of(number) == "in review"


def test_what_the_approver_of_a_withdrawal_read_is_what_is_withdrawn(cast: Cast, approved: int) -> None:
    values = {"subject": SUBJECT, "name": "billing"}
    number = services.request_environment_change(
        environment="staging", action="withdraw_client", values=values, reason="it was shut down", by=cast["admin"]
    )
    declare_closed("reader", cast, contact="approver2")
    with pytest.raises(WrongState, match="contact: approver2 was added, reader was removed"):
        services.approve_environment_change(change_id=number, by=cast["approver"])


@pytest.mark.parametrize(
    ("constraint", "statement"),
    [
        (
            "one_acknowledgement_a_client_and_plan",
            "INSERT INTO promotions_acknowledgement (request_id, subject, client, person_id, note, plan_hash, at)"
            " SELECT request_id, subject, client, person_id, 'again', plan_hash, now() FROM promotions_acknowledgement",
        ),
        ("acknowledgement_names_its_client", "UPDATE promotions_acknowledgement SET client = ''"),
        ("acknowledgement_names_its_client", "UPDATE promotions_acknowledgement SET plan_hash = ''"),
    ],
)
def test_the_database_holds_one_of_a_client_and_plan(cast: Cast, number: int, constraint: str, statement: str) -> None:
    say(cast, number)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_the_page_lists_them_and_takes_the_word(cast: Cast, number: int, look: Callable[[str], Client]) -> None:
    declare(cast, "ledger", contact=HOSTILE)
    services.recheck(request_id=number, by=cast["steward"])
    page = look("reader").get(f"/ui/promotions/{number}").content.decode()
    assert "client acknowledgements" in page and "0 of 2 acknowledged" in page and HOSTILE not in page
    assert "Contacts: reader" in " ".join(re.sub("<[^>]+>", "", page).split()) and "so a reviewer must" in page
    (plan_hash,) = set(re.findall(r'name="plan_hash" value="([0-9a-f]{64})"', page))
    sent = {"subject": SUBJECT, "client": "billing", "note": HOSTILE, "plan_hash": plan_hash}
    answer = look("reader").post(f"/ui/promotions/{number}/acknowledge", sent)
    assert answer.headers["Location"] == f"/ui/promotions/{number}#consumers"
    page = look("approver").get(f"/ui/promotions/{number}").content.decode()
    assert "1 of 2 acknowledged" in page and HOSTILE not in page
    assert "Acknowledged for billing of orders-value" in page, "it stands in the history"
    assert page.count('name="client"') == 1 and 'value="ledger"' in page
    assert "can acknowledge it" not in page
    other = look("steward2").get(f"/ui/promotions/{number}").content.decode()
    assert 'name="client"' not in other and "to review promotions" in other


def test_the_api_takes_and_lists_them(cast: Cast, number: int, api: Callable[[str], Client]) -> None:
    url, sent = (
        f"/api/v1/promotions/{number}/acknowledgements",
        json.dumps({"subject": SUBJECT, "client": "billing", "plan_hash": hash_of(number)}),
    )
    assert api("steward2").post(url, sent, content_type="application/json").status_code == 403
    answers = [api("reader").post(url, sent, content_type="application/json") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    (said,) = answers[1].json()["acknowledgements"]
    assert (said["client"], said["person"], said["counts"]) == ("billing", "reader", True)


def back(cast: Cast, number: int, who: str = "reader", client: str = "billing") -> bool:
    return services.withdraw_acknowledgement(request_id=number, by=cast[who], subject=SUBJECT, client=client)


def waiting(cast: Cast, who: str = "reader") -> list[tuple[int, list[str]]]:
    return [
        (number, [one.client for one in clients]) for number, clients in pending_acknowledgements(cast[who]).items()
    ]


@pytest.mark.parametrize("state", ["in review", "approved", "scheduled"])
def test_whoever_acknowledged_takes_it_back_while_it_is_planned(cast: Cast, number: int, state: str) -> None:
    change("staging", clients_block=True)
    services.recheck(request_id=number, by=cast["steward"])
    say(cast, number)
    if state != "in review":
        approve_shown(request_id=number, by=cast["approver"])
    if state == "scheduled":
        services.schedule(request_id=number, by=cast["approver"], at=timezone.now() + timedelta(hours=1))
    # also where their name is no longer in the contact: it was their word
    declare(cast, "billing", contact="approver2")
    assert back(cast, number)
    assert not back(cast, number), "a second click has no effect"
    assert not Acknowledgement.objects.exists() and check_of(number)["verdict"] == "fail"
    assert selectors.get_request(number).state == state, "what was approved stays approved; its release stops"
    assert told(cast, "steward", "promotion.taken_back") == 1
    assert told(cast, "approver", "promotion.taken_back") == (state != "in review"), "they approved what it said"
    events = AuditEvent.objects.filter(
        why=f"take back the acknowledgement of request {number} for billing of orders-value"
    )
    assert sorted((event.table, event.operation) for event in events) == [
        ("promotions_acknowledgement", "DELETE"),
        ("promotions_promotionrequest", "UPDATE"),
    ]
    services.recheck(request_id=number, by=cast["steward"])
    assert say(cast, number, "approver2"), "and it may be said again"


@pytest.mark.parametrize("who", ["steward", "approver", "admin"])
def test_nobody_takes_back_what_another_said(cast: Cast, number: int, who: str) -> None:
    say(cast, number)
    with pytest.raises(NotAllowed, match="Only reader, who acknowledged it"):
        back(cast, number, who)
    limited = {**cast, "reader": replace(cast["reader"], limit=TokenLimit("read"))}
    with pytest.raises(NotAllowed, match="scope is read"):
        back(limited, number)
    assert check_of(number)["verdict"] == "pass"


def test_what_is_applied_or_of_an_earlier_plan_is_not_taken_back(cast: Cast, number: int) -> None:
    say(cast, number)
    register({**V1, "doc": "moved"}, cast["admin"], registry="staging")
    services.recheck(request_id=number, by=cast["steward"])
    assert not back(cast, number) and Acknowledgement.objects.count() == 1, (
        "that one counts for nothing, and is history"
    )
    say(cast, number)
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    with pytest.raises(WrongState):
        back(cast, number)


def test_home_lists_what_waits_for_ones_word(cast: Cast, number: int) -> None:
    declare(cast, "ledger", contact="steward, reader")
    services.recheck(request_id=number, by=cast["steward"])
    assert waiting(cast) == [(number, ["billing", "ledger"])]
    assert [waiting(cast, who) for who in ("steward", "approver", "stranger")] == [[], [], []], (
        "asked for it; not named"
    )
    approve_shown(request_id=number, by=cast["approver"])
    say(cast, number)
    assert waiting(cast) == [(number, ["ledger"])], "an approved one waits as well"
    back(cast, number)
    assert waiting(cast) == [(number, ["billing", "ledger"])]
    User.objects.filter(username__in=["steward", "reader"]).update(email="s@shop.example")
    assert waiting(cast) == [], "who asked for it under another name"
    change("staging", own_approval_allowed=True)
    assert waiting(cast, "steward") == [(number, ["ledger"])]
    services.withdraw(request_id=number, by=cast["steward"])
    assert waiting(cast, "steward") == []


def test_home_lists_nothing_that_one_may_not_read(cast: Cast, number: int) -> None:
    RoleGrant.objects.filter(user__username="reader").update(registry="dev")
    reader = actor_of_user(User.objects.get(username="reader"), channel="ui")
    assert pending_acknowledgements(reader) == pending_acknowledgements(Actor("anonymous", "ui")) == {}


@pytest.mark.parametrize(("client", "queries"), [("billing", 6), ("", 1)])
def test_home_costs_one_query_where_nothing_waits(
    cast: Cast, number: int, client: str, queries: int, django_assert_max_num_queries: Any
) -> None:
    if not client:
        services.withdraw(request_id=number, by=cast["steward"])
    with django_assert_max_num_queries(queries):
        assert bool(waiting(cast)) is bool(client)


def test_home_and_the_page_offer_it(cast: Cast, number: int, look: Callable[[str], Client]) -> None:
    declare(cast, HOSTILE, contact="reader")
    services.recheck(request_id=number, by=cast["steward"])
    page = look("reader").get("/ui/").content.decode()
    assert "Your clients are affected" in page and f"/ui/promotions/{number}#consumers" in page and HOSTILE not in page
    assert "Your clients are affected" not in look("approver").get("/ui/").content.decode()
    say(cast, number)
    place = f"/ui/promotions/{number}/acknowledge/take-back"
    assert place not in look("approver").get(f"/ui/promotions/{number}").content.decode()
    assert place in look("reader").get(f"/ui/promotions/{number}").content.decode()
    answer = look("reader").post(place, {"subject": SUBJECT, "client": "billing", "plan_hash": hash_of(number)})
    assert answer.headers["Location"] == f"/ui/promotions/{number}#consumers"
    page = look("reader").get(f"/ui/promotions/{number}").content.decode()
    assert "An acknowledgement was withdrawn" in page and place not in page


def test_the_api_takes_it_back(cast: Cast, number: int, api: Callable[[str], Client]) -> None:
    say(cast, number)
    url = f"/api/v1/promotions/{number}/acknowledgements?subject={SUBJECT}&client=billing"
    assert [api(who).delete(url).status_code for who in ("approver", "stranger", "reader", "reader")] == [
        403,
        403,
        204,
        204,
    ]
    assert api("reader").delete(url.split("?")[0]).status_code == 422
    assert not Acknowledgement.objects.exists()
