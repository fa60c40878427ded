"""Inbox and webhooks in a real browser over the real database, with JavaScript and without."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from registry.access.models import User
from registry.access.roles import Actor
from registry.notifications.delivering import deliver
from registry.notifications.models import Delivery
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint
from tests.site.shoot import ARGS, CHROMIUM

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
#: a folder that pictures of the pages go to; none without it
PICTURES = os.environ.get("PICTURES", "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium; its driver runs a loop in this thread, in which Django would refuse the database."""
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield launched
        launched.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
    else:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


@pytest.fixture
def window(browser: Browser, live_server: Any, person: Callable[[str], Actor]) -> Iterator[Callable[..., Page]]:
    """A signed-in window of the steward; what the console complains about fails the test."""
    person("steward")
    user = User.objects.get(username="steward")
    user.set_password("stewarding")
    user.save()
    contexts, complaints = [], []

    def make(**options: Any) -> Page:
        context = browser.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto("/ui/accounts/login/")
        page.fill("input[name=login]", "steward")
        page.fill("input[name=password]", "stewarding")
        page.click("main form button")
        page.wait_for_url("**/ui/")
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def picture(page: Page, name: str) -> None:
    """Keep a picture where they are asked for; no page scrolls sideways."""
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


@pytest.mark.parametrize("kind", ["wide", "phone", "plain"])
def test_from_a_subscription_to_a_delivered_message(
    window: Callable[..., Page], server: Endpoint, person: Callable[[str], Actor], kind: str
) -> None:
    options = {
        "wide": {"viewport": {"width": 1280, "height": 900}},
        "phone": {"viewport": {"width": 390, "height": 900}, "color_scheme": "dark"},
        "plain": {"java_script_enabled": False},
    }[kind]
    page = window(**options)
    page.goto("/ui/inbox/subscriptions")
    page.fill("input[name=subject_pattern]", "orders-*")
    page.click("main form button.button-primary")
    expect(page.get_by_text("be told", exact=True)).to_be_visible()
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
    page.click("text=Send again")
    expect(page.get_by_text("It is sent again")).to_be_visible()
    page.goto("/ui/inbox")
    if kind != "plain":
        picture(page, f"{kind}-inbox")
    page.click("text=Mark read >> nth=0")
    expect(page.get_by_text("read", exact=True)).to_have_count(1)
    page.goto("/ui/inbox/subscriptions")
    if kind != "plain":
        picture(page, f"{kind}-subscriptions")
    page.click("main table button")
    expect(page.get_by_text("No subscription yet")).to_be_visible()
