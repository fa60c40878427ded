"""The list of subjects as a page: its facets, its order, the deleted ones, and the ways from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor, system_actor
from registry.subjects.names import SubjectName
from registry.subjects.services import delete_subject, register_version, set_standing
from registry.subjects.services.notes import change_tags
from tests.dashboard.test_pages import SUBJECT, browser, content  # noqa: F401 - fixtures

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]
BASE = "/ui/registries/dev/subjects"


@pytest.fixture
def client(browser: Callable[[str], Client], content: dict[str, int], system: Actor) -> Client:  # noqa: F811
    """A reader; beside orders-value there are a deprecated subject and a deleted one."""
    for name in ("aged-value", "gone-value"):
        register_version(registry="dev", subject=SubjectName(".", name), text='"int"', by=system)
    delete_subject(registry="dev", subject=SubjectName(".", "gone-value"), by=system)
    set_standing(
        registry="dev",
        subject=SubjectName(".", "aged-value"),
        version=1,
        standing="deprecated",
        message="old",
        by=system,
    )
    return browser("reader")


def listed(page: str) -> list[str]:
    return re.findall(r'class="primary mono" href="[^"]*"><bdi class="name">([^<]*)<', page)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["aged-value", "orders-value"]),
        ("sort=name", ["aged-value", "orders-value"]),
        ("state=deprecated", ["aged-value"]),
        ("state=deleted", ["gone-value"]),
        ("state=retired", []),
        ("attention=drift", ["orders-value"]),
        ("attention=pending", ["orders-value"]),
        ("attention=unowned", ["aged-value", "orders-value"]),
        ("attention=drift&state=deprecated", []),
        ("state=%00&attention=nothing&sort=x", ["aged-value", "orders-value"]),
    ],
)
def test_a_facet_leaves_what_it_names(client: Client, query: str, names: list[str]) -> None:
    page = client.get(f"{BASE}?{query}").content.decode()
    assert sorted(listed(page)) == names
    if not names:
        assert "No subject matches" in page and "Clear all" in page


def test_a_deleted_subject_leads_to_where_it_is_restored(client: Client) -> None:
    page = client.get(f"{BASE}?state=deleted").content.decode()
    assert "soft-deleted" in page and 'form="bulk"' not in page
    (url,) = re.findall(r'class="primary mono" href="([^"]*)"', page)
    assert client.get(unescape(url)).status_code == 200


def test_the_lists_ways_lead_somewhere(client: Client) -> None:
    page = unescape(client.get(f"{BASE}?q=orders%26x").content.decode())
    assert 'href="/ui/search?q=orders%26x"' in page
    for url in ("/ui/registries/dev/orphans", f"{BASE}?state=deprecated", f"{BASE}?state=deleted"):
        assert f'href="{url}"' in page
        assert client.get(url).status_code == 200
    assert 'href="/api/v1/docs/"' in page


def test_a_later_page_by_name_keeps_the_filters(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.pages.subject_list.PAGE_ROWS", 1)
    first = client.get(f"{BASE}?sort=name&format=AVRO").content.decode()
    later = re.search(r'rel="next" href="([^"]+)"', first)
    assert listed(first) == ["aged-value"] and later and "sort=name" in later[1] and "format=AVRO" in later[1]
    second = client.get(unescape(later[1])).content.decode()
    assert listed(second) == ["orders-value"] and 'class="num">2–2' in second
    assert 400 <= client.get(f"{BASE}?sort=name&after=%3Cscript%3E").status_code < 500


@pytest.mark.parametrize("query", ["sort=name", "state=deleted", "attention=drift", "attention=unowned"])
def test_more_subjects_take_no_more_queries(client: Client, query: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert client.get(f"{BASE}?{query}").status_code == 200
        return len(seen)

    before = queries()
    for number in range(10):
        name = SubjectName(".", f"s{number}-value")
        register_version(registry="dev", subject=name, text='"int"', by=system_actor("tests"))
        if number % 2:
            delete_subject(registry="dev", subject=name, by=system_actor("tests"))
    assert queries() <= before + 1  # counted only where there is another page


def test_the_api_is_told_of_where_tokens_are_made(client: Client) -> None:
    assert client.get("/ui/tokens").content.decode().count('href="/api/v1/docs/"') == 2


def test_a_subjects_badge_can_be_copied(client: Client) -> None:
    page = unescape(client.get(SUBJECT).content.decode())
    assert "/api/v1/can-promote?subject=orders-value&from=dev&to=" in page and "&format=badge" in page


def test_a_registry_that_is_too_large_to_be_counted_still_offers_its_tags(
    client: Client, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_tags(registry="dev", subjects=[SubjectName(".", "orders-value")], add=["gdpr"], by=system)
    monkeypatch.setattr("registry.search.facets.MOST_SUBJECTS", 0)
    page = client.get("/ui/registries/dev/subjects").content.decode()
    assert re.search(r'<option value="gdpr">\s*gdpr\s*</option>', page), "without a number"
    assert "orders-value" in listed(client.get("/ui/registries/dev/subjects?tag=gdpr").content.decode())
