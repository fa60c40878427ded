"""Keeps who may review for closed environments: one person alone makes nobody a reviewer there, nor removes the others.

Where nobody but the acting person could decide, there is no second person yet: whoever becomes the first one is let in,
which the audit says. What a program on the server does (a command, a task) isn't kept: it has the database anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from registry.access.guard import RightsChange
from registry.access.models import GroupGrant, Ownership, User
from registry.access.roles import ACTIONS, Actor, Grant, may
from registry.access.selectors import grants_of
from registry.audit.services import record, recorded
from registry.promotions.eligible import REVIEW, grants_of_roles
from registry.promotions.models import Environment, ReviewRule
from registry.promotions.persons import persons_of
from registry.promotions.second_person import LOOSENS, require_second_person, tell_loosened

KEEPER: Final = "reviewers of closed environments"


def keep_reviewers(change: RightsChange, by: Actor) -> None:
    """Raise SecondPersonRequired for a change of rights that takes another person's approval.

    The furthest closed environment that it concerns is the one whose reviewers decide.
    """
    if by.user_id is None:
        return
    for environment in _closed():
        others = other_reviewers(environment, by.user_id)
        if change.joined and others and not other_reviewers(environment, by.user_id, joined=change.joined):
            _require(environment, by, change)
            return
        if change.removes:
            if others and others <= set(change.users) and _reviews(change.grants, environment):
                _require(environment, by, change)
                return
        elif _widens(change, environment):
            if others:
                _require(environment, by, change)
            else:
                record(by=by, why=f"{LOOSENS}: the first other reviewer of {environment}; {recorded()}")
                tell_loosened(environment, f"{by.name}: {change.sentence}.", by=by)
            return


def other_reviewers(environment: Environment, user_id: int, joined: Sequence[int] = ()) -> set[int]:
    """The active accounts of other people than this one who may review all that goes to the environment.

    `joined` are accounts that count as one person besides.
    """
    name = environment.registry.name
    able = {number for number, grants in grants_of_roles(ACTIONS[REVIEW], ()).items() if _may_review(grants, name)}
    rows = User.objects.filter(pk__in={*able, user_id, *joined}).values_list("pk", "email", "is_active")
    persons = persons_of({number: email for number, email, _ in rows}, joined)
    return {
        number for number, _, active in rows if active and number in able and persons[number] != persons.get(user_id)
    }


def _closed() -> Sequence[Environment]:
    """The closed environments, the furthest one first, locked: what is asked of them holds until the change is made."""
    rows = Environment.objects.filter(is_closed=True).select_related("registry").order_by("pk")
    return sorted(rows.select_for_update(of=("self",)), key=lambda row: -row.position)


def _require(environment: Environment, by: Actor, change: RightsChange) -> None:
    require_second_person(environment, by, change.sentence, change.action, change.values)


def _widens(change: RightsChange, environment: Environment) -> bool:
    rules = list(environment.review_rules.all())
    roles = {rule.name for rule in rules if rule.reviewers == ReviewRule.ROLE}
    groups = {rule.name for rule in rules if rule.reviewers == ReviewRule.GROUP}
    owners = any(rule.reviewers == ReviewRule.OWNERS for rule in rules)
    if change.owner and owners:
        return True
    if groups & set(change.groups) or (owners and Ownership.objects.filter(group__name__in=change.groups).exists()):
        return True
    through = GroupGrant.objects.filter(group__name__in=change.groups).values_list(
        "role", "registry", "subject_pattern"
    )
    given = [*change.grants, *(Grant(*place) for place in through)]
    if any(grant.role in roles and grant.registry in ("", environment.registry.name) for grant in given):
        return True
    if _reviews(given, environment) and not _already(change.users, environment):
        return True
    return bool(change.accounts) and any(_reviews(grants_of(number), environment) for number in change.accounts)


def _reviews(grants: Iterable[Grant], environment: Environment) -> bool:
    """Whether one of these grants lets review something there."""
    return any(grant.role in ACTIONS[REVIEW] and grant.registry in ("", environment.registry.name) for grant in grants)


def _already(users: Sequence[int], environment: Environment) -> bool:
    """Whether all of them may review everything there without the change."""
    return bool(users) and all(_may_review(grants_of(number), environment.registry.name) for number in users)


def _may_review(grants: Sequence[Grant], registry: str) -> bool:
    somebody = Actor("somebody", "task", grants=tuple(grants))
    return all(may(somebody, action, registry=registry) for action in ("schema.read", REVIEW))
