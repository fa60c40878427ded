"""The environments: their order, and their rules for what comes into them."""

from __future__ import annotations

from typing import Any, Final

from django.db import IntegrityError, transaction

from registry.access.patterns import checked_pattern
from registry.access.roles import ROLES, Actor, may_somewhere, require
from registry.audit.services import record
from registry.errors import EnvironmentPartNotFound, InvalidInput, NotSignedIn, RegistryNotFound, WrongState
from registry.promotions.environment_rules import loosened
from registry.promotions.evidence_rule import MAX_HOURS
from registry.promotions.models import Environment, ReviewRule
from registry.promotions.second_person import require_second_person
from registry.subjects.services.locks import lock_policy

MANAGE: Final = "registry.manage"
MAX_TEXT: Final = 2000
MAX_REVIEWS: Final = 20
MAX_PATTERN: Final = 450  # characters: it stands in an index, whose rows have some 2,700 bytes


@transaction.atomic
def ensure_environment(*, registry_id: int, position: int, by: Actor, is_closed: bool = False) -> bool:
    """Give a registry its place in the promotion order; False where it has one, which stays as it is."""
    require(by, MANAGE)
    record(by=by, why="make environment")
    _, created = Environment.objects.get_or_create(
        registry_id=registry_id, defaults={"position": position, "is_closed": is_closed}
    )
    return created


@transaction.atomic
def change_environment(
    *,
    name: str,
    by: Actor,
    is_closed: bool | None = None,
    reviews_needed: int | None = None,
    own_approval_allowed: bool | None = None,
    owners_only: bool | None = None,
    drift_blocks: bool | None = None,
    threads_block: bool | None = None,
    clients_block: bool | None = None,
    max_evidence_hours: int | None = None,
    evidence_required: bool | None = None,
) -> None:
    """Change the rules that are given; what is None stays. `max_evidence_hours` 0 takes evidence of any age.

    What loosens a closed environment takes a second person or break-glass (registry/promotions/environment_rules.py);
    nothing of the change is made without. Closing waits for the changes that run in the registry.
    Raises RegistryNotFound, NotAllowed, InvalidInput, SecondPersonRequired.
    """
    require(by, MANAGE, registry=name)
    row = locked_environment(name, alone=is_closed is not None)
    given: dict[str, Any] = {
        "is_closed": is_closed,
        "reviews_needed": reviews_needed,
        "own_approval_allowed": own_approval_allowed,
        "owners_only": owners_only,
        "drift_blocks": drift_blocks,
        "threads_block": threads_block,
        "clients_block": clients_block,
        "max_evidence_hours": max_evidence_hours,
        "evidence_required": evidence_required,
    }
    changed = {field: value for field, value in given.items() if value is not None and value != getattr(row, field)}
    if not changed:
        return
    said = ", ".join(f"{field} {getattr(row, field)} → {value}" for field, value in changed.items())
    record(by=by, why=f"change the environment {name}: {said}")
    was_closed, before = row.is_closed, {field: getattr(row, field) for field in changed}
    for field, value in changed.items():
        setattr(row, field, value)
    if not 0 <= row.reviews_needed <= MAX_REVIEWS:
        raise InvalidInput(f"reviews_needed is a number from 0 to {MAX_REVIEWS}.", field="reviews_needed")
    if not 0 <= row.max_evidence_hours <= MAX_HOURS:
        said = f"max_evidence_hours is a number from 1 to {MAX_HOURS}, or 0 for evidence of any age."
        raise InvalidInput(said, field="max_evidence_hours")
    if row.is_closed and not row.reviews_needed:
        raise InvalidInput(f"{name} is closed, so a release takes one review at least.", field="reviews_needed")
    if was_closed and loosened(before, changed):
        require_second_person(row, by, f"change the rules of {name} ({said})", "change", changed)
    row.save(update_fields=list(changed))


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
    """Ask for so many approvals of the owners, of a role or of a group, beside the environment's count; gives its number.

    Raises RegistryNotFound, NotAllowed, InvalidInput, and WrongState for a rule that is there.
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
        raise InvalidInput(f"A rule asks for 1 to {MAX_REVIEWS} approvals.", field="count")
    record(by=by, why=f"ask for {count} of {values['name'] or reviewers} for {subject_pattern} in {environment}")
    try:
        with transaction.atomic():
            return ReviewRule.objects.create(environment=row, **values).pk
    except IntegrityError as error:
        raise WrongState(f"{environment} has this rule already; remove it to ask for another number.") from error


def _reviewers_name(reviewers: str, name: str) -> str:
    if reviewers == ReviewRule.OWNERS:
        if name:
            raise InvalidInput("The owners are those of the subject: such a rule has no name.", field="name")
        return ""
    if reviewers == ReviewRule.ROLE:
        return one_of(name, "name", ROLES)
    return readable(name, "name", limit=150)


@transaction.atomic
def remove_review_rule(*, rule_id: int, by: Actor) -> None:
    """Ask for it no longer. Raises EnvironmentPartNotFound, NotAllowed, SecondPersonRequired."""
    row = environment_part(ReviewRule, rule_id, "review rule", by)
    require(by, MANAGE, registry=row.environment.registry.name)
    record(by=by, why=f"remove a review rule of {row.environment}: {row}")
    if row.environment.is_closed:
        sentence = f"remove the review rule of {row.environment}: {row}"
        require_second_person(row.environment, by, sentence, "remove_review_rule", {"rule_id": rule_id})
    row.delete()


def locked_environment(name: str, *, alone: bool = False) -> Environment:
    """The environment of that name, locked until the transaction ends; `alone`: without anybody who changes its registry.

    The registry's policy lock comes first, as everywhere. Raises RegistryNotFound.
    """
    rows = Environment.objects.select_related("registry").filter(registry__name=name)
    found = rows.first()
    if found is not None and alone:
        lock_policy(found.registry, exclusive=True)
    row = rows.select_for_update(of=("self",)).first()
    if row is None:
        raise RegistryNotFound(f"'{name[:80]}' is not an environment.", registry=name[:255])
    return row


def readable(text: str, field: str, *, limit: int = MAX_TEXT) -> str:
    """The text without the space around it. Raises InvalidInput for one that is empty, too long or can't be stored."""
    said = text.strip()
    if not said or len(said) > limit:
        raise InvalidInput(f"{field} takes 1 to {limit} characters.", field=field)
    if any(char == "\x00" or "\ud800" <= char <= "\udfff" for char in said):
        raise InvalidInput(f"{field} has a character that can't be stored.", field=field)
    return said


