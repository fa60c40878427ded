"""People and groups, their roles, their tokens and what they own."""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from registry.audit.triggers import CreateTables, audit_table, tell

#: all but `last_used_at` and `last_used_from`: being used changes nothing that is governed, and no answer
TOKEN = (
    "id", "user_id", "name", "digest", "scope", "registry", "subject_pattern", "signed_in_by", "created_at",
    "expires_at", "revoked_at",
)  # fmt: skip
#: all but `last_login`
PERSON = (
    "id", "password", "is_superuser", "username", "first_name", "last_name", "email", "is_staff", "is_active",
    "date_joined",
)  # fmt: skip


class Migration(migrations.Migration):
    """People and groups, their roles, their tokens and what they own."""

    initial = True
    # what 0003_tokens_groups_owners made is here too; 0002_identities replaces it, to be made if this one alone was
    replaces = [
        ("access", "0001_initial"),
        ("access", "0002_audit"),
    ]
    dependencies = [("auth", "0012_alter_user_first_name_max_length"), ("audit", "0001_tables")]
    operations = [
        CreateTables(
            migrations.CreateModel(
                name="User",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("password", models.CharField(max_length=128, verbose_name="password")),
                    ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                    (
                        "is_superuser",
                        models.BooleanField(
                            default=False,
                            help_text="Designates that this user has all permissions without explicitly assigning them.",
                            verbose_name="superuser status",
                        ),
                    ),
                    (
                        "username",
                        models.CharField(
                            error_messages={"unique": "A user with that username already exists."},
                            help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                            max_length=150,
                            unique=True,
                            validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                            verbose_name="username",
                        ),
                    ),
                    ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                    ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                    ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                    (
                        "is_staff",
                        models.BooleanField(
                            default=False,
                            help_text="Designates whether the user can log into this admin site.",
                            verbose_name="staff status",
                        ),
                    ),
                    (
                        "is_active",
                        models.BooleanField(
                            default=True,
                            help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                            verbose_name="active",
                        ),
                    ),
                    (
                        "date_joined",
                        models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined"),
                    ),
                    (
                        "groups",
                        models.ManyToManyField(
                            blank=True,
                            help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                            related_name="user_set",
                            related_query_name="user",
                            to="auth.group",
                            verbose_name="groups",
                        ),
                    ),
                    (
                        "user_permissions",
                        models.ManyToManyField(
                            blank=True,
                            help_text="Specific permissions for this user.",
                            related_name="user_set",
                            related_query_name="user",
                            to="auth.permission",
                            verbose_name="user permissions",
                        ),
                    ),
                ],
                options={
                    "verbose_name": "user",
                    "verbose_name_plural": "users",
                    "abstract": False,
                },
                managers=[
                    ("objects", django.contrib.auth.models.UserManager()),
                ],
            ),
            migrations.CreateModel(
                name="ApiToken",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("name", models.CharField(max_length=100)),
                    ("digest", models.CharField(max_length=64, unique=True)),
                    ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("expires_at", models.DateTimeField()),
                    ("revoked_at", models.DateTimeField(blank=True, null=True)),
                    (
                        "user",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="api_tokens",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "scope",
                        models.CharField(
                            choices=[
                                ("read", "read"),
                                ("register", "register"),
                                ("write", "write"),
                                ("scan", "scan"),
                                ("promote", "promote"),
                                ("all", "all"),
                            ],
                            default="all",
                            max_length=16,
                        ),
                    ),
                    ("registry", models.CharField(blank=True, max_length=255)),
                    ("subject_pattern", models.CharField(default="*", max_length=255)),
                    ("signed_in_by", models.CharField(blank=True, max_length=16)),
                    ("last_used_at", models.DateTimeField(blank=True, null=True)),
                    ("last_used_from", models.CharField(blank=True, max_length=64)),
                ],
                options={
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("digest__regex", "^[0-9a-f]{64}$")), name="sha256_digest"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("expires_at__gt", models.F("created_at"))), name="token_expires"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="RoleGrant",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "role",
                        models.CharField(
                            choices=[
                                ("reader", "reader"),
                                ("steward", "steward"),
                                ("approver", "approver"),
                                ("admin", "admin"),
                            ],
                            max_length=16,
                        ),
                    ),
                    ("registry", models.CharField(blank=True, max_length=255)),
                    ("subject_pattern", models.CharField(default="*", max_length=255)),
                    (
                        "user",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="role_grants",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("user", "role", "registry", "subject_pattern"), name="one_grant"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("role__in", ("reader", "steward", "approver", "admin"))),
                            name="known_role",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="GroupGrant",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "role",
                        models.CharField(
                            choices=[
                                ("reader", "reader"),
                                ("steward", "steward"),
                                ("approver", "approver"),
                                ("admin", "admin"),
                            ],
                            max_length=16,
                        ),
                    ),
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
                        models.CheckConstraint(
                            condition=models.Q(("role__in", ("reader", "steward", "approver", "admin"))),
                            name="known_group_role",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Ownership",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
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
                            condition=models.Q(
                                models.Q(("group__isnull", False), ("user", None)),
                                models.Q(("group", None), ("user__isnull", False)),
                                _connector="OR",
                            ),
                            name="one_owner",
                        ),
                    ],
                },
            ),
        ),
        audit_table(
            "access_user",
            hide=("password",),
            # not last_login: a sign-in changes nothing that is governed
            events="INSERT OR UPDATE OF username, password, email, is_active, is_staff, is_superuser OR DELETE",
        ),
        audit_table(
            "access_apitoken",
            hide=("digest",),
            # not last_used_at and last_used_from: being used changes nothing that is governed
            events="INSERT OR UPDATE OF user_id, name, digest, scope, registry, subject_pattern, signed_in_by,"
            " created_at, expires_at, revoked_at OR DELETE",
        ),
        audit_table("access_rolegrant"),
        audit_table("access_groupgrant"),
        audit_table("access_ownership"),
        audit_table("access_user_groups"),
        audit_table("auth_group"),
        tell("access_apitoken", TOKEN),
        tell("access_user", PERSON),
        tell("access_rolegrant"),
        tell("access_groupgrant"),
        tell("access_user_groups"),
        tell("auth_group"),
    ]
