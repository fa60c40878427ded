"""The further settings of a config, and what holds between rows."""

from django.db import migrations, models

from registry.subjects.invariants import keep_invariants


def setting(name: str, field: models.Field) -> migrations.AddField:
    return migrations.AddField("config", name, field)


class Migration(migrations.Migration):
    """The further settings of a config, and what holds between rows."""

    dependencies = [("subjects", "0003_policy")]
    operations = [
        migrations.AlterField(
            "config",
            "alias",
            models.TextField(blank=True, help_text="the subject that calls for this one mean", null=True),
        ),
        setting("alias_for_deks", models.TextField(blank=True, null=True)),
        setting(
            "validate_fields",
            models.BooleanField(blank=True, help_text="reserved fields stay reserved and unused", null=True),
        ),
        setting("validate_new_schemas", models.BooleanField(blank=True, null=True)),
        setting("validate_rules", models.BooleanField(blank=True, null=True)),
        setting("compatibility_policy", models.CharField(blank=True, max_length=16, null=True)),
        *keep_invariants(),
    ]
