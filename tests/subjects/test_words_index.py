"""A word of a name is found by the index that is there for it."""

from __future__ import annotations

import pytest
from django.db import connection

from registry.subjects.models import Subject


@pytest.mark.requirement("CARD-4")
@pytest.mark.django_db
def test_a_word_is_found_by_its_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan TO off")
        cursor.execute("SET LOCAL enable_indexscan TO off")
    plan = Subject.objects.filter(name__icontains="Customer").order_by().explain()
    assert "subjects_by_trigrams" in plan
