"""Drafts of schemas: half a schema is kept, and nobody else sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.errors import (
    DraftChanged,
    DraftNotFound,
    FindingNotFound,
    InvalidInput,
    InvalidName,
    InvalidSchema,
    NotAllowed,
    NotSignedIn,
    RegistryNotFound,
    SchemaTooLarge,
    WrongState,
)
from registry.formats.base import Reference
from registry.promotions import selectors, services
from registry.promotions.models import Draft
from registry.promotions.requests import drafts
from registry.promotions.requests.state_machine import MAX_TEXT
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import CUSTOMERS, ORDERS, V1, Cast

pytestmark = pytest.mark.requirement("CARD-4")


def save(cast: Cast, text: str = '{"type": "rec', who: str = "steward", **more: object) -> int:
    values = {"registry": "prod", "subject": ORDERS, **more}
    return services.save_draft(text=text, by=cast[who], **values)  # type: ignore[arg-type]


def test_half_a_schema_is_kept_and_written_on(cast: Cast) -> None:
    number = save(cast, origin="from the topic orders")
    assert save(cast, '{"type": "record"', references=[Reference("A", "a", 1)]) == number, "the subject's one draft"
    (listed,) = selectors.list_drafts(cast["steward"].user_id or 0)
    assert (listed.id, listed.text) == (number, "")
    whole = selectors.get_draft(number, user_id=cast["steward"].user_id or 0)
    assert (whole.text, whole.references, whole.registry) == ('{"type": "record"', (Reference("A", "a", 1),), "prod")
    services.delete_draft(draft_id=number, by=cast["steward"])
    assert not Draft.objects.exists()


def test_nobody_elses(cast: Cast) -> None:
    number = save(cast)
    other = cast["admin"].user_id or 0
    assert selectors.list_drafts(other) == []
    said = set()
    for wanted in (number, 999_999):
        with pytest.raises(DraftNotFound):
            selectors.get_draft(wanted, user_id=other)
        with pytest.raises(DraftNotFound) as refused:
            services.delete_draft(draft_id=wanted, by=cast["admin"])
        said.add(refused.value.message.replace(str(wanted), ""))
    assert len(said) == 1
    assert save(cast, who="admin") != number, "each has one of their own"


@pytest.mark.parametrize("who", ["reader", "stranger"])
def test_whoever_cannot_ask_has_none(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        save(cast, who=who)
    with pytest.raises(NotAllowed):
        services.delete_draft(draft_id=1, by=cast[who])
    with pytest.raises(NotSignedIn):
        services.save_draft(registry="prod", subject=ORDERS, text="", by=Actor("anonymous", "ui"))


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"text": "a\0b"}, InvalidInput),
        ({"text": "\ud800"}, InvalidInput),
        ({"text": "x" * 2_000_000}, SchemaTooLarge),
        ({"schema_type": "XML"}, InvalidSchema),
        ({"registry": "nowhere"}, RegistryNotFound),
        ({"registry": "a\0b"}, RegistryNotFound),
        ({"subject": SubjectName(".", "")}, InvalidInput),
        ({"reason": "x" * (MAX_TEXT + 1)}, InvalidInput),
        ({"reason": "a\0b"}, InvalidInput),
        ({"reason": "\udc00"}, InvalidInput),
        ({"finding": 1}, FindingNotFound),
        ({"finding": 0}, FindingNotFound),
        ({"finding": 2**70}, FindingNotFound),
        ({"origin": "x" * 1001}, InvalidInput),
        ({"origin": "a\0b"}, InvalidInput),
        ({"references": [Reference("A", "a", 1)] * 201}, InvalidInput),
        ({"references": [Reference("a\0b", "a", 1)]}, InvalidInput),
        ({"references": [Reference("A", "a\0b", 1)]}, InvalidName),
        ({"references": [Reference("x" * 2000, "a", 1)]}, InvalidInput),
        ({"references": [Reference("A", "a", 2**40)]}, InvalidInput),
    ],
)
def test_what_cannot_be_kept_is_refused(cast: Cast, more: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        save(cast, **more)  # type: ignore[arg-type]
    assert not Draft.objects.exists()


def test_how_many_is_bounded(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 1)
    save(cast)
    with pytest.raises(WrongState, match="Delete one"):
        save(cast, subject=CUSTOMERS)
    save(cast, "again")
    save(cast, who="admin", subject=CUSTOMERS)


WHY = "  <b>because</b> \u202egnp.\u2028\r\nالسبب "


def test_why_is_kept_with_the_text(cast: Cast) -> None:
    number, author = save(cast, reason=WHY), cast["steward"].user_id or 0
    assert selectors.get_draft(number, user_id=author).reason == WHY.strip()
    save(cast, reason="x" * MAX_TEXT)
    assert selectors.list_drafts(author)[0].reason == "x" * MAX_TEXT
    with pytest.raises(InvalidInput, match=f"The reason has {MAX_TEXT + 1} characters. The maximum is {MAX_TEXT}."):
        save(cast, reason="x" * (MAX_TEXT + 1))
    save(cast)
    assert selectors.get_draft(number, user_id=author).reason == "", "what is saved is what was sent"


@pytest.mark.parametrize(
    ("given", "kept"),
    [({}, "as drafted"), ({"reason": "another"}, "another"), ({"reason": ""}, ""), ({"reason": None}, "as drafted")],
)
def test_the_request_has_the_drafts_reason_unless_another_is_given(
    cast: Cast, given: dict[str, Any], kept: str
) -> None:
    draft = save(cast, json.dumps(V1), reason="as drafted")
    number = services.propose_version(
        target="prod", subject=ORDERS, text=json.dumps(V1), by=cast["steward"], draft_id=draft, **given
    )
    assert selectors.get_request(number).reason == kept
    assert not Draft.objects.exists()


def test_nothing_comes_of_somebody_elses_draft(cast: Cast) -> None:
    draft = save(cast, reason="not yours")
    number = services.propose_version(
        target="prod", subject=ORDERS, text=json.dumps(V1), by=cast["approver"], draft_id=draft
    )
    assert selectors.get_request(number).reason == ""
    assert Draft.objects.filter(pk=draft).exists()


def test_who_says_what_they_had_read_writes_over_nothing_else(cast: Cast) -> None:
    author = cast["steward"].user_id or 0
    number = save(cast, state_read="")
    state = selectors.get_draft(number, user_id=author).state
    assert save(cast, state_read="never read") == number, "the same once more writes nothing"
    assert selectors.get_draft(number, user_id=author).state == state
    save(cast, "{", state_read=state.replace("+00:00", "Z"))
    newer = selectors.get_draft(number, user_id=author).state
    for seen in ("", state, "yesterday"):
        with pytest.raises(DraftChanged, match="was changed at") as refused:
            save(cast, "[", state_read=seen)
        assert refused.value.details["seen"] == newer
    save(cast, "[")
    assert selectors.get_draft(number, user_id=author).text == "["
    services.delete_draft(draft_id=number, by=cast["steward"])
    with pytest.raises(DraftChanged, match="no longer exists"):
        save(cast, "{", state_read=newer)
