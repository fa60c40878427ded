"""The pages of the glossary, and the term of a field on its pages and in the search."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.subjects.lifecycle.glossary import set_field_term, set_term
from registry.subjects.models import BusinessTerm, FieldTerm
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

ORDERS = SubjectName(".", "orders-value")
SUBJECT = "/ui/registries/dev/subjects/orders-value/"
FIELD = "/ui/fields?registry=dev&subject=orders-value&path=Order.total"
pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def orders(registries: None, system: Actor) -> None:
    """A subject with two fields, one of which has a doc in Markdown."""
    fields = [{"name": "id", "type": "long"}, {"name": "total", "type": "double", "doc": "In `EUR`, <b>always</b>."}]
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    register_version(registry="dev", subject=ORDERS, text=text, by=system)


def test_a_steward_adds_changes_and_removes_a_term(orders: None, look: Callable[[str], Client]) -> None:
    steward, reader = look("steward"), look("reader")
    assert "No terms yet" in steward.get("/ui/terms").content.decode()
    assert "Add a term</span>" not in reader.get("/ui/terms").content.decode()
    wrong = steward.post("/ui/terms", {"name": "Net/revenue", "doc": " "})
    assert (wrong.status_code, 'value="Net/revenue"' in wrong.content.decode()) == (422, True)
    assert steward.post("/ui/terms", {"name": "Net/revenue", "doc": "Without **tax**."}).status_code == 302
    page = steward.get("/ui/terms/Net%2Frevenue")
    assert "Without <strong>tax</strong>." in page.content.decode()
    values = {**page.context["page"].form.initial, "name": "Revenue", "owner": "finance"}
    changed = steward.post("/ui/terms/Net%2Frevenue", values)
    assert changed["Location"] == "/ui/terms/Revenue"
    late = steward.post("/ui/terms/Revenue", {**values, "former": "Revenue", "doc": "Mine."})
    assert (late.status_code, "after you opened it" in late.content.decode()) == (422, True)
    assert reader.post("/ui/terms/Revenue/remove").status_code == 403
    assert BusinessTerm.objects.get().owner == "finance"
    assert steward.post("/ui/terms/Revenue/remove")["Location"] == "/ui/terms"
    assert not BusinessTerm.objects.exists()


def test_a_field_shows_its_term(orders: None, system: Actor, look: Callable[[str], Client]) -> None:
    set_term(name="Net revenue", doc="Without **tax**.", owner="finance", by=system)
    steward, reader = look("steward"), look("reader")
    assert "Choose a business term" in steward.get(FIELD).content.decode()
    done = steward.post(f"{SUBJECT}term", {"path": "Order.total", "term": "net revenue", "next": FIELD})
    assert (done.status_code, done["Location"]) == (302, FIELD)
    field = reader.get(FIELD).content.decode()
    assert "Without <strong>tax</strong>." in field and "Change business term" not in field
    subject = reader.get(SUBJECT).content.decode()
    assert 'href="/ui/terms/Net%20revenue"' in subject
    assert "In <code>EUR</code>, &lt;b&gt;always&lt;/b&gt;." in subject
    found = reader.get("/ui/search?q=net+revenue").content.decode()
    assert "Business terms" in found and 'href="/ui/terms/Net%20revenue"' in found
    assert "orders-value (dev)" in reader.get("/ui/terms/Net%20revenue").content.decode()
    assert reader.post(f"{SUBJECT}term", {"path": "Order.total", "term": ""}).status_code == 403
    steward.post(f"{SUBJECT}term", {"path": "Order.total", "term": ""})
    assert not FieldTerm.objects.exists()


def test_as_many_queries_for_many_terms_as_for_few(
    orders: None, system: Actor, look: Callable[[str], Client], django_assert_num_queries
) -> None:
    reader = look("reader")
    for number in range(30):
        set_term(name=f"Term {number}", doc="Means something.", by=system)
        if number in (0, 29):
            set_field_term(registry="dev", subject=ORDERS, path="Order.total", term=f"Term {number}", by=system)
            reader.get("/ui/terms")
            with django_assert_num_queries(7):
                reader.get("/ui/terms")
