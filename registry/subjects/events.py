"""The events of versions, settings and mirrors: published in the transaction of the change, one per call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import quote

from registry.access.roles import Actor
from registry.errors import first_few
from registry.notifications.services import notify
from registry.subjects.models import Registry
from registry.subjects.versions.lookup import RegistryResource
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import StatusInfo

REGISTERED, DELETED, STATUS = "version.registered", "version.deleted", "version.deprecated"
CONFIG, MODE, MIRROR = "config.changed", "mode.changed", "mirror.failed"
#: event → singular, plural, and what happened to them
_MANY: Final = {
    REGISTERED: ("version", "versions", "added to"),
    DELETED: ("version", "versions", "removed from"),
    CONFIG: ("scope", "scopes", "changed compatibility settings in"),
}
SHOWN: Final = 10  # version numbers in a sentence; all of them are in the data, up to MOST
MOST: Final = 500


def announce_version(
    registry: Registry, subject: SubjectName, *, version: int, schema_id: int, by: Actor, force: str = ""
) -> None:
    """Announce that a version was registered."""
    forced = f", forced: {force}" if force else ""
    _tell(
        REGISTERED,
        registry,
        subject,
        f"Version {version} of {subject.qualified} was registered in {registry.name} by {by.name}{forced}.",
        {"version": version, "schema_id": schema_id, "forced": bool(force)},
        by=by,
    )


def tell_of_deletion(
    registry: Registry, subject: SubjectName, *, versions: Sequence[int], permanent: bool, by: Actor
) -> None:
    """Announce that versions of a subject were deleted."""
    if not versions:
        return
    how = "permanently removed from" if permanent else "deleted in"
    many = len(versions) > 1
    _tell(
        DELETED,
        registry,
        subject,
        f"{_versions(versions)} of {subject.qualified} {'were' if many else 'was'} {how} {registry.name} by {by.name}.",
        {"versions": list(versions[:MOST]), "number": len(versions), "permanent": permanent},
        by=by,
    )


def tell_of_restoring(registry: Registry, subject: SubjectName, *, versions: Sequence[int], by: Actor) -> None:
    """Announce that soft-deleted versions were restored, to the subscribers of registrations."""
    verb = "were" if len(versions) > 1 else "was"
    text = f"{_versions(versions)} of {subject.qualified} {verb} restored in {registry.name} by {by.name}."
    data = {"versions": list(versions[:MOST]), "number": len(versions), "restored": True}
    _tell(REGISTERED, registry, subject, text, data, by=by)


def announce_many(registry: Registry, event: str, count: int, *, why: str, by: Actor) -> None:
    """Announce how many versions, or scopes with settings, one import or sync changed; nothing for 0."""
    if not count:
        return
    one, many, what = _MANY[event]
    text = f"{count} {one if count == 1 else many} {what} {registry.name}: {why}."
    _tell(event, registry, None, text, {"number": count}, by=by)


def tell_of_setting(
    registry: Registry,
    scope: SubjectName | None,
    event: str,
    *,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    by: Actor,
) -> None:
    """Announce that settings or a mode changed: `before` and `after` have those that did, None if inherited."""
    if before == after:
        return
    where = registry.name if scope is None else scope.qualified if scope.subject else f"context {scope.context}"
    place = "" if scope is None else f" in {registry.name}"
    changes = ", ".join(f"{name} from {_short(before.get(name))} to {_short(after.get(name))}" for name in after)
    what = "mode" if event == MODE else "compatibility settings"
    text = f"The {what} of {where} changed{place} by {by.name}: {changes}."
    _tell(event, registry, scope, text, {"before": dict(before), "after": dict(after)}, by=by)


def tell_of_status(
    registry: Registry,
    subject: SubjectName,
    version: int,
    *,
    before: StatusInfo | None,
    after: StatusInfo | None,
    by: Actor,
    owners: Collection[int],
) -> None:
    """Announce that a version's status changed; the subject's owners are always notified, except `by`."""
    name = f"Version {version} of {subject.qualified} in {registry.name}"
    if after is None:
        text = f"{name} was reactivated by {by.name}."
    else:
        until = f", to be used until {after.ends_at:%Y-%m-%d} at the latest" if after.ends_at else ""
        text = f"{name} was set to {after.status} by {by.name}{until}: {after.message}"
    data = {
        "version": version,
        "status": after.status if after else "",
        "before": before.status if before else "",
        "ends_at": after.ends_at.isoformat() if after and after.ends_at else None,
    }
    _tell(STATUS, registry, subject, text, data, by=by, to=set(owners) - {by.user_id})


def tell_of_mirror(registry: Registry, error: str) -> None:
    """Announce that a mirror has just become unreadable."""
    notify(
        event=MIRROR,
        registry=key_of(registry),
        subject="",
        text=f"The mirror {registry.name} of {registry.url} can't be synced: {error}",
        url=_url(registry, None),
        data={"error": error},
    )


def key_of(registry: Registry) -> str:
    """Return the registry's key in grants, and so in the patterns of subscriptions."""
    return str(RegistryResource(registry.project, registry.location, registry.name).key)


def changed(before: Any, after: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that differ between two frozen values of one kind."""
    was, becomes = asdict(before), asdict(after)
    names = [name for name in becomes if was[name] != becomes[name]]
    return {name: was[name] for name in names}, {name: becomes[name] for name in names}


def _tell(
    event: str,
    registry: Registry,
    subject: SubjectName | None,
    text: str,
    data: dict[str, Any],
    *,
    by: Actor,
    to: Collection[int] = (),
) -> None:
    notify(
        event=event,
        registry=key_of(registry),
        subject=subject.qualified if subject else "",
        text=text,
        url=_url(registry, subject),
        to=tuple(to),
        data={**data, "by": by.name},
        by=by.user_id,
    )


def _url(registry: Registry, subject: SubjectName | None) -> str:
    """Return the page of the subject, or of all subjects; "" for another project's registry, which has no page."""
    if key_of(registry) != registry.name:
        return ""
    start = f"/ui/registries/{quote(registry.name, safe='')}/subjects"
    if subject is None or not subject.subject:
        return start
    # Browsers fold `.` and `..` away, encoded or not; the qualified name of the default context says the same.
    name = f":.:{subject.qualified}" if subject.qualified in (".", "..") else subject.qualified
    return f"{start}/{quote(name, safe='')}/"


def _versions(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"Version {numbers[0]}"
    return f"Versions {first_few([str(number) for number in numbers], SHOWN)}"


def _short(value: Any) -> str:
    if value is None or value == "":
        return "the inherited value"
    return str(value) if isinstance(value, str | bool) else "another value"
