"""Why a draft is written, and the drift finding that a draft or a request answers.

Requests are under audit already, whole rows; drafts are their author's own.
"""

from django.db import migrations, models

#: as the editor wrote where a draft came from, before it kept the number
FROM_WORDS = r"""
UPDATE promotions_draft SET finding = substring(origin from '^after finding ([0-9]{1,9})$')::bigint
WHERE origin ~ '^after finding [0-9]{1,9}$'
"""


class Migration(migrations.Migration):
    """The columns, and the numbers of drafts that say theirs in words."""

    dependencies = [("promotions", "0008_same_person")]

    operations = [
        migrations.AddField(
            model_name="draft",
            name="reason",
            field=models.TextField(
                blank=True, default="", help_text="why it is to be there, for the request that it becomes"
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="draft",
            name="finding",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="the number of the drift finding that it answers, which may be gone since",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="promotionrequest",
            name="finding",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="the number of the drift finding that it answers, which may be gone since",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="promotionrequest",
            index=models.Index(
                condition=models.Q(("finding__isnull", False)), fields=["finding"], name="request_by_finding"
            ),
        ),
        migrations.RunSQL(FROM_WORDS, migrations.RunSQL.noop),
    ]
