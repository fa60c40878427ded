"""Restoring an archived copy into its registry: first as a plan, then exactly as planned."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta
from typing import IO, Any, Final

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import InvalidInput, OperationNotPermitted, PlanChanged
from registry.subjects.archive.archive import RIGHTS, OpenCopy, gone, stored_copy
from registry.subjects.events import REGISTERED, announce_many
from registry.subjects.import_export import registry_import
from registry.subjects.import_export.export_file import COMMAND, read_sent, shown_name, write_snapshot
from registry.subjects.import_export.import_plan import (
    ImportDiff,
    Plan,
    RestoreOptions,
    diff_snapshots,
    make_plan,
    missing_of,
)
from registry.subjects.import_export.snapshot import Problem, contents_of
from registry.subjects.lifecycle.retirement import restore_each
from registry.subjects.models import ArchivedCopy, Registry
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, DEFAULT_MODE, effective_mode
from registry.subjects.registration.locks import retried
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

#: the most versions in one plan: nothing else is registered while the plan is made
MOST: Final = 500
#: up to this many subjects are looked up by name; beyond that, the whole registry is read
NAMED: Final = 2000
#: the most files that wait in one registry
WAITING: Final = 20
#: how long an uploaded file waits for confirmation
SENT_FOR: Final = timedelta(hours=2)


@transaction.atomic
def send_file(*, registry: str, data: bytes, name: str, by: Actor, size: int = 0) -> int:
    """Check a whole file, keep it until it is confirmed, and return its copy's number; nothing is imported yet.

    `size` is the size of the whole file if only a part of it was received. Raises RegistryNotFound, NotAllowed,
    OperationNotPermitted for a mirror, InvalidSnapshot.
    """
    require(by, RIGHTS[ArchivedCopy.SENT], registry=registry)
    registry_row = get_registry(registry)
    _refuse_mirror(registry_row)
    if (
        ArchivedCopy.objects.filter(registry=registry_row, kind=ArchivedCopy.SENT, until__gt=timezone.now()).count()
        >= WAITING
    ):
        raise InvalidInput(f"{WAITING} files are already waiting in {registry_row.name}. Import or delete them first.")
    snapshot = read_sent(data, name, size=size)
    file, now = io.BytesIO(), timezone.now()
    count = write_snapshot(snapshot, file)
    record(by=by, why=f"preview the import of {shown_name(name)} into {registry_row.name}")
    row = ArchivedCopy.objects.create(
        registry=registry_row,
        kind=ArchivedCopy.SENT,
        name=shown_name(name),
        versions=count,
        content=file.getvalue().decode(),
        made_at=now,
        made_by=by.name,
        until=now + SENT_FOR,
    )
    return row.pk


def write_copy(*, registry: str, number: int, file: IO[bytes], by: Actor) -> str:
    """Write a copy as an export file and return its name. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    copy = open_copy(registry=registry, number=number, by=by)
    write_snapshot(copy.contents.snapshot, file)
    return copy.row.name


def plan_copy(*, registry: str, number: int, ways: RestoreOptions, by: Actor) -> Plan:
    """Return what restoring a copy would do now; changes nothing.

    Raises RegistryNotFound, CopyNotFound, NotAllowed, ReleaseRequired, OperationNotPermitted, and InvalidInput for more
    versions than one plan can have.
    """
    return plan_open(open_copy(registry=registry, number=number, by=by), ways=ways, by=by)


