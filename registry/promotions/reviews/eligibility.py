"""Who may review a request, how many approvals its environment needs, which it has, and what an approval overrides.

A request needs a number of approvals by people with the right to review (the environment's own number), and for each
rule of the environment a number by the people it names for the request's subjects: owners, holders of a role, members
of a group. One approval counts for every rule that names its author. People named by a rule may review with or without
the right; the environment's number counts only those with the right.

A person is an account: a database constraint allows one account per issuer and subject. An e-mail address isn't an
identity, but accounts with the same address count as one person. So do accounts that an admin linked, and in
closed environments an added account and its maker's (linked_accounts.py): none of them reviews what another requested,
and their approvals count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q
from django.db.models.functions import JSONObject

from registry.access.models import GroupGrant, RoleGrant, User
from registry.access.name_patterns import any_allows, name_pattern
from registry.access.roles import ACTIONS, Actor, Grant, may
from registry.access.selectors import Owners, grants_of, owners_of_many
from registry.promotions.models import PromotionRequest, Review, ReviewRule
from registry.promotions.plan.types import REGISTER, WRITING
from registry.promotions.reviews.linked_accounts import UnconfirmedAccount, accounts_of, reviews_all
from registry.subjects.versions.qualified_names import SubjectName

REVIEW: Final = "promotion.review"
_PLACE: Final = ("role", "registry", "subject_pattern")
_RULE: Final = ("subject_pattern", "verdict", "reviewers", "name", "count")


@dataclass(frozen=True, order=True)
class Reviewer:
    """Somebody who can review a request."""

    username: str
    user_id: int


@dataclass(frozen=True)
class RuleState:
    """A rule that applies to a request: how many approvals it needs, how many there are, and from whom.

    `can` counts the people who have approved or could; `who` are their accounts.
    """

    sentence: str
    needed: int
    given: int
    can: int = 0
    who: tuple[Reviewer, ...] = ()
    given_by: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether enough people have approved."""
        return self.given >= self.needed


@dataclass(frozen=True)
class ReviewNeeds:
    """What a request needs: each rule with its approvals, who can still review, and who requests changes.

    `nobody_can` says why the current people can never approve it; the request stays open, because that can be fixed.
    """

    rules: tuple[RuleState, ...] = ()
    eligible: tuple[Reviewer, ...] = ()
    changes_by: tuple[str, ...] = ()
    nobody_can: str = ""
    #: the accounts whose role there doesn't count, because one person alone gave it
    unconfirmed: Mapping[int, UnconfirmedAccount] = field(default_factory=dict, repr=False)
    #: everybody named by the request's rules, including the requester and those who have reviewed
    named_ids: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def is_met(self) -> bool:
        """Whether it is approved: every rule is met, and nobody requests changes."""
        return not self.changes_by and all(rule.is_met for rule in self.rules)

    @property
    def missing(self) -> str:
        """What is missing, as sentences; empty if nothing is."""
        sentences = [f"Needs {rule.sentence} ({rule.given} so far)." for rule in self.rules if not rule.is_met]
        sentences += [f"{name} requested changes." for name in self.changes_by]
        return " ".join(sentences)


def needed_for(request: PromotionRequest) -> ReviewNeeds:
    """Return what one request needs, in a constant number of queries."""
    return needed_for_many([request])[request.pk]


def needed_for_many(
    requests: Sequence[PromotionRequest],
    rules: dict[int, list[ReviewRule]] | None = None,
    reviews: Iterable[Review] | None = None,
) -> dict[int, ReviewNeeds]:
    """Return the same for many requests, by number; the number of queries depends only on the environments.

    `rules` are those of their environments, and `reviews` those of the requests with their reviewers, if the caller has
    just read them.
    """
    people = _ReviewFacts(requests, rules, reviews)
    return {request.pk: people.needed(request) for request in requests}


