"""Drafts of schemas: kept as they are written, right or wrong, and seen by their author alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction

from registry.access.models import User
from registry.access.roles import Actor, may_somewhere, require
from registry.errors import DraftChanged, DraftNotFound, InvalidInput, InvalidSchema, WrongState
from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.promotions.models import Draft
from registry.promotions.origins import require_finding
from registry.promotions.services.current import person, words
from registry.promotions.services.earlier import require_earlier
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.submission import refuse_too_large
from registry.subjects.selectors.versions import parse_version
from registry.subjects.selectors.visible import Visible, require_references

MAX_DRAFTS: Final = 100
MAX_REFERENCES: Final = 200
MAX_REFERENCE: Final = 1280
MAX_ORIGIN: Final = 1000


@transaction.atomic
def save_draft(
    *,
    registry: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = "AVRO",
    references: Sequence[Reference] = (),
    reason: str = "",
    origin: str = "",
    finding: int | None = None,
    again_of: int | None = None,
    seen: str | None = None,
) -> int:
    """Keep a schema as far as it is written, in place of the earlier draft of the subject; gives its number.

    `seen` is the state of the draft that the writer had read (`DraftInfo.state`), empty for none; None replaces
    whatever is there.

    It isn't parsed: a draft may be half a schema. Its size is that of a schema, and a person has a hundred drafts.
    `reason`, `finding` and `again_of` become those of the request; `finding` is a drift finding that the author may
    read, `again_of` a request, rejected or withdrawn, for the same subject there. Besides what that takes it raises InvalidInput, SchemaTooLarge, WrongState, NotAllowed, NotSignedIn, RegistryNotFound, FindingNotFound, DraftChanged.
    """
    place = get_registry(registry)
    require(by, "promotion.request", registry=place.name, subject=subject.qualified)
    author = person(by)
    if not subject.subject:
        raise InvalidInput("A subject needs a name.")
    require_references(Visible(place, by), references, context=subject.context)
    if schema_type not in FORMATS:
        raise InvalidSchema(
            f"Invalid schema type {schema_type[:40]!r}: this server knows {', '.join(sorted(FORMATS))}."
        )
    refuse_too_large(text)
    _refuse_bad_references(references)
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput("The schema has a character that can't be kept: NUL, or half of a surrogate pair.")
    values = {
        "schema_type": schema_type,
        "text": text,
        "references": [asdict(reference) for reference in references],
        "reason": words(reason, "reason"),
        "origin": words(origin, "origin", longest=MAX_ORIGIN),
        "finding": finding,
        "again_of_id": again_of,
    }
    key: dict[str, Any] = {"registry": place, "context_name": subject.context, "subject_name": subject.subject}
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=author)  # one at a time, so that they are counted
    mine = Draft.objects.filter(author_id=author)
    there = mine.filter(**key).first()
    if there is not None and all(getattr(there, name) == value for name, value in values.items()):
        return there.pk
    if seen is not None:
        _refuse_changed(there, seen, subject)
    if there is None and mine.count() >= MAX_DRAFTS:
        raise WrongState(f"You have {MAX_DRAFTS} drafts; delete one first.")
    # one that was there when it was begun with may be gone by now: that is no reason not to write on
    if finding is not None and (there is None or there.finding != finding):
        require_finding(finding, by)
    if again_of is not None and (there is None or there.again_of_id != again_of):
        require_earlier(again_of, target=place.name, subjects=[subject], by=by)
    row, _ = Draft.objects.update_or_create(author_id=author, **key, defaults=values)
    return row.pk


@transaction.atomic
def delete_draft(*, draft_id: int, by: Actor) -> None:
    """Throw a draft of one's own away. Raises DraftNotFound, NotSignedIn, NotAllowed."""
    require_author(by)
    deleted, _ = Draft.objects.filter(pk=draft_id, author_id=person(by)).delete()
    if not deleted:
        raise DraftNotFound(f"You have no draft {draft_id}.", draft=draft_id)


def _refuse_changed(there: Draft | None, seen: str, subject: SubjectName) -> None:
    """Refuse to write over what the writer hasn't read: another tab's text, or a program's."""
    state = there.changed_at.isoformat() if there else ""
    if (_moment(seen) == there.changed_at) if there else not seen:
        return
    what = (
        f"was changed at {there.changed_at.astimezone(UTC):%H:%M} UTC, in another tab or by a program"
        if there
        else "is gone"
    )
    raise DraftChanged(
        f"Your draft of {subject.qualified} {what}. Read it again, or save by the button to put this text in its place.",
        seen=state,
    )


def _moment(text: str) -> datetime | None:
    """A moment as this or the API writes it; None for anything else."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def require_author(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed for whoever can't have drafts anywhere."""
    if not may_somewhere(by, "promotion.request"):
        require(by, "promotion.request")


def _refuse_bad_references(references: Sequence[Reference]) -> None:
    if len(references) > MAX_REFERENCES:
        raise InvalidInput(f"The schema has {len(references)} references; {MAX_REFERENCES} are taken.")
    for reference in references:
        words(reference.name, "name of a reference", longest=MAX_REFERENCE)
        parse_subject(reference.subject)
        parse_version(reference.version)
