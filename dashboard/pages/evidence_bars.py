"""The evidence of a finding that counts by name, as tables with bars; hours with what was deployed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.presenters.drift_parts import Bar, BarTable
from dashboard.texts import counted, later

#: evidence that counts by name → title and what the names are
COUNTED: Final = {
    "ids_by_hour": (later("Messages by the time they carry"), later("Hour (UTC)")),
    "ids_over_time": (later("Messages over time"), later("Seen by the scan of (UTC)")),
    "looks_like": (later("What the bytes look like"), later("Looks like")),
    "not_told": (later("Messages of this side that couldn’t be told"), later("What is in the way")),
    "framings": (later("How messages name their schema"), later("Framing")),
    "framings_before": (later("How earlier messages name it"), later("Framing")),
    "types": (later("Message types"), later("Type")),
    "kinds": (later("Types seen"), later("Type")),
    "values": (later("Values seen"), later("Value")),
}
#: of these, what is told in the order of time
IN_TIME: Final = frozenset({"ids_by_hour", "ids_over_time"})
SHOWN_BARS: Final = 24


def bar_tables(
    evidence: Mapping[str, Any], deployed: Mapping[str, Sequence[str]] | None = None
) -> tuple[BarTable, ...]:
    """Counts by name as tables with bars; the largest has the longest.

    `deployed` is what was deployed by hour (as `ids_by_hour` names them): said in its hour, also in one without messages.
    """
    tables = []
    for key, (title, label) in COUNTED.items():
        counts = evidence.get(key)
        if not isinstance(counts, Mapping) or not counts:
            continue
        marks = (deployed or {}) if key == "ids_by_hour" else {}
        empty = sorted(set(marks) - set(counts), reverse=True)[: max(0, SHOWN_BARS - len(counts))]
        bars, more = _bars(key, {**dict.fromkeys(empty, 0), **counts}, marks)
        if key == "ids_by_hour":
            more = _by_hour_note(evidence)
        if bars:
            tables.append(BarTable(title=title, label=label, bars=bars, note=more))
    return tuple(tables)


def _bars(key: str, counts: Mapping[Any, Any], marks: Mapping[str, Sequence[str]]) -> tuple[tuple[Bar, ...], str]:
    """The bars that are shown, and how many more there are."""
    numbers = {str(name): number for name, number in counts.items() if isinstance(number, int)}
    most = max(numbers.values(), default=0)
    ordered = sorted(numbers.items(), key=lambda item: (key not in IN_TIME and -item[1], item[0]))
    bars = tuple(
        Bar(
            label=name.replace("_", " "),
            count=number,
            percent=max(1, number * 100 // most) if number > 0 else 0,
            marks=tuple(marks.get(name, ())),
        )
        for name, number in ordered[:SHOWN_BARS]
    )
    left = len(ordered) - SHOWN_BARS
    return bars, gettext("%(number)s more are not shown") % {"number": left} if left > 0 else ""


def _by_hour_note(evidence: Mapping[str, Any]) -> str:
    """What the counts by hour rest on: scans tell the first and the last time of what they read, not each."""
    spread, earlier = evidence.get("ids_by_hour_spread", 0), evidence.get("ids_by_hour_earlier", 0)
    said = [gettext("Of what scans read.")]
    if spread:
        said.append(
            counted(
                spread,
                "%(n)s message lies in a span of several hours and is spread evenly over them.",
                "%(n)s messages lie in spans of several hours and are spread evenly over them.",
            )
        )
    if earlier:
        said.append(counted(earlier, "%(n)s earlier message is not drawn.", "%(n)s earlier messages are not drawn."))
    return " ".join(said)
