"""Remote registries: adding, removing, and mirroring them read-only into our tables, on schedule or on request."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.egress import Connection, EgressPolicy, current_policy, parse_connection
from registry.access.http_client import authorization
from registry.access.roles import Actor, require, system_actor
from registry.audit.context import record
from registry.errors import InvalidInput, RegistryNotFound, SchemadeskError, WrongState
from registry.subjects.events import CONFIG, DELETED, REGISTERED, announce_many, tell_of_mirror
from registry.subjects.import_export import registry_import
from registry.subjects.import_export.import_plan import ImportDiff, diff_snapshots
from registry.subjects.import_export.import_versions import ImportResult
from registry.subjects.import_export.snapshot import (
    Problem,
    Scope,
    Snapshot,
    VersionRecord,
    contents_of,
    is_same_definition,
)
from registry.subjects.models import Mode, Registry
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import MIRROR_MODE
from registry.subjects.policy.registries import QUEUED, delete_registry, ensure_registry
from registry.subjects.registration.locks import lock_policy, retried
from registry.subjects.remote.connection_test import Probe, probe
from registry.subjects.remote.remote_client import RemoteRegistry
from registry.subjects.versions.lookup import get_registry

EVERY_SECONDS: Final = 300
#: how long a queued sync may wait before its message counts as lost
HANDED: Final = timedelta(seconds=60)


def get_mirror(name: str, by: Actor, action: str) -> Registry:
    """Return a mirror's row after checking the permission. Raises RegistryNotFound, NotAllowed, WrongState."""
    require(by, action, registry=name)
    registry = get_registry(name)
    if registry.kind != Registry.REMOTE:
        raise WrongState(f"Registry {registry.name} is a local registry, not a mirror.")
    return registry


@transaction.atomic
def queue_due_syncs() -> list[int]:
    """Return the mirrors that are due, or whose sync message was lost, each to one caller.

    Sets their next time from now.
    """
    now = timezone.now()
    lost = Q(sync_tag=QUEUED, sync_lease_until__lt=now)
    mirrors = Registry.objects.filter(Q(next_sync_at__lte=now) | lost, kind=Registry.REMOTE)
    due = list(mirrors.select_for_update(skip_locked=True))
    for row in due:
        _hand_out(row, now)
    return [row.pk for row in due]


@transaction.atomic
def request_sync(*, name: str, by: Actor) -> int | None:
    """Queue a sync of a mirror now and return its number; None if one is queued or running already.

    Raises RegistryNotFound, NotAllowed, WrongState for a local registry.
    """
    registry = get_mirror(name, by, "registry.refresh")
    row, now = Registry.objects.select_for_update().get(pk=registry.pk), timezone.now()
    if row.sync_lease_until is not None and row.sync_lease_until > now:
        return None
    _hand_out(row, now)
    return row.pk


def _hand_out(row: Registry, now: datetime) -> None:
    """Mark a sync as queued, unless one is running; the caller has locked the row."""
    row.next_sync_at = now + timedelta(seconds=row.every_seconds or EVERY_SECONDS)
    if row.sync_tag in ("", QUEUED) or row.sync_lease_until is None or row.sync_lease_until <= now:
        row.sync_tag, row.sync_lease_until = QUEUED, now + HANDED
    row.save(update_fields=["next_sync_at", "sync_tag", "sync_lease_until"])


logger = logging.getLogger(__name__)
SHORTEST_INTERVAL = 10
READ_SECONDS = 600.0
LEASE = timedelta(minutes=15)
MAX_ERROR = 2000


@dataclass(frozen=True)
class SyncResult:
    """The result of a sync: versions imported, marked as deleted, and the error, empty if there was none."""

    added: int
    changed: int
    deleted: int
    error: str


