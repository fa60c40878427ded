"""Recurring freezes under audit, and the triggers that note which subjects of environments change for the board."""

from __future__ import annotations

from django.db import migrations
from django.db.migrations.operations import RunSQL

from registry.audit.triggers import govern

#: table → its function, and how a changed row leads to its version's subject
NOTED = {
    "subjects_schemaversion": ("promotions_note_versions", "JOIN subjects_subject s ON s.id = changed.subject_id"),
    "subjects_versionstanding": (
        "promotions_note_standings",
        "JOIN subjects_schemaversion v ON v.id = changed.version_id JOIN subjects_subject s ON s.id = v.subject_id",
    ),
}
#: event → the rows of the statement; an update doesn't move a row to another subject
EVENTS = {"insert": "NEW", "update": "NEW", "delete": "OLD"}


FUNCTION = """
CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO promotions_boardchange (context_name, subject_name)
    SELECT DISTINCT c.name, s.name
    FROM changed
    {way}
    JOIN subjects_context c ON c.id = s.context_id
    JOIN promotions_environment e ON e.registry_id = c.registry_id;
    RETURN NULL;
END $$"""


def note(table: str) -> list[RunSQL]:
    """The function and its triggers, once a statement: a bulk import is one row more a subject and batch."""
    function, way = NOTED[table]
    triggers = [
        RunSQL(
            f'CREATE TRIGGER note_{event} AFTER {event.upper()} ON "{table}" REFERENCING {rows} TABLE AS changed'
            f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
            f'DROP TRIGGER IF EXISTS note_{event} ON "{table}"',
        )
        for event, rows in EVENTS.items()
    ]
    return [RunSQL(FUNCTION.format(function=function, way=way), f"DROP FUNCTION IF EXISTS {function}()"), *triggers]


class Migration(migrations.Migration):
    """Audit of the new rules; triggers for the board."""

    dependencies = [
        ("promotions", "0006_recurring_freezes_and_board_marks"),
        ("subjects", "0008_audit_standing"),
        ("audit", "0002_audit"),
    ]
    operations = [
        govern("promotions_recurringfreeze"),
        *(operation for table in NOTED for operation in note(table)),
    ]
