"""The formats are those that the installation has registered: the database checks the form of a name alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """The formats are those that the installation has registered: the database checks the form of a name alone."""

    dependencies = [("subjects", "0007_mode_forward")]

    operations = [
        migrations.RemoveConstraint(model_name="schema", name="known_schema_type"),
        migrations.AlterField(model_name="schema", name="schema_type", field=models.CharField(max_length=16)),
        migrations.AlterField(model_name="subjectactivity", name="schema_type", field=models.CharField(max_length=16)),
        migrations.AddConstraint(
            model_name="schema",
            constraint=models.CheckConstraint(
                condition=models.Q(("schema_type__regex", "^[A-Z][A-Z0-9_]*$")), name="schema_type_is_a_name"
            ),
        ),
    ]
