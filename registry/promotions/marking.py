"""Keeping the marks of the board's subjects: what was noted as changed is worked out again, or all of it.

A run takes the notes away and works out in the same transaction, in this order: what changes meanwhile is seen by it, or
has a note of its own that stays. Who reads sees either the old marks with their notes or the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction

from registry.promotions.models import BoardState, BoardSubject, Environment
from registry.promotions.selectors.board_keys import MAX_CHANGED, MAX_PLACES, mark_rows, places_of
from registry.subjects.names import SubjectName

_TAKE_NOTES = "DELETE FROM promotions_boardchange RETURNING context_name, subject_name"
_KEEP = "INSERT INTO promotions_boardsubject (context_name, subject_name, behind, id_differs, other_content)"
_FORGET = """
DELETE FROM promotions_boardsubject kept
USING unnest(%(contexts)s::text[], %(subjects)s::text[]) AS named(context, subject)
WHERE kept.context_name = named.context AND kept.subject_name = named.subject
"""


def refresh_marks() -> int:
    """Work out what changed since the last run; gives of how many subjects. One run at a time, another one does nothing."""
    BoardState.objects.get_or_create(pk=1)
    with transaction.atomic():
        state = BoardState.objects.select_for_update(skip_locked=True).filter(pk=1).first()
        environments = list(Environment.objects.order_by("position"))
        if state is None or len(environments) > MAX_PLACES:
            return 0
        names = _taken_notes()
        places = places_of(environments)
        if state.places == places and len(names) <= MAX_CHANGED:
            return _keep(environments, names) if names else 0
        state.places = places
        state.save(update_fields=["places"])
        return _keep(environments, None)


def _taken_notes() -> list[SubjectName]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_NOTES)
        return list({SubjectName(context, subject) for context, subject in cursor.fetchall()})


def _keep(environments: Sequence[Environment], names: Sequence[SubjectName] | None) -> int:
    query, given = mark_rows(environments, names)
    with connection.cursor() as cursor:
        if names is None:
            BoardSubject.objects.all().delete()
        else:
            contexts, subjects = [name.context for name in names], [name.subject for name in names]
            cursor.execute(_FORGET, {"contexts": contexts, "subjects": subjects})
        cursor.execute(f"{_KEEP}{query}", given)
        return cursor.rowcount if names is None else len(names)
