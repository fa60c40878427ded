"""Discussions that stop a release, as a rule of an environment."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Discussions that stop a release, as a rule of an environment."""

    dependencies = [
        ("promotions", "0001_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="environment",
            name="threads_block",
            field=models.BooleanField(default=False, help_text="a discussion that isn't resolved stops the release"),
        ),
    ]
