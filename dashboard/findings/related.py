"""Context of a finding: affected clients and queries, deployments, suspected causes, and state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.compare.comparison import VersionComparison
from dashboard.compare.proposed_schema import against_latest
from dashboard.components.badges import ACCESS
from dashboard.components.diff import TextDiff, text_diff
from dashboard.components.links import subject_url
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Link
from dashboard.streams.queries import check_action
from dashboard.streams.variables import fields_as_ddl
from dashboard.subjects.descriptions import channel_links
from registry.access.roles import Actor, may
from registry.drift.findings.suspicions import Suspicion, suspicions_of
from registry.drift.proposals.observed_schema import can_propose, propose_from, subject_of
from registry.drift.scan.aggregation import ByHour
from registry.drift.selectors import FindingInfo, deployments_about
from registry.drift.selectors.deployments import DeploymentTarget
from registry.drift.sources import kind_of
from registry.errors import InvalidName, NotFound, SchemadeskError
from registry.streams.selectors import QueryInfo, VariableInfo, get_query, query_of_source, variables_with_schemas
from registry.streams.subject_usage import QueryReader, readers_of
from registry.subjects import selectors
from registry.subjects.lifecycle.notes import channels_in
from registry.subjects.usage.clients import ClientInfo, clients_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: number of clients to name; the usage page has all
SHOWN_CLIENTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedRow:
    """An affected client or query; `seen_at` is set for a client that wasn't seen for long."""

    name: str
    sentence: str
    url: str = ""
    contact: str = ""
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """The clients and queries that a finding affects; `hidden` clients aren't listed, `usage_url` lists all.

    `channels` are where the people of the subject talk.
    """

    clients: tuple[AffectedRow, ...] = ()
    queries: tuple[AffectedRow, ...] = ()
    hidden: int = 0
    usage_url: str = ""
    channels: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspected:
    """A change shortly before a finding began, with the time before it, in words.

    `url` is its page, or empty; `elsewhere` says that it is on another site.
    """

    before: str
    sentence: str
    url: str
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectedList:
    """The beginning of a finding, and the changes in the hour before, the latest first."""

    began: datetime
    rows: tuple[Suspected, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfter:
    """The value of a state variable before and after a batch, as DDL line by line; `batch` is None if unknown."""

    variable: str
    batch: int | None
    text: TextDiff


def affected(info: FindingInfo, *, sees_queries: bool) -> Affected | None:
    """Return the clients, readers first, and the queries; None if neither the subject nor the topic is known.

    A query belongs to a whole registry, so a reader of only a subject doesn't see it.
    """
    name = _subject(info)
    if name is None and not info.topic:
        return None
    registry = get_registry(info.registry)
    clients = (
        sorted(clients_of(registry, name), key=lambda client: (client.has_lapsed, not client.reads)) if name else []
    )
    return Affected(
        clients=tuple(_client(info, client) for client in clients[:SHOWN_CLIENTS]),
        hidden=max(0, len(clients) - SHOWN_CLIENTS),
        queries=tuple(_query(client) for client in readers_of(registry, name, topic=info.topic))
        if sees_queries
        else (),
        usage_url=subject_url(info.registry, info.subject, "usage") if name else "",
        channels=channel_links(channels_in(registry, {name})) if name else (),
    )


def _subject(info: FindingInfo) -> SubjectName | None:
    try:
        return parse_subject(info.subject) if info.subject else None
    except InvalidName:
        return None


def _client(info: FindingInfo, client: ClientInfo) -> AffectedRow:
    sentence = str(ACCESS[client.does])
    if client.number is not None:
        sentence = gettext("%(does)s version %(version)s") % {"does": sentence, "version": client.number}
    if client.number is not None and client.number == info.evidence.get("version"):
        sentence = gettext("%(said)s, the version that was seen") % {"said": sentence}
    return AffectedRow(
        name=client.name,
        sentence=sentence,
        contact=client.contact,
        seen_at=client.seen_at if client.has_lapsed else None,
    )


def _query(query: QueryReader) -> AffectedRow:
    sentences = []
    if query.topics:
        sentences.append(gettext("reads %(topics)s") % {"topics": listing(query.topics)})
    if query.versions:
        sentences.append(
            gettext("its state has fields of version %(versions)s") % {"versions": listing(map(str, query.versions))}
        )
    return AffectedRow(name=query.name, sentence="; ".join(sentences), url=reverse("ui:query", args=[query.id]))


HOUR: Final = timedelta(hours=1)
#: deployments named per hour
SHOWN_DEPLOYMENTS: Final = 3
_FORM: Final = "%Y-%m-%d %H:%M"


def deployed_by_hour(info: FindingInfo) -> Mapping[str, tuple[str, ...]]:
    """Return the deployments by hour, from an hour before the first message; no query without hours."""
    hours = sorted(filter(None, map(_moment, ByHour.of_evidence(info.evidence).counts)))
    if not hours:
        return {}
    concerned = DeploymentTarget(info.registry, info.subject, info.topic)
    # A producer's clock can be thousands of years ahead; no deployment is later than now.
    until = min(hours[-1], timezone.now()) + HOUR
    labels: dict[str, list[str]] = {}
    for deployment in deployments_about(concerned, hours[0] - HOUR, until):
        hour = deployment.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        labels.setdefault(hour.strftime(_FORM), []).append(f"{deployment.at.astimezone(UTC):%H:%M} {deployment.label}")
    return {hour: _shown(deployments[::-1]) for hour, deployments in labels.items()}


def _shown(labels: list[str]) -> tuple[str, ...]:
    if len(labels) <= SHOWN_DEPLOYMENTS:
        return tuple(labels)
    return (*labels[:SHOWN_DEPLOYMENTS], gettext("%(number)s more") % {"number": len(labels) - SHOWN_DEPLOYMENTS})


def _moment(hour: str) -> datetime | None:
    try:
        return datetime.strptime(hour, _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None


def observed(info: FindingInfo, actor: Actor, *, is_whole: bool = False) -> tuple[VersionComparison | None, str]:
    """Compare the data's schema with the newest one, without the text; or say why not, "" if irrelevant."""
    subject = subject_of(info)
    if not subject or not can_propose(info) or not may(actor, "schema.read", registry=info.registry, subject=subject):
        return None, ""
    try:
        registry, name = get_registry(info.registry), parse_subject(subject)
        references = selectors.get_version(registry, name, "latest").schema.references
    except NotFound:
        return None, ""  # no schema is registered yet
    try:
        proposed = propose_from(info)
        comparison = against_latest(
            registry,
            name,
            by=actor,
            text=proposed.text,
            schema_type=proposed.schema_type,
            references=references,
            notes={},
            is_whole=is_whole,
        )
    except SchemadeskError as error:
        return None, error.message
    return replace(comparison, text=None) if comparison else None, proposed.note


def before_after(info: FindingInfo) -> BeforeAfter | None:
    """Return the value of a state variable in two schemas; None without evidence."""
    old, new = info.evidence.get("old_schema"), info.evidence.get("new_schema")
    if not old or not new:
        return None
    return BeforeAfter(
        variable=str(info.evidence.get("variable", "")),
        batch=info.evidence.get("batch"),
        text=text_diff("\n".join(fields_as_ddl(old)), "\n".join(fields_as_ddl(new))),
    )


def state_links(info: FindingInfo, actor: Actor) -> tuple[Link, ...]:
    """Return links to the query, the variable, its two schemas and the restart check; none for other findings.

    They are for readers of the whole registry, because a query doesn't belong to a subject.
    """
    number = query_of_source(info.source_id) if kind_of(info.source_kind).keeps_state else None
    if number is None:
        return ()
    query = get_query(number, by=actor)
    links = [Link(label=gettext("Query %(query)s") % {"query": query.name}, url=reverse("ui:query", args=[query.id]))]
    variable = _variable(query, info.evidence)
    if variable is not None:
        links += _of_variable(query, variable, info.evidence)
    check = check_action(actor, query.path)
    if check.allowed:
        links.append(Link(label=check.label, url=check.url))
    return tuple(links)


def _variable(query: QueryInfo, evidence: dict[str, Any]) -> VariableInfo | None:
    key = (evidence.get("operator"), evidence.get("variable"))
    same = [variable for variable in variables_with_schemas(query.id) if (variable.operator, variable.name) == key]
    return next((variable for variable in same if variable.removed_at is None), same[-1] if same else None)


def _of_variable(query: QueryInfo, variable: VariableInfo, evidence: dict[str, Any]) -> list[Link]:
    label = gettext("State variable %(variable)s") % {"variable": variable.label}
    links = [Link(label=label, url=reverse("ui:state_variable", args=[query.id, variable.id]))]
    numbers = [
        next((schema.version for schema in variable.schemas if _is_same(schema.value_schema, evidence.get(side))), None)
        for side in ("old_schema", "new_schema")
    ]
    if None not in numbers and numbers[0] != numbers[1]:
        url = reverse("ui:state_variable_compare", args=[query.id, variable.id])
        label = gettext("Compare versions %(old)s and %(new)s of the variable") % {"old": numbers[0], "new": numbers[1]}
        links.append(Link(label=label, url=f"{url}?{urlencode({'from': numbers[0], 'to': numbers[1]})}"))
    return links


def _is_same(one: str, other: str | None) -> bool:
    """Return whether two schemas are equal as JSON."""
    try:
        return other is not None and json.loads(one) == json.loads(other)
    except ValueError:
        return one == other


_SENTENCES: Final = {
    "released": _("version %(version)s was released by request %(request)s"),
    "registered": _("version %(version)s was registered"),
    "unapproved": _("version %(version)s was registered without a request"),
    "deleted": _("version %(version)s was deleted"),
    "restored": _("version %(version)s was restored"),
    "level": _("the compatibility level was set to %(name)s"),
    "mode": _("the mode was set to %(name)s"),
    "client": _("client %(name)s was declared"),
    "client_changed": _("client %(name)s moved to another version"),
    "source": _("the scan settings of this source were changed"),
    "deployed": _("%(name)s was deployed"),
}


def suspected(info: FindingInfo) -> SuspectedList | None:
    """Return the suspected causes of a finding; None if there are none."""
    suspicions = suspicions_of(info.id)
    if not suspicions.found:
        return None
    return SuspectedList(began=suspicions.began, rows=tuple(_row(item, info) for item in suspicions.found))


def _row(item: Suspicion, info: FindingInfo) -> Suspected:
    values = {"version": item.version, "request": item.request, "name": item.name or _("the inherited value")}
    sentence = _SENTENCES[item.kind] % values
    if item.kind == "deployed":
        return Suspected(before=_span(item.seconds_before), sentence=sentence, url=item.url, elsewhere=True)
    return Suspected(before=_span(item.seconds_before), sentence=sentence, url=_url(item, info))


def _span(seconds: int) -> str:
    minutes = seconds // 60  # like the finding's sentence
    if minutes < 1:
        return counted(max(0, seconds), "%(n)s second before", "%(n)s seconds before")
    return counted(minutes, "%(n)s minute before", "%(n)s minutes before")


def _url(item: Suspicion, info: FindingInfo) -> str:
    if item.kind == "released" and item.request is not None:
        return reverse("ui:promotion", args=[item.request])
    if item.kind == "source":
        return reverse("ui:source", args=[info.source_id]) if info.source_name else ""
    if item.kind in ("client", "client_changed"):
        return subject_url(info.registry, item.subject, "usage") + "#clients-title"
    if item.subject and item.kind in ("registered", "unapproved"):
        return subject_url(info.registry, item.subject, version=item.version)
    if item.subject and item.kind in ("level", "mode"):
        return subject_url(info.registry, item.subject, tab="settings")
    if item.subject:
        return subject_url(info.registry, item.subject)
    return reverse("ui:policy", args=[info.registry])
