"""Who could approve what goes to an environment, before anybody has asked for anything."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from registry.access.models import User
from registry.access.roles import ACTIONS, Actor, may
from registry.promotions.eligible import REVIEW, grants_of_roles
from registry.promotions.persons import persons_of
from registry.promotions.selectors.environments import EnvironmentInfo


@dataclass(frozen=True)
class Approvers:
    """The accounts with the right to review all that goes there, by name, and how many people they are.

    `is_enough` says whether so many can approve what somebody else asks for; owners, roles and groups that a rule names
    come with a request's subjects, and aren't counted here.
    """

    names: tuple[str, ...]
    people: int
    needed: int

    @property
    def is_enough(self) -> bool:
        """Whether what the environment's number asks for can be given."""
        return self.people >= self.needed


def approvers_of(environment: EnvironmentInfo) -> Approvers:
    """Who could approve there now: active, with the right for every subject, known by the issuer; four queries."""
    grants = grants_of_roles(ACTIONS[REVIEW], ())
    able = {
        number
        for number, found in grants.items()
        if all(
            may(Actor("somebody", "task", grants=tuple(found)), action, registry=environment.name)
            for action in ("schema.read", REVIEW)
        )
    }
    rows = User.objects.filter(pk__in=able, is_active=True).order_by("username").distinct()
    if settings.OIDC_ISSUER:
        rows = rows.filter(socialaccount__isnull=False)
    found = list(rows.values_list("pk", "username", "email"))
    persons = persons_of({number: email for number, _, email in found})
    return Approvers(
        names=tuple(username for _, username, _ in found),
        people=len({persons.get(number, number) for number, _, _ in found}),
        needed=environment.reviews_needed,
    )
