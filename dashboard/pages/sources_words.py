"""Sources and scans in words: what was read and what wasn't, how far, how a source is scanned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.drift.selectors import ScanInfo, SourceInfo

MODES: Final = {
    "since_last": "since the last scan",
    "tail": "the newest messages",
    "window": "a window of time",
    "full": "everything",
}
BOUNDS: Final = {"messages": "messages", "bytes": "bytes", "seconds": "time", "deadline": "time"}
SHOWN: Final = 5
_UNITS: Final = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def given_text(given: Mapping[str, str], name: str, usual: str = "") -> str:
    """A text of an address or a form, without the NUL that PostgreSQL refuses and without space at its ends."""
    return given.get(name, usual).replace("\0", "").strip()


def plural(number: int, word: str) -> str:
    """A number with its noun."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def listed(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def lasting(seconds: int) -> str:
    """A time in its largest whole unit: "5 minutes", "90 seconds", "1 day"."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    return plural(seconds // size, unit)


def sized(number: int) -> str:
    """Bytes as people read them."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:,.0f} {unit}" if value == int(value) else f"{value:,.1f} {unit}"


def schedule_of(source: SourceInfo) -> str:
    """When it is scanned."""
    return f"every {lasting(source.every_seconds)}" if source.every_seconds else "on demand"


def mode_of(source: SourceInfo) -> str:
    """What of the topics a scan reads; empty for sources without topics."""
    if not source.cluster:
        return ""
    if source.mode == "tail":
        return f"the newest {source.tail_messages:,} messages of each partition"
    if source.mode == "window":
        return f"the last {lasting(source.window_seconds)}"
    return MODES[source.mode]


def patterns_of(source: SourceInfo) -> str:
    """Which topics, by the patterns that were given."""
    text = listed(list(source.include)) if source.include else "all topics"
    return f"{text}, without {listed(list(source.exclude))}" if source.exclude else text


def what_was_read(scan: ScanInfo) -> str:
    """What a finished scan read, in words; empty before."""
    read = scan.read
    if read is None:
        return ""
    if read.get("nothing"):
        return "nothing to read"
    bound = (
        f"; stopped by its bound of {BOUNDS.get(reached, reached)}" if (reached := read.get("bound_reached")) else ""
    )
    return f"{_amount(read)} in {read.get('seconds', 0)} s{bound}"


def _amount(read: dict[str, Any]) -> str:
    if "advice" in read:
        broken = sum(1 for line in read["advice"] if line.get("followed") == "no")
        return f"{plural(len(read['advice']), 'piece')} of advice held against the registry, {broken} not followed"
    if "topics_asked" in read:
        topics = plural(read["topics_asked"], "topic")
        if not read["messages"]:
            return f"no new message in {topics}"
        return f"{plural(read['messages'], 'new message')} in {read['topics_read']:,} of {topics}"
    if "messages" in read:
        return f"{read['messages']:,} messages of {plural(len(read.get('partitions', ())), 'partition')}"
    return f"{plural(len(read.get('variables', ())), 'state variable')}, {read.get('rows', 0):,} rows"


def notes_on(read: dict[str, Any]) -> tuple[str, ...]:
    """What a scan left out or couldn't read, one sentence each."""
    notes = []
    if reached := read.get("bound_reached"):
        notes.append(f"The scan reached its bound of {BOUNDS.get(reached, reached)}: the next one goes on from there.")
    if problem := read.get("rows_problem"):
        notes.append(f"{problem[:1].upper()}{problem[1:].rstrip('.')}.")
    if names := _names(read.get("unreadable"), "topic"):
        notes.append(f"{plural(len(names), 'topic')} couldn’t be read: {listed(names)}. The reasons are below.")
    if gone := [str(name) for name in read.get("gone", ())]:
        notes.append(f"The cluster no longer has {listed(gone)}; their findings stay.")
    if restarted := [str(name) for name in read.get("restarted", ())]:
        notes.append(f"{listed(restarted)} began again at lower offsets, so they were read from their start.")
    if expired := read.get("expired"):
        lost = sum(row["end"] - row["start"] for row in expired)
        notes.append(f"{plural(lost, 'message')} had expired before a scan could read them: nothing is known of them.")
    if unused := read.get("schemas_not_used"):
        notes.append(f"{plural(len(unused), 'schema')} couldn’t be used for decoding: see below.")
    if unread := [str(name) for name in read.get("looked_at", {}).get("connectors_not_read", ())]:
        notes.append(f"The configuration of {listed(unread)} couldn’t be read.")
    notes += [
        f"{plural(number, 'more row')} of {name} were not kept." for name, number in read.get("left_out", {}).items()
    ]
    return tuple(notes)


def _names(rows: Any, key: str) -> list[str]:
    return [str(row[key]) for row in rows or () if key in row]
