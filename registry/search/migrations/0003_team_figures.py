"""The figures of owners' subjects by day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """A task keeps them; they are derived, so they aren't under audit."""

    dependencies = [("search", "0002_formats_by_name")]

    operations = [
        migrations.CreateModel(
            name="TeamFigure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("registry_id", models.BigIntegerField()),
                ("day", models.DateField(db_index=True)),
                ("owner", models.CharField(max_length=160)),
                ("subjects", models.PositiveIntegerField()),
                ("described", models.PositiveIntegerField()),
                ("owned", models.PositiveIntegerField()),
                ("with_channel", models.PositiveIntegerField()),
                ("fields", models.PositiveBigIntegerField()),
                ("documented", models.PositiveBigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("registry_id", "owner", "day"), name="one_figure_a_day")
                ],
            },
        ),
    ]
