"""What counts as a change: statements, and every table of the product."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.db import connection
from psycopg import sql

from dashboard.database.statements import ANSWERS, BESIDE, BOOKKEEPING, FOLLOWING, WRITING_FUNCTIONS, Kind, kind_of
from registry.access.actors import _NOTE_USE
from registry.promotions.board.readiness import _GONE
from registry.subjects.registration.registration_state import _ADD

READ, NOTES, ASIDE, CHANGE, COUNTED, TOLD = (
    Kind.READ, Kind.BOOKKEEPING, Kind.BESIDE, Kind.CHANGE, Kind.COUNTED, Kind.TOLD
)  # fmt: skip

STATEMENTS = [
    (READ, 'SELECT "a" FROM "subjects_subject" WHERE "a" = %s'),
    (READ, "(SELECT 1) UNION (SELECT 2)"),
    (READ, "  \n with a as (select 1) select * from a"),
    (READ, "SELECT deleted_at, 'DELETE' FROM subjects_schemaversion"),
    (READ, "SAVEPOINT x"),
    (READ, "ROLLBACK TO SAVEPOINT x"),
    (READ, "SELECT a -- and no DELETE\nFROM b"),
    # a lock or a note for the audit is what comes before a change: such an answer isn't one to be given again
    (ASIDE, "SELECT 1 FROM subjects_subject FOR UPDATE"),
    (ASIDE, "SELECT 1 FROM subjects_subject FOR NO KEY UPDATE OF x SKIP LOCKED"),
    (ASIDE, "SELECT set_config('schemadesk.actor', %s, true)"),
    (ASIDE, "SELECT pg_advisory_xact_lock_shared(%s, %s)"),
    (ASIDE, 'INSERT INTO "drift_scan" ("a") VALUES (%s) RETURNING "id"'),
    (ASIDE, 'INSERT INTO "notifications_notice" ("a") VALUES (%s) ON CONFLICT ("a") DO UPDATE SET "a" = %s'),
    (ASIDE, 'DELETE FROM "django_session" WHERE 1'),
    (ASIDE, 'UPDATE public."django_session" SET "a" = %s WHERE 1'),
    (NOTES, _NOTE_USE),
    (NOTES, 'UPDATE "access_user" SET "last_login" = %s WHERE "access_user"."id" = %s'),
    (NOTES, 'UPDATE "subjects_registry" SET "sync_tag" = %s, "sync_lease_until" = NULL WHERE 1'),
    (COUNTED, 'UPDATE "access_user" SET "last_login" = %s, "is_active" = %s WHERE 1'),
    (COUNTED, 'UPDATE "access_apitoken" SET "last_used_at" = (SELECT 1) WHERE 1'),
    (COUNTED, 'UPDATE "access_apitoken" SET "revoked_at" = %s WHERE "last_used_at" = %s'),
    (COUNTED, 'UPDATE "subjects_config" SET "last_used_at" = %s WHERE 1'),
    (COUNTED, 'INSERT INTO "subjects_schema" ("a") VALUES (%s)'),
    (COUNTED, "delete from subjects_mode"),
    (COUNTED, 'INSERT INTO "subjects_mode" ("a") VALUES (%s) ON CONFLICT ("a") DO UPDATE SET "a" = %s'),
    (TOLD, _ADD),
    (TOLD, "WITH gone AS (DELETE FROM subjects_mode RETURNING *) SELECT * FROM gone"),
    (TOLD, "WITH gone AS (DELETE FROM subjects_mode RETURNING *) INSERT INTO drift_scan SELECT * FROM gone"),
    (ASIDE, "WITH gone AS (DELETE FROM drift_scan RETURNING *) SELECT * FROM gone"),
    (CHANGE, 'UPDATE "a_table_that_nobody_knows" SET "a" = %s WHERE 1'),
    (CHANGE, "WITH gone AS (DELETE FROM nobody_knows RETURNING *) INSERT INTO subjects_mode SELECT * FROM gone"),
    (CHANGE, "WITH made AS (SELECT 1) SELECT * INTO other FROM made"),
    (CHANGE, 'INSERT INTO another."subjects_mode" ("a") VALUES (%s)'),
    (CHANGE, "INSERT INTO drift_scan SELECT 1; DELETE FROM subjects_mode"),
    (CHANGE, "TRUNCATE subjects_mode"),
    (CHANGE, "COPY subjects_mode FROM STDIN"),
    (CHANGE, "SELECT 1 INTO other"),
    (CHANGE, "EXPLAIN ANALYZE DELETE FROM subjects_mode"),
    (CHANGE, "DO $$ BEGIN DELETE FROM subjects_mode; END $$"),
    (CHANGE, "SELECT $a$ ' $a$, 1"),
    (CHANGE, r"SELECT E'\'' || (WITH x AS (DELETE FROM subjects_mode RETURNING 1) SELECT 1 FROM x) || ''"),
    (CHANGE, "CALL something()"),
    (CHANGE, "EXECUTE prepared"),
    (CHANGE, "ALTER TABLE subjects_mode ADD COLUMN x int"),
    (CHANGE, ""),
]


@pytest.mark.parametrize(("kind", "statement"), STATEMENTS)
def test_what_a_statement_may_change(kind: Kind, statement: str) -> None:
    assert kind_of(statement) is kind
    assert kind_of(statement.encode()) is kind
    assert kind_of(f"\n {statement} ;\n") is kind or kind is CHANGE


def test_statements_as_they_are_composed_and_long_ones() -> None:
    composed = sql.SQL("DELETE FROM {}").format(sql.Identifier("subjects_mode"))
    assert kind_of(composed) is COUNTED
    assert kind_of(f"SELECT 1 WHERE a IN ({'%s, ' * 10_000} 1)") is READ
    assert kind_of(_GONE) in (ASIDE, CHANGE), "it deletes outlooks alone; at worst it counts as a change"


def test_every_table_is_classified_once() -> None:
    models = {model._meta.db_table for model in apps.get_models(include_auto_created=True) if model._meta.managed}
    assert models - ANSWERS - BESIDE == set(), "say in dashboard/database/statements.py whether answers depend on these"
    assert not ANSWERS & BESIDE
    assert FOLLOWING.keys() <= BESIDE, "a statement of ours that writes them counts for nothing: triggers alone do"
    assert set(FOLLOWING.values()) <= ANSWERS
    assert models >= ANSWERS
    for table, columns in BOOKKEEPING.items():
        model = next(model for model in apps.get_models() if model._meta.db_table == table)
        assert table in ANSWERS
        assert columns <= {field.column for field in model._meta.concrete_fields}


@pytest.mark.django_db
def test_each_of_these_tables_tells_of_changes_by_other_channels() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, string_agg(split_part(pg_get_triggerdef(t.oid), ' ON ', 1), ' OR ') FROM pg_trigger t"
            " JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid"
            " WHERE p.proname IN ('tell_change', 'tell_registration') GROUP BY c.relname"
        )
        definitions = dict(cursor.fetchall())
    assert set(definitions) == ANSWERS
    for table, definition in definitions.items():
        assert all(event in definition for event in ("INSERT", "DELETE", "TRUNCATE", "UPDATE"))
        model = next(m for m in apps.get_models(include_auto_created=True) if m._meta.db_table == table)
        columns = {field.column for field in model._meta.concrete_fields} - BOOKKEEPING.get(table, set())
        named = re.findall(r"UPDATE OF ([^()]*?)(?: OR |$)", definition)
        observed = {column.strip(' "') for names in named for column in names.split(",")} if named else columns
        assert observed == columns, f"{table}: a column that changes answers isn't told of, or one too many"


@pytest.mark.django_db
def test_no_other_function_of_ours_writes_in_a_select() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
            " WHERE n.nspname = 'public' AND p.prorettype <> 'trigger'::regtype AND p.provolatile = 'v'"
            " AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
        )
        ours = {name for (name,) in cursor.fetchall()}
    assert ours == set(WRITING_FUNCTIONS)
    assert set(WRITING_FUNCTIONS.values()) <= BESIDE