def written_subjects(request: PromotionRequest) -> list[str]:
    """Return the qualified names of the subjects that the request's plan writes, or requests if it writes none."""
    named = dict.fromkeys(
        str(step["subject"]) for step in request.plan["steps"] if step.get("kind", REGISTER) in WRITING
    )
    return list(named) or [SubjectName(request.context_name, request.subject_name).qualified]


def is_breaking(request: PromotionRequest) -> bool:
    """Return whether the request's plan breaks its target's level, or BACKWARD if the target's level is NONE."""
    return bool(request.plan.get("breaking"))


class _ReviewFacts:
    """What is read once for many requests: rules, grants, members of groups, owners, reviews."""

    def __init__(
        self,
        requests: Sequence[PromotionRequest],
        rules: dict[int, list[ReviewRule]] | None,
        reviews: Iterable[Review] | None,
    ) -> None:
        self.rules = _rules_of({request.target_id for request in requests}) if rules is None else rules
        all_rules = [rule for rules in self.rules.values() for rule in rules]
        roles = {rule.name for rule in all_rules if rule.reviewers == ReviewRule.ROLE} | ACTIONS[REVIEW]
        self.members = _members({rule.name for rule in all_rules if rule.reviewers == ReviewRule.GROUP})
        self.owners = _owners(requests, self.rules)
        named = {number for group in self.members.values() for number in group}
        named |= {owner.user_id for owner_set in self.owners.values() for owner in owner_set.people}
        self.grants = grants_of_roles(roles, named)
        accounts = accounts_of({*named, *self.grants, *(request.requested_by_id for request in requests)})
        self.people = {row.number: Reviewer(row.username, row.number) for row in accounts.rows}
        self.active = {row.number for row in accounts.rows if row.is_active}
        self.identified = {row.number for row in accounts.rows if row.is_identified}
        self.accounts, self.unconfirmed = accounts, accounts.unconfirmed()
        self.covering: dict[tuple[str, str], tuple[set[int], set[int]]] = {}
        self.reviews: dict[int, list[Review]] = {}
        if reviews is None:
            reviews = Review.objects.filter(request__in=requests).select_related("reviewer")
        for review in reviews:
            self.reviews.setdefault(review.request_id, []).append(review)

    def needed(self, request: PromotionRequest) -> ReviewNeeds:
        """Return what one request needs."""
        subjects, registry = written_subjects(request), request.target.registry.name
        counting = [review for review in self.reviews.get(request.pk, ()) if review.plan_hash == request.plan_hash]
        approved = {r.reviewer_id: r.reviewer.get_username() for r in counting if r.verdict == Review.APPROVE}
        named = self._who_may(REVIEW, registry, subjects) & self.active
        able = self._able(request, registry, subjects)
        demands = [
            (sentence, rule.count, who)
            for rule in self.rules.get(request.target_id, ())
            if rule.verdict == ReviewRule.ANY or is_breaking(request)
            for sentence, who in self._rule_parts(rule, registry, subjects)
        ]
        # Without any rule one person approves: the absence of rules is no approval.
        least = request.target.reviews_needed or int(not demands)
        demands = [(_count_sentence(request, least), least, set(named)), *demands]
        barred = barred_in(request, self.unconfirmed)
        barred = {number: barred[number] for number in barred.keys() & set().union(*(who for _, _, who in demands))}
        demands = [(sentence, count, who - barred.keys()) for sentence, count, who in demands]
        persons = self.accounts.persons_in(is_closed=request.target.is_closed)
        states = [
            self._state(sentence, count, who, approved, able, persons) for sentence, count, who in demands if count
        ]
        named = set().union(*(who for _, _, who in demands))
        reviewed = {review.reviewer_id for review in counting if review.verdict != Review.CHANGES}
        return ReviewNeeds(
            rules=tuple(states),
            eligible=self._in_order((named & able) - reviewed),
            changes_by=tuple(r.reviewer.get_username() for r in counting if r.verdict == Review.CHANGES),
            nobody_can=_nobody_can(states, request),
            unconfirmed=barred,
            named_ids=frozenset(named),
        )

    def _rule_parts(self, rule: ReviewRule, registry: str, subjects: Sequence[str]) -> Iterable[tuple[str, set[int]]]:
        """Return the rule for the subjects that it matches: once for each distinct set of owners, else once."""
        matching = [name for name in subjects if name_pattern(rule.subject_pattern).allows(name)]
        if not matching:
            return
        if rule.reviewers == ReviewRule.OWNERS:
            by_owners: dict[frozenset[int], list[str]] = {}
            for name in matching:
                by_owners.setdefault(self.owners[registry, name].user_ids, []).append(name)
            for people, names in by_owners.items():
                yield f"{_approvals(rule.count)} from the owners of {_some(names)}", set(people) & self.active
        elif rule.reviewers == ReviewRule.ROLE:
            holders = {n for n, grants in self.grants.items() if _has_role(grants, rule.name, registry, matching)}
            yield f"{_approvals(rule.count)} from the {rule.name} role for {_some(matching)}", holders & self.active
        else:
            yield (
                f"{_approvals(rule.count)} from the group {rule.name} for {_some(matching)}",
                self.members.get(rule.name, set()),
            )

    def _state(
        self,
        sentence: str,
        needed: int,
        people: set[int],
        approved: Mapping[int, str],
        able: set[int],
        persons: Mapping[int, int],
    ) -> RuleState:
        approvers = people & approved.keys()
        able = (people & able) | approvers
        return RuleState(
            sentence=sentence,
            needed=needed,
            given=self._count(approvers, persons),
            can=self._count(able, persons),
            who=self._in_order(able),
            given_by=tuple(sorted(approved[number] for number in approvers)),
        )

    @staticmethod
    def _count(numbers: set[int], persons: Mapping[int, int]) -> int:
        """Return how many people the accounts belong to; a deleted account counts as one."""
        return len({persons.get(number, number) for number in numbers})

    def _in_order(self, numbers: set[int]) -> tuple[Reviewer, ...]:
        return tuple(reviewer for number, reviewer in self.people.items() if number in numbers)

    def _able(self, request: PromotionRequest, registry: str, subjects: Sequence[str]) -> set[int]:
        """Return the people who could approve if named: they may read it, didn't request it, and are identified.

        Identified means that they have an identity of the issuer, if there is one.
        """
        people = self._who_may("schema.read", registry, subjects)
        if settings.OIDC_ISSUER:
            people = people & self.identified
        if request.target.own_approval_allowed:
            return people
        persons = self.accounts.persons_in(is_closed=request.target.is_closed)
        return {number for number in people if persons[number] != persons[request.requested_by_id]}

    def _who_may(self, action: str, registry: str, subjects: Sequence[str]) -> set[int]:
        """Return the people with the right for all subjects; checks by subject only those without it everywhere."""
        if (action, registry) not in self.covering:
            everywhere = {n for n, grants in self.grants.items() if _may(action, grants, registry, [""])}
            self.covering[action, registry] = everywhere, self.grants.keys() - everywhere
        everywhere, others = self.covering[action, registry]
        return everywhere | {n for n in others if _may(action, self.grants[n], registry, subjects)}


