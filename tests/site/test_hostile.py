"""The gallery filled with hostile texts: they are shown harmlessly, and stay in their boxes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import RequestFactory, override_settings
from playwright.sync_api import Browser, Page

from dashboard.templatetags.desk import _HIDDEN
from tests.site import gallery
from tests.site.hostile import TEXTS, TRAP, hostile
from tests.site.samples.cast import frame
from tests.site.test_gallery import Document

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CARD-4")]

FILLED = [key for key, sample in gallery.SAMPLES.items() if sample.page is not None]
#: attributes that carry a value back as it is, and texts of forms that do
KEPT = {"value", "name"}
#: elements that none of the texts may add or take away
SHAPE = frozenset(
    ("script", "img", "form", "input", "select", "option", "textarea", "a", "button", "table", "tr", "td", "th")
)
OUTSIDE = """() => {
  const edge = document.querySelector("main").getBoundingClientRect().right;
  const inside = one => { for (let up = one.parentElement; up; up = up.parentElement) {
    const flow = getComputedStyle(up).overflowX; if (flow !== "visible") return true; } return false; };
  return [...document.querySelectorAll("main *")].filter(one => one.getBoundingClientRect().right > edge + 1 && one.checkVisibility()
    && !inside(one)).slice(0, 3).map(one => one.outerHTML.slice(0, 160));
}"""


def document(key: str, *, harmful: bool) -> Document:
    """The sample as the tests of documents read it."""
    with override_settings(ROOT_URLCONF="tests.site.urls"):
        return Document(gallery.render(key, RequestFactory().get(f"/gallery/{key}"), harmful=harmful))


@pytest.mark.parametrize("key", FILLED)
def test_a_text_adds_nothing_to_the_document_and_hides_nothing(key: str) -> None:
    usual, harmed = document(key, harmful=False), document(key, harmful=True)
    assert harmed.unbalanced == [] and harmed.open == []
    before, after = (Counter(tag for tag, *_ in one.elements if tag in SHAPE) for one in (usual, harmed))
    assert after == before
    assert [name for _, given, _ in harmed.elements for name in given if name.startswith("on")] == []
    shown = [text[:80] for above, text in harmed.texts if above != "textarea" and _HIDDEN.search(text)]
    assert shown == [], "shown as they are: the filter `visible` or the tag `name` says what they hide"
    hidden = [(tag, name) for tag, given, _ in harmed.elements for name, text in given.items() if name not in KEPT and _HIDDEN.search(text or "")]  # fmt: skip
    assert hidden == [], "in attributes the filter `readable` takes them out"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One window for all."""
    opened = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    opened.complaints = []  # type: ignore[attr-defined]
    opened.on("console", lambda message: opened.complaints.append(message.text))  # type: ignore[attr-defined]
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))  # type: ignore[attr-defined]
    opened.on("dialog", lambda dialog: opened.complaints.append(dialog.message))  # type: ignore[attr-defined]
    yield opened
    opened.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("key", [key for key in gallery.ENDS if key in FILLED])
def test_a_text_runs_nothing_and_stays_in_its_box(page: Page, address: str, key: str) -> None:
    page.complaints.clear()  # type: ignore[attr-defined]
    page.goto(f"{address}/gallery/{key}?harmful")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"at {width} px it scrolls sideways by {wide} px"
        assert page.evaluate(OUTSIDE) == [], f"at {width} px"
    assert page.evaluate(f"window.{TRAP} === undefined && document.title.endsWith('Schemadesk')")
    assert page.complaints == []  # type: ignore[attr-defined]


def test_every_text_of_a_sample_is_replaced_and_what_is_ours_is_kept() -> None:
    """Or nothing above shows anything."""
    usual = gallery.SAMPLES["subjects"].page
    harmed = hostile(usual)
    assert {row.info.subject.subject for row in harmed.table.rows} <= set(TEXTS)
    assert [row.signs for row in harmed.table.rows] == [row.signs for row in usual.table.rows]
    assert harmed.frame.now == usual.frame.now
    alone = hostile(replace(frame("a", usual.frame.section), environments=()))
    assert alone.title == TEXTS[0]
    assert all(re.search(part, "".join(TEXTS)) for part in ("<script>", '"', "\u202e", "\u200b", "x{10000}", r'\{"/ %'))
