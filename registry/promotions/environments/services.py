"""Changing environments: their order, their rules for promotions, and break-glass.

Break-glass allows an admin direct changes to a closed environment for a short time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access.name_patterns import checked_pattern
from registry.access.roles import ROLES, Actor, may, require
from registry.access.selectors import approval_refusal
from registry.audit.context import record
from registry.errors import EnvironmentPartNotFound, InvalidInput, NotAllowed, WrongState
from registry.notifications.services import notify
from registry.promotions.environments.change_guard import loosened, require_second_person
from registry.promotions.environments.locking import (
    MANAGE,
    MAX_TEXT,
    environment_part,
    locked_environment,
    one_of,
    person,
    readable,
    require_any_permission,
)
from registry.promotions.environments.selectors import CONFIRM_WITHIN
from registry.promotions.models import BreakGlass, Environment, ReviewRule
from registry.promotions.models.environments import MAX_HOURS, MAX_REVIEWS, SETTINGS, change_in_words
from registry.promotions.requests.submission import count_reviews_in
from registry.promotions.reviews.linked_accounts import is_same_person, link_in_words
from registry.promotions.reviews.reviewers import second_person_refusal

MAX_PATTERN: Final = 450  # characters: it is part of an index, whose rows have about 2,700 bytes


@transaction.atomic
def ensure_environment(*, registry_id: int, position: int, by: Actor, is_closed: bool = False) -> bool:
    """Make a registry an environment at a position of the promotion order; False if it is one already."""
    require(by, MANAGE)
    record(by=by, why="create environment")
    _, created = Environment.objects.get_or_create(
        registry_id=registry_id, defaults={"position": position, "is_closed": is_closed}
    )
    return created


@transaction.atomic
def change_environment(*, environment: str, by: Actor, **settings: int | None) -> None:
    """Change the given settings, which are fields of `models.environments.SETTINGS`; None keeps a value.

    A change that loosens a closed environment needs a second person or break-glass (change_guard.py); without, nothing
    is changed. Closing waits for the changes that run in the registry. Raises RegistryNotFound, NotAllowed,
    InvalidInput, SecondPersonRequired; TypeError for an unknown setting.
    """
    if unknown := settings.keys() - SETTINGS.keys():
        raise TypeError(f"unknown settings of an environment: {', '.join(sorted(unknown))}")
    require(by, MANAGE, registry=environment)
    row = locked_environment(environment, alone=settings.get("is_closed") is not None)
    changed = {field: value for field, value in settings.items() if value is not None and value != getattr(row, field)}
    if not changed:
        return
    was_closed, before = row.is_closed, {field: getattr(row, field) for field in changed}
    sentence = change_in_words(before, changed)
    record(by=by, why=f"change the environment {environment}: {sentence}")
    for field, value in changed.items():
        setattr(row, field, value)
    if not 0 <= row.reviews_needed <= MAX_REVIEWS:
        raise InvalidInput(f"reviews_needed must be a number from 0 to {MAX_REVIEWS}.", field="reviews_needed")
    if not 0 <= row.max_evidence_hours <= MAX_HOURS:
        raise InvalidInput(
            f"max_evidence_hours must be a number from 1 to {MAX_HOURS}, or 0 for evidence of any age.",
            field="max_evidence_hours",
        )
    if row.is_closed and not row.reviews_needed:
        raise InvalidInput(
            f"{environment} is closed, so a release needs at least one approval.", field="reviews_needed"
        )
    if was_closed and loosened(before, changed):
        require_second_person(row, by, f"change the rules of {environment} ({sentence})", "change", changed)
    row.save(update_fields=list(changed))
    count_reviews_in(row, by)


@transaction.atomic
def add_review_rule(
    *,
    environment: str,
    by: Actor,
    subject_pattern: str = "*",
    verdict: str = ReviewRule.ANY,
    reviewers: str = ReviewRule.OWNERS,
    name: str = "",
    count: int = 1,
) -> int:
    """Require approvals of owners, a role or a group, in addition to the environment's number; returns the rule's id.

    The group must exist. Raises RegistryNotFound, NotAllowed, InvalidInput, and WrongState for a rule that exists.
    """
    require(by, MANAGE, registry=environment)
    row = locked_environment(environment)
    values = {
        "subject_pattern": checked_pattern(
            readable(subject_pattern, "subject_pattern", limit=MAX_PATTERN), "subject", longest=MAX_PATTERN
        ),
        "verdict": one_of(verdict, "verdict", (ReviewRule.ANY, ReviewRule.BREAKING)),
        "reviewers": one_of(reviewers, "reviewers", (ReviewRule.OWNERS, ReviewRule.ROLE, ReviewRule.GROUP)),
        "name": _reviewers_name(reviewers, name),
        "count": count,
    }
    if not 1 <= count <= MAX_REVIEWS:
        raise InvalidInput(f"A rule can require 1 to {MAX_REVIEWS} approvals.", field="count")
    record(by=by, why=f"require {count} of {values['name'] or reviewers} for {subject_pattern} in {environment}")
    try:
        with transaction.atomic():
            return ReviewRule.objects.create(environment=row, **values).pk
    except IntegrityError as error:
        raise WrongState(f"{environment} already has this rule. Remove it first to set another number.") from error


def _reviewers_name(reviewers: str, name: str) -> str:
    if reviewers == ReviewRule.OWNERS:
        if name:
            raise InvalidInput(
                "A rule for owners has no name, because it uses the owners of the subject.", field="name"
            )
        return ""
    if reviewers == ReviewRule.ROLE:
        return one_of(name, "name", ROLES)
    group = readable(name, "name", limit=150)
    if not Group.objects.filter(name=group).exists():
        raise InvalidInput(f"There is no group {group!r}. Create it on People and groups first.", field="name")
    return group


@transaction.atomic
def remove_review_rule(*, rule_id: int, by: Actor) -> None:
    """Remove a review rule. Raises EnvironmentPartNotFound, NotAllowed, SecondPersonRequired."""
    row = environment_part(ReviewRule, rule_id, "review rule", by)
    require(by, MANAGE, registry=row.environment.registry.name)
    record(by=by, why=f"remove a review rule of {row.environment}: {row}")
    if row.environment.is_closed:
        sentence = f"remove the review rule of {row.environment}: {row}"
        require_second_person(row.environment, by, sentence, "remove_review_rule", {"rule_id": rule_id})
    row.delete()
    count_reviews_in(row.environment, by)


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
