"""Drafts of schemas: half a schema is kept, and nobody else sees it."""

from __future__ import annotations

import pytest

from registry.access.roles import Actor
from registry.errors import (
    DraftNotFound,
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
from registry.promotions.services import drafts
from registry.subjects.names import SubjectName
from tests.promotions.parts import CUSTOMERS, ORDERS, Cast

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
    with pytest.raises(WrongState, match="delete one"):
        save(cast, subject=CUSTOMERS)
    save(cast, "again")
    save(cast, who="admin", subject=CUSTOMERS)
