"""Deciding whether fields that look renamed are: by whoever describes the subject. It changes no schema."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import InvalidInput, WrongState
from registry.promotions.models import RenameDecision
from registry.promotions.models.renames import MAX_PATH
from registry.promotions.services.current import words
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import get_registry, get_subject

ACTION: Final = "subject.describe"
MAX_REASON: Final = 2_000
#: of a subject
MAX_DECISIONS: Final = 500


@transaction.atomic
def decide_rename(
    *,
    registry: str,
    subject: SubjectName,
    from_path: str,
    to_path: str,
    is_rename: bool,
    by: Actor,
    reason: str = "",
) -> bool:
    """Keep whether one field is another under a new name; a later word replaces the earlier. False: it stood so already.

    Raises NotAllowed, RegistryNotFound, SubjectNotFound, InvalidInput, and WrongState for too many of them.
    """
    require(by, ACTION, registry=registry, subject=subject.qualified)
    old, new = _path(from_path, "from_path"), _path(to_path, "to_path")
    if old == new:
        raise InvalidInput("A rename has two names; these are one.", field="to_path")
    why = words(reason, "reason", longest=MAX_REASON)
    row = get_subject(get_registry(registry), subject, deleted=True)
    held = RenameDecision.objects.select_for_update().filter(subject=row, from_path=old, to_path=new).first()
    if held is not None and (held.is_rename, held.reason) == (is_rename, why):
        return False
    if held is None and RenameDecision.objects.filter(subject=row).count() >= MAX_DECISIONS:
        raise WrongState(f"{subject.qualified} has {MAX_DECISIONS} such decisions; take some back first.")
    said = f"{old} is {new} renamed" if is_rename else f"{old} isn't {new} renamed"
    record(by=by, why=f"decide that {said} at {subject.qualified} in {registry}{f': {why}' if why else ''}")
    if held is None:
        held = RenameDecision(subject=row, from_path=old, to_path=new)
    held.is_rename, held.reason, held.decided_by = is_rename, why, by.name
    held.save()
    return True


@transaction.atomic
def undecide_rename(*, registry: str, subject: SubjectName, from_path: str, to_path: str, by: Actor) -> bool:
    """Take a decision back: the pair is suspected again. False where there was none.

    Raises NotAllowed, RegistryNotFound, SubjectNotFound.
    """
    require(by, ACTION, registry=registry, subject=subject.qualified)
    row = get_subject(get_registry(registry), subject, deleted=True)
    held = RenameDecision.objects.select_for_update().filter(subject=row, from_path=from_path, to_path=to_path).first()
    if held is None:
        return False
    record(by=by, why=f"take back what was decided of {from_path} and {to_path} at {subject.qualified} in {registry}")
    held.delete()
    return True


def _path(text: str, field: str) -> str:
    said = words(text, "field's path", needed="Name both fields.", longest=MAX_PATH)
    if not said.isprintable():
        raise InvalidInput("The field's path has a character that can't be shown.", field=field)
    return said
