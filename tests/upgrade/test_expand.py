"""Migrations are expand, then contract: the programs of the last release work on the tables of this one."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from psycopg.conninfo import make_conninfo

from tests.migrated_database import new_database
from tests.services_plugin import KEPT
from tests.upgrade.definitions import RECORDING, Definitions, definitions, differences, exceptions

pytestmark = pytest.mark.xdist_group("upgrade")
RECORDED = gzip.decompress(RECORDING.read_bytes()).decode()
MORE_AUDITED = """
DO $$ DECLARE definition text := pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'audit' AND tgrelid = 'access_apitoken'::regclass;
BEGIN
    DROP TRIGGER audit ON access_apitoken;
    EXECUTE replace(definition, ' revoked_at ', ' revoked_at, last_used_at ');
END $$"""
#: changes of the last release's tables, and how each is named; "" for those that don't break it
CHANGES = {
    "DROP TABLE subjects_subjectnote CASCADE": "column subjects_subjectnote.id is gone",
    "ALTER TABLE subjects_subject DROP COLUMN name CASCADE": "column subjects_subject.name is gone",
    "ALTER TABLE subjects_subject RENAME COLUMN name TO title": "column subjects_subject.name is gone",
    "ALTER TABLE notifications_jobrun ALTER task TYPE varchar(99)": "column notifications_jobrun.task was character varying(200) and is character varying(99)",
    "ALTER TABLE notifications_webhook ALTER rotated_at SET NOT NULL": "column notifications_webhook.rotated_at must have a value",
    "ALTER TABLE subjects_subject ALTER created_at DROP NOT NULL": "column subjects_subject.created_at can be without a value",
    "ALTER TABLE notifications_webhook ADD size int NOT NULL": "column notifications_webhook.size is new and must be given",
    "ALTER TABLE subjects_subject ADD CONSTRAINT short CHECK (length(name) < 99)": "constraint subjects_subject.short is new",
    "CREATE UNIQUE INDEX one ON subjects_subject (created_at)": "unique subjects_subject.btree created_at is new",
    "ALTER TABLE access_user DROP CONSTRAINT access_user_username_key": "unique access_user.btree username is gone",
    "CREATE TRIGGER more BEFORE INSERT ON subjects_subject FOR EACH ROW EXECUTE FUNCTION audit_row()": "trigger subjects_subject.more is new",
    "DROP TRIGGER audit ON access_apitoken; CREATE TRIGGER audit AFTER UPDATE OF name ON access_apitoken FOR EACH ROW EXECUTE FUNCTION audit_row('digest')": "trigger access_apitoken.audit is different",
    "ALTER FUNCTION subjects_keep_activity() RENAME TO other": "function subjects_keep_activity() is gone",
    "CREATE OR REPLACE FUNCTION subjects_keep_activity() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'": "function subjects_keep_activity() is different",
    "CREATE TABLE more (id bigint PRIMARY KEY, name text NOT NULL UNIQUE CHECK (name <> ''))": "",
    "ALTER TABLE subjects_subject ADD kind text, ADD size bigint NOT NULL DEFAULT 0": "",
    "CREATE INDEX plain ON subjects_subject (created_at)": "",
    "ALTER TABLE notifications_jobrun ALTER task TYPE varchar(300)": "",
    MORE_AUDITED: "",
}
WORDS = "ALTER TABLE subjects_versionstanding DROP CONSTRAINT known_standing, ADD CONSTRAINT known_standing CHECK (standing IN ({}))"
CHANGES |= {
    WORDS.format("'deprecated', 'retired', 'quarantined', 'paused'"): "",
    WORDS.format(
        "'deprecated', 'retired'"
    ): "constraint subjects_versionstanding.known_standing lost the words quarantined",
    WORDS.format(
        "'deprecated'"
    ): "constraint subjects_versionstanding.known_standing lost the words quarantined, retired",
    WORDS.replace("IN (", "NOT IN (").format(
        "'deprecated', 'retired', 'quarantined'"
    ): "constraint subjects_versionstanding.known_standing is different",
}


@pytest.fixture(scope="module")
def released() -> Iterator[psycopg.Connection]:
    """The last release's database, with its rows."""
    with new_database(RECORDED) as variables, psycopg.connect(variables["DATABASE_OWNER_URL"]) as owner:
        yield owner


@pytest.fixture(scope="module")
def last(released: psycopg.Connection) -> Definitions:
    found = definitions(released)
    released.commit()
    return found


@pytest.fixture
def migrated(db: None) -> Iterator[psycopg.Connection]:
    """The database of this release, as the owner; what is done in it is undone."""
    url = make_conninfo(os.environ["DATABASE_OWNER_URL"], dbname=connection.settings_dict["NAME"])
    with psycopg.connect(url) as owner:
        yield owner
        owner.rollback()


def test_the_last_release_works_on_these_tables(last: Definitions, migrated: psycopg.Connection) -> None:
    found, listed = set(differences(last, definitions(migrated))), exceptions()
    assert found - listed.keys() == set(), "see docs/how-to/release.md: expand, then contract"
    assert listed.keys() - found == set(), "these aren't differences any more: remove them from exceptions.yaml"
    assert all(len(str(reason).split()) > 3 for reason in listed.values()), "each has a reason"


def test_what_the_last_release_relies_on_is_recorded(last: Definitions) -> None:
    for kind, least in {"column": 600, "constraint": 100, "unique": 80, "trigger": 80, "function": 20}.items():
        assert sum(key[0] == kind for key in last) >= least, kind


@pytest.mark.parametrize("change", CHANGES)
def test_each_kind_of_change_is_judged(last: Definitions, released: psycopg.Connection, change: str) -> None:
    try:
        released.execute(change)
        found = list(differences(last, definitions(released)))
    finally:
        released.rollback()
    assert CHANGES[change] in found if CHANGES[change] else found == []


def test_rows_as_the_last_release_writes_them_are_accepted(migrated: psycopg.Connection) -> None:
    if connection.pg_version < 150_000:
        pytest.skip("the owner can't write without triggers")
    rows = re.findall(r"^INSERT INTO public\.(\w+) .*?\);$", RECORDED, re.M | re.S)
    statements = re.findall(r"^INSERT INTO public\.\w+ .*?\);$", RECORDED, re.M | re.S)
    migrated.execute("SET LOCAL session_replication_role = replica")  # foreign keys and triggers come with the last row
    for table, statement in zip(rows, statements, strict=True):
        if table not in KEPT:
            migrated.execute(statement.encode())
    assert len(set(rows) - KEPT) > 30, "what the release writes"
