"""Copying the contents of another registry, or of an export file, into a registry of ours."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import IO, Final

from django.db import connection, transaction

from registry.access.roles import Actor, require
from registry.errors import OperationNotPermitted
from registry.subjects.export_file import write_in_order
from registry.subjects.models import Registry
from registry.subjects.moving import Move, plan_move
from registry.subjects.plan_of_copy import missing_of
from registry.subjects.selectors.contents import contents_in_pieces, contents_of
from registry.subjects.selectors.effective import DEFAULT_LEVEL, DEFAULT_MODE, effective_mode
from registry.subjects.selectors.places import get_registry
from registry.subjects.services import incoming
from registry.subjects.services.incoming_versions import Brought
from registry.subjects.services.locks import lock_policy
from registry.subjects.services.policy import set_mode
from registry.subjects.snapshot import Snapshot
from registry.subjects.telling import REGISTERED, tell_of_many

IMPORT = "IMPORT"
DEFAULTS = (DEFAULT_LEVEL, DEFAULT_MODE)
#: bytes of a file that are held in memory; the rest is on a disk, without a name, until it is sent
HELD: Final = 8 * 1024 * 1024
#: called with versions done, of how many, and the problems so far
Progress = Callable[[int, int, int], None]


def plan_import(*, registry: str, snapshot: Snapshot) -> Move:
    """What an import would do; nothing is changed. Raises RegistryNotFound."""
    return plan_move(snapshot, contents_of(get_registry(registry)), defaults=DEFAULTS)


def import_snapshot(
    *,
    registry: str,
    snapshot: Snapshot,
    by: Actor,
    keep_going: bool = False,
    only_missing: bool = False,
    on_progress: Progress = lambda done, total, problems: None,
) -> Brought:
    """Bring all that is missing or differs, in batches; what is here alone stays. `only_missing`: nothing is changed that is here.

    The registry is in mode IMPORT meanwhile, so nothing else is registered, and gets the modes of the other one at the
    end. Without `keep_going` the first problem ends the run: the registry stays in IMPORT, and a further run goes on.
    Raises RegistryNotFound, NotAllowed, ReleaseRequired, and OperationNotPermitted for a mirror or a registry that is
    read-only.
    """
    place = get_registry(registry)
    require(by, "mode.change", registry=place.name)
    done = _import(place, snapshot, by, keep_going, on_progress, only_missing=only_missing)
    with transaction.atomic():  # once, after many transactions: whoever is told needs no line a version
        tell_of_many(place, REGISTERED, done.added, why=f"an import by {by.name}", by=by)
    return done


def _import(
    place: Registry, snapshot: Snapshot, by: Actor, keep_going: bool, on_progress: Progress, *, only_missing: bool
) -> Brought:
    here = contents_of(place)
    move = plan_move(snapshot, here, defaults=DEFAULTS)
    if only_missing:
        move = missing_of(move, here)
    done = Brought(same=move.same, problems=move.problems)
    if move.is_empty or (move.problems and not keep_going):
        return done
    _open(place, by)
    why = f"import into {place.name}"
    done += Brought(problems=incoming.bring_contexts(registry=place, contexts=move.contexts, by=by, why=why))
    brought = 0
    for batch in incoming.batches(move.bring):
        if done.problems and not keep_going:
            return done
        done += incoming.bring_versions(registry=place, records=batch, by=by, why=why)
        brought += len(batch)
        on_progress(brought, len(move.bring), len(done.problems))
    if not done.problems or keep_going:
        done += Brought(problems=incoming.bring_configs(registry=place, configs=move.configs, by=by, why=why))
    if move.notes and (not done.problems or keep_going):
        done += Brought(problems=incoming.bring_notes(registry=place, notes=move.notes, by=by, why=why))
    if not done.problems or keep_going:
        wanted = {scope: modes[1] for scope, modes in move.modes.items()}
        # Whatever the other one doesn't set is inherited, this registry's IMPORT above all.
        last = here.modes.get(None, "") if only_missing else snapshot.modes.get(None, "")
        wanted[None] = "" if last == DEFAULT_MODE or (only_missing and last == IMPORT) else last
        incoming.bring_modes(registry=place, modes=wanted, by=by, why=why)
    return done


def _open(place: Registry, by: Actor) -> None:
    """Put the registry into IMPORT. Raises OperationNotPermitted, ReleaseRequired.

    READONLY isn't passed: what comes takes the place of the mode, so that is set first.
    """
    if place.kind == Registry.REMOTE:
        raise OperationNotPermitted(f"Registry {place.name} is a mirror of {place.url}; import into one of ours.")
    with transaction.atomic():
        incoming.hold(place, by=by, why=f"import into {place.name}")
    mode = effective_mode(place).mode
    if mode == IMPORT:
        return
    if mode.startswith("READONLY"):
        raise OperationNotPermitted(f"Registry {place.name} is in mode {mode}; set it to READWRITE or IMPORT first.")
    set_mode(registry=place.name, subject=None, by=by, mode=IMPORT, force=True)


def export_registry(*, registry: str, file: IO[bytes], by: Actor) -> int:
    """Write all that a registry holds, as it is at one moment; gives the number of versions. Nobody waits for it.

    Raises RegistryNotFound, NotAllowed.
    """
    place = get_registry(registry)
    require(by, "schema.read", registry=place.name)
    is_own = not connection.in_atomic_block
    with transaction.atomic():
        if is_own:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        else:  # in somebody's transaction others' changes come in between
            lock_policy(place, exclusive=True)
        return write_in_order(*contents_in_pieces(place), file)


def spooled_export(*, registry: str, by: Actor) -> IO[bytes]:
    """The same in a file of its own, to be read from its beginning and closed. Raises RegistryNotFound, NotAllowed."""
    file = tempfile.SpooledTemporaryFile(max_size=HELD)  # noqa: SIM115  # whoever sends it closes it
    try:
        export_registry(registry=registry, file=file, by=by)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file
