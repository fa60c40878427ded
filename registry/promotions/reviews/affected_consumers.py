"""Declared clients that a request breaks: their contacts, and which acknowledgements are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from django.db.models import BooleanField, F, Func, JSONField

from registry.access.roles import Actor, may
from registry.access.selectors import ContactPerson, people_named
from registry.errors import first_few
from registry.promotions.checks.consumers import AffectedClient, affected_clients
from registry.promotions.models import Acknowledgement, PromotionRequest
from registry.promotions.requests.infos import RequestInfo
from registry.promotions.reviews.eligibility import grants_of_roles
from registry.promotions.reviews.linked_accounts import persons_of
from registry.subjects.models import Registry
from registry.subjects.usage.clients import ClientInfo, clients_of_several
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


@dataclass(frozen=True)
class Consumer:
    """A client that a plan breaks; `people` are those in its contact, who can acknowledge for it.

    Without people, anybody who may review the request can. `declared` is None if the declaration was withdrawn since.
    """

    hurt: AffectedClient
    declared: ClientInfo | None = None
    people: tuple[ContactPerson, ...] = ()

    @property
    def contact(self) -> str:
        """The declared contact."""
        return self.declared.contact if self.declared else ""

    @property
    def user_ids(self) -> frozenset[int]:
        """The people's user ids."""
        return frozenset(one.user_id for one in self.people)

    @property
    def speakers(self) -> str:
        """Who can acknowledge for it, as a sentence; "" if its contact names nobody who could."""
        names = [one.username for one in self.people]
        if not names:
            return ""
        return f"Only contacts of {self.hurt.client} can acknowledge it: {first_few(names)}."


def consumers_of(info: RequestInfo) -> tuple[Consumer, ...]:
    """Return the clients that the request's stored plan breaks; a constant number of queries, or none."""
    hurt = affected_clients(info.checks)
    if not hurt:
        return ()
    own = None if info.own_approval_allowed else info.requested_by_id
    return _consumers(hurt, get_registry(info.target), [item.subject for item in info.items], own)


def consumers_of_row(request: PromotionRequest) -> tuple[Consumer, ...]:
    """Return the same for a row whose target is joined."""
    hurt = affected_clients(request.plan["checks"])
    if not hurt:
        return ()
    own = None if request.target.own_approval_allowed else request.requested_by_id
    items = [SubjectName(row.context_name, row.subject_name) for row in request.items.all()]
    return _consumers(hurt, request.target.registry, items, own)


def _consumers(
    hurt: Sequence[AffectedClient], target: Registry, items: Iterable[SubjectName], requester: int | None
) -> tuple[Consumer, ...]:
    names = {parse_subject(client.subject) for client in hurt}
    clients = {
        AffectedClient(name.qualified, info.name): info
        for name, consumers in clients_of_several(target, names).items()
        for info in consumers
    }
    named = people_named({clients[client].contact for client in hurt if client in clients})
    everybody = {one.user_id for people in named.values() for one in people}
    able = _able(everybody, target.name, [name.qualified for name in items]) - _same_as(requester, everybody)
    consumers = []
    for client in hurt:
        declared = clients.get(client)
        people = named[declared.contact] if declared else ()
        consumers.append(Consumer(client, declared, tuple(one for one in people if one.user_id in able)))
    return tuple(consumers)


def _able(people: Collection[int], registry: str, subjects: Sequence[str]) -> set[int]:
    """Return the people who may read the request: nobody acknowledges what they can't read."""
    grants = grants_of_roles((), people) if people else {}
    return {
        number
        for number in people
        if all(
            may(Actor("somebody", "task", grants=tuple(grants.get(number, ()))), "schema.read", **scope)
            for scope in ({"registry": registry, "subject": subject} for subject in subjects)
        )
    }


def _same_as(requester: int | None, people: Collection[int]) -> set[int]:
    """Return the accounts of the requester, who can't acknowledge their own request.

    `requester` is None if the environment allows that.
    """
    if requester is None or not people:
        return set()
    persons = persons_of({*people, requester})
    return {number for number in people if persons[number] == persons.get(requester)}


#: the newest readable requests with a plan that are examined
LOOKED_AT: Final = 300
#: the most that are returned
MOST: Final = 20


