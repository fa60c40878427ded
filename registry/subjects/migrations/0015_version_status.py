"""The model VersionStanding is called VersionStatus; its table and column keep their names."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Changes Django's state alone."""

    dependencies = [("subjects", "0014_fewer_statements")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint("versionstanding", "known_standing"),
                migrations.AlterModelTable("versionstanding", "subjects_versionstanding"),
                migrations.RenameModel("VersionStanding", "VersionStatus"),
                migrations.RenameField("versionstatus", "standing", "status"),
                migrations.AlterField("versionstatus", "status", models.CharField(max_length=16, db_column="standing")),
                migrations.AlterField(
                    "versionstatus",
                    "version",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="status",
                        to="subjects.schemaversion",
                    ),
                ),
                migrations.AddConstraint(
                    "versionstatus",
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ("deprecated", "retired", "quarantined"))),
                        name="known_standing",
                    ),
                ),
            ]
        )
    ]
