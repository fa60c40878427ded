"""A format has a name of up to 16 characters."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """A format has a name of up to 16 characters."""

    dependencies = [("promotions", "0009_setting_limits")]

    operations = [
        migrations.AlterField(model_name="requestitem", name="schema_type", field=models.CharField(max_length=16)),
        migrations.AlterField(model_name="draft", name="schema_type", field=models.CharField(max_length=16)),
    ]
