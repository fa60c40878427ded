"""How far the chain of seals goes, in a row of its own: events missing at its end are noticed."""

from django.db import migrations, models

from registry.audit.hash_chain import SEAL_FUNCTION

RECORD = """
INSERT INTO audit_chainhead (id, position, seal, sealed_at)
    SELECT 1, position, seal, clock_timestamp() FROM audit_auditevent
    WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1
"""


class Migration(migrations.Migration):
    """How far the chain of seals goes, in a row of its own: events missing at its end are noticed."""

    dependencies = [("audit", "0004_arrivals")]
    operations = [
        migrations.CreateModel(
            name="ChainHead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.BigIntegerField()),
                ("seal", models.CharField(max_length=64)),
                ("sealed_at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("pk", 1)), name="one_head_of_the_chain")],
            },
        ),
        migrations.RunSQL(SEAL_FUNCTION, migrations.RunSQL.noop),
        migrations.RunSQL(RECORD, migrations.RunSQL.noop),
    ]
