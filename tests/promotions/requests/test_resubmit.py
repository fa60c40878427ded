"""Asking again for what was rejected or withdrawn: a new request of the same contents, and both know the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from registry.access.models import RoleGrant
from registry.access.roles import STEWARD, Grant
from registry.errors import InvalidInput, NotAllowed, RequestNotFound, SchemadeskError, WrongState
from registry.promotions import selectors, services
from registry.promotions.models import Environment, PromotionRequest
from registry.promotions.requests.resubmit import resubmissions_of
from registry.subjects.models import SchemaVersion
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in
from tests.promotions.factories import CUSTOMERS, ORDERS, V1, V2, Cast, ask, register

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
TEXT = json.dumps(V2)


def promote(cast: Cast) -> int:
    register({**V1, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    items = [(ORDERS, 1), (CUSTOMERS, 1)]
    return services.request_promotion(
        source="dev", target="prod", items=items, with_config=True, reason="the checkout needs it", by=cast["steward"]
    )


def propose(cast: Cast) -> int:
    return services.propose_version(
        target="staging", subject=ORDERS, text=TEXT, by=cast["steward"], reason="the checkout needs it"
    )


def roll_back(cast: Cast) -> int:
    return services.request_roll_back(
        environment="dev", subject=ORDERS, version=1, by=cast["steward"], reason="the checkout needs it"
    )


def adopt(cast: Cast) -> int:
    Environment.objects.filter(registry__name="staging").update(position=9)
    register(V1, cast["steward"], registry="staging", subject=CUSTOMERS)
    return services.request_adoption(
        environment="staging", subject=CUSTOMERS, version=1, by=cast["steward"], reason="the checkout needs it"
    )


KINDS = {"promote": promote, "propose": propose, "roll back": roll_back, "adopt": adopt}
#: a kind → where its button leads; "" for one that asks at once
FORMS = {"promote": "/ui/promotions/request", "propose": "/ui/proposals/new", "roll back": "", "adopt": ""}


@pytest.fixture(autouse=True)
def versions(cast: Cast) -> None:
    """Two versions of orders in dev."""
    register(V1, cast["steward"])
    register(V2, cast["steward"])


def ended(cast: Cast, kind: str, state: str = "rejected") -> int:
    """A request of a kind that came to nothing."""
    number = KINDS[kind](cast)
    if state == "rejected":
        services.reject(request_id=number, by=cast["approver"], comment="not now")
    else:
        services.withdraw(request_id=number, by=cast["steward"])
    return number


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["rejected", "withdrawn"])
def test_what_came_to_nothing_is_asked_for_again_whole(cast: Cast, kind: str, state: str) -> None:
    number = ended(cast, kind, state)
    again = services.ask_again(request_id=number, by=cast["steward2"])
    before, after = selectors.get_request(number), selectors.get_request(again)
    for name in ("kind", "source", "target", "subject", "version", "items", "reason", "with_config"):
        assert getattr(after, name) == getattr(before, name), name
    assert (before.state, after.state, after.again_of, before.again_of) == (state, "in review", number, None)
    assert after.requested_by == "steward2"
    seen = resubmissions_of([before, after], cast["reader"])
    assert [each.id for each in seen[number].later] == [again] and seen[number].earlier is None
    assert seen[again].earlier is not None and seen[again].earlier.id == number and seen[again].later == ()


@pytest.mark.parametrize("kind", ["promote", "roll back"])
def test_another_schema_under_the_same_number_is_not_what_was_asked_for(cast: Cast, kind: str) -> None:
    register({**V1, "doc": "The newest, which nothing asks for."}, cast["steward"])
    number = (
        ask(cast, version=2)
        if kind == "promote"
        else services.request_roll_back(
            environment="dev", subject=ORDERS, version=2, by=cast["steward"], reason="the checkout needs it"
        )
    )
    services.withdraw(request_id=number, by=cast["steward"])
    register({**V1, "name": "Other"}, cast["steward"], subject=CUSTOMERS)
    other = SchemaVersion.objects.get(subject__name=CUSTOMERS.subject, subject__context__registry__name="dev")
    asked = SchemaVersion.objects.get(subject__name=ORDERS.subject, version=2, subject__context__registry__name="dev")
    SchemaVersion.objects.filter(pk=asked.pk).update(schema=other.schema)
    with pytest.raises(WrongState, match="is not the schema in request"):
        services.ask_again(request_id=number, by=cast["steward"])
    assert not PromotionRequest.objects.filter(again_of=number).exists()


REFUSED: dict[str, tuple[type[SchemadeskError], str]] = {
    "in review": (WrongState, "Only a rejected or withdrawn request"),
    "other subjects": (InvalidInput, "was for other subjects"),
    "other target": (InvalidInput, "another target"),
    "none": (RequestNotFound, "not found"),
    "secret": (RequestNotFound, "not found"),
    "no right": (NotAllowed, "request promotions"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_second_asking_is_refused(cast: Cast, case: str) -> None:
    error, words = REFUSED[case]
    by, target, subject = cast["steward"], "prod", ORDERS
    number = ask(cast) if case == "in review" else ended(cast, "promote")
    if case == "other subjects":
        subject = SubjectName(".", "else-value")
        for text in (V1, V2):
            register(text, cast["steward"], subject=subject)
    if case == "other target":
        target = "staging"
    if case == "none":
        number = 999_999
    if case == "secret":
        by = replace(by, grants=(Grant(STEWARD, "", "orders-*"),))
    if case == "no right":
        by = cast["reader"]
    before = PromotionRequest.objects.count()
    with pytest.raises(error, match=words):
        services.request_promotion(source="dev", target=target, subject=subject, version=2, by=by, again_of=number)
    assert PromotionRequest.objects.count() == before


def test_a_request_does_not_ask_for_itself_again(cast: Cast) -> None:
    number = ask(cast)
    with pytest.raises(IntegrityError, match="again_of_another"), transaction.atomic():
        PromotionRequest.objects.filter(pk=number).update(again_of=number)


def test_the_link_is_no_way_to_a_secret(cast: Cast, api: Callable[[str], Client]) -> None:
    """Of two requests that are linked a reader sees the one that they may."""
    number = ended(cast, "promote")
    again = services.request_promotion(
        source="dev", target="prod", subject=ORDERS, version=1, by=cast["steward"], again_of=number
    )
    client = api("reader")
    RoleGrant.objects.filter(user__username="reader").update(subject_pattern="orders-*")
    shown = client.get(f"/api/v1/promotions/{again}").json()
    assert (shown["again_of"], shown["asked_again_by"]) == (None, [])
    assert [one["again_of"] for one in client.get("/api/v1/promotions").json()] == [None]
    page = signed_in("reader").get(f"/ui/promotions/{again}").content.decode()
    assert f"/ui/promotions/{number}" not in page


def test_programs_ask_again_and_read_both_ways(cast: Cast, api: Callable[[str], Client]) -> None:
    number = ended(cast, "promote")
    client, address = api("steward"), f"/api/v1/promotions/{number}"
    made = client.post(f"{address}/again", {"reason": "it is time"}, content_type="application/json")
    assert made.status_code == 201
    again = made.json()
    assert (again["again_of"], again["reason"], again["state"]) == (number, "it is time", "in review")
    assert client.get(address).json()["asked_again_by"] == [again["id"]]
    refused = client.post(f"/api/v1/promotions/{again['id']}/again", {}, content_type="application/json")
    assert refused.status_code == 409
    services.withdraw(request_id=again["id"], by=cast["steward"])
    body = {"source": "dev", "target": "prod", "subject": "orders-value", "version": "2", "again_of": number}
    third = client.post("/api/v1/promotions", body, content_type="application/json").json()
    assert client.get(address).json()["asked_again_by"] == [again["id"], third["id"]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_leads_to_a_filled_form_and_both_pages_link(cast: Cast, kind: str) -> None:
    number = ended(cast, kind)
    client, address = signed_in("steward2"), f"/ui/promotions/{number}"
    button = client.get(address).context["page"].again
    assert button.allowed and button.url.partition("?")[0] == (FORMS[kind] or f"{address}/again")
    if FORMS[kind]:
        form = client.get(button.url)
        text = form.content.decode()
        assert form.status_code == 200 and f'name="again_of" value="{number}"' in text
        assert "the checkout needs it" in text and f'href="{address}"' in text
        made = client.post(FORMS[kind], sent(form.context["page"], kind))
    else:
        made = client.post(button.url)
    assert made.status_code == 302, made.content.decode()
    (again,) = PromotionRequest.objects.filter(again_of=number)
    assert made["Location"] == f"/ui/promotions/{again.pk}"
    assert f'href="{address}"' in client.get(made["Location"]).content.decode()
    assert f'href="{made["Location"]}"' in client.get(address).content.decode()
    assert SchemaVersion.objects.filter(subject__context__registry__name="prod").count() == 0


def sent(page: Any, kind: str) -> dict[str, str]:
    """What the browser sends of a form as it opened."""
    if kind == "propose":
        values = {field.name: field.value() for field in page.form if field.value()}
        return values | {"do": "submit"}
    values = {field.name: field.value() for field in page.form if field.value() and field.name != "draft"}
    return values | ({"with_config": "1"} if page.form["with_config"].value() else {})


def test_who_may_not_ask_reads_why_and_an_open_request_offers_nothing(cast: Cast) -> None:
    number, status = ended(cast, "promote"), ask(cast, version=2, target="staging")
    button = signed_in("reader").get(f"/ui/promotions/{number}").context["page"].again
    assert not button.allowed and "request promotions" in button.reason
    assert signed_in("steward").get(f"/ui/promotions/{status}").context["page"].again is None


def test_a_draft_keeps_what_it_asks_for_again(cast: Cast, api: Callable[[str], Client]) -> None:
    number = ended(cast, "propose")
    kept = services.save_draft(registry="staging", subject=ORDERS, text="{", by=cast["steward"], again_of=number)
    page = signed_in("steward").get(f"/ui/proposals/{kept}")
    assert page.status_code == 200 and f'name="again_of" value="{number}"' in page.content.decode()
    assert api("steward").get(f"/api/v1/drafts/{kept}").json()["again_of"] == number
    services.save_draft(registry="staging", subject=ORDERS, text=TEXT, by=cast["steward"], again_of=number)
    again = services.propose_version(target="staging", subject=ORDERS, text=TEXT, by=cast["steward"], draft_id=kept)
    assert selectors.get_request(again).again_of == number


def test_a_draft_of_something_else_asks_for_nothing_again(cast: Cast) -> None:
    number = ended(cast, "propose")
    form = {"registry": "staging", "schema_type": "AVRO", "text": TEXT, "do": "autosave"}
    with pytest.raises(InvalidInput, match="was for other subjects"):
        services.save_draft(registry="staging", subject=CUSTOMERS, text="", by=cast["steward"], again_of=number)
    sent = {**form, "subject": "else-value", "again_of": str(number)}
    answer = signed_in("steward").post("/ui/proposals/new", sent)
    assert answer.status_code == 200, "the editor goes on keeping what is written"
    assert selectors.get_draft(answer.json()["draft_id"], user_id=cast["steward"].user_id or 0).again_of is None
    kept = services.save_draft(registry="staging", subject=ORDERS, text=TEXT, by=cast["steward"], again_of=number)
    other = services.propose_version(
        target="staging", subject=SubjectName(".", "more-value"), text=TEXT, by=cast["steward"], draft_id=kept
    )
    assert selectors.get_request(other).again_of is None
