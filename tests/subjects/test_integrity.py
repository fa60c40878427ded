"""Constraints and indexes that the database keeps whatever the code does, single interleavings, and the retry after a deadlock."""

from __future__ import annotations

import time

import pytest
from django.apps import apps
from django.db import IntegrityError, OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, ForeignKeyViolation, SerializationFailure, UndefinedTable

from registry.access.roles import Actor
from registry.errors import OperationNotPermitted
from registry.subjects.models import Context, Registry, Schema, SchemaVersion, Subject
from registry.subjects.models.triggers import INVARIANTS
from registry.subjects.registration.locks import RETRIES, lock_policy, retried, retry_deadlocks
from registry.subjects.selectors import get_version
from registry.subjects.services import register_version, set_config, set_mode
from registry.subjects.versions.qualified_names import SubjectName
from tests.subjects.client_process import Call
from tests.subjects.races import Clients
from tests.waiting import until

INSERT = (
    "INSERT INTO subjects_association (registry_id, guid, resource_namespace, resource_name, resource_id, resource_type,"
    " association_type, lifecycle, subject_id, created_at, updated_at)"
    " VALUES (900001, gen_random_uuid(), '{}', '{}', '{}', 'topic', 'value', '{}', {}, now(), now())"
)
STATUS = (
    "INSERT INTO subjects_versionstanding (version_id, standing, message, decided_by, decided_at)"
    " VALUES (900041, '{}', '{}', 'me', now())"
)
NOTE = (
    "INSERT INTO subjects_subjectnote (subject_id, tags, doc, updated_at, updated_by)"
    " VALUES (900021, {}, {}, now(), 'me')"
)
CLIENT = (
    "INSERT INTO subjects_client (subject_id, name, reads, writes, version, fields, contact, declared_at, declared_by, seen_at)"
    " SELECT 900021, 'billing', {}, false, {}, {}, '', now(), 'me', now() FROM generate_series(1, {})"
)
COPY = (
    "INSERT INTO subjects_keptcopy (registry_id, kind, name, versions, content, made_at, made_by, until)"
    " VALUES ({}, '{}', '{}', 1, '', now(), 'me', now() + interval '{} days')"
)
TERM = "INSERT INTO subjects_businessterm (name, doc, owner, updated_at, updated_by) VALUES ('{}', {}, '', now(), 'me')"
MEANS = "INSERT INTO subjects_fieldterm (term_id, subject_id, path) VALUES ({}, {}, 'id')"
#: constraint → the statement that it refuses; there are: registries 900001 and 900002, context 900011, subject 900021,
#: schemas 900031 (plain) and 900032 (refers to version 900041), versions 900041 and 900042, a reference, a config and a
#: mode of subject "orders", of its context and of its registry, and
#: association 900051 of that subject, and term 900061 of its field "id". The sequences are far from these ids.
REFUSED = {
    "one_registry": "UPDATE subjects_registry SET name = 'other' WHERE id = 900001",
    "remote_registry_has_url": "UPDATE subjects_registry SET kind = 'remote' WHERE id = 900001",
    "registry_has_name": "UPDATE subjects_registry SET name = '' WHERE id = 900001",
    "failing_since_its_error": "UPDATE subjects_registry SET sync_error = 'no answer' WHERE id = 900001",
    "one_context": "INSERT INTO subjects_context (registry_id, name, next_schema_id, created_at) VALUES (900001, '.', 1, now())",
    "context_begins_with_dot": "UPDATE subjects_context SET name = 'lab' WHERE id = 900011",
    "schema_ids_from_one": "UPDATE subjects_context SET next_schema_id = 0 WHERE id = 900011",
    "one_subject": "INSERT INTO subjects_subject (context_id, name, created_at) VALUES (900011, 'orders', now())",
    "one_config_a_scope": "INSERT INTO subjects_config (registry_id, context_id, subject_name) VALUES (900001, 900011, 'orders')",
    "config_of_a_subject_has_a_context": "INSERT INTO subjects_config (registry_id, subject_name) VALUES (900001, 'x')",
    "known_level": "UPDATE subjects_config SET compatibility_level = 'SIDEWAYS'",
    "known_profile": "UPDATE subjects_config SET profile = 'hopeful'",
    "known_policy": "UPDATE subjects_config SET policy = 'none_at_all'",
    "one_mode_a_scope": "INSERT INTO subjects_mode (registry_id, context_id, subject_name, mode)"
    " VALUES (900001, 900011, 'orders', 'READONLY')",
    "mode_of_a_subject_has_a_context": "INSERT INTO subjects_mode (registry_id, subject_name, mode)"
    " VALUES (900001, 'x', 'READONLY')",
    "known_mode": "UPDATE subjects_mode SET mode = 'OPEN'",
    "forward_is_of_a_registry": "UPDATE subjects_mode SET mode = 'FORWARD' WHERE context_id = 900011",
    "one_schema_id": "UPDATE subjects_schema SET schema_id = 1 WHERE id = 900032",
    "one_id_a_definition": "UPDATE subjects_schema SET identity = (SELECT identity FROM subjects_schema WHERE id = 900031)"
    " WHERE id = 900032",
    "schema_type_is_a_name": "UPDATE subjects_schema SET schema_type = 'an xsd' WHERE id = 900031",
    "schema_id_from_one": "UPDATE subjects_schema SET schema_id = 0 WHERE id = 900031",
    "one_version": "UPDATE subjects_schemaversion SET version = 1 WHERE id = 900042",
    "one_live_version_a_schema": "UPDATE subjects_schemaversion SET schema_id = 900031 WHERE id = 900042",
    "versions_from_one": "UPDATE subjects_schemaversion SET version = 0 WHERE id = 900041",
    "one_association_a_resource_id": INSERT.format("lkc", "other", "id1", "STRONG", "900021"),
    "one_association_a_name": INSERT.format("lkc", "orders", "id2", "WEAK", "900021"),
    "one_owner_a_subject": INSERT.format("lkc", "other", "id2", "STRONG", "900021"),
    "known_lifecycle": INSERT.format("lkc", "other", "id2", "FIRM", "900021"),
    "known_association_type": "UPDATE subjects_association SET association_type = 'both' WHERE id = 900051",
    "association_has_resource_id": "UPDATE subjects_association SET resource_id = '' WHERE id = 900051",
    "one_reference_a_position": "INSERT INTO subjects_schemareference (schema_id, position, name, subject_name, target_id)"
    " VALUES (900032, 0, 'Order', 'orders', 900041)",
    "known_standing": STATUS.format("trusted", "use v2"),
    "standing_says_why": STATUS.format("deprecated", ""),
    "note_has_few_tags": NOTE.format("(SELECT array_agg('t' || n) FROM generate_series(10, 42) n)", "''"),
    "note_is_short": NOTE.format("'{}'", "repeat('a', 20001)"),
    "note_says_something": NOTE.format("'{}'", "''"),
    "one_term_of_a_name": TERM.format("ORDER", "'an order'"),
    "term_has_a_meaning": TERM.format("Basket", "''"),
    "term_is_short": TERM.format("Basket", "repeat('a', 4001)"),
    "one_term_a_field": MEANS.format(900061, 900021),
    "one_client_of_a_name": CLIENT.format("true", "1", "'{}'", 2),
    "client_reads_or_writes": CLIENT.format("false", "1", "'{}'", 1),
    "client_version_counts_from_one": CLIENT.format("true", "0", "'{}'", 1),
    "known_kind_of_copy": COPY.format(900001, "lost", "orders", 1),
    "copy_has_a_name": COPY.format(900001, "deleted", "", 1),
    "copy_is_kept_for_a_while": COPY.format(900001, "deleted", "orders", 0),
    "client_has_few_fields": CLIENT.format("true", "1", "array_fill('x'::varchar, ARRAY[201])", 1),
}
#: the same for scopes that have nulls, which SQL takes for different unless told otherwise
REFUSED_NULLS = [
    "INSERT INTO subjects_config (registry_id) VALUES (900001)",
    "INSERT INTO subjects_config (registry_id, context_id) VALUES (900001, 900011)",
    "INSERT INTO subjects_mode (registry_id, mode) VALUES (900001, 'READONLY')",
    "INSERT INTO subjects_mode (registry_id, context_id, mode) VALUES (900001, 900011, 'READONLY')",
]
#: what would leave a row that points to nothing: column → statement
DANGLING = {
    "context.registry": "UPDATE subjects_context SET registry_id = 0 WHERE id = 900011",
    "subject.context": "UPDATE subjects_subject SET context_id = 0 WHERE id = 900021",
    "schema.context": "UPDATE subjects_schema SET context_id = 0 WHERE id = 900031",
    "schemaversion.subject": "UPDATE subjects_schemaversion SET subject_id = 0 WHERE id = 900041",
    "schemaversion.schema": "UPDATE subjects_schemaversion SET schema_id = 0 WHERE id = 900041",
    "schemareference.schema": "UPDATE subjects_schemareference SET schema_id = 0",
    "schemareference.target": "DELETE FROM subjects_schemaversion WHERE id = 900041",
    "config.registry": "UPDATE subjects_config SET registry_id = 0 WHERE context_id IS NULL",
    "config.context": "UPDATE subjects_config SET context_id = 0 WHERE context_id IS NOT NULL",
    "mode.registry": "UPDATE subjects_mode SET registry_id = 0 WHERE context_id IS NULL",
    "mode.context": "UPDATE subjects_mode SET context_id = 0 WHERE context_id IS NOT NULL",
    "association.registry": "UPDATE subjects_association SET registry_id = 0",
    "association.subject": "UPDATE subjects_association SET subject_id = 0",
    "subjectnote.subject": NOTE.replace("900021", "0").format("'{pii}'", "''"),
    "fieldterm.term": MEANS.replace("'id'", "'no'").format(0, 900021),
    "fieldterm.subject": MEANS.format(900061, 0),
    "client.subject": CLIENT.replace("900021", "0").format("true", "1", "'{}'", 1),
    "keptcopy.registry": COPY.format(0, "deleted", "orders", 1),
    "versionstanding.version": STATUS.replace("900041", "0").format("retired", "gone"),
}


