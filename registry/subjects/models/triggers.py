"""Invariants between rows, enforced by triggers, because no constraint of a single table can express them.

Each trigger looks up primary keys, once per written row. Triggers fire in the order of their names, so the foreign
keys' own ones fire first and report a missing row as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.migrations.operations import RunSQL


@dataclass(frozen=True)
class Invariant:
    """A condition on `NEW` (and `OLD`), checked after these events; errors have `name` as the constraint."""

    name: str
    table: str
    events: str
    holds: str
    message: str


INVARIANTS = (
    Invariant(
        "schema_id_below_counter",
        "subjects_schema",
        "INSERT OR UPDATE OF schema_id, context_id",
        "NEW.schema_id < (SELECT next_schema_id FROM subjects_context WHERE id = NEW.context_id)",
        "a schema has an id that its context has yet to give",
    ),
    Invariant(
        "schema_ids_given_once",
        "subjects_context",
        "UPDATE OF next_schema_id",
        "NEW.next_schema_id >= OLD.next_schema_id",
        "the counter of schema ids went back",
    ),
    Invariant(
        "version_in_its_schemas_context",
        "subjects_schemaversion",
        "INSERT OR UPDATE OF subject_id, schema_id",
        "(SELECT context_id FROM subjects_subject WHERE id = NEW.subject_id)"
        " = (SELECT context_id FROM subjects_schema WHERE id = NEW.schema_id)",
        "a version has a schema of another context",
    ),
    Invariant(
        "subject_stays_in_context",
        "subjects_subject",
        "UPDATE OF context_id",
        "NEW.context_id = OLD.context_id",
        "a subject went to another context",
    ),
    Invariant(
        "schema_stays_in_context",
        "subjects_schema",
        "UPDATE OF context_id",
        "NEW.context_id = OLD.context_id",
        "a schema went to another context",
    ),
    Invariant(
        "context_stays_in_registry",
        "subjects_context",
        "UPDATE OF registry_id",
        "NEW.registry_id = OLD.registry_id",
        "a context went to another registry",
    ),
    *(
        Invariant(
            f"{kind}_in_its_contexts_registry",
            f"subjects_{kind}",
            "INSERT OR UPDATE OF registry_id, context_id",
            "NEW.context_id IS NULL"
            " OR NEW.registry_id = (SELECT registry_id FROM subjects_context WHERE id = NEW.context_id)",
            f"a {kind} names a context of another registry",
        )
        for kind in ("config", "mode")
    ),
    Invariant(
        "association_in_its_subjects_registry",
        "subjects_association",
        "INSERT OR UPDATE OF registry_id, subject_id",
        "NEW.registry_id = (SELECT c.registry_id FROM subjects_subject s"
        " JOIN subjects_context c ON c.id = s.context_id WHERE s.id = NEW.subject_id)",
        "an association names a subject of another registry",
    ),
    Invariant(
        "note_tags_are_words_in_order",
        "subjects_subjectnote",
        "INSERT OR UPDATE OF tags",
        'NEW.tags::text[] = (SELECT coalesce(array_agg(DISTINCT t COLLATE "C"), ARRAY[]::text[])'
        " FROM unnest(NEW.tags::text[]) t WHERE t COLLATE \"C\" ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$')",
        "the tags of a note are no words, or not each once and in order",
    ),
)


def keep_invariants() -> Iterator[RunSQL]:
    """Yield the migration operations that create the triggers, one per condition."""
    for rule in INVARIANTS:
        create = f"""
            CREATE FUNCTION {rule.name}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
            BEGIN
                IF ({rule.holds}) IS NOT TRUE THEN
                    RAISE EXCEPTION '{rule.message} (%)', '{rule.name}'
                        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = '{rule.name}';
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER {rule.name} AFTER {rule.events} ON {rule.table}
                FOR EACH ROW EXECUTE FUNCTION {rule.name}();
        """
        yield RunSQL(create, f"DROP TRIGGER {rule.name} ON {rule.table}; DROP FUNCTION {rule.name}()")
