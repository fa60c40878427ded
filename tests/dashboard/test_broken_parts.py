"""One broken subject, source, registry or finding blanks no page: what is sound is shown, and the broken part says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import pytest
from django.db import connection
from django.test import Client

from registry.access.roles import Actor
from registry.subjects.names import SubjectName
from registry.subjects.services import register_version
from tests.dashboard.test_pages import PAGES, V1, browser, content

__all__ = ["browser", "content"]  # fixtures

pytestmark = [pytest.mark.requirement("CARD-4")]

SOUND: Final = SubjectName(".", "sound-value")
#: what is written past the product, as a fault of a disk or an old program would: the statements, and the pages that tell it
FAULTS: Final[dict[str, list[str]]] = {
    "a schema's text isn't its format's": ["UPDATE subjects_schema SET canonical = '{\"type\": \"nope' WHERE schema_id = 1"],
    "a schema's text is empty": ["UPDATE subjects_schema SET canonical = '' WHERE schema_id = 1"],
    "a scan failed": ["UPDATE drift_scan SET state = 'failed', error = 'The broker is gone <b>'"],
    "a scan's record is of another version": ["UPDATE drift_scan SET read = '{\"strange\": [1]}'"],
    "a finding's evidence is of another version": ["UPDATE drift_finding SET evidence = '{\"strange\": {\"a\": null}}'"],
    "a registry can't be read": [
        "UPDATE subjects_registry SET kind = 'remote', url = 'http://theirs.example', every_seconds = 60,"
        " sync_error = 'HTTP 502 <b>', failing_since = now() WHERE name = 'staging'"
    ],
}  # fmt: skip
#: pages that show more than the broken thing, and a word of what is sound on each
SOUND_PARTS: Final = {
    "home": "Findings", "subjects": "sound-value", "sources": "local", "findings": "Findings", "promotions": "Promotions",
    "environments": "sound-value", "audit": "version added", "subject": "orders-value", "source": "orders",
    "request": "first release",
}  # fmt: skip


@pytest.fixture
def sound(content: dict[str, int], person: Callable[[str], Actor]) -> dict[str, int]:
    """Beside what will break, something that doesn't."""
    by = person("steward")
    for registry in ("dev", "staging"):
        register_version(registry=registry, subject=SOUND, text=json.dumps({**V1, "name": "Sound"}), by=by)
    return content


@pytest.mark.parametrize("fault", FAULTS)
def test_no_page_is_blanked(browser: Callable[[str], Client], sound: dict[str, int], fault: str) -> None:
    with connection.cursor() as cursor:
        for statement in FAULTS[fault]:
            cursor.execute(statement)
            assert cursor.rowcount, "the fault is really there"
    client = browser("approver")
    client.raise_request_exception = False
    told = {}
    for page, word in SOUND_PARTS.items():
        answer = client.get(PAGES[page][0].format(**sound))
        text = answer.content.decode()
        told[page] = answer.status_code, word in text, not any(raw in text for raw in ("gone <b>", "502 <b>"))
    assert {page: said for page, said in told.items() if said != (200, True, True)} == {}
