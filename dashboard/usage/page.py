"""Which versions of a subject are in use, whether they can be retired, and the clients of its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import given_text, subject_crumbs, subject_parts, subject_url, switch_url
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Field, Problem, Section
from dashboard.sources.labels import lasting
from dashboard.usage.presenters import (
    ClientRow,
    Clients,
    CoverageRow,
    EvidenceLine,
    InUse,
    PartitionUseRow,
    Retire,
    RetireReason,
    RetireVerdict,
    TopicUseRow,
    UsagePage,
    VersionUsage,
)
from registry.access.roles import refusal
from registry.drift.usage.retirement import SubjectRetirement, retirement_of
from registry.drift.usage.retirement_rules import Retirement
from registry.drift.usage.version_usage import Coverage, TopicUse, VersionUse
from registry.errors import InvalidInput
from registry.subjects.models import Registry
from registry.subjects.usage.clients import ACTION, ClientInfo, clients_of
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

SHOWN: Final = 100
#: what a client does → whether it reads, whether it writes
DOES: Final = {"reads": (True, False), "writes": (False, True), "both": (True, True)}
_WORDS: Final = {"reads": later("reads"), "writes": later("writes"), "both": later("reads and writes")}
#: the same by the words that `registry` has for it
DOES_WORDS: Final = {"reads": _WORDS["reads"], "writes": _WORDS["writes"], "reads and writes": _WORDS["both"]}


def clients_part(
    request: HttpRequest,
    registry: Registry,
    name: SubjectName,
    versions: Sequence[int],
    *,
    values: Mapping[str, str] | None = None,
    problem: str = "",
) -> Clients:
    """The clients of a subject, and the form for one more with what was given; `versions` are the live ones."""
    reason = refusal(page_actor(request), ACTION, registry=registry.name, subject=name.qualified)
    clients = clients_of(registry, name)
    return Clients(
        rows=tuple(_row(registry, name, client, reason) for client in clients[:SHOWN]),
        hidden=max(0, len(clients) - SHOWN),
        fields=_fields(values or {}, versions),
        declare=Action(
            label=gettext("Declare client"),
            url=reverse("ui:client_declare", args=[registry.name, name.qualified]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        ),
        api=f"/api/v1/registries/{quote(registry.name, safe='')}/subjects/{quote(name.qualified, safe='')}/clients/NAME",
        problem=Problem(what=problem) if problem else None,
    )


def given_client(request: HttpRequest) -> dict[str, Any]:
    """What a sent form says, as `declare_client` takes it. Raises InvalidInput."""
    reads, writes = DOES.get(given_text(request.POST, "does"), (False, False))
    version = given_text(request.POST, "version")
    if version and not (version.isascii() and version.isdigit() and len(version) < 11):
        raise InvalidInput(gettext("The version is not a number."), field="version")
    return {
        "name": given_text(request.POST, "name"),
        "reads": reads,
        "writes": writes,
        "version": int(version) if version else None,
        "fields": request.POST.get("fields", "").replace(",", "\n").splitlines(),
        "contact": given_text(request.POST, "contact"),
    }


def _row(registry: Registry, name: SubjectName, client: ClientInfo, reason: str) -> ClientRow:
    does = "both" if client.reads and client.writes else "reads" if client.reads else "writes"
    number = "" if client.number is None else str(client.number)
    return ClientRow(
        name=client.name,
        does=str(_WORDS[does]),
        version=number if client.version else gettext("newest (currently %(version)s)") % {"version": number or "—"},
        version_url=subject_url(registry.name, name.qualified, version=client.number) if client.number else "",
        fields=client.fields,
        contact=client.contact,
        seen_at=client.seen_at,
        declared_by=client.declared_by,
        lapsed=client.has_lapsed,
        withdraw=Action(
            label=gettext("Withdraw"),
            url=reverse("ui:client_withdraw", args=[registry.name, name.qualified]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="danger",
        ),
    )


def _fields(values: Mapping[str, str], versions: Sequence[int]) -> tuple[Field, ...]:
    does, version = values.get("does", "reads"), values.get("version", "")
    return (
        Field(
            name="name",
            label=gettext("Name"),
            value=values.get("name", ""),
            required=True,
            help=gettext("For example, the name of its consumer group or service."),
        ),
        Field(
            name="does",
            label=gettext("Access"),
            kind="select",
            choices=tuple(Choice(value=key, label=str(word), selected=key == does) for key, word in _WORDS.items()),
        ),
        Field(
            name="version",
            label=gettext("Version it was built with"),
            kind="select",
            choices=(
                Choice(value="", label=gettext("newest at each start"), selected=not version),
                *(Choice(value=str(n), label=str(n), selected=str(n) == version) for n in sorted(versions)[::-1]),
            ),
        ),
        Field(
            name="fields",
            label=gettext("Fields it uses"),
            kind="textarea",
            rows=3,
            code=True,
            value=values.get("fields", ""),
            help=gettext("One path per line, such as Order.id. If empty, its fields are unknown."),
        ),
        Field(
            name="contact",
            label=gettext("Contact"),
            value=values.get("contact", ""),
            help=gettext("A team, a channel or an address."),
        ),
    )


SHOWN_REASONS: Final = 12
SHOWN_TOPICS: Final = 50
SHOWN_PARTITIONS: Final = 50
FRAMINGS: Final = {"id": later("schema id"), "guid": later("GUID"), "content_type": later("content type")}


def usage_url(registry: str, subject: str) -> str:
    """The address of the page of a subject's use."""
    return subject_url(registry, subject, "usage")


