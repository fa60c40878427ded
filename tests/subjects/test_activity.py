"""What the list of subjects is sorted by stays what the versions say, whatever is done to them and by whom."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.db.models import Count, Max

from registry.access.roles import Actor
from registry.subjects.models import SchemaVersion, SubjectActivity
from registry.subjects.names import SubjectName
from registry.subjects.selectors import subject_rows
from registry.subjects.selectors.places import get_registry
from registry.subjects.services import delete_subject, delete_version, register_version

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]


def text(number: int) -> str:
    fields = [{"name": f"f{each}", "type": "long", "default": 0} for each in range(number)]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def kept() -> set[tuple[object, ...]]:
    return set(SubjectActivity.objects.values_list("subject_id", "registry_id", "live_versions", "changed_at"))


def counted() -> set[tuple[object, ...]]:
    rows = SchemaVersion.objects.filter(deleted_at=None).values("subject_id", "subject__context__registry_id")
    return set(rows.annotate(live=Count("pk"), changed=Max("created_at")).values_list(
        "subject_id", "subject__context__registry_id", "live", "changed"
    ))  # fmt: skip


def test_it_follows_what_is_done_to_versions(registries: None, system: Actor) -> None:
    one, two = SubjectName(".", "one"), SubjectName(".lab", "two")

    def add(name: SubjectName, number: int) -> None:
        register_version(registry="dev", subject=name, text=text(number), by=system)

    steps = [
        *(lambda name=name, number=number: add(name, number) for name in (one, two) for number in (1, 2, 3)),
        lambda: delete_version(registry="dev", subject=one, version=3, by=system),
        lambda: add(one, 3),
        lambda: delete_subject(registry="dev", subject=two, by=system),
        lambda: add(two, 1),
        lambda: delete_subject(registry="dev", subject=one, by=system),
        lambda: delete_subject(registry="dev", subject=one, permanent=True, by=system),
    ]
    sizes = []
    for step in steps:
        step()
        assert kept() == counted()
        sizes.append(len(kept()))
    assert sizes == [1, 1, 1, 2, 2, 2, 2, 2, 1, 2, 1, 1]


def test_it_follows_a_statement_past_the_services(registries: None, system: Actor) -> None:
    for name in ("a", "b", "c"):
        register_version(registry="dev", subject=SubjectName(".", name), text=text(1), by=system)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subjects_schemaversion SET deleted_at = now() WHERE id % 2 = 0")
    assert kept() == counted()
    assert 0 < len(kept()) < 3
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subjects_schemaversion SET deleted_at = NULL")
    assert kept() == counted()
    assert len(kept()) == 3


def test_the_list_begins_with_what_changed_last_and_pages_meet(registries: None, system: Actor) -> None:
    names = [f"s{number}" for number in range(7)]
    for number, name in enumerate(names):
        register_version(registry="dev", subject=SubjectName(".", name), text=text(number + 1), by=system)
    register_version(registry="dev", subject=SubjectName(".", "s2"), text=text(9), by=system)
    dev = get_registry("dev")
    pages = [subject_rows(dev, offset=offset, limit=3) for offset in (0, 3, 6, 9)]
    assert [total for _, total in pages] == [7] * 4
    shown = [row.subject.subject for rows, _ in pages for row in rows]
    assert shown == ["s2", "s6", "s5", "s4", "s3", "s1", "s0"]
    found, total = subject_rows(dev, text="S", schema_type="AVRO", level="BACKWARD", limit=2)
    assert (len(found), total) == (2, 7)
