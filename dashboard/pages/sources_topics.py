"""The topics of a source: filtered, paged, each with what is known of it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import lasting, patterns_of, sized
from dashboard.presenters.drift_parts import TopicRow, TopicSide, TopicTable
from dashboard.presenters.frame import ActiveFilter, Choice, Filter, Link, Paging, Search
from dashboard.presenters.looks import ScanState
from dashboard.texts import counted, later, listing
from registry.drift.selectors import SourceInfo, TopicInfo

PAGE: Final = 50
SHOWN_PARTITIONS: Final = 4
STRATEGIES: Final = {
    "topic_name": "TopicName",
    "record_name": "RecordName",
    "topic_record_name": "TopicRecordName",
}
SHOW: Final = {
    "": later("All topics"),
    "problem": later("Unreadable"),
    "findings": later("With findings"),
    "unread": later("Never read"),
    "gone": later("Gone"),
}


def topic_table(request: HttpRequest, source: SourceInfo, topics: list[TopicInfo]) -> TopicTable:
    """The topics that the query asks for."""
    base = reverse("ui:source", args=[source.id])
    query, show = request.GET.get("q", "").strip(), request.GET.get("show", "")
    show = show if show in SHOW else ""
    found = [topic for topic in topics if query.lower() in topic.name.lower() and _is_shown(topic, show)]
    offset = min(whole_number(request.GET.get("offset", "")) or 0, max(0, len(found) - 1)) // PAGE * PAGE
    page = found[offset : offset + PAGE]

    def at(number: int) -> str:
        given = {"q": query, "show": show, "offset": number or ""}
        return f"{base}?{urlencode({name: value for name, value in given.items() if value})}"

    counts = {key: sum(1 for topic in topics if _is_shown(topic, key)) for key in SHOW}
    choices = tuple(
        Choice(value=key, label=label, selected=key == show, count=counts[key])
        for key, label in SHOW.items()
        if not key or counts[key] or key == show
    )
    chips = (("topic", query, {"show": show}), ("show", SHOW[show] if show else "", {"q": query}))
    active = tuple(
        ActiveFilter(label=f"{label}: {text}", url=f"{base}?{urlencode({k: v for k, v in left.items() if v})}")
        for label, text, left in chips
        if text
    )
    return TopicTable(
        search=Search(
            url=base,
            query=query,
            label=gettext("Search topics"),
            filters=(Filter(name="show", label=gettext("Which topics"), choices=choices),),
            active=active,
        ),
        rows=tuple(_row(source, topic) for topic in page),
        paging=Paging(
            first=offset + 1 if page else 0,
            last=offset + len(page),
            total=len(found),
            previous_url=at(offset - PAGE) if offset else "",
            next_url=at(offset + PAGE) if offset + PAGE < len(found) else "",
        ),
        total=len(topics),
        patterns=patterns_of(source),
    )


def _is_shown(topic: TopicInfo, show: str) -> bool:
    return {
        "problem": bool(topic.problem),
        "findings": topic.open_findings > 0,
        "unread": topic.read_at is None and topic.gone_at is None,
        "gone": topic.gone_at is not None,
    }.get(show, True)


def _row(source: SourceInfo, topic: TopicInfo) -> TopicRow:
    chosen = {"source": source.id, "topic": topic.name}
    return TopicRow(
        name=topic.name,
        partitions=topic.partitions,
        keeps=keeps(topic),
        messages=topic.messages,
        read_to=_read_to(topic),
        sides=tuple(
            TopicSide(
                side=side,
                strategies=listing(STRATEGIES.get(name, name) for name in topic.strategies.get(side, ())),
                subjects=tuple(
                    Link(label=name, url=subject_url(source.registry, name)) for name in topic.subjects.get(side, ())
                ),
            )
            for side in ("key", "value")
            if topic.subjects.get(side) or topic.strategies.get(side)
        ),
        checked_at=topic.checked_at,
        read_at=topic.read_at,
        gone_at=topic.gone_at,
        problem=topic.problem,
        open_findings=topic.open_findings,
        findings_url=f"{reverse('ui:findings')}?{urlencode(chosen)}",
        state=_state(topic),
    )


def _state(topic: TopicInfo) -> ScanState:
    if topic.problem:
        return ScanState.FAILED
    return ScanState.DONE if topic.read_at else ScanState.NEVER


def keeps(topic: TopicInfo) -> str:
    """What lets a topic's data go, in words."""
    if topic.compacted:
        return gettext("compacted")
    if topic.retention_ms is None:
        return gettext("not known")
    by_time = gettext("for ever") if topic.retention_ms < 0 else lasting(max(1, topic.retention_ms // 1000))
    if topic.retention_bytes is not None and topic.retention_bytes >= 0:
        return gettext("%(by_time)s, %(sized)s a partition") % {
            "by_time": by_time,
            "sized": sized(topic.retention_bytes),
        }
    return by_time


def _read_to(topic: TopicInfo) -> str:
    """Positions of the first partitions, and how many more there are."""
    parts = [f"{number}@{offset}" for number, offset in sorted(topic.positions.items())]
    if len(parts) <= SHOWN_PARTITIONS:
        return " ".join(parts)
    return counted(
        len(parts) - SHOWN_PARTITIONS,
        "%(shown)s and %(n)s more partition",
        "%(shown)s and %(n)s more partitions",
        shown=" ".join(parts[:SHOWN_PARTITIONS]),
    )
