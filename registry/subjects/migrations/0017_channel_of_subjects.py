"""The contact channel of a subject, in its note."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """A note can have a channel alone. The last release reads such a note as an empty one, and keeps its channel."""

    dependencies = [
        ("subjects", "0016_glossary"),
    ]

    operations = [
        migrations.AddField(
            model_name="subjectnote",
            name="channel",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
        migrations.RemoveConstraint(model_name="subjectnote", name="note_says_something"),
        migrations.AddConstraint(
            model_name="subjectnote",
            constraint=models.CheckConstraint(
                condition=models.Q(("channel", ""), ("doc", ""), ("tags", []), _negated=True),
                name="note_says_something",
            ),
        ),
    ]
