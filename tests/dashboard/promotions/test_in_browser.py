"""A set of schemas on its way into another environment, in a real browser, without JavaScript, on a phone, in the dark.

The steward chooses the set on the board and asks for it; the approver comments on a field and requests changes; the
steward answers; the approver approves and applies; the pack can be taken home.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from registry.access.models import User
from registry.access.roles import Actor
from registry.promotions.models import Draft, PromotionRequest, Release
from tests.promotions.factories import CUSTOMERS, V1, V2, register
from tests.site.shoot import ARGS, CHROMIUM

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
#: where pictures go, for those who want to look at them
PICTURES = os.environ.get("PROMOTION_PICTURES", "")


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
def signed_in(
    browser: Browser, live_server: Any, person: Callable[[str], Actor], complaints: list[str]
) -> Iterator[Callable[..., Page]]:
    """A page of somebody who has signed in with a password."""
    contexts = []

    def make(name: str, **options: Any) -> Page:
        person(name)
        user = User.objects.get(username=name)
        user.set_password(f"{name}-password")
        user.save()
        context = browser.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto("/ui/accounts/login/")
        page.fill("input[name=login]", name)
        page.fill("input[name=password]", f"{name}-password")
        page.click("main form button")
        page.wait_for_url("**/ui/")
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console complained about: a broken Content-Security-Policy shows there."""
    return []


def picture(page: Page, name: str) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{name} is {wide} px too wide"
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


