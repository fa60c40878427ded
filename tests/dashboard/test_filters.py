"""Filters of lists: a value that a filter doesn't have is refused on the pages and in the API, never ignored."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client

from tests.drift.scans import make_source

pytestmark = pytest.mark.requirement("CARD-4")
Look = Callable[[str], Client]

#: page → its filters, each with one of the values that the message lists
PAGES = {
    "/ui/registries/dev/subjects": {
        "state": "deleted",
        "attention": "findings",
        "mode": "READONLY",
        "level_from": "subject",
        "references": "",
        "use": "",
        "lacks": "",
        "sort": "name",
    },
    "/ui/findings": {"state": "resolved", "severity": "break", "muted": "only"},
    "/ui/promotions": {"state": "open", "who": "waiting"},
    "/ui/environments": {"show": "behind"},
    "/ui/unapproved-versions": {"state": ""},
    "/ui/inbox": {"show": "unread"},
    "/ui/tokens": {"of": "everybody"},
}
#: list of the API → its filters
LISTS = {
    "registries/dev/subjects": ("state", "attention", "mode", "sort", "format", "level"),
    "findings": ("state", "severity", "muted", "fail_on", "source_id"),
    "promotions": ("state", "mine", "finding"),
    "unapproved-versions": ("state",),
    "board": ("show",),
    "tokens": ("of",),
    "notifications": ("unread",),
    "registries/dev/unused-subjects": ("limit",),
}
QUERIES = [(page, name, value) for page, filters in PAGES.items() for name, value in filters.items()]


@pytest.mark.parametrize(("page", "name", "value"), QUERIES)
def test_a_page_refuses_a_value_that_its_filter_does_not_have(look: Look, page: str, name: str, value: str) -> None:
    answer = look("admin").get(page, {name: "nonsense"})
    text = unescape(answer.content.decode())
    assert answer.status_code == 422
    assert f"The filter “{name}” has no value “nonsense”. It can be: " in text and value in text


def test_the_topics_of_a_source_and_the_findings_of_no_source(look: Look, registries: None) -> None:
    source = make_source(name="orders")
    for address in (f"/ui/sources/{source.pk}?show=nonsense", "/ui/findings?source=nonsense"):
        assert look("admin").get(address).status_code == 422, address


@pytest.mark.parametrize(("path", "name"), [(path, name) for path, names in LISTS.items() for name in names])
def test_a_list_of_the_api_refuses_a_value_that_its_filter_does_not_have(api: Look, path: str, name: str) -> None:
    answer = api("admin").get(f"/api/v1/{path}", {name: "nonsense"})
    message = answer.json()["message"]
    assert answer.status_code == 422 and f"{name}: " in message
    assert "It can be: " in message or "must be a whole number" in message


@pytest.mark.parametrize("path", LISTS)
def test_a_list_of_the_api_refuses_a_filter_that_it_does_not_have(api: Look, path: str) -> None:
    answer = api("admin").get(f"/api/v1/{path}", {"status": "nonsense"})
    assert (
        answer.status_code == 422 and "There is no parameter 'status'; the known ones are " in answer.json()["message"]
    )
