"""The model LeastVersion is called MinimumVersion; its table keeps its name."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Changes Django's state alone."""

    dependencies = [("drift", "0009_topic_volume")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelTable("leastversion", "drift_leastversion"),
                migrations.RenameModel("LeastVersion", "MinimumVersion"),
                migrations.AlterField(
                    "minimumversion",
                    "subject",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="minimum_version",
                        to="subjects.subject",
                    ),
                ),
            ]
        )
    ]
