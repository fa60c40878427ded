"""Windows of the cast for the stories, a shop to work in, and pictures of how a story went."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page

from registry.access.roles import Actor
from tests.stories.shop import Shop

#: where the pictures of docs/tour.md go; "" for none
PICTURES: Final = os.environ.get("TOUR_PICTURES", "")
WIDE: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
#: theme and size of a picture, by the end of its name
LOOKS: Final = {
    "": ("light", WIDE),
    "-dark": ("dark", WIDE),
    "-phone": ("light", PHONE),
    "-phone-dark": ("dark", PHONE),
}
QUALITY: Final = 50


def sideways(page: Page) -> int:
    """The pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.fixture
def sits_down(window: Callable[..., Page], tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Somebody of the cast signs in: `sits_down("steward")`. In the end each one's last page is kept, and has to fit."""
    seats: dict[str, Page] = {}

    def make(who: str, **options: object) -> Page:
        seats[who] = window(who, **options)
        return seats[who]

    yield make
    for who, page in seats.items():
        # To hide the caret, a style would be set, which htmx may copy just then and the page's policy refuses.
        page.screenshot(path=str(tmp_path / f"{who}.png"), full_page=True, caret="initial")
        assert sideways(page) <= 0, f"the last page of {who} scrolls sideways by {sideways(page)} px"


@pytest.fixture
def shop(person: Callable[[str], Actor]) -> Shop:
    """The shop's registries, subjects and clients."""
    return Shop(person)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """The folder of checkpoints; the guide's pictures show its name."""
    return Path("/tmp/checkpoints") if PICTURES else tmp_path


class Hand:
    """Clicks for a person, and no more often than a story allows."""

    def __init__(self, page: Page, *, at_most: int) -> None:
        self.page, self.left = page, at_most

    def click(self, target: Locator) -> None:
        """Click once."""
        assert self.left, "the story needs more clicks than it may"
        self.left -= 1
        target.click()

    def picture(self, name: str, at: Locator | None = None) -> None:
        """Check that the page fits at every size, and photograph it for the guide in every look, from `at` on."""
        for look, (theme, size) in LOOKS.items():
            self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            self.page.set_viewport_size(size)  # type: ignore[arg-type]
            assert sideways(self.page) <= 0, f"{name}{look} scrolls sideways by {sideways(self.page)} px"
            if PICTURES:
                self._shoot(Path(PICTURES) / f"{name}{look}.webp", at)
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(WIDE)  # type: ignore[arg-type]

    def _shoot(self, path: Path, at: Locator | None) -> None:
        self.page.evaluate("document.fonts.ready.then(() => true)")
        if at is None:
            self.page.evaluate("scrollTo(0, 0)")
        else:
            at.first.evaluate("box => scrollTo(0, box.getBoundingClientRect().top + scrollY - 72)")
        session: Any = self.page.context.new_cdp_session(self.page)
        shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))
        session.detach()
