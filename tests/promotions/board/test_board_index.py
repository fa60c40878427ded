"""The marks that are kept for the board: exact at any moment, whatever changed since they were made."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from registry.access.roles import Actor, Grant
from registry.promotions.board import board_index
from registry.promotions.board.board_index import refresh_marks
from registry.promotions.board.rows import board_rows
from registry.promotions.models import BoardChange, BoardSubject, Environment
from registry.subjects.models import Config, Mode, Registry, SchemaVersion, VersionStatus
from registry.subjects.services import delete_subject, delete_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.board.test_rows import filtered_as_marked, names, register
from tests.promotions.factories import record

pytestmark = [pytest.mark.requirement("CARD-4"), pytest.mark.django_db]
TEXTS = [record(id="long"), record(id="long", note="string?"), record(id="long", more="int?"), record(other="int")]
PLACES = ("dev", "staging", "prod")


@pytest.fixture
def filled(registries: None, system: Actor) -> Iterator[random.Random]:
    """Eight subjects in three environments, as chance has it; with marks."""
    chance = random.Random(7)
    Config.objects.bulk_create(Config(registry=place, compatibility_level="NONE") for place in Registry.objects.all())
    Environment.objects.update(is_closed=False)
    Mode.objects.all().delete()
    for number in range(8):
        change_something(chance, system, SubjectName(chance.choice((".", ".sales")), f"s{number}"))
    refresh_marks()
    yield chance


def change_something(chance: random.Random, by: Actor, name: SubjectName) -> None:
    """Another text, or less of what is there, by services and by statements that know nothing of the board."""
    place = chance.choice(PLACES)
    register(chance.choice(TEXTS), by, place, name)
    rows = SchemaVersion.objects.filter(subject__name=name.subject, subject__context__name=name.context)
    row = chance.choice(list(rows))
    what = chance.randrange(6)
    if what == 0:
        rows.filter(pk=row.pk).update(deleted_at=None if row.deleted_at else timezone.now())
    elif what == 1:
        VersionStatus.objects.update_or_create(
            version=row, defaults={"status": chance.choice(VersionStatus.STATUSES), "message": "?", "decided_by": "x"}
        )  # fmt: skip
    elif what == 2:
        VersionStatus.objects.filter(version__in=rows).delete()
    elif what == 3:
        held = rows.filter(subject__context__registry__name=place, deleted_at=None)
        if held.exists():
            delete_subject(registry=place, subject=name, by=by)
            delete_subject(registry=place, subject=name, by=by, permanent=True, force="a test")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_changed_since_a_filter_finds_what_the_cells_say(
    filled: random.Random, system: Actor, seed: int
) -> None:
    chance = random.Random(seed)
    filtered_as_marked(system)
    for _ in range(3):
        for _ in range(4):
            change_something(chance, system, SubjectName(chance.choice((".", ".sales")), f"s{chance.randrange(10)}"))
        assert BoardChange.objects.exists()
        filtered_as_marked(system)
        refresh_marks()
        assert not BoardChange.objects.exists()
        filtered_as_marked(system)


def test_with_more_changes_than_help_the_versions_are_asked(
    filled: random.Random, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_index, "MAX_CHANGED", 1)
    for number in range(3):
        register(TEXTS[3], system, "staging", SubjectName(".", f"new{number}"))
    found = filtered_as_marked(system)
    assert {"new0", "new1", "new2"} <= set(names(found))


@pytest.mark.parametrize("text", ["", "S"])
def test_pages_of_what_has_marks_and_what_changed_since_follow_each_other(
    filled: random.Random, system: Actor, text: str
) -> None:
    for name in (SubjectName(".", "S0"), SubjectName(".", "s7ü"), SubjectName(".a", "s1"), SubjectName(".z", "t")):
        register(TEXTS[0], system, "dev", name)
    register(TEXTS[3], system, "staging", SubjectName(".", "s1"))
    assert BoardChange.objects.exists()
    whole = board_rows(by=system, text=text)
    keys = [(row.subject.context, row.subject.subject) for row in whole.rows]
    assert keys == sorted(keys, key=lambda key: [part.encode() for part in key]) and len(keys) >= 9
    assert ((".z", "t") in keys) == (not text)
    found, after = [], ""
    while not found or after:
        page = board_rows(by=system, text=text, after=after, limit=3)
        assert page.total == whole.total == len(keys)
        found += page.rows
        after = page.after
    assert tuple(found) == whole.rows


def test_the_marks_are_read_where_they_hold(filled: random.Random, system: Actor) -> None:
    before = names(board_rows(by=system, filters=["behind"]))
    BoardSubject.objects.update(behind=0)  # as no run would leave it
    assert names(board_rows(by=system, filters=["behind"])) == []
    some = replace(system, grants=(Grant("admin", "", "*"), Grant("reader", "dev", "s*")))
    assert names(board_rows(by=some, filters=["behind"])) == [], "who reads everything reads the marks"
    part = replace(
        system, grants=tuple(Grant("reader", place, pattern) for place in PLACES for pattern in ("s*", ":*"))
    )
    assert names(board_rows(by=part, filters=["behind"])) == before, "who reads a part doesn't"


def test_in_another_order_the_marks_do_not_count(filled: random.Random, system: Actor) -> None:
    BoardSubject.objects.update(behind=0)
    dev, staging = (Environment.objects.get(registry__name=name) for name in ("dev", "staging"))
    dev.position, staging.position, first, second = 90, 91, dev.position, staging.position
    dev.save(), staging.save()
    dev.position, staging.position = second, first
    dev.save(), staging.save()
    assert names(board_rows(by=system, filters=["behind"]))
    assert filtered_as_marked(system).environments[0].name == "staging"
    assert refresh_marks() == BoardSubject.objects.count(), "all of it is worked out again"
    filtered_as_marked(system)


def test_only_environments_are_noted(registries: None, system: Actor) -> None:
    refresh_marks()
    Environment.objects.filter(registry__name="staging").delete()
    register(TEXTS[0], system, "staging")
    assert not BoardChange.objects.exists()
    register(TEXTS[0], system, "dev")
    delete_version(registry="dev", subject=SubjectName(".", "orders-value"), version=1, by=system)
    assert set(BoardChange.objects.values_list("context_name", "subject_name")) == {(".", "orders-value")}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_committed_after_a_run_has_its_note(registries: None, system: Actor) -> None:
    refresh_marks()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            register(TEXTS[0], system)
            assert pool.submit(_elsewhere(refresh_marks)).result(timeout=60) == 0, "it sees nothing of it yet"
        assert names(board_rows(by=system, filters=["behind"])) == ["orders-value"]
        assert pool.submit(_elsewhere(refresh_marks)).result(timeout=60) == 1
    assert not BoardChange.objects.exists()
    assert names(board_rows(by=system, filters=["behind"])) == ["orders-value"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_run_at_a_time(registries: None, system: Actor) -> None:
    refresh_marks()
    register(TEXTS[0], system)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert refresh_marks() == 1
            assert pool.submit(_elsewhere(refresh_marks)).result(timeout=60) == 0, "another run does nothing"
            found = pool.submit(_elsewhere(lambda: names(board_rows(by=system)))).result(timeout=60)
            assert found == ["orders-value"], "who reads doesn't wait, and misses nothing"
        assert pool.submit(_elsewhere(refresh_marks)).result(timeout=60) == 0


def _elsewhere(call: Callable[[], object]) -> Callable[[], object]:
    """On a connection of its own."""

    def run() -> object:
        try:
            assert threading.current_thread() is not threading.main_thread()
            return call()
        finally:
            connection.close()

    return run
