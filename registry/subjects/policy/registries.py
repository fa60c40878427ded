"""Registries and contexts: creating, listing and deleting them, and how fresh mirrors are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Sum
from django.utils import timezone

from registry.access.roles import Actor, may, require
from registry.audit.context import record
from registry.errors import ContextNotEmpty, InvalidName, OperationNotPermitted
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.subjects.listing.filters import readable
from registry.subjects.models import (
    Association,
    Config,
    Context,
    Mode,
    Registry,
    Schema,
    SchemaReference,
    SchemaVersion,
    Subject,
    SubjectActivity,
)
from registry.subjects.permissions import Visible
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import effective_mode
from registry.subjects.registration.locks import lock_policy, retried
from registry.subjects.registration.registration import RegisteredVersion, register_version
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

#: a registry's `sync_tag` while a sync is queued and hasn't started
QUEUED: Final = "queued"


@dataclass(frozen=True)
class MirrorState:
    """A mirror: its source, when it was last read completely, and its current error, if any.

    `age` is None before the first sync. `is_stale`: three syncs in a row are missing. `is_queued`: a sync is queued and
    hasn't started. `secret` is the name of the secret that signs `user` in, never the secret itself.
    """

    registry: str
    kind: str
    url: str
    every_seconds: int
    synced_at: datetime | None
    age: timedelta | None
    error: str
    failing_since: datetime | None
    is_running: bool
    is_stale: bool
    is_queued: bool = False
    number: int = 0
    next_at: datetime | None = None
    user: str = ""
    secret: str = ""


def mirror_of(registry: Registry) -> MirrorState | None:
    """Return the state of a registry's mirror; None for a local registry."""
    return _state(registry, timezone.now()) if registry.kind == Registry.REMOTE else None


def list_mirrors() -> list[MirrorState]:
    """Return all mirrors, by name."""
    now = timezone.now()
    return [_state(row, now) for row in Registry.objects.filter(kind=Registry.REMOTE).order_by("name")]


def registries_and_mirrors(by: Actor) -> tuple[list[str], list[MirrorState]]:
    """Return the names of the registries that the actor may read something of, and their mirrors; one query."""
    now, rows = timezone.now(), list(Registry.objects.visible_to(by).order_by("name"))
    return [row.name for row in rows], [_state(row, now) for row in rows if row.kind == Registry.REMOTE]


def _state(row: Registry, now: datetime) -> MirrorState:
    every = row.every_seconds or 0
    age = now - row.synced_at if row.synced_at else None
    leased = row.sync_lease_until is not None and row.sync_lease_until > now
    return MirrorState(
        registry=row.name,
        kind=row.kind,
        url=row.url,
        every_seconds=every,
        synced_at=row.synced_at,
        age=age,
        error=row.sync_error,
        failing_since=row.failing_since,
        is_running=leased and row.sync_tag != QUEUED,
        is_stale=age is None or age > timedelta(seconds=3 * every),
        is_queued=leased and row.sync_tag == QUEUED,
        number=row.pk,
        next_at=row.next_sync_at,
        user=row.user,
        secret=row.secret,
    )


@dataclass(frozen=True)
class RegistryEntry:
    """A registry, its live subjects and versions; `mirror` is None for a local one."""

    name: str
    kind: str
    subjects: int
    versions: int
    created_at: datetime
    mirror: MirrorState | None


def registries_for(actor: Actor) -> list[RegistryEntry]:
    """Return the registries of the configured project and location that the actor may read, the default first.

    Two queries, and one for each partly readable registry.
    """
    counts = {
        number: (subjects, versions)
        for number, subjects, versions in SubjectActivity.objects.order_by()
        .values_list("registry_id")
        .annotate(subjects=Count("*"), versions=Sum("live_versions"))
    }
    rows = Registry.objects.filter(project=settings.DEFAULT_PROJECT, location=settings.DEFAULT_LOCATION).order_by("pk")
    in_sight = sorted(rows.visible_to(actor), key=lambda row: row.name != settings.DEFAULT_REGISTRY)
    return [
        RegistryEntry(row.name, row.kind, *counts.get(row.pk, (0, 0)), row.created_at, mirror_of(row))
        if may(actor, "schema.read", registry=row.name)
        else _entry_in_part(row, actor)
        for row in in_sight
    ]


def _entry_in_part(row: Registry, actor: Actor) -> RegistryEntry:
    """Return the entry for an actor who may read some subjects: counts these, hides the mirror's URL. One query."""
    mirror = mirror_of(row)
    if mirror is not None:
        error = "The last sync failed." if mirror.error else ""
        mirror = replace(mirror, url="", user="", secret="", error=error)
    return RegistryEntry(row.name, row.kind, *amounts_of(row, Visible(row, actor)), row.created_at, mirror)


def amounts_of(registry: Registry, visible: Visible | None = None) -> tuple[int, int]:
    """Return how many live subjects and versions a registry has, only `visible` ones if given; one query."""
    rows = SubjectActivity.objects.filter(registry_id=registry.pk)
    if visible is not None:
        rows = rows.filter(readable(registry, visible.extent, "subject__"))
    amounts = rows.aggregate(subjects=Count("*"), versions=Sum("live_versions"))
    return amounts["subjects"], amounts["versions"] or 0


_REGISTRY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_PROJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,62}")


