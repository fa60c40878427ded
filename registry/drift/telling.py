"""Telling of findings of severity `break`, in the transaction that keeps them, and of scans that fail.

Muted findings are not told of.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from django.db.models import OuterRef, Subquery

from registry.drift.models import Finding, Scan, Source
from registry.notifications.concerned import Happening
from registry.notifications.services import notify_many

MOST: Final = 20  # of a kind from one scan; the rest is told of in one sentence
OPENED, REOPENED, RESOLVED = "finding.opened", "finding.reopened", "finding.resolved"
FAILED: Final = "scan.failed"
_WORDS: Final = {OPENED: "were found", REOPENED: "came back", RESOLVED: "are resolved"}


def tell_of_seen(source: Source, *, opened: Sequence[Finding], reopened: Sequence[Finding]) -> None:
    """Tell of findings that a scan of a source opened, and opened again."""
    notify_many([*_happenings(source, OPENED, opened), *_happenings(source, REOPENED, reopened)])


def tell_of_resolved(source: Source, numbers: Collection[int]) -> None:
    """Tell of findings that scans of a source no longer see."""
    rows = Finding.objects.filter(pk__in=numbers, severity="break", muted=False).order_by("id")
    notify_many(_happenings(source, RESOLVED, list(rows)))


def tell_of_failed(scan_ids: Collection[int]) -> None:
    """Tell of scans that failed, where the scan of the source before them didn't: not again at every turn of a schedule."""
    if not scan_ids:
        return
    before = Scan.objects.filter(source=OuterRef("source"), pk__lt=OuterRef("pk"), state__in=("done", "failed"))
    scans = Scan.objects.filter(pk__in=scan_ids).annotate(before=Subquery(before.order_by("-pk").values("state")[:1]))
    notify_many(
        [
            Happening(
                FAILED,
                scan.source.registry.name,
                text=f"The scan of {scan.source.name} failed: {scan.error}",
                url=f"/ui/sources/{scan.source_id}",
                data={"scan": scan.pk, "source": scan.source.name, "error": scan.error},
            )
            for scan in scans.select_related("source__registry").order_by("pk")
            if scan.before != "failed"  # type: ignore[attr-defined]  # annotated
        ]
    )


def _happenings(source: Source, event: str, rows: Sequence[Finding]) -> list[Happening]:
    breaking = [row for row in rows if row.severity == "break" and not row.muted]
    registry = source.registry.name
    told = [
        Happening(
            event,
            registry,
            row.subject_name,
            text=f"Resolved: {row.sentence}" if event == RESOLVED else row.sentence,
            url=f"/ui/findings/{row.pk}",
            data={"finding": row.pk, "rule": row.rule, "severity": row.severity, "source": source.name},
        )
        for row in breaking[:MOST]
    ]
    rest = len(breaking) - MOST
    if rest > 0:
        text = f"{rest} more breaking findings of {source.name} {_WORDS[event]}."
        told.append(Happening(event, registry, text=text, url="/ui/findings", data={"source": source.name}))
    return told
