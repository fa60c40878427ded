"""Importing the contents of another registry or an export file, with its ids, version numbers and deletions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

from django.db import DataError, IntegrityError, connection, transaction
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.context import record as record_audit
from registry.errors import InvalidInput, OperationNotPermitted, SchemadeskError
from registry.subjects.events import MODE, REGISTERED, announce_many, tell_of_setting
from registry.subjects.import_export.export_file import write_in_order
from registry.subjects.import_export.import_plan import diff_snapshots, missing_of
from registry.subjects.import_export.import_versions import ImportResult, import_batch
from registry.subjects.import_export.snapshot import (
    NoteRecord,
    Problem,
    Scope,
    Snapshot,
    VersionKey,
    VersionRecord,
    contents_in_pieces,
    contents_of,
    scope_title,
)
from registry.subjects.lifecycle.notes import bring_checked, clean_doc, clean_tags
from registry.subjects.models import Config, Mode, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import COLUMNS, DEFAULT_LEVEL, DEFAULT_MODE, effective_mode
from registry.subjects.policy.policy_settings import bring_settings, columns_of, set_mode
from registry.subjects.registration.locks import lock_context, lock_ids, lock_policy, pass_schema_ids, retried
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, check_context
from registry.subjects.versions.versions import MAX_VERSION

BATCH = 100
#: versions that are written together, and the total characters of their texts
AT_ONCE, CHARACTERS = 500, 8_000_000


def batches(records: Sequence[VersionRecord]) -> Iterator[Sequence[VersionRecord]]:
    """Yield the versions in import batches."""
    for begin in range(0, len(records), BATCH):
        yield records[begin : begin + BATCH]


@retried
def import_all_versions(*, registry: Registry, records: Iterable[VersionRecord], by: Actor, why: str) -> ImportResult:
    """Import versions, each after those it refers to; one that can't be imported is reported and changes nothing."""
    hold(registry, by=by, why=why)
    done = ImportResult()
    for piece in _pieces(records):
        done += _bring(registry, piece, by)
    return done


def _bring(registry: Registry, records: Sequence[VersionRecord], by: Actor) -> ImportResult:
    """Import all of them together; if the database rejects that, in halves, down to the version that it rejects."""
    try:
        with transaction.atomic():
            return import_batch(registry, records, by)
    except (IntegrityError, DataError) as error:
        if len(records) == 1:
            reason = str(error).partition("\n")[0][:200]
            return ImportResult(problems=(Problem(records[0].title, f"the database rejects it: {reason}"),))
    half = len(records) // 2
    return _bring(registry, records[:half], by) + _bring(registry, records[half:], by)


def _pieces(records: Iterable[VersionRecord]) -> Iterator[Sequence[VersionRecord]]:
    """Yield what one statement can import: each key only once, and not too much text."""
    piece, keys, characters = list[VersionRecord](), set[VersionKey](), 0
    for item in records:
        is_full = len(piece) == AT_ONCE or characters + len(item.text) > CHARACTERS
        if piece and (is_full or item.key in keys):
            yield piece
            piece, keys, characters = [], set(), 0
        piece.append(item)
        keys.add(item.key)
        characters += len(item.text)
    if piece:
        yield piece


def hold(registry: Registry, *, by: Actor, why: str) -> None:
    """Begin a change of many parts with an exclusive lock on the registry's policy. Raises ReleaseRequired."""
    record_audit(by=by, why=why)
    lock_policy(registry, exclusive=True)
    change_guard.ask("version.register", registry, "", by)


@retried
def mark_deleted(*, registry: Registry, records: Iterable[VersionRecord], by: Actor, why: str) -> int:
    """Soft-delete the versions that are live and return how many there were."""
    hold(registry, by=by, why=why)
    count = 0
    for item in records:
        rows = SchemaVersion.objects.filter(
            subject__context__registry=registry,
            subject__context__name=item.subject.context,
            subject__name=item.subject.subject,
            version=item.version,
            deleted_at=None,
        )
        count += rows.update(deleted_at=timezone.now())
    return count


