"""Pages as Chromium has them: when the largest thing was painted, what moved, what held the thread, what was sent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from registry.errors import WrongState

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_ARGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: of a window as most have it
_VIEW: Final = {"width": 1280, "height": 900}
#: what is part of the editor and of no other page
EDITOR: Final = ("/static/vendor/codemirror/",)
_PATIENCE: Final = 120_000  # milliseconds for a page
#: Notes from a page's first moment on what its browser measures.
_WATCH: Final = """
window.measured = {paint: 0, shift: 0, task: 0};
new PerformanceObserver(list => { for (const one of list.getEntries()) measured.paint = Math.max(measured.paint, one.startTime); })
  .observe({type: "largest-contentful-paint", buffered: true});
new PerformanceObserver(list => { for (const one of list.getEntries()) if (!one.hadRecentInput) measured.shift += one.value; })
  .observe({type: "layout-shift", buffered: true});
new PerformanceObserver(list => { for (const one of list.getEntries()) measured.task = Math.max(measured.task, one.duration); })
  .observe({type: "longtask", buffered: true});
"""


@dataclass(frozen=True, slots=True)
class Load:
    """One load of a page with an empty cache: seconds until the largest paint, shift, seconds of a task, bytes."""

    paint: float
    shift: float
    task: float
    bytes: int


class Window:
    """Somebody who has signed in, and opens pages with nothing kept of earlier ones."""

    def __init__(self, browser: Browser, url: str, person: str, password: str) -> None:
        from playwright.sync_api import Error

        self._browser, self._url, self._unopened = browser, url, Error
        context = browser.new_context(base_url=url)
        page = context.new_page()
        page.goto("/ui/accounts/login/")
        page.fill("input[name=login]", person)
        page.fill("input[name=password]", password)
        page.click("main form button")
        page.wait_for_url("**/ui/")
        self._state = context.storage_state()
        context.close()

    @property
    def cookies(self) -> str:
        """What other clients send to be the same person."""
        return "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in self._state["cookies"])

    def load(self, address: str) -> Load:
        """Opens the page and waits until nothing is loaded. Raises WrongState for any answer but 200, and for none."""
        context = self._browser.new_context(base_url=self._url, storage_state=self._state, viewport=_VIEW)  # type: ignore[arg-type]
        try:
            context.set_default_timeout(_PATIENCE)
            page = context.new_page()
            page.add_init_script(_WATCH)
            sent = _Sent(context.new_cdp_session(page))
            try:
                answer = page.goto(address, wait_until="load")
            except self._unopened as error:
                raise WrongState(f"{address} wasn't opened: {str(error).splitlines()[0]}") from error
            if answer is None or answer.status != 200:
                raise WrongState(f"{address} answered {answer.status if answer else 'nothing'}: nothing is measured.")
            page.wait_for_load_state("networkidle")
            # the observers are told after a frame was drawn
            page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
            found = page.evaluate("measured")
            return Load(found["paint"] / 1000, found["shift"], found["task"] / 1000, sent.bytes)
        finally:
            context.close()


class _Sent:
    """Counts what a page was sent, as it came over the network: headers and compressed bodies."""

    def __init__(self, session: Any) -> None:
        self.bytes = 0
        self._left_out: set[str] = set()
        session.on("Network.responseReceived", self._begun)
        session.on("Network.loadingFinished", self._finished)
        session.send("Network.enable")

    def _begun(self, event: dict[str, Any]) -> None:
        if urlsplit(event["response"]["url"]).path.startswith(EDITOR):
            self._left_out.add(event["requestId"])

    def _finished(self, event: dict[str, Any]) -> None:
        if event["requestId"] not in self._left_out:
            self.bytes += int(event["encodedDataLength"])


@contextmanager
def chromium(words: Sequence[str] = ()) -> Iterator[Browser]:
    """The machine's Chromium, else Playwright's. Raises WrongState where Playwright isn't installed."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise WrongState("A browser is driven by Playwright: install requirements-dev.lock.") from error
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=[*_ARGS, *words])
        try:
            yield browser
        finally:
            browser.close()
