from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("drift", "0011_finding_ranges")]

    operations = [
        migrations.AddField(
            model_name="topic",
            name="last_rows",
            field=models.JSONField(
                default=dict, help_text="of its newest change events: their fields, and their table"
            ),
        ),
    ]
