"""Requests with several items, drafts of requests, proposed texts, and who may ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.access.models import RoleGrant, User
from registry.access.selectors import actor_of_user
from registry.errors import (
    InvalidInput,
    InvalidReference,
    InvalidSchema,
    NotAllowed,
    RequestNotFound,
    SchemaTooLarge,
    SubjectNotFound,
    VersionNotFound,
    WrongState,
)
from registry.formats.base import Reference
from registry.notifications.models import Notice
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest, RequestItem
from registry.promotions.requests.submission import MAX_ITEMS
from registry.subjects.selectors import get_version, list_versions, own_config
from registry.subjects.services import delete_version, set_config
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
    state_of,
)

pytestmark = pytest.mark.requirement("CARD-4")
CUSTOMER = {**V1, "name": "Customer"}


def two(cast: Cast, **more: Any) -> int:
    """A request for both subjects."""
    register(V1, cast["steward"])
    register(CUSTOMER, cast["steward"], subject=CUSTOMERS)
    items = [(ORDERS, 1), (CUSTOMERS, "latest")]
    return services.request_promotion(source="dev", target="prod", items=items, by=cast["steward"], **more)


def propose(cast: Cast, text: str = json.dumps(V1), by: str = "steward", **more: Any) -> int:
    return services.propose_version(**{"target": "prod", "subject": ORDERS, **more}, text=text, by=cast[by])


# -- sets -------------------------------------------------------------------------------------------------------------


def test_a_set_is_one_plan_and_is_applied_as_one(cast: Cast) -> None:
    number = two(cast)
    shown = selectors.get_request(number)
    notice = Notice.objects.get(event="promotion.requested")
    assert notice.text.startswith(f"Request {number} (orders-value version 1 and 1 more to prod): ")
    assert [(item.subject, item.version) for item in shown.items] == [(ORDERS, 1), (CUSTOMERS, 1)]
    assert {step["subject"] for step in shown.plan["steps"]} == {"orders-value", "customers-value"}
    services.approve(request_id=number, by=cast["approver"], plan_hash=shown.plan_hash)
    services.apply(request_id=number, by=cast["approver"])
    for subject in (ORDERS, CUSTOMERS):
        assert list_versions(get_registry("prod"), subject) == [1]
    assert {release.subject for release in selectors.get_request(number).releases} == {ORDERS, CUSTOMERS}


def test_what_a_set_asks_for_is_asked_for_once(cast: Cast) -> None:
    two(cast)
    for more in ({"subject": CUSTOMERS}, {"items": [(CUSTOMERS, 1)]}):
        with pytest.raises(WrongState, match="already open"):
            ask(cast, by="steward2", **more)
    assert PromotionRequest.objects.count() == 1, "the refused ones left nothing"


@pytest.mark.parametrize("end", ["withdraw", "reject", "apply"])
def test_what_is_closed_holds_nothing(cast: Cast, end: str) -> None:
    number = two(cast)
    assert RequestItem.objects.filter(open_in=None).count() == 0
    if end == "withdraw":
        services.withdraw(request_id=number, by=cast["steward"])
    elif end == "reject":
        services.reject(request_id=number, by=cast["approver"], comment="no")
    else:
        approve_shown(request_id=number, by=cast["approver"])
        services.apply(request_id=number, by=cast["approver"])
    assert RequestItem.objects.exclude(open_in=None).count() == 0


@pytest.mark.parametrize(
    ("items", "error", "said"),
    [
        ([], InvalidInput, "what to promote"),
        ([("orders-value", 1), ("orders-value", 1)], InvalidInput, "twice"),
        ([("", 1)], InvalidInput, "name"),
        ([("orders-value", 7)], VersionNotFound, "7"),
        ([("orders-value", 1), ("absent", "latest")], SubjectNotFound, "absent"),
        ([("orders-value", "0")], InvalidInput, "version"),
        ([("orders-value", "1; DROP TABLE")], InvalidInput, "version"),
        ([(f"s{number}", 1) for number in range(MAX_ITEMS + 1)], InvalidInput, str(MAX_ITEMS)),
    ],
)
def test_a_set_that_cannot_be_is_named(cast: Cast, items: Any, error: type[Exception], said: str) -> None:
    register(V1, cast["steward"])
    asked = [(SubjectName(".", name), version) for name, version in items]
    with pytest.raises(error, match=said):
        services.request_promotion(source="dev", target="prod", items=asked, by=cast["steward"])
    assert not PromotionRequest.objects.exists()


def test_the_settings_come_along_where_that_is_asked(cast: Cast) -> None:
    register(V1, cast["steward"])
    set_config(registry="dev", subject=ORDERS, level="FULL_TRANSITIVE", by=cast["steward"])
    number = ask(cast, with_config=True)
    assert "config" in {step["kind"] for step in selectors.get_request(number).plan["steps"]}
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    assert own_config(get_registry("prod"), ORDERS).level == "FULL_TRANSITIVE"


def test_settings_that_move_at_the_source_void_it(cast: Cast) -> None:
    register(V1, cast["steward"])
    set_config(registry="dev", subject=ORDERS, level="FULL", by=cast["steward"])
    number = ask(cast, with_config=True)
    approve_shown(request_id=number, by=cast["approver"])
    set_config(registry="dev", subject=ORDERS, level="NONE", by=cast["steward"])
    assert services.recheck(request_id=number, by=cast["steward"]) == "in review"


def test_requests_take_the_same_queries_however_many_items(cast: Cast) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    register(V1, cast["steward"])
    counts = []
    for number in (3, 9):
        items = []
        for item in range(number):
            subject = SubjectName(".", f"s{number}-{item}")
            register(V1, cast["steward"], subject=subject)
            items.append((subject, "latest" if item % 2 else 1))
        with CaptureQueriesContext(connection) as captured:
            services.request_promotion(source="dev", target="prod", items=items, by=cast["steward"])
        counts.append(len(captured))
    assert counts[1] - counts[0] <= 6 * 2, "what grows is the evidence and referrers of each subject alone"


# -- drafts of requests -----------------------------------------------------------------------------------------------


def test_a_draft_is_its_requesters_until_it_is_submitted(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, draft=True)
    assert not Notice.objects.filter(event="promotion.requested").exists()
    other = cast["approver"].user_id
    assert [info.id for info in selectors.list_requests(state="open", by=cast["steward"])] == [number]
    assert selectors.list_requests(state="open", by=cast["approver"]) == []
    assert selectors.list_requests(waiting_for=other or 0) == []
    with pytest.raises(RequestNotFound):
        approve_shown(request_id=number, by=cast["approver"])
    with pytest.raises(RequestNotFound):
        services.submit(request_id=number, by=cast["steward2"])
    assert services.submit(request_id=number, by=cast["steward"]) == "in review"
    assert Notice.objects.filter(event="promotion.requested").count() == 1
    with pytest.raises(WrongState, match="Only a draft"):
        services.submit(request_id=number, by=cast["steward"])
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"


def test_a_draft_holds_nothing_and_is_held_up_by_what_is_open(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, draft=True)
    first = ask(cast, by="steward2")
    with pytest.raises(WrongState, match="already open"):
        services.submit(request_id=number, by=cast["steward"])
    assert state_of(number) == "draft"
    services.withdraw(request_id=first, by=cast["steward2"])
    assert services.submit(request_id=number, by=cast["steward"]) == "in review"


def test_open_requests_are_found_by_each_of_their_subjects(cast: Cast) -> None:
    register(V1, cast["steward"])
    draft = ask(cast, draft=True)
    wanted = [ORDERS, CUSTOMERS, SubjectName(".lab", ORDERS.subject)]
    assert selectors.open_requests_of(wanted, cast["admin"]) == {}
    services.withdraw(request_id=draft, by=cast["steward"])
    number = two(cast)
    assert selectors.open_requests_of(wanted, cast["admin"]) == {ORDERS: number, CUSTOMERS: number}
    assert selectors.open_requests_of([CUSTOMERS], cast["admin"]) == {CUSTOMERS: number}
    newer = ask(cast, target="staging")
    assert selectors.open_requests_of(wanted, cast["admin"]) == {ORDERS: newer, CUSTOMERS: number}
    services.withdraw(request_id=newer, by=cast["steward"])
    services.withdraw(request_id=number, by=cast["steward"])
    assert selectors.open_requests_of(wanted, cast["admin"]) == {}


def test_a_draft_is_submitted_with_the_plan_of_then(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging", draft=True)
    before = selectors.get_request(number).plan_hash
    set_config(registry="staging", subject=ORDERS, level="FULL", by=cast["steward"])
    services.submit(request_id=number, by=cast["steward"])
    shown = selectors.get_request(number)
    assert shown.plan_hash != before
    assert (shown.moved, shown.stale) == ("", "")
    assert services.approve(request_id=number, by=cast["approver"], plan_hash=shown.plan_hash) == "approved"


# -- checks again -----------------------------------------------------------------------------------------------------


def test_stale_is_said_and_cured_by_running_the_checks(cast: Cast) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    register({**V1, "doc": "x"}, cast["steward"], registry="staging")
    assert "Version 1 of orders-value was added" in selectors.get_request(number).stale
    services.recheck(request_id=number, by=cast["steward2"])
    shown = selectors.get_request(number)
    assert shown.stale == ""
    assert "Version 1 of orders-value was added" in shown.moved
    with pytest.raises(NotAllowed):
        services.recheck(request_id=number, by=cast["reader"])
    services.withdraw(request_id=number, by=cast["steward"])
    with pytest.raises(WrongState):
        services.recheck(request_id=number, by=cast["steward"])


def test_a_version_that_is_gone_at_the_source_is_named(cast: Cast) -> None:
    register(V1, cast["steward"])
    register(V2, cast["steward"])
    number = ask(cast, version=2)
    delete_version(registry="dev", subject=ORDERS, version=2, by=cast["steward"])
    with pytest.raises((VersionNotFound, WrongState)):
        approve_shown(request_id=number, by=cast["approver"])
    assert state_of(number) == "in review"


# -- who may ask ------------------------------------------------------------------------------------------------------


def test_only_owners_ask_where_an_environment_says_so(cast: Cast) -> None:
    register(V1, cast["steward"])
    change(owners_only=True)
    with pytest.raises(NotAllowed, match="nobody yet, so add an owner"):
        ask(cast)
    owned_by("steward2")
    for who in ("steward", "admin"):
        with pytest.raises(NotAllowed, match=": steward2"):
            ask(cast, by=who)
    with pytest.raises(NotAllowed, match=": steward2"):
        propose(cast)
    assert ask(cast, by="steward2")


@pytest.mark.parametrize("who", ["reader", "stranger"])
def test_whoever_may_not_ask_is_refused(cast: Cast, who: str) -> None:
    register(V1, cast["steward"])
    with pytest.raises(NotAllowed):
        ask(cast, by=who)
    with pytest.raises(NotAllowed):
        propose(cast, by=who)


def test_every_item_needs_the_right(cast: Cast) -> None:
    register(V1, cast["steward"])
    register(CUSTOMER, cast["steward"], subject=CUSTOMERS)
    RoleGrant.objects.filter(user__username="steward2").update(subject_pattern="orders-*")
    by = actor_of_user(User.objects.get(username="steward2"), channel="ui")
    with pytest.raises(NotAllowed):
        services.request_promotion(source="dev", target="prod", items=[(ORDERS, 1), (CUSTOMERS, 1)], by=by)


def test_asking_shows_no_source_that_may_not_be_read(cast: Cast) -> None:
    register(V1, cast["steward"])
    RoleGrant.objects.filter(user__username="steward2").update(registry="prod")
    by = actor_of_user(User.objects.get(username="steward2"), channel="ui")
    with pytest.raises(NotAllowed):
        services.request_promotion(source="dev", target="prod", subject=ORDERS, version=1, by=by)


# -- proposed texts ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("GOO-7")
def test_a_proposed_text_becomes_a_version_of_a_closed_environment(cast: Cast) -> None:
    text = json.dumps(V1, indent=2)
    number = propose(cast, text)
    shown = selectors.get_request(number)
    assert (shown.kind, shown.source, shown.version, shown.items[0].text) == ("propose", "", 0, text)
    services.approve(request_id=number, by=cast["approver"], plan_hash=shown.plan_hash)
    services.apply(request_id=number, by=cast["approver"])
    live = get_version(get_registry("prod"), ORDERS, "latest")
    assert (live.version, live.submitted) == (1, text)


def test_a_proposal_is_asked_for_once_and_not_for_what_is_there(cast: Cast) -> None:
    number = propose(cast)
    with pytest.raises(WrongState, match="already open"):
        propose(cast, json.dumps(V1, indent=7), by="steward2")
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    with pytest.raises(WrongState, match="already"):
        propose(cast)


def test_a_proposal_is_held_against_the_target(cast: Cast) -> None:
    register(V1, cast["steward"], registry="staging")
    number = propose(cast, json.dumps(BROKEN), target="staging")
    assert [item["code"] for item in selectors.get_request(number).failing] == ["compatibility"]


def test_a_proposal_refers_to_what_the_target_has(cast: Cast) -> None:
    address = {"type": "record", "name": "Address", "fields": []}
    customer = {"type": "record", "name": "Customer", "fields": [{"name": "home", "type": "Address"}]}
    register(address, cast["steward"], subject=SubjectName(".", "address"))
    reference = [Reference("Address", "address", -1)]
    with pytest.raises(InvalidReference, match="address"):
        propose(cast, json.dumps(customer), references=reference)
    register(address, cast["steward"], registry="staging", subject=SubjectName(".", "address"))
    number = propose(cast, json.dumps(customer), references=reference, target="staging")
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    live = get_version(get_registry("staging"), ORDERS, 1)
    assert live.schema.references == (Reference("Address", "address", 1),)


def test_a_draft_ends_with_its_proposal_and_nobody_elses_does(cast: Cast) -> None:
    drafts = [
        services.save_draft(registry="prod", subject=ORDERS, text="{", by=cast[who]) for who in ("steward", "steward2")
    ]
    propose(cast, draft_id=drafts[1])
    assert len(selectors.list_drafts(cast["steward2"].user_id or 0)) == 1, "somebody else's"
    propose(cast, json.dumps(V2), draft_id=drafts[0])
    assert selectors.list_drafts(cast["steward"].user_id or 0) == []


@pytest.mark.parametrize(
    ("text", "schema_type", "error"),
    [
        ("", "AVRO", InvalidSchema),
        ("{", "AVRO", InvalidSchema),
        ('"str\0ing"', "AVRO", InvalidInput),
        ('"str\ud800ing"', "AVRO", InvalidInput),
        ('"string"', "XML", InvalidSchema),
        ("[" * 20_000, "AVRO", InvalidSchema),
        ('{"type": "record", "name": "A", "fields": [{"name": "a", "type": "long", "default": "x"}]}', "AVRO", InvalidSchema),
        ("message A {", "PROTOBUF", InvalidSchema),
        ('"' + "x" * 2_000_000 + '"', "AVRO", SchemaTooLarge),
    ],
)  # fmt: skip
def test_hostile_texts_are_no_requests(cast: Cast, text: str, schema_type: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        propose(cast, text, schema_type=schema_type)
    assert not PromotionRequest.objects.exists()


@pytest.mark.parametrize("reason", ["a\0b", "\ud800", "x" * 10_001])
def test_a_reason_that_cannot_be_kept_is_refused(cast: Cast, reason: str) -> None:
    register(V1, cast["steward"])
    with pytest.raises(InvalidInput):
        ask(cast, reason=reason)
    with pytest.raises(InvalidInput):
        propose(cast, reason=reason)


# -- lists ------------------------------------------------------------------------------------------------------------


def test_lists_are_filtered_and_paged_by_number(cast: Cast) -> None:
    numbers = []
    for place in range(5):
        subject = SubjectName(".", f"orders-{place}")
        register(V1, cast["steward"], subject=subject)
        numbers.append(ask(cast, by="steward" if place % 2 else "admin", subject=subject))
    services.withdraw(request_id=numbers[0], by=cast["admin"])
    newest_first = numbers[::-1]

    def found(**filters: Any) -> list[int]:
        return [info.id for info in selectors.list_requests(**filters)]

    assert found() == newest_first
    assert found(limit=2) == newest_first[:2]
    assert found(limit=2, after=newest_first[1]) == newest_first[2:4]
    assert found(state="withdrawn") == [numbers[0]]
    assert found(state="open") == newest_first[:-1]
    assert found(subject=SubjectName(".", "orders-3")) == [numbers[3]]
    assert found(target="staging") == []
    assert found(requested_by=cast["steward"].user_id) == [numbers[3], numbers[1]]
    assert found(waiting_for=cast["admin"].user_id) == [numbers[3], numbers[1]]


def test_a_list_brings_no_texts(cast: Cast) -> None:
    propose(cast)
    (info,) = selectors.list_requests()
    assert "text" not in info.plan["steps"][0]
    assert info.items[0].text == ""
    assert info.plan["steps"][0]["subject"] == "orders-value"
    assert info.checks == selectors.get_request(info.id).checks


def test_lists_take_the_same_queries_however_long(cast: Cast) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    counts = []
    for place in range(8):
        subject = SubjectName(".", f"orders-{place}")
        register(V1, cast["steward"], subject=subject)
        services.open_thread(request_id=ask(cast, subject=subject), by=cast["reader"], text="why?")
        with CaptureQueriesContext(connection) as captured:
            assert len(selectors.list_requests()) == place + 1
        counts.append(len(captured))
    assert len(set(counts)) == 1