def usage_page(
    request: HttpRequest,
    registry: str,
    subject: str,
    *,
    refused_values: Mapping[str, str] | None = None,
    refused: str = "",
) -> UsagePage:
    """The use of a subject's versions; with `ask=1` the clusters are asked, some seconds at most each.

    `refused_values` is the form of a client that was refused, and `refused` says why.

    Raises SubjectNotFound, RegistryNotFound.
    """
    registry_row, name = get_registry(registry), parse_subject(subject)
    ask = request.GET.get("ask") == "1"
    retirement = retirement_of(registry_row, name, by=page_actor(request), ask=ask)
    own = [topic for topic in retirement.use.coverage if topic.is_own]
    base = usage_url(registry_row.name, name.qualified)
    return UsagePage(
        frame=make_frame(
            request,
            title=gettext("Use of %(qualified)s") % {"qualified": name.qualified},
            section=Section.SUBJECTS,
            registry=registry_row.name,
            crumbs=subject_crumbs(registry_row.name, name),
            parts=subject_parts(registry_row.name, name, "usage"),
            url_in=lambda other: switch_url(other, name.qualified, "usage"),
        ),
        subject=name.qualified,
        subject_url=subject_url(registry_row.name, name.qualified),
        decode_url=f"{reverse('ui:decode')}?{urlencode({'registry': registry_row.name})}",
        retire_url=subject_url(registry_row.name, name.qualified, "retire"),
        orphans_url=reverse("ui:orphans", args=[registry_row.name]),
        versions=tuple(_version(retirement, use, own) for use in reversed(retirement.use.versions)),
        whole=verdict_of_retirement(retirement.subject),
        coverage=tuple(_coverage(topic) for topic in retirement.use.coverage),
        declared=clients_part(
            request,
            registry_row,
            name,
            [use.version for use in retirement.use.versions if not use.deleted],
            values=refused_values,
            problem=refused,
        ),
        ask_url="" if ask else f"{base}?ask=1",
        asked_at=retirement.asked_at,
        data_as_of=min((topic.checked_at for topic in own if topic.checked_at), default=None),
        problems=tuple(
            Problem(
                what=gettext("Some sources couldn’t be checked: %(problem)s") % {"problem": problem},
                cure=gettext("Results of the last scans are used instead."),
            )
            for problem in retirement.problems
        ),
    )