@transaction.atomic
def ensure_registry(*, name: str, by: Actor, project: str = "", location: str = "") -> bool:
    """Create a local registry with its default context; returns False if it exists.

    Raises NotAllowed, and InvalidName if the name of registry, project or location can't be part of a URL.
    """
    require(by, "registry.manage", registry=name)
    _check(_REGISTRY_NAME, name, "registry", "1 to 63 letters, digits, _ and -, not starting with a digit or -")
    for kind, value in (("project", project), ("location", location)):
        if value:
            _check(_PROJECT_NAME, value, kind, "1 to 63 letters, digits and . : _ -, starting with a letter or digit")
    record(by=by, why=f"make registry {name}")
    row, created = Registry.objects.get_or_create(
        project=project or settings.DEFAULT_PROJECT, location=location or settings.DEFAULT_LOCATION, name=name
    )
    Context.objects.get_or_create(registry=row, name=DEFAULT_CONTEXT)
    return created


def _check(pattern: re.Pattern[str], name: str, kind: str, rule: str) -> None:
    if not pattern.fullmatch(name):
        raise InvalidName(f"{name[:80]!r} is not a valid {kind} name. Use {rule}.", name=name[:80], field=kind)


@retried
def delete_registry(*, name: str, by: Actor, project: str = "", location: str = "", is_mirror: bool = False) -> None:
    """Delete a registry with all its contents; a mirror, which is READONLY, only with `is_mirror`.

    Raises RegistryNotFound, NotAllowed, ReleaseRequired, and OperationNotPermitted for a registry that is READONLY, is
    the default of the other dialects, or is used by promotions or scans.
    """
    registry = get_registry(name, project=project, location=location)
    require(by, "registry.manage", registry=registry.name)
    record(by=by, why=f"delete registry {registry.name}")
    lock_policy(registry, exclusive=True)
    change_guard.ask(
        "registry.manage", registry, "", by
    )  # READONLY isn't overridden: everything is deleted, so the mode has to be set first
    if not (is_mirror and registry.kind == Registry.REMOTE):
        _refuse_readonly(registry)
    _refuse_in_use(registry)
    Association.objects.filter(registry=registry).delete()
    SchemaReference.objects.filter(schema__context__registry=registry).delete()
    SchemaVersion.objects.filter(subject__context__registry=registry).delete()
    Schema.objects.filter(context__registry=registry).delete()
    for model in (Config, Mode):
        model.objects.filter(registry=registry).delete()
    Subject.objects.filter(context__registry=registry).delete()
    Context.objects.filter(registry=registry).delete()
    registry.delete()


def _refuse_readonly(registry: Registry) -> None:
    if effective_mode(registry).mode.startswith("READONLY"):
        raise OperationNotPermitted(f"Registry {registry.name} is in read-only mode. Set it to READWRITE first.")


def _refuse_in_use(registry: Registry) -> None:
    default = (settings.DEFAULT_PROJECT, settings.DEFAULT_LOCATION, settings.DEFAULT_REGISTRY)
    if (registry.project, registry.location, registry.name) == default:
        raise OperationNotPermitted(f"Registry {registry.name} is the server's default registry and can't be deleted.")
    for relation in Registry._meta.related_objects:
        model = relation.related_model
        outside = model._meta.app_label != Registry._meta.app_label
        if outside and model._default_manager.filter(**{relation.field.name: registry}).exists():
            raise OperationNotPermitted(
                f"Registry {registry.name} is used by {model._meta.verbose_name_plural}. Remove those first."
            )


@retried
def create_version(
    *,
    registry: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    normalize: bool | None = None,
    version: int = 0,
    schema_id: int | None = None,
) -> RegisteredVersion:
    """Register a version as `register_version` does, but no new subject in a READONLY registry, whatever its own mode.

    Raises as `register_version` does.
    """
    done = register_version(
        registry=registry,
        subject=subject,
        text=text,
        by=by,
        schema_type=schema_type,
        references=references,
        normalize=normalize,
        version=version,
        schema_id=schema_id,
    )
    # Checked afterwards, under the locks of the registration; raising rolls it back.
    registry_row = get_registry(registry)
    mode = effective_mode(registry_row, SubjectName(subject.context, "")).mode
    if done.created and mode.startswith(change_guard.READONLY) and _is_only_version(done):
        passes = change_guard.ask("version.register", registry_row, subject.qualified, by)
        if not change_guard.stops(mode, passes=passes):
            return done
        raise OperationNotPermitted(
            f"Registry {registry_row.name} is in read-only mode: the new subject {subject.qualified} can't be created.",
            mode=mode,
        )
    return done


def _is_only_version(done: RegisteredVersion) -> bool:
    others = SchemaVersion.objects.filter(subject__versions=done.version_id, deleted_at=None).exclude(
        pk=done.version_id
    )
    return not others.exists()


@retried
def delete_context(*, registry: str, context: str, by: Actor) -> bool:
    """Delete a context without subjects, with its config and mode; returns False if it doesn't exist.

    Raises NotAllowed, ContextNotEmpty, ReleaseRequired, and OperationNotPermitted for the default context and a
    read-only one.
    """
    registry_row = get_registry(registry)
    require(by, "version.delete_permanently", registry=registry_row.name)
    if context == DEFAULT_CONTEXT:
        raise OperationNotPermitted("The default context can't be deleted.")
    record(by=by, why=f"delete context {context} of {registry_row.name}")
    lock_policy(registry_row, exclusive=True)
    passes = change_guard.ask("version.delete_permanently", registry_row, "", by)
    row = Context.objects.select_for_update().filter(registry=registry_row, name=context).first()
    if row is None:
        return False
    if change_guard.stops(effective_mode(registry_row, SubjectName(context, "")).mode, passes=passes):
        raise OperationNotPermitted(f"Context {context} is in read-only mode")
    if Subject.objects.filter(context=row).exists() or Schema.objects.filter(context=row).exists():
        raise ContextNotEmpty(f"The specified context '{context}' is not empty.", context=context)
    for model in (Config, Mode):
        model.objects.filter(registry=registry_row, context=row).delete()
    row.delete()
    return True
