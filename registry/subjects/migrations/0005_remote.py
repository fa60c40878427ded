"""How a remote registry is reached, and how its mirroring goes."""

from django.db import migrations, models

from registry.audit.triggers import govern

#: what people decide; the rest changes with every sync
DECIDED = 'project, location, name, kind, url, "user", secret, every_seconds'


def column(name: str, field: models.Field) -> migrations.AddField:
    return migrations.AddField("registry", name, field, preserve_default=False)


class Migration(migrations.Migration):
    """How a remote registry is reached, and how its mirroring goes."""

    dependencies = [("subjects", "0004_contracts")]
    operations = [
        migrations.AlterField(
            "registry",
            "url",
            models.URLField(blank=True, help_text="base address of a remote registry", max_length=2048),
        ),
        migrations.AlterField(
            "registry",
            "synced_at",
            models.DateTimeField(blank=True, help_text="when it was last read as a whole", null=True),
        ),
        column("user", models.CharField(blank=True, default="", help_text="who signs in there", max_length=255)),
        column(
            "secret",
            models.CharField(
                blank=True, default="", help_text="name of the secret that signs in, not the secret", max_length=64
            ),
        ),
        column(
            "every_seconds",
            models.PositiveIntegerField(blank=True, help_text="how often it is mirrored", null=True),
        ),
        column("next_sync_at", models.DateTimeField(blank=True, null=True)),
        column(
            "sync_tag",
            models.CharField(blank=True, default="", help_text="whose the sync is that runs", max_length=32),
        ),
        column("sync_lease_until", models.DateTimeField(blank=True, null=True)),
        column("sync_error", models.TextField(blank=True, default="")),
        column("failing_since", models.DateTimeField(blank=True, null=True)),
        migrations.AddConstraint(
            "registry",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("failing_since", None), ("sync_error", "")),
                    models.Q(models.Q(("sync_error", ""), _negated=True), ("failing_since__isnull", False)),
                    _connector="OR",
                ),
                name="failing_since_its_error",
            ),
        ),
        migrations.RunSQL(
            'DROP TRIGGER audit ON "subjects_registry"',
            'CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON "subjects_registry"'
            " FOR EACH ROW EXECUTE FUNCTION audit_row()",
        ),
        govern("subjects_registry", events=f"INSERT OR UPDATE OF {DECIDED} OR DELETE"),
    ]
