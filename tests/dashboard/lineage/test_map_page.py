"""The map's page over real rows: what it shows, its filters, who sees it, and the drawing in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.drift.models import Finding, Source, Topic
from tests.lineage.rows import make_flow

QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
EVERY = 12
FOCUS = "subject:dev:orders-value"


@pytest.fixture
def flow(registries: None, system: Actor) -> dict[str, Any]:
    return make_flow(system)


def drawn(client: Client, query: str = "") -> dict[str, Any]:
    """The drawing's data, by node."""
    page = client.get(f"/ui/map{query}").content.decode()
    match = re.search(r'data-map="([^"]*)"', page)
    return {node["id"]: node for node in json.loads(unescape(match[1]))["nodes"]} if match else {}


def test_the_page_has_every_node_with_its_state_and_its_flows(
    look: Callable[[str], Client], flow: dict[str, Any], django_assert_max_num_queries
) -> None:
    client = look("reader")
    with django_assert_max_num_queries(QUERIES["map"]):
        page = client.get("/ui/map").content.decode()
    words = [
        "v2, v3, seen in messages",
        "by name only",
        "Its sink is not known",
        "Not scanned",
        "Break",
        'aria-current="page">Map',
    ]
    assert [word for word in words if word not in page] == []
    nodes = drawn(client)
    assert len(nodes) == EVERY
    assert nodes[FOCUS]["label"].startswith("Subject orders-value: dev, v2, v3, Break.")
    assert nodes["consumer:dev:billing"]["detail"] == "dev, v2"
    assert {node["url"] for node in nodes.values()} >= {
        "/ui/registries/dev/subjects/orders-value/",
        "/ui/registries/dev/subjects/orders-value/usage",
        f"/ui/queries/{flow['query']}",
        f"/ui/queries/{flow['query']}/variables/{flow['state']}",
        f"/ui/sources/{flow['kafka']}",
    }


def test_filters_narrow_it_and_the_nearest_part_can_be_chosen(
    look: Callable[[str], Client], flow: dict[str, Any]
) -> None:
    client = look("reader")
    kinds = {number.split(":")[0] for number in drawn(client, f"?focus={FOCUS}&distance=1")}
    assert kinds == {"topic", "subject", "producer", "consumer", "query"}
    assert set(drawn(client, "?q=payments")) == {"topic:dev:payments", "subject:dev:payments-value"}
    assert FOCUS in drawn(client, "?owner=group:shop-team")
    assert "topic:dev:payments" not in drawn(client, "?owner=group:shop-team")
    assert drawn(client, "?registry=staging") == {}
    assert "Nothing on the map matches" in client.get("/ui/map?q=nothing-of-that-name").content.decode()
    assert client.get("/ui/map?distance=9").status_code == 422


def test_a_reader_of_some_subjects_gets_no_other_name(look: Callable[[str], Client], flow: dict[str, Any]) -> None:
    client = look("reader")
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="payments-*")
    assert set(drawn(client)) == {"topic:dev:payments", "subject:dev:payments-value"}
    page = client.get("/ui/map").content.decode()
    assert not re.search(
        "orders-value|totals|billing|shop|/ui/sources/", page.split("<main")[1].replace("subject:dev:orders-value", "")
    )


def test_a_large_map_is_folded_and_a_group_opens(look: Callable[[str], Client], flow: dict[str, Any]) -> None:
    source = Source.objects.get(kind="kafka")
    Topic.objects.bulk_create(Topic(source=source, name=f"web.{number}") for number in range(400))
    client = look("reader")
    group = drawn(client)["group:topic:dev:web"]
    assert (group["name"], group["url"]) == ("web…, 400 nodes", "/ui/map?open=group%3Atopic%3Adev%3Aweb")
    assert "topic:dev:web.7" in drawn(client, group["url"].removeprefix("/ui/map"))


def test_pages_about_a_node_lead_to_the_map_around_it(look: Callable[[str], Client], flow: dict[str, Any]) -> None:
    client, finding = look("reader"), Finding.objects.get().pk
    pages = {
        "/ui/registries/dev/subjects/orders-value/": FOCUS,
        f"/ui/findings/{finding}": FOCUS,
        f"/ui/queries/{flow['query']}": f"query:{flow['query']}",
        f"/ui/sources/{flow['shop']}": f"connector:{flow['shop']}",
        f"/ui/sources/{flow['checkpoint']}": f"query:{flow['query']}",
    }
    for address, focus in pages.items():
        assert f'href="/ui/map?{urlencode({"focus": focus})}"' in client.get(address).content.decode(), address
        assert focus in drawn(client, f"?{urlencode({'focus': focus})}")
    assert 'href="/ui/map?registry=dev"' in client.get(f"/ui/sources/{flow['kafka']}").content.decode()


def test_a_field_narrows_the_map_to_its_path_and_says_what_breaks(
    look: Callable[[str], Client], flow: dict[str, Any]
) -> None:
    client = look("reader")
    page = client.get(f"/ui/map?focus={FOCUS}").content.decode()
    assert f"{urlencode({'focus': FOCUS})}&amp;field=Order.a" in page
    assert "What breaks if it changes" not in page
    chosen = f"?focus={FOCUS}&field=Order.a"
    assert set(drawn(client, chosen)) == set(drawn(client, f"?focus={FOCUS}")) - {f"state:{flow['state']}"}
    page = client.get(f"/ui/map{chosen}").content.decode()
    words = [
        "Path of",
        "What breaks if it changes",
        "They read the default null instead of data.",
        "Not checked",
        "in force",
    ]
    assert [word for word in words if word not in page] == []
    assert "has no field" in client.get(f"/ui/map?focus={FOCUS}&field=Order.z%3Cb%3E").content.decode()