@retried
def bring_contexts(*, registry: Registry, contexts: Mapping[str, int], by: Actor, why: str) -> tuple[Problem, ...]:
    """Create the contexts, and raise their counters above every id that was ever assigned in the source."""
    hold(registry, by=by, why=why)
    problems = []
    for name, following in sorted(contexts.items()):
        try:
            context = lock_context(registry, check_context(name))
        except SchemadeskError as error:
            problems.append(Problem(f"context {name[:80]}", error.message))
            continue
        lock_ids(context)
        if following > 1:
            pass_schema_ids({context.pk: min(following, MAX_VERSION) - 1})
    return tuple(problems)


@retried
def import_configs(
    *, registry: Registry, configs: Mapping[Scope, tuple[Mapping[str, Any], Mapping[str, Any]]], by: Actor, why: str
) -> tuple[Problem, ...]:
    """Set each scope's settings to those of the source; what isn't set there is inherited here too."""
    hold(registry, by=by, why=why)
    problems, columns = [], dict[Scope, Mapping[str, Any]]()
    for scope, (mine, theirs) in configs.items():
        try:
            columns[scope] = _columns(mine, theirs)
        except SchemadeskError as error:
            problems.append(Problem(f"config of {scope_title(scope)}", error.message))
    bring_settings(registry, Config, columns)
    return tuple(problems)


