"""Verdicts of restart checks have the words that pages show: `safe` was `fine`, `fails at start` was `refused`."""

from django.db import migrations, models

VERDICTS = ("safe", "loses data", "silently wrong", "fails later", "fails at start", "not checked")
RENAME = """
UPDATE streams_statecheck SET verdict = word.after, report = jsonb_set(report, '{verdict}', to_jsonb(word.after))
FROM (VALUES (%s, %s), (%s, %s)) word(before, after) WHERE verdict = word.before
"""
NAMES = ["fine", "safe", "refused", "fails at start"]
BACK = ["safe", "fine", "fails at start", "refused"]


class Migration(migrations.Migration):
    """The verdicts of stored checks and of their reports change with the constraint."""

    dependencies = [("streams", "0005_running_description")]

    operations = [
        migrations.RemoveConstraint(model_name="statecheck", name="known_state_verdict"),
        migrations.RunSQL([(RENAME, NAMES)], [(RENAME, BACK)]),
        migrations.AddConstraint(
            model_name="statecheck",
            constraint=models.CheckConstraint(condition=models.Q(verdict__in=VERDICTS), name="known_state_verdict"),
        ),
    ]
