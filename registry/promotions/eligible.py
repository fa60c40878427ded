"""Who may review a request, what its environment asks for, and what has been given.

An approval is asked for in two ways: so many of those with the right to review (the environment's own number), and so
many of those whom each rule of the environment names for the request's subjects: the owners, the holders of a role, the
members of a group. One approval counts for all that its giver is named in. A rule lets those whom it names review,
with or without the right; the environment's number counts those with the right alone.

A person is an account: through an issuer, issuer and subject have one account, by the database's constraint. The
address of mail is no identity, yet accounts with one address count as one person, as do those of which an administrator
has stated it: none of them reviews what another asked for, and their approvals are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Final

from django.conf import settings
from django.db.models import Q

from registry.access.models import GroupGrant, RoleGrant, User
from registry.access.roles import ACTIONS, Actor, Grant, may
from registry.access.selectors import Owners, grants_of, owners_of_many
from registry.promotions.models import PromotionRequest, Review, ReviewRule
from registry.promotions.persons import persons_of
from registry.promotions.plan import REGISTER, WRITING
from registry.subjects.names import SubjectName

REVIEW: Final = "promotion.review"
_PLACE: Final = ("role", "registry", "subject_pattern")


@dataclass(frozen=True, order=True)
class Reviewer:
    """Somebody who can review a request."""

    username: str
    user_id: int


@dataclass(frozen=True)
class RuleState:
    """A rule that a request comes under: how many approvals it asks for, how many there are, and of whom.

    `can` counts the people who have given theirs or could; `who` are their accounts.
    """

    sentence: str
    needed: int
    given: int
    can: int = 0
    who: tuple[Reviewer, ...] = ()
    given_by: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether enough of them have approved."""
        return self.given >= self.needed


@dataclass(frozen=True)
class Needed:
    """What a request needs: each rule with what was given, who can still review it, and who asks for changes.

    `nobody_can` says that, and why, no number of clicks can approve it; the request stays, for that can be cured.
    """

    rules: tuple[RuleState, ...] = ()
    eligible: tuple[Reviewer, ...] = ()
    changes_by: tuple[str, ...] = ()
    nobody_can: str = ""
    #: all whom the request's rules name, the requester and those who have reviewed included
    named_ids: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def is_met(self) -> bool:
        """Whether it is approved: every rule is met, and nobody asks for changes."""
        return not self.changes_by and all(rule.is_met for rule in self.rules)

    @property
    def missing(self) -> str:
        """What is missing, as sentences; empty where it is met."""
        found = [f"{rule.given} of {rule.needed}: {rule.sentence}." for rule in self.rules if not rule.is_met]
        found += [f"{name} asks for changes." for name in self.changes_by]
        return " ".join(found)


def needed_for(request: PromotionRequest) -> Needed:
    """What one request needs, in a constant number of queries."""
    return needed_for_many([request])[request.pk]


def needed_for_many(requests: Sequence[PromotionRequest]) -> dict[int, Needed]:
    """The same for many, by their numbers; the number of queries grows with the environments alone."""
    known = _Known(requests)
    return {request.pk: known.needed(request) for request in requests}


def written_subjects(request: PromotionRequest) -> list[str]:
    """The qualified names of what the request's plan writes to, or of what it asks for where it writes nothing."""
    named = dict.fromkeys(
        str(step["subject"]) for step in request.plan["steps"] if step.get("kind", REGISTER) in WRITING
    )
    return list(named) or [SubjectName(request.context_name, request.subject_name).qualified]


def is_breaking(request: PromotionRequest) -> bool:
    """Whether the request's plan breaks its target's level, or would at the level BACKWARD where the target has none."""
    return bool(request.plan.get("breaking"))


