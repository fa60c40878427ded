"""The trigger function."""

from django.db import migrations

from registry.audit.triggers import CREATE_FUNCTION, DROP_FUNCTION


class Migration(migrations.Migration):
    """The trigger function."""

    dependencies = [("audit", "0001_initial")]
    operations = [
        migrations.RunSQL(CREATE_FUNCTION, DROP_FUNCTION),
    ]