def verdict_of_retirement(retirement: Retirement) -> RetireVerdict:
    """An answer with its reasons, the weightiest of them."""
    return RetireVerdict(
        outcome=Retire.of(retirement.answer),
        sentence=retirement.sentence,
        date=retirement.date,
        reasons=tuple(
            RetireReason(outcome=Retire.of(reason.answer), sentence=reason.sentence)
            for reason in retirement.reasons[:SHOWN_REASONS]
        ),
    )


def _version(retirement: SubjectRetirement, use: VersionUse, own: Sequence[Coverage]) -> VersionUsage:
    evidence = retirement.evidence.get(use.version, ())
    return VersionUsage(
        version=use.version,
        schema_id=use.schema_id,
        url=subject_url(retirement.use.registry, retirement.use.subject, version=use.version),
        verdict=verdict_of_retirement(retirement.versions[use.version]),
        data=tuple(_topic(item) for item in use.topics[:SHOWN_TOPICS]),
        topics_hidden=max(0, len(use.topics) - SHOWN_TOPICS) + use.topics_hidden,
        state=_lines(evidence, "state"),
        clients=_lines(evidence, "clients"),
        messages=use.messages,
        deleted=use.deleted,
        latest=use.is_latest,
        shared_with=use.shared_with,
        shared_hidden=use.shared_hidden,
        referrers=use.referrers,
        referrers_hidden=use.referrers_hidden,
        first_time=use.first_time,
        last_time=use.last_time,
    )


def _lines(evidence: Sequence[Evidence], kind: str) -> tuple[EvidenceLine, ...]:
    return tuple(
        EvidenceLine(in_use=InUse.of(item.in_use), sentence=item.sentence, until=item.until, as_of=item.as_of)
        for item in evidence
        if item.kind == kind
    )


def _topic(use: TopicUse) -> TopicUseRow:
    mark = f"{FRAMINGS.get(use.framing, use.framing)} {use.mark}"
    return TopicUseRow(
        topic=use.topic,
        side=use.side,
        cluster=use.cluster,
        source=use.source,
        mark=mark,
        messages=use.messages,
        share=_share(use.share),
        percent=0 if use.share is None else max(1, round(use.share * 100)),
        first_time=use.first_time,
        last_time=use.last_time,
        foreign=use.owner == "other",
        partitions=tuple(
            PartitionUseRow(
                partition=part.partition,
                messages=part.messages,
                first_offset=part.first_offset,
                last_offset=part.last_offset,
                first_time=part.first_time,
                last_time=part.last_time,
                undecodable=part.undecodable,
            )
            for part in use.partitions[:SHOWN_PARTITIONS]
        ),
        hidden=max(0, len(use.partitions) - SHOWN_PARTITIONS),
    )


def _share(share: float | None) -> str:
    if share is None:
        return gettext("unknown")
    if 0 < share < 0.001:
        return gettext("under 0.1 %")
    return "100 %" if share == 1 else f"{share * 100:.1f} %"


def _coverage(topic: Coverage) -> CoverageRow:
    """How far a topic was read; it is known wholly where every partition was read from its first offset on."""
    whole = not topic.problem and topic.gone_at is None and topic.read_at is not None
    gaps = len(topic.read_from) < topic.partitions or any(offset > 0 for offset in topic.read_from.values())
    return CoverageRow(
        topic=topic.topic,
        cluster=topic.cluster,
        source=topic.source,
        sentence=topic.sentence,
        keeps=_keeps(topic),
        is_known=whole and not gaps,
        checked_at=topic.checked_at,
    )


def _keeps(topic: Coverage) -> str:
    if topic.compacted:
        return gettext("compacted")
    if topic.retention_ms is None:
        return gettext("unknown")
    return gettext("unlimited") if topic.retention_ms < 0 else lasting(max(1, topic.retention_ms // 1000))
