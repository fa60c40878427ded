"""The reviewers of an environment: who could approve, who can become or stay one, and when a review is due.

In a closed environment nobody can add a reviewer, or remove the others, alone. While only the acting person could
decide, there is no second person yet: the first one can be added, and the audit says so. Programs on the server (a
command, a task) are allowed, because they can write the database anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.conf import settings

from registry.access.models import GroupGrant, Ownership, User
from registry.access.roles import ACTIONS, Actor, Grant, RightsChange
from registry.access.selectors import grants_of, ownerships_in
from registry.audit.context import record, recorded
from registry.promotions.environments.change_guard import (
    FIRST_REVIEWER,
    LOOSENS,
    ApprovedChange,
    current_passage,
    require_second_person,
    tell_loosened,
)
from registry.promotions.environments.freezes import Window, windows_by
from registry.promotions.environments.selectors import EnvironmentInfo, ReviewRuleInfo
from registry.promotions.models import Environment, ReviewRule
from registry.promotions.reviews.eligibility import REVIEW, grants_of_roles
from registry.promotions.reviews.linked_accounts import (
    Account,
    accounts_of,
    persons_of,
    reviews_all,
    unconfirmed_reviewers,
)

#: the most people that a refusal names
_NAMED: Final = 5


def keep_reviewers(change: RightsChange, by: Actor) -> None:
    """Raise SecondPersonRequired for a change of rights that needs another person's approval.

    Checks every affected closed environment, the last in promotion order first.
    """
    if by.user_id is None:
        return
    passage = current_passage()
    acting = passage.requester if passage else by.user_id
    for environment in _closed():
        name = environment.registry.name
        others = other_reviewers(name, acting)
        if _needs_approval(change, environment, acting, others):
            if not _approved_there_too(passage, environment):
                require_second_person(environment, by, change.sentence, change.action, change.values)
        elif not others and not change.removes and _widens(change, environment):
            record(by=by, why=f"{LOOSENS}: {FIRST_REVIEWER} {environment}; {recorded()}")
            tell_loosened(environment, f"{by.name}: {change.sentence}.", by=by)


def _needs_approval(change: RightsChange, environment: Environment, acting: int, others: set[int]) -> bool:
    """Return whether one of the other reviewers of the environment has to approve the change.

    If there are none, unlinking accounts that count as one person needs break-glass: otherwise a sole reviewer could
    make their own second person.
    """
    if not others:
        return bool(change.accounts) and _is_person_of_reviewer(change.accounts, environment)
    if change.joined and not other_reviewers(environment.registry.name, acting, joined=change.joined):
        return True
    if change.removes:
        counting = others - unconfirmed_reviewers(environment.registry.name).keys()
        return bool(counting) and counting <= set(change.users) and _reviews(change.grants, environment)
    return _widens(change, environment)


def _approved_there_too(passage: ApprovedChange | None, environment: Environment) -> bool:
    """Return whether the approver of another environment can also decide in this one.

    In a trial, return whether anybody can decide in both.
    """
    if passage is None or passage.environment.pk == environment.pk:
        return False
    able = _deciders(environment.registry.name, passage.requester)
    if passage.approver is not None:
        return passage.approver in able
    return bool(able & _deciders(passage.environment.registry.name, passage.requester))


def _deciders(registry: str, requester: int) -> set[int]:
    return other_reviewers(registry, requester) - unconfirmed_reviewers(registry).keys()


def other_reviewers(registry: str, user_id: int, joined: Sequence[int] = ()) -> set[int]:
    """Return the active accounts of other people who may review everything in the registry.

    `joined` are further accounts that count as one person.
    """
    able = {number for number, grants in grants_of_roles(ACTIONS[REVIEW], ()).items() if reviews_all(grants, registry)}
    accounts = accounts_of({*able, user_id, *joined}, joined)
    persons, active = accounts.persons, {row.number for row in accounts.rows if row.is_active}
    return {number for number in able & active if persons[number] != persons.get(user_id)}


def _closed() -> Sequence[Environment]:
    """Return the closed environments, last in order first, locked so that the answer holds until the change."""
    rows = Environment.objects.filter(is_closed=True).select_related("registry").order_by("pk")
    return sorted(rows.select_for_update(of=("self",)), key=lambda row: -row.position)


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
    grants = [*change.grants, *(Grant(*scope) for scope in through)]
    if any(grant.role in roles and grant.registry in ("", environment.registry.name) for grant in grants):
        return True
    if _reviews(grants, environment) and not _already(change.users, environment):
        return True
    return bool(change.accounts) and _is_person_of_reviewer(change.accounts, environment)


def _is_person_of_reviewer(accounts: Sequence[int], environment: Environment) -> bool:
    """Return whether one of these accounts, or another of the same person, may review something there."""
    able = {n for n, grants in grants_of_roles(ACTIONS[REVIEW], ()).items() if _reviews(grants, environment)}
    persons = persons_of({*able, *accounts})
    theirs = {persons[number] for number in accounts}
    return any(persons[number] in theirs for number in able)


def _reviews(grants: Iterable[Grant], environment: Environment) -> bool:
    """Return whether one of these grants allows reviewing something there."""
    return any(grant.role in ACTIONS[REVIEW] and grant.registry in ("", environment.registry.name) for grant in grants)


def _already(users: Sequence[int], environment: Environment) -> bool:
    """Return whether all of them may review everything there already, with roles that count."""
    name = environment.registry.name
    able = bool(users) and all(reviews_all(grants_of(number), name) for number in users)
    return able and unconfirmed_reviewers(name).keys().isdisjoint(users)


def second_person_refusal(registry: str, first: int, by: Actor) -> str:
    """Return why the actor isn't a second person beside the first account, as sentences; "" if they are.

    They aren't if one of the two has only a role there that one person alone gave (linked_accounts.py).
    """
    accounts = unconfirmed_reviewers(registry)
    number = next((number for number in (by.user_id, first) if number in accounts), None)
    if number is None:
        return ""
    able = User.objects.filter(pk__in=other_reviewers(registry, first) - accounts.keys()).order_by("username")
    names = ", ".join(able.values_list("username", flat=True)[:_NAMED]) or "nobody at present"
    who = by.name if number == by.user_id else str(User.objects.get(pk=number))
    return f"{accounts[number].refusal(who, registry)} Who can decide: {names}."


@dataclass(frozen=True)
class Approvers:
    """The accounts with the right to review everything there, by name, and how many people these are.

    `is_enough` says whether they can approve somebody else's request. Owners, roles and groups in rules depend on a
    request's subjects, and aren't counted here.
    """

    names: tuple[str, ...]
    people: int
    needed: int

    @property
    def is_enough(self) -> bool:
        """Whether there are enough people for the environment's number."""
        return self.people >= self.needed


