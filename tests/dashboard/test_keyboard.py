"""Pages of large schemas, of a finding and of what answers it, gone through by keyboard: real ones, with all they hold.

The gallery's samples are small; here a structure comes in parts, a comparison has its most changes, and forms that are
folded away are opened. What htmx replaces, and a page that loads itself again, keep the focus.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from registry.access.roles import Actor
from registry.drift.models import Finding
from registry.promotions import services
from registry.subjects.services import set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import make_source
from tests.promotions.factories import ORDERS, V1, V2, approve_shown, register
from tests.site.test_keyboard import FOUND, WATCH

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.requirement("CARD-4"),
]
#: where pictures go, for those who want to look at them
PICTURES: Final = os.environ.get("KEYBOARD_PICTURES", "")
#: a subject → its fields
LARGE_SUBJECTS: Final = {"wide-value": 120, "short-value": 12}
SEEN: Final = {
    "partition": 0,
    "messages": 7,
    "first_offset": 3,
    "last_offset": 9,
    "first_time": 1_000,
    "last_time": 2_000,
}
WIDTHS: Final = {1280: 900, 390: 844}
SUBJECT: Final = "/ui/registries/dev/subjects/wide-value/"
#: address, with {finding}, {draft} and {request}, and who looks; the folded is opened first
STRUCTURE: Final = f"{SUBJECT}?fields=100"
COMPARE: Final = f"{SUBJECT}compare?from=1&to=2"
ANSWERS: Final = {
    "draft": ("/ui/proposals/{draft}", "steward"),
    "finding": ("/ui/findings/{finding}", "steward"),
    "request": ("/ui/promotions/{request}", "approver"),
    "environment": ("/ui/environments/staging", "admin"),
    "home": ("/ui/", "steward"),
}
SETTINGS: Final = {
    "subjects": ("/ui/registries/dev/subjects", "steward"),
    "report": ("/ui/registries/dev/subjects/orders-value/report", "steward"),
    "unapproved_versions": ("/ui/unapproved-versions", "steward"),
    "mutes": ("/ui/mutes", "steward"),
    "subscriptions": ("/ui/inbox/subscriptions", "steward"),
    "webhook": ("/ui/webhooks/add", "steward"),
    "connect": ("/ui/registries/connect", "admin"),
    "people": ("/ui/people", "admin"),
    "jobs": ("/ui/jobs", "admin"),
}
#: What is wrong with how the focus is seen: it is out of the window, something lies over it, or two or more sides of its
#: outline are cut off by what is around it. Parts inside a date have an outline of the browser's own.
SHOWN: Final = """() => {
  const one = document.activeElement, box = one.getBoundingClientRect(), line = one.getClientRects()[0], style = getComputedStyle(one);
  if (one === document.body || !line) return "";
  const edge = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineOffset) + 1, cut = new Set();
  let [left, top, right, bottom] = [Math.max(line.left, 0), Math.max(line.top, 0), Math.min(line.right, innerWidth), Math.min(line.bottom, innerHeight)];
  for (let around = one.parentElement; around !== document.body; around = around.parentElement) {
    const its = around.getBoundingClientRect(), {overflowX, overflowY, overflowClipMargin} = getComputedStyle(around);
    const more = [overflowX, overflowY].includes("clip") ? parseFloat(overflowClipMargin) || 0 : 0;
    if (overflowX !== "visible") {
      [left, right] = [Math.max(left, its.left - more), Math.min(right, its.right + more)];
      if (box.left - edge < its.left - more) cut.add("left");
      if (box.right + edge > its.right + more) cut.add("right");
    }
    if (overflowY !== "visible") {
      [top, bottom] = [Math.max(top, its.top - more), Math.min(bottom, its.bottom + more)];
      if (box.top - edge < its.top - more) cut.add("top");
      if (box.bottom + edge > its.bottom + more) cut.add("bottom");
    }
  }
  const say = one.outerHTML.slice(0, 120);
  if (right - left < 1 || bottom - top < 1) return `out of sight: ${say}`;
  if (cut.size > 1) return `no ${[...cut]} of the outline: ${say}`;
  const over = document.elementFromPoint((left + right) / 2, Math.min((top + bottom) / 2, top + 20));
  return !over || one.contains(over) || over.contains(one) || over.closest("label")?.control === one
    ? "" : `below ${over.outerHTML.slice(0, 80)}: ${say}`;
}"""

#: Looks at the focus when the next key comes, in the page: to ask it after each would take a fifth more CPU time.
SHOWN_AT_EACH_KEY: Final = f"""() => {{
  window.shown = {SHOWN};
  window.hidden = [];
  addEventListener("keydown", () => hidden.push(shown()), true);
}}"""

#: that the editor has put in place what it says of the text that it began with
CHECKED = """() => {
  const editor = document.querySelector("[data-schema-editor]"), strip = editor?.querySelector("[data-part=strip]");
  return !editor?.querySelector("textarea").value
    || !strip.hidden && strip.querySelector("[data-part=state]").textContent !== editor.dataset.waiting;
}"""


def wide(kind: str, count: int) -> dict[str, Any]:
    """A record of many fields, each of that type."""
    fields = [{"name": f"field_{number}", "type": kind, "doc": f"The {number}th."} for number in range(count)]
    return {"type": "record", "name": "Wide", "namespace": "com.example", "fields": fields}


@pytest.fixture
def large(person: Callable[[str], Actor]) -> None:
    """Subjects whose two versions differ in every field."""
    by = person("steward")
    for name, count in LARGE_SUBJECTS.items():
        subject = SubjectName(".", name)
        set_config(registry="dev", subject=subject, level="NONE", by=by)
        for kind in ("int", "string"):
            register(wide(kind, count), by, subject=subject)


@pytest.fixture
def numbers(person: Callable[[str], Actor]) -> dict[str, int]:
    """What PAGES fill in: a finding with a draft, and a request and a release that answer it."""
    by, approver, now = person("steward"), person("approver"), timezone.now()
    source = make_source()
    finding = Finding.objects.create(
        source=source, rule="FIELD_UNDECLARED", severity="risk", sentence="Field note appears in 10 of 40 messages.",
        remedy="Declare it.", location="orders", subject_name="orders-value", first_seen=now, last_seen=now,
        fingerprint="f" * 64, evidence={"topic": "orders", "partitions": [SEEN]},
    )  # fmt: skip
    register(V1, by)
    proposal = {"target": "dev", "subject": ORDERS, "text": json.dumps(V2), "by": by, "finding": finding.pk}
    released = services.propose_version(**proposal, reason="As it is written.")
    approve_shown(request_id=released, by=approver, comment="Fine.")
    services.apply(request_id=released, by=approver)
    request = services.request_promotion(
        source="dev", target="staging", subject=ORDERS, version=2, by=by, reason="On to staging."
    )
    text = json.dumps(V1, indent=2)
    draft = services.save_draft(
        registry="dev", subject=ORDERS, text=text, by=by, reason="To be thought over.", finding=finding.pk
    )
    return {"finding": finding.pk, "draft": draft, "request": request}


def shoot(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


def go_through(page: Page, address: str, name: str, widths: tuple[int, ...] = tuple(WIDTHS)) -> None:
    """The key reaches everything, in order, and each time it is seen where."""
    for width in widths:
        height = WIDTHS[width]
        page.set_viewport_size({"width": width, "height": height})
        page.goto(address)
        page.wait_for_function(CHECKED)
        page.evaluate("document.querySelectorAll('main details:not([data-menu])').forEach(each => each.open = true)")
        shoot(page, f"{name}-{width}")
        page.evaluate(WATCH)
        page.evaluate(SHOWN_AT_EACH_KEY)
        # a code editor is one more stop
        count = page.evaluate("wanted.length") + page.locator("[data-schema-editor]").count()
        assert count > 20
        # inside a date and a time the key goes from part to part
        parts = 8 * page.evaluate("wanted.filter(one => /^(date|time)/.test(one.type ?? '')).length")
        for pressed in range(count + parts):
            if pressed >= count and page.evaluate("wanted.at(-1) === document.activeElement"):
                break
            page.keyboard.down("Tab")
        page.keyboard.up("Tab")
        hidden = page.evaluate("[...hidden, shown()]")
        focus, where = page.evaluate(FOUND), f"{name} at {width} px"
        assert (focus["missed"], focus["count"]) == ([], count), where
        assert (focus["backwards"], focus["unseen"], focus["forced"]) == ([], [], []), where
        assert len(hidden) > count and [name for name in hidden if name] == [], where


def test_tab_goes_through_what_large_schemas_show(window: Callable[..., Page], large: None) -> None:
    """A phone gets twelve fields and changes: they are alike, and each press lays out the whole page."""
    page = window("reader")
    go_through(page, STRUCTURE, "structure", (1280,))
    go_through(page, STRUCTURE.replace("wide-value", "short-value"), "structure-short", (390,))
    go_through(page, COMPARE, "compare", (1280,))
    go_through(page, COMPARE.replace("wide-value", "short-value"), "compare-short", (390,))


def test_tab_goes_through_a_finding_and_what_answers_it(
    window: Callable[..., Page], numbers: dict[str, int], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UNDER_UP = True
    monkeypatch.setattr("dashboard.home.views._is_demo_loading", lambda: True)
    pages = {who: window(who) for who in dict.fromkeys(who for _, who in ANSWERS.values())}
    for name, (address, who) in ANSWERS.items():
        go_through(pages[who], address.format(**numbers), name)
    expect(pages["steward"].get_by_text("The demo is loading")).to_be_visible()


def test_tab_goes_through_lists_and_settings(window: Callable[..., Page], numbers: dict[str, int]) -> None:
    """They are alike: each is seen in one of the widths."""
    pages = {who: window(who) for who in ("steward", "admin")}
    for number, (name, (address, who)) in enumerate(SETTINGS.items()):
        go_through(pages[who], address, name, (list(WIDTHS)[number % len(WIDTHS)],))


def focused(page: Page) -> str:
    """What has the focus, by its words."""
    return str(
        page.evaluate("document.activeElement === document.body ? '' : document.activeElement.textContent.trim()")
    )


def test_what_a_link_replaces_keeps_the_focus(window: Callable[..., Page], large: None) -> None:
    page = window("reader")
    for address, link, current in (
        (SUBJECT, "Source", "page"),
        (COMPARE, "Side by side", "true"),
        (COMPARE, "As submitted", "true"),
    ):
        page.goto(address)
        chosen = page.locator("main").get_by_role("link", name=link, exact=True)
        expect(chosen).not_to_have_attribute("aria-current", current)
        chosen.focus()
        page.keyboard.press("Enter")
        expect(chosen).to_have_attribute("aria-current", current)
        assert focused(page) == link


def test_home_that_is_loaded_again_keeps_the_focus(
    window: Callable[..., Page], numbers: dict[str, int], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, settings.UNDER_UP = [True], True
    monkeypatch.setattr("dashboard.home.views._is_demo_loading", lambda: loading[0])
    page = window("steward")
    page.goto("/ui/")
    note = page.get_by_text("The demo is loading")
    expect(note).to_be_visible()
    page.get_by_role("link", name="Field note appears in 10 of 40 messages.").first.focus()
    loading[0] = False
    expect(note).to_have_count(0)
    assert focused(page) == "Field note appears in 10 of 40 messages."
    page.reload()
    assert focused(page) == "", "a reader's own reload begins at the top"
