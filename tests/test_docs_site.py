"""The documentation as a site: all pages, no link into nowhere, nothing from elsewhere, and a search that finds."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from django.core.management import call_command
from playwright.sync_api import Browser, expect

from dashboard.management.docs_site import DOCS, NAVIGATION, ROOT, ROOT_PAGES

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("docs_site")]
#: tags that load what they name, with the attribute
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "video": "src", "link": "href"}


class Addresses(HTMLParser):
    """The addresses of a page: those that a browser loads, and those that people follow."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.followed: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if address := values.get(LOADED.get(tag, "")):
            self.loaded.append(address)
        if tag == "a" and (target := values.get("href")):
            self.followed.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    call_command("docs", str(folder))
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Addresses]:
    return {str(path.relative_to(site)): Addresses(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_document_is_a_page_in_a_section(pages: dict[str, Addresses]) -> None:
    documents = {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")}
    documents |= {page.replace(".md", ".html") for page in ROOT_PAGES.values()}
    assert pages.keys() == documents
    folders = {path.name for path in DOCS.iterdir() if path.is_dir() and list(path.glob("*.md"))}
    assert folders == {entry for entry in NAVIGATION.values() if isinstance(entry, str)}


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[str, Addresses]) -> None:
    foreign = {address for page in pages.values() for address in page.loaded if urlsplit(address).netloc}
    assert foreign == set()
    styles = [path for path in site.rglob("*.css") if "url(http" in path.read_text() or "@import" in path.read_text()]
    assert styles == []


def test_every_address_within_the_site_is_there(site: Path, pages: dict[str, Addresses]) -> None:
    missing = [
        (name, address)
        for name, page in pages.items()
        for address in (*page.loaded, *page.followed)
        if not urlsplit(address).scheme
        and not ((site / name).parent / (unquote(urlsplit(address).path) or Path(name).name)).resolve().exists()
    ]
    assert missing == []
    shown = {Path(address).name for address in pages["tour.html"].loaded}
    assert {path.name for path in (DOCS / "tour").iterdir()} <= shown


@pytest.mark.parametrize("link", ["elsewhere.md", "other.md#no-such-heading", "/other.md"])
def test_a_link_into_nowhere_is_refused(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# One\n[link]({link})\n")
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    config = f"INHERIT: {ROOT}/mkdocs.yml\ndocs_dir: docs\nhooks: []\ntheme: {{name: mkdocs}}\nplugins: []\n"
    (tmp_path / "mkdocs.yml").write_text(config)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, link.split("#")[0] in done.stderr) == (1, True), done.stderr


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_said: object) -> None: ...

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.browser
def test_the_search_finds_and_a_reader_s_browser_asks_nobody_else(browser: Browser, address: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/architecture.html")
    page.goto(f"{address}/tour.html")
    expect(page.get_by_role("heading", name="How do I rename a field?")).to_be_visible()
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").fill("PgBouncer")
    result = page.locator(".md-search-result__link", has_text="How do I use a connection pooler?").first
    expect(result).to_be_visible(timeout=30_000)
    result.click()
    expect(page).to_have_url(re.compile("run.html"))
    assert [url for url in asked if not url.startswith((f"{address}/", "data:", "blob:"))] == []
    page.close()
