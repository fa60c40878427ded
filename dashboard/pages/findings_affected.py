"""Whom a finding concerns: the declared clients of its subject, and the queries that its data go through."""

from __future__ import annotations

from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.clients import DOES_WORDS
from dashboard.presenters.drift_parts import Affected, AffectedRow
from dashboard.texts import listing
from registry.drift.selectors import FindingInfo
from registry.errors import InvalidName
from registry.streams.readers import QueryReader, readers_of
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.clients import ClientInfo, clients_of
from registry.subjects.selectors.places import get_registry

#: clients that are named; the page of the use has all
SHOWN: Final = 20


def affected(info: FindingInfo, *, sees_queries: bool) -> Affected | None:
    """Who reads the data, readers first, and the queries; None where neither a subject nor a topic is known.

    A query belongs to its registry as a whole: whoever may read the subject alone isn't told of it.
    """
    name = _subject(info)
    if name is None and not info.topic:
        return None
    place = get_registry(info.registry)
    clients = sorted(clients_of(place, name), key=lambda each: (each.has_lapsed, not each.reads)) if name else []
    return Affected(
        clients=tuple(_client(info, each) for each in clients[:SHOWN]),
        hidden=max(0, len(clients) - SHOWN),
        queries=tuple(_query(each) for each in readers_of(place, name, topic=info.topic)) if sees_queries else (),
        usage_url=subject_url(info.registry, info.subject, "usage") if name else "",
    )


def _subject(info: FindingInfo) -> SubjectName | None:
    try:
        return parse_subject(info.subject) if info.subject else None
    except InvalidName:
        return None


def _client(info: FindingInfo, client: ClientInfo) -> AffectedRow:
    said = str(DOES_WORDS[client.does])
    if client.number is not None:
        said = gettext("%(does)s version %(version)s") % {"does": said, "version": client.number}
    if client.number is not None and client.number == info.evidence.get("version"):
        said = gettext("%(said)s, the one that was seen") % {"said": said}
    return AffectedRow(
        name=client.name, sentence=said, contact=client.contact, seen_at=client.seen_at if client.has_lapsed else None
    )


def _query(query: QueryReader) -> AffectedRow:
    said = []
    if query.topics:
        said.append(gettext("reads %(topics)s") % {"topics": listing(query.topics)})
    if query.versions:
        said.append(
            gettext("its state has fields of version %(versions)s") % {"versions": listing(map(str, query.versions))}
        )
    return AffectedRow(name=query.name, sentence="; ".join(said), url=reverse("ui:query", args=[query.id]))