class _Known:
    """What is read once for many requests: rules, who has which role, members of groups, owners, reviews."""

    def __init__(self, requests: Sequence[PromotionRequest]) -> None:
        targets = {request.target_id for request in requests}
        self.rules = _rules_of(targets)
        all_rules = [rule for rules in self.rules.values() for rule in rules]
        roles = {rule.name for rule in all_rules if rule.reviewers == ReviewRule.ROLE} | ACTIONS[REVIEW]
        self.members = _members({rule.name for rule in all_rules if rule.reviewers == ReviewRule.GROUP})
        self.owners = _owners(requests, self.rules)
        named = {number for group in self.members.values() for number in group}
        named |= {owner.user_id for found in self.owners.values() for owner in found.people}
        self.grants = grants_of_roles(roles, named)
        self._read_people({*named, *self.grants, *(request.requested_by_id for request in requests)})
        self.covering: dict[tuple[str, str], tuple[set[int], set[int]]] = {}
        self.reviews: dict[int, list[Review]] = {}
        for review in Review.objects.filter(request__in=requests).select_related("reviewer"):
            self.reviews.setdefault(review.request_id, []).append(review)

    def _read_people(self, numbers: Iterable[int]) -> None:
        """Names, who is active, who is known by the issuer, and which accounts are one person's."""
        self.people: dict[int, Reviewer] = {}
        self.active: set[int] = set()
        self.identified: set[int] = set()
        addresses: dict[int, str] = {}
        # the identities (issuer, subject) stand in allauth's table, which this package knows by name alone
        rows = User.objects.filter(pk__in=numbers).order_by("username")
        for number, username, email, active, identity in rows.values_list(
            "pk", "username", "email", "is_active", "socialaccount"
        ):
            self.people[number] = Reviewer(username, number)
            addresses[number] = email
            self.active |= {number} if active else set()
            self.identified |= {number} if identity is not None else set()
        self.persons = persons_of(addresses)

    def needed(self, request: PromotionRequest) -> Needed:
        """What one of them needs."""
        subjects, registry = written_subjects(request), request.target.registry.name
        counting = [review for review in self.reviews.get(request.pk, ()) if review.plan_hash == request.plan_hash]
        approved = {r.reviewer_id: r.reviewer.get_username() for r in counting if r.verdict == Review.APPROVE}
        named = self._who_may(REVIEW, registry, subjects) & self.active
        able = self._able(request, registry, subjects)
        asked = [(_count_sentence(request), request.target.reviews_needed, set(named))]
        for rule in self.rules.get(request.target_id, ()):
            if rule.verdict == ReviewRule.ANY or is_breaking(request):
                asked += [(sentence, rule.count, who) for sentence, who in self._asked(rule, registry, subjects)]
        states = [self._state(sentence, count, who, approved, able) for sentence, count, who in asked if count]
        named.update(*(who for _, _, who in asked))
        reviewed = {review.reviewer_id for review in counting if review.verdict != Review.CHANGES}
        return Needed(
            rules=tuple(states),
            eligible=self._in_order((named & able) - reviewed),
            changes_by=tuple(r.reviewer.get_username() for r in counting if r.verdict == Review.CHANGES),
            nobody_can=_nobody_can(states, request),
            named_ids=frozenset(named),
        )

    def _asked(self, rule: ReviewRule, registry: str, subjects: Sequence[str]) -> Iterable[tuple[str, set[int]]]:
        """The rule for the subjects that it matches: of owners once for each group of owners, else once."""
        matching = [name for name in subjects if fnmatchcase(name, rule.subject_pattern)]
        if not matching:
            return
        if rule.reviewers == ReviewRule.OWNERS:
            by_owners: dict[frozenset[int], list[str]] = {}
            for name in matching:
                by_owners.setdefault(self.owners[registry, name].user_ids, []).append(name)
            for people, names in by_owners.items():
                yield f"{rule.count} of the owners of {_some(names)}", set(people) & self.active
        elif rule.reviewers == ReviewRule.ROLE:
            found = {n for n, grants in self.grants.items() if _has_role(grants, rule.name, registry, matching)}
            yield f"{rule.count} with the role {rule.name} for {_some(matching)}", found & self.active
        else:
            yield f"{rule.count} of the group {rule.name} for {_some(matching)}", self.members.get(rule.name, set())

    def _state(
        self, sentence: str, needed: int, people: set[int], approved: Mapping[int, str], able: set[int]
    ) -> RuleState:
        given = people & approved.keys()
        able = (people & able) | given
        return RuleState(
            sentence=sentence,
            needed=needed,
            given=self._count(given),
            can=self._count(able),
            who=self._in_order(able),
            given_by=tuple(sorted(approved[number] for number in given)),
        )

    def _count(self, numbers: set[int]) -> int:
        """How many people they are; an account that is gone is one of its own."""
        return len({self.persons.get(number, number) for number in numbers})

    def _in_order(self, numbers: set[int]) -> tuple[Reviewer, ...]:
        return tuple(reviewer for number, reviewer in self.people.items() if number in numbers)

    def _able(self, request: PromotionRequest, registry: str, subjects: Sequence[str]) -> set[int]:
        """Those who could approve if they are named: may read it, didn't ask for it, are known by the issuer."""
        found = self._who_may("schema.read", registry, subjects)
        if settings.OIDC_ISSUER:
            found = found & self.identified
        if request.target.own_approval_allowed:
            return found
        asked = self.persons[request.requested_by_id]
        return {number for number in found if self.persons[number] != asked}

    def _who_may(self, action: str, registry: str, subjects: Sequence[str]) -> set[int]:
        """Those with the right for all the subjects; most have it for every subject, so the rest alone is asked."""
        if (action, registry) not in self.covering:
            everywhere = {n for n, grants in self.grants.items() if _may(action, grants, registry, [""])}
            self.covering[action, registry] = everywhere, self.grants.keys() - everywhere
        everywhere, others = self.covering[action, registry]
        return everywhere | {n for n in others if _may(action, self.grants[n], registry, subjects)}


