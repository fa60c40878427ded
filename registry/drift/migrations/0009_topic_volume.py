from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("drift", "0008_finding_groups")]

    operations = [
        migrations.AddField(
            model_name="topic",
            name="volume",
            field=models.JSONField(
                default=dict, help_text="start, hours, end: messages by hour, as TopicVolume has them"
            ),
        ),
    ]
