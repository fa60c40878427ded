"""A token can be limited to reports of streaming queries."""

from django.db import migrations, models

SCOPES = ("read", "register", "write", "scan", "promote", "report", "all")


class Migration(migrations.Migration):
    """The choices have the new scope; the table stays as it is."""

    dependencies = [("access", "0006_epoch_under_triggers")]
    operations = [
        migrations.AlterField(
            model_name="apitoken",
            name="scope",
            field=models.CharField(choices=[(scope, scope) for scope in SCOPES], default="all", max_length=16),
        ),
    ]
