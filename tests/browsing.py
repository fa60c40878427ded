"""A real browser in front of a real server: windows in which one of the cast is signed in.

The fixtures `browser` and `window` of `tests/conftest.py` are made of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.site.shoot import ARGS, CHROMIUM
from tests.waiting import PATIENCE

#: milliseconds for whatever a page has to come to
TIMEOUT: Final = PATIENCE * 1_000

expect.set_options(timeout=TIMEOUT)


@contextmanager
def chromium() -> Iterator[Browser]:
    """One Chromium; its driver runs a loop in this thread, in which Django would refuse the database."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as play:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        launched = play.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield launched
        launched.close()


@contextmanager
def windows(
    browser: Browser, url: str, cookies_of: Callable[[str], Any], *, usual: str
) -> Iterator[Callable[..., Page]]:
    """Opens windows by the name of who is signed in, "" for nobody and `usual` where none is given.

    They have nothing in common but the session of an account, begin at the home page, and take the options of a context
    of the browser. In the end they are closed; what a
    console complained about fails the test, but for refused pages and forms, which a browser counts among what couldn't
    be loaded.
    """
    contexts, complaints = [], []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def make(who: str = usual, **options: Any) -> Page:
        context = browser.new_context(base_url=url, **options)
        context.set_default_timeout(TIMEOUT)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if who:
            context.add_cookies(cookies_of(who))
            page.goto("/ui/")
        return page

    yield make
    for context in contexts:
        context.close()
    wrong = [text for text in complaints if not any(code in text for code in ("status of 403", "status of 422"))]
    assert not wrong, wrong