#: what a trigger refuses: invariant → statement; there are also context 900012 of registry 900002 with schema 900033
INVARIANT = {
    "schema_id_below_counter": "UPDATE subjects_schema SET schema_id = 3 WHERE id = 900032",
    "schema_ids_given_once": "UPDATE subjects_context SET next_schema_id = 2 WHERE id = 900011",
    "version_in_its_schemas_context": "UPDATE subjects_schemaversion SET schema_id = 900033 WHERE id = 900042",
    "subject_stays_in_context": "UPDATE subjects_subject SET context_id = 900012 WHERE id = 900021",
    "schema_stays_in_context": "UPDATE subjects_schema SET context_id = 900012, schema_id = 1, identity = 'z' WHERE id = 900031",
    "context_stays_in_registry": "UPDATE subjects_context SET registry_id = 900002, name = '.x' WHERE id = 900011",
    "config_in_its_contexts_registry": "INSERT INTO subjects_config (registry_id, context_id) VALUES (900001, 900012)",
    "mode_in_its_contexts_registry": "UPDATE subjects_mode SET context_id = 900012 WHERE subject_name = 'orders'",
    "association_in_its_subjects_registry": "UPDATE subjects_association SET registry_id = 900002 WHERE id = 900051",
    "note_tags_are_words_in_order": NOTE.format("'{b,a}'", "''"),
}
#: the other ways in which a note's tags may be wrong
WRONG_TAGS = ["{a,a}", '{"a b"}', '{""}', "{é}", "{_a}", "{NULL}", "{{a,b}}", "{<b>}", '{"a\n"}']


