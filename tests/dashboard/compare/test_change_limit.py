"""More changes than a page draws at once: all of them by an address, and each can be commented on by its field."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from registry.promotions import services
from tests.dashboard.promotions.test_promotion_pages import Browser, cast, text_of, versions  # noqa: F401 - fixtures
from tests.markup import compact
from tests.promotions.factories import V1, Cast, ask, register

pytestmark = pytest.mark.requirement("CARD-2", "CARD-4")
WIDE = {**V1, "fields": [*V1["fields"], *({"name": f"f{n}", "type": "int", "default": n} for n in range(4))]}
PATHS = [f"Order.f{n}" for n in range(4)]


@pytest.fixture(autouse=True)
def one_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages draw one card unless all are asked for."""
    for module in ("promotions.changes", "compare.proposed_schema", "compatibility.report"):
        monkeypatch.setattr(f"dashboard.{module}.MAX_CARDS", 1)


@pytest.fixture
def wide(cast: Cast, versions: None) -> int:  # noqa: F811
    """A request that brings four new fields."""
    register(WIDE, cast["steward"])
    return ask(cast, version=3, target="staging")


def paths(response: Any) -> list[str]:
    """The fields of the cards that a page has."""
    text_of(response)
    page = response.context["page"]
    part = getattr(page, "report", None) or getattr(page, "changes", page)
    return [card.path for group in part.comparison.groups for card in group.cards]


def link(response: Any, label: str) -> str:
    """The address of a link by its words."""
    match = re.search(rf'href="([^"]+)"[^>]*>{label}</a>', compact(text_of(response)))
    assert match is not None, label
    return html.unescape(match[1])


def test_all_changes_of_a_request_are_read_and_commented_on_by_field(
    look: Browser, cast: Cast, wide: int  # noqa: F811
) -> None:  # fmt: skip
    client, address = look("approver"), f"/ui/promotions/{wide}"
    drawn = client.get(f"{address}?item=orders-value&view=split")
    assert len(paths(drawn)) == 1 and "3 more changes of the same or lower severity aren’t shown" in text_of(drawn)
    everything = client.get(link(drawn, "Show all"))
    assert sorted(paths(everything)) == PATHS
    assert "aren’t shown" not in text_of(everything) and "Show all" not in text_of(everything)
    page = everything.context["page"]
    assert page.view == "split" and "all=1" in page.unified_url
    hidden = next(path for path in PATHS if path not in paths(drawn))
    card = next(card for group in page.changes.comparison.groups for card in group.cards if card.path == hidden)
    assert f'name="path" value="{hidden}"' in compact(text_of(client.get(card.comment_url)))
    services.open_thread(request_id=wide, by=cast["approver"], text="why?", subject="orders-value", path=hidden)
    (thread,) = client.get(address).context["page"].threads
    assert thread.place_url == f"{address}?item=orders-value&all=1#changes"
    (thread,) = client.get(f"{address}?all=1").context["page"].threads
    assert thread.place_url == f"#{card.anchor}"


def test_a_request_lists_what_stays_and_compares_texts_as_submitted(
    look: Browser, cast: Cast, wide: int  # noqa: F811
) -> None:  # fmt: skip
    client, address = look("reader"), f"/ui/promotions/{wide}"
    shown = client.get(link(client.get(address), "Show"))
    assert re.search(r'<ul class="unchanged">.*Order\.id.*</ul>', text_of(shown), re.DOTALL)
    submitted = client.get(f"{address}?text=submitted", headers={"HX-Request": "true", "HX-Target": "text"})
    assert submitted.context["page"].text_switch.as_submitted
    assert compact(submitted.content.decode()).lstrip().startswith('<section class="panel" id="text"')
    assert link(submitted, "Ignore formatting") == f"{address}#text"


@pytest.mark.parametrize("page", ["/ui/proposals/new", "/ui/registries/staging/subjects/orders-value/report"])
def test_all_changes_of_a_text_are_read_before_it_is_asked_for(
    look: Browser, versions: None, page: str  # noqa: F811
) -> None:  # fmt: skip
    client = look("steward")
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "AVRO", "text": json.dumps(WIDE)}
    checked = client.post(page, form)
    assert len(paths(checked)) == 1
    button = re.search(r'<button[^>]+formaction="([^"]+)"[^>]+name="all"\s+value="1"\s*>\s*Show all', text_of(checked))
    assert button is not None
    everything = client.post(html.unescape(button[1]), {**form, "all": "1"})
    assert sorted(paths(everything)) == PATHS
    assert re.search(r'<input type="hidden" form="\w+" name="all" value="1">', compact(text_of(everything)))


def test_all_findings_of_a_report_are_read(
    look: Browser, versions: None, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    for limit in ("MAX_FINDINGS", "MAX_BEYOND"):
        monkeypatch.setattr(f"dashboard.compatibility.result.{limit}", 1)
    client, page = look("steward"), "/ui/registries/staging/subjects/orders-value/report"
    without = [{key: value for key, value in field.items() if key != "default"} for field in WIDE["fields"]]
    form = {"schema_type": "AVRO", "text": json.dumps(WIDE | {"fields": without}), "level": "BACKWARD"}
    checked = client.post(page, form)
    drawn = checked.context["page"].result
    hidden = drawn.hidden_findings + drawn.hidden_beyond
    assert hidden and len(drawn.findings) <= 1 and len(drawn.beyond) <= 1
    title = "findings" if drawn.hidden_findings else "beyond"
    assert re.search(rf'formaction="{page}#{title}-title"[^>]+name="all" value="1"', compact(text_of(checked)))
    whole = client.post(page, {**form, "all": "1"}).context["page"].result
    assert len(whole.findings) + len(whole.beyond) == hidden + len(drawn.findings) + len(drawn.beyond)
    assert whole.hidden_findings == whole.hidden_beyond == 0
