"""The list of subjects as a page: its facets, its order, the deleted ones, and the ways from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.subjects.filters import choice_id
from registry.access.models import Ownership, RoleGrant, User
from registry.access.roles import Actor, system_actor
from registry.subjects.lifecycle.notes import change_tags
from registry.subjects.services import delete_subject, register_version, set_version_status
from registry.subjects.versions.qualified_names import SubjectName
from tests.dashboard.test_every_page import SUBJECT, content  # noqa: F401 - fixtures
from tests.markup import compact

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]
BASE = "/ui/registries/dev/subjects"


@pytest.fixture
def client(look: Callable[[str], Client], content: dict[str, int], system: Actor) -> Client:  # noqa: F811
    """A reader; beside orders-value there are a deprecated subject and a deleted one."""
    for name in ("aged-value", "gone-value"):
        register_version(registry="dev", subject=SubjectName(".", name), text='"int"', by=system)
    delete_subject(registry="dev", subject=SubjectName(".", "gone-value"), by=system)
    set_version_status(
        registry="dev",
        subject=SubjectName(".", "aged-value"),
        version=1,
        status="deprecated",
        message="old",
        by=system,
    )
    return look("reader")


def listed(page: str) -> list[str]:
    return re.findall(r'class="primary mono" href="[^"]*"><bdi class="name">([^<]*)<', compact(page))


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
    ],
)
def test_a_facet_leaves_what_it_names(client: Client, query: str, names: list[str]) -> None:
    page = client.get(f"{BASE}?{query}").content.decode()
    assert sorted(listed(page)) == names
    if not names:
        assert "No subject matches" in page and "Clear all" in page


@pytest.mark.parametrize(
    ("texts", "signs"),
    [
        ({"dev": ["int", "long"], "staging": ["int"], "prod": ["int", "long"]}, ["1 behind dev", "another schema than the newest of staging"]),
        ({"dev": ["int", "long"], "prod": ["int", "long", "int"]}, ["another schema than the newest of dev"]),
        ({"dev": ["int", "long"], "staging": ["int", "long"], "prod": ["long"]}, []),
        ({"dev": ["int", "long"], "prod": ["int"]}, ["1 behind dev"]),
    ],
)  # fmt: skip
def test_an_environment_differs_by_its_schema_not_by_its_number(
    client: Client, system: Actor, texts: dict[str, list[str]], signs: list[str]
) -> None:
    for registry, types in texts.items():
        for number, name in enumerate(types):
            register_version(
                registry=registry, subject=SubjectName(".", "many-value"), text=f'"{name}"', by=system, release=True,
                metadata={"properties": {"number": str(number)}}, force="a test",
            )  # fmt: skip
    page = compact(client.get(f"{BASE}?q=many").content.decode())
    shown = re.findall(r'<span class="behind" title="([^"]*)"', page)
    assert [unescape(words) for words in shown] == signs


@pytest.mark.parametrize("name", ["q", "tag", "owner", "level", "state", "sort"])
def test_an_address_of_many_words_costs_no_more_than_one_of_some(client: Client, name: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        response = client.get(BASE, {name: "a " * 20_000})
    assert response.status_code == (422 if name in {"state", "sort"} else 200), "a value that the filter doesn't have"
    assert max(len(query["sql"]) for query in queries) < 20_000, "a condition a word would take seconds to write"


def test_a_deleted_subject_leads_to_where_it_is_restored(client: Client) -> None:
    page = client.get(f"{BASE}?state=deleted").content.decode()
    assert "soft-deleted" in page and 'form="bulk"' not in page
    (url,) = re.findall(r'class="primary mono" href="([^"]*)"', compact(page))
    assert client.get(unescape(url)).status_code == 200


def test_the_lists_ways_lead_somewhere(client: Client) -> None:
    page = unescape(client.get(f"{BASE}?q=orders%26x").content.decode())
    assert 'href="/ui/search?q=orders%26x"' in page
    for url in ("/ui/registries/dev/unused-subjects", f"{BASE}?state=deprecated", f"{BASE}?state=deleted"):
        assert f'href="{url}"' in page
        assert client.get(url).status_code == 200
    assert 'href="/api/v1/docs/"' in page


def test_a_later_page_by_name_keeps_the_filters(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.subjects.subject_list.PAGE_ROWS", 1)
    first = client.get(f"{BASE}?sort=name&format=AVRO").content.decode()
    later = re.search(r'rel="next" href="([^"]+)"', compact(first))
    assert listed(first) == ["aged-value"] and later and "sort=name" in later[1] and "format=AVRO" in later[1]
    second = client.get(unescape(later[1])).content.decode()
    assert listed(second) == ["orders-value"] and 'class="num">2–2' in compact(second)
    assert 400 <= client.get(f"{BASE}?sort=name&after=%3Cscript%3E").status_code < 500


@pytest.mark.parametrize("query", ["sort=name", "state=deleted", "attention=drift", "attention=unowned"])
def test_more_subjects_take_no_more_queries(client: Client, query: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as executed:
            assert client.get(f"{BASE}?{query}").status_code == 200
        return len(executed)

    before = queries()
    for number in range(10):
        name = SubjectName(".", f"s{number}-value")
        register_version(registry="dev", subject=name, text='"int"', by=system_actor("tests"))
        if number % 2:
            delete_subject(registry="dev", subject=name, by=system_actor("tests"))
    assert queries() <= before + 1  # counted only where there is another page


def test_the_page_of_tokens_shows_how_to_use_the_api(client: Client) -> None:
    assert client.get("/ui/tokens").content.decode().count('href="/api/v1/docs/"') == 2


def test_a_subjects_badge_can_be_copied(client: Client) -> None:
    page = unescape(client.get(SUBJECT).content.decode())
    assert "/api/v1/can-promote?subject=orders-value&from=dev&to=" in page and "&format=badge" in page


@pytest.fixture
def large(client: Client, system: Actor, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A registry that isn't counted with its page; one of its two subjects has a tag."""
    change_tags(registry="dev", subjects=[SubjectName(".", "orders-value")], add=["gdpr"], by=system)
    monkeypatch.setattr("registry.search.facets.MAX_PATTERN_MATCHES", 0)
    return client


