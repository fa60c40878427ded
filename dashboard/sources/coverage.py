"""Coverage: how much of the sources was recently scanned, and what "no drift" is based on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.translation import counted, joined
from dashboard.sources.labels import listed
from registry.drift.selectors import LATELY, ScanInfo, SourceInfo, TopicCoverage

#: unreadable topics and sources that are listed
MOST: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A topic or source that couldn't be read, and why; `right` is a command that grants the missing permission."""

    name: str
    reason: str
    url: str
    right: str = ""
    anchor: str = ""


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
    """Say how much was really scanned; with `topics`, topics are counted instead of their sources."""
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
    failed = [source.name for source in sources if source.last_ended and source.last_ended.state == "failed"]
    if failed:
        parts.append(gettext("%(count)s can’t be read: %(listed)s") % {"count": len(failed), "listed": listed(failed)})
    return f"{'; '.join(parts)}."


def unreadable_of(sources: Sequence[SourceInfo], topics: TopicCoverage) -> tuple[Unreadable, ...]:
    """Return what couldn't be read with the reason: topics with missing permissions, and sources with a failed scan."""
    rows = [
        Unreadable(
            name=topic.name,
            reason=topic.reason,
            right=topic.right,
            anchor=f"right-{number}",
            url=reverse("ui:source", args=[topic.source_id]),
        )
        for number, topic in enumerate(topics.unreadable)
    ]
    rows += [
        Unreadable(name=source.name, reason=source.last_ended.error, url=reverse("ui:source", args=[source.id]))
        for source in sources
        if source.last_ended and source.last_ended.state == "failed"
    ]
    rows += [
        Unreadable(
            name=source.name,
            reason=gettext("The last scan read nothing, so the source counts as not scanned, not clean."),
            url=reverse("ui:source", args=[source.id]),
        )
        for source in sources
        if source.last_ended and source.last_ended.verdict == "not scanned"
    ]
    return tuple(rows[:MOST])


def is_fresh(source: SourceInfo) -> bool:
    """Return whether the last finished scan read something, and is recent."""
    scan = source.last_ended
    since = timezone.now() - LATELY
    return bool(scan and scan.verdict == "scanned" and scan.finished_at and scan.finished_at > since)


def clean_of(scanned: Sequence[ScanInfo]) -> str:
    """Say that nothing was found, in how much, and between which times; "" if nothing was really scanned."""
    if not scanned:
        return ""
    what = {"what": _looked_at(scanned), "when": _between(scanned)}
    if not what["when"]:
        return gettext("No drift in %(what)s.") % what
    return gettext("No drift in %(what)s, %(when)s.") % what


def _looked_at(scanned: Sequence[ScanInfo]) -> str:
    """Count messages with their partitions, and rows with their state variables; else the sources read."""
    messages, partitions, rows, variables = 0, 0, 0, 0
    for scan in scanned:
        read = scan.read or {}
        messages += _number(read.get("messages"))
        partitions += _rows_of(read, "partitions")
        rows += _number(read.get("rows"))
        variables += _rows_of(read, "variables")
    parts = []
    if messages:
        parts.append(_messages(messages, partitions))
    if variables:
        parts.append(_variables(rows, variables))
    return joined(parts) or counted(len(scanned), "the data of %(n)s source", "the data of %(n)s sources")


def _messages(messages: int, partitions: int) -> str:
    text = counted(messages, "%(n)s message", "%(n)s messages")
    return counted(partitions, "%(messages)s in %(n)s partition", "%(messages)s in %(n)s partitions", messages=text)


def _variables(rows: int, variables: int) -> str:
    text = counted(rows, "%(n)s row", "%(n)s rows")
    return counted(variables, "%(rows)s of %(n)s state variable", "%(rows)s of %(n)s state variables", rows=text)


def _rows_of(read: dict[str, object], name: str) -> int:
    """Return the number of items, both listed and omitted."""
    listed, left_out = read.get(name), read.get("left_out")
    more = left_out.get(name) if isinstance(left_out, dict) else 0
    return (len(listed) if isinstance(listed, list | tuple) else 0) + _number(more)


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _between(scanned: Sequence[ScanInfo]) -> str:
    """Format the time from the first start to the last end."""
    begun = [scan.started_at or scan.finished_at for scan in scanned]
    first = min((at for at in begun if at), default=None)
    last = max((scan.finished_at for scan in scanned if scan.finished_at), default=None)
    if first is None or last is None:
        return ""
    return gettext("%(first)s–%(last)s UTC") % {"first": _at(first), "last": _at(last, since=first)}


def _at(moment: datetime, since: datetime | None = None) -> str:
    here = moment.astimezone(UTC)
    same = since is not None and since.astimezone(UTC).date() == here.date()
    return f"{here:%H:%M}" if same else f"{here:%Y-%m-%d %H:%M}"
