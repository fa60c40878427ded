"""Which versions of a subject are in use, and whether they can be retired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url, switch_url
from dashboard.pages.clients import clients_part
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.sources_words import lasting
from dashboard.pages.subject_parts import subject_crumbs, subject_parts
from dashboard.presenters.frame import Problem, Section
from dashboard.presenters.usage import (
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
from dashboard.texts import later
from registry.drift.retirement import Retirement
from registry.drift.retiring import SubjectRetirement, retirement_of
from registry.drift.usage import Coverage, TopicUse, VersionUse
from registry.subjects.evidence import Evidence
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry

SHOWN_REASONS: Final = 12
SHOWN_TOPICS: Final = 50
SHOWN_PARTITIONS: Final = 50
FRAMINGS: Final = {"id": later("schema id"), "guid": later("GUID"), "content_type": later("content type")}


def usage_url(registry: str, subject: str) -> str:
    """The address of the page of a subject's use."""
    return subject_url(registry, subject, "usage")


def usage_page(
    request: HttpRequest, registry: str, subject: str, *, given: Mapping[str, str] | None = None, refused: str = ""
) -> UsagePage:
    """The use of a subject's versions; with `ask=1` the clusters are asked, some seconds at most each.

    `given` is a client that was to be declared, and `refused` why it wasn't.

    Raises SubjectNotFound, RegistryNotFound.
    """
    place, name = get_registry(registry), parse_subject(subject)
    ask = request.GET.get("ask") == "1"
    found = retirement_of(place, name, by=page_actor(request), ask=ask)
    own = [topic for topic in found.use.coverage if topic.is_own]
    base = usage_url(place.name, name.qualified)
    return UsagePage(
        frame=make_frame(
            request,
            title=gettext("Use of %(qualified)s") % {"qualified": name.qualified},
            section=Section.SUBJECTS,
            registry=place.name,
            crumbs=subject_crumbs(place.name, name),
            parts=subject_parts(place.name, name, "usage"),
            url_in=lambda other: switch_url(other, name.qualified, "usage"),
        ),
        subject=name.qualified,
        subject_url=subject_url(place.name, name.qualified),
        decode_url=f"{reverse('ui:decode')}?{urlencode({'registry': place.name})}",
        retire_url=subject_url(place.name, name.qualified, "retire"),
        orphans_url=reverse("ui:orphans", args=[place.name]),
        versions=tuple(_version(found, use, own) for use in reversed(found.use.versions)),
        whole=verdict_of_retirement(found.subject),
        coverage=tuple(_coverage(topic) for topic in found.use.coverage),
        declared=clients_part(
            request,
            place,
            name,
            [use.version for use in found.use.versions if not use.deleted],
            given=given,
            problem=refused,
        ),
        ask_url="" if ask else f"{base}?ask=1",
        asked_at=found.asked_at,
        data_as_of=min((topic.checked_at for topic in own if topic.checked_at), default=None),
        problems=tuple(
            Problem(
                what=gettext("Not all could be asked: %(problem)s") % {"problem": problem},
                cure=gettext("What the last scans kept is used instead."),
            )
            for problem in found.problems
        ),
    )


def verdict_of_retirement(retirement: Retirement) -> RetireVerdict:
    """An answer with its reasons, the weightiest of them."""
    return RetireVerdict(
        answer=Retire.of(retirement.answer),
        sentence=retirement.sentence,
        date=retirement.date,
        reasons=tuple(
            RetireReason(answer=Retire.of(reason.answer), sentence=reason.sentence)
            for reason in retirement.reasons[:SHOWN_REASONS]
        ),
    )


def _version(found: SubjectRetirement, use: VersionUse, own: Sequence[Coverage]) -> VersionUsage:
    evidence = found.evidence.get(use.version, ())
    return VersionUsage(
        version=use.version,
        schema_id=use.schema_id,
        url=subject_url(found.use.registry, found.use.subject, version=use.version),
        verdict=verdict_of_retirement(found.versions[use.version]),
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
        return gettext("not known")
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
        known=whole and not gaps,
        checked_at=topic.checked_at,
    )


def _keeps(topic: Coverage) -> str:
    if topic.compacted:
        return gettext("compacted")
    if topic.retention_ms is None:
        return gettext("not known")
    return gettext("for ever") if topic.retention_ms < 0 else lasting(max(1, topic.retention_ms // 1000))