class Reviewing:
    """Which of many requests somebody can review, without working out what each of them needs."""

    def __init__(
        self,
        user_id: int,
        requests: Sequence[PromotionRequest] = (),
        *,
        requesters: Mapping[int, str] | None = None,
        grants: Sequence[Grant] | None = None,
    ) -> None:
        """`requesters` are other accounts with their addresses of mail, `grants` this person's, where they are known."""
        self.user_id = user_id
        self.rules = _rules_of({request.target_id for request in requests})
        self.owners = _owners(requests, self.rules)
        self.grants = grants_of(user_id) if grants is None else grants
        mine = list(User.objects.filter(pk=user_id).values_list("pk", "email", "is_active", "socialaccount"))
        self.may_approve = any(
            active and (identity is not None or not settings.OIDC_ISSUER) for _, _, active, identity in mine
        )
        self.addresses = {row.requested_by_id: row.requested_by.email for row in requests}
        self.addresses |= {**(requesters or {}), **{number: email for number, email, _, _ in mine}}

    @cached_property
    def groups(self) -> set[str]:
        """The names of this person's groups."""
        return set(User.objects.filter(pk=self.user_id).values_list("groups__name", flat=True))

    @cached_property
    def persons(self) -> dict[int, int]:
        """Which of the accounts are one person's."""
        return persons_of(self.addresses)

    def can(self, request: PromotionRequest) -> bool:
        """Whether this person can review it: by right, or by a rule; the same answer as `Needed.eligible` gives."""
        subjects, registry = written_subjects(request), request.target.registry.name
        if not self.may_approve or not _may("schema.read", self.grants, registry, subjects):
            return False
        if not request.target.own_approval_allowed and self._asked_for(request):
            return False
        if _may(REVIEW, self.grants, registry, subjects):
            return True
        return any(self._is_named(rule, request, registry, subjects) for rule in self.rules.get(request.target_id, ()))

    def reviews_all_of(self, registry: str) -> bool:
        """Whether they have the right to read and review whatever goes there."""
        return all(_may(action, self.grants, registry, [""]) for action in ("schema.read", REVIEW))

    def may_review_in(self, registry: str) -> bool:
        """Whether they have the right to review some of it."""
        return any(grant.role in ACTIONS[REVIEW] and grant.registry in ("", registry) for grant in self.grants)

    def is_same(self, requester: int) -> bool:
        """Whether one of the requesters is this person, by whichever account."""
        return self.persons[requester] == self.persons.get(self.user_id)

    def _asked_for(self, request: PromotionRequest) -> bool:
        return self.is_same(request.requested_by_id)

    def _is_named(self, rule: ReviewRule, request: PromotionRequest, registry: str, subjects: Sequence[str]) -> bool:
        matching = [name for name in subjects if fnmatchcase(name, rule.subject_pattern)]
        if not matching or (rule.verdict == ReviewRule.BREAKING and not is_breaking(request)):
            return False
        if rule.reviewers == ReviewRule.OWNERS:
            return any(self.user_id in self.owners[registry, name].user_ids for name in matching)
        if rule.reviewers == ReviewRule.ROLE:
            return _has_role(self.grants, rule.name, registry, matching)
        return rule.name in self.groups


