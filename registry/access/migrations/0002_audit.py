"""People, roles and tokens under audit."""

from django.db import migrations

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """People, roles and tokens under audit."""

    dependencies = [("access", "0001_initial"), ("audit", "0002_audit")]
    operations = [
        govern(
            "access_user",
            hide=("password",),
            # not last_login: a sign-in changes nothing that is governed
            events="INSERT OR UPDATE OF username, password, email, is_active, is_staff, is_superuser OR DELETE",
        ),
        govern("access_rolegrant"),
        govern("access_apitoken", hide=("digest",)),
    ]
