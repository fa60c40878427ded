"""Requests that belong together: what one refers to another brings."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor, system_actor
from registry.formats.base import Reference
from registry.promotions import selectors, services
from registry.promotions.selectors import linked_requests
from registry.subjects.services import delete_subject, register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in
from tests.promotions.factories import ORDERS, V1, Cast, approve_shown, ask, register

pytestmark = pytest.mark.requirement("ORA-1", "CARD-4")
ADDRESS = SubjectName(".", "address-value")
HOME: dict[str, Any] = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
SENT = {**V1, "fields": [*V1["fields"], {"name": "to", "type": "Address"}]}


@pytest.fixture
def pair(cast: Cast) -> tuple[int, int]:
    """A request of what is referred to, and one of what refers to it, both to prod."""
    register(HOME, cast["steward"], subject=ADDRESS)
    refer(cast["steward"], ORDERS, SENT)
    return ask(cast, subject=ADDRESS), ask(cast)


def refer(by: Actor, subject: SubjectName, schema: dict[str, Any], registry: str = "dev") -> None:
    """A schema that refers to the address."""
    reference = Reference("Address", ADDRESS.subject, 1)
    register_version(registry=registry, subject=subject, text=json.dumps(schema), references=[reference], by=by)


def of(number: int, by: Actor) -> tuple[Any, ...]:
    return linked_requests(selectors.get_request(number), by)


def test_both_name_each_other(cast: Cast, pair: tuple[int, int]) -> None:
    address, orders = pair
    (first,) = of(orders, cast["approver"])
    assert (first.id, first.brings, first.along, first.goes_first) == (address, ("address-value",), True, False)
    assert (first.subject, first.version, first.state) == (ADDRESS, 1, "in review")
    (second,) = of(address, cast["approver"])
    assert (second.id, second.brings, second.goes_first) == (orders, (), False)


def test_the_pages_link_both_ways(cast: Cast, pair: tuple[int, int]) -> None:
    client = signed_in("approver")
    address, orders = pair
    text = client.get(f"/ui/promotions/{orders}").content.decode()
    assert "Linked requests" in text and f'href="/ui/promotions/{address}"' in text
    assert "It also includes address-value, which this request refers to" in text
    text = client.get(f"/ui/promotions/{address}").content.decode()
    assert f'href="/ui/promotions/{orders}"' in text
    assert "It refers to a schema in this request. Apply this request first." in text


def test_another_environment_and_what_is_over_are_not_linked(cast: Cast, pair: tuple[int, int]) -> None:
    address, orders = pair
    assert of(ask(cast, target="staging"), cast["approver"]) == ()
    services.withdraw(request_id=address, by=cast["steward"])
    assert of(orders, cast["approver"]) == ()
    assert of(address, cast["approver"]) == ()


def test_what_is_at_the_target_already_links_nothing(cast: Cast, pair: tuple[int, int]) -> None:
    address, orders = pair
    approve_shown(request_id=address, by=cast["approver"])
    services.apply(request_id=address, by=cast["approver"])
    services.recheck(request_id=orders, by=cast["steward"])
    assert of(orders, cast["approver"]) == ()


def test_a_proposal_whose_reference_is_gone_waits_for_who_brings_it(cast: Cast) -> None:
    register(HOME, cast["steward"], subject=ADDRESS)
    register(HOME, cast["admin"], subject=ADDRESS, registry="staging")
    number = services.propose_version(
        target="staging",
        subject=ORDERS,
        text=json.dumps(SENT),
        schema_type="AVRO",
        references=[Reference("Address", ADDRESS.subject, 1)],
        by=cast["steward"],
    )
    delete_subject(registry="staging", subject=ADDRESS, by=cast["admin"])
    delete_subject(registry="staging", subject=ADDRESS, by=cast["admin"], permanent=True)
    address = ask(cast, subject=ADDRESS, target="staging")
    services.recheck(request_id=number, by=cast["steward"])
    (first,) = of(number, cast["approver"])
    assert (first.id, first.goes_first, first.brings) == (address, True, ("address-value",))


def test_what_one_may_not_read_is_not_named(cast: Cast, pair: tuple[int, int]) -> None:
    address, orders = pair
    reader = cast["reader"]
    limited = replace(reader, grants=tuple(replace(grant, subject_pattern="orders-*") for grant in reader.grants))
    assert of(orders, limited) == ()
    assert [each.id for each in of(orders, reader)] == [address]


def test_a_draft_is_not_named(cast: Cast) -> None:
    register(HOME, cast["steward"], subject=ADDRESS)
    refer(cast["steward"], ORDERS, SENT)
    ask(cast, subject=ADDRESS, draft=True)
    assert of(ask(cast), cast["steward"]) == ()


def test_it_takes_one_query_however_many_there_are(cast: Cast, pair: tuple[int, int]) -> None:
    address, _ = pair
    by = system_actor("tests")
    for number in range(5):
        name = SubjectName(".", f"sent{number}-value")
        refer(by, name, {**SENT, "name": f"Sent{number}"})
        ask(cast, subject=name)
    info = selectors.get_request(address)
    with CaptureQueriesContext(connection) as queries:
        found = linked_requests(info, cast["approver"])
    assert (len(found), len(queries)) == (6, 1)
