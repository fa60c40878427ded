"""A restart can go on with state that now means something else."""

from django.db import migrations, models

VERDICTS = ("fine", "loses data", "silently wrong", "fails later", "refused", "not checked")


class Migration(migrations.Migration):
    """The constraint on verdicts allows the new one."""

    dependencies = [("streams", "0002_not_checked")]

    operations = [
        migrations.RemoveConstraint(model_name="statecheck", name="known_state_verdict"),
        migrations.AddConstraint(
            model_name="statecheck",
            constraint=models.CheckConstraint(condition=models.Q(verdict__in=VERDICTS), name="known_state_verdict"),
        ),
    ]