def numbers(client: Client, query: str = "", target: str = "counts") -> dict[str, str]:
    """What the filters' choices are called now, by their ids; each of them stands on the page."""
    response = client.get(f"{BASE}?{query}", headers={"HX-Request": "true", "HX-Target": target})
    assert response.status_code == 200 and "HX-Target" in response["Vary"]
    swapped = r'<option id="([^"]*)" hx-swap-oob="innerHTML">([^<]*)</option>'
    labels = {key: unescape(label) for key, label in re.findall(swapped, compact(response.content.decode()))}
    page = compact(client.get(BASE).content.decode())
    assert set(labels) == set(re.findall(r'<option id="([^"]*)" value=', page))
    return labels


def test_a_large_registry_has_its_page_without_numbers_and_still_offers_its_tags(large: Client) -> None:
    page = compact(large.get(BASE).content.decode())
    assert re.search(r'<option id="[^"]*" value="gdpr">gdpr</option>', page), "without a number"
    assert f'id="counts" hx-get="{BASE}" hx-trigger="load"' in page
    assert "orders-value" in listed(large.get(f"{BASE}?tag=gdpr").content.decode())


def test_the_numbers_of_a_large_registry_come_after_its_page(large: Client) -> None:
    assert (
        numbers(large).items()
        >= {
            choice_id("format", ""): "Any format",
            choice_id("format", "AVRO"): "Avro (2)",
            choice_id("attention", "drift"): "Open drift findings (1)",
            choice_id("attention", "unowned"): "No owner (2)",
            choice_id("tag", "gdpr"): "gdpr (1)",
            choice_id("state", "deprecated"): "Deprecated (1)",
            choice_id("sort", "name"): "By name",
        }.items()
    )
    assert numbers(large, "q=aged")[choice_id("format", "AVRO")] == "Avro (1)"
    assert numbers(large, "q=aged")[choice_id("tag", "gdpr")] == "gdpr (0)", "of every choice that is there"


def test_without_htmx_they_are_asked_for_with_the_page(large: Client) -> None:
    page = large.get(f"{BASE}?q=aged").content.decode()
    (url,) = re.findall(r'id="counts"[^>]*><a href="([^"]*)"', compact(page))
    counted = large.get(unescape(url)).content.decode()
    assert listed(counted) == ["aged-value"] and "Avro (1)" in counted and "Counted " in counted
    assert 'hx-trigger="load"' not in counted


def test_a_list_that_htmx_narrows_tells_the_filters_around_it(client: Client) -> None:
    assert numbers(client, "q=aged", target="list")[choice_id("format", "AVRO")] == "Avro (1)"
    assert "hx-swap-oob" not in client.get(BASE).content.decode()
    assert 'id="counts"' not in client.get(f"{BASE}?state=deleted").content.decode()


def test_what_takes_too_long_is_said(large: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.subjects.filters.COUNTING_SECONDS", 0)
    page = large.get(f"{BASE}?counts=1").content.decode()
    assert "There are too many subjects to count in time." in page and "Avro (" not in page


def test_who_may_not_read_gets_no_numbers(large: Client, look: Callable[[str], Client]) -> None:
    RoleGrant.objects.filter(user__username="reader").delete()
    assert large.get(BASE, headers={"HX-Request": "true", "HX-Target": "counts"}).status_code == 403


def test_where_not_all_without_an_owner_come_first_that_is_said(
    client: Client, person: Callable[[str], Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    Ownership.objects.create(subject_pattern="x*", user=User.objects.get(username=person("steward").name))
    sentence = "Subjects without an owner are listed first"
    assert sentence not in client.get(BASE).content.decode()
    monkeypatch.setattr("registry.search.subject_list.MAX_SCANNED", 1)
    page = client.get(BASE).content.decode()
    assert sentence in page and f'href="{BASE}?attention=unowned"' in page
    assert sentence not in client.get(f"{BASE}?q=value").content.decode()


@pytest.mark.parametrize(("sort", "way"), [("", "descending"), ("name", "ascending"), ("changed", "descending")])
def test_a_columns_head_sorts_by_it(client: Client, sort: str, way: str) -> None:
    page = client.get(BASE, {"sort": sort, "format": "AVRO"}).content.decode()
    heads = re.findall(r'<th scope="col"( aria-sort="[a-z]+")?><a href="([^"]*)">', compact(page))
    assert [bool(sorted_) for sorted_, _ in heads] == [name == sort for name in ("", "name", "changed")]
    assert [sorted_ for sorted_, _ in heads if sorted_] == [f' aria-sort="{way}"']
    for (_, url), name in zip(heads, ("", "name", "changed"), strict=True):
        assert "format=AVRO" in url and (f"sort={name}" in url if name else "sort" not in url)
        assert client.get(unescape(url)).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "mode=READONLY",
        "level_from=own",
        "references=refers",
        "references=referred",
        "use=unused",
        "mode=IMPORT&sort=name",
    ],
)
def test_a_filter_that_leaves_nothing_is_a_chip(client: Client, query: str) -> None:
    page = client.get(f"{BASE}?{query}").content.decode()
    assert listed(page) == [] and "No subject matches" in page and "remove this filter" in page
