"""Spark state as a consumer: which versions of a subject the state of a query still carries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.db.models import Max

from registry.streams.models import CarriedVersion
from registry.subjects.evidence import Evidence
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName

PROVIDER: Final = "state"
MAX_NAMED: Final = 20


def state_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> dict[int, list[Evidence]]:
    """What the scanned queries' state says of versions; one query. Nothing for a version that no state carries.

    The schema that a variable is written with now is certain. Of one that it was written with before it evolved, rows
    that were never written again are stored still; whether there are any, Spark's reader doesn't tell.
    """
    rows = (
        CarriedVersion.objects.filter(
            schema__variable__query__registry=registry,
            schema__variable__removed_at=None,
            context=subject.context,
            subject=subject.subject,
            version__in=list(versions),
        )
        .select_related("schema__variable__query")
        .annotate(newest=Max("schema__variable__schemas__version"))
        .order_by("version", "schema__variable__query__path", "schema__variable__name", "-schema__version")
    )
    found: dict[int, list[Evidence]] = {}
    for row in rows:
        listed = found.setdefault(row.version, [])
        if len(listed) < MAX_NAMED:
            listed.append(_evidence(row, is_current=row.schema.version == row.newest))
    return found


def _evidence(row: CarriedVersion, *, is_current: bool) -> Evidence:
    variable = row.schema.variable
    where = f"state variable {variable.label} of the query at {variable.query.path}"
    fields = ", ".join(row.fields[:8]) + (" …" if len(row.fields) > 8 else "")
    seen_at: datetime = variable.query.scanned_at
    if is_current:
        return Evidence(
            "state", "yes", f"The {where} holds its fields ({fields}).", as_of=seen_at, names=f"The {where}"
        )
    return Evidence(
        "state",
        "unknown",
        f"The {where} was written with its fields ({fields}) until it evolved; rows that weren't written since are "
        "still stored so, and Spark doesn't tell which.",
        as_of=seen_at,
        names=f"The {where}",
    )
