"""The times in which nothing is applied to an environment: once, or again and again by the clocks of a time zone."""

from __future__ import annotations

from datetime import datetime, time
from typing import Final

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import InvalidInput, WrongState
from registry.promotions.models import FreezeWindow, RecurringFreeze
from registry.promotions.recurring import DAYS, zones
from registry.promotions.second_person import require_second_person
from registry.promotions.services.environments import (
    MANAGE,
    environment_part,
    locked_environment,
    one_of,
    person,
    readable,
)

#: of an environment
MAX_RECURRING: Final = 20
MAX_LAST_DAYS: Final = 28
MIDNIGHT: Final = time()


@transaction.atomic
def add_freeze(*, environment: str, by: Actor, starts_at: datetime, ends_at: datetime, reason: str) -> int:
    """Let nothing be applied between two moments; gives the window's number.

    Raises RegistryNotFound, NotAllowed, NotSignedIn, InvalidInput.
    """
    require(by, MANAGE, registry=environment)
    row = locked_environment(environment)
    why = readable(reason, "reason")
    for field, moment in (("starts_at", starts_at), ("ends_at", ends_at)):
        if timezone.is_naive(moment):
            raise InvalidInput(f"{field} needs a time zone.", field=field)
    if ends_at <= starts_at:
        raise InvalidInput("A freeze ends after it starts.", field="ends_at")
    if ends_at <= timezone.now():
        raise InvalidInput("This freeze is over already.", field="ends_at")
    record(by=by, why=f"freeze {environment}: {why}")
    return FreezeWindow.objects.create(
        environment=row, starts_at=starts_at, ends_at=ends_at, reason=why, made_by_id=person(by)
    ).pk


@transaction.atomic
def remove_freeze(*, freeze_id: int, by: Actor) -> None:
    """End a freeze, or take back one to come. Raises EnvironmentPartNotFound, NotAllowed, SecondPersonRequired."""
    row = environment_part(FreezeWindow, freeze_id, "freeze", by)
    require(by, MANAGE, registry=row.environment.registry.name)
    record(by=by, why=f"end the freeze {row.pk} of {row.environment}")
    if row.environment.is_closed and row.ends_at > timezone.now():
        sentence = f"end the freeze of {row.environment} from {row.starts_at:%Y-%m-%d %H:%M} to {row.ends_at:%Y-%m-%d %H:%M} UTC"
        require_second_person(row.environment, by, sentence, "remove_freeze", {"freeze_id": freeze_id})
    row.delete()


@transaction.atomic
def add_recurring_freeze(
    *,
    environment: str,
    by: Actor,
    kind: str,
    zone: str,
    reason: str,
    from_time: time = MIDNIGHT,
    to_time: time = MIDNIGHT,
    from_day: int | None = None,
    to_day: int | None = None,
    last_days: int | None = None,
) -> int:
    """Let nothing be applied at times that come again, by the clocks of a zone such as Europe/Berlin; gives its number.

    `weekly` takes two days (0 is Monday), `monthly` the number of a month's last days.
    Raises RegistryNotFound, NotAllowed, NotSignedIn, InvalidInput, and WrongState for too many of them.
    """
    require(by, MANAGE, registry=environment)
    row = locked_environment(environment)
    values = {
        "kind": one_of(kind, "kind", RecurringFreeze.KINDS),
        "zone": _zone(zone),
        "from_time": _clock(from_time, "from_time"),
        "to_time": _clock(to_time, "to_time"),
        "reason": readable(reason, "reason"),
        **(_monthly(last_days) if kind == RecurringFreeze.MONTHLY else _weekly(from_day, to_day)),
    }
    if kind == RecurringFreeze.WEEKLY and (from_day, values["from_time"]) == (to_day, values["to_time"]):
        raise InvalidInput(
            "It begins when it ends, so nothing could ever be applied: give another end.", field="to_time"
        )
    if row.recurring_freezes.count() >= MAX_RECURRING:
        raise WrongState(f"{environment} has {MAX_RECURRING} such freezes; remove one of them first.")
    record(by=by, why=f"freeze {environment} {kind}: {values['reason']}")
    return RecurringFreeze.objects.create(environment=row, made_by_id=person(by), **values).pk


@transaction.atomic
def remove_recurring_freeze(*, freeze_id: int, by: Actor) -> None:
    """Have it come no more. Raises EnvironmentPartNotFound, NotAllowed, SecondPersonRequired."""
    row = environment_part(RecurringFreeze, freeze_id, "recurring freeze", by)
    require(by, MANAGE, registry=row.environment.registry.name)
    record(by=by, why=f"end the recurring freeze {row.pk} of {row.environment}")
    if row.environment.is_closed:
        sentence = f"end the recurring freeze of {row.environment} ({row.kind}, {row.zone}: {row.reason})"
        require_second_person(row.environment, by, sentence, "remove_recurring_freeze", {"freeze_id": freeze_id})
    row.delete()


def _zone(name: str) -> str:
    if name not in zones():
        raise InvalidInput(
            f"{name[:64]!r} is no time zone: write it as in the time zone database, like Europe/Berlin or UTC.",
            field="zone",
        )
    return name


def _clock(moment: time, field: str) -> time:
    """A time of the clocks in the zone, to the minute."""
    if moment.tzinfo is not None:
        raise InvalidInput(f"{field} is a time in the zone that is named: leave its own offset out.", field=field)
    return moment.replace(second=0, microsecond=0)


def _weekly(from_day: int | None, to_day: int | None) -> dict[str, int]:
    given = {"from_day": from_day, "to_day": to_day}
    for field, day in given.items():
        if day is None or not 0 <= day < len(DAYS):
            raise InvalidInput(f"{field} is a day of the week, from 0 (Monday) to 6 (Sunday).", field=field)
    return {field: day for field, day in given.items() if day is not None}


def _monthly(last_days: int | None) -> dict[str, int]:
    if last_days is None or not 1 <= last_days <= MAX_LAST_DAYS:
        raise InvalidInput(f"last_days is a number from 1 to {MAX_LAST_DAYS}.", field="last_days")
    return {"last_days": last_days}
