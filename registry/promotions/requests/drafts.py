"""Drafts of schemas: saved as written, valid or not, and visible only to their author."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction

from registry.access.models import User
from registry.access.roles import Actor, may_somewhere, require, require_whole_token
from registry.errors import DraftChanged, DraftNotFound, InvalidInput, InvalidSchema, WrongState
from registry.formats import DEFAULT_FORMAT, FORMATS
from registry.formats.base import Reference
from registry.frozen_rows import row_info
from registry.promotions.hook_points import require_finding
from registry.promotions.models import Draft
from registry.promotions.requests.selectors import require_earlier
from registry.promotions.requests.state_machine import checked_text, person, refuse_unstorable
from registry.subjects.permissions import Visible, require_references
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.parsed_schemas import refuse_too_large
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import parse_version


@dataclass(frozen=True)
class DraftInfo:
    """An unfinished schema; lists leave out the text."""

    id: int
    registry: str
    subject: SubjectName
    schema_type: str
    text: str
    references: tuple[Reference, ...]
    reason: str
    origin: str
    finding: int | None
    again_of: int | None
    made_at: datetime
    changed_at: datetime

    @property
    def state(self) -> str:
        """The state of the draft, which a later save can pass as the one that was read."""
        return self.changed_at.isoformat()


def list_drafts(
    user_id: int, *, registry: str = "", subject: SubjectName | None = None, finding: int | None = None
) -> list[DraftInfo]:
    """Return a person's drafts without their texts, last changed first; one query, a hundred at most.

    `finding` is the drift finding that they answer.
    """
    rows = Draft.objects.filter(author_id=user_id).select_related("registry").defer("text")
    if registry:
        rows = rows.filter(registry__name=registry)
    if subject is not None:
        rows = rows.filter(context_name=subject.context, subject_name=subject.subject)
    if finding is not None:
        rows = rows.filter(finding=finding)
    return [_info(row, "") for row in rows.order_by("-changed_at", "-pk")]


def get_draft(draft_id: int, *, user_id: int) -> DraftInfo:
    """Return one draft of a person. Raises DraftNotFound, also for somebody else's draft."""
    row = Draft.objects.filter(pk=draft_id, author_id=user_id).select_related("registry").first()
    if row is None:
        raise DraftNotFound(f"You don't have a draft {draft_id}.", draft=draft_id)
    return _info(row, row.text)


def _info(row: Draft, text: str) -> DraftInfo:
    return row_info(
        DraftInfo,
        row,
        registry=row.registry.name,
        subject=SubjectName(row.context_name, row.subject_name),
        text=text,
        references=tuple(Reference(**reference) for reference in row.references),
        again_of=row.again_of_id,
    )


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
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    reason: str = "",
    origin: str = "",
    finding: int | None = None,
    again_of: int | None = None,
    state_read: str | None = None,
) -> int:
    """Save an unfinished schema, replacing the earlier draft of the subject; returns its number.

    `state_read` is the state of the draft that the writer had read (`DraftInfo.state`), empty for none; None overwrites
    any state. The text isn't parsed, because a draft may be incomplete. It is limited to the size of a schema, and a
    person to a hundred drafts. `reason`, `finding` and `again_of` become those of the request; `finding` is a drift
    finding that the author may read, `again_of` a rejected or withdrawn request for the same subject there. Raises
    InvalidInput, SchemaTooLarge, WrongState, NotAllowed, NotSignedIn, RegistryNotFound, FindingNotFound, DraftChanged,
    and the errors of `require_earlier`.
    """
    target = get_registry(registry)
    require(by, "promotion.request", registry=target.name, subject=subject.qualified)
    author = person(by)
    if not subject.subject:
        raise InvalidInput("A subject needs a name.")
    require_references(Visible(target, by), references, context=subject.context)
    if schema_type not in FORMATS:
        raise InvalidSchema(
            f"Invalid schema type {schema_type[:40]!r}: this server knows {', '.join(sorted(FORMATS))}."
        )
    refuse_too_large(text)
    _refuse_bad_references(references)
    refuse_unstorable(text)
    values = {
        "schema_type": schema_type,
        "text": text,
        "references": [asdict(reference) for reference in references],
        "reason": checked_text(reason, "reason"),
        "origin": checked_text(origin, "origin", longest=MAX_ORIGIN),
        "finding": finding,
        "again_of_id": again_of,
    }
    key: dict[str, Any] = {"registry": target, "context_name": subject.context, "subject_name": subject.subject}
    User.objects.select_for_update(of=("self",), no_key=True).get(
        pk=author
    )  # one at a time, so that the count is right
    mine = Draft.objects.filter(author_id=author)
    there = mine.filter(**key).first()
    if there is not None and all(getattr(there, name) == value for name, value in values.items()):
        return there.pk
    if state_read is not None:
        _refuse_changed(there, state_read, subject)
    if there is None and mine.count() >= MAX_DRAFTS:
        raise WrongState(f"You have {MAX_DRAFTS} drafts, which is the maximum. Delete one first.")
    # a finding or request that the draft already names may have been deleted since, which doesn't prevent saving
    if finding is not None and (there is None or there.finding != finding):
        require_finding(finding, by)
    if again_of is not None and (there is None or there.again_of_id != again_of):
        require_earlier(again_of, target=target.name, subjects=[subject], by=by)
    row, _ = Draft.objects.update_or_create(author_id=author, **key, defaults=values)
    return row.pk


@transaction.atomic
def delete_draft(*, draft_id: int, by: Actor) -> None:
    """Delete one of one's own drafts. Raises DraftNotFound, NotSignedIn, NotAllowed."""
    require_author(by)
    deleted, _ = Draft.objects.filter(pk=draft_id, author_id=person(by)).delete()
    if not deleted:
        raise DraftNotFound(f"You don't have a draft {draft_id}.", draft=draft_id)


def _refuse_changed(there: Draft | None, state_read: str, subject: SubjectName) -> None:
    """Refuse to overwrite a text that the writer hasn't read, from another tab or a program. Raises DraftChanged."""
    state = there.changed_at.isoformat() if there else ""
    if (_moment(state_read) == there.changed_at) if there else not state_read:
        return
    what = (
        f"was changed at {there.changed_at.astimezone(UTC):%H:%M} UTC, in another tab or by a program"
        if there
        else "no longer exists"
    )
    raise DraftChanged(
        f"Your draft of {subject.qualified} {what}. Reload it, or press Save to replace it with this text.", seen=state
    )


def _moment(text: str) -> datetime | None:
    """Return the time in an ISO 8601 text; None for any other text."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def require_author(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed unless the actor may have drafts somewhere, and sees all of them."""
    require_whole_token(by, "see drafts")
    if not may_somewhere(by, "promotion.request"):
        require(by, "promotion.request")


def _refuse_bad_references(references: Sequence[Reference]) -> None:
    if len(references) > MAX_REFERENCES:
        raise InvalidInput(f"The schema has {len(references)} references. The maximum is {MAX_REFERENCES}.")
    for reference in references:
        checked_text(reference.name, "reference name", longest=MAX_REFERENCE)
        parse_subject(reference.subject)
        parse_version(reference.version)
