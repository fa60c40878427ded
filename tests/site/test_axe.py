"""Every page of the gallery before axe-core: nothing is found by the rules of WCAG 2.2 AA, nor by its best practice.

A page is loaded once. Samples take turns at being seen wide and narrow, light and dark; the first sample of a template,
which is its fullest, is also seen the other way round, and with the frame around it, which the other samples share.
Most of the time would go into contrast: text isn't measured again that looks as other text that passed, in the same
colours and font, on the same backgrounds up to the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page

from tests.site import gallery

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.requirement("CARD-4")]

WIDE, NARROW = 1280, 390
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: each beside the other way round
LOOKS: Final = ((WIDE, "light"), (NARROW, "dark"), (WIDE, "dark"), (NARROW, "light"))
#: the rules whose verdict depends on width or colours, beside the contrast; the second look is for these alone
VISUAL: Final = {"type": "rule", "values": ["scrollable-region-focusable", "target-size"]}
OPEN: Final = "[data-menu][open]"
#: Marks the elements whose contrast is known. It follows from the colour and the font of the text, and from what is painted
#: behind it: the backgrounds, opacity and placing of all that it lies in.
LOOKS_OF: Final = """() => {
  const known = new Set(JSON.parse(sessionStorage.contrasts ?? "[]")), behind = new Map([[null, ""]]), looks = new Map();
  for (const one of document.querySelectorAll("html, html *")) {
    const style = getComputedStyle(one), has = (name, ...usual) => usual.includes(style[name]) ? "" : style[name];
    const painted = has("backgroundColor", "rgba(0, 0, 0, 0)") + has("backgroundImage", "none") + has("opacity", "1")
      + has("filter", "none") + has("mixBlendMode", "normal") + has("position", "static", "relative");
    behind.set(one, behind.get(one.parentElement) + (painted && `>${painted}`));
    const look = [style.color, style.fontSize, style.fontWeight, style.textShadow, one.matches(":disabled"), behind.get(one)].join();
    looks.set(one, look);
    one.toggleAttribute("data-contrast-known", known.has(look));
  }
  window.contrastPassed = nodes => { for (const node of nodes) known.add(looks.get(node.element));
    sessionStorage.contrasts = JSON.stringify([...known]); };
}"""
#: Contrast has a run of its own, because only for it is asked what passed.
RUN: Final = """async ([rules, within]) => {
  const usual = {preload: false, iframes: false}, where = within ?? document;
  const {violations} = await axe.run(where, {...usual, resultTypes: ["violations"], runOnly: rules,
    rules: rules.type ? {} : {"color-contrast": {enabled: false}}});
  const contrast = await axe.run(where, {...usual, runOnly: ["color-contrast"], elementRef: true, selectors: false,
    resultTypes: ["violations", "passes"]});
  contrast.passes.forEach(rule => window.contrastPassed?.(rule.nodes));  // where looks are remembered
  return [...violations, ...contrast.violations].flatMap(rule => rule.nodes.map(node =>
    `${rule.id}: ${node.target?.join(" ") ?? node.html} | ${[...node.any, ...node.all, ...node.none].map(one => one.message).join("; ")}`));
}"""
#: run in each page after axe itself
NOT_KNOWN: Final = (
    """if (window.axe) axe.configure({rules: [{id: "color-contrast", selector: ":not([data-contrast-known])"}]})"""
)


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A window in which axe may be put; the policy that forbids it elsewhere is held by the other tests."""
    context = browser.new_context(bypass_csp=True)
    context.add_init_script(AXE_SCRIPT + NOT_KNOWN)
    yield context.new_page()
    context.close()


def looked_at(page: Page, width: int, theme: Any, rules: Any = TAGS, within: str | None = None) -> list[str]:
    """What axe finds in the page that is open, or in the part of it that the selector names."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    page.evaluate(LOOKS_OF)
    return [f"{width} px, {theme}: {found}" for found in page.evaluate(RUN, [rules, within])]


@pytest.mark.parametrize("key", gallery.SAMPLES)
def test_axe_finds_nothing(page: Page, address: str, key: str) -> None:
    page.goto(f"{address}/gallery/{key}")
    look = list(gallery.SAMPLES).index(key) % len(LOOKS)
    is_first = key in gallery.FIRST
    found = looked_at(page, *LOOKS[look], within=None if is_first else "main")
    if is_first:
        found += looked_at(page, *LOOKS[look ^ 1], VISUAL)
    assert found == []


def test_folds_and_menus_hold_when_they_are_open(page: Page, address: str) -> None:
    page.goto(f"{address}/gallery/promotion")
    page.evaluate("document.querySelectorAll('details:not([data-menu])').forEach(one => { one.open = true })")
    found = looked_at(page, WIDE, "light")
    for menu in page.locator("[data-menu]").all():
        menu.locator("summary").click()
        found += looked_at(page, WIDE, "dark", within=OPEN) + looked_at(page, NARROW, "light", within=OPEN)
        page.keyboard.press("Escape")
    assert found == []


def test_axe_is_awake(page: Page, address: str) -> None:
    """It finds what is wrong: a name taken away, an ink of too little contrast, a heading that jumps."""
    page.goto(f"{address}/gallery/login")
    page.evaluate(
        "() => { document.querySelector('label').remove(); document.querySelector('h1').outerHTML = '<h1>a</h1><h4>b</h4>';"
        " document.querySelector('main button').style.cssText = 'color: #777; background: #888' }"
    )
    found = {line.split(": ")[1] for line in looked_at(page, WIDE, "light")}
    assert {"label", "heading-order", "color-contrast"} <= found