@transaction.atomic
def add_remote_registry(
    *, name: str, url: str, by: Actor, user: str = "", secret: str = "", every_seconds: int = EVERY_SECONDS
) -> int:
    """Add a mirror of the registry at a URL and return its number; the caller enqueues its first sync.

    Raises NotAllowed, InvalidName, InvalidInput, WrongState for an existing name, AddressRefused, InvalidSecret, and
    RemoteUnavailable for a host that doesn't exist.
    """
    require(by, "registry.manage", registry=name)
    connection = _usable(url, user, secret, every_seconds)
    if not ensure_registry(name=name, by=by):
        raise WrongState(f"A registry named {name} already exists.")
    record(by=by, why=f"mirror {connection.url} as {name}")
    row = get_registry(name)
    row.kind, row.url, row.user, row.secret = Registry.REMOTE, connection.url, user, secret
    row.every_seconds, row.next_sync_at = every_seconds, timezone.now()
    row.save(update_fields=["kind", "url", "user", "secret", "every_seconds", "next_sync_at"])
    Mode.objects.create(registry=row, mode=MIRROR_MODE)
    return row.pk


@retried
def update_remote_registry(
    *, name: str, url: str, by: Actor, user: str = "", secret: str = "", every_seconds: int = EVERY_SECONDS
) -> None:
    """Change a mirror's connection from its next sync on; mirrored contents stay until then.

    Raises RegistryNotFound, NotAllowed, ReleaseRequired for a closed environment, WrongState for a local registry, and
    the errors of `add_remote_registry` for an invalid address or secret.
    """
    registry = get_mirror(name, by, "registry.manage")
    connection = _usable(url, user, secret, every_seconds)
    record(by=by, why=f"read the mirror {registry.name} from {connection.url}")
    lock_policy(registry, exclusive=True)
    change_guard.ask("registry.manage", registry, "", by)
    registry.url, registry.user, registry.secret = connection.url, user, secret
    registry.every_seconds, registry.next_sync_at = every_seconds, timezone.now()
    registry.save(update_fields=["url", "user", "secret", "every_seconds", "next_sync_at"])


def _usable(url: str, user: str, secret: str, every_seconds: int) -> Connection:
    """Return the connection after checking that its address is allowed, its host exists and its secret fits."""
    connection = parse_connection(url, user=user, secret=secret)
    if not SHORTEST_INTERVAL <= every_seconds <= 2_000_000_000:
        raise InvalidInput(f"The sync interval must be at least {SHORTEST_INTERVAL} seconds.")
    current_policy().addresses(connection)
    authorization(connection)
    return connection


def try_registry(*, url: str, by: Actor, user: str = "", secret: str = "") -> Probe:
    """Test how a registry at a URL answers, step by step; stores nothing. Raises NotAllowed, NotSignedIn."""
    require(by, "registry.manage")
    return probe(url, user=user, secret=secret)


@retried
def remove_remote_registry(*, name: str, by: Actor) -> None:
    """Delete a mirror with its contents. Raises RegistryNotFound, NotAllowed, OperationNotPermitted, WrongState."""
    registry = get_mirror(name, by, "registry.manage")
    registry_import.hold(registry, by=by, why=f"remove the mirror {registry.name}")
    delete_registry(name=name, by=by, is_mirror=True)


def sync_registry(*, registry_id: int, policy: EgressPolicy | None = None) -> SyncResult | None:
    """Read a remote registry and update the mirror; returns None if another worker is doing that.

    An expected error is stored with the mirror, whose contents stay as they are. An unexpected one is stored too, and
    raised. Raises RegistryNotFound if the number isn't that of a mirror.
    """
    registry = Registry.objects.filter(pk=registry_id, kind=Registry.REMOTE).first()
    if registry is None:
        raise RegistryNotFound(f"There is no remote registry with number {registry_id}.")
    tag = _claim(registry)
    if tag is None:
        return None
    try:
        done = _sync(registry, tag, policy)
    except SchemadeskError as error:
        logger.warning("mirror %s: %s", registry.name, error.message)
        _finish(registry, tag, error.message, whole=False)
        return SyncResult(0, 0, 0, error.message)
    except Exception as error:
        _finish(
            registry, tag, f"The sync failed unexpectedly: {type(error).__name__}. See the worker's log.", whole=False
        )
        raise
    _finish(registry, tag, done.error, whole=True)
    return done


