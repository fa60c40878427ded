"""A format has a name of up to 16 characters."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """A format has a name of up to 16 characters."""

    dependencies = [("search", "0001_tables")]

    operations = [
        migrations.AlterField(model_name="indexedsubject", name="schema_type", field=models.CharField(max_length=16)),
    ]