@pytest.fixture
def rows(db: None) -> None:
    """The rows that REFUSED names."""
    for pk, name in ((900001, "main"), (900002, "other")):
        Registry.objects.create(pk=pk, project="p", location="l", name=name)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO subjects_context (id, registry_id, name, next_schema_id, created_at) VALUES (900011, 900001, '.', 3, now());
            INSERT INTO subjects_context (id, registry_id, name, next_schema_id, created_at) VALUES (900012, 900002, '.', 3, now());
            INSERT INTO subjects_schema (id, context_id, schema_id, schema_type, canonical, identity, fingerprint, guid,
                                         imported, created_at)
                 VALUES (900033, 900012, 2, 'AVRO', '"int"', 'c', 'c', gen_random_uuid(), false, now());
            INSERT INTO subjects_subject (id, context_id, name, created_at) VALUES (900021, 900011, 'orders', now());
            INSERT INTO subjects_schema (id, context_id, schema_id, schema_type, canonical, identity, fingerprint, guid,
                                         imported, created_at)
                 VALUES (900031, 900011, 1, 'AVRO', '"int"', 'a', 'a', gen_random_uuid(), false, now()),
                        (900032, 900011, 2, 'AVRO', '"long"', 'b', 'b', gen_random_uuid(), false, now());
            INSERT INTO subjects_schemaversion (id, subject_id, version, schema_id, submitted, created_at, created_by, door)
                 VALUES (900041, 900021, 1, 900031, '"int"', now(), 'me', 'ui'), (900042, 900021, 2, 900032, '"long"', now(), 'me', 'ui');
            INSERT INTO subjects_schemareference (schema_id, position, name, subject_name, target_id)
                 VALUES (900032, 0, 'Order', 'orders', 900041);
            INSERT INTO subjects_association (id, registry_id, guid, resource_namespace, resource_name, resource_id,
                                              resource_type, association_type, lifecycle, subject_id, created_at, updated_at)
                 VALUES (900051, 900001, gen_random_uuid(), 'lkc', 'orders', 'id1', 'topic', 'value', 'STRONG', 900021, now(), now());
            INSERT INTO subjects_config (registry_id, context_id, subject_name)
                 VALUES (900001, 900011, 'orders'), (900001, 900011, null), (900001, null, null);
            INSERT INTO subjects_mode (registry_id, context_id, subject_name, mode)
                 VALUES (900001, 900011, 'orders', 'READWRITE'), (900001, 900011, null, 'READWRITE'), (900001, null, null, 'READWRITE');
            INSERT INTO subjects_businessterm (id, name, doc, owner, updated_at, updated_by)
                 VALUES (900061, 'Order', 'what a customer buys', '', now(), 'me');
            INSERT INTO subjects_fieldterm (term_id, subject_id, path) VALUES (900061, 900021, 'id');
            """
        )
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def refusal(statement: str) -> tuple[str, str]:
    """The table and the constraint that refuse a statement; empty where none does."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    except IntegrityError as error:
        found = error.__cause__.diag
        return found.table_name, found.constraint_name
    return "", ""


