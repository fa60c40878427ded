"""What the list of subjects is sorted by stays what the versions say, whatever is done to them and by whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Literal

import pytest
from django.db import connection
from django.db.models import Count, Max, OuterRef, Subquery

from registry.access.roles import Actor
from registry.errors import InvalidInput
from registry.subjects.listing.filters import SubjectNarrowing
from registry.subjects.models import Registry, Schema, SchemaVersion, Subject, SubjectActivity
from registry.subjects.selectors import SubjectRows, subject_rows
from registry.subjects.services import delete_subject, delete_version, register_version, set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]


def text(number: int) -> str:
    fields = [{"name": f"f{each}", "type": "long", "default": 0} for each in range(number)]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def kept() -> set[tuple[object, ...]]:
    return set(
        SubjectActivity.objects.values_list("subject_id", "registry_id", "live_versions", "changed_at", "schema_type")
    )


def counted() -> set[tuple[object, ...]]:
    rows = SchemaVersion.objects.filter(deleted_at=None).values("subject_id", "subject__context__registry_id")
    newest = SchemaVersion.objects.filter(deleted_at=None, subject=OuterRef("subject_id")).order_by("-version")
    format_ = Subquery(newest.values("schema__schema_type")[:1])
    return set(rows.annotate(live=Count("pk"), changed=Max("created_at"), format=format_).values_list(
        "subject_id", "subject__context__registry_id", "live", "changed", "format"
    ))  # fmt: skip


def test_the_format_is_that_of_the_newest_live_version(registries: None, system: Actor) -> None:
    name, texts = SubjectName(".", "moved"), [('"int"', "AVRO"), ('{"type": "string"}', "JSON")]
    set_config(registry="dev", subject=name, by=system, level="NONE")
    for each, schema_type in texts:
        register_version(registry="dev", subject=name, text=each, schema_type=schema_type, by=system)
        assert [row[-1] for row in kept()] == [schema_type] and kept() == counted()
    delete_version(registry="dev", subject=name, version=2, by=system)
    assert [row[-1] for row in kept()] == ["AVRO"]


@pytest.mark.parametrize("table", ["subjects_schema", "subjects_schemaversion"])
def test_a_new_version_reads_as_many_rows_whatever_its_subject_has(registries: None, system: Actor, table: str) -> None:
    """Counted with index scans alone, because small tables are read whole."""
    for number in range(1, 10):
        register_version(registry="dev", subject=SubjectName(".", "one"), text=text(number), by=system)
    register_version(registry="dev", subject=SubjectName(".", "two"), text='"int"', by=system)
    two = Subject.objects.get(name="two")
    read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = %s"
    counts = []
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("DISCARD PLANS")
        for number, schema in enumerate(Schema.objects.filter(versions__subject__name="one"), 2):
            SchemaVersion.objects.create(subject=two, version=number, schema=schema, submitted=schema.canonical)
            cursor.execute(read, [table])
            counts.append(cursor.fetchone()[0])
    spent = [after - before for before, after in pairwise(counts)]
    assert spent == [spent[0]] * len(spent)


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
    assert [(page.total, page.skipped) for page in pages] == [(7, 0), (7, 3), (7, 6), (7, 7)]
    assert [name for page in pages for name in names_of(page)] == ["s2", "s6", "s5", "s4", "s3", "s1", "s0"]
    found = subject_rows(dev, SubjectNarrowing(text="S", schema_type="AVRO", level="BACKWARD"), limit=2)
    assert (len(found.rows), found.total) == (2, 7)


# -- pages by cursor ----------------------------------------------------------------------------------------------------


def names_of(page: SubjectRows) -> list[str]:
    return [row.subject.subject for row in page.rows]


def walk(dev: Registry, way: Literal["after", "before"], begin: str = "", **filters: str) -> Iterator[SubjectRows]:
    """Page by page, two rows each, as long as a page says that there is another."""
    cursor, is_first = begin, True
    while cursor or is_first:
        page = subject_rows(dev, SubjectNarrowing(**filters), limit=2, **{way: cursor})  # type: ignore[arg-type]
        yield page
        cursor, is_first = getattr(page, way), False


@pytest.fixture
def seven(registries: None, system: Actor) -> Registry:
    """Seven subjects, s6 the last that changed; s1 to s4 changed at one moment, so that their numbers order them."""
    for number in range(7):
        register_version(registry="dev", subject=SubjectName(".", f"s{number}"), text=text(number + 1), by=system)
    tied = SubjectActivity.objects.filter(subject__name__in=["s1", "s2", "s3", "s4"])
    tied.update(changed_at=tied.get(subject__name="s2").changed_at)
    return get_registry("dev")


ORDER = ["s6", "s5", "s1", "s2", "s3", "s4", "s0"]


def test_pages_by_cursor_give_each_row_once_in_both_directions(seven: Registry) -> None:
    forward = list(walk(seven, "after"))
    assert [name for page in forward for name in names_of(page)] == ORDER
    assert [(page.skipped, page.total) for page in forward] == [(0, 7), (2, 7), (4, 7), (6, 7)]
    assert (forward[0].before, forward[-1].after) == ("", "")
    backward = list(walk(seven, "before", forward[-1].before))
    assert [names_of(page) for page in backward] == [names_of(page) for page in forward[-2::-1]]
    assert [page.skipped for page in backward] == [4, 2, 0]


def test_pages_by_cursor_hold_the_filters(seven: Registry, system: Actor) -> None:
    register_version(registry="dev", subject=SubjectName(".", "other"), text=text(3), by=system)
    for filters in ({"text": "S"}, {"text": "s", "schema_type": "AVRO"}, {"text": "s", "level": "BACKWARD"}):
        pages = list(walk(seven, "after", **filters))
        assert [name for page in pages for name in names_of(page)] == ORDER
        assert {page.total for page in pages} == {7}


@pytest.mark.parametrize("way", ["after", "before"])
def test_what_comes_and_goes_between_two_pages_loses_no_row_and_doubles_none(
    seven: Registry, system: Actor, way: Literal["after", "before"]
) -> None:
    """New subjects come at the top, and every page loses a row that was shown and one of the pages to come."""
    order = ORDER if way == "after" else ORDER[::-1]
    begin = "" if way == "after" else f"0.{2**62 // 10**2}"
    seen: list[str] = []
    gone: list[str] = []
    for number, page in enumerate(walk(seven, way, begin)):
        seen += names_of(page) if way == "after" else names_of(page)[::-1]
        if number < 2:
            register_version(registry="dev", subject=SubjectName(".", f"new{number}"), text=text(4), by=system)
            there = [name for name in order if name not in gone]
            gone += [
                next(name for name in there if name in seen),
                next(name for name in there[::-1] if name not in seen),
            ]
            for name in gone[-2:]:
                delete_subject(registry="dev", subject=SubjectName(".", name), by=system)
    assert len(seen) == len(set(seen))
    old = [name for name in seen if name in order]
    assert old == sorted(old, key=order.index)
    assert set(order) - set(seen) <= set(gone)
    assert {name for name in seen if name not in order} == (set() if way == "after" else {"new0", "new1"})


def test_a_cursor_of_a_row_that_is_gone_still_holds(seven: Registry, system: Actor) -> None:
    first = subject_rows(seven, limit=2)
    delete_subject(registry="dev", subject=SubjectName(".", "s5"), by=system)
    second = subject_rows(seven, after=first.after, limit=2)
    assert names_of(second) == ["s1", "s2"]
    assert (second.skipped, second.total) == (1, 6)


@pytest.mark.parametrize(
    "cursor",
    ["x", "1", "1.", ".1", "1.2.3", "-1.2", "1.-2", "1e3.2", "²٣.1", "1 .2", "9" * 18 + ".1", "1." + "9" * 19, "1.2\n",
     "'; DROP TABLE subjects_subject; --", "9" * 10_000],
)  # fmt: skip
def test_a_cursor_that_is_none_is_refused(seven: Registry, cursor: str) -> None:
    for way in ({"after": cursor}, {"before": cursor}):
        with pytest.raises(InvalidInput, match="Start without a cursor"):
            subject_rows(seven, **way)


@pytest.mark.parametrize(
    ("cursor", "after", "before"), [("0.0", 0, 7), ("0." + "9" * 18, 0, 7), ("9" * 17 + ".0", 7, 0)]
)
def test_a_cursor_beyond_the_rows_has_a_page_all_the_same(
    seven: Registry, cursor: str, after: int, before: int
) -> None:
    assert len(subject_rows(seven, after=cursor).rows) == after
    assert len(subject_rows(seven, before=cursor).rows) == before


def test_a_page_takes_as_many_queries_wherever_it_is(
    seven: Registry, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    first = subject_rows(seven, limit=2)
    for given in ({}, {"after": first.after}, {"before": subject_rows(seven, after=first.after, limit=2).before}):
        with django_assert_num_queries(5):
            subject_rows(seven, limit=2, **given)
