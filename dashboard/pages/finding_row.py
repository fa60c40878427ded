"""A finding in a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of
from dashboard.presenters.drift import (
    FindingRow,
)
from dashboard.presenters.drift_parts import FindingOrigin
from dashboard.presenters.frame import Link
from dashboard.presenters.looks import FindingState, Severity, SourceKind
from registry.access.roles import Actor
from registry.drift.selectors import FindingInfo
from registry.promotions.origins import readable_findings

RESOLVED: Final = "resolved"


def finding_row(info: FindingInfo, order: list[str], requests: Iterable[int] = ()) -> FindingRow:
    """A finding in a list; `requests` are the open ones that answer it, which a resolved one waits for no more."""
    return FindingRow(
        url=reverse("ui:finding", args=[info.id]),
        severity=Severity.of(info.severity),
        state=FindingState.of(info.state),
        sentence=info.sentence,
        rule=info.rule,
        source=info.source_name,
        source_kind=SourceKind.of(info.source_kind),
        source_url=reverse("ui:source", args=[info.source_id]) if info.source_name else "",
        location=info.location,
        environment=environment_of(info.registry, order),
        count=info.count,
        first_seen=info.first_seen,
        last_seen=info.last_seen,
        number=info.id,
        subject=info.subject,
        subject_url=subject_url(info.registry, info.subject) if info.subject else "",
        assignee=info.assigned_to,
        hint=info.cause,
        producer=producer_words(info),
        muted=info.muted,
        rebaselined=rebaselined(info),
        resolving=() if info.state == RESOLVED else tuple(map(_request, requests)),
    )


def producer_words(info: FindingInfo) -> str:
    """What points to the producer; "" where nothing stands out."""
    hint = info.producer_hint
    if hint is None:
        return ""
    return gettext("all in partition %(partition)s, of %(of)s") % {"partition": hint.partition, "of": hint.of}


def rebaselined(info: FindingInfo) -> str:
    """That a finding came up because a newer detector looked; "" for all others."""
    if info.rebaselined_from is None:
        return ""
    return gettext("Re-baselined: found by detector %(detector)s, earlier scans used %(earlier)s.") % {
        "detector": info.detector,
        "earlier": info.rebaselined_from,
    }


def _request(number: int) -> Link:
    return Link(label=f"#{number}", url=reverse("ui:promotion", args=[number]))


def finding_origin(number: int | None, actor: Actor) -> FindingOrigin | None:
    """The finding that a draft or a request answers; None where it is gone, or not the reader's to know of."""
    found = readable_findings([number], actor).get(number or 0)
    if found is None:
        return None
    return FindingOrigin(
        url=reverse("ui:finding", args=[found.id]),
        sentence=found.sentence,
        severity=Severity.of(found.severity),
        state=FindingState.of(found.state),
    )
