"""Versions that are brought, or restored, at once: rows, audit and problems are those of one by one, and statements few."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor
from registry.audit.context import recorded
from registry.audit.models import AuditEvent
from registry.formats.base import Reference
from registry.search.models import StaleSubject
from registry.subjects.archive.restore import plan_copy
from registry.subjects.import_export import import_versions, registry_import
from registry.subjects.import_export.import_plan import RestoreOptions
from registry.subjects.import_export.registry_import import (
    import_all_versions,
    import_configs,
    import_modes,
    import_notes,
)
from registry.subjects.import_export.snapshot import NoteRecord, VersionRecord
from registry.subjects.lifecycle.retirement import restore_each
from registry.subjects.models import (
    ArchivedCopy,
    Config,
    Context,
    Mode,
    Registry,
    Schema,
    SchemaReference,
    SchemaVersion,
    Subject,
    SubjectActivity,
    SubjectNote,
)
from registry.subjects.services import delete_subject, register_version, set_config
from registry.subjects.versions import parsed_schemas
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.subjects.import_export.import_fixtures import bring_one_by_one, record, restore_one_by_one

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-1", "CARD-2")]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
A, B = SubjectName(".", "a"), SubjectName(".", "b")
SUBJECTS = (A, B, SubjectName(".", "new"), SubjectName(".lab", "a"), SubjectName(".lab", "ß"), SubjectName(".new", "c"))
TEXTS = (record("R0", "a"), record("R1", "a", "b"), record("R2"), '"int"', '{"type":"array","items":"R0"}')
#: what is wrong with a version, whatever is there
WRONG: tuple[dict[str, Any], ...] = (
    {"text": "{"},
    {"text": '"' + "x" * 3000 + '"'},
    {"text": '{"type": "string", "doc": "\\u0000"}', "submitted": "\x00"},
    {"schema_type": "XML"},
    {"subject": SubjectName("lab", "a")},
    {"subject": SubjectName(".", "a\x07")},
    {"version": 0},
    {"version": 2**31},
    {"schema_id": 0},
    {"schema_id": -4},
    {"schema_id": 2**31 - 1},
    {"schema_id": 2**31},
    {"channel": "a channel with a name that is too long"},
    {"metadata": {"properties": {"a": "\x00"}}},
    {"references": (Reference("R0", ":.lab", 1),)},
    {"references": (Reference("R0", "a", 0),)},
    {"references": (Reference("R0", "nowhere", 1),)},
)


@pytest.fixture
def place(registries: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry, at a moment that stands still."""
    settings.SCHEMA_MAX_BYTES = 2000
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    return get_registry("dev")


def any_version(random: Random) -> VersionRecord:
    """A version as it may come: few places, ids and texts, so that much of it meets, and seldom something is wrong."""
    text = random.randrange(len(TEXTS))
    refers = random.random() < (0.7 if text == 4 else 0.1)
    to = Reference("R0", random.choice(("a", "b", "new", ":.lab:a")), random.choice((1, 1, 2, 3, -1)))
    values: dict[str, Any] = {
        "subject": random.choice(SUBJECTS),
        "version": random.randint(1, 4),
        "schema_id": text + 1 + 10 * refers if random.random() < 0.8 else random.randint(1, 16),
        "schema_type": "AVRO",
        "text": TEXTS[text],
        "references": (to,) if refers else (),
        "deleted": random.random() < 0.3,
        "deleted_at": random.choice((None, NOW - timedelta(days=1))),
        "created_at": random.choice((None, NOW - timedelta(days=2))),
        "created_by": random.choice(("", "somebody")),
        "channel": random.choice(("", "google")),
        "submitted": random.choice(("", f" {TEXTS[text]}")),
        "metadata": random.choice((None, None, {}, {"properties": {"k": "v"}})),
    }
    return VersionRecord(**{**values, **(random.choice(WRONG) if random.random() < 0.15 else {})})


