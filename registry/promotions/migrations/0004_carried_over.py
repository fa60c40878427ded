"""What was there before: each request gets its item, and an environment that was READONLY is closed."""

from __future__ import annotations

from typing import Any

from django.db import migrations

OPEN = ("in review", "approved")


def carry_over(apps: Any, schema_editor: Any) -> None:
    """One item a request, and the closed environments. `closed_at` of failed ones is emptied, since a failed one can be resumed now."""
    requests, items = apps.get_model("promotions", "PromotionRequest"), apps.get_model("promotions", "RequestItem")
    items.objects.bulk_create(
        items(
            request=row,
            position=0,
            open_in_id=row.target_id if row.state in OPEN else None,
            context_name=row.context_name,
            subject_name=row.subject_name,
            version_number=row.version_number,
            fingerprint=row.fingerprint,
            schema_type=row.plan["steps"][-1]["schema_type"],
        )
        for row in requests.objects.all()
    )
    modes = apps.get_model("subjects", "Mode").objects.filter(context=None, mode="READONLY")
    environments = apps.get_model("promotions", "Environment").objects
    environments.filter(registry__in=modes.values("registry")).update(is_closed=True)


class Migration(migrations.Migration):
    """What was there before."""

    dependencies = [("promotions", "0003_reviews_releases_and_rules"), ("subjects", "0007_standing")]
    operations = [migrations.RunPython(carry_over, migrations.RunPython.noop)]
