"""The page of the search, without JavaScript, and the API."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from tests.markup import compact
from tests.search.conftest import SUBJECTS, record

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]


def words(answer: Any) -> str:
    """The text of a page."""
    text = re.sub(r"<[^>]+>", " ", answer.content.decode())
    return " ".join(html.unescape(text).split())


def test_a_hit_leads_to_the_fields_anchor(subjects: None, look: Callable[[str], Client]) -> None:
    reader = look("reader")
    page = reader.get("/ui/search?q=field:phone").content.decode()
    link = re.search(r'href="([^"]+#field-\d+)"', page)
    assert link is not None
    address, anchor = html.unescape(link[1]).split("#")
    structure = reader.get(address).content.decode()
    row = re.search(rf'<tr id="{anchor}">(.*?)</tr>', compact(structure))
    assert row is not None
    assert "phone" in row[1]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("orders", "orders-value"),
        ("field:email", "Customer.address.email"),
        ("nothing-like-this", "No results"),
        ("colour:red", "The operators are field:, id:, type:, doc:, tag:, compat:, drift:, ref:"),
        ('field:"open', "isn't closed"),
        ("field:", "needs a value"),
        ("compat:SOMETIMES", "compat: needs one of"),
        ("id:many", "id: needs a schema id"),
        ("drift:maybe", "drift: needs yes or no"),
        ("", "Search syntax"),
        ("a" * 3_000, "At most 2,000"),
    ],
)
def test_what_the_page_says(subjects: None, look: Callable[[str], Client], query: str, said: str) -> None:
    answer = look("reader").get("/ui/search", {"q": query})
    assert said in words(answer)
    assert answer.status_code in (200, 422)


def test_parts_can_be_taken_away(subjects: None, look: Callable[[str], Client]) -> None:
    page = look("reader").get("/ui/search", {"q": "field:email type:string"}).content.decode()
    assert 'href="/ui/search?q=type%3Astring"' in page
    assert 'href="/ui/search?q=field%3Aemail"' in page


def test_all_of_a_group_is_paged(register: Callable[..., int], look: Callable[[str], Client]) -> None:
    for number in range(3):
        register("dev", f"s{number}", record(f"R{number}", *(f"email_{n}" for n in range(20))))
    reader = look("reader")
    first = reader.get("/ui/search", {"q": "field:email"})
    assert "Show all fields" in words(first)
    assert " 60 " in words(first)
    second = reader.get("/ui/search", {"q": "field:email", "group": "fields"}).content.decode()
    follow = re.search(r'rel="next" href="([^"]+)"', compact(second))
    assert follow is not None
    last = reader.get(html.unescape(follow[1]))
    assert len(re.findall(r"#field-\d+", last.content.decode())) == 10
    assert reader.get("/ui/search", {"q": "a", "group": "people"}).status_code == 422


def test_suggestions_appear_where_nothing_fits(subjects: None, look: Callable[[str], Client]) -> None:
    page = look("reader").get("/ui/search", {"q": "field:salary_amounts type:nothing"}).content.decode()
    assert "Did you mean" in page
    assert "salary_amount" in page


def test_hostile_names_are_shown_harmlessly(register: Callable[..., int], look: Callable[[str], Client]) -> None:
    evil = '<img src=x onerror="alert(1)">\u202eevil{{ 7*7 }}'
    schema = json.dumps(
        {"type": "object", "title": evil, "properties": {evil: {"type": "string", "description": evil}}}
    )
    register("dev", evil, schema, schema_type="JSON")
    reader = look("reader")
    for query in ('"<img"', 'field:"<img"', 'doc:"onerror"', '"{{ 7*7"'):
        answer = reader.get("/ui/search", {"q": query})
        page = answer.content.decode()
        assert answer.status_code == 200, query
        assert "<img src=x" not in page
        assert "\u202e" not in page
        assert "{{ 7*7 }}" in words(answer), query
        assert "U+202E" in page, query


def test_a_schema_and_a_message_can_be_pasted(subjects: None, look: Callable[[str], Client]) -> None:
    reader = look("reader")
    schema = next(text for registry, subject, text in SUBJECTS if subject == "customers-value")
    assert "Subjects with this schema customers-value" in words(reader.post("/ui/search", {"pasted": schema}))
    assert "orders-value version 1" in words(reader.get("/ui/search", {"q": "0000000001"}))
    message = reader.post("/ui/search", {"pasted": "00 00 00 00 01 00"})
    assert "Decode the message" in words(message)
    assert 'action="/ui/decode"' in message.content.decode()
    for wrong in ("", "words", "\0"):
        assert reader.post("/ui/search", {"pasted": wrong}).status_code == 422
    assert "can’t be read as one" in words(reader.post("/ui/search", {"pasted": '{"type": "recrd"}'}))


def test_who_may_not(subjects: None, look: Callable[[str], Client]) -> None:
    assert look("stranger").get("/ui/search?q=orders").status_code == 403
    assert Client().get("/ui/search?q=orders").status_code in (302, 401, 403)


@pytest.mark.parametrize("query", ["orders", "field:email", "customer email", "type:string tag:pii"])
def test_the_number_of_queries_does_not_grow(
    register: Callable[..., int], look: Callable[[str], Client], query: str
) -> None:
    reader = look("reader")

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert reader.get("/ui/search", {"q": query}).status_code == 200
        return len(queries)

    fields = ({"name": "email", "type": "string", "confluent:tags": ["pii"]}, "customer_id")
    register("dev", "orders-0", record("R0", *fields))
    cost()
    few = cost()
    for number in range(1, 7):
        register("dev", f"orders-{number}", record(f"R{number}", *fields))
    assert cost() <= few + 1  # the count of what doesn't fit on the page
    assert few <= QUERIES["search"]


QUERIES = json.loads((Path(__file__).parent.parent / "dashboard" / "query_counts.json").read_text())


@pytest.mark.requirement("CARD-4")
def test_the_api_gives_groups_and_pages(subjects: None, api: Callable[[str], Client]) -> None:
    reader = api("reader")
    whole = reader.get("/api/v1/search", {"q": "field:email"}).json()
    groups = {group["group"]: group for group in whole["groups"]}
    assert list(groups) == ["subjects", "fields", "types", "docs", "ids", "requests", "tags", "terms"]
    assert groups["fields"]["total"] == 4
    assert groups["fields"]["hits"][0]["path"] == "Customer.address.email"
    page = reader.get("/api/v1/search", {"q": "field:email", "group": "fields", "limit": 3}).json()["groups"][0]
    rest = reader.get("/api/v1/search", {"q": "field:email", "group": "fields", "cursor": page["cursor"]}).json()
    assert page["hits"] + rest["groups"][0]["hits"] == groups["fields"]["hits"]
    assert rest["groups"][0]["total"] is None


@pytest.mark.parametrize(
    "query", [{}, {"q": ""}, {"q": "colour:red"}, {"q": "a", "group": "people"}, {"q": "a", "limit": "0"},
              {"q": "x" * 3000}, {"q": "a", "group": "fields", "cursor": "?"}, {"q": "a\0"}]
)  # fmt: skip
def test_the_api_says_what_is_wrong(subjects: None, api: Callable[[str], Client], query: dict[str, str]) -> None:
    answer = api("reader").get("/api/v1/search", query)
    assert answer.status_code in (400, 422)
    assert answer.json()["message"]


def test_the_api_refuses_strangers(subjects: None, api: Callable[[str], Client]) -> None:
    assert api("stranger").get("/api/v1/search?q=orders").status_code == 403
    assert Client().get("/api/v1/search?q=orders").status_code == 401


def test_the_box_offers_names_once_with_their_registries(subjects: None, look: Callable[[str], Client]) -> None:
    reader = look("reader")
    with CaptureQueriesContext(connection) as queries:
        text = compact(reader.get("/ui/search/suggest", {"q": "orders"}).content.decode())
    assert '<option value="orders-value" label="dev, staging">' in text
    assert '<option value=":.eu:orders-value" label="dev">' in text
    assert len(queries) <= 12
    for none in ("", "o", "field:email", 'field:"', "nothing-like-this", '{"type": "record"}', "x" * 3_000, "\x00"):
        assert "<option" not in reader.get("/ui/search/suggest", {"q": none}).content.decode(), none


def test_the_exact_name_of_a_subject_opens_it(subjects: None, look: Callable[[str], Client]) -> None:
    reader = look("reader")

    def leads_to(query: str, **more: str) -> str:
        return str(reader.get("/ui/search", {"q": query, **more}).headers.get("Location", ""))

    assert leads_to("orders-value", go="1") == "/ui/registries/dev/subjects/orders-value/"
    assert leads_to(" :.eu:orders-value ", go="1") == "/ui/registries/dev/subjects/%3A.eu%3Aorders-value/"
    assert leads_to("orders-valu", go="1") == "", "a part of a name is searched"
    assert leads_to("orders-value") == "", "the page's own box searches"
    assert leads_to("field:email", go="1") == ""


def test_nobody_is_offered_or_led_to_what_they_may_not_read(
    subjects: None, look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    person("reader")
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="orders-*")
    reader = look("reader")
    assert "<option" not in reader.get("/ui/search/suggest", {"q": "secret"}).content.decode()
    assert 'label="dev"' in reader.get("/ui/search/suggest", {"q": "orders"}).content.decode()
    assert reader.get("/ui/search", {"q": "secret-payroll", "go": "1"}).status_code == 200
