"""The declared clients that a request hurts, and who speaks for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from registry.access.models import User
from registry.access.roles import Actor, may
from registry.access.selectors import Named, people_named
from registry.promotions.consumers import Hurt, hurt_by
from registry.promotions.eligible import grants_of_roles
from registry.promotions.models import PromotionRequest
from registry.promotions.persons import persons_of
from registry.promotions.selectors.request_infos import RequestInfo
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.clients import ClientInfo, clients_of_several
from registry.subjects.selectors.places import get_registry

#: people that a sentence names
_NAMED: Final = 5


@dataclass(frozen=True)
class Consumer:
    """A client that a plan hurts; `people` are those who speak for it, as its contact names them.

    Without people it is acknowledged by whoever may review the request. `declared` is None for one that was withdrawn
    since.
    """

    hurt: Hurt
    declared: ClientInfo | None = None
    people: tuple[Named, ...] = ()

    @property
    def contact(self) -> str:
        """Whom to talk to, as it was declared."""
        return self.declared.contact if self.declared else ""

    @property
    def user_ids(self) -> frozenset[int]:
        """The people's numbers."""
        return frozenset(one.user_id for one in self.people)

    @property
    def speakers(self) -> str:
        """Who speaks for it, as a sentence; "" where its contact names nobody who could."""
        names = [one.username for one in self.people]
        if not names:
            return ""
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"It is acknowledged by those whom {self.hurt.client} names as its contact: {', '.join(names[:_NAMED])}{more}."


def consumers_of(info: RequestInfo) -> tuple[Consumer, ...]:
    """Those that the request's stored plan hurts, as it names them; a constant number of queries, none for none."""
    hurt = hurt_by(info.checks)
    if not hurt:
        return ()
    own = None if info.own_approval_allowed else info.requested_by_id
    return _consumers(hurt, get_registry(info.target), [item.subject for item in info.items], own)


def consumers_of_row(request: PromotionRequest) -> tuple[Consumer, ...]:
    """The same of a row, whose target is joined."""
    hurt = hurt_by(request.plan["checks"])
    if not hurt:
        return ()
    own = None if request.target.own_approval_allowed else request.requested_by_id
    items = [SubjectName(row.context_name, row.subject_name) for row in request.items.all()]
    return _consumers(hurt, request.target.registry, items, own)


def _consumers(
    hurt: Sequence[Hurt], target: Registry, items: Iterable[SubjectName], requester: int | None
) -> tuple[Consumer, ...]:
    names = {parse_subject(each.subject) for each in hurt}
    clients = {
        Hurt(name.qualified, info.name): info
        for name, found in clients_of_several(target, names).items()
        for info in found
    }
    named = people_named({clients[each].contact for each in hurt if each in clients})
    everybody = {one.user_id for people in named.values() for one in people}
    able = _able(everybody, target.name, [name.qualified for name in items]) - _same_as(requester, everybody)
    found = []
    for each in hurt:
        declared = clients.get(each)
        people = named[declared.contact] if declared else ()
        found.append(Consumer(each, declared, tuple(one for one in people if one.user_id in able)))
    return tuple(found)


def _able(people: Collection[int], registry: str, subjects: Sequence[str]) -> set[int]:
    """Those who may read the request: nobody acknowledges what they can't see."""
    grants = grants_of_roles((), people) if people else {}
    return {
        number
        for number in people
        if all(
            may(Actor("somebody", "task", grants=tuple(grants.get(number, ()))), "schema.read", **place)
            for place in ({"registry": registry, "subject": subject} for subject in subjects)
        )
    }


def _same_as(requester: int | None, people: Collection[int]) -> set[int]:
    """The accounts of whoever asked for it, who doesn't speak for those whom it hurts; None: that is allowed here."""
    if requester is None or not people:
        return set()
    persons = persons_of(dict(User.objects.filter(pk__in={*people, requester}).values_list("pk", "email")))
    return {number for number in people if persons[number] == persons.get(requester)}
