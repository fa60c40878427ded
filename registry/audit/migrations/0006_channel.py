"""The field `door` is called `channel`; its column keeps its name, which the chain of the audit and the triggers use."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Changes Django's state alone."""

    dependencies = [("audit", "0005_chain_head")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex("auditevent", "audit_of_a_door"),
                migrations.AlterField("auditevent", "door", models.TextField(db_column="door")),
                migrations.RenameField("auditevent", "door", "channel"),
                migrations.AddIndex("auditevent", models.Index(fields=["channel", "id"], name="audit_of_a_door")),
            ]
        )
    ]
