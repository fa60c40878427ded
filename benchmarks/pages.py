"""Every page over the large data set, in a real browser and from a real server: how long, how heavy, how steady.

In Chromium: when the largest element was painted, what moved, what blocked the thread, and what was sent.
"""

from __future__ import annotations

import http.client
import math
import os
import shutil
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks import dataset
from benchmarks.engines import milliseconds
from benchmarks.measurement import machine
from benchmarks.page_addresses import UNSEEN, Page, all_pages
from benchmarks.site import Say, Site, own_site, running_site
from registry.access.models import User
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
                response = page.goto(address, wait_until="load")
            except self._unopened as error:
                raise WrongState(f"{address} wasn't opened: {str(error).splitlines()[0]}") from error
            if response is None or response.status != 200:
                raise WrongState(
                    f"{address} answered {response.status if response else 'nothing'}: nothing is measured."
                )
            page.wait_for_load_state("networkidle")
            # observers run after a frame is drawn
            page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
            timings = page.evaluate("measured")
            return Load(timings["paint"] / 1000, timings["shift"], timings["task"] / 1000, sent.bytes)
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
def chromium(arguments: Sequence[str] = ()) -> Iterator[Browser]:
    """The machine's Chromium, else Playwright's. Raises WrongState where Playwright isn't installed."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise WrongState("A browser is driven by Playwright: install requirements-dev.lock.") from error
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=[*_ARGS, *arguments])
        try:
            yield browser
        finally:
            browser.close()


PATIENCE: Final = 120  # seconds for an answer
SERVER_GOAL: Final = 0.15  # seconds, 95th percentile
PAINT_GOAL: Final = 1.0  # seconds
TASK_GOAL: Final = 0.2  # seconds
WEIGHT_GOAL: Final = 250_000  # bytes, without the editor
#: what a browser rounds to nothing
SHIFT_GOAL: Final = 0.001
HEAD: Final = ("page", "server", "95 %", "largest paint", "shift", "longest task", "sent", "queries")
_WIDTHS: Final = (44, 9, 18, 18, 8, 16, 17)


@dataclass(frozen=True, slots=True)
class Size(dataset.Size):
    """How much is measured, besides how much there is: requests of each page, and loads of it in the browser."""

    requests: int = 20
    loads: int = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One page: seconds of the server, the browser's loads (of a file none), and database queries; or why it failed."""

    what: str
    p50: float = 0.0
    p95: float = 0.0
    loads: tuple[Load, ...] = ()
    queries: int = 0
    failed: str = ""

    @property
    def paint(self) -> float:
        """The median of the largest paints."""
        return statistics.median(load.paint for load in self.loads)

    @property
    def shift(self) -> float:
        """The most that a load shifted."""
        return max(load.shift for load in self.loads)

    @property
    def task(self) -> float:
        """The median of the longest tasks: one that is interrupted by the machine isn't the page's."""
        return statistics.median(load.task for load in self.loads)

    @property
    def bytes(self) -> int:
        """The most that was sent."""
        return max(load.bytes for load in self.loads)


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    usual = Size()
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="in three environments together")
    parser.add_argument("--versions", type=int, default=usual.versions, help="of each")
    parser.add_argument("--fields-max", type=int, default=usual.fields_max, help="of the largest")
    parser.add_argument("--fields-mean", type=int, default=usual.fields_mean, help="on average")
    parser.add_argument("--requests", type=int, default=usual.requests, help="of each page, for the server's time")
    parser.add_argument("--loads", type=int, default=usual.loads, help="of each page in the browser")
    parser.add_argument("--data", type=Path, help="a folder that keeps the data set for the next time")
    parser.add_argument(
        "--url", default="", help="a site that runs over the connected database, which `bench fill` has filled"
    )
    parser.add_argument("--only", nargs="*", default=[], help="the pages whose names begin like one of these words")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def measure(options: Mapping[str, Any], say: Say) -> Iterator[Row]:
    """The rows, as they are measured. Raises WrongState for a page that the table lacks, before anything is started."""
    pages = [page for page in all_pages() if _is_asked(page, options["only"])]
    size = size_of(options)
    site = running_site(options["url"]) if options["url"] else own_site(size, say, options["data"])
    # Playwright's driver runs a loop in this thread, in which Django would refuse the database
    unsafe = mock.patch.dict(os.environ, {"DJANGO_ALLOW_ASYNC_UNSAFE": "1"})
    with site as running, unsafe, chromium() as browser:
        say(f"{len(pages)} pages of {running.url}")
        yield from measure_at(running, pages, size, browser)