@pytest.mark.requirement("CARD-1")
@pytest.mark.parametrize("constraint", REFUSED)
def test_a_constraint_refuses_its_violation(rows: None, constraint: str) -> None:
    assert refusal(REFUSED[constraint])[1] == constraint


@pytest.mark.requirement("CARD-1")
@pytest.mark.parametrize("statement", REFUSED_NULLS)
def test_a_scope_without_context_or_subject_is_one_scope_too(rows: None, statement: str) -> None:
    assert refusal(statement)[1] in {"one_config_a_scope", "one_mode_a_scope"}


@pytest.mark.requirement("CARD-1")
@pytest.mark.parametrize("column", DANGLING)
def test_nothing_points_to_nothing(rows: None, column: str) -> None:
    model, _, name = column.partition(".")
    table, constraint = refusal(DANGLING[column])
    assert table == f"subjects_{model}"
    assert f"_{name}_id_" in constraint


@pytest.mark.requirement("CARD-1")
@pytest.mark.parametrize("invariant", INVARIANT)
def test_a_trigger_refuses_its_violation(rows: None, invariant: str) -> None:
    assert refusal(INVARIANT[invariant])[1] == invariant


@pytest.mark.requirement("CARD-1")
@pytest.mark.parametrize("tags", WRONG_TAGS)
def test_tags_of_a_note_are_words_each_once_and_in_order(rows: None, tags: str) -> None:
    assert refusal(NOTE.format(f"'{tags}'", "''"))[1] == "note_tags_are_words_in_order"


def test_every_invariant_has_its_case() -> None:
    assert [rule.name for rule in INVARIANTS] == list(INVARIANT)


