"""The mode FORWARD, which only a registry as a whole has."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Two constraints on modes."""

    dependencies = [("subjects", "0006_kept_copies")]

    operations = [
        migrations.RemoveConstraint(model_name="mode", name="known_mode"),
        migrations.AddConstraint(
            model_name="mode",
            constraint=models.CheckConstraint(
                condition=models.Q(("mode__in", ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"))),
                name="known_mode",
            ),
        ),
        migrations.AddConstraint(
            model_name="mode",
            constraint=models.CheckConstraint(
                condition=models.Q(("mode", "FORWARD"), _negated=True) | models.Q(("context__isnull", True)),
                name="forward_is_of_a_registry",
            ),
        ),
    ]
