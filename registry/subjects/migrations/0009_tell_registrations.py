"""Registrations are told by the subjects that get a version; every other change as one that touches anything."""

from django.db import migrations

from registry.audit.triggers import TELL_FUNCTION, TELL_REGISTRATION_FUNCTION, announce_registrations, tell

#: tables that a registration adds rows to, and nothing else of a registration touches
GROWING = ("subjects_subject", "subjects_schema", "subjects_schemaversion", "subjects_schemareference")
#: what is updated of a context beside its counter
CONTEXT = ("id", "registry_id", "name", "created_at")


def without_tell_change(table: str) -> migrations.RunSQL:
    """The trigger of before goes."""
    back = tell(table)
    return migrations.RunSQL(back.reverse_sql, back.sql)


class Migration(migrations.Migration):
    """The functions and their triggers."""

    dependencies = [("subjects", "0008_formats_by_name"), ("audit", "0001_tables")]

    operations = [
        migrations.RunSQL(TELL_FUNCTION, migrations.RunSQL.noop),
        migrations.RunSQL(TELL_REGISTRATION_FUNCTION, "DROP FUNCTION IF EXISTS tell_registration()"),
        *(without_tell_change(table) for table in (*GROWING, "subjects_context")),
        *(tell(table, events="DELETE OR TRUNCATE") for table in GROWING),
        *(announce_registrations(table) for table in (*GROWING, "subjects_context")),
        tell("subjects_context", CONTEXT, events="DELETE OR TRUNCATE"),
        migrations.RunSQL(
            "CREATE TRIGGER tell_counter AFTER UPDATE OF next_schema_id ON subjects_context"
            " FOR EACH STATEMENT EXECUTE FUNCTION tell_registration()",
            "DROP TRIGGER IF EXISTS tell_counter ON subjects_context",
        ),
    ]
