"""Which requests somebody is asked to acknowledge, for declared clients whose contact names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import BooleanField, F, Func, JSONField

from registry.access.models import User
from registry.access.roles import Actor
from registry.access.selectors import people_named
from registry.promotions.consumers import Hurt, hurt_by
from registry.promotions.models import Acknowledgement, PromotionRequest
from registry.promotions.persons import persons_of
from registry.promotions.selectors.request_infos import RequestInfo
from registry.promotions.selectors.requests import requests_numbered
from registry.promotions.selectors.sight import in_sight
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.clients import clients_of_several

#: requests with a plan, the newest that they may read, that are looked at
LOOKED_AT: Final = 300
#: those that are given
MOST: Final = 20


@dataclass(frozen=True)
class Affecting:
    """A request that hurts declared clients, and those of them for which the reader's word is missing."""

    request: RequestInfo
    clients: tuple[Hurt, ...]


def affecting(by: Actor) -> list[Affecting]:
    """Those that wait for somebody's word, newest first; one query where there are none, a constant number elsewhere.

    It is they who speak for a client as the request's page has it: its contact names them, they may read the request,
    and didn't ask for it themselves.
    """
    rows = _unacknowledged(by) if by.user_id is not None else []
    if not rows or by.user_id is None:
        return []
    left = _left(rows)
    own = _named_in(by.user_id, [(row.target.registry, hurt) for row in rows for hurt in left[row.pk]])
    theirs = _asked_by(by.user_id, rows)
    found = {
        row.pk: tuple(hurt for hurt in left[row.pk] if (row.target.registry_id, hurt) in own)
        for row in rows
        if row.target.own_approval_allowed or row.requested_by_id not in theirs
    }
    numbers = [number for number, clients in found.items() if clients][:MOST]
    return [Affecting(info, found[info.id]) for info in requests_numbered(numbers)]


def _unacknowledged(by: Actor) -> list[PromotionRequest]:
    """The requests whose check of it doesn't pass, without their plans, but for what says whom they hurt."""
    planned = PromotionRequest.objects.filter(state__in=PromotionRequest.PLANNED_STATES)
    newest = in_sight(planned, by).order_by("-pk").values("pk")[:LOOKED_AT]
    rows = PromotionRequest.objects.filter(pk__in=newest).alias(waits=_Waits(F("plan"))).filter(waits=True)
    return list(
        rows.select_related("target__registry")
        .defer("plan", "reason", "moved", "failure", "config")
        .annotate(hurting=_Hurting(F("plan")))
        .order_by("-pk")
    )


def _left(rows: Sequence[PromotionRequest]) -> dict[int, list[Hurt]]:
    """Of each the clients of which nobody has acknowledged its plan."""
    hashes = {row.pk: row.plan_hash for row in rows}
    said = Acknowledgement.objects.filter(request__in=hashes, plan_hash__in=set(hashes.values()))
    given = {
        (number, Hurt(subject, client))
        for number, subject, client, of in said.values_list("request", "subject", "client", "plan_hash")
        if hashes[number] == of
    }
    return {row.pk: [hurt for hurt in hurt_by(row.hurting) if (row.pk, hurt) not in given] for row in rows}  # type: ignore[attr-defined]  # annotated


def _named_in(user_id: int, places: Sequence[tuple[Registry, Hurt]]) -> set[tuple[int, Hurt]]:
    """Those clients whose contact names somebody, by their registry's number; a query a registry, and two."""
    wanted: dict[Registry, set[SubjectName]] = {}
    for registry, hurt in places:
        wanted.setdefault(registry, set()).add(parse_subject(hurt.subject))
    contacts = {
        (registry.pk, Hurt(name.qualified, client.name)): client.contact
        for registry, names in wanted.items()
        for name, clients in clients_of_several(registry, names).items()
        for client in clients
        if client.contact
    }
    asked = {(registry.pk, hurt) for registry, hurt in places} & contacts.keys()
    named = people_named({contacts[key] for key in asked})
    return {key for key in asked if any(one.user_id == user_id for one in named[contacts[key]])}


def _asked_by(user_id: int, rows: Sequence[PromotionRequest]) -> set[int]:
    """The accounts of this person among those who asked."""
    numbers = {user_id, *(row.requested_by_id for row in rows)}
    persons = persons_of(dict(User.objects.filter(pk__in=numbers).values_list("pk", "email")))
    return {number for number, person in persons.items() if person == persons.get(user_id)}


class _Waits(Func):
    """Whether a stored plan hurts clients for whom nobody has said yet that they know."""

    template = """(%(expressions)s @? '$.checks[*] ? (@.code == "acknowledged" && @.verdict != "pass")')"""
    output_field = BooleanField()


class _Hurting(Func):
    """The checks of a stored plan that name the clients that don't go on."""

    template = """jsonb_path_query_array(%(expressions)s, '$.checks[*] ? (@.code == "clients")')"""
    output_field = JSONField()
