"""Accounts that one person added count as that person's in closed environments."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Accounts that one person added count as that person's in closed environments."""

    dependencies = [("promotions", "0010_formats_by_name")]

    operations = [
        migrations.AddField(
            "sameperson",
            "is_added",
            models.BooleanField(default=False, help_text="one added the account of the other, and saw its password"),
        ),
    ]
