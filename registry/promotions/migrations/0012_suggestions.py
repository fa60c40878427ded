"""Discussions can suggest a changed text of a proposed schema."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Discussions can suggest a changed text of a proposed schema."""

    dependencies = [("promotions", "0011_added_accounts")]

    operations = [
        migrations.AddField(
            "thread", "suggestion", models.TextField(blank=True, default="", help_text="the proposed text, changed")
        ),
        migrations.AddField(
            "thread",
            "suggested_on",
            models.TextField(blank=True, default="", help_text="the proposed text that the suggestion changes"),
        ),
        migrations.AddField("thread", "is_taken", models.BooleanField(default=False)),
        migrations.AddConstraint(
            "thread",
            models.CheckConstraint(
                condition=models.Q(("is_taken", False), models.Q(("suggestion", ""), _negated=True), _connector="OR"),
                name="taken_has_a_suggestion",
            ),
        ),
    ]
