"""Adds to another busy table, in a transaction of its own."""

from django.db import migrations


class Migration(migrations.Migration):
    """A column with a default, and a table."""

    dependencies = [("next_release", "0001_versions")]
    operations = [
        migrations.RunSQL("ALTER TABLE subjects_subject ADD next_size bigint NOT NULL DEFAULT 0"),
        migrations.RunSQL(
            "CREATE TABLE next_table (id bigint PRIMARY KEY, subject bigint REFERENCES subjects_subject)"
        ),
    ]