def test_every_constraint_has_its_case(db: None) -> None:
    models = list(apps.get_app_config("subjects").get_models())
    assert {constraint.name for model in models for constraint in model._meta.constraints} == REFUSED.keys()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT conrelid::regclass || '.' || regexp_replace(attname, '_id$', '')
              FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY(conkey)
             WHERE contype = 'f' AND conrelid::regclass::text = ANY(%s)
            """,
            [[model._meta.db_table for model in models]],
        )
        assert {name for (name,) in cursor.fetchall()} == {f"subjects_{name}" for name in DANGLING}


def test_a_soft_deleted_version_leaves_room_for_its_schema(rows: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subjects_schemaversion SET deleted_at = now() WHERE id = 900041")
        cursor.execute("UPDATE subjects_schemaversion SET schema_id = 900031 WHERE id = 900042")
    assert SchemaVersion.objects.filter(schema=900031).count() == 2


def test_an_import_may_bring_a_second_id_for_a_definition(rows: None) -> None:
    Schema.objects.filter(pk=900032).update(identity="a", imported=True)
    assert Schema.objects.filter(identity="a").count() == 2


def test_the_application_role_writes_these_tables_and_owns_none(rows: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableowner = current_user FROM pg_tables WHERE tablename LIKE 'subjects_%'")
        assert {owned for (owned,) in cursor.fetchall()} == {False}


@pytest.mark.requirement("CARD-1")
def test_what_the_services_write_is_where_the_tables_are_read(registries: None, system: Actor) -> None:
    """Plain SQL, as somebody with a database client would look."""
    subject = SubjectName(".lab", "orders")
    text = '{"type":"record","name":"Order","fields":[]}'
    register_version(registry="dev", subject=subject, text=text, by=system)
    set_config(registry="dev", subject=subject, level="FULL", by=system)
    set_mode(registry="dev", subject=subject, mode="READONLY", by=system)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT r.name, c.name, s.name, v.version, d.schema_id, d.canonical, v.submitted, v.created_by, v.door,
                   k.compatibility_level, m.mode
              FROM subjects_registry r JOIN subjects_context c ON c.registry_id = r.id
              JOIN subjects_subject s ON s.context_id = c.id JOIN subjects_schemaversion v ON v.subject_id = s.id
              JOIN subjects_schema d ON d.id = v.schema_id AND d.context_id = c.id
              JOIN subjects_config k ON k.context_id = c.id AND k.subject_name = s.name
              JOIN subjects_mode m ON m.context_id = c.id AND m.subject_name = s.name
            """
        )
        row = ("dev", ".lab", "orders", 1, 1, text, text, "tests", "command", "FULL", "READONLY")
        assert cursor.fetchall() == [row]
    assert Registry.objects.count() == 3


PLAIN = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
UNSORTED = '{"type":"record","name":"Order","fields":[{"name":"key","type":"long"}],"z":1,"a":2}'
SORTED = '{"type":"record","name":"Order","fields":[{"name":"key","type":"long"}],"a":2,"z":1}'
ORDERS = SubjectName(".", "orders")


def wait_for_a_waiter() -> None:
    """Until another connection waits for a lock of ours."""

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            return cursor.fetchone() != (0,)

    until(waits)


