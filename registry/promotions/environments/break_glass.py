"""Break-glass: direct changes to a closed environment by an administrator, for a short time and with a reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, may, require
from registry.access.selectors import approval_refusal
from registry.audit.context import record
from registry.errors import EnvironmentPartNotFound, InvalidInput, NotAllowed, WrongState
from registry.notifications.services import notify
from registry.promotions.environments.locking import (
    MANAGE,
    MAX_TEXT,
    locked_environment,
    person,
    readable,
    require_any_permission,
)
from registry.promotions.environments.selectors import CONFIRM_WITHIN
from registry.promotions.models import BreakGlass
from registry.promotions.reviews.linked_accounts import is_same_person, link_in_words
from registry.promotions.reviews.reviewers import second_person_refusal

MAX_MINUTES: Final = 240


@transaction.atomic
def open_break_glass(*, environment: str, by: Actor, reason: str, minutes: int = 60) -> int:
    """Let this person change a closed environment for some minutes; returns the number of the break-glass.

    Raises RegistryNotFound, NotAllowed, NotSignedIn, InvalidInput, and WrongState if the environment is open, or if
    this person has break-glass already.
    """
    require(by, MANAGE, registry=environment)
    row = locked_environment(environment)
    user_id, why, now = person(by), readable(reason, "reason"), timezone.now()
    if not 1 <= minutes <= MAX_MINUTES:
        raise InvalidInput(f"Break-glass can be open for 1 to {MAX_MINUTES} minutes.", field="minutes")
    if not row.is_closed:
        raise WrongState(f"{environment} is open, so it doesn't need break-glass.")
    if row.break_glass.filter(opened_by_id=user_id, ends_at__gt=now).exists():
        raise WrongState(f"{by.name} already has break-glass open in {environment}. Close it to give another reason.")
    record(by=by, why=f"break-glass in {environment}: {why}")
    glass = BreakGlass.objects.create(
        environment=row, reason=why, opened_by_id=user_id, ends_at=now + timedelta(minutes=minutes)
    )
    notify(
        event="breakglass.opened",
        registry=environment,
        subject="",
        text=f"{by.name} opened break-glass {glass.pk} in {environment} for {minutes} minutes: {why}",
        url=f"/ui/environments/{environment}",
        data={"break_glass": glass.pk, "minutes": minutes, "by": by.name},
        by=user_id,
    )
    return glass.pk


@transaction.atomic
def close_break_glass(*, break_glass_id: int, by: Actor) -> None:
    """Close break-glass early, with the right to manage the environment. Waits for a change that is using it.

    Raises EnvironmentPartNotFound, NotAllowed, WrongState.
    """
    require_any_permission(by, MANAGE)
    row = _locked(break_glass_id)
    require(by, MANAGE, registry=row.environment.registry.name)
    now = timezone.now()
    if row.ends_at <= now:
        raise WrongState(f"Break-glass {row.pk} is already closed.")
    record(by=by, why=f"close break-glass {row.pk}")
    row.ends_at = now
    row.save(update_fields=["ends_at"])


@transaction.atomic
def confirm_break_glass(*, break_glass_id: int, by: Actor, comment: str = "") -> None:
    """Confirm break-glass as a second person, after it is closed and within a day of its opening.

    A role that one person alone gave doesn't count, neither the actor's nor the opener's.
    Raises EnvironmentPartNotFound, NotAllowed, NotSignedIn, InvalidInput, WrongState.
    """
    require_any_permission(by, MANAGE, "promotion.review")
    row = _locked(break_glass_id)
    name = row.environment.registry.name
    if not may(by, MANAGE, registry=name):
        require(by, "promotion.review", registry=name)
    user_id, now = person(by), timezone.now()
    if refused := confirmer_refusal(name, row.opened_by_id, by):
        raise NotAllowed(refused)
    if row.confirmed_by_id is not None:
        raise WrongState(f"Break-glass {row.pk} is already confirmed.")
    if now < row.ends_at:
        raise WrongState(f"Break-glass {row.pk} is still open. Close it before it is confirmed.")
    if now >= row.opened_at + CONFIRM_WITHIN:
        raise WrongState(
            f"Break-glass {row.pk} was not confirmed within a day of its opening, so it stays unconfirmed."
        )
    record(by=by, why=f"confirm break-glass {row.pk}")
    row.confirmed_by_id, row.confirmed_at = user_id, now
    row.comment = readable(comment, "comment", limit=MAX_TEXT) if comment.strip() else ""
    row.save(update_fields=["confirmed_by", "confirmed_at", "comment"])


def confirmer_refusal(environment: str, opened_by: int, by: Actor) -> str:
    """Return why the actor isn't a second person for this break-glass, as sentences; "" if they are."""
    if by.user_id is None:
        return "Sign in to do this."
    if is_same_person(by.user_id, opened_by):
        why = "" if by.user_id == opened_by else f" {link_in_words(by.user_id, opened_by)}"
        return f"{by.name} opened it with this or a linked account.{why} Another person must confirm it."
    return approval_refusal(by) or second_person_refusal(environment, opened_by, by)


def _locked(break_glass_id: int) -> BreakGlass:
    row = (
        BreakGlass.objects.select_related("environment__registry")
        .select_for_update(of=("self",))
        .filter(pk=break_glass_id)
        .first()
    )
    if row is None:
        raise EnvironmentPartNotFound(f"Break-glass {break_glass_id} not found.", number=break_glass_id)
    return row
