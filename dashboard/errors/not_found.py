"""Pages for missing objects: similar ones that exist, or what was removed, by whom and when.

Only readers who may read the audit event of the removal see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import PAGES, subject_url, subjects_url
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Fact, Link, RemovedPage
from dashboard.registries.archive import copy_url, newest_copy, restore_label
from registry.access.roles import Actor, may
from registry.audit.selectors import AuditEntry, AuditFilter, list_events
from registry.errors import SchemadeskError, SubjectNotFound, VersionNotFound
from registry.promotions.selectors import list_environments
from registry.search.audit_filter import events_for, holds
from registry.search.selectors.similar_names import nearest_subjects
from registry.subjects import selectors
from registry.subjects.models import Context, Registry
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

READ: Final = "schema.read"
#: number of newest versions to list
VERSIONS: Final = 5


def nearest(request: HttpRequest, error: Exception) -> tuple[Link, ...]:
    """Return links to similar pages, the most likely first; none if the error isn't about a subject."""
    match = request.resolver_match
    if not isinstance(error, (SubjectNotFound, VersionNotFound)) or match is None:
        return ()
    actor = page_actor(request)
    try:
        registry, name = _meant(match.kwargs, error)
    except SchemadeskError:
        return ()
    if registry is None or name is None or not may(actor, READ, registry=registry.name, subject=name.qualified):
        return ()
    page = match.url_name if match.url_name in PAGES else ""
    if isinstance(error, VersionNotFound):
        return (*_versions(registry, name), *_elsewhere(registry, name, actor))
    return (*_copies(registry, name, actor), *_elsewhere(registry, name, actor), *_alike(registry, name, page, actor))


def _meant(kwargs: Mapping[str, str], error: SchemadeskError) -> tuple[Registry | None, SubjectName | None]:
    """Return the subject in the URL, unless the error is about another one. Raises RegistryNotFound, InvalidName."""
    registry, subject = kwargs.get("registry"), kwargs.get("subject")
    if not registry or not subject:
        return None, None
    name = parse_subject(subject)
    about = error.details.get("subject", name.qualified)
    return get_registry(registry), name if about == name.qualified else None


def _copies(registry: Registry, name: SubjectName, actor: Actor) -> tuple[Link, ...]:
    """Return a link to the copy of a permanently deleted subject."""
    copy = newest_copy(registry, name, actor)
    return (Link(label=restore_label(copy), url=copy_url(registry.name, copy.number)),) if copy else ()


def _elsewhere(registry: Registry, name: SubjectName, actor: Actor) -> tuple[Link, ...]:
    """Return links to the other registries with the subject, environments first."""
    order = list_environments()
    presence = selectors.presence_of(registry, name).visible_to(actor, name)
    registries = [other for other in presence.fingerprints if other != registry.name]
    registries.sort(key=lambda other: (order.index(other) if other in order else len(order), other))
    return tuple(
        Link(
            label=gettext("%(subject)s in %(registry)s") % {"subject": name.qualified, "registry": other},
            url=subject_url(other, name.qualified),
        )
        for other in registries
    )


def _alike(registry: Registry, name: SubjectName, page: str, actor: Actor) -> tuple[Link, ...]:
    return tuple(
        Link(label=other, url=subject_url(registry.name, other, page))
        for other in nearest_subjects(registry.pk, name.qualified, by=actor)
    )


def _versions(registry: Registry, name: SubjectName) -> tuple[Link, ...]:
    """Return links to the newest versions."""
    try:
        numbers = selectors.list_versions(registry, name)
    except SubjectNotFound:
        return ()
    return tuple(
        Link(
            label=gettext("version %(version)s of %(subject)s") % {"version": number, "subject": name.qualified},
            url=subject_url(registry.name, name.qualified, version=number),
        )
        for number in reversed(numbers[-VERSIONS:])
    )


@dataclass(frozen=True)
class Kind:
    """A table's kind of object: its noun, the column with its name, the page of others, and its parent.

    `parent` is the kind whose removal also removes it, with the foreign key column: who may read the parent's event may
    read this one.
    """

    table: str
    noun: str
    name: str
    others: str = ""
    parent: tuple[str, str] | None = None


