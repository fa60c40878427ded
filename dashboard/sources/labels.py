"""Labels of sources and scans: what was read, what wasn't, the lag, and the schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.components.badges import Look, ScanState, SourceBadge
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from registry.access.roles import Actor, refusal
from registry.drift.selectors import ScanInfo, SourceInfo
from registry.drift.sources import SOURCES, kind_of

MODES: Final = {
    "since_last": _("since the last scan"),
    "tail": _("the newest messages"),
    "window": _("a window of time"),
    "full": _("everything"),
}
BOUNDS: Final = {"messages": _("messages"), "bytes": _("bytes"), "seconds": _("time"), "deadline": _("time")}
SHOWN: Final = 5
_UNITS: Final[tuple[tuple[int, Callable[[int], str]], ...]] = (
    (86_400, lambda number: counted(number, "%(n)s day", "%(n)s days")),
    (3600, lambda number: counted(number, "%(n)s hour", "%(n)s hours")),
    (60, lambda number: counted(number, "%(n)s minute", "%(n)s minutes")),
    (1, lambda number: counted(number, "%(n)s second", "%(n)s seconds")),
)


def read_by(sources: int) -> str:
    """Say why a cluster with sources can't be removed."""
    return counted(
        sources, "%(n)s source reads it. Remove the source first.", "%(n)s sources read it. Remove the sources first."
    )


def listed(names: list[str]) -> str:
    """Join the first names, with the number of others."""
    shown = listing(names[:SHOWN])
    if len(names) <= SHOWN:
        return shown
    return gettext("%(shown)s and %(n)s more") % {"shown": shown, "n": len(names) - SHOWN}