def approvers_of(environment: EnvironmentInfo) -> Approvers:
    """Return who could approve there now: active, identified, with the right for every subject; three queries.

    Identified means that they have an identity of the issuer, if there is one.
    """
    grants = grants_of_roles(ACTIONS[REVIEW], ())
    able = {number for number, accounts in grants.items() if reviews_all(accounts, environment.name)}
    if environment.is_closed:
        able -= unconfirmed_reviewers(environment.name).keys()
    accounts = accounts_of(able)
    rows = [row for row in accounts.rows if _can_approve(row)]
    return Approvers(
        names=tuple(row.username for row in rows),
        people=len({accounts.persons[row.number] for row in rows}),
        needed=environment.settings["reviews_needed"] or int(not environment.rules),
    )


def shortages(environment: EnvironmentInfo) -> tuple[str, ...]:
    """Return which approvals too few people can give, as sentences: requests that need them can't be approved.

    For a rule about owners, these are the people who own any of its subjects. Whether one subject has enough of them
    depends on the request, which says so itself.
    """
    approvers, name = approvers_of(environment), environment.name
    sentences = []
    if not approvers.is_enough:
        sentences.append(
            f"Requests need {approvers.needed} approvals, but {_few(approvers.people)} may review all of {name}."
        )
    named = [(rule, _people_named(rule, environment)) for rule in environment.rules]
    sentences += [
        f"A rule needs {rule.sentence}, but {_few(people)} can give it."
        for rule, people in named
        if people < rule.count
    ]
    return tuple(sentences)


