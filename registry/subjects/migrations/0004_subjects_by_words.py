"""A word of a subject's name is found by an index: a registry of 100,000 names was read whole for it."""

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

#: as `icontains` asks; Django has no such index without its app for PostgreSQL, which asks each new connection for types
BY_TRIGRAMS = "CREATE INDEX subjects_by_trigrams ON subjects_subject USING gin (upper(name::text) gin_trgm_ops)"


class Migration(migrations.Migration):
    """The index of the names' trigrams."""

    dependencies = [("subjects", "0003_format_of_subjects")]

    operations = [TrigramExtension(), migrations.RunSQL(BY_TRIGRAMS, "DROP INDEX subjects_by_trigrams")]
