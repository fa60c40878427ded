"""What was done, and the functions by which tables write it, seal it and tell of it."""

from django.db import migrations, models

from registry.audit.hash_chain import SEAL_FUNCTION
from registry.audit.triggers import ROW_FUNCTION, TELL_FUNCTION, CreateTables


class Migration(migrations.Migration):
    """What was done, and the functions by which tables write it, seal it and tell of it."""

    initial = True
    replaces = [
        ("audit", "0001_initial"),
        ("audit", "0002_audit"),
        ("audit", "0003_seals"),
        ("audit", "0004_tell_changes"),
    ]
    dependencies = []
    operations = [
        CreateTables(
            migrations.CreateModel(
                name="AuditEvent",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("at", models.DateTimeField(db_index=True)),
                    (
                        "transaction_id",
                        models.BigIntegerField(help_text="PostgreSQL's number of the transaction that changed the row"),
                    ),
                    ("actor", models.TextField()),
                    ("door", models.TextField()),
                    ("why", models.TextField(blank=True)),
                    (
                        "operation",
                        models.CharField(
                            choices=[("INSERT", "INSERT"), ("UPDATE", "UPDATE"), ("DELETE", "DELETE")], max_length=6
                        ),
                    ),
                    ("table", models.TextField()),
                    ("row_id", models.TextField()),
                    ("before", models.JSONField(null=True)),
                    ("after", models.JSONField(null=True)),
                    (
                        "origin",
                        models.TextField(
                            blank=True, help_text="from where: the caller's address, and its token's name"
                        ),
                    ),
                    (
                        "position",
                        models.BigIntegerField(
                            help_text="place in the chain of seals; null: not sealed", null=True, unique=True
                        ),
                    ),
                    (
                        "seal",
                        models.CharField(
                            blank=True, help_text="SHA-256 of the seal before it and of this event", max_length=64
                        ),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "indexes": [
                        models.Index(fields=["table", "row_id"], name="audit_of_a_row"),
                        models.Index(condition=models.Q(("position", None)), fields=["id"], name="audit_not_sealed"),
                    ],
                },
            ),
        ),
        migrations.RunSQL(ROW_FUNCTION, "DROP FUNCTION IF EXISTS audit_row()"),
        migrations.RunSQL(SEAL_FUNCTION, "DROP FUNCTION IF EXISTS audit_seal(integer)"),
        migrations.RunSQL(TELL_FUNCTION, "DROP FUNCTION IF EXISTS tell_change()"),
    ]
