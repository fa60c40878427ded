"""What is read as of a moment is what was read then: through random histories of a small registry."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.access.roles import Actor
from registry.audit import time_travel
from registry.audit.time_travel import OF, as_of
from registry.errors import InvalidInput, SchemadeskError
from registry.promotions import services as promotions
from registry.promotions.board.rows import board_rows
from registry.promotions.selectors import list_environments, releases_of
from registry.search.subject_list import Page, SubjectFilter, find_subjects
from registry.subjects import selectors
from registry.subjects.lifecycle.notes import note_of
from registry.subjects.lifecycle.retirement import retire
from registry.subjects.models import SchemaVersion, Subject
from registry.subjects.policy.effective_policy import config_and_settings
from registry.subjects.policy.policy_tree import policy_tree
from registry.subjects.services import (
    change_tags,
    delete_config,
    delete_mode,
    delete_subject,
    delete_version,
    register_version,
    set_config,
    set_mode,
    set_version_status,
)
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import list_version_statuses
from tests.promotions.factories import approve_shown

Cast = Callable[[str], Actor]
pytestmark = pytest.mark.requirement("CARD-2")

NAMES = [SubjectName(".", "orders-value"), SubjectName(".crm", "people")]
FIELDS = [
    {"name": name, "type": ["null", kind], "default": None}
    for name, kind in (("a", "string"), ("b", "long"), ("c", "int"))
]
TEXTS = [json.dumps({"type": "record", "name": "R", "fields": FIELDS[:count]}) for count in (1, 2, 3)]
#: tables whose every column is governed: their rows are the same, column for column
WHOLE = (
    "subjects_subject", "subjects_schema", "subjects_schemaversion", "subjects_schemareference", "subjects_config",
    "subjects_mode", "subjects_versionstanding", "subjects_subjectnote", "subjects_subjectactivity",
    "promotions_environment", "promotions_promotionrequest", "promotions_requestitem", "promotions_release",
    "promotions_review", "promotions_applystep", "access_groupchannel", "access_ownership",
)  # fmt: skip


def op_register(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    register_version(registry="dev", subject=name, text=TEXTS[number], by=cast["steward"])


def op_delete(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    found = one_of(name, number, deleted=False)
    delete_version(registry="dev", subject=name, version=found, by=cast["steward"])


def op_delete_permanently(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    found = one_of(name, number, deleted=True)
    delete_version(registry="dev", subject=name, version=found, by=cast["admin"], permanent=True, force="tests")


def op_delete_subject(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    delete_subject(registry="dev", subject=name, by=cast["admin"])


def op_remove_subject(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    with suppress(SchemadeskError), transaction.atomic():
        delete_subject(registry="dev", subject=name, by=cast["admin"])
    delete_subject(registry="dev", subject=name, by=cast["admin"], permanent=True, force="tests")


def op_restore(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    retire(registry="dev", subject=name, choice="restore", by=cast["admin"], force="tests")


def op_set_config(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    scope = (None, SubjectName(name.context, ""), name)[number]
    level = ("NONE", "FULL", "FORWARD")[number]
    set_config(registry="dev", subject=scope, level=level, by=cast["admin"])


def op_delete_config(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    delete_config(registry="dev", subject=(None, SubjectName(name.context, ""), name)[number], by=cast["admin"])


def op_set_mode(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    set_mode(registry="dev", subject=name, mode=("READONLY", "READWRITE", "READWRITE")[number], by=cast["admin"])


def op_delete_mode(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    delete_mode(registry="dev", subject=name, by=cast["admin"])


def op_tag(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    add, remove = [f"tag{number}"], [f"tag{number + 1}"]
    change_tags(registry="dev", subjects=[name], add=add, remove=remove, by=cast["steward"])


def op_deprecate(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    set_version_status(
        registry="dev", subject=name, version=one_of(name, number, deleted=False), status="deprecated",
        message="old", by=cast["steward"],
    )  # fmt: skip


def op_release(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    asked = promotions.request_promotion(
        source="dev",
        target="staging",
        subject=name,
        version=one_of(name, number, deleted=False),
        by=cast["steward"],
        reason="tests",
    )
    approve_shown(request_id=asked, by=cast["approver"], comment="good")
    promotions.apply(request_id=asked, by=cast["approver2"])


def op_roll_back(cast: dict[str, Actor], name: SubjectName, number: int) -> None:
    for text in TEXTS[:2]:
        register_version(registry="staging", subject=name, text=text, by=cast["steward"])
    asked = promotions.request_roll_back(
        environment="staging", subject=name, version=1, by=cast["steward"], reason="tests"
    )
    approve_shown(request_id=asked, by=cast["approver"], comment="good")
    promotions.apply(request_id=asked, by=cast["approver2"])


OPERATIONS = [value for key, value in list(globals().items()) if key.startswith("op_")]
#: every operation at least once, in any order, and most of a history registers: what never was can't be deleted
CHOICES = [*OPERATIONS, *[op_register] * 6, op_release, op_delete, op_restore]
histories = st.permutations(CHOICES).flatmap(
    lambda chosen: st.tuples(
        *(st.tuples(st.just(each), st.sampled_from(NAMES), st.integers(0, 2)) for each in [op_register, *chosen])
    )
)


def one_of(name: SubjectName, number: int, *, deleted: bool) -> int:
    """A version of the subject in dev; 0, which isn't one, where there is none."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry__name="dev", subject__context__name=name.context, subject__name=name.subject,
        deleted_at__isnull=not deleted,
    )  # fmt: skip
    found = list(rows.order_by("version").values_list("version", flat=True))
    return found[number % len(found)] if found else 0


