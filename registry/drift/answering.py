"""Findings for promotions that answer them: those that somebody may read."""

from __future__ import annotations

from collections.abc import Collection

from registry.access.roles import Actor
from registry.drift.models import Finding
from registry.drift.selectors import FindingInfo, may_see_finding
from registry.drift.selectors.findings import finding_infos
from registry.promotions.origins import OriginFinding


def findings_of(numbers: Collection[int], by: Actor) -> dict[int, OriginFinding]:
    """By number, without what the actor may not read: the right is that of the finding's own page; one query."""
    rows = Finding.objects.filter(pk__in=numbers)
    readable = [row for row in rows.select_related("source__registry") if _may_see(row, by)]
    return {info.id: _origin(info) for info in finding_infos(readable, by)}


def _may_see(row: Finding, by: Actor) -> bool:
    return may_see_finding(by, row.source.registry.name, row.subject_name)


def _origin(info: FindingInfo) -> OriginFinding:
    return OriginFinding(info.id, info.registry, info.sentence, info.severity, info.state)
