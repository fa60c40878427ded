"""Every template in every state: renders, keeps to the Content-Security-Policy, is a sound document, shows names harmlessly."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from django.test import RequestFactory, override_settings

from tests.site import gallery

pytestmark = [pytest.mark.requirement("CARD-2"), pytest.mark.requirement("CARD-4")]

ROOT = Path(__file__).resolve().parent.parent.parent
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
ADDRESSES = {"href", "src", "action", "formaction", "hx-get", "hx-post", "poster", "data", "srcset", "cite"}
PARTS = [
    (key, part)
    for key, part in [
        ("subjects", "list"), ("subject", "version"), ("compare", "text"), ("compare-split", "text"), ("promotion", "text"),
        ("promotions", "list"), ("findings", "list"), ("source-running", "progress"), ("source", "progress"),
        ("audit", "list"), ("environments", "list"),
    ]
]  # fmt: skip


class Document(HTMLParser):
    """What the tests look at in a page: elements with their attributes, in order, and whether tags are balanced."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.unbalanced.append(f"</{tag}> at {self.getpos()} while {self.open[-3:]} are open")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes, _ in self.elements if name == tag]


def rendered(key: str, part: str = "") -> str:
    request = RequestFactory().get(f"/gallery/{key}")
    with override_settings(ROOT_URLCONF="tests.site.urls"):
        return gallery.render(key, request, part)


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[str, Document]]:
    htmls = {key: rendered(key) for key in gallery.SAMPLES}
    return {key: (html, Document(html)) for key, html in htmls.items()}


#: a page template that has no sample, and the test that shows it from the real database
ELSEWHERE: dict[str, str] = {}


def test_every_page_template_is_in_the_gallery_or_has_a_test_of_its_own() -> None:
    parts = {"base.html"}
    folders = ROOT / "templates"
    pages = {str(path.relative_to(folders)) for path in folders.rglob("*.html")}
    whole = {name for name in pages if "{% extends" in (folders / name).read_text()} | {"500.html", "503.html"}
    shown = {sample.template for sample in gallery.SAMPLES.values()}
    assert whole - parts - shown == set(ELSEWHERE)
    assert all((ROOT / "tests" / test).exists() for test in ELSEWHERE.values())


def keeps_to_the_policy(html: str, document: Document) -> None:
    for tag, attributes, _ in document.elements:
        assert tag not in {"style", "iframe", "object", "embed", "base"}, (tag, attributes)
        inline = [name for name in attributes if name == "style" or name.startswith("on") or name.startswith("hx-on")]
        assert inline == [], (tag, inline)
        if tag == "script":
            assert attributes.get("src"), "inline script"
        for name in ADDRESSES & set(attributes):
            address = attributes[name] or ""
            if tag == "a" and attributes.get("rel") == "noopener noreferrer":
                assert address.startswith("https://"), "what a pipeline told is led to, and isn't told from where"
                continue
            assert re.match(r"^(/(?!/)|[?#]|$)", address), f"{tag} {name}={address!r} leaves the site"


def is_a_sound_document(html: str, document: Document) -> None:
    assert document.unbalanced == [] and document.open == []
    assert len(document.named("h1")) == 1
    assert len(document.named("main")) == 1
    assert len([tag for tag, _, above in document.elements if tag == "title" and "svg" not in above]) == 1
    ids = [str(attributes["id"]) for _, attributes, _ in document.elements if attributes.get("id")]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    known = set(ids)
    for _, attributes, _ in document.elements:
        for name in ("for", "aria-labelledby", "aria-describedby"):
            if attributes.get(name):
                assert set(str(attributes[name]).split()) <= known, (name, attributes)
        if attributes.get("rel") == "expect":  # without it a browser would draw pages in part, and things would move
            assert str(attributes["href"]).removeprefix("#") in known, attributes
    levels = [int(tag[1]) for tag, _, _ in document.elements if re.fullmatch(r"h[1-6]", tag)]
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels)), levels


def has_a_token_in_every_form_and_a_label_for_every_field(html: str, document: Document) -> None:
    for form in re.findall(r"<form\b.*?</form>", html, flags=re.DOTALL):
        if 'method="post"' in form:
            assert 'name="csrfmiddlewaretoken"' in form, form[:200]
    labelled = {attributes.get("for") for attributes in document.named("label")}
    for tag, attributes, above in document.elements:
        if (
            tag in {"input", "select", "textarea"}
            and attributes.get("type") != "hidden"
            and "aria-hidden" not in attributes
        ):
            assert attributes.get("id") in labelled or "label" in above, attributes


def shows_what_others_wrote_as_text(html: str, document: Document) -> None:
    assert document.named("img") == []
    assert "49" not in [text for _, text in document.texts], "a template expression in a name was evaluated"
    shown = re.sub(r"<textarea\b.*?</textarea>", "", re.sub(r'="[^"]*"', "", html), flags=re.DOTALL)
    hidden = [char for char in "\u202e\u202c\u202d\u2066\u2067\u2069\u200b" if char in shown]
    assert hidden == [], "characters that reorder or hide text reached the page outside attributes and fields to edit"


def test_hostile_names_are_really_in_the_gallery(pages: dict[str, tuple[str, Document]]) -> None:
    shown = [key for key, (html, _) in pages.items() if "&lt;img src=x onerror=" in html and "U+202E" in html]
    assert len(shown) >= 12