def person(by: Actor) -> int:
    """The account that acts. Raises NotSignedIn for a program without one."""
    if by.user_id is None:
        raise NotSignedIn("This needs a person: sign in.")
    return by.user_id


def refuse_strangers(by: Actor, *actions: str) -> None:
    """Refuse whoever may none of it anywhere, before a number tells whether it is taken. Raises as `require` does."""
    if not any(may_somewhere(by, action) for action in actions):
        require(by, actions[0])


def one_of(value: str, field: str, known: tuple[str, ...]) -> str:
    """The value, if it is one that is known. Raises InvalidInput."""
    if value not in known:
        raise InvalidInput(f"{field} is one of {', '.join(known)}.", field=field)
    return value


def environment_part(model: type[Any], number: int, what: str, by: Actor) -> Any:
    """A row that hangs on an environment, locked. Raises EnvironmentPartNotFound, NotSignedIn, NotAllowed."""
    refuse_strangers(by, MANAGE)
    rows = model.objects.select_related("environment__registry").filter(pk=number)
    found = rows.first()
    if found is not None:
        # whether it is closed is asked next, and holds until the end
        environment = locked_environment(found.environment.registry.name)
        found = rows.select_for_update(of=("self",)).first()
    if found is None:
        raise EnvironmentPartNotFound(f"There is no {what} {number}.", number=number)
    found.environment = environment
    return found
