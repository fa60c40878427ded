"""Stories of a day, each within a number of clicks. Typing isn't a click. Their pictures are those of docs/tour.md.

`python -m tests.stories.tour` takes the pictures again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from registry.promotions.models import PromotionRequest
from tests.stories.conftest import LOOKS, Hand
from tests.stories.shop import ORDERS, PAYMENTS, SHIPMENTS, Shop

GUIDE = Path(__file__).parents[2] / "docs" / "tour.md"
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SitsDown = Callable[..., Page]
CUSTOMERS_PAGE = "/ui/registries/dev/subjects/customers-value/"


@pytest.mark.requirement("CARD-4")
def test_a_first_release_is_approved_knowing_every_field(shop: Shop, sits_down: SitsDown) -> None:
    shop.request(ORDERS, "The checkout needs orders in staging.")
    page = sits_down("approver")
    hand = Hand(page, at_most=3)
    page.goto("/ui/")
    hand.click(page.get_by_role("region", name="Needs your review").get_by_role("link", name="orders-value"))
    fields = page.get_by_role("region", name="Fields of the new schema")
    for field in ("order_id", "customer_id", "status", "amount_cents", "placed_at", "sku", "quantity", "currency", "coupon"):  # fmt: skip
        expect(fields).to_contain_text(field)
    hand.picture("first-release", at=page.locator("#changes"))
    hand.click(page.get_by_role("button", name="Approve"))
    expect(page.get_by_text("Approved. It can be applied now.")).to_be_visible()


@pytest.mark.requirement("CARD-4")
def test_a_rename_is_mended_by_an_alias(shop: Shop, sits_down: SitsDown) -> None:
    page = sits_down("steward")
    hand = Hand(page, at_most=3)
    page.goto(CUSTOMERS_PAGE)
    hand.click(page.get_by_role("link", name="Propose version"))
    text = page.locator("textarea[name=text]")
    renamed = text.input_value().replace('"country"', '"country_code"')
    assert "country_code" in renamed
    text.fill(renamed)
    editor = page.locator("[data-schema-editor]")
    expect(editor.locator("[data-part=state]")).to_contain_text("Incompatible under BACKWARD")
    repair = editor.locator("[data-part=list] .editor-repair", has_text='Add the alias "country"').first
    hand.picture("rename", at=editor)
    hand.click(repair)
    expect(editor.locator("[data-part=state]")).to_contain_text("no problems")
    hand.click(page.get_by_role("button", name="Submit for review"))
    expect(page.locator(".head-meta")).to_contain_text("In review")
    proposed = json.loads(PromotionRequest.objects.get().items.get().text)
    assert [field.get("aliases") for field in proposed["fields"] if field["name"] == "country_code"] == [["country"]]


@pytest.mark.requirement("CARD-3")
def test_a_finding_leads_to_its_cause_and_the_people(
    shop: Shop, sits_down: SitsDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.scan_customers(monkeypatch)
    page = sits_down("steward")
    hand = Hand(page, at_most=2)
    page.goto("/ui/")
    hand.click(page.get_by_role("region", name="Open problems").get_by_role("link", name=re.compile("Schema id")).first)
    expect(page.locator("#cause")).to_be_visible()
    affected = page.locator("#affected")
    for name in ("billing", "approver2", "crm-sync", "crm@example.com"):
        expect(affected).to_contain_text(name)
    hand.picture("finding", at=page.locator("#cause"))


@pytest.mark.requirement("CARD-4")
def test_the_page_of_a_field_says_what_breaks_without_it(shop: Shop, sits_down: SitsDown) -> None:
    page = sits_down("steward")
    hand = Hand(page, at_most=2)
    page.goto(CUSTOMERS_PAGE)
    hand.click(page.locator("main").get_by_role("link", name="email", exact=True).first)
    impact = page.get_by_role("region", name=re.compile("breaks"))
    expect(impact.first).to_contain_text("billing")
    hand.picture("field", at=impact)


@pytest.mark.requirement("CARD-4")
def test_safe_requests_are_approved_together(shop: Shop, sits_down: SitsDown) -> None:
    for subject in (PAYMENTS, SHIPMENTS):
        shop.request(subject, "Adds an optional note.")
    page = sits_down("approver")
    hand = Hand(page, at_most=3)
    page.goto("/ui/")
    hand.click(page.get_by_role("link", name="Approve several"))
    hand.click(page.locator("summary", has_text="What changes").first)
    expect(page.locator("details[open]").first).to_contain_text("note")
    hand.picture("together")
    hand.click(page.get_by_role("button", name="Approve 2 requests"))
    expect(page.get_by_text("Approved and ready to apply")).to_be_visible()
    assert set(PromotionRequest.objects.values_list("state", flat=True)) == {"approved"}


@pytest.mark.requirement("DBX-4")
def test_an_operator_checks_a_restart(shop: Shop, sits_down: SitsDown, settings: Any, checkpoints: Path) -> None:
    shop.scan_state(settings, checkpoints)
    page = sits_down("steward")
    hand = Hand(page, at_most=4)
    page.goto("/ui/queries")
    hand.click(page.get_by_role("link", name="customer_totals").first)
    hand.click(page.get_by_role("link", name="Check a restart").first)
    hand.click(page.get_by_role("button", name="Use the stored state"))
    plan = page.get_by_role("textbox", name="Planned state")
    expect(plan).to_have_value(re.compile("amount_cents BIGINT"))
    plan.fill(plan.input_value().replace("amount_cents BIGINT, status", "amount_cents STRING, status"))
    hand.click(page.get_by_role("button", name="Check", exact=True))
    expect(page.locator(".verdict-title")).to_have_text("Fails at start")
    hand.picture("restart")


@pytest.mark.requirement("CARD-3")
def test_an_operator_sees_which_versions_are_in_use(
    shop: Shop, sits_down: SitsDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.scan_customers(monkeypatch)
    page = sits_down("steward")
    hand = Hand(page, at_most=1)
    page.goto(CUSTOMERS_PAGE)
    hand.click(page.locator("main").get_by_role("link", name="Usage").first)
    expect(page.locator("main")).to_contain_text("billing")
    hand.picture("usage", at=page.locator(".verdict"))


@pytest.mark.requirement("CARD-4")
def test_the_map_shows_where_the_customers_flow(
    shop: Shop, sits_down: SitsDown, monkeypatch: pytest.MonkeyPatch, settings: Any, checkpoints: Path
) -> None:
    shop.scan_customers(monkeypatch)
    shop.scan_state(settings, checkpoints)
    page = sits_down("steward")
    hand = Hand(page, at_most=2)
    page.goto(CUSTOMERS_PAGE)
    hand.click(page.locator(".head-actions summary").first)
    hand.click(page.get_by_role("link", name="Show on map").first)
    expect(page.locator("main svg").first).to_be_visible()
    hand.picture("map")


@pytest.mark.requirement("CARD-4")
def test_a_newcomer_takes_the_tour(
    shop: Shop, sits_down: SitsDown, monkeypatch: pytest.MonkeyPatch, settings: Any, checkpoints: Path
) -> None:
    shop.request(ORDERS, "The checkout needs orders in staging.")
    shop.scan_customers(monkeypatch)
    shop.scan_state(settings, checkpoints)
    page = sits_down("reader")
    hand = Hand(page, at_most=6)
    page.goto("/ui/")
    hand.picture("home")
    hand.click(page.get_by_role("link", name="Take the tour"))
    for title in ("A release in review", "A drift finding", "A restart that would lose state", "A comparison of two versions"):  # fmt: skip
        expect(page.locator("main")).to_contain_text(title)
        hand.click(page.get_by_role("link", name="Next step"))
    expect(page.locator("main")).to_contain_text("The map")
    hand.click(page.get_by_role("button", name="Finish"))
    expect(page.locator("h1")).to_have_text("Home")
    expect(page.get_by_role("link", name="Take the tour")).to_have_count(0)


@pytest.mark.requirement("CARD-4")
def test_a_newcomer_finds_a_field_by_typing(shop: Shop, sits_down: SitsDown) -> None:
    page = sits_down("reader")
    hand = Hand(page, at_most=1)
    page.goto("/ui/")
    box = page.get_by_role("combobox", name="Search").or_(page.get_by_role("searchbox")).first
    box.fill("loyalty_points")
    box.press("Enter")
    hand.picture("search")
    hand.click(page.locator("main").get_by_role("link", name=re.compile("loyalty_points")).first)
    expect(page.locator("main")).to_contain_text("version 2")


@pytest.mark.requirement("CARD-4")
def test_a_suggestion_is_taken_with_one_click(shop: Shop, sits_down: SitsDown) -> None:
    number = shop.propose_coupon()
    address = f"/ui/promotions/{number}"
    reviewer = sits_down("approver")
    hand = Hand(reviewer, at_most=3)
    reviewer.goto(address)
    form = reviewer.locator("#comment")
    hand.click(form.locator("summary", has_text="Suggest a change"))
    text = form.locator("textarea[name=suggestion]")
    form.locator("textarea[name=text]").fill("Call it voucher, as the shop does.")
    text.fill(text.input_value().replace('"coupon_code"', '"voucher"'))
    expect(form.locator("[data-part=state]")).to_contain_text("no problems")
    hand.picture("suggest", at=form)
    hand.click(reviewer.get_by_role("button", name="Start discussion"))
    expect(reviewer.locator("#discussion")).to_contain_text("Call it voucher")

    author = sits_down("steward")
    hand = Hand(author, at_most=1)
    author.goto(address)
    hand.picture("suggestion", at=author.locator("#discussion"))
    hand.click(author.get_by_role("button", name="Take suggestion"))
    expect(author.locator("#discussion")).to_contain_text("Suggestion taken")
    expect(author.locator("#changes")).to_contain_text("voucher")

    hand = Hand(reviewer, at_most=1)
    reviewer.goto(address)
    hand.click(reviewer.get_by_role("button", name="Approve", exact=True))
    expect(reviewer.get_by_text("Approved. It can be applied now.")).to_be_visible()


def test_the_guide_shows_the_pictures_that_the_stories_take() -> None:
    """Each moment in light and dark, on a desktop and on a phone."""
    guide = GUIDE.read_text()
    shown = re.findall(r'(?:src|srcset)="tour/([^"]+)"', guide)
    assert sorted(shown) == sorted(path.name for path in GUIDE.with_suffix("").iterdir())
    assert {name.removesuffix(".webp") for name in shown} == {
        f"{moment}{look}" for moment in re.findall(r'src="tour/([a-z-]+)-phone\.webp"', guide) for look in LOOKS
    }
    assert sum(path.stat().st_size for path in GUIDE.with_suffix("").iterdir()) < 1_500_000
