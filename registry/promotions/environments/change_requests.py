"""Requests to loosen a closed environment: made by one person, decided by another, applied with the approval."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access import services as access
from registry.access.roles import ADMIN, Actor, Grant, may, require
from registry.access.selectors import actor_of_user, approval_refusal
from registry.access.services import lock_admins
from registry.audit.context import record
from registry.errors import EnvironmentPartNotFound, InvalidInput, NotAllowed, SchemadeskError, WrongState
from registry.notifications.services import notify
from registry.promotions.environments import change_guard
from registry.promotions.environments.freezes import remove_freeze, remove_recurring_freeze
from registry.promotions.environments.locking import (
    MAX_TEXT,
    locked_environment,
    person,
    readable,
    require_any_permission,
)
from registry.promotions.environments.services import change_environment, remove_review_rule
from registry.promotions.models import Environment, EnvironmentChange
from registry.promotions.models.environments import SETTINGS, setting_type
from registry.promotions.reviews.linked_accounts import (
    is_same_person,
    link_in_words,
    state_same_person,
    withdraw_same_person,
)
from registry.promotions.reviews.reviewers import second_person_refusal
from registry.subjects.usage.clients import CHANGE, declare_client, withdraw_client
from registry.subjects.versions.qualified_names import parse_subject

REVIEW: Final = "promotion.review"
PEOPLE: Final = "people.manage"
#: the most open changes of an environment
MAX_OPEN: Final = 50


class _UndoneError(Exception):
    """Raised to roll back a trial."""


def _without_environment(service: Callable[..., object]) -> Callable[..., object]:
    """Adapt a service that finds the affected environments itself."""

    def run(environment: str, by: Actor, **values: Any) -> object:
        del environment  # the service requires the second person there
        return service(by=by, **values)

    return run


def _of_client(service: Callable[..., object]) -> Callable[..., object]:
    """Adapt a service of another's declared client."""

    def run(environment: str, by: Actor, *, subject: str, **values: Any) -> object:
        return service(registry=environment, subject=parse_subject(subject), by=by, **values)

    return run


_DECLARATION: Final[Mapping[str, type]] = {
    "reads": bool, "writes": bool, "version": int, "fields": list, "contact": str
}  # fmt: skip


#: action → the service, the right that its requester needs, and the arguments with their types
ACTIONS: Final[Mapping[str, tuple[Callable[..., object], str, Mapping[str, type]]]] = {
    "change": (change_environment, change_guard.MANAGE, {name: setting_type(name) for name in SETTINGS}),
    "remove_review_rule": (_without_environment(remove_review_rule), change_guard.MANAGE, {"rule_id": int}),
    "remove_freeze": (_without_environment(remove_freeze), change_guard.MANAGE, {"freeze_id": int}),
    "remove_recurring_freeze": (_without_environment(remove_recurring_freeze), change_guard.MANAGE, {"freeze_id": int}),
    "declare_client": (_of_client(declare_client), CHANGE, {"subject": str, "name": str, **_DECLARATION}),
    "withdraw_client": (_of_client(withdraw_client), CHANGE, {"subject": str, "name": str}),
    "grant": (
        _without_environment(access.grant),
        PEOPLE,
        {"username": str, "role": str, "registry": str, "subject_pattern": str},
    ),
    "grant_to_group": (
        _without_environment(access.grant_to_group),
        PEOPLE,
        {"group": str, "role": str, "registry": str, "subject_pattern": str},
    ),
    "add_member": (_without_environment(access.add_member), PEOPLE, {"group": str, "username": str}),
    "add_owner": (
        _without_environment(access.add_owner),
        PEOPLE,
        {"subject_pattern": str, "registry": str, "username": str, "group": str},
    ),
    "revoke_grant": (_without_environment(access.revoke_grant), PEOPLE, {"grant_id": int}),
    "remove_member": (_without_environment(access.remove_member), PEOPLE, {"group": str, "username": str}),
    "remove_group": (_without_environment(access.remove_group), PEOPLE, {"name": str}),
    "remove_group_grant": (_without_environment(access.remove_group_grant), PEOPLE, {"grant_id": int}),
    "set_active": (_without_environment(access.set_active), PEOPLE, {"username": str, "active": bool}),
    "set_email": (_without_environment(access.set_email), PEOPLE, {"username": str, "email": str}),
    "state_same_person": (_without_environment(state_same_person), PEOPLE, {"one": str, "other": str, "reason": str}),
    "withdraw_same_person": (_without_environment(withdraw_same_person), PEOPLE, {"statement_id": int}),
}


