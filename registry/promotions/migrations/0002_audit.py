"""Promotions under audit."""

from django.db import migrations

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """Promotions under audit."""

    dependencies = [("promotions", "0001_initial"), ("audit", "0002_audit")]
    operations = [
        govern("promotions_environment"),
        govern("promotions_promotionrequest"),
        govern("promotions_review"),
        govern("promotions_release"),
    ]
