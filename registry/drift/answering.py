"""Findings for promotions that answer them: those that somebody may read."""

from __future__ import annotations

from collections.abc import Collection

from registry.access.roles import Actor
from registry.drift.models import Finding
from registry.drift.selectors import may_see_finding
from registry.promotions.origins import OriginFinding


def findings_of(numbers: Collection[int], by: Actor) -> dict[int, OriginFinding]:
    """By number, without what the actor may not read: the right is that of the finding's own page; one query."""
    rows = Finding.objects.filter(pk__in=numbers)
    values = rows.values_list("pk", "source__registry__name", "sentence", "severity", "state", "subject_name")
    found = ((OriginFinding(*row[:5]), row[5]) for row in values)
    return {item.id: item for item, subject in found if may_see_finding(by, item.registry, subject)}