@pytest.mark.requirement("GOO-3")
def test_a_registration_sees_all_of_a_config_or_nothing(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    """It began before the change and waits for it: not taken under the new level in the old form."""
    register_version(registry="dev", subject=ORDERS, text=PLAIN, by=system)
    with transaction.atomic():
        set_config(registry="dev", subject=ORDERS, level="NONE", normalize=True, by=system)
        clients.begin([[Call("register_version", {"registry": "dev", "subject": ORDERS, "text": UNSORTED})]])
        wait_for_a_waiter()
    (outcome,) = clients.outcomes()
    assert (outcome.error, outcome.value.version) == ("", 2)
    assert get_version(Registry.objects.get(name="dev"), ORDERS, 2).schema.text == SORTED


@pytest.mark.requirement("GOO-1")
def test_a_registration_that_is_undone_leaves_the_id_to_the_one_that_waits(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    class Undo(Exception):
        pass

    with pytest.raises(Undo), transaction.atomic():
        register_version(registry="dev", subject=ORDERS, text=PLAIN, by=system)
        other = SubjectName(".", "other")
        clients.begin([[Call("register_version", {"registry": "dev", "subject": other, "text": PLAIN})]])
        wait_for_a_waiter()
        raise Undo
    (outcome,) = clients.outcomes()
    assert (outcome.value.version, outcome.value.schema_id) == (1, 1)
    assert Schema.objects.count() == 1


@pytest.mark.requirement("GOO-6")
def test_a_permanent_deletion_waits_for_registrations_and_soft_ones_do_not(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    """It changes settings and takes schemas away, so nobody may be half-way through using them."""
    for name in ("orders", "other"):
        register_version(registry="dev", subject=SubjectName(".", name), text=PLAIN, by=system)
    other = {"registry": "dev", "subject": SubjectName(".", "other")}
    with transaction.atomic():
        lock_policy(Registry.objects.get(name="dev"))
        clients.begin([[Call("delete_subject", other), Call("delete_subject", {**other, "permanent": True})]])
        wait_for_a_waiter()
        began = time.monotonic()
    soft, permanent = clients.outcomes()
    assert soft.value == permanent.value == [1]
    assert soft.ended < began < permanent.ended


@pytest.mark.requirement("GOO-6")
def test_a_registration_makes_a_context_that_is_deleted_meanwhile_again(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    dev = Registry.objects.get(name="dev")
    Context.objects.create(registry=dev, name=".c")
    with transaction.atomic():
        lock_policy(dev, exclusive=True)
        Context.objects.filter(name=".c").delete()
        new = SubjectName(".c", "orders")
        clients.begin([[Call("register_version", {"registry": "dev", "subject": new, "text": PLAIN})]])
        wait_for_a_waiter()
    (outcome,) = clients.outcomes()
    assert (outcome.value.version, outcome.value.schema_id) == (1, 1)


@pytest.mark.requirement("GOO-6")
def test_a_registration_survives_an_import_that_replaces_the_last_version_with_its_schema(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    """The registration knows the schema, and needs no id; the import takes the schema away before it is used."""
    register_version(registry="dev", subject=ORDERS, text=PLAIN, by=system)
    with transaction.atomic():
        lock_policy(Registry.objects.get(name="dev"))
        schema = Schema.objects.select_for_update().get()
        SchemaVersion.objects.all().delete()
        schema.delete()
        other = SubjectName(".", "other")
        clients.begin([[Call("register_version", {"registry": "dev", "subject": other, "text": PLAIN})]])
        time.sleep(1)
    (outcome,) = clients.outcomes()
    assert outcome.value.version == 1
    assert Schema.objects.count() == SchemaVersion.objects.count() == 1


@pytest.mark.requirement("CARD-1")
def test_a_context_without_a_next_id_says_so(db: None, registries: None, system: Actor) -> None:
    dev = Registry.objects.get(name="dev")
    set_mode(registry="dev", subject=SubjectName(".", "imported"), mode="IMPORT", by=system)
    imported = register_version(
        registry="dev", subject=SubjectName(".", "imported"), text=PLAIN, schema_id=2**31 - 2, version=1, by=system
    )
    assert imported.schema_id == 2**31 - 2
    assert Context.objects.get(registry=dev, name=".").next_schema_id == 2**31 - 1
    with pytest.raises(OperationNotPermitted, match="no next schema id"):
        register_version(registry="dev", subject=ORDERS, text='"long"', by=system)
    assert register_version(registry="dev", subject=ORDERS, text=PLAIN, by=system).schema_id == 2**31 - 2


def broken_by(cause: type[Exception], times: int) -> tuple[list[int], object]:
    """A service that the database refuses a few times, and the list of its calls."""
    calls: list[int] = []

    def service() -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise OperationalError from cause("broken")
        return "done"

    return calls, service


@pytest.mark.parametrize("cause", [DeadlockDetected, SerializationFailure, ForeignKeyViolation])
@pytest.mark.parametrize("wrap", [retried, retry_deadlocks])
def test_a_service_is_tried_again_after_a_deadlock(transactional_db: None, cause: type[Exception], wrap) -> None:
    calls, service = broken_by(cause, RETRIES)
    assert wrap(service)() == "done"
    assert len(calls) == RETRIES + 1
    calls, service = broken_by(cause, RETRIES + 1)
    with pytest.raises(OperationalError):
        wrap(service)()
    assert len(calls) == RETRIES + 1


def test_other_failures_are_reported_at_once(transactional_db: None) -> None:
    calls, service = broken_by(UndefinedTable, 1)
    with pytest.raises(OperationalError):
        retried(service)()
    assert len(calls) == 1


def test_inside_a_transaction_it_is_for_the_outermost_to_try_again(transactional_db: None) -> None:
    """The whole transaction is lost with a deadlock, not only the service's part."""
    calls, service = broken_by(DeadlockDetected, 1)
    with pytest.raises(OperationalError), transaction.atomic():
        retried(service)()
    assert len(calls) == 1

    @retried
    def outermost() -> str:
        return retried(service)()

    calls.clear()
    assert outermost() == "done"
    assert len(calls) == 2


@pytest.mark.requirement("CARD-4")
@pytest.mark.django_db
def test_a_word_is_found_by_its_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan TO off")
        cursor.execute("SET LOCAL enable_indexscan TO off")
    plan = Subject.objects.filter(name__icontains="Customer").order_by().explain()
    assert "subjects_by_trigrams" in plan
