"""How much of the sources was really looked at lately, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.pages.sources_words import listed
from dashboard.presenters.drift_parts import Unreadable
from dashboard.texts import counted
from registry.drift.selectors import LATELY, SourceInfo, TopicCoverage

#: of what couldn't be read, what is told one by one
MOST: Final = 20


def _sources(sources: Sequence[SourceInfo], *, are_all: bool) -> str:
    fresh = sum(1 for source in sources if is_fresh(source))
    if are_all:
        return counted(
            len(sources),
            "%(fresh)s of %(n)s source scanned in the last 24 h",
            "%(fresh)s of %(n)s sources scanned in the last 24 h",
            fresh=fresh,
        )
    return counted(
        len(sources),
        "%(fresh)s of %(n)s other source scanned in the last 24 h",
        "%(fresh)s of %(n)s other sources scanned in the last 24 h",
        fresh=fresh,
    )


def coverage_of(sources: Sequence[SourceInfo], topics: TopicCoverage | None = None) -> str:
    """How much was really looked at, in one sentence; with `topics` those are counted instead of their sources."""
    if not sources:
        return ""
    parts = []
    others = list(sources)
    if topics is not None and topics.topics:
        parts.append(
            counted(
                topics.topics,
                "%(fresh)s of %(n)s topic scanned in the last 24 h",
                "%(fresh)s of %(n)s topics scanned in the last 24 h",
                fresh=f"{topics.fresh:,}",
            )
        )
        if topics.unreadable:
            parts.append(
                gettext("%(count)s unreadable: %(listed)s")
                % {
                    "count": f"{topics.unreadable_count:,}",
                    "listed": listed([topic.name for topic in topics.unreadable]),
                }
            )
        others = [source for source in sources if not source.cluster]
    if others:
        parts.append(_sources(others, are_all=others == list(sources)))
    failed = [source.name for source in sources if source.last_scan and source.last_scan.state == "failed"]
    if failed:
        parts.append(gettext("%(count)s can’t be read: %(listed)s") % {"count": len(failed), "listed": listed(failed)})
    return f"{'; '.join(parts)}."


def unreadable_of(sources: Sequence[SourceInfo], topics: TopicCoverage) -> tuple[Unreadable, ...]:
    """What couldn't be read with its reason: topics with the right that is missing, and sources whose scan failed."""
    found = [
        Unreadable(
            name=topic.name,
            reason=topic.reason,
            right=topic.right,
            anchor=f"right-{number}",
            url=reverse("ui:source", args=[topic.source_id]),
        )
        for number, topic in enumerate(topics.unreadable)
    ]
    found += [
        Unreadable(name=source.name, reason=source.last_scan.error, url=reverse("ui:source", args=[source.id]))
        for source in sources
        if source.last_scan and source.last_scan.state == "failed"
    ]
    found += [
        Unreadable(
            name=source.name,
            reason=gettext("Its last scan read nothing: that is not scanned, not clean."),
            url=reverse("ui:source", args=[source.id]),
        )
        for source in sources
        if source.last_scan and source.last_scan.verdict == "not scanned"
    ]
    return tuple(found[:MOST])


def is_fresh(source: SourceInfo) -> bool:
    """Whether its last scan read something, and lately."""
    scan = source.last_scan
    since = timezone.now() - LATELY
    return bool(scan and scan.verdict == "scanned" and scan.finished_at and scan.finished_at > since)
