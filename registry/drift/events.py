"""Notifications about `break` and `risk` findings, in the transaction that stores them, and about failed scans.

Webhooks, subscribers and a subject's owners get both severities; people notified by their role get only breaks. Muted
findings are omitted. A source is named only to people who may read its whole registry, as on the pages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from types import MappingProxyType
from typing import Final

from django.db.models import OuterRef, Subquery

from registry.access.selectors import owners_of_many
from registry.drift.evidence import in_last_scan
from registry.drift.findings.redaction import redacted_cause, redacted_text
from registry.drift.models import Finding, Scan, Source
from registry.drift.selectors.deployments import OUT_OF_SIGHT
from registry.notifications.events import OWNED, Event, RestrictedText
from registry.notifications.services import notify_many

MOST: Final = 20  # per kind and scan; the others are counted in one sentence
OPENED, REOPENED, RESOLVED = "finding.opened", "finding.reopened", "finding.resolved"
FAILED: Final = "scan.failed"
_MATTERING: Final = {"break": "breaking", "risk": "risky"}
_WORDS: Final = {OPENED: "were found", REOPENED: "were reopened", RESOLVED: "were resolved"}


def notify_opened(source: Source, *, opened: Sequence[Finding], reopened: Sequence[Finding]) -> None:
    """Notify about findings that a scan of a source opened or reopened."""
    mattering = [row for row in (*opened, *reopened) if row.severity in _MATTERING and not row.muted]
    owners = _owners(source, mattering)
    notify_many(
        [
            *_for_owners(source, mattering, owners),
            *_events_of(source, OPENED, opened, owners),
            *_events_of(source, REOPENED, reopened, owners),
        ]
    )


def tell_of_resolved(source: Source, numbers: Collection[int]) -> None:
    """Notify about findings that scans of a source no longer see."""
    rows = Finding.objects.filter(pk__in=numbers, severity__in=_MATTERING, muted=False).order_by("id")
    notify_many(_events_of(source, RESOLVED, list(rows)))


def tell_of_failed(scan_ids: Collection[int]) -> None:
    """Notify about failed scans whose previous scan didn't fail: not again for every scheduled run."""
    if not scan_ids:
        return
    before = Scan.objects.filter(source=OuterRef("source"), pk__lt=OuterRef("pk"), state__in=("done", "failed"))
    scans = Scan.objects.filter(pk__in=scan_ids).annotate(before=Subquery(before.order_by("-pk").values("state")[:1]))
    notify_many(
        [
            Event(
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


def _owners(source: Source, rows: Sequence[Finding]) -> dict[str, frozenset[int]]:
    """Return the owners of the findings' subjects; two queries, none without findings."""
    subjects = {row.subject_name for row in rows} - {""}
    owners_by_subject = owners_of_many(source.registry.name, subjects) if subjects else {}
    return {subject: owners.user_ids for subject, owners in owners_by_subject.items()}


def _for_owners(source: Source, rows: Sequence[Finding], owners: Mapping[str, frozenset[int]]) -> list[Event]:
    owned = [row for row in rows if owners.get(row.subject_name)]
    registry = source.registry.name
    events = [
        Event(
            OWNED,
            registry,
            row.subject_name,
            text=_text(row, row.sentence),
            url=f"/ui/findings/{row.pk}",
            data={**_data_of(row), "source": source.name},
            owners=owners[row.subject_name],
            narrow=_restricted(row),
        )
        for row in owned[:MOST]
    ]
    rest: dict[str, int] = {}
    for row in owned[MOST:]:
        rest[row.subject_name] = rest.get(row.subject_name, 0) + 1
    return events + [
        Event(
            OWNED,
            registry,
            subject,
            text=f"{count} more findings of {source.name} on {subject}.",
            url="/ui/findings",
            data={"source": source.name},
            owners=owners[subject],
            narrow=RestrictedText(f"{count} more findings of {OUT_OF_SIGHT} on {subject}."),
        )
        for subject, count in list(rest.items())[:MOST]
    ]


def _text(row: Finding, sentence: str, event: str = "") -> str:
    """Return the sentence, which is about the last scan; if the total of all scans differs, append it."""
    said = f"Resolved: {sentence}" if event == RESOLVED else sentence
    if in_last_scan(row.evidence) in (None, row.count):
        return said
    return f"{said} In all scans since {row.first_seen.astimezone(UTC):%Y-%m-%d %H:%M} UTC: {row.count:,}."


def _restricted(row: Finding, event: str = "") -> RestrictedText:
    """Return the text and data for people who may read only the finding's subject."""
    sentence = redacted_text(row.sentence, row.evidence, row.subject_name)
    group = redacted_cause(row.cause_group, row.cause_subject, row.evidence, row.subject_name)
    return RestrictedText(_text(row, sentence, event), {**_data_of(row), "cause_group": group})


def _data_of(row: Finding) -> dict[str, object]:
    """Return the data for programs; `count` covers all scans, `last_scan_count` the scan in the text."""
    counts = {"count": row.count, "last_scan_count": in_last_scan(row.evidence)}
    about = {"rule": row.rule, "severity": row.severity, "cause_group": row.cause_group}
    return {"finding": row.pk, **about, **counts}


def _events_of(
    source: Source, event: str, rows: Sequence[Finding], owners: Mapping[str, frozenset[int]] = MappingProxyType({})
) -> list[Event]:
    return [
        told
        for severity in _MATTERING
        for told in _events_of_one(
            source, event, [row for row in rows if row.severity == severity and not row.muted], owners
        )
    ]


def _events_of_one(
    source: Source, event: str, rows: Sequence[Finding], owners: Mapping[str, frozenset[int]]
) -> list[Event]:
    """Return the events about findings of one severity: at most MOST, and one with the number of the others."""
    if not rows:
        return []
    registry, severity = source.registry.name, rows[0].severity
    events = [
        Event(
            event,
            registry,
            row.subject_name,
            text=_text(row, row.sentence, event),
            url=f"/ui/findings/{row.pk}",
            data={**_data_of(row), "source": source.name},
            elsewhere=owners.get(row.subject_name, ()),
            narrow=_restricted(row, event),
            for_subscribers=severity != "break",
        )
        for row in rows[:MOST]
    ]
    rest = len(rows) - MOST
    if rest > 0:
        text = f"{rest} more {_MATTERING[severity]} findings of {source.name} {_WORDS[event]}."
        data = {"source": source.name, "severity": severity, "count": rest}
        events.append(
            Event(event, registry, text=text, url="/ui/findings", data=data, for_subscribers=severity != "break")
        )
    return events
