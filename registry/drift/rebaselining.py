"""Findings that come up because a newer detector looks: a new baseline, no new drift."""

from __future__ import annotations

from collections.abc import Iterable

from registry.drift.detector import DETECTOR
from registry.drift.models import Finding, Scan


def detector_before(scan: Scan) -> int | None:
    """The detector of the last scan of the source that read something; None where there is none, or none was kept."""
    done = Scan.objects.filter(source_id=scan.source_id, state="done", pk__lt=scan.pk).exclude(read__nothing=True)
    return done.order_by("-pk").values_list("detector", flat=True).first()


def note_detector(row: Finding, rule: str, looked: int | None) -> None:
    """Which detector looked when the finding came up, after scans with the detector `looked`."""
    row.detector = DETECTOR.version
    row.rebaselined_from = looked if DETECTOR.is_new_in(rule, looked) else None


def alarming(rows: Iterable[Finding]) -> list[Finding]:
    """Those that are told of as fresh drift."""
    return [row for row in rows if row.rebaselined_from is None]
