"""The check of a restart in a real browser over the real database, with and without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"


@pytest.mark.requirement("DBX-4", "CARD-3")
@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without"])
@pytest.mark.parametrize("width", [1280, 390])
def test_from_the_stored_state_to_a_report(
    window: Callable[..., Page], settings: Any, scripts: bool, width: int
) -> None:
    settings.CHECKPOINT_ROOTS = [FIXTURES]
    page = window(java_script_enabled=scripts, viewport={"width": width, "height": 900})
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
