"""Every change leaves a trace that the application can't touch."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import ProgrammingError, connection, transaction

from registry.access.roles import Actor
from registry.audit.context import record
from registry.audit.models import AuditEvent
from registry.subjects.models import Config, Registry
from registry.subjects.services import set_config

#: tables of the packages that we use, which say who may what
GOVERNED_BESIDES = {"auth_group", "access_user_groups", "socialaccount_socialaccount"}
#: what is bookkeeping, or governed by the row it hangs on
NOT_GOVERNED = {
    "audit_auditevent",
    "audit_chainhead",
    "drift_scan",
    "drift_topic",
    "drift_schemause",
    "drift_fieldstatistic",
    "drift_findingrange",
    # what scans read from checkpoints' files, which keep it themselves
    "streams_streamquery",
    "streams_queryinput",
    "streams_statevariable",
    "streams_stateschema",
    "streams_carriedversion",
    # what listeners report of running queries
    "streams_queryrun",
    "streams_progresspoint",
    # what was told, and what became of it: no change of anything
    "notifications_notice",
    "notifications_inboxentry",
    "notifications_delivery",
    "notifications_attempt",
    "notifications_digest",
    "notifications_jobrun",
    # worked out from the rest; and what is its author's alone until it is proposed
    "promotions_promotionoutlook",
    "promotions_boardsubject",
    "promotions_boardchange",
    "promotions_boardstate",
    "promotions_draft",
    "subjects_subjectactivity",
    # the index of the search, which follows what is registered
    "search_indexedfield",
    "search_indexedsubject",
    "search_searchterm",
    "search_stalesubject",
    "search_teamfigure",
}


def test_who_channel_and_why_are_beside_before_and_after(registries: None, system: Actor) -> None:
    set_config(registry="dev", subject=None, level="FULL", by=system)
    set_config(registry="dev", subject=None, level="NONE", by=system)
    event = AuditEvent.objects.filter(table="subjects_config").first()
    assert event is not None
    assert (event.actor, event.channel, event.operation) == ("tests", "command", "UPDATE")
    assert "dev" in event.why
    assert event.before["compatibility_level"] == "FULL"
    assert event.after["compatibility_level"] == "NONE"


def test_bulk_updates_and_raw_sql_do_not_slip_by(registries: None, system: Actor) -> None:
    set_config(registry="dev", subject=None, level="FULL", by=system)
    count = AuditEvent.objects.count()
    Config.objects.all().update(compatibility_level="NONE")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subjects_config SET compatibility_level = 'FULL'")
        cursor.execute("DELETE FROM subjects_config")
    assert AuditEvent.objects.count() == count + 3


def test_a_change_without_record_names_the_database_role(registries: None) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('schemadesk.actor', '', true)")
    Registry.objects.filter(name="dev").update(location="elsewhere")
    event = AuditEvent.objects.first()
    assert event is not None
    assert event.actor.startswith("database role ")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_auditevent SET actor = 'nobody'",
        "DELETE FROM audit_auditevent",
        "TRUNCATE audit_auditevent",
        'INSERT INTO audit_auditevent (at, transaction_id, actor, door, why, operation, "table", row_id)'
        " VALUES (now(), 1, 'x', 'x', '', 'INSERT', 'x', '1')",
        "DROP TRIGGER audit ON subjects_config",
        "ALTER TABLE subjects_config DISABLE TRIGGER audit",
    ],
)
def test_the_applications_role_cannot_touch_it(registries: None, statement: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"), transaction.atomic():
        connection.cursor().execute(statement)


def test_secrets_stay_out(person, system: Actor) -> None:
    from registry.access.services import issue_token

    person("steward")
    token = issue_token(username="steward", name="ci", by=system)
    written = str(list(AuditEvent.objects.values_list("before", "after")))
    assert token not in written
    assert "(hidden)" in written
    assert "md5$" not in written


def test_every_table_of_ours_is_governed(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT event_object_table FROM information_schema.triggers WHERE trigger_name = 'audit'")
        under_audit = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'audit'")
        under_audit |= {name for (name,) in cursor.fetchall()}
    ours = {model._meta.db_table for model in apps.get_models() if model.__module__.startswith("registry.")}
    assert (ours - NOT_GOVERNED) | GOVERNED_BESIDES == under_audit


def test_record_outside_a_transaction_is_a_mistake(system: Actor, transactional_db: None) -> None:
    with pytest.raises(transaction.TransactionManagementError):
        record(by=system, why="nothing")