def _claim(registry: Registry) -> str | None:
    now, tag = timezone.now(), uuid.uuid4().hex
    free = Registry.objects.filter(
        Q(sync_lease_until=None) | Q(sync_lease_until__lt=now) | Q(sync_tag=QUEUED), pk=registry.pk
    )
    return tag if free.update(sync_tag=tag, sync_lease_until=now + LEASE) else None


def _renew(registry: Registry, tag: str) -> None:
    own_claim = Registry.objects.filter(pk=registry.pk, sync_tag=tag)
    if not own_claim.update(sync_lease_until=timezone.now() + LEASE):
        raise WrongState(f"The sync of {registry.name} took too long and was moved to another worker.")


@transaction.atomic
def _finish(registry: Registry, tag: str, error: str, *, whole: bool) -> None:
    """Release the claim and store the result; `whole` means that the remote was read to its end."""
    now, error = timezone.now(), error[:MAX_ERROR]
    row = Registry.objects.filter(pk=registry.pk, sync_tag=tag).first()
    if row is None:
        return
    row.sync_tag, row.sync_lease_until, row.sync_error = "", None, error
    is_new = bool(error) and row.failing_since is None
    row.failing_since = (row.failing_since or now) if error else None
    if whole:
        row.synced_at = now
    row.save(update_fields=["sync_tag", "sync_lease_until", "sync_error", "failing_since", "synced_at"])
    if is_new:
        tell_of_mirror(row, error)


def _sync(registry: Registry, tag: str, policy: EgressPolicy | None) -> SyncResult:
    connection: Connection = parse_connection(registry.url, user=registry.user, secret=registry.secret)
    remote = RemoteRegistry(connection, policy=policy, seconds=READ_SECONDS)
    snapshot, problems = remote.read()
    _renew(registry, tag)
    logger.info("mirror %s: %d versions read, %d problems", registry.name, len(snapshot.versions), len(problems))
    by, why = system_actor("mirror"), f"mirror {registry.url}"
    snapshot = _without_own_mode(snapshot)
    here = contents_of(registry)
    marked = 0
    if _is_another(snapshot, here):
        done, deleted = _begin_again(registry, snapshot, by, why), 0
    else:
        move = diff_snapshots(snapshot, here)
        gone = _gone(remote, move)
        marked = sum(1 for item in move.bring if item.deleted and _is_live(here, item))
        deleted = registry_import.mark_deleted(registry=registry, records=gone, by=by, why=why) if gone else 0
        done = _bring(registry, move, by, why, lambda: _renew(registry, tag))
    settings = _follow_settings(registry, snapshot, by, why)
    _tell(registry, done.added, deleted + marked, settings, by)
    all_problems = [*problems, *done.problems]
    for problem in all_problems[:20]:
        logger.warning("mirror %s: %s", registry.name, problem)
    logger.info(
        "mirror %s: %d added, %d changed, %d deleted", registry.name, done.added, done.changed, deleted + marked
    )
    return SyncResult(done.added, done.changed, deleted, _summary(all_problems))


def _is_live(here: Snapshot, item: VersionRecord) -> bool:
    stored = here.by_key.get(item.key)
    return stored is not None and not stored.deleted


def _tell(registry: Registry, added: int, deleted: int, settings: int, by: Actor) -> None:
    """Announce what a sync changed, in one event per kind: the first sync may add thousands of versions."""
    why = f"as in {registry.url}"
    with transaction.atomic():
        announce_many(registry, REGISTERED, added, why=why, by=by)
        announce_many(registry, DELETED, deleted, why=why, by=by)
        announce_many(registry, CONFIG, settings, why=why, by=by)


