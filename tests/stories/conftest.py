"""Windows of the cast for the stories; how a story ended is kept as pictures in the test's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page


@pytest.fixture
def sits_down(window: Callable[..., Page], tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Somebody of the cast signs in: `sits_down("steward")`. In the end each one's last page is kept, and has to fit."""
    seats: dict[str, Page] = {}

    def make(who: str, **options: object) -> Page:
        seats[who] = window(who, **options)
        return seats[who]

    yield make
    for who, page in seats.items():
        page.screenshot(path=str(tmp_path / f"{who}.png"), full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"the last page of {who} scrolls sideways by {wide} px"
