"""Tokens have a scope, a place and an end; groups have roles; subjects have owners."""

from datetime import timedelta

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from registry.audit.triggers import govern

ROLE = [("reader", "reader"), ("steward", "steward"), ("approver", "approver"), ("admin", "admin")]
ROLES = tuple(name for name, _ in ROLE)
SCOPE = [(name, name) for name in ("read", "register", "write", "scan", "promote", "all")]

# Each sign-in saves the whole row; only another identity is a change.
UPDATED_IDENTITY = """
CREATE TRIGGER audit_update AFTER UPDATE ON socialaccount_socialaccount FOR EACH ROW
WHEN ((OLD.provider, OLD.uid, OLD.user_id) IS DISTINCT FROM (NEW.provider, NEW.uid, NEW.user_id))
EXECUTE FUNCTION audit_row('extra_data')
"""


def key() -> models.BigAutoField:
    """A primary key."""
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """Tokens made before get ninety days from now on; what they may stays as it was."""

    dependencies = [
        ("access", "0002_audit"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    ]
    operations = [
        migrations.AddField("apitoken", "scope", models.CharField(choices=SCOPE, default="all", max_length=16)),
        migrations.AddField("apitoken", "registry", models.CharField(blank=True, max_length=255)),
        migrations.AddField("apitoken", "subject_pattern", models.CharField(default="*", max_length=255)),
        migrations.AddField("apitoken", "signed_in_by", models.CharField(blank=True, max_length=16)),
        migrations.AddField("apitoken", "last_used_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("apitoken", "last_used_from", models.CharField(blank=True, max_length=64)),
        migrations.AlterField("apitoken", "created_at", models.DateTimeField(default=django.utils.timezone.now)),
        migrations.AlterField(
            "apitoken",
            "expires_at",
            models.DateTimeField(default=lambda: django.utils.timezone.now() + timedelta(days=90)),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            "apitoken",
            models.CheckConstraint(
                condition=models.Q(("expires_at__gt", models.F("created_at"))), name="token_expires"
            ),
        ),
        migrations.CreateModel(
            "GroupGrant",
            fields=[
                ("id", key()),
                ("role", models.CharField(choices=ROLE, max_length=16)),
                ("registry", models.CharField(blank=True, max_length=255)),
                ("subject_pattern", models.CharField(default="*", max_length=255)),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="role_grants", to="auth.group"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("group", "role", "registry", "subject_pattern"), name="one_group_grant"
                    ),
                    models.CheckConstraint(condition=models.Q(("role__in", ROLES)), name="known_group_role"),
                ]
            },
        ),
        migrations.CreateModel(
            "Ownership",
            fields=[
                ("id", key()),
                ("registry", models.CharField(blank=True, max_length=255)),
                ("subject_pattern", models.CharField(max_length=255)),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ownerships",
                        to="auth.group",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ownerships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("registry", "subject_pattern", "user", "group"),
                        name="one_ownership",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("group__isnull", False), ("user", None))
                        | models.Q(("group", None), ("user__isnull", False)),
                        name="one_owner",
                    ),
                ]
            },
        ),
        migrations.RunSQL('DROP TRIGGER IF EXISTS audit ON "access_apitoken"', migrations.RunSQL.noop),
        govern(
            "access_apitoken",
            hide=("digest",),
            # not last_used_at and last_used_from: being used changes nothing that is governed
            events="INSERT OR UPDATE OF user_id, name, digest, scope, registry, subject_pattern, signed_in_by,"
            " created_at, expires_at, revoked_at OR DELETE",
        ),
        govern("access_groupgrant"),
        govern("access_ownership"),
        govern("access_user_groups"),
        govern("auth_group"),
        govern("socialaccount_socialaccount", hide=("extra_data",), events="INSERT OR DELETE"),
        migrations.RunSQL(UPDATED_IDENTITY, 'DROP TRIGGER IF EXISTS audit_update ON "socialaccount_socialaccount"'),
    ]
