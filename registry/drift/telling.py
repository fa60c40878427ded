"""Telling of findings of severity `break`, in the transaction that keeps them. Muted ones are not told of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from registry.drift.models import Finding, Source
from registry.notifications.concerned import Happening
from registry.notifications.services import notify_many

MOST: Final = 20  # of a kind from one scan; the rest is told of in one sentence
OPENED, REOPENED, RESOLVED = "finding.opened", "finding.reopened", "finding.resolved"
_WORDS: Final = {OPENED: "were found", REOPENED: "came back", RESOLVED: "are resolved"}


def tell_of_seen(source: Source, *, opened: Sequence[Finding], reopened: Sequence[Finding]) -> None:
    """Tell of findings that a scan of a source opened, and opened again."""
    notify_many([*_happenings(source, OPENED, opened), *_happenings(source, REOPENED, reopened)])


def tell_of_resolved(source: Source, numbers: Collection[int]) -> None:
    """Tell of findings that scans of a source no longer see."""
    rows = Finding.objects.filter(pk__in=numbers, severity="break", muted=False).order_by("id")
    notify_many(_happenings(source, RESOLVED, list(rows)))


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