KINDS: Final[Mapping[str, Kind]] = {
    "source_id": Kind("drift_source", _("The source"), "name", "sources"),
    "finding_id": Kind("drift_finding", _("The finding"), "sentence", "findings", ("source_id", "source_id")),
    "cluster_id": Kind("drift_cluster", _("The cluster"), "name", "sources"),
    "request_id": Kind("promotions_promotionrequest", _("The request"), "reason", "promotions"),
    "check_id": Kind("streams_statecheck", _("The state check"), "checkpoint", "queries"),
}
_SUBJECT: Final = Kind("subjects_subject", _("The subject"), "name")
_REGISTRY: Final = Kind("subjects_registry", _("The registry"), "name", "environments")
_WEBHOOK: Final = Kind("notifications_webhook", _("The webhook"), "name", "webhooks")


def removed_page(request: HttpRequest) -> RemovedPage | None:
    """Return the page of the removed object in the URL, if the reader may read its removal in the audit; else None."""
    match, actor = request.resolver_match, page_actor(request)
    if match is None or request.method not in ("GET", "HEAD"):
        return None
    try:
        removal = _removal(match.kwargs, actor)
    except SchemadeskError:  # a reader without access to the audit gets no information
        return None
    if removal is None:
        return None
    kind, entry, others = removal
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
                label=gettext("Audit log of this object"),
                url=f"{reverse('ui:audit')}?{urlencode({'table': kind.table, 'row_id': entry.row_id})}",
            ),
        ),
    )


def _removal(url_parameters: Mapping[str, object], actor: Actor) -> tuple[Kind, AuditEntry, tuple[Link, ...]] | None:
    """Return the kind, the event of its removal, and a link to others of its kind. Raises NotSignedIn, NotAllowed."""
    for key, kind in KINDS.items():
        if key in url_parameters:
            entry = _event(kind, actor, row_id=str(url_parameters[key]))
            return (kind, entry, _others(kind)) if entry else None
    if "webhook" in url_parameters:
        mine = holds("public_id", [str(url_parameters["webhook"])]) & holds("owner_id", [actor.user_id or 0])
        entry = _deleted(_WEBHOOK.table, mine)
        return (_WEBHOOK, entry, _others(_WEBHOOK)) if entry else None
    if "registry" not in url_parameters:
        return None
    return _named(str(url_parameters["registry"]), str(url_parameters.get("subject", "")), actor)


def _named(registry: str, subject: str, actor: Actor) -> tuple[Kind, AuditEntry, tuple[Link, ...]] | None:
    """Find the removal of a subject in an existing registry, or of the registry itself."""
    registry_row = Registry.objects.filter(name=registry).first()
    if registry_row is None:
        entry = _event(_REGISTRY, actor, where=holds("name", [registry]))
        return (_REGISTRY, entry, _others(_REGISTRY)) if entry else None
    if not subject:
        return None
    name = parse_subject(subject)
    contexts = list(Context.objects.filter(registry=registry_row, name=name.context).values_list("pk", flat=True))
    entry = _event(_SUBJECT, actor, where=holds("context_id", contexts) & holds("name", [name.subject]))
    label = gettext("Subjects of %(registry)s") % {"registry": registry}
    return (_SUBJECT, entry, (Link(label=label, url=subjects_url(registry)),)) if entry else None


#: page of others of a kind → its label
_OTHERS: Final = {
    "sources": _("Sources"),
    "findings": _("Findings"),
    "promotions": _("Promotions"),
    "queries": _("Queries"),
    "environments": _("Environments"),
    "webhooks": _("Webhooks"),
}


def _others(kind: Kind) -> tuple[Link, ...]:
    return (Link(label=_OTHERS[kind.others], url=reverse(f"ui:{kind.others}")),)


def _event(kind: Kind, actor: Actor, *, row_id: str = "", where: Q | None = None) -> AuditEntry | None:
    """Return the newest removal of a row that the reader may read, directly or through its parent's removal."""
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
    """Return facts about the removed row, from the few columns that describe it."""
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
