"""Labels of requests, and which request a draft asks for again."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Labels of requests, and which request a draft asks for again."""

    dependencies = [
        ("promotions", "0006_acknowledgements"),
    ]

    operations = [
        migrations.AddField(
            model_name="promotionrequest",
            name="labels",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40), blank=True, default=list, size=None
            ),
        ),
        migrations.AddConstraint(
            model_name="promotionrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(("labels__len__lte", 10)), name="request_has_few_labels"
            ),
        ),
        migrations.AddIndex(
            model_name="promotionrequest",
            index=django.contrib.postgres.indexes.GinIndex(fields=["labels"], name="request_by_label"),
        ),
        migrations.AddField(
            model_name="draft",
            name="again_of",
            field=models.ForeignKey(
                blank=True,
                help_text="the request, rejected or withdrawn, that it will ask for again",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="promotions.promotionrequest",
            ),
        ),
    ]
