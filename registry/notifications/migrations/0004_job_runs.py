"""The end of what each background task logged in its last run."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0003_digests"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task", models.CharField(max_length=200)),
                ("key", models.CharField(blank=True, max_length=100)),
                ("state", models.CharField(max_length=10)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("seconds", models.FloatField(default=0)),
                ("lines", models.JSONField(default=list, help_text="the last lines of its log, masked")),
                ("left_out", models.PositiveIntegerField(default=0, help_text="lines that came before those")),
                ("error", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "indexes": [models.Index(fields=["started_at"], name="job_runs_by_age")],
                "constraints": [
                    models.UniqueConstraint(fields=("task", "key"), name="one_run_a_job"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("done", "failed"))), name="known_run_state"
                    ),
                ],
            },
        ),
    ]
