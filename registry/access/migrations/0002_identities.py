"""Identities of other sign-ins under audit: their table's own migrations need the people's."""

from django.db import migrations

from registry.audit.triggers import audit_table

# Each sign-in saves the whole row; only another identity is a change.
UPDATED_IDENTITY = """
CREATE TRIGGER audit_update AFTER UPDATE ON socialaccount_socialaccount FOR EACH ROW
WHEN ((OLD.provider, OLD.uid, OLD.user_id) IS DISTINCT FROM (NEW.provider, NEW.uid, NEW.user_id))
EXECUTE FUNCTION audit_row('extra_data')
"""


class Migration(migrations.Migration):
    """Identities of other sign-ins under audit."""

    replaces = [
        ("access", "0003_tokens_groups_owners"),
    ]
    dependencies = [("access", "0001_tables"), ("socialaccount", "0006_alter_socialaccount_extra_data")]
    operations = [
        audit_table("socialaccount_socialaccount", hide=("extra_data",), events="INSERT OR DELETE"),
        migrations.RunSQL(UPDATED_IDENTITY, 'DROP TRIGGER IF EXISTS audit_update ON "socialaccount_socialaccount"'),
    ]