def test_the_fields_page_has_the_same_panel_and_hides_what_one_may_not_see(
    look: Callable[[str], Client], flow: dict[str, Any], django_assert_max_num_queries
) -> None:
    client = look("reader")
    url = "/ui/fields?registry=dev&subject=orders-value&path=Order.a"
    with django_assert_max_num_queries(QUERIES["field"]):
        page = client.get(url).content.decode()
    assert f'/ui/queries/{flow["query"]}"' in page and "shop.public.orders" in page
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="orders-*")
    page = client.get(url).content.decode()
    assert "2 more things that you may not see may be affected." in page
    assert not re.search(f"totals|shop|/ui/queries/{flow['query']}|/ui/sources/", page.split("<main")[1])


def test_a_large_schema_is_checked_on_request(
    look: Callable[[str], Client], flow: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.subjects.field_history.LONGEST_CHECKED", 10)
    url, answer = (
        "/ui/fields?registry=dev&subject=orders-value&path=Order.a",
        "They read the default null instead of data.",
    )
    page = look("reader").get(url).content.decode()
    assert answer not in page
    assert f"{url.replace('&', '&amp;')}&amp;impact=1#impact-title" in page
    assert answer in look("reader").get(f"{url}&impact=1").content.decode()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_clicks_lead_from_a_subject_or_the_map_to_what_breaks(
    window: Callable[..., Page], flow: dict[str, Any]
) -> None:
    page, answer = window(), "They read the default null instead of data."
    page.goto("/ui/registries/dev/subjects/orders-value/")
    page.locator("#version").get_by_role("link", name="a", exact=True).click()
    expect(page.locator("#impact-title")).to_be_visible()
    expect(page.get_by_text(answer).first).to_be_visible()
    page.goto("/ui/map")
    page.locator("tr").filter(has=page.locator("th", has_text="orders-value")).get_by_role(
        "link", name=re.compile("^around it")
    ).click()
    page.get_by_role("link", name="Order.a", exact=True).click()
    expect(page.get_by_text(answer).first).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^State variable totals"))).to_have_count(0)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_drawing_has_every_node_and_keys_move_between_them(
    window: Callable[..., Page], flow: dict[str, Any]
) -> None:
    page = window()
    page.goto("/ui/map")
    nodes = page.locator("#map .map-node")
    expect(nodes).to_have_count(EVERY)
    expect(page.locator("#map .map-edge[d]")).to_have_count(9 + 3)  # and the legend's
    assert page.evaluate(CROSSED) == []
    page.get_by_role("link", name=re.compile("^Topic orders")).focus()
    page.keyboard.press("ArrowRight")
    subject = page.get_by_role("link", name=re.compile("^Subject orders-value"))
    expect(subject).to_be_focused()
    expect(page.locator("[data-map-said]")).to_contain_text("orders → (v2, v3, seen in messages)")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("link", name=re.compile("^Subject payments-value"))).to_be_focused()
    page.keyboard.press("ArrowDown")
    before = page.locator(".map-drawing").bounding_box()
    page.keyboard.press("-")
    after = page.locator(".map-drawing").bounding_box()
    assert before and after and after["width"] < before["width"]
    for width, height in ((1280, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"/ui/map?focus={FOCUS}")
        page.locator("[data-zoom='0']").click()
        assert page.evaluate(SMALLEST_TEXT) >= 11, "what can't be read as a whole is moved"
        canvas, middle = page.locator("[data-canvas]").bounding_box(), subject.bounding_box()
        assert canvas and middle and canvas["x"] <= middle["x"] <= canvas["x"] + canvas["width"] - middle["width"]
        assert page.locator("[data-map-rest]").is_visible() == page.evaluate(OVERFLOWS)
    subject.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/registries/dev/subjects/orders-value/$"))


#: the smallest letters of the drawing, in CSS pixels; whether there is more of it than is shown
SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll(".map-drawing text")].map(
  (one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a))"""
OVERFLOWS = (
    "(() => { const one = document.querySelector('[data-canvas]'); return one.scrollWidth > one.clientWidth; })()"
)
#: points of lines that lie in a node which isn't one of their ends
CROSSED = """() => {
  const boxes = [...document.querySelectorAll("#map .map-node .map-box")].map(one => one.getBoundingClientRect());
  const wrong = [];
  for (const line of document.querySelectorAll("#map .map-drawing .map-edge")) {
    const length = line.getTotalLength(), to = line.getScreenCTM();
    for (let at = 3; at < length - 3; at += 4) {
      const {x, y} = line.getPointAtLength(at).matrixTransform(to);
      if (boxes.some(box => x > box.left + 1 && x < box.right - 1 && y > box.top + 1 && y < box.bottom - 1)) wrong.push(line.textContent);
    }
  }
  return [...new Set(wrong)];
}"""
