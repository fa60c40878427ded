"""The field `door` of a version is called `channel`; its column keeps its name, which SQL of the product uses."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Changes Django's state alone."""

    dependencies = [("subjects", "0010_quick_activity")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("schemaversion", "door", models.CharField(db_column="door", max_length=16)),
                migrations.RenameField("schemaversion", "door", "channel"),
            ]
        )
    ]
