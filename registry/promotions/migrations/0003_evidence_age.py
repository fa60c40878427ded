"""How old evidence from data may be, and whether there has to be any, as rules of an environment."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """How old evidence from data may be, and whether there has to be any, as rules of an environment."""

    dependencies = [
        ("promotions", "0002_open_threads"),
        ("subjects", "0002_clients"),
    ]

    operations = [
        migrations.AddField(
            model_name="environment",
            name="evidence_required",
            field=models.BooleanField(default=False, help_text="a release rests on evidence from data"),
        ),
        migrations.AddField(
            model_name="environment",
            name="max_evidence_hours",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="how old evidence from data may be that a release rests on; 0 for any age"
            ),
        ),
        migrations.AddConstraint(
            model_name="environment",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_evidence_hours__lte", 8760)), name="evidence_ages_within_a_year"
            ),
        ),
    ]
