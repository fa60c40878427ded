"""How well subjects stand: what of them needs attention, worst first, for the rows of a page and as an order of the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from django.db.models import Q

from registry.access.selectors.owners import all_patterns
from registry.drift.selectors import open_findings_by_subject
from registry.promotions.selectors import list_environments
from registry.promotions.selectors.pending import troubled_subjects
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors import SubjectRow
from registry.subjects.selectors.fitting import among, fits
from registry.subjects.selectors.narrowing import of_level
from registry.subjects.selectors.places import Registry

#: what is wrong with a subject: open drift; an open request with a failing check, or that breaks; nothing checked in
#: production; nobody who answers for it
DRIFT, REQUEST, UNCHECKED, UNOWNED = "drift", "request", "unchecked", "unowned"
WORST_FIRST: Final = (DRIFT, REQUEST, UNCHECKED, UNOWNED)
NO_CHECKS: Final = "NONE"


@dataclass(frozen=True)
class Signs:
    """What tells the health of a registry's subjects: few names, and the patterns of what has an owner."""

    place: Registry
    findings: Mapping[str, int]
    troubled: frozenset[SubjectName]
    is_production: bool
    owned: tuple[str, ...]

    def of(self, row: SubjectRow) -> tuple[str, ...]:
        """What is wrong with a subject, worst first; empty where nothing is."""
        name = row.subject.qualified
        wrong = {
            DRIFT: name in self.findings,
            REQUEST: row.subject in self.troubled,
            UNCHECKED: self.is_production and row.level == NO_CHECKS,
            UNOWNED: not any(fnmatchcase(name, pattern) for pattern in self.owned),
        }
        return tuple(sign for sign in WORST_FIRST if wrong[sign])

    def tiers(self, *, since: datetime | None = None) -> list[Q]:
        """The conditions of the signs in that order; who lacks an owner is looked for among those changed `since`."""
        place, at = self.place, "subject__"
        nobody = Q(pk__in=())
        recent = Q() if since is None else Q(changed_at__gte=since)
        conditions = {
            DRIFT: among([parse_subject(name) for name in self.findings], at),
            REQUEST: among(self.troubled, at),
            UNCHECKED: of_level(place, NO_CHECKS, at) if self.is_production else nobody,
            UNOWNED: recent & ~fits(place, self.owned, at),
        }
        return [conditions[sign] for sign in WORST_FIRST]


def signs_of(place: Registry) -> Signs:
    """What tells the health of its subjects; four queries."""
    order = list_environments()
    return Signs(
        place=place,
        findings=open_findings_by_subject(place.name),
        troubled=frozenset(troubled_subjects()),
        is_production=len(order) > 1 and order[-1] == place.name,
        owned=all_patterns(place.name),
    )
