"""The model DigestWish is called DigestPreference; its table keeps its name."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Changes Django's state alone."""

    dependencies = [("notifications", "0004_job_runs")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelTable("digestwish", "notifications_digestwish"),
                migrations.RenameModel("DigestWish", "DigestPreference"),
                migrations.AlterField(
                    "digestpreference",
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="digest_preference",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ]
        )
    ]
