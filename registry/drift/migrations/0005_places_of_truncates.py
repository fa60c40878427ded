"""The evidence of a truncate named its partitions apart from all other findings; each reader takes them by one name."""

from django.db import migrations

MOVE = """
UPDATE drift_finding SET evidence = (evidence - 'truncates') || jsonb_build_object(
    'topic_partitions', evidence->'partitions', 'partitions', coalesce(evidence->'truncates', '[]'))
WHERE rule = 'TRUNCATE_OUT_OF_ORDER' AND jsonb_typeof(evidence->'partitions') = 'number'
"""


class Migration(migrations.Migration):
    """Of the findings that are kept; there is nothing to take back."""

    dependencies = [("drift", "0004_least_versions")]

    operations = [migrations.RunSQL(MOVE, migrations.RunSQL.noop)]
