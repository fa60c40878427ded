"""The index; versions and notes that change queue their subject, in the transaction of the change."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models

from registry.audit.triggers import CreateTables

FUNCTION = """
CREATE OR REPLACE FUNCTION search_mark_stale() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO search_stalesubject (subject_id)
    VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.subject_id ELSE NEW.subject_id END);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION search_mark_stale() FROM PUBLIC;
CREATE TRIGGER search_stale AFTER INSERT OR DELETE OR UPDATE OF deleted_at, schema_id, version
    ON subjects_schemaversion FOR EACH ROW EXECUTE FUNCTION search_mark_stale();
CREATE TRIGGER search_stale AFTER INSERT OR UPDATE OR DELETE
    ON subjects_subjectnote FOR EACH ROW EXECUTE FUNCTION search_mark_stale();
"""
BACK = """
DROP TRIGGER IF EXISTS search_stale ON subjects_subjectnote;
DROP TRIGGER IF EXISTS search_stale ON subjects_schemaversion;
DROP FUNCTION IF EXISTS search_mark_stale();
"""


class Migration(migrations.Migration):
    """What the queue holds is worked off by a task, in batches."""

    initial = True
    replaces = [
        ("search", "0001_initial"),
        ("search", "0002_stale"),
    ]
    dependencies = [("subjects", "0001_tables")]
    operations = [
        # trusted since PostgreSQL 13: who may create in the database may create it
        TrigramExtension(),
        CreateTables(
            migrations.CreateModel(
                name="StaleSubject",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("subject_id", models.BigIntegerField(db_index=True)),
                ],
            ),
            migrations.CreateModel(
                name="IndexedField",
                fields=[
                    (
                        "pk",
                        models.CompositePrimaryKey(
                            "subject_id", "position", blank=True, editable=False, primary_key=True, serialize=False
                        ),
                    ),
                    ("subject_id", models.BigIntegerField()),
                    ("position", models.PositiveSmallIntegerField()),
                    ("name_id", models.IntegerField()),
                    ("parent_id", models.IntegerField()),
                    ("type_id", models.IntegerField()),
                    ("doc_id", models.IntegerField(null=True)),
                    ("tags_id", models.IntegerField(null=True)),
                ],
                options={
                    "indexes": [
                        models.Index(
                            fields=["name_id", "subject_id", "position"],
                            include=("parent_id", "type_id", "doc_id", "tags_id"),
                            name="fields_by_name",
                        ),
                        models.Index(fields=["type_id", "subject_id", "position"], name="fields_by_type"),
                        models.Index(
                            condition=models.Q(("doc_id__isnull", False)),
                            fields=["doc_id", "subject_id", "position"],
                            name="fields_by_doc",
                        ),
                        models.Index(
                            condition=models.Q(("tags_id__isnull", False)),
                            fields=["tags_id", "subject_id", "position"],
                            name="fields_by_tags",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="IndexedSubject",
                fields=[
                    ("subject_id", models.BigIntegerField(primary_key=True, serialize=False)),
                    ("registry_id", models.BigIntegerField()),
                    ("context_id", models.BigIntegerField()),
                    ("name", models.CharField(db_collation="C", help_text="qualified", max_length=1300)),
                    ("schema_type", models.CharField(max_length=8)),
                    ("version", models.PositiveIntegerField()),
                    ("version_pk", models.BigIntegerField(help_text="of the version that the fields are of")),
                    ("field_count", models.PositiveIntegerField(default=0)),
                    ("problem", models.TextField(blank=True)),
                    ("doc", models.TextField(blank=True, help_text="of the schema's root and of the subject's note")),
                    ("tags", models.TextField(blank=True, help_text="of the subject's note, one a line")),
                    (
                        "folded_name",
                        models.TextField(help_text="the same without upper case, which is what is searched"),
                    ),
                    ("folded_doc", models.TextField(blank=True)),
                    ("folded_tags", models.TextField(blank=True)),
                    (
                        "folded_refs",
                        models.TextField(
                            blank=True, help_text="names and subjects of what the schema refers to, one a line"
                        ),
                    ),
                    ("noted_at", models.DateTimeField(help_text="of the note that was read", null=True)),
                    ("indexed_at", models.DateTimeField(auto_now=True)),
                ],
                options={
                    "indexes": [
                        models.Index(fields=["name", "subject_id"], include=("registry_id",), name="indexed_by_name"),
                        models.Index(
                            fields=["registry_id", "name"], include=("subject_id",), name="indexed_by_registry"
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            fields=["folded_name"], name="indexed_by_trigrams", opclasses=["gin_trgm_ops"]
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("folded_doc", ""), _negated=True),
                            fields=["folded_doc"],
                            name="indexed_by_doc",
                            opclasses=["gin_trgm_ops"],
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("folded_tags", ""), _negated=True),
                            fields=["folded_tags"],
                            name="indexed_by_tags",
                            opclasses=["gin_trgm_ops"],
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("folded_refs", ""), _negated=True),
                            fields=["folded_refs"],
                            name="indexed_by_refs",
                            opclasses=["gin_trgm_ops"],
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="SearchTerm",
                fields=[
                    ("id", models.AutoField(primary_key=True, serialize=False)),
                    ("kind", models.CharField(max_length=1)),
                    ("value", models.TextField()),
                    ("folded", models.TextField(help_text="the same without upper case, which is what is searched")),
                    ("digest", models.UUIDField(help_text="of the value, which may be longer than a key can be")),
                ],
                options={
                    "indexes": [
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("kind", "n")),
                            fields=["folded"],
                            name="search_names",
                            opclasses=["gin_trgm_ops"],
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("kind", "p")),
                            fields=["folded"],
                            name="search_parents",
                            opclasses=["gin_trgm_ops"],
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("kind", "t")),
                            fields=["folded"],
                            name="search_types",
                            opclasses=["gin_trgm_ops"],
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("kind", "d")),
                            fields=["folded"],
                            name="search_docs",
                            opclasses=["gin_trgm_ops"],
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            condition=models.Q(("kind", "g")),
                            fields=["folded"],
                            name="search_tags",
                            opclasses=["gin_trgm_ops"],
                        ),
                    ],
                    "constraints": [
                        models.UniqueConstraint(fields=("kind", "digest"), name="one_search_term"),
                        models.CheckConstraint(
                            condition=models.Q(("kind__in", ("n", "p", "t", "d", "g"))), name="known_kind_of_term"
                        ),
                    ],
                },
            ),
        ),
        migrations.RunSQL(FUNCTION, BACK),
    ]
