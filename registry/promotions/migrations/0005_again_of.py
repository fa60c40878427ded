"""Which request one asks for again."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Which request one asks for again."""

    dependencies = [
        ("promotions", "0004_renames"),
    ]

    operations = [
        migrations.AddField(
            model_name="promotionrequest",
            name="again_of",
            field=models.ForeignKey(
                blank=True,
                help_text="the one that was rejected or withdrawn, which this one asks for again",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="promotions.promotionrequest",
            ),
        ),
        migrations.AddConstraint(
            model_name="promotionrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(("again_of", models.F("id")), _negated=True), name="again_of_another"
            ),
        ),
    ]