def _summary(problems: list[Problem]) -> str:
    if not problems:
        return ""
    first = "; ".join(str(problem) for problem in problems[:3])
    return f"{len(problems)} parts can't be mirrored: {first}"


def _without_own_mode(snapshot: Snapshot) -> Snapshot:
    modes = {**snapshot.modes, None: MIRROR_MODE}
    return Snapshot(snapshot.versions, snapshot.contexts, snapshot.configs, modes)


def _is_another(there: Snapshot, here: Snapshot) -> bool:
    """Return whether the remote reassigned ids: then the mirrored registry no longer exists."""
    mine = here.by_key
    if any(record.key in mine and mine[record.key].schema_id != record.schema_id for record in there.versions):
        return True
    theirs = _by_id(there)
    return any(
        not any(is_same_definition(versions[0], other) for other in theirs[key])
        for key, versions in _by_id(here).items()
        if key in theirs
    )


def _by_id(snapshot: Snapshot) -> dict[tuple[str, int], list[VersionRecord]]:
    by_id: dict[tuple[str, int], list[VersionRecord]] = {}
    for item in snapshot.versions:
        by_id.setdefault((item.subject.context, item.schema_id), []).append(item)
    return by_id


@retried
def _begin_again(registry: Registry, snapshot: Snapshot, by: Actor, why: str) -> ImportResult:
    """Replace all mirrored contents in one transaction: readers see the old or the new contents."""
    registry_import.hold(registry, by=by, why=f"{why}, which was recreated")
    notes = contents_of(
        registry
    ).notes  # notes on the mirror's subjects are deleted with the rows, so they are restored below
    registry_import.empty_registry(registry)
    done = _bring(registry, diff_snapshots(snapshot, contents_of(registry)), by, why, lambda: None)
    there = {record.subject for record in snapshot.versions}
    notes_to_bring = {subject: note for subject, note in notes.items() if subject in there}
    return (
        done
        + ImportResult(problems=registry_import.import_notes(registry=registry, notes=notes_to_bring, by=by, why=why))
        if notes_to_bring
        else done
    )


def _gone(remote: RemoteRegistry, move: ImportDiff) -> list[VersionRecord]:
    """Return what is live here and missing there, after asking again by subject."""
    missing = [item for item in move.gone if not item.deleted]
    there = remote.still_there(missing) if missing else set()
    return [item for item in missing if item.key not in there]


def _bring(registry: Registry, move: ImportDiff, by: Actor, why: str, alive: Callable[[], None]) -> ImportResult:
    done = ImportResult(problems=move.problems)
    if move.contexts:
        done += ImportResult(
            problems=registry_import.bring_contexts(registry=registry, contexts=move.contexts, by=by, why=why)
        )
    for batch in registry_import.batches(move.bring):
        alive()
        done += registry_import.import_all_versions(registry=registry, records=batch, by=by, why=why)
    return done


def _follow_settings(registry: Registry, there: Snapshot, by: Actor, why: str) -> int:
    """Copy the remote's configs and modes, and delete those that it no longer has; returns how many configs changed."""
    here = contents_of(registry)
    move = diff_snapshots(there, here)
    if move.configs:
        for problem in registry_import.import_configs(registry=registry, configs=move.configs, by=by, why=why):
            logger.warning("mirror %s: %s", registry.name, problem)
    if dropped := here.configs.keys() - there.configs.keys():
        registry_import.drop_configs(registry=registry, scopes=dropped, by=by, why=why)
    modes: dict[Scope, str] = dict.fromkeys(here.modes.keys() - there.modes.keys(), "")
    modes |= {scope: pair[1] for scope, pair in move.modes.items()}
    if modes:
        registry_import.import_modes(registry=registry, modes=modes, by=by, why=why)
    return len(move.configs) + len(dropped)
