"""The contact channels of groups, under audit."""

import django.db.models.deletion
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """The table is read by pages and the product API alone, so no cached answer depends on it."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("access", "0007_report_scope"),
    ]

    operations = [
        migrations.CreateModel(
            name="GroupChannel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("channel", models.CharField(max_length=300)),
                (
                    "group",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="channel",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("channel", ""), _negated=True), name="group_has_a_channel"
                    )
                ],
            },
        ),
        # The database follows a deleted group by itself: the last release doesn't know this table.
        migrations.RunSQL(
            "ALTER TABLE access_groupchannel ADD CONSTRAINT access_groupchannel_group_id_fk FOREIGN KEY (group_id)"
            " REFERENCES auth_group (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
            "ALTER TABLE access_groupchannel DROP CONSTRAINT access_groupchannel_group_id_fk",
        ),
        audit_table("access_groupchannel"),
    ]
