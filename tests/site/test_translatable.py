"""Every text that people see can be translated: nothing is left out of the catalogue, in templates, code and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from django.conf import settings
from django.core.management import CommandError, call_command
from django.forms import BaseForm
from django.test import Client, RequestFactory, override_settings
from django.utils import translation
from django.utils.functional import Promise

from dashboard.management import message_catalogue
from dashboard.templatetags.desk import _HIDDEN as HIDDEN
from dashboard.templatetags.desk import _LONG as LONG
from registry.access.roles import ROLES, SCOPE_WORDS
from registry.formats.compatibility import LEVELS
from registry.notifications.events import EVENTS
from tests.site import gallery, pseudo

pytestmark = [pytest.mark.requirement("CARD-2"), pytest.mark.requirement("CARD-4")]

ROOT = Path(__file__).resolve().parent.parent.parent
REVIEWED = yaml.safe_load((Path(__file__).parent / "not_translated.yaml").read_text())
TEMPLATES = sorted(
    path for path in (ROOT / "templates").rglob("*.html")
    if path.relative_to(ROOT / "templates").as_posix() not in REVIEWED["records"]
)  # fmt: skip
#: packages whose strings are on no page
BEHIND_PAGES = {"database", "demo", "management", "response_cache", "runtime", "styles"}
MODULES = sorted(path for path in (ROOT / "dashboard").glob("*/*.py") if path.parent.name not in BEHIND_PAGES)
#: modules that speak to programs, or make records that read alike for everybody
NOT_FOR_PEOPLE = {"people/oidc.py"}
MARKS = {"gettext", "ngettext", "pgettext", "_", "counted"}
#: markup, headers of HTTP, commands
CODE = re.compile(r"<\w|; charset=|; filename=|^curl ")
BLOCK = re.compile(r"\{%\s*blocktranslate\b.*?\{%\s*endblocktranslate\s*%\}", re.DOTALL)
TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)


@pytest.fixture(scope="module")
def pseudo_language(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The site has the language `pseudo.CODE` besides English."""
    folder = tmp_path_factory.mktemp("locale")
    pseudo.written(folder)
    with override_settings(LOCALE_PATHS=[folder], LANGUAGES=[("en", "English"), (pseudo.CODE, "Pseudo")]):
        yield


# -- the catalogue ----------------------------------------------------------------------------------------------------


def test_the_catalogues_are_current_and_sound() -> None:
    assert message_catalogue.stale() == [], "run manage.py messages"


def test_the_command_says_what_is_out_of_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("messages", "--check")
    monkeypatch.setattr(message_catalogue, "TEMPLATE", ROOT / "locale" / "missing.pot")
    with pytest.raises(CommandError, match=r"missing\.pot"):
        call_command("messages", "--check")


def test_a_language_is_begun_translated_and_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_catalogue, "ROOT", ROOT)
    monkeypatch.setattr(message_catalogue, "FOLDER", tmp_path)
    path = message_catalogue.begin("de")
    message_catalogue.bring_up_to_date(path)
    text = path.read_text()
    assert 'msgid "Needs your review"\nmsgstr ""' in text
    assert "nplurals=2" in text
    path.write_text(
        text.replace(
            'msgid "Needs your review"\nmsgstr ""', 'msgid "Needs your review"\nmsgstr "Wartet auf Ihre Prüfung"'
        )
    )
    message_catalogue.bring_up_to_date(path)
    assert message_catalogue.problems(path) == []
    path.with_suffix(".mo").write_bytes(message_catalogue.compiled(path))
    german = override_settings(LOCALE_PATHS=[tmp_path], LANGUAGES=[("en", "English"), ("de", "German")])
    with german, translation.override("de"):
        assert translation.gettext("Needs your review") == "Wartet auf Ihre Prüfung"


@pytest.mark.parametrize(
    ("id", "string", "wrong"),
    [
        ("%(n)s of %(total)s", "%(n)s von %(summe)s", True),
        ("%(n)s of %(total)s", "%(total)s, davon %(n)s", False),
        ("to {name}", "an {nom}", True),
        (("%(n)s field", "%(n)s fields"), ("%(n)s Feld", "%(m)s Felder"), True),
        (("%(n)s field", "%(n)s fields"), ("%(n)s Feld", ""), True),
        (("%(n)s field", "%(n)s fields"), ("%(n)s Feld", "%(n)s Felder"), False),
    ],
)
def test_placeholders_and_plurals_that_do_not_agree_are_found(
    tmp_path: Path, id: Any, string: Any, wrong: bool
) -> None:
    path = tmp_path / "de" / "LC_MESSAGES" / "django.po"
    path.parent.mkdir(parents=True)
    made = Catalog(locale="de", fuzzy=False)
    made.add(id, string)
    with path.open("wb") as file:
        write_po(file, made)
    assert bool(message_catalogue.problems(path)) is wrong