def _columns(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(theirs.keys() - COLUMNS.keys())
    if unknown:
        raise InvalidInput(f"{', '.join(unknown)[:200]}: no such setting.")
    return columns_of(theirs, [name for name in mine if name not in theirs])


@retried
def import_notes(
    *, registry: Registry, notes: Mapping[SubjectName, NoteRecord], by: Actor, why: str
) -> tuple[Problem, ...]:
    """Replace the notes on subjects with those of the source."""
    hold(registry, by=by, why=why)
    problems, checked = [], list[tuple[Subject, tuple[str, ...], str]]()
    names = {subject.subject for subject in notes}
    rows = Subject.objects.filter(context__registry=registry, name__in=names).select_related("context")
    subject_rows = {SubjectName(row.context.name, row.name): row for row in rows}
    for subject, note in notes.items():
        row = subject_rows.get(subject)
        try:
            if row is None:
                raise InvalidInput("this subject doesn't exist here.")
            checked.append((row, clean_tags(note.tags), clean_doc(note.doc)))
        except SchemadeskError as error:
            problems.append(Problem(f"note of {subject.qualified[:200]}", error.message))
    bring_checked(checked, by=by)
    return tuple(problems)


@retried
def import_modes(*, registry: Registry, modes: Mapping[Scope, str], by: Actor, why: str) -> None:
    """Set each scope's mode; an empty one is inherited."""
    hold(registry, by=by, why=why)
    bring_settings(registry, Mode, {scope: {"mode": mode} for scope, mode in modes.items()})


def empty_registry(registry: Registry) -> None:
    """Delete all versions and schemas of a mirror, inside the caller's transaction; configs and modes stay."""
    SchemaReference.objects.filter(schema__context__registry=registry).delete()
    SchemaVersion.objects.filter(subject__context__registry=registry).delete()
    Schema.objects.filter(context__registry=registry).delete()
    Subject.objects.filter(context__registry=registry).delete()


@retried
def drop_configs(*, registry: Registry, scopes: Iterable[Scope], by: Actor, why: str) -> None:
    """Delete the settings of scopes that no longer set anything."""
    hold(registry, by=by, why=why)
    for scope in scopes:
        Config.objects.filter(
            registry=registry,
            context__name=scope.context if scope else None,
            subject_name=(scope.subject or None) if scope else None,
        ).delete()


IMPORT = "IMPORT"
DEFAULTS = (DEFAULT_LEVEL, DEFAULT_MODE)
#: bytes of a file that are held in memory; a larger file goes to an unnamed temporary file until it is sent
MAX_IN_MEMORY: Final = 8 * 1024 * 1024
#: called with the versions done, the total, and the problems so far
Progress = Callable[[int, int, int], None]


def import_snapshot(
    *,
    registry: str,
    snapshot: Snapshot,
    by: Actor,
    keep_going: bool = False,
    only_missing: bool = False,
    on_progress: Progress = lambda done, total, problems: None,
) -> ImportResult:
    """Import everything that is missing or differs, in batches; what exists only here stays.

    With `only_missing`, nothing that exists here is changed. Meanwhile the registry is in mode IMPORT, so nothing else
    is registered; it gets the modes of the source at the end. Without `keep_going`, the first problem ends the run: the
    registry stays in IMPORT, and another run continues. Raises RegistryNotFound, NotAllowed, ReleaseRequired, and
    OperationNotPermitted for a mirror or a read-only registry.
    """
    registry_row = get_registry(registry)
    require(by, "mode.change", registry=registry_row.name)
    done = _import(registry_row, snapshot, by, keep_going, on_progress, only_missing=only_missing)
    with transaction.atomic():  # one event after many transactions: subscribers don't need one per version
        announce_many(registry_row, REGISTERED, done.added, why=f"an import by {by.name}", by=by)
    return done


def _import(
    registry: Registry, snapshot: Snapshot, by: Actor, keep_going: bool, on_progress: Progress, *, only_missing: bool
) -> ImportResult:
    here = contents_of(registry)
    move = diff_snapshots(snapshot, here, defaults=DEFAULTS)
    if only_missing:
        move = missing_of(move, here)
    done = ImportResult(same=move.same, problems=move.problems)
    if move.is_empty or (move.problems and not keep_going):
        return done
    _open(registry, by)
    why = f"import into {registry.name}"
    done += ImportResult(problems=bring_contexts(registry=registry, contexts=move.contexts, by=by, why=why))
    brought = 0
    for batch in batches(move.bring):
        if done.problems and not keep_going:
            return done
        done += import_all_versions(registry=registry, records=batch, by=by, why=why)
        brought += len(batch)
        on_progress(brought, len(move.bring), len(done.problems))
    if not done.problems or keep_going:
        done += ImportResult(problems=import_configs(registry=registry, configs=move.configs, by=by, why=why))
    if move.notes and (not done.problems or keep_going):
        done += ImportResult(problems=import_notes(registry=registry, notes=move.notes, by=by, why=why))
    if not done.problems or keep_going:
        mode_by_scope = {scope: modes[1] for scope, modes in move.modes.items()}
        # Settings that the source doesn't have are inherited, above all instead of this registry's IMPORT.
        last = here.modes.get(None, "") if only_missing else snapshot.modes.get(None, "")
        mode_by_scope[None] = "" if last == DEFAULT_MODE or (only_missing and last == IMPORT) else last
        after = {"mode": mode_by_scope[None] or None}
        with transaction.atomic():
            import_modes(registry=registry, modes=mode_by_scope, by=by, why=why)
            tell_of_setting(registry, None, MODE, before={"mode": IMPORT}, after=after, by=by)
    return done


def _open(registry: Registry, by: Actor) -> None:
    """Put the registry into IMPORT. Raises OperationNotPermitted, ReleaseRequired.

    READONLY isn't overridden, because the import replaces the mode: an admin has to change it first.
    """
    if registry.kind == Registry.REMOTE:
        raise OperationNotPermitted(
            f"Registry {registry.name} is a mirror of {registry.url}. Import into a local registry instead."
        )
    with transaction.atomic():
        hold(registry, by=by, why=f"import into {registry.name}")
    mode = effective_mode(registry).mode
    if mode == IMPORT:
        return
    if mode.startswith("READONLY"):
        raise OperationNotPermitted(f"Registry {registry.name} is in mode {mode}. Set it to READWRITE or IMPORT first.")
    set_mode(registry=registry.name, subject=None, by=by, mode=IMPORT, force=True)


def export_registry(*, registry: str, file: IO[bytes], by: Actor) -> int:
    """Write a registry's contents as of one moment and return the number of versions. Blocks nobody.

    Raises RegistryNotFound, NotAllowed.
    """
    registry_row = get_registry(registry)
    require(by, "schema.read", registry=registry_row.name)
    is_own = not connection.in_atomic_block
    with transaction.atomic():
        if is_own:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        else:  # in a caller's transaction, other changes could be committed in between
            lock_policy(registry_row, exclusive=True)
        return write_in_order(*contents_in_pieces(registry_row), file)


def spooled_export(*, registry: str, by: Actor) -> IO[bytes]:
    """Export into a temporary file that the caller reads from its start and closes.

    Raises RegistryNotFound, NotAllowed.
    """
    file = tempfile.SpooledTemporaryFile(max_size=MAX_IN_MEMORY)  # noqa: SIM115  # whoever sends it closes it
    try:
        export_registry(registry=registry, file=file, by=by)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file
