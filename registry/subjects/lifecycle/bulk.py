"""Bulk actions on several subjects: export into one file, and deprecation."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import IO, Final

from django.db import transaction

from registry.access.roles import Actor, may_somewhere, require
from registry.errors import InvalidInput, SchemadeskError
from registry.subjects.import_export.export_file import write_snapshot
from registry.subjects.import_export.snapshot import Snapshot, contents_of
from registry.subjects.lifecycle.notes import MOST
from registry.subjects.lifecycle.retirement import DEPRECATE, RIGHTS, retire
from registry.subjects.models import Subject
from registry.subjects.permissions import Visible
from registry.subjects.versions.lookup import among, get_registry, get_subject
from registry.subjects.versions.qualified_names import SubjectName

#: the file's date in the archive, fixed so that equal subjects give equal bytes
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Outcome:
    """The result for one subject: the versions that were deprecated, or why none was, with the error's name."""

    subject: SubjectName
    versions: tuple[int, ...] = ()
    refusal: str = ""
    error: str = ""


@transaction.atomic
def export_subjects(*, registry: str, subjects: Sequence[SubjectName], file: IO[bytes], by: Actor) -> int:
    """Write a ZIP with an export file of these subjects, as of one moment, and return the number of versions.

    It has their versions, also soft-deleted ones, their own configs, modes and notes, and the parts of their contexts
    that `import_registry` needs; not the versions that they refer to. Raises InvalidInput, RegistryNotFound,
    SubjectNotFound, NotAllowed.
    """
    names = _chosen(subjects)
    registry_row = get_registry(registry)
    for name in names:
        require(by, "schema.read", registry=registry_row.name, subject=name.qualified)
    for name in names:
        get_subject(registry_row, name, deleted=True)
    # nothing is registered in the subjects meanwhile
    locked_rows = Subject.objects.filter(among(names, ""), context__registry=registry_row).select_for_update(
        of=("self",)
    )
    list(locked_rows.order_by("pk").values_list("pk"))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        entry = zipfile.ZipInfo("subjects.jsonl", _EARLIEST)
        entry.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(entry, "w") as inside:
            return write_snapshot(_readable(contents_of(registry_row, names), Visible(registry_row, by)), inside)


def _readable(contents: Snapshot, visible: Visible) -> Snapshot:
    """Return the contents without the aliases of subjects that aren't readable."""
    configs = {
        scope: {name: value for name, value in settings.items() if name not in visible.hidden_aliases(settings, scope)}
        for scope, settings in contents.configs.items()
    }
    return replace(contents, configs=configs)


def deprecate_several(
    *, registry: str, subjects: Sequence[SubjectName], message: str, by: Actor, ends_at: datetime | None = None
) -> list[Outcome]:
    """Deprecate the live versions of each subject, by its own rights and rules; a failed one doesn't stop the others.

    Raises InvalidInput for what is wrong with all of them, RegistryNotFound, and NotAllowed if `by` may deprecate
    nothing.
    """
    names = _chosen(subjects)
    registry_row = get_registry(registry)
    if not may_somewhere(by, RIGHTS[DEPRECATE]):
        require(by, RIGHTS[DEPRECATE], registry=registry_row.name)
    if not message.strip():
        raise InvalidInput("Give a reason in the message, and what to use instead.", field="message")
    return [_deprecated(registry_row.name, name, message, ends_at, by) for name in names]


def _deprecated(registry: str, name: SubjectName, message: str, ends_at: datetime | None, by: Actor) -> Outcome:
    try:
        done = retire(registry=registry, subject=name, choice=DEPRECATE, message=message, ends_at=ends_at, by=by)
    except SchemadeskError as error:
        return Outcome(name, refusal=error.message, error=type(error).__name__)
    return Outcome(name, done.versions)


def _chosen(subjects: Sequence[SubjectName]) -> list[SubjectName]:
    """Return each subject once, in a fixed order, so that two callers can't deadlock. Raises InvalidInput."""
    if not 1 <= len(subjects) <= MOST:
        raise InvalidInput(f"Choose 1 to {MOST} subjects at a time. You chose {len(subjects)}.", field="subjects")
    return sorted(set(subjects), key=lambda name: name.qualified)