def format_duration(seconds: int) -> str:
    """Format a duration in its largest whole unit: "5 minutes", "90 seconds", "1 day"."""
    size, text_of = next((size, text_of) for size, text_of in _UNITS if seconds % size == 0)
    return text_of(seconds // size)


def sized(number: int) -> str:
    """Format a number of bytes."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:,.0f} {unit}" if value == int(value) else f"{value:,.1f} {unit}"


def schedule_of(source: SourceInfo) -> str:
    """Say when the source is scanned."""
    if not source.every_seconds:
        return gettext("on demand")
    return gettext("every %(time)s") % {"time": format_duration(source.every_seconds)}


def mode_of(source: SourceInfo) -> str:
    """Say which part of the topics a scan reads; empty for sources without topics."""
    if not source.cluster:
        return ""
    if source.mode == "tail":
        return gettext("the newest %(tail_messages)s messages of each partition") % {
            "tail_messages": f"{source.tail_messages:,}"
        }
    if source.mode == "window":
        return gettext("the last %(lasting)s") % {"lasting": format_duration(source.window_seconds)}
    return MODES[source.mode]


def patterns_of(source: SourceInfo) -> str:
    """Say which topics are read, by the patterns."""
    text = listed(list(source.include)) if source.include else gettext("all topics")
    return (
        gettext("%(text)s, without %(listed)s") % {"text": text, "listed": listed(list(source.exclude))}
        if source.exclude
        else text
    )


def what_was_read(kind: str, scan: ScanInfo) -> str:
    """Say what a finished scan of a source of that kind read; empty for an unfinished one."""
    read = scan.read
    if read is None:
        return ""
    if read.get("nothing"):
        return _nothing(read)
    sentence = gettext("%(amount)s in %(seconds)s s") % {
        "amount": kind_of(kind).amount(read),
        "seconds": read.get("seconds", 0),
    }
    if not (reached := read.get("bound_reached")):
        return sentence
    return gettext("%(said)s; stopped at its limit of %(bound)s") % {
        "said": sentence,
        "bound": BOUNDS.get(reached, reached),
    }


def _nothing(read: dict[str, Any]) -> str:
    """Say why nothing was read; unreadable topics may have had messages."""
    if names := _names(read.get("unreadable"), "topic"):
        return counted(
            len(names), "nothing read: %(n)s topic couldn’t be read", "nothing read: %(n)s topics couldn’t be read"
        )
    return gettext("nothing to read")


def scan_state(scan: ScanInfo | None) -> ScanState:
    """Return the state of a scan; one that read nothing is "not scanned"."""
    return ScanState.of(scan.verdict) if scan else ScanState.NEVER


def scan_refusal(actor: Actor, source: SourceInfo) -> str:
    """Say why somebody may not scan a source now; empty if they may."""
    reason = refusal(actor, "source.scan", registry=source.registry)
    if reason or not source.last_scan or not source.last_scan.unfinished:
        return reason
    return gettext("Scan %(id)s is %(state)s.") % {"id": source.last_scan.id, "state": source.last_scan.state}


def source_badge(kind: str) -> SourceBadge:
    """Return the badge of a kind of source."""
    declared = kind_of(kind)
    return SourceBadge(kind, Look("plain", declared.icon, gettext(declared.label)))


def source_badges() -> tuple[SourceBadge, ...]:
    """Return the badges of all kinds of source."""
    return tuple(map(source_badge, SOURCES))


def _behind(behind: dict[str, Any]) -> str:
    """Say how far the scans are behind, and when they will catch up, if known."""
    sentence = counted(behind["offsets"], "The source is %(n)s message behind.", "The source is %(n)s messages behind.")
    if behind.get("falls_back"):
        return gettext(
            "%(said)s It won’t catch up at this rate because more messages arrive than a scan reads. Scan more "
            "often, or raise the limits."
        ) % {"said": sentence}
    if behind.get("caught_up_at"):
        return gettext("%(said)s At this rate, it catches up at about %(time)s, after %(scans)s more scans.") % {
            "said": sentence,
            "time": f"{datetime.fromisoformat(behind['caught_up_at']).astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            "scans": f"{behind['scans']:,}",
        }
    return gettext("%(said)s It is not yet known when it will catch up.") % {"said": sentence}


def notes_on(read: dict[str, Any]) -> tuple[str, ...]:
    """Say what a scan omitted or couldn't read, one sentence each."""
    return tuple(_notes(read))


def _notes(read: dict[str, Any]) -> Iterator[str]:
    if reached := read.get("bound_reached"):
        limit = gettext("The scan reached its limit of %(reached)s. The next scan continues from there.")
        yield limit % {"reached": BOUNDS.get(reached, reached)}
    if behind := read.get("behind"):
        yield _behind(behind)
    if problem := read.get("rows_problem"):
        yield f"{problem[:1].upper()}{problem[1:].rstrip('.')}."
    if names := _names(read.get("unreadable"), "topic"):
        yield counted(
            len(names),
            "%(n)s topic couldn’t be read: %(names)s. The reasons are below.",
            "%(n)s topics couldn’t be read: %(names)s. The reasons are below.",
            names=listed(names),
        )
    if names := _names(read.get("settings_unknown"), "topic"):
        yield counted(
            len(names),
            "Whether %(n)s topic is compacted, and how long it keeps messages, wasn’t checked: %(names)s. The reason "
            "is below.",
            "Whether %(n)s topics are compacted, and how long they keep messages, wasn’t checked: %(names)s. The "
            "reasons are below.",
            names=listed(names),
        )
    if gone := [str(name) for name in read.get("gone", ())]:
        yield gettext("The cluster no longer has %(listed)s. Their findings are kept.") % {"listed": listed(gone)}
    if restarted := [str(name) for name in read.get("restarted", ())]:
        yield counted(
            len(restarted),
            "%(n)s topic was deleted and recreated, so it was read from its start: %(names)s.",
            "%(n)s topics were deleted and recreated, so they were read from their start: %(names)s.",
            names=listed(restarted),
        )
    if expired := read.get("expired"):
        yield counted(
            sum(row["end"] - row["start"] for row in expired),
            "%(n)s message expired before a scan could read it: its content is unknown.",
            "%(n)s messages expired before a scan could read them: their content is unknown.",
        )
    if unused := read.get("schemas_not_used"):
        yield counted(
            len({(row.get("framing"), row.get("mark")) for row in unused}),
            "%(n)s schema couldn’t be used for decoding. See below.",
            "%(n)s schemas couldn’t be used for decoding. See below.",
        )
    yield from _unchecked(read)
    yield from map(str, read.get("notes", ()))
    if unread := [str(name) for name in read.get("looked_at", {}).get("connectors_not_read", ())]:
        yield gettext("The configuration of %(listed)s couldn’t be read.") % {"listed": listed(unread)}
    for name, number in read.get("left_out", {}).items():
        yield counted(
            number,
            "%(n)s more row of %(name)s was not stored.",
            "%(n)s more rows of %(name)s were not stored.",
            name=name,
        )


def _unchecked(read: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on what the scan read but didn't check, with counts."""
    if number := read.get("not_decoded"):
        yield counted(
            number,
            "%(n)s key or value was not decoded: its content was not checked. The findings name the reason.",
            "%(n)s keys or values were not decoded: their content was not checked. The findings name the reasons.",
        )
    limits = [str(sentence) for sentence in read.get("limits", ())]
    yield from limits[:SHOWN]
    if number := len(limits[SHOWN:]) + int(read.get("limits_left_out", 0)):
        yield counted(
            number,
            "%(n)s more limit kept something from being checked. See the findings of CHECK_LIMITED.",
            "%(n)s more limits kept something from being checked. See the findings of CHECK_LIMITED.",
        )


def _names(rows: Any, key: str) -> list[str]:
    return [str(row[key]) for row in rows or () if key in row]
