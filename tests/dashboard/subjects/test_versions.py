"""The table of a subject's versions: drawn in parts, two of them ticked to be compared, and the strip above it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.test import Client

from dashboard.subjects import versions
from registry.access.roles import Actor
from registry.subjects.services import delete_version, register_version, set_config
from registry.subjects.versions import parsed_schemas
from registry.subjects.versions.qualified_names import SubjectName
from tests.dashboard.compatibility.test_compatibility_pages import seen
from tests.markup import compact

ORDERS: Final = SubjectName(".", "orders-value")
PAGE: Final = "/ui/registries/dev/subjects/orders-value/"
Look = Callable[[str], Client]

pytestmark = pytest.mark.requirement("CARD-2")


def schema(number: int) -> str:
    """The text of a version: fields f1 to f<number>."""
    fields = [{"name": f"f{index}", "type": "int", "default": 0} for index in range(1, number + 1)]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


@pytest.fixture
def steward(person: Callable[[str], Actor], monkeypatch: pytest.MonkeyPatch) -> Actor:
    """Seven versions, of which two are drawn at once; version 6 is soft-deleted."""
    by = person("steward")
    for number in range(1, 8):
        register_version(registry="dev", subject=ORDERS, text=schema(number), by=by)
    delete_version(registry="dev", subject=ORDERS, version=6, by=by)
    monkeypatch.setattr(versions, "ROWS", 2)
    return by


def page_of(response: Any) -> Any:
    """What the page shows."""
    assert response.status_code == 200
    return response.context["page"]


@pytest.mark.parametrize(
    ("query", "rows", "selected", "sentence"),
    [
        ("", [7, 6], 7, ["2 added", "soft-deleted"]),
        ("?version=6", [7, 6], 6, ["2 added", "soft-deleted"]),
        ("?version=4", [5, 4], 4, ["1 added", "1 added"]),
        ("?version=7&before=4", [3, 2], 7, ["1 added", "1 added"]),
        ("?before=2", [1], 7, ["first version"]),
        ("?version=7&before=x", [7, 6], 7, ["2 added", "soft-deleted"]),
        ("?version=7&before=0", [7, 6], 7, ["2 added", "soft-deleted"]),
    ],
)
def test_versions_are_drawn_in_parts(
    look: Look, steward: Actor, query: str, rows: list[int], selected: int, sentence: list[str]
) -> None:
    page = page_of(look("reader").get(f"{PAGE}{query}"))
    assert [row.info.version for row in page.versions] == rows
    assert page.selected.info.version == selected
    assert [row.summary for row in page.versions] == sentence
    assert page.versions_paging.total == 7


def test_pages_lead_to_each_other(look: Look, steward: Actor) -> None:
    browser, url, pages = look("reader"), PAGE, []
    while url:
        page = page_of(browser.get(url))
        pages.append([row.info.version for row in page.versions])
        assert page.selected.info.version == 7
        url = page.versions_paging.next_url
    assert pages == [[7, 6], [5, 4], [3, 2], [1]]
    assert page.versions_paging.previous_url.startswith(f"{PAGE}?version=7&before=4")


def test_no_more_is_parsed_than_is_drawn(look: Look, steward: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    parse = parsed_schemas._parse_stored
    monkeypatch.setattr(parsed_schemas, "_parse_stored", lambda stored: read.append(stored.text) or parse(stored))
    page_of(look("reader").get(PAGE))
    assert len(set(read)) == 2, "version 7 and the live one before it"


@pytest.mark.parametrize(
    ("query", "origins"),
    [
        ("", {"Order.f5": None, "Order.f6": 7, "Order.f7": 7}),
        ("?version=2", {"Order.f1": 1, "Order.f2": 2}),
        ("?version=5", {"Order.f3": None, "Order.f4": 4, "Order.f5": 5}),
        ("?version=1", {"Order.f1": 1}),
    ],
)
def test_the_version_that_brought_a_field_is_reported_where_it_is_known(
    look: Look, steward: Actor, query: str, origins: dict[str, int | None]
) -> None:
    fields = {
        field.item.path: field.since
        for field in page_of(look("reader").get(f"{PAGE}{query}")).selected.structure.fields
    }
    assert {path: fields[path] for path in origins} == origins


def test_the_version_of_the_same_group_is_read_too(look: Look, steward: Actor) -> None:
    set_config(registry="dev", subject=ORDERS, compatibility_group="major", level="BACKWARD", by=steward)
    for number, major in ((8, "1"), (9, "2"), (10, "2"), (11, "1")):
        metadata = {"properties": {"major": major}}
        register_version(registry="dev", subject=ORDERS, text=schema(number), metadata=metadata, by=steward)
    row = page_of(look("reader").get(PAGE)).versions[0]
    assert (row.info.version, row.verdict_note) == (11, "against version 8 in its group")


@pytest.mark.parametrize(
    ("picks", "sides"), [([4, 2], (2, 4)), ([2, 4], (2, 4)), ([6, 7], (6, 7)), ([3, 3, 5], (3, 5))]
)
def test_two_that_are_ticked_are_compared_the_older_one_first(
    look: Look, steward: Actor, picks: list[int], sides: tuple[int, int]
) -> None:
    response = look("reader").get(f"{PAGE}compare", {"pick": picks})
    assert (response.status_code, response["Location"]) == (302, f"{PAGE}compare?from={sides[0]}&to={sides[1]}")


@pytest.mark.parametrize(
    ("picks", "sentence"),
    [
        ([2], "A comparison needs two versions. You selected 1."),
        ([2, 2], "A comparison needs two versions. You selected 1."),
        ([1, 2, 3], "A comparison needs two versions. You selected 3."),
    ],
)
def test_another_number_of_them_is_answered_with_a_sentence(
    look: Look, steward: Actor, picks: list[int], sentence: str
) -> None:
    response = look("reader").get(f"{PAGE}compare", {"pick": picks})
    assert response.status_code == 422
    assert sentence in seen(response)


def test_the_table_has_boxes_and_fingerprints(look: Look, steward: Actor) -> None:
    response = look("reader").get(PAGE)
    text, row = compact(response.content.decode()), page_of(response).versions[0]
    assert text.count('type="checkbox" form="compare" name="pick"') == 2
    assert (
        f'title="fingerprint {row.info.schema.fingerprint}"' in text and f"{row.info.schema.fingerprint[:12]}…" in text
    )


def test_a_content_that_is_elsewhere_alone_is_on_the_strip(look: Look, steward: Actor, system: Actor) -> None:
    register_version(registry="staging", subject=ORDERS, text=schema(5), by=system)
    register_version(registry="staging", subject=ORDERS, text=schema(20), by=system)
    response = look("reader").get(PAGE)
    strip = page_of(response).lanes
    assert [(head.version, head.elsewhere) for head in strip.heads][-1] == (2, "staging")
    cells = {lane.environment.name: lane.cells[-1] for lane in strip.lanes}
    assert (cells["dev"].there, cells["staging"].there, cells["staging"].direct) == (None, 2, True)
    assert "staging v2" in seen(response) and "missing here" in seen(response)
    assert "UTC" in compact(response.content.decode()).split('class="dot', 1)[1].split('"', 6)[4]
    there = look("reader").get("/ui/registries/staging/subjects/orders-value/")
    assert "dev v7" in seen(there)


def test_the_strip_says_that_it_is_cut(look: Look, steward: Actor) -> None:
    assert "The table lists all versions" not in seen(look("reader").get(PAGE))
    for number in range(8, 16):
        register_version(registry="dev", subject=ORDERS, text=schema(number), by=steward)
    response = look("reader").get(PAGE)
    assert "The newest 12 of 14. The table lists all versions" in seen(response)
    assert page_of(response).lanes.heads[0].version == 3
