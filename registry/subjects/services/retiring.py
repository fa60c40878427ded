"""Retiring a version or a subject, step by step: deprecate, delete softly, delete for good; and taking it back.

The rules of each step are those of the services that it calls. Beside them: what deletes is confirmed by typing the
subject's name, and nothing goes for good whose use is known or isn't known, but with a reason of somebody who may force it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from registry.access.roles import Actor, require
from registry.errors import InvalidInput, SchemadeskError, VersionInUse, VersionNotFound
from registry.subjects.evidence import Evidence, evidence_of
from registry.subjects.models import SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import get_registry, get_subject
from registry.subjects.services import restoring
from registry.subjects.services.deletion import delete_subject, delete_version
from registry.subjects.services.locks import lock_policy, retried
from registry.subjects.services.standing import set_standing

DEPRECATE, SOFT, HARD, RESTORE = "deprecate", "soft", "hard", "restore"
CHOICES: Final = (DEPRECATE, SOFT, HARD, RESTORE)
#: choice → the right that it takes
RIGHTS: Final = {
    DEPRECATE: "version.standing",
    SOFT: "version.delete",
    HARD: "version.delete_permanently",
    RESTORE: "version.delete",
}


@dataclass(frozen=True)
class Retired:
    """What was done: the versions, ascending, and the schema ids that they had."""

    choice: str
    versions: tuple[int, ...]
    schema_ids: tuple[int, ...]


@retried
def retire(
    *,
    registry: str,
    subject: SubjectName,
    choice: str,
    by: Actor,
    version: int | None = None,
    confirmed: str = "",
    message: str = "",
    ends_at: datetime | None = None,
    force: str = "",
) -> Retired:
    """Do one step, to a version or (None) to all of the subject; all of it or nothing.

    `confirmed` is the subject's name as it was typed, for what deletes. `message` and `ends_at` are of a deprecation.
    `force` is the reason to delete for good what is in use, or may be, and to restore what breaks the level.
    Raises InvalidInput, VersionInUse, and what set_standing, delete_version, delete_subject and restoring raise.
    """
    if choice not in CHOICES:
        raise InvalidInput(f"{choice[:40]!r} is nothing to choose: it is one of {', '.join(CHOICES)}.", field="choice")
    place = get_registry(registry)
    require(by, RIGHTS[choice], registry=place.name, subject=subject.qualified)
    if choice in (SOFT, HARD) and confirmed.strip() != subject.qualified:
        raise InvalidInput(
            f"Type the subject's name as it is, {subject.qualified}, to confirm what deletes.", field="confirmed"
        )
    lock_policy(place, exclusive=choice == HARD)
    row = Subject.objects.select_for_update().get(pk=get_subject(place, subject, deleted=True).pk)
    rows = _meant(row, subject, choice, version)
    done = Retired(
        choice, tuple(each.version for each in rows), tuple(sorted({each.schema.schema_id for each in rows}))
    )
    if choice == DEPRECATE:
        for each in rows:
            set_standing(
                registry=place.name, subject=subject, version=each.version, standing="deprecated", message=message,
                ends_at=ends_at, by=by,
            )  # fmt: skip
    elif choice == RESTORE:
        restoring.restore(row, rows, subject, by=by, force=force)
    else:
        if choice == HARD and all(each.deleted_at is not None for each in rows):  # others the deletion refuses itself
            _refuse_unknown(evidence_of(place, subject, done.versions), subject, by, place.name, force)
        _delete(place.name, subject, version, by=by, permanent=choice == HARD, force=force)
    return done


@retried
def restore_each(
    *, registry: str, subject: SubjectName, versions: Sequence[int], by: Actor
) -> dict[int, SchemadeskError]:
    """Restore each of the soft-deleted versions, ascending, that may be and can be; gives what hinders the others."""
    numbers = sorted(versions)
    try:
        place = get_registry(registry)
        require(by, RIGHTS[RESTORE], registry=place.name, subject=subject.qualified)
        lock_policy(place)
        row = Subject.objects.select_for_update().get(pk=get_subject(place, subject, deleted=True).pk)
        rows = {each.version: each for each in _meant(row, subject, RESTORE, None)}
    except SchemadeskError as error:
        return dict.fromkeys(numbers, error)
    lost = {
        number: InvalidInput(f"There is nothing of version {number} of {subject.qualified} to restore.")
        for number in numbers
        if number not in rows
    }
    return lost | restoring.restore_each(row, [rows[number] for number in numbers if number in rows], subject, by=by)


def _meant(subject: Subject, name: SubjectName, choice: str, version: int | None) -> list[SchemaVersion]:
    """The versions that the step changes. Raises VersionNotFound, InvalidInput where there is none to change."""
    rows = list(subject.versions.select_related("schema").order_by("version"))
    if version is not None:
        rows = [row for row in rows if row.version == version]
        if not rows:
            raise VersionNotFound(f"Version {version} of {name.qualified} not found.", version=version)
    if choice in (DEPRECATE, SOFT):
        found = [row for row in rows if row.deleted_at is None]
    else:
        found = [row for row in rows if row.deleted_at is not None] if choice == RESTORE else rows
    if not found and choice != SOFT:  # what is deleted already is told by the deletion
        raise InvalidInput(f"There is nothing of {name.qualified} to {choice}: {_what_is(rows)}.", field="choice")
    return found


def _what_is(rows: Sequence[SchemaVersion]) -> str:
    return "all of it is soft-deleted" if all(row.deleted_at is not None for row in rows) else "none of it is deleted"


def _refuse_unknown(
    evidence: dict[int, tuple[Evidence, ...]], subject: SubjectName, by: Actor, registry: str, force: str
) -> None:
    """Nothing goes for good of which it isn't known that nothing needs it, but with a reason. Raises VersionInUse."""
    doubts = [item for items in evidence.values() for item in items if item.in_use != "no"]
    if not doubts:
        return
    if force.strip():
        require(by, "version.force", registry=registry, subject=subject.qualified)
        return
    worst = next((item for item in doubts if item.in_use == "yes"), doubts[0])
    said = "is in use" if worst.in_use == "yes" else "may be in use"
    raise VersionInUse(
        f"{subject.qualified} {said}: {worst.sentence} Wait, have its topics scanned, or give a reason to delete it all"
        " the same.",
        subject=subject.qualified,
        versions=sorted(number for number, items in evidence.items() if any(item.in_use != "no" for item in items)),
        reasons=[item.sentence for item in doubts],
    )


def _delete(
    registry: str, subject: SubjectName, version: int | None, *, by: Actor, permanent: bool, force: str
) -> None:
    if version is None:
        delete_subject(registry=registry, subject=subject, by=by, permanent=permanent, force=force)
    else:
        delete_version(registry=registry, subject=subject, version=version, by=by, permanent=permanent, force=force)
