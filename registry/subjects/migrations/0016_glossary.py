"""The glossary of business terms, and the fields that they describe, under audit."""

import django.db.models.deletion
import django.db.models.functions.text
import django.db.models.lookups
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """The tables are read by pages and the product API alone, so no cached answer depends on them."""

    dependencies = [
        ("subjects", "0015_version_status"),
    ]

    operations = [
        migrations.CreateModel(
            name="BusinessTerm",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("doc", models.TextField()),
                (
                    "owner",
                    models.CharField(
                        blank=True, help_text="the person or team that decides its meaning", max_length=200
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("updated_by", models.TextField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(django.db.models.functions.text.Lower("name"), name="one_term_of_a_name"),
                    models.CheckConstraint(
                        condition=models.Q(models.Q(("name", ""), _negated=True), models.Q(("doc", ""), _negated=True)),
                        name="term_has_a_meaning",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.LessThanOrEqual(
                            django.db.models.functions.text.Length("doc"), 4000
                        ),
                        name="term_is_short",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FieldTerm",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=512)),
                (
                    "subject",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="field_terms",
                        to="subjects.subject",
                    ),
                ),
                (
                    "term",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="fields", to="subjects.businessterm"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("subject", "path"), name="one_term_a_field")],
            },
        ),
        # The database follows a deleted subject by itself: the last release doesn't know this table.
        migrations.RunSQL(
            "ALTER TABLE subjects_fieldterm ADD CONSTRAINT subjects_fieldterm_subject_id_fk FOREIGN KEY (subject_id)"
            " REFERENCES subjects_subject (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
            "ALTER TABLE subjects_fieldterm DROP CONSTRAINT subjects_fieldterm_subject_id_fk",
        ),
        audit_table("subjects_businessterm"),
        audit_table("subjects_fieldterm"),
    ]
