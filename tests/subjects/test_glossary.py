"""The glossary: who may change it, what is refused, that no change is lost, and which fields mean a term."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from registry.access.roles import READER, STEWARD, Actor, Grant
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NoteChanged, NotFound, NotSignedIn
from registry.subjects.lifecycle.glossary import (
    fields_of_term,
    get_term,
    list_terms,
    note_and_terms,
    remove_term,
    set_field_term,
    set_term,
    term_of_field,
    terms_of,
)
from registry.subjects.lifecycle.notes import note_of
from registry.subjects.models import BusinessTerm, FieldTerm, Registry
from registry.subjects.services import RegisteredVersion, delete_subject
from registry.subjects.versions.qualified_names import SubjectName

ORDERS = SubjectName(".", "orders-value")
Register = Callable[..., RegisteredVersion]
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "total", "type": "double"}],
}
pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def orders(register: Register) -> None:
    """A subject of `dev`."""
    register("orders-value", SCHEMA)


def person(role: str, registry: str = "", pattern: str = "*") -> Actor:
    return Actor(f"a {role}", "ui", user_id=1, grants=(Grant(role, registry, pattern),))


def means(by: Actor, term: str = "net revenue", path: str = "Order.total") -> None:
    set_field_term(registry="dev", subject=ORDERS, path=path, term=term, by=by)


def test_a_steward_adds_a_term_and_links_a_field(orders: None, dev: Registry) -> None:
    steward = person(STEWARD)
    term = set_term(name=" Net  revenue ", doc=" Without **tax**.\r\n", owner="finance", by=steward)
    assert (term.name, term.doc, term.owner, term.updated_by) == (
        "Net revenue", "Without **tax**.", "finance", "a steward",
    )  # fmt: skip
    means(steward)
    assert terms_of(dev, ORDERS) == {"Order.total": "Net revenue"}
    assert term_of_field(dev, ORDERS, "Order.total") == term
    assert note_and_terms(dev, ORDERS) == (note_of(dev, ORDERS), terms_of(dev, ORDERS))
    assert list_terms(by=person(READER), text="tax finance") == ([(term, 1)], 1)
    assert list_terms(by=person(READER), text="gross") == ([], 0)
    events = AuditEvent.objects.filter(table__in=["subjects_businessterm", "subjects_fieldterm"]).order_by("id")
    assert list(events.values_list("actor", "why")) == [
        ("a steward", "describe the term Net revenue"),
        ("a steward", "orders-value.Order.total in dev means Net revenue"),
    ]
    means(steward, term="")
    assert not terms_of(dev, ORDERS)


def test_a_field_has_one_term(orders: None, dev: Registry, system: Actor) -> None:
    for name in ("Net revenue", "Gross revenue"):
        set_term(name=name, doc="Money.", by=system)
        means(system, term=name)
    assert list(terms_of(dev, ORDERS).values()) == ["Gross revenue"]


@pytest.mark.parametrize(
    ("by", "may_link"),
    [
        (person(READER), False),
        (person(STEWARD, "dev", "payments-*"), False),
        (person(STEWARD, "prod"), False),
        (person(STEWARD, "dev"), True),
    ],
)
def test_the_glossary_is_for_stewards_of_all_registries(orders: None, system: Actor, by: Actor, may_link: bool) -> None:
    set_term(name="Net revenue", doc="Without tax.", by=system)
    for change in (
        lambda: set_term(name="Other", doc="Mine.", by=by),
        lambda: set_term(name="Net revenue", doc="Mine.", by=by, expected="*"),
        lambda: remove_term(name="Net revenue", by=by),
    ):
        with pytest.raises(NotAllowed, match="describe and tag subjects"):
            change()
    if may_link:
        means(by)
    else:
        with pytest.raises(NotAllowed):
            means(by)
    assert (BusinessTerm.objects.get().doc, FieldTerm.objects.count()) == ("Without tax.", int(may_link))


def test_readers_see_the_fields_that_they_may_read(orders: None, register: Register, system: Actor) -> None:
    register("secrets-value", SCHEMA)
    term = set_term(name="Net revenue", doc="Without tax.", by=system)
    for subject in (ORDERS, SubjectName(".", "secrets-value")):
        set_field_term(registry="dev", subject=subject, path="Order.total", term="Net revenue", by=system)
    narrow = person(READER, "dev", "orders-*")
    assert [field.subject for field in fields_of_term(term, by=narrow)] == ["orders-value"]
    assert len(fields_of_term(term, by=system)) == 2
    assert [[number for _, number in list_terms(by=by)[0]] for by in (narrow, system)] == [[1], [2]]
    with pytest.raises(NotSignedIn):
        get_term("Net revenue", by=Actor("nobody", "ui"))


def test_nobodys_change_is_lost(db: None, system: Actor) -> None:
    first = set_term(name="Net revenue", doc="Without tax.", by=system)
    with pytest.raises(NoteChanged, match="changed by tests after you opened it"):
        set_term(name="net REVENUE", doc="Mine.", by=system)
    events = AuditEvent.objects.count()
    assert set_term(name="Net revenue", doc="Without tax.", by=person(STEWARD), expected=first.state) == first
    assert AuditEvent.objects.count() == events
    second = set_term(name="Revenue, net", doc="Mine.", by=system, expected=first.state, former="net revenue")
    assert (second.id, second.name) == (first.id, "Revenue, net")
    with pytest.raises(NoteChanged):
        set_term(name="Revenue, net", doc="Late.", by=system, expected=first.state)
    set_term(name="Tax", doc="What the state takes.", by=system)
    with pytest.raises(InvalidInput, match="already a term 'TAX'"):
        set_term(name="TAX", doc="Mine.", by=system, expected="*", former="Revenue, net")
    with pytest.raises(NotFound, match="'Margin' not found"):
        set_term(name="Net margin", doc="Mine.", by=system, expected="*", former="Margin")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": " "}, "Give the term a name"),
        ({"name": "x" * 101}, "The name has 101 characters"),
        ({"name": "a\0b"}, "can't be displayed"),
        ({"name": "a\u202eb"}, "can't be displayed"),
        ({"doc": " \n"}, "Say what the term means"),
        ({"doc": "x" * 4001}, "4,001 characters"),
        ({"doc": "\0"}, "can't be displayed"),
        ({"owner": "x" * 201}, "The owner has 201 characters"),
    ],
)
def test_what_cannot_be_stored_is_refused(db: None, system: Actor, values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        set_term(**{"name": "Net revenue", "doc": "Without tax.", **values}, by=system)
    assert not BusinessTerm.objects.exists()


def test_only_a_field_of_the_newest_version_gets_a_term(orders: None, system: Actor) -> None:
    with pytest.raises(InvalidInput, match="no term 'net revenue' in the glossary"):
        means(system)
    set_term(name="Net revenue", doc="Without tax.", by=system)
    with pytest.raises(InvalidInput, match=r"no field 'price'. Its fields are Order.id, Order.total"):
        means(system, path="price")
    assert not FieldTerm.objects.exists()


def test_links_go_with_their_term_and_their_subject(orders: None, system: Actor, dev: Registry) -> None:
    set_term(name="Net revenue", doc="Without tax.", by=system)
    means(system)
    remove_term(name="NET revenue", by=system)
    assert not terms_of(dev, ORDERS)
    set_term(name="Net revenue", doc="Without tax.", by=system)
    means(system)
    delete_subject(registry="dev", subject=ORDERS, by=system)
    assert terms_of(dev, ORDERS), "a soft-deleted subject can be restored"
    delete_subject(registry="dev", subject=ORDERS, by=system, permanent=True, force="tests")
    assert not FieldTerm.objects.exists()
    assert BusinessTerm.objects.exists()


def test_the_api_has_the_glossary(orders: None, api: Callable[[str], Client]) -> None:
    steward, reader = api("steward"), api("reader")

    def send(method: str, url: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
        return steward.generic(method, f"/api/v1/{url}", json.dumps(body or {}), "application/json", headers=headers)

    made = send("PUT", "terms/Net%20revenue", {"doc": "Without **tax**."})
    assert (made.status_code, made.json()["doc"]) == (200, "Without **tax**.")
    assert send("PUT", "terms/Net%20revenue", {"doc": "Mine."}).status_code == 412
    state = made.headers["ETag"]
    renamed = send("PUT", "terms/Net%20revenue", {"name": "Revenue", "doc": "Mine."}, **{"If-Match": state})
    assert renamed.json()["name"] == "Revenue"
    linked = send("PUT", "registries/dev/subjects/orders-value/terms", {"path": "Order.total", "term": "revenue"})
    assert linked.status_code == 200, linked.content
    assert reader.get("/api/v1/registries/dev/subjects/orders-value/terms").json() == [
        {"path": "Order.total", "term": "Revenue"}
    ]
    term = reader.get("/api/v1/terms/revenue").json()
    assert term["fields"] == [{"registry": "dev", "subject": "orders-value", "path": "Order.total"}]
    assert reader.get("/api/v1/terms?text=mine").json()["terms"][0]["fields"] == 1
    assert send("DELETE", "terms/Revenue").status_code == 204
    assert reader.get("/api/v1/terms/Revenue").status_code == 404


def test_the_database_removes_the_links_of_a_subject_by_itself(orders: None, system: Actor) -> None:
    """As for a release that doesn't know them."""
    set_term(name="Net revenue", doc="Without tax.", by=system)
    means(system)
    with connection.cursor() as cursor:
        for table in ("schemaversion", "subjectactivity"):
            cursor.execute(f"DELETE FROM subjects_{table}")
        cursor.execute("DELETE FROM subjects_subject")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert not FieldTerm.objects.exists()
