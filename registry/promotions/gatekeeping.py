"""Keeps closed environments: they change by releases, and by break-glass of whoever opened it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.db import connection
from django.db.models import F, QuerySet
from django.utils import timezone

from registry.access.roles import ACTION_WORDS, Actor, may
from registry.audit.services import record, recorded
from registry.errors import ReleaseRequired
from registry.notifications.services import notify
from registry.promotions.models import BreakGlass
from registry.subjects.models import Registry

KEEPER: Final = "closed environments"
MIRROR_DOOR: Final = "task"


def keep_closed(action: str, registry: Registry, subject: str, by: Actor) -> bool:
    """Whether READONLY is passed: in a closed environment with break-glass it is, in an open one it isn't.

    It passes because it ends by itself: were the mode to be set for it, the environment would stay writable afterwards.
    Raises ReleaseRequired in a closed environment without break-glass.
    """
    if _is_mirroring(registry, by) or not _is_closed(registry):
        return False
    if not use_break_glass(action, registry, subject, by):
        raise ReleaseRequired(closed_refusal(action, registry, subject), registry=registry.name, action=action)
    return True


def is_kept(registry: Registry, by: Actor) -> tuple[bool, bool]:
    """Whether `keep_closed` would refuse this person, and whether it would let them pass READONLY.

    Nothing is used up by asking: it is for whoever says beforehand what would be refused.
    """
    if _is_mirroring(registry, by) or not _is_closed(registry):
        return False, False
    has_glass = _glass_of(registry, by).exists()
    return not has_glass, has_glass


def _is_closed(registry: Registry) -> bool:
    """Whether it is a closed environment; asked for every version that is registered, so without the ORM."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM promotions_environment WHERE registry_id = %s::bigint AND is_closed)",
            [registry.pk],
        )
        (found,) = cursor.fetchone()
    return bool(found)


def _glass_of(registry: Registry, by: Actor) -> QuerySet[BreakGlass]:
    """The person's open break-glass, none for whoever may not have one."""
    if by.user_id is None or not may(by, "registry.manage", registry=registry.name):
        return BreakGlass.objects.none()
    return BreakGlass.objects.filter(
        environment__registry=registry, opened_by_id=by.user_id, ends_at__gt=timezone.now()
    )


def _is_mirroring(registry: Registry, by: Actor) -> bool:
    """Whether the product itself follows the remote that somebody decided to mirror; no person calls by that door."""
    return registry.kind == Registry.REMOTE and by.door == MIRROR_DOOR and by.user_id is None


def use_break_glass(action: str, registry: Registry, subject: str, by: Actor) -> bool:
    """Use the person's open break-glass, if there is one; its row is held, so that it isn't closed meanwhile."""
    glass = _glass_of(registry, by).select_for_update(of=("self",)).first()
    if glass is None:
        return False
    reason = f"break-glass {glass.pk}: {glass.reason}"
    doing = recorded().removeprefix(f"{reason}; ")
    record(by=by, why=f"{reason}; {doing}" if doing else reason)
    BreakGlass.objects.filter(pk=glass.pk).update(uses=F("uses") + 1)
    notify(
        event="breakglass.used",
        registry=registry.name,
        subject=subject,
        text=f"{by.name} used break-glass {glass.pk} to {ACTION_WORDS[action]} in {registry.name}: {doing}."
        f" Its reason: {glass.reason}",
        url=f"/ui/environments/{registry.name}",
        data={"break_glass": glass.pk, "action": action, "by": by.name},
        by=by.user_id,
    )
    return True


def closed_refusal(action: str, registry: Registry, subject: str) -> str:
    """What whoever would change a closed environment directly is told."""
    query = urlencode({"target": registry.name} | ({"subject": subject} if subject else {}))
    return (
        f"Registry {registry.name} is a closed environment: to {ACTION_WORDS[action]} there takes a release. Ask for a"
        f" promotion at /ui/promotions/request?{query}, or let an administrator open break-glass at"
        f" /ui/environments/{registry.name}."
    )
