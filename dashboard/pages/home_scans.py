"""The sources that weren't scanned, or whose scan failed, one line each: the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.sources import scan_state
from dashboard.pages.sources_coverage import is_fresh
from dashboard.presenters.home import HealthLine
from dashboard.presenters.looks import ScanState
from registry.drift.selectors import SourceInfo

#: of these the strip has a line
MOST: Final = 5
_WORST_FIRST: Final = (ScanState.FAILED, ScanState.NEVER, ScanState.EMPTY, ScanState.CANCELLED, ScanState.DONE)


def scan_lines(sources: Sequence[SourceInfo]) -> list[HealthLine]:
    """A line for each source that isn't known to be well: failed, never scanned, nothing read, ended, or long ago.

    One that is being scanned has none.
    """
    found = [
        (_WORST_FIRST.index(state), each)
        for each in sources
        if (state := scan_state(each.last_scan)) in _WORST_FIRST and not is_fresh(each)
    ]
    return [_line(each) for _, each in sorted(found, key=lambda pair: (pair[0], pair[1].name, pair[1].id))]


def _line(source: SourceInfo) -> HealthLine:
    state, scan = scan_state(source.last_scan), source.last_scan
    return HealthLine(
        name=source.name,
        url=reverse("ui:source", args=[source.id]),
        state=ScanState.NEVER if state is ScanState.DONE else state,
        word=gettext("Not in the last 24 h") if state is ScanState.DONE else "",
        at=scan.finished_at if scan else None,
    )
