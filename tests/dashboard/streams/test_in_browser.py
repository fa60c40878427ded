"""The pages of streaming queries and of the check before a restart, in a real browser."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from registry.streams.models import StateVariable
from tests.dashboard.streams.test_streams_pages import keep

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
#: where pictures go, for those who want to look at them
PICTURES = os.environ.get("STREAMS_PICTURES", "")


def picture(page: Page, name: str) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{name} is {wide} px too wide"
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


@pytest.mark.requirement("DBX-5", "DBX-6")
@pytest.mark.parametrize(
    ("look", "options"),
    [
        ("light", {"viewport": {"width": 1280, "height": 900}, "java_script_enabled": False}),
        ("dark", {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"}),
        ("phone", {"viewport": {"width": 390, "height": 844}}),
    ],
)
def test_from_the_list_to_what_a_version_changed(
    window: Callable[..., Page], registries: None, look: str, options: Any
) -> None:
    for name in ("customer_totals", "timers_unsaferow", "aggregation_hdfs"):
        keep(name)
    StateVariable.objects.filter(name="last_orders").update(value_schemas_used=15)
    page = window(**options)
    page.goto("/ui/queries")
    expect(page.locator("h1")).to_have_text("Streaming queries")
    picture(page, f"{look}-queries")
    page.click("text=customer_totals")
    expect(page.get_by_text("Nearly used up").first).to_be_visible()
    picture(page, f"{look}-query")
    page.click("a.primary:has-text('totals')")
    expect(page.locator("#versions-title")).to_be_visible()
    picture(page, f"{look}-variable")
    page.click("text=see the changes")
    expect(page.locator(".verdict-title")).to_have_text("Loses data")
    picture(page, f"{look}-compare")
    page.click("text=Side by side")
    expect(page.locator("table.diff-split").first).to_be_visible()


FIXTURES = Path(__file__).parents[2] / "checkpoints" / "fixtures"


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
    page.click("text=Use the stored state")
    plan = page.input_value("[name=plan]")
    assert '"name": "totals"' in plan
    page.fill("[name=plan]", plan.replace("status STRING, currency STRING", "state STRING, currency STRING"))
    page.click("button[value=check]")
    expect(page.locator(".verdict-title")).to_have_text("Loses data")
    expect(page.get_by_text("looks like a rename")).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    page.click("text=Edit plan and check again")
    assert "state STRING" in page.input_value("[name=plan]")
    page.fill("[name=plan]", "{")
    page.click("button[value=check]")
    expect(page.locator("[role=alert]")).to_contain_text("not JSON")
