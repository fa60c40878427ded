"""Where a change came from, and the chain of seals."""

from django.db import migrations, models

from registry.audit.sealing import SEAL_FUNCTION
from registry.audit.triggers import ROW_FUNCTION


class Migration(migrations.Migration):
    """Where a change came from, and the chain of seals."""

    dependencies = [("audit", "0002_audit")]
    operations = [
        migrations.AddField(
            "auditevent",
            "origin",
            models.TextField(
                blank=True, default="", help_text="from where: the caller's address, and its token's name"
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            "auditevent",
            "position",
            models.BigIntegerField(help_text="place in the chain of seals; null: not sealed", null=True, unique=True),
        ),
        migrations.AddField(
            "auditevent",
            "seal",
            models.CharField(
                blank=True,
                default="",
                help_text="SHA-256 of the seal before it and of this event",
                max_length=64,
            ),
            preserve_default=False,
        ),
        migrations.AddIndex(
            "auditevent",
            models.Index(fields=["id"], condition=models.Q(position=None), name="audit_not_sealed"),
        ),
        migrations.RunSQL(ROW_FUNCTION, migrations.RunSQL.noop),
        migrations.RunSQL(SEAL_FUNCTION, "DROP FUNCTION IF EXISTS audit_seal(integer)"),
    ]