def batches(seed: int) -> tuple[list[VersionRecord], list[VersionRecord]]:
    """What is there, and what comes: some of it is there already, deleted or not, or comes twice."""
    random = Random(seed)
    there, comes = [any_version(random) for _ in range(10)], list[VersionRecord]()
    for _ in range(24):
        new = any_version(random)
        again = replace(random.choice([*there, *comes, new]), deleted=random.random() < 0.5)
        comes.append(again if random.random() < 0.4 else new)
    return there, comes


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def outcome(place: Registry, act: Callable[[], Any]) -> dict[str, Any]:
    """What it gives, and what is there afterwards, without the numbers that the database counts up."""
    with undone():
        begin = AuditEvent.objects.order_by("pk").values_list("pk", flat=True).last() or 0
        StaleSubject.objects.all().delete()
        return {"given": act(), **_rows(place), "audit": _audit(begin), "why": recorded()}


def _rows(place: Registry) -> dict[str, Any]:
    versions = SchemaVersion.objects.filter(subject__context__registry=place)
    return {
        "contexts": sorted(Context.objects.filter(registry=place).values_list("name", "next_schema_id", "created_at")),
        "subjects": sorted(Subject.objects.filter(context__registry=place).values_list("context__name", "name")),
        "versions": sorted(
            versions.values_list(
                "subject__context__name", "subject__name", "version", "schema__schema_id", "submitted", "created_at",
                "created_by", "channel", "deleted_at", "imported",
            )
        ),
        "schemas": sorted(
            map(
                str,
                Schema.objects.filter(context__registry=place).values_list(
                    "context__name", "schema_id", "schema_type", "canonical", "identity", "fingerprint", "guid", "metadata",
                    "rule_set", "imported", "created_at",
                ),
            )
        ),
        "references": sorted(
            SchemaReference.objects.filter(schema__context__registry=place).values_list(
                "schema__context__name", "schema__schema_id", "position", "name", "subject_name",
                "target__subject__context__name", "target__subject__name", "target__version",
            )
        ),
        "activity": sorted(
            SubjectActivity.objects.filter(registry_id=place.pk).values_list(
                "subject__context__name", "subject__name", "live_versions", "changed_at", "schema_type"
            )
        ),
        "stale": Counter(_names()["subject_id"][row.subject_id] for row in StaleSubject.objects.all()),
    }  # fmt: skip


def _names() -> dict[str, dict[int, tuple[Any, ...]]]:
    """What a number in a row of the audit stands for."""
    subjects = Subject.objects.values_list("pk", "context__name", "name")
    schemas = Schema.objects.values_list("pk", "context__name", "schema_id")
    versions = SchemaVersion.objects.values_list("pk", "subject__context__name", "subject__name", "version")
    return {
        "subject_id": {pk: tuple(name) for pk, *name in subjects},
        "schema_id": {pk: tuple(name) for pk, *name in schemas},
        "target_id": {pk: tuple(name) for pk, *name in versions},
        "context_id": {row.pk: (row.name,) for row in Context.objects.all()},
    }


def _audit(begin: int) -> list[str]:
    """What became of each row, by whom and why: the first state and the last, however many steps there were between."""
    names, net = _names(), dict[tuple[str, str], list[Any]]()
    for event in AuditEvent.objects.filter(pk__gt=begin).order_by("pk"):
        known = net.setdefault(
            (event.table, event.row_id), [event.operation, event.before, None, event.actor, event.channel, event.why]
        )
        known[2] = event.after
    return sorted(f"{table} {[_named(part, table, names) for part in parts]}" for (table, _), parts in net.items())


def _named(part: Any, table: str, names: dict[str, dict[int, tuple[Any, ...]]]) -> Any:
    if not isinstance(part, dict):
        return part
    own = table == "subjects_schema"  # there it is the id that the registry gave
    return sorted(
        (column, str(names[column][value] if column in names and not (own and column == "schema_id") else value))
        for column, value in part.items()
        if column != "id"
    )