def measure_at(site: Site, pages: Sequence[Page], size: Size, browser: Browser) -> Iterator[Row]:
    """The rows of a site, as a browser has its pages."""
    window = Window(browser, site.url, site.person, site.password)
    count = _query_counter(site.person)
    for page in pages:
        what, address = page.what.format(**site.there), page.address(site.there)
        try:
            taken = server_times(site.url, address, window.cookies, size.requests)
            loads = () if page.name in UNSEEN else tuple(window.load(address) for _ in range(size.loads))
        except (WrongState, OSError, http.client.HTTPException) as error:
            yield Row(what, failed=getattr(error, "message", str(error)))
        else:
            yield Row(what, statistics.median(taken), _p95(taken), loads, count(address))


def size_of(options: Mapping[str, Any]) -> Size:
    """The size that the options say."""
    return Size(**{option.name: options[option.name] for option in fields(Size)})


def _is_asked(page: Page, prefixes: Sequence[str]) -> bool:
    return not prefixes or page.what.startswith(tuple(prefixes))


def _p95(taken: Sequence[float]) -> float:
    return sorted(taken)[math.ceil(len(taken) * 0.95) - 1]


def server_times(url: str, address: str, cookies: str, count: int) -> list[float]:
    """Seconds from the request to the last byte, on one connection; of the first one too: somebody waits for it.

    Raises WrongState for any answer but 200, OSError and HTTPException where there is none.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection, taken = kind(parts.netloc, timeout=PATIENCE), []
    try:
        for _ in range(count):
            began = time.perf_counter()
            connection.request("GET", address, headers={"Cookie": cookies, "Accept": "text/html"})
            response = connection.getresponse()
            response.read()
            taken.append(time.perf_counter() - began)
            if response.status != HTTPStatus.OK:
                raise WrongState(f"{address} answered {response.status}: what isn't shown can't be measured.")
    finally:
        connection.close()
    return taken


def _query_counter(person: str) -> Callable[[str], int]:
    """Counts the queries of a page by opening it in this process, over the same database."""
    client = Client(SERVER_NAME=next((host for host in settings.ALLOWED_HOSTS if host[0] not in "*.["), "localhost"))
    client.force_login(User.objects.get(username=person))

    def count(address: str) -> int:
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        return len(queries)

    return count


# -- what is shown ------------------------------------------------------------------------------------------------------


def cells(row: Row) -> tuple[str, ...]:
    """A row as the table shows it."""
    if row.failed:
        return row.what, f"failed: {row.failed}"
    server = (row.what, milliseconds(row.p50), _held(milliseconds(row.p95), row.p95 <= SERVER_GOAL))
    if not row.loads:
        return (*server, "", "", "", "", str(row.queries))
    return (
        *server,
        _held(milliseconds(row.paint), row.paint <= PAINT_GOAL),
        _held(f"{row.shift:.3f}", row.shift < SHIFT_GOAL),
        _held(milliseconds(row.task) if row.task else "none", row.task <= TASK_GOAL),
        _held(f"{row.bytes / 1000:,.0f} kB", row.bytes <= WEIGHT_GOAL),
        str(row.queries),
    )


def _held(text: str, is_held: bool) -> str:
    return text if is_held else f"{text} (missed)"


def in_columns(texts: Sequence[str]) -> str:
    """A row for a terminal."""
    widths = (*_WIDTHS, *(0 for _ in texts))
    return " ".join(f"{text:{width}}" for text, width in zip(texts, widths, strict=False)).rstrip()


def section(rows: Sequence[Row], size: Size, note: str = "") -> str:
    """The section of the page of measurements."""
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}.{' ' + note if note else ''}",
        "",
        f"Over {size.subjects:,} subjects of up to {size.fields_max:,} fields, as an admin sees them. The server's time is "
        f"that of {size.requests} requests on one connection, to the last byte, the server as `up` runs it on the same "
        f"machine. The rest is of {size.loads} loads in Chromium, 1,280 px wide, each with an empty cache: the median of the "
        "largest contentful paints and of the longest tasks, the most that shifted and that was sent. Files have a server "
        "time alone.",
        "",
        f"The goals: 95 % of the requests within {milliseconds(SERVER_GOAL)}, the largest paint within "
        f"{milliseconds(PAINT_GOAL)}, no shift, no task over {milliseconds(TASK_GOAL)}, {WEIGHT_GOAL // 1000} kB.",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{'---|' * len(HEAD)}",
        *(f"| {' | '.join(cells(row))} |" for row in rows),
    ]
    return "\n".join(lines)