# -- templates and code, as they are written --------------------------------------------------------------------------


class Unmarked(HTMLParser):
    """The texts of a template's source that stand in no tag of translation."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.above: list[str] = []
        self.feed(TAG.sub("", BLOCK.sub("", source)))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [
            value for name, value in attrs if name in pseudo.ATTRIBUTES and pseudo.spoken(value or "") and value
        ]
        if tag not in pseudo.VOID:
            self.above.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.above:
            while self.above.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style", "code", "kbd"} & set(self.above) and pseudo.spoken(data):
            self.found.append(" ".join(data.split()))


def is_name(text: str) -> bool:
    """Whether nothing but reviewed names and what joins them is in it."""
    left = text
    for name in sorted(REVIEWED["templates"], key=len, reverse=True):
        left = re.sub(rf"\b{re.escape(name)}\b", "", left, flags=re.IGNORECASE)
    return not pseudo.spoken(left)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(ROOT / "templates").as_posix())
def test_a_template_marks_all_its_texts(path: Path) -> None:
    source = path.read_text()
    assert [text for text in Unmarked(source).found if not is_name(text)] == []
    tags = " ".join(TAG.findall(source))
    passed = re.findall(r"""\|default:"([^"]*)"|\b(?:label|lede|title|what|word)="([^"]*)\"""", tags)
    assert [text for pair in passed for text in pair if " " in text or text.istitle()] == [], "mark it by _(…)"


def looks_like_a_text(text: str) -> bool:
    """Whether a string is words that people read: several, or one with a capital."""
    stripped = text.strip()
    return bool(re.search(r"[a-z,.:;’)”] +[A-Za-z“(]", stripped) or re.fullmatch(r"[A-Z][a-z’]{2,}[?!.:…]?", stripped))


class Strings(ast.NodeVisitor):
    """The strings of a module that look like texts and are not marked."""

    def __init__(self, source: str) -> None:
        self.found: list[str] = []
        self.visit(ast.parse(source))

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in MARKS:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """An annotation is no text."""

    def visit_Dict(self, node: ast.Dict) -> None:
        for value in node.values:
            self.visit(value)

    def visit_Compare(self, node: ast.Compare) -> None:
        """What is compared with is a value of data."""

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._keep("".join(part.value if isinstance(part, ast.Constant) else "Xx" for part in node.values))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._keep(node.value)

    def _keep(self, text: str) -> None:
        if looks_like_a_text(text) and re.search(r"[A-Za-z]{3}", text.replace("Xx", "")) and not CODE.search(text):
            self.found.append(text)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT / "dashboard").as_posix())
def test_a_module_marks_its_texts(path: Path) -> None:
    name = path.relative_to(ROOT / "dashboard").as_posix()
    found = [] if name in NOT_FOR_PEOPLE else Strings(path.read_text()).found
    assert sorted(set(found)) == sorted(REVIEWED["modules"].get(name, [])), (
        "mark a text with gettext, gettext_lazy or counted; what is none stands in not_translated.yaml, and only while it is there"
    )


