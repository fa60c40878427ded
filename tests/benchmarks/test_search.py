"""The large data set at a small size: valid row by row, the same each time, and the search is measured over it."""

from __future__ import annotations

from collections import Counter

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import Count, Max

from benchmarks import dataset, search
from benchmarks.bench import Command as Bench
from registry.errors import Conflict
from registry.search.models import IndexedField, IndexedSubject, StaleSubject
from registry.subjects.engine import schema_engine
from registry.subjects.models import Context, Schema, SchemaReference, SchemaVersion, Subject, SubjectNote
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import parse_subject
from registry.subjects.versions.schema_identity import identify
from tests.services_plugin import as_owner

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CARD-2")]
SIZE = dataset.Size(subjects=120, versions=2, fields_max=60, fields_mean=12)


@pytest.mark.django_db(transaction=True)
def test_the_data_set_is_valid_and_the_search_is_measured_over_it() -> None:
    with as_owner():
        dataset.fill(SIZE)
    assert Subject.objects.exclude(name=dataset.SHARED).count() == 120
    per = Counter(Subject.objects.exclude(name=dataset.SHARED).values_list("context__registry__name", flat=True))
    assert per == {"dev": 60, "staging": 36, "prod": 24}
    for row in Schema.objects.select_related("context"):
        if row.references.exists():
            continue
        parsed = schema_engine.parse(row.schema_type, row.canonical)
        identity = identify(row.schema_type, parsed.canonical)
        assert (row.canonical, row.fingerprint) == (parsed.canonical, parsed.fingerprint)
        assert (row.identity, row.guid) == (identity.digest, identity.guid)
        assert row.schema_id < row.context.next_schema_id
    assert SchemaReference.objects.count() > 0
    assert SubjectNote.objects.count() > 0
    # the rows are those that registering would have made: the same text again is the same version, a new one gets an id
    version = SchemaVersion.objects.filter(subject__context__registry__name="dev", version=2).first()
    assert version is not None
    by = dataset.system_actor("tests", channel="command")
    name = parse_subject(version.subject.name)
    again = register_version(registry="dev", subject=name, text=version.submitted, by=by)
    assert (again.version, again.schema_id) == (2, version.schema.schema_id)
    highest = Schema.objects.filter(context=version.subject.context).aggregate(highest=Max("schema_id"))["highest"]
    new = register_version(registry="dev", subject=parse_subject("new-value"), text='{"type": "record", "name": "New", "fields": []}', by=by)  # fmt: skip
    assert new.schema_id > highest
    assert Context.objects.count() == 3
    # all of it is indexed, as many fields as were asked for
    assert IndexedSubject.objects.exclude(problem="").count() == 0
    assert IndexedSubject.objects.count() == 123
    sizes = IndexedField.objects.values("subject_id").annotate(number=Count("position"))
    assert max(row["number"] for row in sizes) in range(36, 40)  # three times the mean; the largest is number 199
    assert 8 <= IndexedField.objects.count() / 120 <= 20
    assert StaleSubject.objects.count() == 1  # the new one
    rows = list(search.measure_here(search.Size(subjects=120, fields_max=60, fields_mean=12, repeats=1)))
    text = search.section(rows, "A note.")
    assert "subjects with" in text
    assert all(f"| `{query}` |" in text for query in search.QUERIES)
    assert "pasted schema" in text
    with pytest.raises(CommandError, match="fill an empty one"):
        call_command(Bench(), "fill", "--subjects=1")


@pytest.mark.django_db(transaction=True)
def test_who_does_not_own_the_tables_cannot_fill_them() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("schemadesk_app",)
    with pytest.raises(Conflict, match="the owner's"):
        dataset.fill(dataset.Size(subjects=2, fields_max=5, fields_mean=3))
    assert not Subject.objects.exists()


def test_the_same_numbers_give_the_same_texts_with_the_fields_asked_for() -> None:
    size = dataset.Size()
    assert dataset.text_of(7, 2, size) == dataset.text_of(7, 2, size)
    counts = [dataset.field_count(number, size) for number in range(2_000)]
    assert max(counts) == 2_000
    assert 45 <= sum(counts) / len(counts) <= 55
