"""The wizard in a real browser, without JavaScript, on a phone, in the dark: looked at, deleted softly, and taken back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from registry.access.roles import Actor
from registry.subjects.models import SchemaVersion
from registry.subjects.services import register_version
from tests.drift.usage.test_version_usage import SUBJECT, text

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.requirement("ORA-1", "GOO-7"),
]


def fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_version_is_deleted_softly_and_restored(registries: None, system: Actor, window: Callable[..., Page]) -> None:
    for fields in ("a", "ab"):
        register_version(registry="dev", subject=SUBJECT, text=text(*fields), by=system)
    page = window(java_script_enabled=False, viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto("/ui/registries/dev/subjects/orders-value/usage")
    page.get_by_role("link", name="Retire …").click()
    page.get_by_role("main").get_by_role("link", name="version 1", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("version 1")
    fits(page)
    page.get_by_role("link", name="Choose an action").click()
    expect(page.get_by_role("button", name="Delete permanently")).to_be_disabled()
    fits(page)
    page.get_by_role("link", name="Soft-delete").click()
    page.get_by_label("Type orders-value to confirm").fill("orders-valu")
    page.get_by_role("button", name="Soft-delete: version 1").click()
    expect(page.get_by_role("main")).to_contain_text(
        "To confirm the deletion, type the name of the subject: orders-value"
    )
    assert SchemaVersion.objects.filter(deleted_at=None).count() == 2
    page.get_by_label("Type orders-value to confirm").fill("orders-value")
    page.get_by_role("button", name="Soft-delete: version 1").click()
    expect(page.get_by_role("status").filter(has_text="Version 1 is soft-deleted.")).to_be_visible()
    fits(page)
    assert SchemaVersion.objects.get(version=1).deleted_at is not None
    page.get_by_role("link", name="Restore").click()
    page.get_by_role("button", name="Restore: version 1").click()
    expect(page.get_by_role("status").filter(has_text="Version 1 exists.")).to_be_visible()
    assert SchemaVersion.objects.filter(deleted_at=None).count() == 2
