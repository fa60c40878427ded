"""The index follows what is registered, whoever changes it and however many workers do the work."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor
from registry.audit.context import storable_text
from registry.errors import InvalidSchema, SchemaTooCostly, Unavailable
from registry.search import services, tasks
from registry.search.models import (
    IndexedField,
    IndexedSubject,
    SearchTerm,
    StaleSubject,
    fold,
    lines,
    split_lines,
)
from registry.search.selectors import search_group
from registry.subjects.engine import schema_engine
from registry.subjects.models import Schema, SchemaVersion, Subject, SubjectNote
from registry.subjects.services import delete_subject, delete_version, register_version
from registry.subjects.versions.qualified_names import parse_subject
from tests.search.conftest import record

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
ORDERS = parse_subject("orders-value")


def entries() -> dict[str, tuple[int, list[str]]]:
    """Subject → version and names of fields, as they are indexed."""
    found = {}
    for row in IndexedSubject.objects.all():
        fields = IndexedField.objects.filter(subject_id=row.pk).order_by("position")
        terms = SearchTerm.objects.in_bulk([field.name_id for field in fields])
        found[row.name] = row.version, [terms[field.name_id].value for field in fields]
    return found


@pytest.fixture
def two_versions(registries: None, system: Actor) -> None:
    register_version(registry="dev", subject=ORDERS, text=record("Order", "a"), by=system)
    register_version(
        registry="dev", subject=ORDERS, text=record("Order", {"name": "b", "type": "string", "default": ""}), by=system
    )


def test_the_latest_live_version_is_indexed(two_versions: None, system: Actor) -> None:
    assert entries() == {}
    assert services.index_stale() == 1
    assert entries() == {"orders-value": (2, ["b"])}
    assert not StaleSubject.objects.exists()
    delete_version(registry="dev", subject=ORDERS, version=2, by=system)
    services.index_stale()
    assert entries() == {"orders-value": (1, ["a"])}


def test_again_is_the_same(two_versions: None) -> None:
    services.index_stale()
    before = list(IndexedField.objects.order_by("subject_id", "position").values()), SearchTerm.objects.count()
    for subject in Subject.objects.all():
        StaleSubject.objects.bulk_create(StaleSubject(subject_id=subject.pk) for _ in range(3))
    assert services.index_stale() == 1
    assert services.index_stale() == 0
    assert (
        list(IndexedField.objects.order_by("subject_id", "position").values()),
        SearchTerm.objects.count(),
    ) == before


@pytest.mark.parametrize("permanent", [False, True])
def test_a_deleted_subject_is_gone(two_versions: None, system: Actor, permanent: bool) -> None:
    services.index_stale()
    delete_subject(registry="dev", subject=ORDERS, by=system)
    if permanent:
        services.index_stale()
        delete_subject(registry="dev", subject=ORDERS, permanent=True, by=system)
    # gone at once where hits are shown, and from the index with the next run
    assert search_group("field:b", "fields", by=system).hits == ()
    services.index_stale()
    assert entries() == {}
    assert not IndexedField.objects.exists()


def test_what_is_rolled_back_is_not_queued(registries: None, system: Actor) -> None:
    with pytest.raises(RuntimeError, match="stop"), transaction.atomic():
        register_version(registry="dev", subject=ORDERS, text=record("Order", "a"), by=system)
        raise RuntimeError("stop")
    assert not StaleSubject.objects.exists()


def test_a_note_is_found_and_changes(two_versions: None, system: Actor) -> None:
    services.index_stale()
    note = SubjectNote.objects.create(
        subject=Subject.objects.get(name="orders-value"), tags=["gold", "pii"], doc="All that was sold.", updated_by="x"
    )
    services.index_stale()
    for query in ("tag:gold", "TAG:PII", 'doc:"was sold"', "sold", "gold"):
        assert [hit.subject for hit in search_group(query, "subjects", by=system).hits] == ["orders-value"], query  # type: ignore[union-attr]
    assert search_group("gol", "tags", by=system).total == 1
    note.tags = ["silver"]
    note.save()
    services.index_stale()
    assert search_group("tag:gold", "subjects", by=system).total == 0
    note.delete()
    services.index_stale()
    assert search_group("tag:silver", "subjects", by=system).total == 0


def test_an_existing_database_catches_up_in_bounded_batches(registries: None, system: Actor) -> None:
    for number in range(7):
        register_version(registry="dev", subject=parse_subject(f"s{number}"), text=record(f"R{number}", "a"), by=system)
    StaleSubject.objects.all().delete()  # as after a restore without triggers
    assert services.queue_missing() == 7
    assert services.index_stale(most=3) == 3
    assert StaleSubject.objects.count() == 4
    assert services.index_stale() == 4
    assert len(entries()) == 7


def test_the_sweep_finds_what_no_trigger_reported(two_versions: None) -> None:
    services.index_stale()
    assert services.queue_missing() == 0
    IndexedSubject.objects.update(version_pk=1_000_000)
    gone = IndexedSubject.objects.create(
        subject_id=999_999, registry_id=1, context_id=1, name="gone", schema_type="AVRO", version=1, version_pk=1
    )
    tasks.sweep_index()
    assert StaleSubject.objects.count() == 2
    services.index_stale()
    assert list(entries()) == ["orders-value"]
    assert not IndexedSubject.objects.filter(pk=gone.pk).exists()


def test_terms_that_no_field_has_are_dropped(two_versions: None, system: Actor) -> None:
    services.index_stale()
    register_version(
        registry="dev",
        subject=ORDERS,
        text=record("Order", {"name": "other", "type": "string", "default": ""}),
        by=system,
    )
    services.index_stale()
    assert SearchTerm.objects.filter(kind="n", value="b").exists()
    assert services.prune_terms() >= 1
    assert set(SearchTerm.objects.filter(kind="n").values_list("value", flat=True)) == {"other"}
    assert [hit.name for hit in search_group("field:other", "fields", by=system).hits] == ["other"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InvalidSchema("It isn't what it was.", line=2, column=3), "It isn't what it was. (line 2, column 3)"),
        (SchemaTooCostly("It takes more than 2 s."), "It takes more than 2 s."),
        (RecursionError("deep"), "It can't be read: RecursionError."),
    ],
)
def test_a_broken_schema_is_recorded_and_blocks_nobody(
    registries: None, system: Actor, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    for name in ("broken", "sound"):
        register_version(registry="dev", subject=parse_subject(name), text=record(name.title(), "email"), by=system)
    outline = schema_engine.outline

    def failing(schema: Any) -> Any:
        if "Broken" in schema.text:
            raise error
        return outline(schema)

    with monkeypatch.context() as patch:
        patch.setattr("registry.search.services.schema_engine.outline", failing)
        assert services.index_stale() == 2
    broken = IndexedSubject.objects.get(name="broken")
    assert (broken.problem, broken.field_count) == (said, 0)
    assert IndexedSubject.objects.get(name="sound").problem == ""
    (hit,) = search_group("broken", "subjects", by=system).hits
    assert hit.problem == said  # type: ignore[union-attr]
    # a day later it is tried again
    assert services.queue_missing() == 0
    IndexedSubject.objects.filter(name="broken").update(indexed_at="2020-01-01T00:00:00Z")
    assert services.queue_missing() == 1
    services.index_stale()
    assert IndexedSubject.objects.get(name="broken").problem == ""


def test_what_no_process_is_free_to_read_stays_queued(two_versions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(schema: Any) -> Any:
        raise Unavailable("All processes are busy.")

    with monkeypatch.context() as patch:
        patch.setattr("registry.search.services.schema_engine.outline", busy)
        assert services.index_stale() == 0
    assert entries() == {}
    assert services.index_stale() == 1
    assert entries() == {"orders-value": (2, ["b"])}


def test_texts_that_a_database_cannot_hold_are_indexed(registries: None, system: Actor) -> None:
    text = record("Odd", {"name": "a", "type": "string", "doc": "nul \0, half"})
    register_version(registry="dev", subject=parse_subject("odd"), text=text, by=system)
    assert services.index_stale() == 1
    (hit,) = search_group('doc:"half"', "fields", by=system).hits
    assert hit.doc == "nul \ufffd, half"  # type: ignore[union-attr]


def test_half_characters_are_replaced_and_upper_case_is_folded() -> None:
    assert storable_text("a\ud800\0b") == "a?\ufffdb"
    assert fold("STRASSE Straße") == "strasse strasse"
    assert split_lines(lines(["a b", "c\nd"])) == ("a b", "c d")
    assert (lines([]), split_lines("")) == ("", ())


def test_long_texts_are_cut(registries: None, system: Actor) -> None:
    text = record("Long", {"name": "n" * 600, "type": "string", "doc": "d" * 5_000})
    register_version(registry="dev", subject=parse_subject("long"), text=text, by=system)
    services.index_stale()
    assert {kind: len(value) for kind, value in SearchTerm.objects.values_list("kind", "value")} == {
        "n": 500, "p": 4, "t": 6, "d": 2_000,
    }  # fmt: skip


def test_the_number_of_queries_is_of_batches_not_of_subjects(registries: None, system: Actor) -> None:
    def cost(prefix: str, count: int) -> int:
        for number in range(count):
            register_version(
                registry="dev",
                subject=parse_subject(f"{prefix}{number}"),
                text=record(f"{prefix}{number}", "a", "b"),
                by=system,
            )
        with CaptureQueriesContext(
            connection,
        ) as queries:
            services.index_stale()
        return len(queries)

    cost("warm", 1)
    assert cost("few", 2) == cost("many", 9)


@pytest.mark.django_db(transaction=True)
def test_two_workers_have_one_effect(registries: None, system: Actor) -> None:
    for number in range(30):
        register_version(
            registry="dev", subject=parse_subject(f"s{number}"), text=record(f"R{number}", "a", f"b{number}"), by=system
        )
    StaleSubject.objects.bulk_create(StaleSubject(subject_id=pk) for pk in Subject.objects.values_list("pk", flat=True))
    failed: list[Exception] = []

    def work() -> None:
        try:
            while services.index_stale(most=5):
                pass
        except Exception as error:  # noqa: BLE001  told below
            failed.append(error)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    services.index_stale()
    assert failed == []
    assert not StaleSubject.objects.exists()
    assert {name: fields for name, (_, fields) in entries().items()} == {f"s{n}": ["a", f"b{n}"] for n in range(30)}
    assert SearchTerm.objects.filter(kind="n", value="a").count() == 1


def test_bulk_writes_are_queued_too(two_versions: None) -> None:
    services.index_stale()
    SchemaVersion.objects.filter(version=2).update(deleted_at="2026-01-01T00:00:00Z")
    assert StaleSubject.objects.count() == 1
    services.index_stale()
    assert entries() == {"orders-value": (1, ["a"])}
    assert Schema.objects.count() == 2