@pytest.mark.parametrize("seed", range(16))
def test_versions_at_once_come_as_one_by_one(place: Registry, system: Actor, seed: int) -> None:
    there, records = batches(seed)
    more: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
    bring_one_by_one(records=there, **more)
    expected = outcome(place, lambda: bring_one_by_one(records=records, **more))
    assert outcome(place, lambda: import_all_versions(records=records, **more)) == expected


def test_the_cases_are_mixed(place: Registry, system: Actor) -> None:
    """What the test above is worth: of everything that may become of a version there is something among its cases."""
    said, done = Counter[str](), Counter[str]()
    for seed in range(16):
        there, records = batches(seed)
        more: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
        with undone():
            import_all_versions(records=there, **more)
            given = import_all_versions(records=records, **more)
        done.update(added=given.added, changed=given.changed, same=given.same)
        for problem in given.problems:
            for part in (
                "the database rejects it", "No schema reference found", "it has schema id", "another schema here",
                "is used by another schema (", "its name would refer to", "too large",
            ):  # fmt: skip
                said[part] += part in problem.why
    assert min(done.values()) >= 8 and min(said.values()) >= 2, (done, said)


INT, LONG = '"int"', '"long"'
USES = VersionRecord(B, 1, 9, "AVRO", TEXTS[4], references=(Reference("R0", "a", -1),))
#: what is there, and what comes
CASES = {
    "the newest of the batch": (
        [],
        [VersionRecord(A, number, number, "AVRO", record("R0", f"f{number}")) for number in (1, 3, 2)] + [USES],
    ),
    "the newest that is there": (
        [VersionRecord(A, 7, 7, "AVRO", record("R0", "seven"))],
        [VersionRecord(A, 1, 1, "AVRO", record("R0", "one")), USES],
    ),
    "an id that stands for what comes": (
        [],
        [VersionRecord(name, number, 1, "AVRO", text)
         for name, number, text in ((B, 2, INT), (A, 3, INT), (A, 2, INT), (A, 4, LONG), (A, 1, INT), (A, 5, LONG))],
    ),
    "an id that stands for what is there and what comes": (
        [VersionRecord(B, 1, 1, "AVRO", INT)],
        [VersionRecord(A, number, 1, "AVRO", text) for number, text in ((4, LONG), (1, INT), (5, LONG))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_comes_before_is_there_for_what_comes_after(place: Registry, system: Actor, case: str) -> None:
    there, records = CASES[case]
    more: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
    bring_one_by_one(records=there, **more)
    expected = outcome(place, lambda: bring_one_by_one(records=records, **more))
    assert outcome(place, lambda: import_all_versions(records=records, **more)) == expected
    assert expected["given"].added >= 1


@pytest.mark.parametrize("wrong", range(len(WRONG)))
def test_one_that_is_wrong_hinders_no_other(place: Registry, system: Actor, wrong: int) -> None:
    records = [VersionRecord(A, number, number, "AVRO", record("R", f"f{number}")) for number in range(1, 8)]
    records[3] = replace(records[3], **WRONG[wrong])
    more: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
    expected = outcome(place, lambda: bring_one_by_one(records=records, **more))
    assert outcome(place, lambda: import_all_versions(records=records, **more)) == expected
    assert (expected["given"].added, len(expected["given"].problems)) == (6, 1)


@pytest.mark.parametrize("stored", [0, 2, 6])
def test_references_are_as_deep_as_one_by_one(
    place: Registry, system: Actor, stored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refers to the one before, the last but one and the last to one further below too, which makes it less deep."""
    for module in (parsed_schemas, import_versions):
        monkeypatch.setattr(module, "MAX_REFERENCE_DEPTH", 4)
    records = [_chained(number) for number in range(1, 9)]
    more: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
    bring_one_by_one(records=records[:stored], **more)
    expected = outcome(place, lambda: bring_one_by_one(records=records, **more))
    assert outcome(place, lambda: import_all_versions(records=records, **more)) == expected
    assert any("nested more than 4 deep" in problem.why for problem in expected["given"].problems)


def _chained(number: int) -> VersionRecord:
    below = [number - 1, *([2] if number in (5, 6) else [])] if number > 1 else []
    fields = [{"name": f"f{each}", "type": f"R{each}"} for each in below]
    text = json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
    references = tuple(Reference(f"R{each}", f"s{each}", -1) for each in below)
    return VersionRecord(SubjectName(".", f"s{number}"), 1, number, "AVRO", text, references=references)


def test_what_is_written_at_once_is_bounded(place: Registry, system: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [VersionRecord(A, number, number, "AVRO", record("R", f"f{number}")) for number in range(1, 8)]
    more: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
    expected = outcome(place, lambda: import_all_versions(records=records, **more))
    for name, most in (("AT_ONCE", 3), ("CHARACTERS", 200)):
        with monkeypatch.context() as patch:
            patch.setattr(registry_import, name, most)
            pieces = [len(piece) for piece in registry_import._pieces(records)]
            assert len(pieces) > 1 and sum(pieces) == 7
            assert outcome(place, lambda: import_all_versions(records=records, **more)) == expected
    assert [len(piece) for piece in registry_import._pieces([*records, records[2], *records])] == [7, 3, 5]


@pytest.mark.parametrize("seed", range(12))
def test_versions_are_restored_at_once_as_one_by_one(place: Registry, system: Actor, seed: int) -> None:
    random = Random(seed)
    more: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
    bring_one_by_one(
        records=[VersionRecord(B, 1, 90, "AVRO", TEXTS[0], deleted=seed % 2 == 0)]
        + [_restorable(random, number) for number in range(1, 9)],
        **more,
    )
    level = random.choice(("NONE", "BACKWARD", "FULL_TRANSITIVE", "FORWARD"))
    set_config(registry="dev", subject=None, level=level, by=system)
    deleted = list(SchemaVersion.objects.filter(subject__name="a").exclude(deleted_at=None).order_by("version"))
    numbers = [row.version for row in deleted]

    def at_once() -> dict[int, str]:
        errors = restore_each(registry="dev", subject=A, versions=numbers, by=system)
        return {number: errors[number].message for number in sorted(errors)}

    expected = outcome(place, lambda: restore_one_by_one(registry="dev", subject=A, versions=numbers, by=system))
    assert outcome(place, at_once) == expected


def _restorable(random: Random, number: int) -> VersionRecord:
    kind = random.randrange(6)
    deleted = random.random() < 0.7
    if kind == 5:
        to = (Reference("R0", "b", 1),)
        return VersionRecord(A, number, 20, "AVRO", TEXTS[4], references=to, deleted=deleted)
    text = (record("R", "a"), record("R", "a", "b"), record("R", "b", "c"), '"int"', '"long"')[kind]
    return VersionRecord(A, number, kind + 1, "AVRO", text, deleted=deleted)


def test_what_is_restored_first_is_there_for_what_refers_to_it(place: Registry, system: Actor) -> None:
    """And where nothing can be restored, nothing is recorded."""
    set_config(registry="dev", subject=None, level="NONE", by=system)
    uses = {"text": TEXTS[4], "references": (Reference("R0", "a", 1),)}
    records = [
        VersionRecord(A, 1, 1, "AVRO", TEXTS[0], deleted=True),
        VersionRecord(A, 2, 2, "AVRO", deleted=True, **uses),  # type: ignore[arg-type]
    ]
    bring_one_by_one(registry=place, records=records, by=system, why="a test")
    for numbers in ([1, 2], [2]):
        one: dict[str, Any] = {"registry": "dev", "subject": A, "versions": numbers, "by": system}
        expected = outcome(place, lambda one=one: restore_one_by_one(**one))  # type: ignore[misc]
        assert len(expected["given"]) == 2 - len(numbers)

        def at_once(one: dict[str, Any] = one) -> dict[int, str]:
            return {number: error.message for number, error in restore_each(**one).items()}

        assert outcome(place, at_once) == expected


def test_who_may_not_restore_restores_nothing(place: Registry, system: Actor) -> None:
    import_all_versions(
        registry=place, records=[VersionRecord(A, 1, 1, "AVRO", '"int"', deleted=True)], by=system, why="x"
    )
    nobody = Actor("nobody", "ui", 1, ())
    errors = restore_each(registry="dev", subject=A, versions=[1, 2], by=nobody)
    assert set(errors) == {1, 2} and len({error.message for error in errors.values()}) == 1
    errors = restore_each(registry="dev", subject=A, versions=[1, 2], by=system)
    assert list(errors) == [2] and SchemaVersion.objects.get().deleted_at is None


# -- how many statements ------------------------------------------------------------------------------------------------


def _counted(act: Callable[[], Any]) -> int:
    act()  # what is looked up once in a process
    with CaptureQueriesContext(connection) as queries:
        act()
    return len(queries)


@pytest.mark.parametrize("ways", [RestoreOptions(live=True), RestoreOptions(live=False)])
def test_a_plan_takes_as_many_statements_for_many_versions(
    registries: None, system: Actor, ways: RestoreOptions
) -> None:
    counts = {}
    for versions in (20, 60):
        name = SubjectName(".", f"s{versions}")
        for number in range(versions):
            fields = [f"f{each}" for each in range(number + 1)]
            register_version(registry="dev", subject=name, text=record("R", *fields), by=system)
        for permanent in (False, True):
            delete_subject(registry="dev", subject=name, by=system, permanent=permanent)
        number = ArchivedCopy.objects.latest("pk").pk

        def plan(number: int = number) -> None:
            found = plan_copy(registry="dev", number=number, ways=ways, by=system)
            assert {(line.fate, line.why) for line in found.lines} == {("created", "")}

        counts[versions] = _counted(plan)
    assert counts[20] == counts[60] <= 55, counts


def test_bringing_takes_as_many_statements_for_many_versions(place: Registry, system: Actor) -> None:
    """Also where each refers to the one before, and where a third of them can't come."""
    counts = {}
    for versions in (20, 60):
        records = [_chained(number) for number in range(1, versions + 1)]
        records += [VersionRecord(A, number, 1, "AVRO", '"int"') for number in range(1, versions // 3)]

        def bring(records: list[VersionRecord] = records) -> None:
            with undone():
                done = import_all_versions(registry=place, records=records, by=system, why="a test")
                assert len(done.problems) == len(records) - done.added >= len(records) // 4 - 1

        counts[versions] = _counted(bring)
    assert counts[20] == counts[60] <= 24, counts


def test_bringing_settings_takes_as_many_statements_for_many_subjects(place: Registry, system: Actor) -> None:
    counts = {}
    whole: dict[str, Any] = {"registry": place, "by": system, "why": "a test"}
    for subjects in (5, 30):
        names = [SubjectName(".", f"n{subjects}-{number}") for number in range(subjects)]
        import_all_versions(records=[VersionRecord(name, 1, 1, "AVRO", '"int"') for name in names], **whole)

        def bring(names: list[SubjectName] = names) -> None:
            with undone():
                assert not import_configs(configs={name: ({}, {"level": "NONE"}) for name in names}, **whole)
                assert not import_notes(notes={name: NoteRecord(("gold",), "Ours.") for name in names}, **whole)
                import_modes(modes=dict.fromkeys(names, "READONLY"), **whole)
                written = [
                    model.objects.filter(subject_name__in=[n.subject for n in names]).count()
                    for model in (Config, Mode)
                ]
                assert [*written, SubjectNote.objects.count()] == [len(names)] * 3

        counts[subjects] = _counted(bring)
    assert counts[5] == counts[30] <= 30, counts