@pytest.mark.requirement("ORA-1", "CARD-4")
@pytest.mark.parametrize(
    ("look", "options"),
    [
        ("light", {"viewport": {"width": 1280, "height": 900}, "java_script_enabled": False}),
        ("dark", {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"}),
        ("phone", {"viewport": {"width": 390, "height": 844}}),
    ],
)
def test_a_set_from_the_board_to_a_release(
    signed_in: Callable[..., Page],
    person: Callable[[str], Actor],
    registries: None,
    complaints: list[str],
    look: str,
    options: Any,
) -> None:
    by = person("steward")
    register(V1, by)
    register(V1, by, registry="staging")
    register(V2, by)
    register(V2, by, subject=CUSTOMERS)

    steward = signed_in("steward", **options)
    steward.goto("/ui/environments?show=behind")
    expect(steward.get_by_text("missing version 2 from dev")).to_be_visible()
    picture(steward, f"{look}-board")
    steward.get_by_role("checkbox", name="Select orders-value").check()
    steward.get_by_role("checkbox", name="Select customers-value").check()
    steward.get_by_role("button", name="Preview plan").click()
    expect(steward.locator(".plan li")).to_have_count(2)
    picture(steward, f"{look}-preview")
    steward.get_by_label("Reason").fill("both, for the new checkout")
    steward.get_by_role("button", name="Request review").click()
    expect(steward.locator("h1")).to_contain_text("and 1 other to staging")
    expect(steward.get_by_role("button", name="Approve")).to_be_disabled()

    approver = signed_in("approver", **options)
    approver.goto("/ui/promotions?who=waiting")
    approver.locator("#list").get_by_role("link", name="customers-value").click()
    approver.locator(".items").get_by_role("link", name="orders-value").click()
    expect(approver.locator(".part-title")).to_contain_text("orders-value")
    approver.get_by_role("link", name="comment on Order.note").click()
    approver.get_by_label("Comment on this field").fill("Who writes it?")
    approver.get_by_role("button", name="Start discussion").click()
    expect(approver.locator(".threads .said")).to_have_text("Who writes it?")
    approver.locator("textarea[name=comment]").fill("Say in the docs who writes it.")
    approver.get_by_role("button", name="Request changes").click()
    expect(approver.get_by_text("Changes requested").first).to_be_visible()
    picture(approver, f"{look}-changes")

    steward.reload()
    steward.locator(".threads summary", has_text="Reply").click()
    steward.get_by_label("Your reply").fill("The checkout alone.")
    steward.get_by_role("button", name="Send").click()
    steward.get_by_role("button", name="Resolve").click()
    expect(steward.locator(".threads .badge", has_text="Resolved")).to_be_visible()

    approver.reload()
    approver.locator("textarea[name=comment]").fill("Then it is fine.")
    approver.get_by_role("button", name="Approve").click()
    expect(approver.get_by_text("Approved. It can be applied now.")).to_be_visible()
    picture(approver, f"{look}-approved")
    approver.get_by_role("button", name="Apply to staging").click()
    expect(approver.locator(".verdict-title").first).to_have_text("Live in staging")
    picture(approver, f"{look}-applied")
    approver.locator("summary", has_text="Evidence pack").click()
    with approver.expect_download() as download:
        approver.get_by_role("link", name="HTML file").click()
    pack = Path(download.value.path()).read_text()
    assert "Then it is fine." in pack and "Who writes it?" in pack and '<span class="good">equal</span>' in pack

    assert PromotionRequest.objects.get().state == "applied"
    assert sorted(Release.objects.values_list("subject_name", "version_number")) == [
        ("customers-value", 1),
        ("orders-value", 2),
    ]
    assert complaints == []


@pytest.mark.requirement("CARD-4")
def test_every_control_has_a_name_and_every_state_its_words(
    signed_in: Callable[..., Page], person: Callable[[str], Actor], registries: None
) -> None:
    """What can be checked of accessibility without another program: names, one heading of the first rank, labels."""
    by = person("steward")
    register(V1, by)
    page = signed_in("admin")
    for address in ("/ui/environments", "/ui/environments/prod", "/ui/proposals", "/ui/proposals/new?subject=orders-value",
                    "/ui/promotions/request?subject=orders-value", "/ui/promotions"):  # fmt: skip
        page.goto(address)
        nameless = page.evaluate(
            "[...document.querySelectorAll('main a, main button, main input:not([type=hidden]), main select, main textarea')]"
            ".filter(e => !(e.textContent.trim() || e.labels?.length || e.ariaLabel)).map(e => e.outerHTML)"
        )
        assert nameless == [], address
        assert page.locator("h1").count() == 1
        unlabelled = page.locator("main section:not([aria-label]):not([aria-labelledby])").count()
        assert unlabelled == 0, address


def test_what_is_written_is_kept_while_it_is_written(
    signed_in: Callable[..., Page], person: Callable[[str], Actor], registries: None, complaints: list[str]
) -> None:
    page = signed_in("steward")
    page.goto("/ui/proposals/new?registry=staging&subject=orders-value")
    state = page.locator("[data-state]")
    page.fill("textarea[name=text]", '{"half')
    expect(state).to_have_text("Not saved yet")
    expect(state).to_have_text(re.compile(r"Saved \d\d:\d\d"))
    assert page.url.endswith(f"/ui/proposals/{Draft.objects.get().pk}")
    page.fill("textarea[name=text]", '{"half of it')
    page.reload()
    expect(page.locator("textarea[name=text]")).to_have_value('{"half of it')
    expect(state).to_have_text(re.compile(r"Saved \d\d:\d\d"))
    assert Draft.objects.get().text == '{"half of it'
    other = page.context.new_page()
    other.goto(page.url)
    other.fill("textarea[name=text]", '{"another tab')
    expect(other.locator("[data-state]")).to_have_text(re.compile(r"Saved \d\d:\d\d"))
    page.fill("textarea[name=text]", '{"this tab')
    expect(state).to_have_text(re.compile("Not saved: Your draft of orders-value was changed at"))
    assert Draft.objects.get().text == '{"another tab'
    page.context.clear_cookies()
    other.fill("textarea[name=text]", '{"signed out')
    expect(other.locator("[data-state]")).to_have_text(re.compile("you are signed out"))
    picture(page, "editor")
    assert not [text for text in complaints if "status of" not in text]


def test_the_keys_of_the_editor_and_of_a_discussion(
    signed_in: Callable[..., Page], person: Callable[[str], Actor], registries: None, complaints: list[str]
) -> None:
    register(V1, person("steward"))
    page = signed_in("steward")
    page.goto("/ui/proposals/new?registry=dev&subject=orders-value")
    result, text = page.locator("#result"), page.locator("textarea[name=text]")
    verdict, levels = page.locator("[data-part=state]"), page.locator(".levels:visible")
    expect(verdict).to_contain_text("Compatible under")
    text.fill(json.dumps(V2)[:-1])
    expect(verdict).to_contain_text("can’t be parsed")
    text.fill(json.dumps(V2))
    expect(verdict).to_contain_text("Compatible under")
    expect(levels).to_have_count(1)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(result).to_contain_text("1 safe")
    expect(verdict).to_contain_text("Compatible under")
    expect(levels).to_have_count(1)
    text.fill(f"{json.dumps(V2)} ")
    expect(page.locator("[data-earlier]")).to_be_visible()
    expect(levels).to_have_count(2)
    text.fill(json.dumps(V2))
    # The key is for the result of the next check.
    page.locator("#text").evaluate("earlier => { earlier.id = 'earlier'; }")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#text [aria-pressed=true]")).to_have_text("Unified")
    page.keyboard.press("u")
    expect(page.locator("#text .diff-split")).to_have_count(1)
    page.get_by_role("button", name="Submit for review").click()
    page.wait_for_url("**/ui/promotions/*")
    page.keyboard.press("c")
    expect(page.locator("#comment textarea[name=text]")).to_be_focused()
    expect(page.locator("#comment textarea[name=text]")).to_have_value("")
    page.locator("h1").click()
    page.keyboard.press("n")
    page.keyboard.press("c")
    expect(page.locator("#comment input[name=path]")).to_have_value("Order.note")
    assert not complaints
