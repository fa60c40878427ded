"""The gallery without a mouse, zoomed in, with motion turned off, and as a screen reader is told it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from tests.site import gallery

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.requirement("CARD-4")]

#: a sample of every template, its fullest one: the first
#: 640 px is a window of 1280 at 200 %, 320 px the same at 400 %
WIDTHS: Final = (640, 390, 320)
MANY: Final = 400

#: Notes what gets the focus, and whether it then looks other than before.
WATCH: Final = """() => {
  const look = one => { const style = getComputedStyle(one);
    return [style.outlineStyle !== "none" && style.outlineWidth, style.outlineColor, style.boxShadow, style.backgroundColor, style.borderColor].join(" "); };
  const natural = "a[href], button, input, select, textarea, summary, [tabindex]";
  const open = one => one.checkVisibility({visibilityProperty: true}) && !one.disabled && one.type !== "hidden" && one.tabIndex >= 0
    && !(one.type === "radio" && !one.checked && document.querySelector(`input[name="${CSS.escape(one.name)}"]:checked`));
  window.wanted = [...document.querySelectorAll(natural)].filter(open);
  const before = new Map([...document.querySelectorAll("*")].map(one => [one, look(one)]));
  window.visited = [];
  document.addEventListener("focusin", event => visited.push({one: event.target, seen: look(event.target) !== before.get(event.target)}));
}"""
FOUND: Final = """() => {
  const say = one => one.outerHTML.slice(0, 140);
  const ones = visited.map(each => each.one);
  return {
    first: ones[0]?.className, count: ones.length,
    missed: wanted.filter(one => !ones.includes(one)).map(say),
    unseen: visited.filter(each => !each.seen).map(each => say(each.one)),
    backwards: ones.slice(1).filter((one, at) => !(ones[at].compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING)).map(say),
    forced: [...document.querySelectorAll("[tabindex]")].filter(one => one.tabIndex > 0).map(say),
  };
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One window for all."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("key", gallery.FIRST)
def test_tab_reaches_everything_in_order_and_it_shows(page: Page, address: str, key: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}/gallery/{key}")
    # a form that was refused begins in its first wrong field
    page.evaluate("document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')")
    page.evaluate(WATCH)
    wanted = page.evaluate("wanted.length")
    assert 0 < wanted < MANY
    # inside a date the key goes from part to part
    parts = 8 * page.evaluate("wanted.filter(one => (one.type ?? '').startsWith('date')).length")
    # a code editor is one more stop
    editors = page.locator("[data-schema-editor]").count()
    for pressed in range(wanted + parts + editors):
        if pressed >= wanted and page.evaluate("wanted.at(-1) === document.activeElement"):
            break
        page.keyboard.down("Tab")  # held down: it goes on as when it is pressed again, for a third less CPU time
    page.keyboard.up("Tab")
    found = page.evaluate(FOUND)
    assert found["missed"] == [] and found["count"] == wanted + editors, found
    assert found["backwards"] == []
    assert found["unseen"] == [], "no outline shows the focus"
    assert found["forced"] == [], "a tabindex above 0 tears the order apart"
    assert found["first"] == "skip" or gallery.SAMPLES[key].template in ("500.html", "503.html")


def test_menus_wrong_fields_and_the_keys_themselves(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    focused = "document.activeElement.id || document.activeElement.textContent.trim()"
    for key, place in (("registries", "main [data-menu]"), ("promotion", ".masthead [data-menu]")):
        page.goto(f"{address}/gallery/{key}")
        menu = page.locator(place).last
        menu.locator("summary").click()
        page.keyboard.press("Tab")
        assert menu.get_attribute("open") is not None, "the focus is in it"
        page.keyboard.press("Escape")
        assert menu.get_attribute("open") is None
        assert menu.locator("summary").evaluate("one => one === document.activeElement")
        page.keyboard.press("Enter")
        for _ in range(menu.locator("a, button:not([disabled])").count() + 1):
            page.keyboard.press("Tab")
        assert menu.get_attribute("open") is None, "it would cover what has the focus now"
    page.goto(f"{address}/gallery/simulate-error")
    assert page.evaluate(focused) == "ReadForm_datum"
    described = "document.activeElement.getAttribute('aria-describedby').split(' ')"
    assert all(page.evaluate(f"{described}.map(id => document.getElementById(id)?.textContent.trim() ?? '')"))
    page.goto(f"{address}/gallery/subjects")
    page.get_by_label("Keyboard shortcuts").uncheck()
    page.reload()
    page.keyboard.press("j")
    assert not page.evaluate("document.activeElement.matches('.primary')"), "keys of one letter stay turned off"
    page.get_by_label("Keyboard shortcuts").check()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('.primary')")


def test_a_lost_outline_and_a_trap_would_be_found(page: Page, address: str) -> None:
    """Or nothing above shows anything."""
    page.goto(f"{address}/gallery/login")
    page.evaluate(WATCH)
    page.evaluate(
        "() => { wanted[2].style.outline = 'none'; wanted[3].tabIndex = 3;"
        " wanted[4].addEventListener('keydown', event => event.preventDefault()) }"
    )
    for _ in range(page.evaluate("wanted.length")):
        page.keyboard.press("Tab")
    found = page.evaluate(FOUND)
    assert found["unseen"] and found["backwards"] and found["forced"] and found["missed"], found


@pytest.mark.parametrize("key", gallery.ENDS)
def test_zoomed_in_nothing_scrolls_sideways(page: Page, address: str, key: str) -> None:
    page.goto(f"{address}/gallery/{key}")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"at {width} px by {wide} px"
        scrolled = page.evaluate(
            "[...document.querySelectorAll('main *')].filter(one => one.scrollWidth > one.clientWidth + 1"
            " && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX) && one.checkVisibility() && one.tabIndex < 0"
            " && !one.querySelector('a, button')).map(one => one.outerHTML.slice(0, 120))"
        )
        assert scrolled == [], f"at {width} px these scroll and no key gets there"


@pytest.mark.parametrize(("motion", "moving"), [("reduce", 0), ("no-preference", 1)])
def test_nothing_moves_for_those_who_asked_for_it(page: Page, address: str, motion: Any, moving: int) -> None:
    page.emulate_media(reduced_motion=motion)
    page.goto(f"{address}/gallery/source-running")
    assert min(page.evaluate("document.getAnimations().length"), 1) == moving
    page.emulate_media(reduced_motion="null")


def test_changes_are_sentences_to_a_screen_reader(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/compare")
    told = page.locator("main").aria_snapshot()
    cards = page.locator("[data-change]").count()
    assert len(re.findall(r"- heading .*\[level=3\]", told)) >= cards > 3
    first = page.locator("[data-change]").first.aria_snapshot()
    assert re.search(r"text: Breaking", first)
    assert re.search(r"paragraph: \S.*\S", first), "the change as a sentence"
    assert "New reader, old data" in first and "Old reader, new data" in first and "fails" in first
    text = page.locator("#text table.diff").aria_snapshot()
    assert 'cell "removed"' in text and 'cell "added"' in text, "a sign alone is passed over"
    assert "insertion" in text and "deletion" in text


def test_a_report_is_written_in_words(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/report")
    told = page.locator("main").aria_snapshot()
    assert re.search(r"- status:", told), "the verdict is said when it comes"
    assert re.search(r"listitem: .*BACKWARD Incompatible current", told) or "current" in told
    assert re.search(r'rowheader "Version \d+', told)
    assert re.search(r'cell "(works|fails|with care)', told)