@transaction.atomic
def request_environment_change(
    *, environment: str, action: str, values: Mapping[str, Any], reason: str, by: Actor
) -> int:
    """Request another person's approval for a change that loosens a closed environment; returns the change's number.

    `action` and `values` come from the SecondPersonRequired that refused the change. The change is tried out first, so
    that the service's own errors appear now. Raises RegistryNotFound, NotAllowed, NotSignedIn, InvalidInput, and
    WrongState for a change that needs no second person or is requested already.
    """
    run, right, types = _action(action)
    require(by, right, **_place(right, environment, values))
    user_id, why, sent = person(by), readable(reason, "reason"), _checked(values, types)
    if right == PEOPLE:
        lock_admins()  # before the environment, as the services of people do
    row = locked_environment(environment, alone="is_closed" in sent)
    record(by=by, why=f"request approval in {environment}: {why}")
    sentence, before = _tried(row, run, sent, by), change_guard.facts_of(row, action, sent)
    sentence = change_guard.with_facts(sentence, action, before)
    if row.changes.filter(state=EnvironmentChange.OPEN).count() >= MAX_OPEN:
        raise WrongState(
            f"{environment} already has {MAX_OPEN} changes waiting, which is the maximum. Decide on some of them first."
        )
    record(by=by, why=f"request approval to {sentence}: {why}")
    try:
        with transaction.atomic():
            change = EnvironmentChange.objects.create(
                environment=row, action=action, values=sent, before=before, digest=_digest(action, sent),
                sentence=sentence, reason=why, requested_by_id=user_id,
            )  # fmt: skip
    except IntegrityError as error:
        raise WrongState("This change was already requested and is waiting for approval.") from error
    _tell(change, "environment.loosening_requested", f"{by.name} requests to {sentence}: {why}", by)
    return change.pk


@transaction.atomic
def approve_environment_change(*, change_id: int, by: Actor, comment: str = "") -> None:
    """Approve a change as a second person, and make it immediately.

    Raises EnvironmentPartNotFound, NotAllowed, NotSignedIn, and WrongState if it is decided already, has nothing to do
    any more, or its environment has changed since the request.
    """
    change = _locked(change_id, by, REVIEW)
    row = change.environment
    _require_decider(change.environment.registry.name, change.requested_by_id, by)
    run, right, _ = _action(change.action)
    requester = actor_of_user(change.requested_by, channel=by.channel)
    where = _place(right, row.registry.name, change.values)
    if not change.requested_by.is_active or not may(requester, right, **where):
        raise WrongState(
            f"{requester.name}, who requested this, no longer has permission for it. Another person must request it."
        )
    if outdated := change_guard.outdated_reason(change):
        raise WrongState(f"{outdated} Withdraw the change and request it again.")
    why = f"change {change.pk}, requested by {requester.name}, approved by {by.name}: {change.reason}"
    record(by=by, why=why)
    with change_guard.passing(row, why, requester=change.requested_by_id, approver=by.user_id):
        run(environment=row.registry.name, by=replace(by, grants=(Grant(ADMIN),), limit=None), **change.values)
    record(by=by, why=why)
    _decide(change, EnvironmentChange.APPROVED, by, comment)
    sentence = f"{by.name} approved a change that {requester.name} requested: {change.sentence}. {change.reason}"
    change_guard.tell_loosened(row, sentence, by=by, change=change.pk)


@transaction.atomic
def reject_environment_change(*, change_id: int, by: Actor, comment: str) -> None:
    """Reject a change as a second person. Raises as approving does, and InvalidInput without a comment."""
    change = _locked(change_id, by, REVIEW)
    _require_decider(change.environment.registry.name, change.requested_by_id, by)
    remark = readable(comment, "comment", limit=MAX_TEXT)
    record(by=by, why=f"reject change {change.pk} of {change.environment}")
    _decide(change, EnvironmentChange.REJECTED, by, remark)
    _tell(change, "environment.loosening_declined", f"{by.name} rejected it: {remark}", by)


@transaction.atomic
def withdraw_environment_change(*, change_id: int, by: Actor) -> None:
    """Withdraw a change, as its requester or with the right to manage the environment.

    Raises EnvironmentPartNotFound, NotAllowed, NotSignedIn, WrongState.
    """
    change = _locked(change_id, by, change_guard.MANAGE, CHANGE)
    if person(by) != change.requested_by_id:
        require(by, change_guard.MANAGE, registry=change.environment.registry.name)
    record(by=by, why=f"withdraw change {change.pk} of {change.environment}")
    _decide(change, EnvironmentChange.WITHDRAWN, by, "")
    _tell(change, "environment.loosening_withdrawn", f"{by.name} withdrew it.", by)


def decision_refusal(environment: str, requested_by: int, by: Actor) -> str:
    """Return why the actor may not decide on a change that this account requested, as sentences; "" if they may."""
    try:
        _require_decider(environment, requested_by, by)
    except SchemadeskError as error:
        return error.message
    return ""