def _few(people: int) -> str:
    return f"only {people} {'person' if people == 1 else 'people'}" if people else "nobody"


def _people_named(rule: ReviewRuleInfo, environment: EnvironmentInfo) -> int:
    """Return how many people a rule names: by role (for any subjects), by group, or as owners of matching subjects."""
    if rule.reviewers == ReviewRule.OWNERS:
        numbers = _owners_within(rule.subject_pattern, environment.name)
    elif rule.reviewers == ReviewRule.GROUP:
        numbers = set(User.objects.filter(groups__name=rule.name).values_list("pk", flat=True))
    else:
        numbers = {
            number
            for number, grants in grants_of_roles({rule.name}, ()).items()
            if any(grant.role == rule.name and grant.registry in ("", environment.name) for grant in grants)
        }
    if environment.is_closed:
        numbers -= unconfirmed_reviewers(environment.name).keys()
    accounts = accounts_of(numbers)
    return len({accounts.persons[row.number] for row in accounts.rows if _can_approve(row)})


def _owners_within(pattern: str, registry: str) -> set[int]:
    """Return the people who own subjects that the pattern may match, judged by the patterns' prefixes."""
    owned, prefix = ownerships_in(registry), _beginning(pattern)
    beginnings = ((_beginning(there), owner) for there, owner in owned.rules)
    owners = {owner for start, owner in beginnings if start.startswith(prefix) or prefix.startswith(start)}
    return {number for owner in owners for _, number, _ in owned.accounts.get(owner, ())}


def _beginning(pattern: str) -> str:
    """Return the part of a pattern before its first wildcard."""
    return pattern.partition("*")[0].partition("?")[0]


def _can_approve(row: Account) -> bool:
    return row.is_active and (row.is_identified or not settings.OIDC_ISSUER)


#: a review is overdue after this much time on working days
WAITS: Final = timedelta(days=2)
#: a review is also due if a freeze of its target begins within this time
SOON: Final = timedelta(days=2)
_SATURDAY: Final = 5
_DAY: Final = timedelta(days=1)


def worked(since: datetime, until: datetime) -> timedelta:
    """Return the time between two moments, without Saturdays and Sundays (in UTC)."""
    start, end = since.astimezone(UTC), until.astimezone(UTC)
    if end <= start:
        return timedelta()
    weeks = (end - start) // timedelta(weeks=1)
    duration = weeks * timedelta(days=5)
    moment = start + weeks * timedelta(weeks=1)
    while moment < end:
        midnight = datetime.combine(moment.date() + _DAY, datetime.min.time(), tzinfo=UTC)
        if _is_working(moment.date()):
            duration += min(midnight, end) - moment
        moment = midnight
    return duration


def waits_long(since: datetime, now: datetime) -> bool:
    """Return whether a review that was requested at that time is overdue."""
    return worked(since, now) > WAITS


def freezes_soon(targets: Collection[str], now: datetime) -> dict[str, Window]:
    """Environment → the first freeze that begins there soon; one query, none if there is no environment."""
    if not targets:
        return {}
    first: dict[str, Window] = {}
    for target, windows in windows_by("environment__registry__name", targets, now).items():
        coming = [window for window in windows if now < window.starts_at <= now + SOON]
        if coming:
            first[target] = min(coming, key=lambda window: window.starts_at)
    return first


def _is_working(day: date) -> bool:
    return day.weekday() < _SATURDAY
