"""What the last scans looked at and when, in one sentence: what "no drift" rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.utils.translation import gettext

from dashboard.texts import counted, joined
from registry.drift.selectors import ScanInfo


def clean_of(scanned: Sequence[ScanInfo]) -> str:
    """That nothing was found, in how much, and between which moments; "" where nothing was really scanned."""
    if not scanned:
        return ""
    what = {"what": _looked_at(scanned), "when": _between(scanned)}
    if not what["when"]:
        return gettext("No drift in %(what)s.") % what
    return gettext("No drift in %(what)s, %(when)s.") % what


def _looked_at(scanned: Sequence[ScanInfo]) -> str:
    """Messages with their partitions, state variables with their rows; else the sources that were read."""
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
    return joined(parts) or counted(len(scanned), "what %(n)s source holds", "what %(n)s sources hold")


def _messages(messages: int, partitions: int) -> str:
    said = counted(messages, "%(n)s message", "%(n)s messages")
    return counted(partitions, "%(messages)s over %(n)s partition", "%(messages)s over %(n)s partitions", messages=said)


def _variables(rows: int, variables: int) -> str:
    said = counted(rows, "%(n)s row", "%(n)s rows")
    return counted(variables, "%(rows)s of %(n)s state variable", "%(rows)s of %(n)s state variables", rows=said)


def _rows_of(read: dict[str, object], name: str) -> int:
    """How many there were: those that are listed, and those that were left out of the list."""
    listed, left_out = read.get(name), read.get("left_out")
    more = left_out.get(name) if isinstance(left_out, dict) else 0
    return (len(listed) if isinstance(listed, list | tuple) else 0) + _number(more)


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _between(scanned: Sequence[ScanInfo]) -> str:
    """From the first begin to the last end, the day said once."""
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
