"""How much of the sources was really looked at lately, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from dashboard.pages.sources_words import listed, plural
from registry.drift.selectors import LATELY, SourceInfo, TopicCoverage


def coverage_of(sources: Sequence[SourceInfo], topics: TopicCoverage | None = None) -> str:
    """How much was really looked at, in one sentence; with `topics` those are counted instead of their sources."""
    if not sources:
        return ""
    parts = []
    counted = list(sources)
    if topics is not None and topics.topics:
        parts.append(f"{topics.fresh:,} of {plural(topics.topics, 'topic')} scanned in the last 24 h")
        if topics.unreadable:
            parts.append(f"{len(topics.unreadable)} unreadable: {listed(list(topics.unreadable))}")
        counted = [source for source in sources if not source.cluster]
    if counted:
        what = "sources" if counted == list(sources) else "other sources"
        fresh = sum(1 for source in counted if _is_fresh(source))
        parts.append(f"{fresh} of {len(counted)} {what if len(counted) != 1 else what[:-1]} scanned in the last 24 h")
    failed = [source.name for source in sources if source.last_scan and source.last_scan.state == "failed"]
    if failed:
        parts.append(f"{len(failed)} can’t be read: {listed(failed)}")
    return f"{'; '.join(parts)}."


def _is_fresh(source: SourceInfo) -> bool:
    scan = source.last_scan
    since = timezone.now() - LATELY
    return bool(scan and scan.verdict == "scanned" and scan.finished_at and scan.finished_at > since)
