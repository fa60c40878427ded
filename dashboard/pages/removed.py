"""A page for what was removed: what it was, who removed it and when, by the audit, for whoever may read that event.

The addresses of the inbox, of webhooks, of the audit and of bookmarks outlive what they lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subjects_url
from dashboard.pages.frame import make_frame, page_actor
from dashboard.presenters.frame import Fact, Link, RemovedPage
from dashboard.texts import later
from registry.access.roles import Actor
from registry.audit.selectors import AuditEntry, AuditFilter, list_events
from registry.errors import SchemadeskError
from registry.search.trail import holds
from registry.search.trail_sight import events_for
from registry.subjects.models import Context, Registry
from registry.subjects.names import parse_subject


@dataclass(frozen=True)
class Kind:
    """Rows of a table: what one is called, the column with its name, where others of it are, and what it belonged to.

    `parent` is the kind whose removal took it along, with the column of its number: who may read the one event may read
    the other.
    """

    table: str
    noun: str
    name: str
    others: str = ""
    parent: tuple[str, str] | None = None


KINDS: Final[Mapping[str, Kind]] = {
    "source_id": Kind("drift_source", later("The source"), "name", "sources"),
    "finding_id": Kind("drift_finding", later("The finding"), "sentence", "findings", ("source_id", "source_id")),
    "cluster_id": Kind("drift_cluster", later("The cluster"), "name", "sources"),
    "request_id": Kind("promotions_promotionrequest", later("The request"), "reason", "promotions"),
    "check_id": Kind("streams_statecheck", later("The state check"), "checkpoint", "queries"),
}
_SUBJECT: Final = Kind("subjects_subject", later("The subject"), "name")
_REGISTRY: Final = Kind("subjects_registry", later("The registry"), "name", "environments")
_WEBHOOK: Final = Kind("notifications_webhook", later("The webhook"), "name", "webhooks")


def removed_page(request: HttpRequest) -> RemovedPage | None:
    """What the address led to, if it was removed and the reader may read that in the audit; else None."""
    match, actor = request.resolver_match, page_actor(request)
    if match is None or request.method not in ("GET", "HEAD"):
        return None
    try:
        found = _removal(match.kwargs, actor)
    except SchemadeskError:  # who may read nothing of the audit learns nothing here
        return None
    if found is None:
        return None
    kind, entry, others = found
    return RemovedPage(
        frame=make_frame(request, title=gettext("%(what)s was removed") % {"what": kind.noun}),
        name=str(entry.before.get(kind.name) or ""),
        who=entry.actor,
        at=entry.at,
        why=entry.why,
        facts=_facts(entry),
        links=(
            *others,
            Link(
                label=gettext("Its events in the audit"),
                url=f"{reverse('ui:audit')}?{urlencode({'table': kind.table, 'row_id': entry.row_id})}",
            ),
        ),
    )


def _removal(places: Mapping[str, object], actor: Actor) -> tuple[Kind, AuditEntry, tuple[Link, ...]] | None:
    """The kind and the event of its removal, and a link to others of its kind. Raises NotSignedIn, NotAllowed."""
    for key, kind in KINDS.items():
        if key in places:
            entry = _event(kind, actor, row_id=str(places[key]))
            return (kind, entry, _others(kind)) if entry else None
    if "webhook" in places:
        mine = holds("public_id", [str(places["webhook"])]) & holds("owner_id", [actor.user_id or 0])
        entry = _deleted(_WEBHOOK.table, mine)
        return (_WEBHOOK, entry, _others(_WEBHOOK)) if entry else None
    if "registry" not in places:
        return None
    return _named(str(places["registry"]), str(places.get("subject", "")), actor)


def _named(registry: str, subject: str, actor: Actor) -> tuple[Kind, AuditEntry, tuple[Link, ...]] | None:
    """A subject of a registry that is there, or the registry itself."""
    place = Registry.objects.filter(name=registry).first()
    if place is None:
        entry = _event(_REGISTRY, actor, where=holds("name", [registry]))
        return (_REGISTRY, entry, _others(_REGISTRY)) if entry else None
    if not subject:
        return None
    name = parse_subject(subject)
    contexts = list(Context.objects.filter(registry=place, name=name.context).values_list("pk", flat=True))
    entry = _event(_SUBJECT, actor, where=holds("context_id", contexts) & holds("name", [name.subject]))
    label = gettext("Subjects of %(registry)s") % {"registry": registry}
    return (_SUBJECT, entry, (Link(label=label, url=subjects_url(registry)),)) if entry else None


def _others(kind: Kind) -> tuple[Link, ...]:
    labels: dict[str, Callable[[], str]] = {
        "sources": lambda: gettext("Sources"),
        "findings": lambda: gettext("Findings"),
        "promotions": lambda: gettext("Promotions"),
        "queries": lambda: gettext("Queries"),
        "environments": lambda: gettext("Environments"),
        "webhooks": lambda: gettext("Webhooks"),
    }
    return (Link(label=labels[kind.others](), url=reverse(f"ui:{kind.others}")),)


def _event(kind: Kind, actor: Actor, *, row_id: str = "", where: Q | None = None) -> AuditEntry | None:
    """The newest removal of a row that the reader may read, or that went with something whose removal they may read."""
    shown = events_for(actor)
    entry = _deleted(kind.table, where if shown is None else shown if where is None else shown & where, row_id)
    if entry is None and kind.parent is not None and shown is not None:
        entry = _deleted(kind.table, where, row_id)
        key, column = kind.parent
        number = str(entry.before.get(column) or "") if entry else ""
        return entry if number and _event(KINDS[key], actor, row_id=number) else None
    return entry


def _deleted(table: str, about: Q | None, row_id: str = "") -> AuditEntry | None:
    gone = Q(operation="DELETE")
    chosen = AuditFilter(table=table, row_id=row_id, about=gone if about is None else gone & about)
    return next(iter(list_events(chosen=chosen, limit=1)), None)


def _facts(entry: AuditEntry) -> tuple[Fact, ...]:
    """What else the row said of itself, of the few columns that say what it was."""
    columns = {
        "rule": gettext("Rule"),
        "location": gettext("Where"),
        "kind": gettext("Kind"),
        "subject_name": gettext("Subject"),
        "bootstrap": gettext("Bootstrap servers"),
        "state": gettext("State"),
    }
    return tuple(
        Fact(label=label, value=str(entry.before[name]), code=True)
        for name, label in columns.items()
        if entry.before.get(name)
    )
