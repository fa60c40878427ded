"""The epoch of an account's sessions under the triggers of the audit and of the caches, as all that is governed."""

from django.db import migrations

from registry.audit.triggers import audit_table, tell

PERSON = (
    "id", "password", "is_superuser", "username", "first_name", "last_name", "email", "is_staff", "is_active",
    "date_joined",
)  # fmt: skip
EVENTS = "INSERT OR UPDATE OF username, password, email, is_active, is_staff, is_superuser{epoch} OR DELETE"


def dropped(trigger: str, before: migrations.RunSQL) -> migrations.RunSQL:
    """Drops a trigger, and makes it as it was where the migration is undone."""
    return migrations.RunSQL(f'DROP TRIGGER {trigger} ON "access_user"', before.sql)


class Migration(migrations.Migration):
    """The two triggers anew, with one more column each."""

    dependencies = [("access", "0005_account_names")]
    operations = [
        dropped("audit", audit_table("access_user", hide=("password",), events=EVENTS.format(epoch=""))),
        audit_table("access_user", hide=("password",), events=EVENTS.format(epoch=", session_epoch")),
        dropped("tell_change", tell("access_user", PERSON)),
        tell("access_user", (*PERSON, "session_epoch")),
    ]
