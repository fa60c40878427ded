"""Adds to a table that is read and written all the time."""

from django.db import migrations


class Migration(migrations.Migration):
    """A column without a value."""

    dependencies: list[tuple[str, str]] = []
    operations = [migrations.RunSQL("ALTER TABLE subjects_schemaversion ADD next_note text")]
