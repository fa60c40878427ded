"""The limits of an environment's settings stand with the model; nothing changes in the database."""

from django.core.validators import MaxValueValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    """The limits of an environment's settings stand with the model; nothing changes in the database."""

    dependencies = [("promotions", "0008_environment_changes")]

    operations = [
        migrations.AlterField(
            "environment",
            "max_evidence_hours",
            models.PositiveSmallIntegerField(
                default=0,
                help_text="how old evidence from data may be that a release rests on; 0 for any age",
                validators=[MaxValueValidator(8760)],
            ),
        ),
        migrations.AlterField(
            "environment",
            "reviews_needed",
            models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(20)]),
        ),
    ]
