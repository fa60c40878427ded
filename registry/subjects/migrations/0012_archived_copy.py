"""The model KeptCopy is called ArchivedCopy; its table keeps its name."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Changes Django's state alone."""

    dependencies = [("subjects", "0011_channel")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelTable("keptcopy", "subjects_keptcopy"),
                migrations.RenameModel("KeptCopy", "ArchivedCopy"),
                migrations.AlterField(
                    "archivedcopy",
                    "registry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="archived_copies",
                        to="subjects.registry",
                    ),
                ),
            ]
        )
    ]