def values_given(node: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """The texts that a piece of code fills in on the spot, each with the names of its values."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.right, ast.Dict):
        if all(isinstance(key, ast.Constant) for key in node.right.keys):
            names = {key.value for key in node.right.keys if isinstance(key, ast.Constant)}
            calls = [part for part in ast.walk(node.left) if isinstance(part, ast.Call)]
            texts = [arg for call in calls if getattr(call.func, "id", "") in MARKS for arg in call.args]
            yield from ((text.value, names) for text in texts if isinstance(text, ast.Constant))
    elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "counted":
        names = {"n", *(word.arg for word in node.keywords if word.arg)}
        yield from ((text.value, names) for text in node.args[1:3] if isinstance(text, ast.Constant))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT / "dashboard").as_posix())
def test_a_text_gets_all_its_values(path: Path) -> None:
    given = [pair for node in ast.walk(ast.parse(path.read_text())) for pair in values_given(node)]
    lacking = [text for text, names in given if not set(re.findall(r"%\((\w+)\)s", text)) <= names]
    assert lacking == []


# -- pages, as they are shown -----------------------------------------------------------------------------------------


#: the domain's words for its roles, scopes and events, in English
DOMAIN = (
    *ROLES, *SCOPE_WORDS, *SCOPE_WORDS.values(), *(event.title for event in EVENTS.values()),
    *(level.description for level in LEVELS.values()),
)  # fmt: skip

#: what Markdown takes away from a text or divides it at
MARKDOWN = re.compile(r"\*\*|[*`\[]|\]\(\S+\)|^- ")


@cache
def data_of(key: str) -> re.Pattern[str]:
    """What finds the texts that a sample brings, as words of a page; what templates do to them is left out of account."""
    texts = [*_texts(gallery.SAMPLES[key].page), *REVIEWED["gallery"], *DOMAIN]
    # what hides text is drawn as its code point, and a long word is an element of its own
    lines = [line for text in texts for line in (text, *text.split("\n"))]
    shown = [part for line in lines for whole in HIDDEN.split(line) for part in [whole, *LONG.split(whole)]]
    shown += [part for line in lines for part in MARKDOWN.split(line)]
    shown += [text[:119] for text in texts if len(text) > 120]  # as a window's title has it
    found = {" ".join(text.split()).strip(" .…").lower() for text in shown}
    parts = {line.strip() for text in found for line in [text, *re.split(r" · |: |; |, ", text)]}
    words = sorted((line for line in parts if len(line) > 1), key=len, reverse=True)
    return re.compile("|".join(rf"(?<!\w){re.escape(line)}(?!\w)" for line in words) or r"(?!)")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Promise) or value is None:
        return
    elif isinstance(value, BaseForm):
        yield from _texts([value.data, value.initial, [str(error) for error in value.non_field_errors()]])
        for field in value.fields.values():
            yield from _texts(
                [field.widget.attrs.get("placeholder"), list(getattr(field.widget, "choices", ())), field.initial]
            )
        yield from _texts([error for name in value.fields for error in value.errors.get(name, ())])
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))
        if type(value).__module__.startswith("registry."):
            # the domain's sentences are data, in English
            yield from _texts([getattr(value, name, None) for name in ("sentence", "where")])
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _texts(pair)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _texts(item)


@pytest.mark.parametrize("key", gallery.SAMPLES)
def test_a_page_shows_nothing_but_data_outside_the_catalogue(pseudo_language: None, key: str) -> None:
    with override_settings(ROOT_URLCONF="tests.site.urls"), translation.override(pseudo.CODE):
        html = gallery.render(key, RequestFactory().get(f"/gallery/{key}"))
    assert f'<html lang="{pseudo.CODE}"' in html
    page = pseudo.Outside(html)
    assert page.depth == 0
    data = data_of(key)
    left = {text: data.sub(" ", text.lower()) for text in dict.fromkeys(page.found)}
    assert [text for text, rest in left.items() if not is_name(rest)] == []


# -- the choice of the language ---------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_page_is_in_the_language_that_the_browser_asks_for(pseudo_language: None, client: Client) -> None:
    asked = client.get("/ui/accounts/login/", headers={"accept-language": f"{pseudo.CODE}, en;q=0.5"})
    assert asked.headers["Content-Language"] == pseudo.CODE
    assert "Accept-Language" in asked.headers["Vary"]
    assert f'<html lang="{pseudo.CODE}"' in asked.content.decode()
    assert pseudo.said("Sign in") in asked.content.decode()
    other = client.get("/ui/accounts/login/", headers={"accept-language": "tlh, fr;q=0.5"})
    assert other.headers["Content-Language"] == "en"
    assert '<html lang="en"' in other.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(("address", "status"), [("/ui/nowhere", 404), ("/ui/theme", 403)])
def test_an_error_is_said_in_that_language_too(pseudo_language: None, address: str, status: int) -> None:
    answer = Client(enforce_csrf_checks=True).post(address, headers={"accept-language": pseudo.CODE})
    assert answer.status_code == status
    page = answer.content.decode()
    assert f'<html lang="{pseudo.CODE}"' in page
    assert re.search(rf"<h1>(<bdi[^>]*>)?{pseudo.OPEN}", page)


@pytest.mark.parametrize("address", ["/subjects", "/subjects/nothing/versions", "/api/v1/findings", "/api/v1/nothing"])
def test_an_api_answers_alike_whatever_language_is_asked_for(
    pseudo_language: None, api: Callable[[str], Client], address: str
) -> None:
    client = api("reader")
    plain = client.get(address)
    client.get("/ui/accounts/login/", headers={"accept-language": pseudo.CODE})  # no language lasts in the thread
    asked = client.get(address, headers={"accept-language": pseudo.CODE})
    assert plain.status_code in (200, 404)
    assert (asked.status_code, asked.content) == (plain.status_code, plain.content)
    assert "Content-Language" not in asked.headers
    assert "Accept-Language" not in asked.headers.get("Vary", "")
    assert translation.get_language() == settings.LANGUAGE_CODE
