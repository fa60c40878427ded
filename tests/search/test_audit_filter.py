"""Which events of the audit are about a subject or a registry."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor
from registry.audit.selectors import AuditEntry, AuditFilter, columns_of_rows, list_events, tables_of_audit
from registry.errors import RegistryNotFound
from registry.promotions.services import request_promotion
from registry.search.audit_filter import events_about
from registry.subjects.services import delete_config, delete_version, register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]

ORDERS, OTHER = SubjectName(".", "orders-value"), SubjectName(".", "orders-value-2")


@pytest.fixture
def history(person: Callable[[str], Actor]) -> int:
    """Two subjects of nearly one name in dev and one in staging, settings that were taken back, a request with a review."""
    steward, approver = person("steward"), person("approver")
    for registry, name in (("dev", ORDERS), ("dev", OTHER), ("staging", OTHER)):
        register_version(registry=registry, subject=name, text='"int"', by=steward)
    set_config(registry="dev", subject=ORDERS, level="FULL", by=steward)
    delete_config(registry="dev", subject=ORDERS, by=steward)
    set_config(registry="dev", subject=OTHER, level="FULL", by=steward)
    set_config(registry="staging", subject=ORDERS, level="NONE", by=person("admin"))
    number = request_promotion(source="dev", target="prod", subject=ORDERS, version=1, by=steward, reason="first")
    approve_shown(request_id=number, by=approver)
    return number


def found(registry: str = "", subject: str = "") -> list[AuditEntry]:
    return list_events(chosen=AuditFilter(about=events_about(registry=registry, subject=subject)), limit=500)


def counts(entries: list[AuditEntry]) -> dict[tuple[str, str], int]:
    told: dict[tuple[str, str], int] = {}
    for entry in entries:
        told[entry.table, entry.operation] = told.get((entry.table, entry.operation), 0) + 1
    return told


def test_a_subjects_events_are_those_of_its_rows_settings_and_requests(history: int) -> None:
    told = counts(found("dev", "orders-value"))
    assert told["subjects_subject", "INSERT"] == told["subjects_schemaversion", "INSERT"] == 1
    assert (
        told["subjects_config", "INSERT"] == told["subjects_config", "DELETE"] == 1
    )  # the row is gone, its events not
    assert told["promotions_promotionrequest", "INSERT"] == told["promotions_requestitem", "INSERT"] == 1
    assert told["promotions_review", "INSERT"] == 1
    assert not any(table in ("subjects_registry", "subjects_context") for table, _ in told)


def test_another_subject_whose_name_contains_it_is_another(history: int) -> None:
    told = counts(found("dev", "orders-value-2"))
    assert told == {
        ("subjects_subject", "INSERT"): 1,
        ("subjects_schemaversion", "INSERT"): 1,
        ("subjects_config", "INSERT"): 1,
    }


def test_without_a_registry_it_is_the_subject_of_that_name_in_all(history: int) -> None:
    everywhere, in_dev = found("", "orders-value-2"), found("dev", "orders-value-2")
    assert len(everywhere) > len(in_dev)
    assert {entry.id for entry in in_dev} < {entry.id for entry in everywhere}


def test_the_request_is_in_both_ends_trails(history: int) -> None:
    for registry in ("dev", "prod"):
        assert ("promotions_review", "INSERT") in counts(found(registry, "orders-value"))
    assert ("promotions_review", "INSERT") not in counts(found("staging", "orders-value"))


def test_a_subject_that_is_gone_has_its_settings_and_requests_left(history: int, system: Actor) -> None:
    for permanent in (False, True):
        delete_version(registry="dev", subject=OTHER, version=1, permanent=permanent, by=system)
    assert ("subjects_config", "INSERT") in counts(found("dev", "orders-value-2"))


def test_what_is_gone_for_good_keeps_its_own_events(history: int, system: Actor) -> None:
    register_version(registry="dev", subject=OTHER, text='{"type": "int", "note": "a second"}', by=system)
    for permanent in (False, True):
        delete_version(registry="dev", subject=OTHER, version=1, permanent=permanent, by=system)
    told = counts(found("dev", "orders-value-2"))  # the subject is there, a version isn't
    assert told["subjects_schemaversion", "INSERT"] == 2
    assert told["subjects_schemaversion", "DELETE"] == told["subjects_schemaversion", "UPDATE"] == 1
    for permanent in (False, True):
        delete_version(registry="dev", subject=OTHER, version=2, permanent=permanent, by=system)
    told = counts(found("dev", "orders-value-2"))  # neither is
    assert told["subjects_subject", "DELETE"] == told["subjects_subject", "INSERT"] == 1
    assert told["subjects_schemaversion", "DELETE"] == told["subjects_schemaversion", "INSERT"] == 2
    assert counts(found("staging", "orders-value-2")) == {
        ("subjects_subject", "INSERT"): 1, ("subjects_schemaversion", "INSERT"): 1,
    }  # fmt: skip


def test_a_registrys_events_are_those_of_all_in_it(history: int) -> None:
    dev, staging, prod = found("dev"), found("staging"), found("prod")
    assert counts(dev)["subjects_schemaversion", "INSERT"] == 2
    assert counts(staging)["subjects_schemaversion", "INSERT"] == 1
    assert counts(staging)["subjects_config", "INSERT"] == 1
    assert ("promotions_review", "INSERT") in counts(prod)
    assert ("subjects_registry", "INSERT") in counts(dev)


def test_a_registry_that_is_none_is_named(history: int) -> None:
    with pytest.raises(RegistryNotFound, match="nowhere"):
        events_about(registry="nowhere")


def test_all_is_asked_for_without_a_condition(history: int) -> None:
    assert events_about() is None


@pytest.mark.parametrize("name", ["%", "'", "\u202e", "x" * 1000])
def test_hostile_names_find_nothing(history: int, name: str) -> None:
    assert found("dev", name) == []


def test_more_rows_take_no_more_queries(history: int, system: Actor) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            found("dev", "orders-value")
        return len(seen)

    before = queries()
    for number in range(20):
        set_config(registry="dev", subject=ORDERS, level=("FULL", "NONE")[number % 2], by=system)
    assert queries() == before


def test_columns_of_rows_are_read_before_and_after(history: int) -> None:
    entries = [entry for entry in found("dev", "orders-value") if entry.table == "subjects_config"]
    columns = columns_of_rows([entry.id for entry in entries], ["subject_name", "nothing"])
    assert len(entries) == 2
    assert all(columns[entry.id] == {"subject_name": "orders-value", "nothing": None} for entry in entries)


def test_the_tables_of_the_audit_are_each_there_once(history: int) -> None:
    tables = tables_of_audit()
    assert tables == sorted(set(tables))
    assert {"subjects_config", "promotions_review"} <= set(tables)