def tells_no_verdict_by_colour_alone(html: str, document: Document) -> None:
    badges = re.findall(r'<span class="badge[^"]*">(.*?)</span></span>|<span class="badge[^"]*">(.*?)</span>', html)
    for whole in (first or second for first, second in badges):
        assert "<use" in whole, whole
        assert re.sub(r"<[^>]+>", "", whole).strip(), whole


@pytest.mark.parametrize("key", gallery.SAMPLES)
def test_page_is_sound(pages: dict[str, tuple[str, Document]], key: str) -> None:
    for check in (
        keeps_to_the_policy,
        is_a_sound_document,
        has_a_token_in_every_form_and_a_label_for_every_field,
        shows_what_others_wrote_as_text,
        tells_no_verdict_by_colour_alone,
    ):
        check(*pages[key])


@pytest.mark.parametrize(("key", "part"), PARTS)
def test_a_part_is_the_element_that_htmx_replaces(key: str, part: str) -> None:
    html = rendered(key, part)
    document = Document(html)
    assert document.unbalanced == [] and document.open == []
    roots = [(tag, attributes) for tag, attributes, above in document.elements if not above]
    assert len(roots) == 1
    assert roots[0][1].get("id") == part
    assert "<html" not in html


def test_progress_asks_again_only_while_the_scan_runs() -> None:
    running, done = Document(rendered("source-running", "progress")), Document(rendered("source", "progress"))
    assert [a["hx-trigger"] for _, a, _ in running.elements if "hx-trigger" in a] == ["every 1s"]
    assert [a for _, a, _ in done.elements if "hx-trigger" in a] == []


def test_what_was_not_scanned_is_never_green(pages: dict[str, tuple[str, Document]]) -> None:
    for key in ("source-never", "source-read-nothing", "findings-not-scanned"):
        html, _ = pages[key]
        top = html.split('id="scans-title"')[0]
        assert "tone-ok" not in top and "verdict-ok" not in top and "note-ok" not in top, key
        assert "Not scanned" in html, key


def test_an_action_that_is_not_allowed_is_disabled_with_its_reason(pages: dict[str, tuple[str, Document]]) -> None:
    html, document = pages["promotion-own"]
    assert "You requested it: somebody else has to approve." in html
    assert [a.get("formaction") for a in document.named("button") if a.get("formaction")] == []
    disabled = [attributes for attributes in document.named("button") if "disabled" in attributes]
    assert len(disabled) == 4


def test_production_tints_the_frame(pages: dict[str, tuple[str, Document]]) -> None:
    assert "in-prod" in pages["subjects-prod"][0]
    assert "in-prod" not in pages["subjects"][0]


@pytest.mark.parametrize(
    ("cookie", "attribute"), [("dark", 'data-theme="dark"'), ("light", 'data-theme="light"'), ('"><script>', "")]
)
def test_theme_cookie_is_in_the_first_byte_of_the_page(cookie: str, attribute: str) -> None:
    request = RequestFactory().get("/gallery/home")
    request.COOKIES["theme"] = cookie
    with override_settings(ROOT_URLCONF="tests.site.urls"):
        opening = re.search(r"<html[^>]*>", gallery.render("home", request))
    assert opening is not None
    assert (attribute in opening[0]) if attribute else ("data-theme" not in opening[0])


def test_every_class_has_a_rule(pages: dict[str, tuple[str, Document]]) -> None:
    css = (ROOT / "static" / "app.css").read_text()
    rules = {re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"\.((?:\\.|[\w-])+)", css)}
    used = {
        name for _, document in pages.values() for _, attributes, _ in document.elements
        for name in str(attributes.get("class") or "").split()
    }  # fmt: skip
    # states whose look is the plain one
    plain = {"tone-plain", "tone-env-dev", "tone-env-other", "verdict-info", "note-info", "skip-row", "group", "done"}
    assert used - rules - plain == set()


def test_every_icon_is_in_the_sprite(pages: dict[str, tuple[str, Document]]) -> None:
    sprite = (ROOT / "static" / "icons.svg").read_text()
    drawn = set(re.findall(r'id="([\w-]+)"', sprite))
    used = {str(a["href"]).split("#")[1] for _, document in pages.values() for a in document.named("use")}
    assert used - drawn == set()


def test_long_lists_of_use_are_folded_and_what_is_left_out_is_said() -> None:
    html = rendered("usage")
    first, _, folded = html.partition("3 more topics")
    assert ">orders-5<" in first and ">orders-6<" not in first and ">orders-8<" in folded
    assert "31 topics aren’t shown" in folded
    lines, _, rest = folded.partition("All 8")
    assert "order-totals-4 " in lines and "order-totals-5 " not in lines and "order-totals-7 " in rest


@pytest.mark.parametrize("key", ["finding", "finding-reader", "finding-resolved", "finding-state"])
def test_the_row_of_a_findings_parts_leads_to_parts_that_are_there(key: str) -> None:
    html = rendered(key)
    places = re.findall(r'href="#([a-z]+)"', html.partition('<nav class="jump')[2].partition("</nav>")[0])
    assert len(places) > 2 and all(html.count(f'id="{place}"') == 1 for place in places)
