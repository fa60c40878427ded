"""Rename the partitions in a truncate's evidence to the name that all other findings use."""

from django.db import migrations

MOVE = """
UPDATE drift_finding SET evidence = (evidence - 'truncates') || jsonb_build_object(
    'topic_partitions', evidence->'partitions', 'partitions', coalesce(evidence->'truncates', '[]'))
WHERE rule = 'TRUNCATE_OUT_OF_ORDER' AND jsonb_typeof(evidence->'partitions') = 'number'
"""


class Migration(migrations.Migration):
    """Update stored findings; nothing to reverse."""

    dependencies = [("drift", "0004_least_versions")]

    operations = [migrations.RunSQL(MOVE, migrations.RunSQL.noop)]