def _rules_of(environments: Iterable[int]) -> dict[int, list[ReviewRule]]:
    found: dict[int, list[ReviewRule]] = {}
    for rule in ReviewRule.objects.filter(environment__in=environments):
        found.setdefault(rule.environment_id, []).append(rule)
    return found


def _owners(
    requests: Sequence[PromotionRequest], rules: Mapping[int, Sequence[ReviewRule]]
) -> dict[tuple[str, str], Owners]:
    """The owners of what is written where a rule asks for them, by registry and subject; two queries a registry."""
    wanted: dict[str, set[str]] = {}
    for request in requests:
        if any(rule.reviewers == ReviewRule.OWNERS for rule in rules.get(request.target_id, ())):
            wanted.setdefault(request.target.registry.name, set()).update(written_subjects(request))
    return {
        (registry, subject): owners
        for registry, subjects in wanted.items()
        for subject, owners in owners_of_many(registry, sorted(subjects)).items()
    }


def _nobody_can(states: Sequence[RuleState], request: PromotionRequest) -> str:
    short = next((state for state in states if state.can < state.needed), None)
    if short is None:
        return ""
    there = f"only {short.can} can" if short.can else "nobody can"
    others = "" if request.target.own_approval_allowed else ", the requester not counted"
    return (
        f"Nobody can approve this as it is: it takes {short.sentence}, and {there}{others}."
        f" Give somebody the role, add an owner or a member, or change the rules of {request.target}."
    )


def _count_sentence(request: PromotionRequest) -> str:
    number = request.target.reviews_needed
    return f"{number} with the right to review in {request.target}"


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _may(action: str, grants: Sequence[Grant], registry: str, subjects: Iterable[str]) -> bool:
    somebody = Actor("somebody", "task", grants=tuple(grants))
    return all(may(somebody, action, registry=registry, subject=subject) for subject in subjects)


def _has_role(grants: Sequence[Grant], role: str, registry: str, subjects: Iterable[str]) -> bool:
    there = [grant for grant in grants if grant.role == role and grant.registry in ("", registry)]
    return all(any(fnmatchcase(subject, grant.subject_pattern) for grant in there) for subject in subjects)


def grants_of_roles(roles: Iterable[str], people: Iterable[int]) -> dict[int, list[Grant]]:
    """All grants of these roles, and all of these people, their own and through groups, by person; two queries."""
    wanted, numbers = Q(role__in=sorted(roles)), sorted(people)
    own = RoleGrant.objects.filter(wanted | Q(user__in=numbers)).values_list("user", *_PLACE)
    through = GroupGrant.objects.filter(wanted | Q(group__user__in=numbers), group__user__isnull=False)
    found: dict[int, list[Grant]] = {}
    for number, *place in (*own, *through.distinct().values_list("group__user", *_PLACE)):
        found.setdefault(number, []).append(Grant(*place))
    return found


def _members(groups: set[str]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    rows = User.objects.filter(groups__name__in=groups, is_active=True) if groups else User.objects.none()
    for name, number in rows.values_list("groups__name", "pk"):
        found.setdefault(name, set()).add(number)
    return found
