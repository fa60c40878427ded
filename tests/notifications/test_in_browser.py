"""Inbox and webhooks in a real browser over the real database, with JavaScript and without."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from registry.notifications.models import Delivery
from registry.notifications.webhook_delivery import deliver
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
#: a folder that pictures of the pages go to; none without it
PICTURES = os.environ.get("PICTURES", "")


def picture(page: Page, name: str) -> None:
    """Keep a picture where they are asked for; no page scrolls sideways."""
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


@pytest.mark.parametrize("kind", ["wide", "phone", "plain"])
def test_from_a_subscription_to_a_delivered_message(window: Callable[..., Page], server: Endpoint, kind: str) -> None:
    options = {
        "wide": {"viewport": {"width": 1280, "height": 900}},
        "phone": {"viewport": {"width": 390, "height": 900}, "color_scheme": "dark"},
        "plain": {"java_script_enabled": False},
    }[kind]
    page = window(**options)
    page.goto("/ui/inbox/subscriptions")
    page.fill("input[name=subject_pattern]", "orders-*")
    page.click("main form button.button-primary")
    expect(page.get_by_text("You are notified", exact=True)).to_be_visible()
    page.goto("/ui/webhooks/add")
    page.fill("input[name=name]", "Build server")
    page.fill("input[name=url]", server.url)
    if kind != "plain":
        picture(page, f"{kind}-form")
    page.click("main form button.button-primary")
    expect(page.locator("#secret")).to_contain_text("whsec_")
    tell()
    tell(subject="orders-" + "x" * 300, text="A long name: " + "x" * 300)
    server.answer = b"taken by build 4711"
    for row in Delivery.objects.order_by("id")[:1]:
        deliver(row.pk)
    server.status = 500
    for row in Delivery.objects.order_by("-id")[:1]:
        deliver(row.pk)
    if kind != "plain":
        picture(page, f"{kind}-key")
    page.goto("/ui/webhooks")
    if kind != "plain":
        picture(page, f"{kind}-webhooks")
    page.click("main table a")
    expect(page.get_by_text("taken by build 4711").first).to_be_visible()
    expect(page.locator("#secret")).to_have_count(0)
    if kind != "plain":
        picture(page, f"{kind}-webhook")
    page.click("text=Resend")
    expect(page.get_by_text("Delivery queued again")).to_be_visible()
    page.goto("/ui/inbox")
    if kind != "plain":
        picture(page, f"{kind}-inbox")
    page.click("text=Mark as read >> nth=0")
    expect(page.get_by_text("Read", exact=True)).to_have_count(1)
    page.goto("/ui/inbox/subscriptions")
    if kind != "plain":
        picture(page, f"{kind}-subscriptions")
    page.click("main table button")
    expect(page.get_by_text("No subscriptions yet")).to_be_visible()
