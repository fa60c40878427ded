"""Every page in every state: the gallery has a sample of it, or the table says why there is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from django.test import RequestFactory, override_settings

from tests.site import gallery

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CARD-4")]

TABLE: Final[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "states.yaml").read_text())
STATES: Final = ("full", "first", "empty", "loading", "partial", "right", "missing")
PAGES: Final[dict[str, dict[str, str]]] = TABLE["states"]
#: what a sample of a state has to show, in the markup of the components
SIGNS: Final = {
    "loading": r"icon spin|hx-trigger|Applying|Running|Queued|Producers write|hourglass",
    "partial": r"role=.alert|note-care|tone-breaks|tone-unknown|tone-care|ink-breaks|octagon-x",
    "right": r'class="why|Not allowed|Unchanged:',
    "missing": r"isn’t there|Not found|not found|There is no|is unknown|No schema|No checked version",
}


def shown(key: str) -> str:
    """The sample as HTML."""
    with override_settings(ROOT_URLCONF="tests.site.urls"):
        return gallery.render(key, RequestFactory().get(f"/gallery/{key}"))


def test_every_page_has_its_row() -> None:
    templates = {sample.template for sample in gallery.SAMPLES.values()}
    assert templates - set(TABLE["single"]) == set(PAGES), (
        "a page without a row in states.yaml, or a row without a page"
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_state_has_a_sample_or_a_reason(page: str) -> None:
    row = PAGES[page]
    assert tuple(row) == STATES or set(row) == set(STATES)
    for state, key in row.items():
        if key.startswith("no:"):
            assert key.removeprefix("no:") in TABLE["reasons"], (state, key)
            continue
        assert gallery.SAMPLES[key].template in {page, "errors/message.html"}, (state, key)
        sign = SIGNS.get(state)
        assert sign is None or re.search(sign, shown(key)), f"{key} doesn't show that it is {state}: {sign}"


def test_every_reason_is_used() -> None:
    given = {key.removeprefix("no:") for row in PAGES.values() for key in row.values() if key.startswith("no:")}
    assert given == set(TABLE["reasons"])