def _require_decider(environment: str, requested_by: int, by: Actor) -> None:
    """Raise NotAllowed or NotSignedIn unless the actor is another person who may review everything there.

    A role that one person alone gave doesn't count, neither the actor's nor the requester's.
    """
    user_id = person(by)
    for action in ("schema.read", REVIEW):
        require(by, action, registry=environment)
    if refused := approval_refusal(by):
        raise NotAllowed(refused)
    if is_same_person(user_id, requested_by):
        why = "" if user_id == requested_by else f" {link_in_words(user_id, requested_by)}"
        raise NotAllowed(
            f"{by.name} requested this with this or a linked account.{why} Another person must decide on it."
        )
    if refused := second_person_refusal(environment, requested_by, by):
        raise NotAllowed(refused)


def _locked(change_id: int, by: Actor, *actions: str) -> EnvironmentChange:
    """Return an open change, after locking its environment. Raises EnvironmentPartNotFound, NotAllowed, WrongState."""
    require_any_permission(by, *actions)
    rows = EnvironmentChange.objects.select_related("environment__registry", "requested_by")
    candidate = rows.filter(pk=change_id).first()
    if candidate is None or not may(by, "schema.read", registry=candidate.environment.registry.name):
        raise EnvironmentPartNotFound(f"Environment change {change_id} not found.", number=change_id)
    if _action(candidate.action)[1] == PEOPLE:
        lock_admins()
    environment = locked_environment(candidate.environment.registry.name, alone="is_closed" in candidate.values)
    change = rows.select_for_update(of=("self",)).get(pk=change_id)
    change.environment = environment
    if change.state != EnvironmentChange.OPEN:
        raise WrongState(f"Change {change_id} is already {change.state}.", state=change.state)
    return change


def _decide(change: EnvironmentChange, state: str, by: Actor, comment: str) -> None:
    change.state, change.decided_by_id, change.decided_at = state, person(by), timezone.now()
    change.comment = readable(comment, "comment", limit=MAX_TEXT) if comment.strip() else ""
    change.save(update_fields=["state", "decided_by", "decided_at", "comment"])


def _action(name: str) -> tuple[Callable[..., object], str, Mapping[str, type]]:
    if name not in ACTIONS:
        raise InvalidInput(f"action must be one of {', '.join(ACTIONS)}.", field="action")
    return ACTIONS[name]


def _place(right: str, environment: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return where the permission is needed: people are managed globally."""
    return {} if right == PEOPLE else {"registry": environment, "subject": str(values.get("subject", ""))}


def _checked(values: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    """Return the arguments, each of the type that its service takes. Raises InvalidInput."""
    for name, value in values.items():
        if name not in types:
            raise InvalidInput(f"values can have {', '.join(types)}, not {str(name)[:40]!r}.", field="values")
        if type(value) is not types[name]:
            raise InvalidInput(f"values.{name} must be of type {types[name].__name__}.", field="values")
        if isinstance(value, str) and ("\0" in value or len(value) > MAX_TEXT):
            raise InvalidInput(f"values.{name} is too long or has a character that can't be stored.", field="values")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise InvalidInput(f"values.{name} must be a list of strings.", field="values")
        if isinstance(value, int) and not 0 <= value < 2**31:
            raise InvalidInput(f"values.{name} is out of range.", field="values")
    if not values:
        raise InvalidInput("values must contain what to change.", field="values")
    return dict(values)


def _tried(row: Environment, run: Callable[..., object], values: Mapping[str, Any], by: Actor) -> str:
    """Make the change and roll it back; returns what it loosens.

    Raises what the service raises, and WrongState if it loosens nothing.
    """
    sentences: list[str] = []
    try:
        with transaction.atomic(), change_guard.passing(row, "tried out", requester=person(by)) as passage:
            run(environment=row.registry.name, by=by, **values)
            sentences = passage.loosenings
            raise _UndoneError
    except _UndoneError:
        pass
    except TypeError as error:
        raise InvalidInput("values must have all arguments of the action.", field="values") from error
    if not sentences:
        raise WrongState(
            f"This doesn't loosen the rules of {row.registry.name}, so no second person is needed. Make the"
            " change directly."
        )
    return sentences[0]


def _digest(action: str, values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([action, values], sort_keys=True).encode()).hexdigest()


def _tell(change: EnvironmentChange, event: str, sentence: str, by: Actor) -> None:
    name = change.environment.registry.name
    notify(
        event=event,
        registry=name,
        subject="",
        text=f"Change {change.pk} of the closed environment {name}: {sentence}",
        url=f"/ui/environments/{name}#changes",
        to=() if by.user_id == change.requested_by_id else (change.requested_by_id,),
        data={"change": change.pk, "state": change.state, "by": by.name},
        by=by.user_id,
    )
