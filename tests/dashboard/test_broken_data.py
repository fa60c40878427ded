"""One broken subject, source, registry or finding blanks no page: what is sound is shown, and the broken part says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.db import connection
from django.test import Client

from registry.access.roles import Actor
from registry.promotions.models import PromotionRequest
from registry.search.services import index_stale
from registry.subjects.engine import schema_engine
from registry.subjects.services import register_version
from registry.subjects.versions import parsed_schemas
from registry.subjects.versions.qualified_names import SubjectName
from tests.dashboard.test_every_page import PAGES, SUBJECT, V1, content
from tests.site.test_gallery import Document

__all__ = ["content"]  # a fixture

pytestmark = [pytest.mark.requirement("CARD-4")]

SOUND: Final = SubjectName(".", "sound-value")
#: what is written past the product, as a fault of a disk or an old program would: the statements, and the pages that tell it
FAULTS: Final[dict[str, list[str]]] = {
    "a schema's text isn't its format's": ["UPDATE subjects_schema SET canonical = '{\"type\": \"nope' WHERE schema_id = 1"],
    "a schema's text is empty": ["UPDATE subjects_schema SET canonical = '' WHERE schema_id = 1"],
    "a scan failed": ["UPDATE drift_scan SET state = 'failed', error = 'The broker is gone <b>'"],
    "a scan's record is of another version": ["UPDATE drift_scan SET read = '{\"strange\": [1]}'"],
    "a finding's evidence is of another version": ["UPDATE drift_finding SET evidence = '{\"strange\": {\"a\": null}}'"],
    "a request's plan is empty": ["UPDATE promotions_promotionrequest SET plan = '{}'"],
    "a request's plan is no plan": ["UPDATE promotions_promotionrequest SET plan = '{\"steps\": [7], \"checks\": null}'"],
    "a request's plan is a list": ["UPDATE promotions_promotionrequest SET plan = '[1]'"],
    "a registry can't be read": [
        "UPDATE subjects_registry SET kind = 'remote', url = 'http://theirs.example', every_seconds = 60,"
        " sync_error = 'HTTP 502 <b>', failing_since = now() WHERE name = 'staging'"
    ],
}  # fmt: skip
#: pages that show more than the broken thing, and a word of what is sound on each
SOUND_PARTS: Final = {
    "home": "Findings", "subjects": "sound-value", "sources": "local", "findings": "Findings", "promotions": "Promotions",
    "environments": "sound-value", "audit": "version added", "subject": "orders-value", "source": "orders",
    "request": "first release", "search": "sound-value", "references": "orders-value", "queries": "Streaming queries",
    "policy": "BACKWARD", "unused_subjects": "Unused subjects", "usage": "orders-value", "environment": "prod",
}  # fmt: skip
#: those of them that test_pages.py hasn't
MORE_PAGES: Final = {
    "search": "/ui/search?q=value", "references": f"{SUBJECT}references", "queries": "/ui/queries",
    "policy": "/ui/registries/dev/policy", "unused_subjects": "/ui/registries/dev/unused-subjects", "usage": f"{SUBJECT}usage",
    "environment": "/ui/environments/prod",
}  # fmt: skip


@pytest.fixture
def sound(content: dict[str, int], person: Callable[[str], Actor]) -> dict[str, int]:
    """Beside what will break, something that doesn't."""
    by = person("steward")
    for registry in ("dev", "staging"):
        register_version(registry=registry, subject=SOUND, text=json.dumps({**V1, "name": "Sound"}), by=by)
    index_stale()
    return content


@pytest.mark.parametrize("fault", FAULTS)
def test_no_page_is_blanked(look: Callable[[str], Client], sound: dict[str, int], fault: str) -> None:
    with connection.cursor() as cursor:
        for statement in FAULTS[fault]:
            cursor.execute(statement)
            assert cursor.rowcount, "the fault is really there"
    parsed_schemas.forget()  # what was read before the fault would hide it
    schema_engine.forget()
    client = look("approver")
    client.raise_request_exception = False
    outcomes = {}
    for page, word in SOUND_PARTS.items():
        response = client.get((MORE_PAGES.get(page) or PAGES[page][0]).format(**sound))
        text = response.content.decode()
        outcomes[page] = response.status_code, word in text, not any(raw in text for raw in ("gone <b>", "502 <b>"))
    assert {page: outcome for page, outcome in outcomes.items() if outcome != (200, True, True)} == {}


def test_a_damaged_plan_is_said_and_made_again(look: Callable[[str], Client], content: dict[str, int]) -> None:
    address, row = f"/ui/promotions/{content['request']}", PromotionRequest.objects.filter(pk=content["request"])
    row.update(plan={})
    client = look("approver")
    text = client.get(address).content.decode()
    assert "The stored plan of this request can’t be read" in text
    assert "Run the checks again" in text
    assert "tone-ok" not in text.split('id="decision"')[0], "what isn't known isn't green"
    content_after = client.post(
        f"{address}/approve", {"comment": "fine", "plan_hash": row.get().plan_hash}, follow=True
    ).content.decode()
    assert "Approved" not in content_after or "can’t be read" not in content_after
    client.post(f"{address}/recheck")
    assert "can’t be read" not in client.get(address).content.decode()
    assert row.get().plan["steps"]


#: pages with forms and lists, beside those of PAGES
OTHER_PAGES: Final = (
    *MORE_PAGES.values(), "/ui/people", "/ui/tokens", "/ui/inbox", "/ui/inbox/subscriptions", "/ui/webhooks", "/ui/webhooks/add",
    "/ui/mutes", "/ui/state-checks/new", "/ui/proposals", "/ui/proposals/new", "/ui/clusters/add", "/ui/sources/discover",
    "/ui/decode", f"{SUBJECT}retire", f"{SUBJECT}retire/choose", f"{SUBJECT}retire/confirm?do=deprecate",
    "/ui/registries/dev/what-if?level=FULL", "/ui/fields?registry=dev&subject=orders-value&path=Order.id",
)  # fmt: skip


def test_real_pages_are_sound_documents(look: Callable[[str], Client], content: dict[str, int]) -> None:
    """What the gallery's samples may lack: names of fields that two forms of a page have in common, levels of headings."""
    client = look("admin")
    for address in (*(address.format(**content) for address, _ in PAGES.values()), *OTHER_PAGES):
        response = client.get(address)
        assert response.status_code == 200, address
        _sound(address, response.content.decode())


def _sound(address: str, html: str) -> None:
    document = Document(html)
    assert document.unbalanced == [] and document.open == [], address
    names: dict[str, list[Any]] = {"ids": [], "fields": []}
    for tag, attributes, above in document.elements:
        if attributes.get("id"):
            names["ids"].append(attributes["id"])
        if tag in {"input", "select", "textarea"} and attributes.get("type") != "hidden" and "label" not in above:
            names["fields"].append(attributes.get("id"))
    twice = {one for one in names["ids"] if names["ids"].count(one) > 1}
    assert not twice, f"{address}: ids that two elements have: {twice}"
    named = {attributes.get("for") for attributes in document.named("label")}
    assert [one for one in names["fields"] if one not in named] == [], f"{address}: fields without a label"
    if "<html" in html:
        assert len(document.named("h1")) == 1 and html.count('class="skip"') == 1, address


def test_what_is_unsound_would_be_found() -> None:
    for html in ('<p id="a"></p><p id="a"></p>', '<input id="b">', "<div>", "<html><h1>a</h1><h1>b</h1></html>"):
        with pytest.raises(AssertionError):
            _sound("here", html)
