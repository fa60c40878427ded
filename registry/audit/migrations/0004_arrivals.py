"""The index by which is known whether rows came since a moment, of tables that don't say so themselves.

That of old versions by their subject nothing reads any more.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    """The index by which is known whether rows came since a moment, of tables that don't say so themselves."""

    dependencies = [("audit", "0003_gone_subjects")]
    operations = [
        migrations.RemoveIndex("auditevent", "audit_of_old_versions"),
        migrations.AddIndex(
            "auditevent",
            models.Index(
                fields=["table", "at"],
                condition=models.Q(operation="INSERT")
                & ~models.Q(
                    table__in=["subjects_context", "subjects_schema", "subjects_schemaversion", "subjects_subject"]
                ),
                name="audit_of_arrivals",
            ),
        ),
    ]
