"""The search box in a real browser: from typing to the field's row."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from registry.access.roles import Actor
from registry.search import services
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import parse_subject
from tests.search.conftest import SUBJECTS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.requirement("CARD-2"),
]
#: where pictures go, for those who want to look at them
PICTURES = os.environ.get("SEARCH_PICTURES", "")


def picture(page: Page, name: str) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{name} is {wide} px too wide"
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


@pytest.fixture
def indexed(registries: None, system: Actor) -> None:
    for registry, subject, text in SUBJECTS:
        if registry != "prod":
            register_version(registry=registry, subject=parse_subject(subject), text=text, by=system)
    services.index_stale()


@pytest.mark.parametrize(
    ("look", "options"),
    [
        ("light", {"viewport": {"width": 1280, "height": 900}}),
        ("dark", {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}),
    ],
)
def test_from_the_box_to_the_fields_row(indexed: None, window: Callable[..., Page], look: str, options: Any) -> None:
    page = window("reader", **options)
    page.goto("/ui/audit")
    page.keyboard.press("/")
    box = page.locator("#find")
    if page.locator("main [data-search]").count():
        page.locator("label[for=find]").click()
    expect(box).to_be_focused()
    picture(page, f"{look}-box")
    page.keyboard.type("field:email")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/search?q=field%3Aemail&go=1")
    expect(page.locator("#group-fields")).to_be_visible()
    picture(page, f"{look}-hits")
    page.get_by_role("link", name="Customer.address.email").click()
    page.wait_for_url("**#field-3")
    expect(page.locator("tr#field-3")).to_be_in_viewport()
    expect(page.locator("tr#field-3")).to_contain_text("email")
    page.go_back()
    page.fill("#search", "nothing-like-this")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No results")).to_be_visible()
    picture(page, f"{look}-nothing")


def test_without_javascript(indexed: None, window: Callable[..., Page]) -> None:
    page = window("reader", java_script_enabled=False, viewport={"width": 1280, "height": 900})
    page.goto("/ui/")
    page.locator("label[for=find]").click()
    page.locator("#find").fill("orders")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/search?q=orders&go=1")
    expect(page.locator("#group-subjects")).to_be_visible()
    page.get_by_text("Paste a schema or a message").click()
    page.locator("textarea[name=pasted]").fill("00 00 00 00 01 02")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("Versions with this schema")).to_be_visible()
    picture(page, "pasted")
    page.get_by_role("button", name="Decode the message").click()
    expect(page.locator("h1")).to_have_text("Decode a message")


def test_names_are_offered_while_typing_and_an_exact_one_opens(indexed: None, window: Callable[..., Page]) -> None:
    page = window("reader", viewport={"width": 1280, "height": 900})
    page.goto("/ui/queries")
    page.keyboard.press("/")
    page.keyboard.type("orders")
    expect(page.locator("#find-names option[value='orders-value']")).to_have_attribute("label", "dev, staging")
    page.keyboard.press("Escape")
    expect(page.locator("#find")).not_to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("orders-value")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/ui/registries/dev/subjects/orders-value/$"))
