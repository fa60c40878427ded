"""Working out ahead whether each subject could be promoted, so that a board of thousands answers at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from django.db import connection
from django.utils import timezone

from registry.errors import NotFound, SchemadeskError
from registry.promotions.basis import Pair, basis_query, pairs_of
from registry.promotions.can_promote import NO, Reason, judged, latest_number, plan_of
from registry.promotions.marking import refresh_marks
from registry.promotions.models import Environment, PromotionOutlook
from registry.subjects.names import SubjectName

#: checks that move with the time, which the board looks at when it is shown
TIMED: Final = frozenset({"freeze"})
#: how much of a run
MAX_SUBJECTS: Final = 1000
MAX_SECONDS: Final = 10.0
_KEPT_REASONS: Final = 10

_STALE = """
SELECT known.n, known.context, known.subject, known.basis
FROM ({basis}) known
JOIN unnest(%(n)s::int[], %(source_ids)s::bigint[], %(target_ids)s::bigint[]) AS place(n, source_id, target_id)
    ON place.n = known.n
LEFT JOIN promotions_promotionoutlook outlook ON outlook.source_id = place.source_id
    AND outlook.target_id = place.target_id AND outlook.context_name = known.context
    AND outlook.subject_name = known.subject
WHERE outlook.basis IS DISTINCT FROM known.basis
ORDER BY outlook.at NULLS FIRST, known.n, known.context, known.subject
LIMIT %(most)s
"""

_GONE = """
DELETE FROM promotions_promotionoutlook outlook
USING promotions_environment place
WHERE place.id = outlook.source_id AND NOT EXISTS (
    SELECT 1 FROM subjects_subject s
    JOIN subjects_context c ON c.id = s.context_id
    JOIN subjects_schemaversion v ON v.subject_id = s.id AND v.deleted_at IS NULL
    WHERE c.registry_id = place.registry_id AND c.name = outlook.context_name AND s.name = outlook.subject_name
)
"""


def refresh_outlooks(*, most: int = MAX_SUBJECTS, seconds: float = MAX_SECONDS) -> int:
    """Work out what is missing, then what is old, within a time; gives how many were. Rows of what is gone go.

    The marks of the board come first.
    """
    refresh_marks()
    with connection.cursor() as cursor:
        cursor.execute(_GONE)
    return work_out(environments_in_order(), most=most, seconds=seconds)


def work_out(
    environments: Sequence[Environment],
    subjects: Sequence[SubjectName] | None = None,
    *,
    most: int = MAX_SUBJECTS,
    seconds: float = MAX_SECONDS,
) -> int:
    """The same for some subjects alone (None: all). What wasn't come to stays unknown until the next time."""
    pairs = pairs_of(environments)
    end, done = time.monotonic() + seconds, []
    for number, subject, basis in _stale(pairs, subjects, most):
        outlook = _worked_out(pairs[number], subject, basis)
        if outlook is not None:
            done.append(outlook)
        if time.monotonic() >= end:
            break
    _keep(done)
    return len(done)


def environments_in_order() -> list[Environment]:
    """All of them with their registries and rules, in the promotion order; two queries."""
    return list(Environment.objects.select_related("registry").prefetch_related("review_rules").order_by("position"))


def _stale(
    pairs: Sequence[Pair], subjects: Sequence[SubjectName] | None, most: int
) -> list[tuple[int, SubjectName, str]]:
    if not pairs:
        return []
    basis, parameters = basis_query(pairs, subjects)
    places = {
        "source_ids": [pair.source.pk for pair in pairs],
        "target_ids": [pair.target.pk for pair in pairs],
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STALE.format(basis=basis), parameters | places)
        return [(number, SubjectName(context, name), basis) for number, context, name, basis in cursor.fetchall()]


def _worked_out(pair: Pair, subject: SubjectName, basis: str) -> PromotionOutlook | None:
    """The answer, which is of what was there after the basis was taken; None for a subject that went meanwhile."""
    try:
        plan = plan_of(pair.source, pair.target, subject, latest_number(pair.source, subject))
        verdict, reasons = judged(plan, pair.target, ignore=TIMED)
    except NotFound:
        return None
    except SchemadeskError as error:
        verdict, reasons = NO, (Reason("plan", error.message, "Ask for it to see the whole error."),)
    return PromotionOutlook(
        source=pair.source,
        target=pair.target,
        context_name=subject.context,
        subject_name=subject.subject,
        basis=basis,
        verdict=verdict,
        reasons=[vars(reason) for reason in reasons[:_KEPT_REASONS]],
        at=timezone.now(),
    )


def _keep(outlooks: Iterable[PromotionOutlook]) -> None:
    """Written in one order, so that two runs at a time don't wait for each other in a circle."""
    rows = sorted(outlooks, key=lambda row: (row.source_id, row.target_id, row.context_name, row.subject_name))
    PromotionOutlook.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["source", "target", "context_name", "subject_name"],
        update_fields=["basis", "verdict", "reasons", "at"],
    )