def open_copy(*, registry: str, number: int, by: Actor) -> OpenCopy:
    """Return a copy that `by` may restore. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    return OpenCopy(*stored_copy(registry, number, by))


def plan_open(copy: OpenCopy, *, ways: RestoreOptions, by: Actor) -> Plan:
    """Plan a copy that is already open, as `plan_copy` does."""
    _refuse_mirror(copy.registry)
    return _look(copy, _ways(copy.row, ways), by)


@retried
def _look(copy: OpenCopy, ways: RestoreOptions, by: Actor) -> Plan:
    plan = _do(copy, ways, by)
    transaction.set_rollback(True)
    return plan


@retried
def apply_copy(*, registry: str, number: int, ways: RestoreOptions, digest: str, by: Actor) -> Plan:
    """Apply a plan, then delete the copy, so that it is applied only once.

    Raises as `plan_copy` does, PlanChanged if the registry or the choice has changed since the plan, and
    OperationNotPermitted for a plan that can't be applied completely.
    """
    copy = open_copy(registry=registry, number=number, by=by)
    registry_row, row = copy.registry, copy.row
    _refuse_mirror(registry_row)
    ways = _ways(row, ways)
    plan = _do(copy, ways, by)
    if plan.digest != digest:
        raise PlanChanged(
            f"{registry_row.name} or your choice changed after this plan was made. Review the plan again."
        )
    if plan.stops and not ways.only_missing:
        raise OperationNotPermitted(
            "Some of it can't be imported, so nothing was changed. Import only what is missing."
        )
    if plan.is_empty:
        raise InvalidInput("There is nothing to import. Nothing was changed.")
    if not ArchivedCopy.objects.filter(pk=row.pk).delete()[0]:
        raise gone(number)
    if not ways.live:  # otherwise each version was announced when it was restored
        announce_many(registry_row, REGISTERED, plan.count("created"), why=_why(row, by), by=by)
    return plan


def _ways(row: ArchivedCopy, ways: RestoreOptions) -> RestoreOptions:
    """Adjust the options: deleted versions only fill free places; the versions of a file keep their deletions."""
    return replace(ways, only_missing=True) if row.kind == ArchivedCopy.DELETED else replace(ways, live=False)


def _why(row: ArchivedCopy, by: Actor) -> str:
    what = "the copy of" if row.kind == ArchivedCopy.DELETED else "the file"
    return f"{what} {row.name[:200]}, brought in by {by.name}"


def _refuse_mirror(registry: Registry) -> None:
    if registry.kind == Registry.REMOTE:
        raise OperationNotPermitted(
            f"Registry {registry.name} is a mirror of {registry.url}. Import into a local registry instead."
        )


# -- the change --------------------------------------------------------------------------------------------------------


def _do(copy: OpenCopy, ways: RestoreOptions, by: Actor) -> Plan:
    """Restore the copy in the caller's transaction and return what was done."""
    registry, row = copy.registry, copy.row
    why = f"bring in {row.name[:200]}"
    registry_import.hold(registry, by=by, why=why)
    _refuse_readonly(registry, row, by)
    there = copy.contents.snapshot
    names = {record.subject for record in there.versions} | set(there.notes)
    here = contents_of(registry, names if len(names) <= NAMED else None, outer_scopes=True)
    move = diff_snapshots(there, here, defaults=(DEFAULT_LEVEL, DEFAULT_MODE))
    if ways.only_missing:
        move = missing_of(move, here)
    if len(move.bring) > MOST:
        raise InvalidInput(
            f"There are {len(move.bring):,} versions to import, but at most {MOST:,} can be imported here at once. "
            f"For more, use the command: {COMMAND}"
        )
    done = _bring(registry, move, by, why)
    stays_deleted = _revive(registry, move, done, by) if ways.live else ()
    return make_plan(there, here, move, done, stays_deleted, (row.pk, ways))


def _refuse_readonly(registry: Registry, row: ArchivedCopy, by: Actor) -> None:
    subject = row.name if row.kind == ArchivedCopy.DELETED else ""
    passes = change_guard.ask("version.register", registry, subject, by)
    mode = effective_mode(registry).mode
    if change_guard.stops(mode, passes=passes):
        raise OperationNotPermitted(f"Registry {registry.name} is in mode {mode}. Set it to READWRITE or IMPORT first.")


def _bring(registry: Registry, move: ImportDiff, by: Actor, why: str) -> list[Problem]:
    whole: dict[str, Any] = {"registry": registry, "by": by, "why": why}
    problems = [*move.problems, *registry_import.bring_contexts(contexts=move.contexts, **whole)]
    problems += registry_import.import_all_versions(records=move.bring, **whole).problems
    if move.configs:
        problems += registry_import.import_configs(configs=move.configs, **whole)
    if move.notes:
        problems += registry_import.import_notes(notes=move.notes, **whole)
    modes = {scope: sides[1] for scope, sides in move.modes.items()}
    if modes.get(None) == DEFAULT_MODE:
        modes[None] = ""
    if modes:
        registry_import.import_modes(modes=modes, **whole)
    return problems


def _revive(registry: Registry, move: ImportDiff, done: list[Problem], by: Actor) -> tuple[Problem, ...]:
    """Make the restored versions live by the rules of restoring; the others stay soft-deleted."""
    failed = {problem.what for problem in done}
    deleted: dict[SubjectName, dict[int, str]] = {}
    for item in move.bring:
        if item.deleted and item.title not in failed:
            deleted.setdefault(item.subject, {})[item.version] = item.title
    problems = []
    for name, titles in deleted.items():
        errors = restore_each(registry=registry.name, subject=name, versions=list(titles), by=by)
        problems += [Problem(titles[number], error.message) for number, error in errors.items()]
    return tuple(problems)