def pending_acknowledgements(by: Actor) -> dict[int, tuple[AffectedClient, ...]]:
    """Return request → the clients that the actor still has to acknowledge for, newest first.

    One query if there are none, otherwise a constant number. As on the request's page, the client's contact must name
    the actor, who may read the request and isn't its requester.
    """
    rows = _unacknowledged(by) if by.user_id is not None else []
    if not rows or by.user_id is None:
        return {}
    left = _left(rows)
    own = _clients_naming(by.user_id, [(row.target.registry, hurt) for row in rows for hurt in left[row.pk]])
    theirs = _own_accounts(by.user_id, rows)
    clients_by_request = {
        row.pk: tuple(hurt for hurt in left[row.pk] if (row.target.registry_id, hurt) in own)
        for row in rows
        if row.target.own_approval_allowed or row.requested_by_id not in theirs
    }
    return dict(islice(((number, clients) for number, clients in clients_by_request.items() if clients), MOST))


def _unacknowledged(by: Actor) -> list[PromotionRequest]:
    """Return the requests with missing acknowledgements, with only the plan's checks of affected clients."""
    planned = PromotionRequest.objects.filter(state__in=PromotionRequest.PLANNED_STATES)
    newest = planned.visible_to(by).order_by("-pk").values("pk")[:LOOKED_AT]
    rows = PromotionRequest.objects.filter(pk__in=newest).alias(waits=_Waits(F("plan"))).filter(waits=True)
    return list(
        rows.select_related("target__registry")
        .defer("plan", "reason", "moved", "failure", "config")
        .annotate(hurting=_Hurting(F("plan")))
        .order_by("-pk")
    )


def _left(rows: Sequence[PromotionRequest]) -> dict[int, list[AffectedClient]]:
    """Return the affected clients of each request for which nobody has acknowledged its plan."""
    hashes = {row.pk: row.plan_hash for row in rows}
    rows_of_requests = Acknowledgement.objects.filter(request__in=hashes, plan_hash__in=set(hashes.values()))
    acknowledged = {
        (number, AffectedClient(subject, client))
        for number, subject, client, of in rows_of_requests.values_list("request", "subject", "client", "plan_hash")
        if hashes[number] == of
    }
    left: dict[int, list[AffectedClient]] = {}
    for row in rows:
        clients = affected_clients(row.hurting)  # type: ignore[attr-defined]  # annotated
        left[row.pk] = [client for client in clients if (row.pk, client) not in acknowledged]
    return left


def _clients_naming(
    user_id: int, hurt_clients: Sequence[tuple[Registry, AffectedClient]]
) -> set[tuple[int, AffectedClient]]:
    """Return the clients whose contact names the user, with their registry's key; one query per registry, and two."""
    subjects: dict[Registry, set[SubjectName]] = {}
    for registry, hurt in hurt_clients:
        subjects.setdefault(registry, set()).add(parse_subject(hurt.subject))
    contacts = {
        (registry.pk, AffectedClient(name.qualified, client.name)): client.contact
        for registry, names in subjects.items()
        for name, clients in clients_of_several(registry, names).items()
        for client in clients
        if client.contact
    }
    keys = {(registry.pk, hurt) for registry, hurt in hurt_clients} & contacts.keys()
    named = people_named({contacts[key] for key in keys})
    return {key for key in keys if any(one.user_id == user_id for one in named[contacts[key]])}


def _own_accounts(user_id: int, rows: Sequence[PromotionRequest]) -> set[int]:
    """Return the accounts of this person among the requesters."""
    persons = persons_of({user_id, *(row.requested_by_id for row in rows)})
    return {number for number, person in persons.items() if person == persons.get(user_id)}


class _Waits(Func):
    """Whether a stored plan breaks clients that nobody has acknowledged for."""

    template = """(%(expressions)s @? '$.checks[*] ? (@.code == "acknowledged" && @.verdict != "pass")')"""
    output_field = BooleanField()


class _Hurting(Func):
    """The checks of a stored plan that name affected clients."""

    template = """jsonb_path_query_array(%(expressions)s, '$.checks[*] ? (@.code == "clients")')"""
    output_field = JSONField()
