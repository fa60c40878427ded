"""Changes of what answers depend on are told on a channel, whoever makes them."""

from django.db import migrations

from registry.audit.telling import TELL_FUNCTION, tell

WHOLE = (
    "access_groupgrant",
    "access_rolegrant",
    "access_user_groups",
    "auth_group",
    "promotions_breakglass",
    "promotions_environment",
    "subjects_association",
    "subjects_config",
    "subjects_context",
    "subjects_mode",
    "subjects_schema",
    "subjects_schemareference",
    "subjects_schemaversion",
    "subjects_subject",
    "subjects_versionstanding",
)
#: without the columns that are bookkeeping: when a token was used, when a mirror is read next
COLUMNS = {
    "access_apitoken": (
        "id", "user_id", "name", "digest", "scope", "registry", "subject_pattern", "signed_in_by", "created_at",
        "expires_at", "revoked_at",
    ),
    "access_user": (
        "id", "password", "is_superuser", "username", "first_name", "last_name", "email", "is_staff", "is_active",
        "date_joined",
    ),
    "subjects_registry": (
        "id", "project", "location", "name", "kind", "url", "user", "secret", "every_seconds", "created_at",
    ),
}  # fmt: skip


class Migration(migrations.Migration):
    """Changes of what answers depend on are told on a channel."""

    dependencies = [
        ("audit", "0003_seals"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("access", "0003_tokens_groups_owners"),
        ("subjects", "0009_covering_indexes"),
        ("promotions", "0005_audit"),
    ]
    operations = [
        migrations.RunSQL(TELL_FUNCTION, "DROP FUNCTION IF EXISTS tell_change()"),
        *(tell(table) for table in WHOLE),
        *(tell(table, columns) for table, columns in COLUMNS.items()),
    ]