def tables() -> dict[str, list[str]]:
    """Every row of the tables, whole."""
    found = {}
    with connection.cursor() as cursor:
        for table in WHOLE:
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t")
            found[table] = sorted(text for (text,) in cursor.fetchall())
    return found


def read(by: Actor) -> dict[str, Any]:
    """What the selectors say of which the pages are made."""
    dev = get_registry("dev")
    subjects = [SubjectName(row.context.name, row.name) for row in Subject.objects.filter(context__registry=dev)]
    return {
        "order": list_environments(),
        "list": find_subjects(dev, SubjectFilter(), Page()),
        "by name": find_subjects(dev, SubjectFilter(sort="name"), Page()),
        "deleted": find_subjects(dev, SubjectFilter(state="deleted"), Page()),
        "policy": policy_tree(dev),
        "board": bare(board_rows(by=by)),
        "behind": [row.subject for row in board_rows(by=by, filters=["behind"]).rows],
        **{
            f"{name} {what}": value
            for name in subjects
            for what, value in (
                ("config", config_and_settings(dev, name)),
                ("mode", selectors.effective_mode(dev, name)),
                ("versions", selectors.version_infos(list(versions(dev, name)))),
                ("presence", selectors.presence_of(dev, name)),
                ("releases", releases_of(name)),
                ("statuses", list_version_statuses(dev, subject=name)),
                ("note", note_of(dev, name)),
            )
        },
    }


def versions(dev: Any, name: SubjectName) -> Any:
    return Subject.objects.get(context__registry=dev, context__name=name.context, name=name.subject).versions.order_by(
        "-version"
    )


def bare(board: Any) -> Any:
    """The board without the answers to what could go on: they are of now, and nobody keeps them."""
    rows = [[replace(cell, verdict="", reasons=()) for cell in row.cells] for row in board.rows]
    return board.environments, [row.subject for row in board.rows], rows, board.total


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories)
def test_as_of_a_step_is_what_was_then(person: Cast, history: tuple[tuple[Any, SubjectName, int], ...]) -> None:
    cast = {name: person(name) for name in ("steward", "approver", "approver2", "admin")}
    with transaction.atomic():
        seen: list[tuple[datetime, dict[str, list[str]], dict[str, Any] | None]] = []
        for step, (operation, name, number) in enumerate(history):
            with suppress(SchemadeskError), transaction.atomic():
                operation(cast, name, number)
            seen.append((timezone.now(), tables(), None if step % 4 else read(cast["admin"])))
        for at, rows, readings in seen:
            with as_of(at):
                assert tables() == rows
            # nobody else writes here: the views of what is unchanged say the same
            with all_is_steady(), as_of(at):
                assert tables() == rows
                assert readings is None or read(cast["admin"]) == readings
        assert tables() == seen[-1][1]
        transaction.set_rollback(True)