def barred_in(request: PromotionRequest, accounts: Mapping[int, UnconfirmedAccount]) -> dict[int, UnconfirmedAccount]:
    """Return the accounts whose role doesn't count for reviews; none unless the environment is closed."""
    if not request.target.is_closed:
        return {}
    registry = request.target.registry.name
    return {number: account for number, account in accounts.items() if not account.counts_in(registry)}


class ReviewerFilter:
    """Which of many requests one person can review, without computing what each of them needs."""

    def __init__(self, user_id: int, requesters: Iterable[int], grants: Sequence[Grant] | None = None) -> None:
        """Read the facts; `requesters` are those of all requests, `grants` this person's, if known already."""
        self.user_id = user_id
        self.rules: dict[int, list[ReviewRule]] = {}
        self.owners: dict[tuple[str, str], Owners] = {}
        self.grants = grants_of(user_id) if grants is None else grants
        accounts = accounts_of({user_id, *requesters})
        mine = [row for row in accounts.rows if row.number == user_id]
        self.may_approve = any(row.is_active and (row.is_identified or not settings.OIDC_ISSUER) for row in mine)
        self.unconfirmed = {number: one for number, one in accounts.unconfirmed().items() if number == user_id}
        self.accounts = accounts

    @cached_property
    def groups(self) -> set[str]:
        """The names of this person's groups."""
        return set(User.objects.filter(pk=self.user_id).values_list("groups__name", flat=True))

    def reviewable(self, requests: Sequence[PromotionRequest]) -> list[int]:
        """Return the numbers of those that they can review, in order; one query per registry if a rule names owners.

        The rows have `target_rules`.
        """
        self.rules = rules_in(requests)
        self.owners = _owners(requests, self.rules)
        return [request.pk for request in requests if self.can(request)]

    def can(self, request: PromotionRequest) -> bool:
        """Return whether this person can review it, by right or by a rule; agrees with `ReviewNeeds.eligible`."""
        subjects, registry = written_subjects(request), request.target.registry.name
        if not self.may_approve or not _may("schema.read", self.grants, registry, subjects):
            return False
        if not request.target.own_approval_allowed and self._requested(request):
            return False
        if barred_in(request, self.unconfirmed):
            return False
        if _may(REVIEW, self.grants, registry, subjects):
            return True
        return any(self._is_named(rule, request, registry, subjects) for rule in self.rules.get(request.target_id, ()))

    def reviews_all_of(self, registry: str) -> bool:
        """Return whether they may read and review every request to the registry."""
        return not self.unconfirmed and reviews_all(self.grants, registry)

    def may_review_in(self, registry: str) -> bool:
        """Return whether they may review some requests to the registry."""
        return any(grant.role in ACTIONS[REVIEW] and grant.registry in ("", registry) for grant in self.grants)

    def is_same(self, requester: int, *, is_closed: bool) -> bool:
        """Return whether the requester is this person, by any account, in a closed or open environment."""
        persons = self.accounts.persons_in(is_closed=is_closed)
        return persons[requester] == persons.get(self.user_id)

    def _requested(self, request: PromotionRequest) -> bool:
        return self.is_same(request.requested_by_id, is_closed=request.target.is_closed)

    def _is_named(self, rule: ReviewRule, request: PromotionRequest, registry: str, subjects: Sequence[str]) -> bool:
        matching = [name for name in subjects if name_pattern(rule.subject_pattern).allows(name)]
        if not matching or (rule.verdict == ReviewRule.BREAKING and not is_breaking(request)):
            return False
        if rule.reviewers == ReviewRule.OWNERS:
            return any(self.user_id in self.owners[registry, name].user_ids for name in matching)
        if rule.reviewers == ReviewRule.ROLE:
            return _has_role(self.grants, rule.name, registry, matching)
        return rule.name in self.groups


