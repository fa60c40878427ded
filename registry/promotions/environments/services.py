"""Changing environments: their order, and their rules for promotions.

A plan for a remote registry is made against a fresh mirror of it.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access.egress import EgressPolicy
from registry.access.name_patterns import checked_pattern
from registry.access.roles import ROLES, Actor, may_somewhere, require
from registry.audit.context import record
from registry.errors import (
    EnvironmentPartNotFound,
    InvalidInput,
    NotSignedIn,
    RegistryNotFound,
    RemoteUnavailable,
    WrongState,
)
from registry.formats.base import UNSTORABLE
from registry.promotions.environments.change_guard import loosened, require_second_person
from registry.promotions.models import Environment, ReviewRule
from registry.promotions.models.environments import MAX_HOURS, MAX_REVIEWS, SETTINGS
from registry.subjects.models import Registry
from registry.subjects.registration.locks import lock_policy
from registry.subjects.remote.mirrors import sync_registry

MANAGE: Final = "registry.manage"
MAX_TEXT: Final = 2000
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

    A change that loosens a closed environment needs a second person or break-glass (change_guard.py); without, nothing is
    changed. Closing waits for the changes that run in the registry.
    Raises RegistryNotFound, NotAllowed, InvalidInput, SecondPersonRequired; TypeError for an unknown setting.
    """
    if unknown := settings.keys() - SETTINGS.keys():
        raise TypeError(f"unknown settings of an environment: {', '.join(sorted(unknown))}")
    require(by, MANAGE, registry=environment)
    row = locked_environment(environment, alone=settings.get("is_closed") is not None)
    changed = {field: value for field, value in settings.items() if value is not None and value != getattr(row, field)}
    if not changed:
        return
    sentence = ", ".join(f"{field} {getattr(row, field)} → {value}" for field, value in changed.items())
    record(by=by, why=f"change the environment {environment}: {sentence}")
    was_closed, before = row.is_closed, {field: getattr(row, field) for field in changed}
    for field, value in changed.items():
        setattr(row, field, value)
    if not 0 <= row.reviews_needed <= MAX_REVIEWS:
        raise InvalidInput(f"reviews_needed must be a number from 0 to {MAX_REVIEWS}.", field="reviews_needed")
    if not 0 <= row.max_evidence_hours <= MAX_HOURS:
        sentence = f"max_evidence_hours must be a number from 1 to {MAX_HOURS}, or 0 for evidence of any age."
        raise InvalidInput(sentence, field="max_evidence_hours")
    if row.is_closed and not row.reviews_needed:
        raise InvalidInput(
            f"{environment} is closed, so a release needs at least one approval.", field="reviews_needed"
        )
    if was_closed and loosened(before, changed):
        require_second_person(row, by, f"change the rules of {environment} ({sentence})", "change", changed)
    row.save(update_fields=list(changed))
    _count_reviews(row, by)


def _count_reviews(environment: Environment, by: Actor) -> None:
    """Approve the requests in review whose approvals are enough under the present rules."""
    from registry.promotions.requests.submission import count_reviews_in  # it imports this module

    count_reviews_in(environment, by)


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
    """Require approvals of the owners, a role or a group, besides the environment's number; returns the rule's number.

    Raises RegistryNotFound, NotAllowed, InvalidInput, and WrongState for a rule that exists.
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
    return readable(name, "name", limit=150)


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
    _count_reviews(row.environment, by)


def locked_environment(name: str, *, alone: bool = False) -> Environment:
    """The environment of that name, locked until the transaction ends; `alone` also waits for changes of its registry.

    The registry's policy lock comes first, as everywhere. Raises RegistryNotFound.
    """
    rows = Environment.objects.select_related("registry").filter(registry__name=name)
    environment = rows.first()
    if environment is not None and alone:
        lock_policy(environment.registry, exclusive=True)
    row = rows.select_for_update(of=("self",)).first()
    if row is None:
        raise RegistryNotFound(f"'{name[:80]}' is not an environment.", registry=name[:255])
    return row


def readable(text: str, field: str, *, limit: int = MAX_TEXT) -> str:
    """The stripped text. Raises InvalidInput for one that is empty, too long or can't be stored."""
    bare = text.strip()
    if not bare or len(bare) > limit:
        raise InvalidInput(f"{field} must have 1 to {limit} characters.", field=field)
    if UNSTORABLE.search(bare):
        raise InvalidInput(f"{field} has a character that can't be stored.", field=field)
    return bare


def person(by: Actor) -> int:
    """The actor's user id. Raises NotSignedIn for a program without an account."""
    if by.user_id is None:
        raise NotSignedIn("Sign in to do this.")
    return by.user_id


def refuse_strangers(by: Actor, *actions: str) -> None:
    """Refuse an actor with none of these rights anywhere, before a number is looked up. Raises as `require` does."""
    if not any(may_somewhere(by, action) for action in actions):
        require(by, actions[0])


def one_of(value: str, field: str, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices. Raises InvalidInput."""
    if value not in choices:
        raise InvalidInput(f"{field} must be one of {', '.join(choices)}.", field=field)
    return value


def environment_part(model: type[Any], number: int, what: str, by: Actor) -> Any:
    """A row that belongs to an environment, locked. Raises EnvironmentPartNotFound, NotSignedIn, NotAllowed."""
    refuse_strangers(by, MANAGE)
    rows = model.objects.select_related("environment__registry").filter(pk=number)
    row = rows.first()
    if row is not None:
        # the caller checks next whether it is closed, which must stay true
        environment = locked_environment(row.environment.registry.name)
        row = rows.select_for_update(of=("self",)).first()
    if row is None:
        raise EnvironmentPartNotFound(f"No {what} {number} found.", number=number)
    row.environment = environment
    return row


#: how long to wait for a running sync of another worker
WAIT_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.2


def is_remote(environment: Environment) -> bool:
    """Whether the environment is a remote registry with a mirror here."""
    return environment.registry.kind == Registry.REMOTE


def fresh(environment: Environment, *, policy: EgressPolicy | None = None) -> None:
    """Update the mirror of a remote environment; does nothing for a local registry.

    It calls another server, so no transaction may be open. Parts that can't be mirrored don't matter: the mirror lists
    them, and what is promoted is read back from the remote anyway.
    Raises RemoteUnavailable if the remote can't be read completely, or another worker reads it for too long.
    """
    if not is_remote(environment):
        return
    started_at, deadline = timezone.now(), time.monotonic() + WAIT_SECONDS
    while sync_registry(registry_id=environment.registry_id, policy=policy) is None:
        if time.monotonic() > deadline:
            raise RemoteUnavailable(f"{environment} is being synced by another worker. Try again in a minute.")
        time.sleep(PAUSE_SECONDS)
    row = Registry.objects.get(pk=environment.registry_id)
    if row.synced_at is None or row.synced_at < started_at:
        raise RemoteUnavailable(f"{environment} can't be read now, and its mirror is too old: {row.sync_error}")