@contextmanager
def all_is_steady() -> Iterator[None]:
    """In these tests' own transactions too, into which nobody else's changes come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_travel, "STEADY", {"read committed"})
        yield


def quick() -> set[str]:
    """The tables that are read without looking into the audit."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('search_path')")
        places = cursor.fetchone()[0].split(", ")
    return {place.strip('"').removeprefix(OF) for place in places if OF in place}


VERSIONS = {"subjects_schemaversion", "subjects_subjectactivity"}
#: what is done after the moment → tables that are no longer read as they are
KINDS: dict[str, tuple[list[tuple[Any, int]], set[str]]] = {
    "nothing": ([], set()),
    "rows that tell when they came": ([(op_register, 1)], {"subjects_subjectactivity"}),
    "rows that don’t": ([(op_tag, 0), (op_set_config, 2)], {"subjects_subjectnote", "subjects_config"}),
    "an update": ([(op_delete, 0)], VERSIONS),
    "a removal": ([(op_delete, 0), (op_delete_permanently, 0)], {*VERSIONS, "subjects_schema"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_unchanged_since_is_read_as_it_is(person: Cast, registries: None, kind: str) -> None:
    cast = {name: person(name) for name in ("steward", "admin")}
    for number in (0, 2):
        op_register(cast, NAMES[0], number)
    at, rows = timezone.now(), tables()
    operations, slower = KINDS[kind]
    for operation, number in operations:
        operation(cast, NAMES[0], number)
    with all_is_steady(), as_of(at):
        assert {table for table in WHOLE if table not in quick()} == slower
        assert tables() == rows
    with as_of(at):
        assert not quick()
        assert tables() == rows


@pytest.mark.django_db(transaction=True)
def test_what_others_do_meanwhile_is_not_seen(person: Cast, registries: None) -> None:
    cast = {name: person(name) for name in ("steward", "admin")}
    for number in (0, 1):
        op_register(cast, NAMES[0], number)
    at, rows = timezone.now(), tables()

    def change() -> None:
        try:
            op_delete(cast, NAMES[0], 0)
            op_set_config(cast, NAMES[0], 2)
        finally:
            connection.close()

    with as_of(at):
        assert quick() >= set(WHOLE)
        assert tables() == rows
        other = threading.Thread(target=change)
        other.start()
        other.join()
        assert tables() == rows
    assert tables() != rows
    with as_of(at):
        assert not VERSIONS & quick()
        assert tables() == rows


def test_one_moment_within_another(person: Cast, registries: None) -> None:
    cast = {name: person(name) for name in ("steward", "admin")}
    steps = []
    for number in (0, 1, 2):
        op_register(cast, NAMES[0], number)
        steps.append((timezone.now(), tables()))
    with as_of(steps[1][0]):
        with as_of(steps[0][0]):
            assert tables() == steps[0][1]
        assert tables() == steps[1][1]
    assert tables() == steps[2][1]
    op_delete(cast, NAMES[0], 0)  # what comes after it may write


def test_a_moment_to_come_is_refused(registries: None) -> None:
    with pytest.raises(InvalidInput, match="in the future"), as_of(timezone.now() + timedelta(minutes=1)):
        pass


def test_nothing_is_written_in_the_past(registries: None) -> None:
    for statement in ("DELETE FROM subjects_config", "DELETE FROM drift_finding", "DELETE FROM search_stalesubject"):
        with pytest.raises(DatabaseError), as_of(timezone.now()), connection.cursor() as cursor:
            cursor.execute(statement)
    Subject.objects.count()


def test_no_table_with_a_past_is_read_as_of_today(registries: None) -> None:
    """A table that is new belongs to one of the three kinds, or it is about accounts and rights."""
    with as_of(timezone.now()), connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            " AND to_regclass(quote_ident(relname)) = oid"
        )
        open_to_today = {name for (name,) in cursor.fetchall()}
    beginnings = (
        "access_",
        "account_",
        "socialaccount_",
        "auth_",
        "django_",
        "notifications_",
        "audit_auditevent",
        "audit_chainhead",
    )
    assert {name for name in open_to_today if not name.startswith(beginnings)} == set()
    assert "access_ownership" not in open_to_today
