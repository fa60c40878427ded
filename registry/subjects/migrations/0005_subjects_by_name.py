"""A list of names reads nothing but their index, which has the subjects' numbers now."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """The same constraint with a column more in its index."""

    dependencies = [("subjects", "0004_subjects_by_words")]

    operations = [
        migrations.RemoveConstraint(model_name="subject", name="one_subject"),
        migrations.AddConstraint(
            model_name="subject",
            constraint=models.UniqueConstraint(fields=("context", "name"), include=("id",), name="one_subject"),
        ),
    ]