def target_rules() -> ArraySubquery:
    """Return the rules of a request's target, for `rules_in`, as a column of the request."""
    columns = {name: name for name in ("id", "environment_id", *_RULE)}
    rules = ReviewRule.objects.filter(environment=OuterRef("target")).order_by("pk")
    return ArraySubquery(rules.values(rule=JSONObject(**columns)))


def rules_in(requests: Iterable[Any]) -> dict[int, list[ReviewRule]]:
    """Return environment → its rules, of rows that have them as `target_rules`."""
    return {request.target_id: [ReviewRule(**values) for values in request.target_rules] for request in requests}


def _rules_of(environments: Iterable[int]) -> dict[int, list[ReviewRule]]:
    rules: dict[int, list[ReviewRule]] = {}
    for rule in ReviewRule.objects.filter(environment__in=environments):
        rules.setdefault(rule.environment_id, []).append(rule)
    return rules


def _owners(
    requests: Sequence[PromotionRequest], rules: Mapping[int, Sequence[ReviewRule]]
) -> dict[tuple[str, str], Owners]:
    """Return the owners of written subjects, if a rule needs them, by registry and subject; one query per registry."""
    subjects_by_registry: dict[str, set[str]] = {}
    for request in requests:
        if any(rule.reviewers == ReviewRule.OWNERS for rule in rules.get(request.target_id, ())):
            subjects_by_registry.setdefault(request.target.registry.name, set()).update(written_subjects(request))
    return {
        (registry, subject): owners
        for registry, subjects in subjects_by_registry.items()
        for subject, owners in owners_of_many(registry, sorted(subjects)).items()
    }


