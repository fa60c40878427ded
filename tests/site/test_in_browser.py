"""The gallery in a real browser under the real Content-Security-Policy: nothing is refused, nothing scrolls sideways."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.requirement("CARD-4")]

SHOWN = (
    "home", "home-first", "subjects", "subject", "subject-source", "compare", "compare-split", "report", "report-syntax",
    "compare-other", "compare-one-side", "report-semantic", "simulate", "simulate-stops", "simulate-modify", "simulate-modify-stops", "sources",
    "source", "findings", "finding", "promotions", "promotion", "promotion-own", "environments", "audit", "login", "message-not-found",
)  # fmt: skip
WIDTHS = (1280, 640, 390, 320)
CLOSED_MENUS = (
    "[...document.querySelectorAll('.menu:not([open]) .menu-body')].filter((one) => one.getClientRects().length).length"
)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.complaints = []  # type: ignore[attr-defined]
    opened.on("console", lambda message: opened.complaints.append(message.text))  # type: ignore[attr-defined]
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))  # type: ignore[attr-defined]
    yield opened
    context.close()


def test_pages_fit_and_break_no_policy(page: Page, address: str) -> None:
    for number, name in enumerate(SHOWN):
        # Loaded once, each page at another width than the one before it, and turned to the others.
        widths = WIDTHS[number % len(WIDTHS) :] + WIDTHS[: number % len(WIDTHS)]
        page.set_viewport_size({"width": widths[0], "height": 900})
        page.goto(f"{address}/gallery/{name}")
        page.evaluate("document.fonts.ready.then(() => true)")
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} at {width} px scrolls sideways by {wide} px"
        assert page.evaluate(CLOSED_MENUS) == 0, f"{name}: what is in a closed menu takes no room"
        assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith('"Plex Sans"')
        drawn = page.evaluate(
            "document.querySelector('.brand use') ? document.querySelector('.brand svg').getBBox().width : 1"
        )
        assert drawn > 0, "the icons' sprite did not load"
    assert page.complaints == []  # type: ignore[attr-defined]


def test_the_chosen_theme_holds_at_once_and_is_sent(page: Page, address: str) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or "") if request.method == "POST" else None)
    page.goto(f"{address}/gallery/subject")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_text("Theme").locator("..").click()
    with page.expect_request("**/ui/theme"):
        page.get_by_role("button", name="Dark", exact=True).click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    assert "dark" in sent[0] and "csrfmiddlewaretoken" in sent[0]
    assert page.locator("details[open]").count() == 0


def test_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/subjects")
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    assert skip.evaluate("element => element === document.activeElement")
    assert (skip.bounding_box() or {"y": -1})["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("orders")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "BODY", "Escape leaves the box"
    assert page.locator("#search").input_value() == "orders", "and keeps what is written"
    page.goto(f"{address}/gallery/compare")
    for key, expected in (("n", "c-1"), ("n", "c-2"), ("p", "c-1"), ("p", "c-1")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == expected


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize("name", ["finding", "finding-state", "promotion", "promotion-breaks"])
def test_the_decision_is_in_sight_at_900_pixels_and_before_its_proofs_on_a_phone(
    page: Page, address: str, name: str
) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}/gallery/{name}")
    buttons = page.locator(".split-decide > aside").get_by_role(
        "button", name=re.compile("^(Acknowledge|Approve|Request changes|Reject)$")
    )
    assert buttons.count() >= 1
    for box in (button.bounding_box() for button in buttons.all()):
        assert box is not None
        assert box["y"] + box["height"] <= 900
    page.set_viewport_size({"width": 390, "height": 844})
    tops = page.evaluate(
        "['aside', '.split-rest'].map((part) => document.querySelector(`.split-decide > ${part}`).getBoundingClientRect().top)"
    )
    assert tops[0] < tops[1]


def test_a_part_that_finds_the_database_away_says_so_and_the_page_stays(page: Page, address: str) -> None:
    note = '<div class="note note-care"><div><p class="note-title">The database is unavailable</p></div></div>'
    page.goto(f"{address}/gallery/subjects")
    page.route(
        "**/ui/registries/dev/subjects?*", lambda route: route.fulfill(status=503, body=note, content_type="text/html")
    )
    rows = page.locator("#list").inner_text()
    page.locator("#search").press_sequentially("orders")
    page.locator("#away .note").wait_for()
    assert page.locator("#list").inner_text() == rows
    page.unroute("**/ui/registries/dev/subjects?*")
    found = '<div id="list">found</div>'
    page.route("**/ui/registries/dev/subjects?*", lambda route: route.fulfill(body=found, content_type="text/html"))
    page.locator("#search").press_sequentially("-value")
    page.locator("#away .note").wait_for(state="detached")
    assert page.locator("#list").inner_text() == "found"


def test_typing_in_the_search_asks_for_the_list_alone(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/subjects")
    page.route(
        "**/ui/registries/dev/subjects?*", lambda route: route.fulfill(body='<div id="list"><p class="empty-title">found</p></div>', content_type="text/html")
    )  # fmt: skip
    with page.expect_request("**/ui/registries/dev/subjects?*") as asked:
        page.locator("#search").press_sequentially("orders", delay=10)
    assert asked.value.headers["hx-target"] == "list"
    page.locator("#list", has_text="found").wait_for()
    page.locator("#said", has_text="found").wait_for(state="attached")
    assert page.evaluate("document.activeElement.id") == "search"
    # The first answer may come between two keys; the address follows the last one.
    page.wait_for_url("**/subjects?q=orders&*")


def test_progress_is_asked_for_until_the_scan_is_done(page: Page, address: str) -> None:
    answers = iter(["running", "running", "done"])
    bodies = {
        "running": '<section id="progress" hx-get="/ui/scans/42/progress" hx-trigger="every 1s" hx-swap="outerHTML">still</section>',
        "done": '<div id="progress">all read</div>',
    }
    asked: list[str] = []

    def answer(route) -> None:  # type: ignore[no-untyped-def]
        asked.append(route.request.url)
        route.fulfill(body=bodies[next(answers)], content_type="text/html")

    page.route("**/ui/scans/42/progress", answer)
    page.goto(f"{address}/gallery/source-running")
    page.locator("#progress", has_text="all read").wait_for(timeout=60_000)
    page.wait_for_timeout(1_500)
    assert len(asked) == 3


def test_numbers_that_come_later_take_away_no_choice_and_no_focus(page: Page, address: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/ui/registries/dev/subjects?later", hold)
    page.route("**/ui/registries/dev/subjects?q=*", lambda route: route.fulfill(status=204))
    with page.expect_request("**/ui/registries/dev/subjects?later") as asked:
        page.goto(f"{address}/gallery/subjects-large")
    assert asked.value.headers["hx-target"] == "counts"
    chosen = page.locator("#filter_format")
    chosen.focus()
    chosen.select_option(index=1)
    boxes = "[...document.querySelectorAll('.select, tbody')].map((one) => JSON.stringify(one.getBoundingClientRect()))"
    before, value = page.evaluate(boxes), chosen.input_value()
    swapped = '<option id="format-{}" hx-swap-oob="innerHTML">{}</option>'
    words = swapped.format(0, "Any") + swapped.format(1, "Avro (49,999) &lt;and more words than it had&gt;")
    held[0].fulfill(body=f'{words}<span class="second" id="counts">Counted.</span>', content_type="text/html")
    page.locator("#counts", has_text="Counted.").wait_for()
    assert chosen.locator("option").all_text_contents()[:2] == ["Any", "Avro (49,999) <and more words than it had>"]
    assert (chosen.input_value(), page.evaluate("document.activeElement.id")) == (value, "filter_format")
    assert page.evaluate(boxes) == before, "nothing moves"
    assert page.complaints == []  # type: ignore[attr-defined]


def test_reading_and_deciding_work_without_javascript(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/gallery/promotion")
    page.locator("textarea[name=comment]").fill("fine")
    with page.expect_request("**/ui/promotions/13/approve") as sent:
        page.get_by_role("button", name="Approve", exact=True).click()
    assert sent.value.method == "POST"
    assert "comment=fine" in (sent.value.post_data or "")
    assert "plan_hash=5f0c9a1e" in (sent.value.post_data or "")
    page.goto(f"{address}/gallery/promotion")
    with page.expect_request("**/ui/promotions/13/reject"):
        page.get_by_role("button", name="Reject").click()
    page.goto(f"{address}/gallery/compare")
    page.get_by_role("link", name="Side by side").click()
    assert page.locator(".diff-split").count() == 1
    context.close()


def test_keys_go_through_changes_and_turn_the_text(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/compare")
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id") == "c-1"
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id") == "c-2"
    page.keyboard.press("p")
    assert page.evaluate("document.activeElement.id") == "c-1"
    with page.expect_request("**/gallery/compare-split") as asked:
        page.keyboard.press("u")
    assert asked.value.headers["hx-target"] == "text"


def test_keys_go_through_the_rows_of_lists(page: Page, address: str) -> None:
    for name in ("subjects", "promotions", "findings"):
        page.goto(f"{address}/gallery/{name}")
        links = page.locator("[data-rows] .primary")
        focused = "document.activeElement.className"
        for key, number in (("k", links.count() - 1), ("j", links.count() - 1), ("k", links.count() - 2)):
            page.keyboard.press(key)
            assert page.evaluate(focused).startswith("primary")
            assert links.nth(number).evaluate("(one) => one === document.activeElement"), (name, key)
        box = page.locator("[data-rows] tbody tr").nth(links.count() - 2).locator(".pick input")
        assert box.count() or name != "subjects"
        if box.count() and box.is_enabled():
            before = box.is_checked()
            page.keyboard.press("x")
            assert box.is_checked() != before
        page.keyboard.press("?")
        assert page.get_by_text("next or previous row").is_visible()
        page.keyboard.press("/")
        page.keyboard.type("jkx?")
        assert page.locator("main [data-search]").input_value().endswith("jkx?")
        page.goto(f"{address}/gallery/{name}")
        page.keyboard.press("j")
        href = links.first.get_attribute("href")
        assert href
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{href}")


def test_what_is_chosen_stays_chosen_on_other_pages_and_is_sent(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/subjects")
    page.locator(".pick input").nth(1).check()
    page.evaluate("sessionStorage.setItem('chosen dev', JSON.stringify(['orders-key', 'of-another-page']))")
    page.reload()
    assert page.locator(".pick input:checked").count() == 1
    assert page.locator("[data-elsewhere]").inner_text().startswith("1 more selected on other pages")
    with page.expect_request("**/ui/registries/dev/deprecate") as sent:
        page.get_by_role("button", name="Deprecate …").click()
    assert (sent.value.post_data or "").count("subject=") == 2 and "of-another-page" in (sent.value.post_data or "")
    page.goto(f"{address}/gallery/subjects")
    assert page.locator(".pick input:checked").count() == 0, "what was sent isn't chosen any more"


def test_bytes_and_markdown_are_copied(browser: Browser, address: str) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/gallery/compare")
    page.locator("#c-1 details.proof summary").click()
    page.locator("#c-1").get_by_role("button", name="Copy hex").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert bytes.fromhex(copied) == b"\x06A-1\x02<img src=x>"
    page.route("**/*as=markdown", lambda route: route.fulfill(body="# the page", content_type="text/plain"))
    page.get_by_role("link", name="Copy as Markdown").click()
    page.get_by_role("link", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "# the page"
    context.close()


def test_a_printed_comparison_has_no_controls(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/compare")
    page.emulate_media(media="print")
    for what in (".masthead", "form.chooser", ".head-actions", "[data-views]", ".keys"):
        assert not page.locator(what).first.is_visible(), what
    assert page.locator(".change").first.is_visible()
    page.emulate_media(media="screen")
    page.goto(f"{address}/gallery/report")
    assert not page.locator(".change-more .says").first.is_visible()
    page.emulate_media(media="print")
    for what in (".change-more .says", ".edit .whole .diff", ".edit .whole .source", "details.proof .datum"):
        assert page.locator(what).first.is_visible(), f"on paper nothing can be unfolded: {what}"
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    scheme = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    assert scheme == "light", "on paper the dark theme is light ink on white"
