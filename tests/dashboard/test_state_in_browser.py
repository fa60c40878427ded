"""The check of a restart in a real browser over the real database, with and without JavaScript."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from registry.access.models import User
from registry.access.roles import Actor
from tests.site.shoot import ARGS, CHROMIUM

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"


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
def steward(
    browser: Browser, live_server: Any, person: Callable[[str], Actor], settings: Any
) -> Iterator[Callable[..., Page]]:
    """A window of a steward; what the console complains about fails the test."""
    settings.CHECKPOINT_ROOTS = [FIXTURES]
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
    assert [text for text in complaints if "422" not in text] == []


@pytest.mark.requirement("DBX-4", "CARD-3")
@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without"])
@pytest.mark.parametrize("width", [1280, 390])
def test_from_the_stored_state_to_a_report(steward: Callable[..., Page], scripts: bool, width: int) -> None:
    page = steward(java_script_enabled=scripts, viewport={"width": width, "height": 900})
    page.goto("/ui/state-checks/new")
    page.fill("[name=path]", str(FIXTURES / "customer_totals"))
    page.click("text=Start from what is stored")
    plan = page.input_value("[name=plan]")
    assert '"name": "totals"' in plan
    page.fill("[name=plan]", plan.replace("status STRING, currency STRING", "state STRING, currency STRING"))
    page.click("button[value=check]")
    expect(page.locator(".verdict-title")).to_have_text("Loses data")
    expect(page.get_by_text("look like one field renamed")).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    page.click("text=Change it and check again")
    assert "state STRING" in page.input_value("[name=plan]")
    page.fill("[name=plan]", "{")
    page.click("button[value=check]")
    expect(page.locator("[role=alert]")).to_contain_text("not JSON")