def _nobody_can(states: Sequence[RuleState], request: PromotionRequest) -> str:
    short = [state for state in states if state.can < state.needed]
    if not short:
        return ""
    lacking = ", and ".join(
        f"{state.sentence}, but {f'only {state.can} can' if state.can else 'nobody can'}" for state in short
    )
    others = "" if request.target.own_approval_allowed else ", not counting the requester"
    return (
        f"Nobody can approve this now. It needs {lacking}{others}. Grant the role to"
        f" another person, add an owner or a group member, or change the rules of {request.target}."
    )


def _count_sentence(request: PromotionRequest, count: int) -> str:
    return f"{_approvals(count)} from {'a reviewer' if count == 1 else 'reviewers'} of {request.target}"


def _approvals(count: int) -> str:
    return f"{count} approval{'' if count == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _may(action: str, grants: Sequence[Grant], registry: str, subjects: Iterable[str]) -> bool:
    somebody = Actor("somebody", "task", grants=tuple(grants))
    return all(may(somebody, action, registry=registry, subject=subject) for subject in subjects)


def _has_role(grants: Sequence[Grant], role: str, registry: str, subjects: Iterable[str]) -> bool:
    there = [grant for grant in grants if grant.role == role and grant.registry in ("", registry)]
    return all(any_allows((grant.subject_pattern for grant in there), subject) for subject in subjects)


def grants_of_roles(roles: Iterable[str], people: Iterable[int]) -> dict[int, list[Grant]]:
    """Return all grants of these roles, and all grants of these people, own or through groups, by person; one query."""
    condition, numbers = Q(role__in=sorted(roles)), sorted(people)
    own = RoleGrant.objects.filter(condition | Q(user__in=numbers)).values_list("user", *_PLACE)
    through = GroupGrant.objects.filter(condition | Q(group__user__in=numbers), group__user__isnull=False)
    grants: dict[int, list[Grant]] = {}
    for number, *scope in own.union(through.values_list("group__user", *_PLACE)):
        grants.setdefault(number, []).append(Grant(*scope))
    return grants


def _members(groups: set[str]) -> dict[str, set[int]]:
    members: dict[str, set[int]] = {}
    rows = User.objects.filter(groups__name__in=groups, is_active=True) if groups else User.objects.none()
    for name, number in rows.values_list("groups__name", "pk"):
        members.setdefault(name, set()).add(number)
    return members


#: separates the reason from the codes
IN_SPITE_OF: Final = "\nin spite of: "
#: codes of checks that prevent applying, not approving
AT_APPLYING: Final = frozenset({"acknowledged", "freeze", "threads"})


def override_text(reason: str, codes: Iterable[str]) -> str:
    """Return the text of an override as a review stores it."""
    return f"{reason}{IN_SPITE_OF}{', '.join(sorted(set(codes)))}"


def reason_of(review: Review) -> str:
    """Return the reason of an override; empty if there is none."""
    return review.override.rpartition(IN_SPITE_OF)[0]


def overridden(review: Review) -> frozenset[str]:
    """Return the codes of the checks that an approval overrides."""
    _, mark, codes = review.override.rpartition(IN_SPITE_OF)
    return frozenset(codes.split(", ")) if mark else frozenset()
