"""The epoch of an account's sessions."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """A number that ends all sessions from before when it grows."""

    dependencies = [("access", "0003_patterns_without_sets")]
    operations = [
        migrations.AddField("user", "session_epoch", models.PositiveIntegerField(default=0, db_default=0)),
    ]
