"""What a running query says of itself is kept with it."""

import django.db.models.deletion
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """Descriptions under audit without their text, which the row itself keeps."""

    dependencies = [("streams", "0004_query_progress")]

    operations = [
        migrations.CreateModel(
            name="RunningDescription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sent_at", models.DateTimeField(auto_now_add=True)),
                ("sent_by", models.TextField()),
                ("text", models.TextField(help_text="the description as laid out JSON in ASCII, its keys in order")),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="descriptions",
                        to="streams.streamquery",
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        audit_table("streams_runningdescription", hide=("text",)),
    ]
