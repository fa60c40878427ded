"""Environments and their rules, requests and what is decided on them, and the triggers that note for the board what changes."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from registry.audit.triggers import CreateTables, audit_table, tell

#: table → its function, and how a changed row leads to its version's subject
NOTED = {
    "subjects_schemaversion": ("promotions_note_versions", "JOIN subjects_subject s ON s.id = changed.subject_id"),
    "subjects_versionstanding": (
        "promotions_note_standings",
        "JOIN subjects_schemaversion v ON v.id = changed.version_id JOIN subjects_subject s ON s.id = v.subject_id",
    ),
}
#: event → the rows of the statement; an update doesn't move a row to another subject
EVENTS = {"insert": "NEW", "update": "NEW", "delete": "OLD"}


FUNCTION = """
CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO promotions_boardchange (context_name, subject_name)
    SELECT DISTINCT c.name, s.name
    FROM changed
    {way}
    JOIN subjects_context c ON c.id = s.context_id
    JOIN promotions_environment e ON e.registry_id = c.registry_id;
    RETURN NULL;
END $$"""


def note(table: str) -> list[migrations.RunSQL]:
    """The function and its triggers, once a statement: a bulk import is one row more a subject and batch."""
    function, way = NOTED[table]
    triggers = [
        migrations.RunSQL(
            f'CREATE TRIGGER note_{event} AFTER {event.upper()} ON "{table}" REFERENCING {rows} TABLE AS changed'
            f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
            f'DROP TRIGGER IF EXISTS note_{event} ON "{table}"',
        )
        for event, rows in EVENTS.items()
    ]
    made = migrations.RunSQL(FUNCTION.format(function=function, way=way), f"DROP FUNCTION IF EXISTS {function}()")
    return [made, *triggers]


class Migration(migrations.Migration):
    """Outlooks and the board are worked out from the rest, and drafts are their author's own: no audit of these."""

    initial = True
    replaces = [
        ("promotions", "0001_initial"),
        ("promotions", "0002_audit"),
        ("promotions", "0003_reviews_releases_and_rules"),
        ("promotions", "0004_carried_over"),
        ("promotions", "0005_audit"),
        ("promotions", "0006_recurring_freezes_and_board_marks"),
        ("promotions", "0007_board_triggers"),
        ("promotions", "0008_same_person"),
        ("promotions", "0009_what_they_answer"),
    ]
    dependencies = [
        ("subjects", "0001_tables"),
        ("audit", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        CreateTables(
            migrations.CreateModel(
                name="Environment",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("position", models.PositiveSmallIntegerField(unique=True)),
                    ("reviews_needed", models.PositiveSmallIntegerField(default=1)),
                    ("own_approval_allowed", models.BooleanField(default=False)),
                    (
                        "registry",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="environment",
                            to="subjects.registry",
                        ),
                    ),
                    (
                        "drift_blocks",
                        models.BooleanField(default=True, help_text="open drift at a subject here fails its requests"),
                    ),
                    ("is_closed", models.BooleanField(default=False)),
                    (
                        "owners_only",
                        models.BooleanField(default=False, help_text="only owners of a subject may request it here"),
                    ),
                ],
                options={
                    "ordering": ["position"],
                },
            ),
            migrations.CreateModel(
                name="PromotionRequest",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("context_name", models.CharField(max_length=256)),
                    ("subject_name", models.CharField(max_length=1024)),
                    ("version_number", models.PositiveIntegerField(help_text="in the source; 0 for a proposed text")),
                    ("fingerprint", models.CharField(max_length=64)),
                    ("reason", models.TextField(blank=True)),
                    ("state", models.CharField(default="in review", max_length=16)),
                    ("plan", models.JSONField()),
                    ("plan_hash", models.CharField(max_length=64)),
                    ("requested_at", models.DateTimeField(auto_now_add=True)),
                    ("closed_at", models.DateTimeField(blank=True, null=True)),
                    ("failure", models.TextField(blank=True)),
                    (
                        "requested_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                    (
                        "source",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="promotions.environment",
                        ),
                    ),
                    (
                        "target",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to="promotions.environment"
                        ),
                    ),
                    (
                        "version",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.SET_NULL,
                            related_name="promotion_requests",
                            to="subjects.schemaversion",
                        ),
                    ),
                    (
                        "applied_by",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "apply_at",
                        models.DateTimeField(blank=True, help_text="when a scheduled one is applied", null=True),
                    ),
                    (
                        "claim_tag",
                        models.CharField(blank=True, help_text="of the worker that applies it", max_length=32),
                    ),
                    ("claim_until", models.DateTimeField(blank=True, null=True)),
                    (
                        "config",
                        models.JSONField(blank=True, help_text="the subjects' config that comes along", null=True),
                    ),
                    ("kind", models.CharField(default="promote", max_length=16)),
                    (
                        "moved",
                        models.TextField(
                            blank=True, help_text="what voided the last approvals; empty when nothing did"
                        ),
                    ),
                    (
                        "planned_at",
                        models.DateTimeField(
                            default=django.utils.timezone.now, help_text="when the checks were last run"
                        ),
                    ),
                    (
                        "finding",
                        models.PositiveBigIntegerField(
                            blank=True,
                            help_text="the number of the drift finding that it answers, which may be gone since",
                            null=True,
                        ),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "indexes": [
                        models.Index(fields=["context_name", "subject_name"], name="request_by_subject"),
                        models.Index(fields=["state", "apply_at"], name="request_by_state"),
                        models.Index(
                            condition=models.Q(("finding__isnull", False)),
                            fields=["finding"],
                            name="request_by_finding",
                        ),
                    ],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                (
                                    "state__in",
                                    (
                                        "draft",
                                        "in review",
                                        "approved",
                                        "scheduled",
                                        "applying",
                                        "applied",
                                        "rejected",
                                        "withdrawn",
                                        "failed",
                                    ),
                                )
                            ),
                            name="known_request_state",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("kind", "promote"),
                                    ("source__isnull", False),
                                    models.Q(("source", models.F("target")), _negated=True),
                                ),
                                models.Q(("kind__in", ("propose", "roll back", "adopt")), ("source", None)),
                                _connector="OR",
                            ),
                            name="two_environments",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("state", "scheduled"), _negated=True),
                                ("apply_at__isnull", False),
                                _connector="OR",
                            ),
                            name="scheduled_has_a_time",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("closed_at__isnull", False), ("state__in", ("applied", "rejected", "withdrawn"))
                                ),
                                models.Q(
                                    models.Q(("state__in", ("applied", "rejected", "withdrawn")), _negated=True),
                                    ("closed_at", None),
                                ),
                                _connector="OR",
                            ),
                            name="closed_has_a_time",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Release",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("context_name", models.CharField(max_length=256)),
                    ("subject_name", models.CharField(max_length=1024)),
                    ("version_number", models.PositiveIntegerField()),
                    ("schema_id", models.PositiveIntegerField()),
                    ("fingerprint", models.CharField(max_length=64)),
                    ("released_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "environment",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="releases",
                            to="promotions.environment",
                        ),
                    ),
                    (
                        "released_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                    (
                        "request",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="releases",
                            to="promotions.promotionrequest",
                        ),
                    ),
                    (
                        "version",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.SET_NULL,
                            related_name="releases",
                            to="subjects.schemaversion",
                        ),
                    ),
                ],
                options={
                    "indexes": [
                        models.Index(fields=["environment", "context_name", "subject_name"], name="release_by_subject")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("request", "context_name", "subject_name", "version_number"),
                            name="one_release_a_request",
                        )
                    ],
                    "ordering": ["id"],
                },
            ),
            migrations.CreateModel(
                name="Review",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "verdict",
                        models.CharField(
                            choices=[("approve", "approve"), ("changes", "changes"), ("reject", "reject")], max_length=8
                        ),
                    ),
                    ("comment", models.TextField(blank=True)),
                    ("plan_hash", models.CharField(max_length=64)),
                    ("at", models.DateTimeField(auto_now_add=True)),
                    (
                        "request",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="reviews",
                            to="promotions.promotionrequest",
                        ),
                    ),
                    (
                        "reviewer",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                    ("override", models.TextField(blank=True)),
                ],
                options={
                    "ordering": ["id"],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("request", "reviewer", "plan_hash"), name="one_review_a_person_and_plan"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ApplyStep",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("position", models.PositiveSmallIntegerField()),
                    ("state", models.CharField(default="waiting", max_length=8)),
                    ("step", models.JSONField(help_text="as in the plan that was approved")),
                    (
                        "version_number",
                        models.PositiveIntegerField(blank=True, help_text="that the target gave", null=True),
                    ),
                    ("schema_id", models.PositiveIntegerField(blank=True, help_text="that the target gave", null=True)),
                    ("said", models.TextField(blank=True)),
                    ("started_at", models.DateTimeField(blank=True, null=True)),
                    ("done_at", models.DateTimeField(blank=True, null=True)),
                    (
                        "request",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="steps",
                            to="promotions.promotionrequest",
                        ),
                    ),
                ],
                options={
                    "ordering": ["request", "position"],
                    "constraints": [
                        models.UniqueConstraint(fields=("request", "position"), name="one_step_a_position"),
                        models.CheckConstraint(
                            condition=models.Q(("state__in", ("waiting", "running", "done", "failed"))),
                            name="known_step_state",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="BreakGlass",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("reason", models.TextField()),
                    ("opened_at", models.DateTimeField(auto_now_add=True)),
                    ("ends_at", models.DateTimeField()),
                    ("uses", models.PositiveIntegerField(default=0)),
                    ("confirmed_at", models.DateTimeField(blank=True, null=True)),
                    ("comment", models.TextField(blank=True)),
                    (
                        "confirmed_by",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "environment",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="break_glass",
                            to="promotions.environment",
                        ),
                    ),
                    (
                        "opened_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("reason", ""), _negated=True), name="break_glass_has_a_reason"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("confirmed_by", None),
                                models.Q(("confirmed_by", models.F("opened_by")), _negated=True),
                                _connector="OR",
                            ),
                            name="second_person_confirms",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("confirmed_at", None), ("confirmed_by", None)),
                                models.Q(("confirmed_at__isnull", False), ("confirmed_by__isnull", False)),
                                _connector="OR",
                            ),
                            name="confirmed_by_and_at",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Draft",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("context_name", models.CharField(max_length=256)),
                    ("subject_name", models.CharField(max_length=1024)),
                    ("schema_type", models.CharField(max_length=8)),
                    ("text", models.TextField()),
                    ("references", models.JSONField(default=list)),
                    ("origin", models.TextField(blank=True, help_text="where it came from, in words")),
                    ("made_at", models.DateTimeField(auto_now_add=True)),
                    ("changed_at", models.DateTimeField(auto_now=True)),
                    (
                        "author",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to="subjects.registry"
                        ),
                    ),
                    (
                        "reason",
                        models.TextField(
                            blank=True, help_text="why it is to be there, for the request that it becomes"
                        ),
                    ),
                    (
                        "finding",
                        models.PositiveBigIntegerField(
                            blank=True,
                            help_text="the number of the drift finding that it answers, which may be gone since",
                            null=True,
                        ),
                    ),
                ],
                options={
                    "ordering": ["-changed_at"],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("author", "registry", "context_name", "subject_name"), name="one_draft"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="FreezeWindow",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("starts_at", models.DateTimeField()),
                    ("ends_at", models.DateTimeField()),
                    ("reason", models.TextField()),
                    (
                        "environment",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="freeze_windows",
                            to="promotions.environment",
                        ),
                    ),
                    (
                        "made_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                ],
                options={
                    "ordering": ["starts_at"],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="freeze_ends_later"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="PromotionOutlook",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("context_name", models.CharField(max_length=256)),
                    ("subject_name", models.CharField(max_length=1024)),
                    (
                        "basis",
                        models.CharField(help_text="SHA-256 of what the answer was worked out from", max_length=64),
                    ),
                    ("verdict", models.CharField(max_length=16)),
                    ("reasons", models.JSONField(default=list)),
                    ("at", models.DateTimeField(auto_now=True)),
                    (
                        "source",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to="promotions.environment"
                        ),
                    ),
                    (
                        "target",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to="promotions.environment"
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("source", "target", "context_name", "subject_name"), name="one_outlook"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("verdict__in", ("yes", "needs approval", "no"))), name="known_outlook"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="RequestItem",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("position", models.PositiveSmallIntegerField()),
                    ("context_name", models.CharField(max_length=256)),
                    ("subject_name", models.CharField(max_length=1024)),
                    ("version_number", models.PositiveIntegerField()),
                    ("fingerprint", models.CharField(max_length=64)),
                    ("schema_type", models.CharField(max_length=8)),
                    (
                        "text",
                        models.TextField(
                            blank=True, help_text="of a proposed one; a version's is where it is registered"
                        ),
                    ),
                    ("references", models.JSONField(default=list)),
                    (
                        "open_in",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="promotions.environment",
                        ),
                    ),
                    (
                        "request",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="items",
                            to="promotions.promotionrequest",
                        ),
                    ),
                ],
                options={
                    "ordering": ["request", "position"],
                    "constraints": [
                        models.UniqueConstraint(fields=("request", "position"), name="one_item_a_position"),
                        models.UniqueConstraint(
                            fields=("request", "context_name", "subject_name"), name="one_item_a_subject"
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("open_in__isnull", False)),
                            fields=("open_in", "context_name", "subject_name", "fingerprint"),
                            name="one_open_request_a_schema",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="ReviewRule",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "subject_pattern",
                        models.CharField(default="*", help_text="a shell pattern of qualified names", max_length=1024),
                    ),
                    (
                        "verdict",
                        models.CharField(
                            default="any", help_text="for every request, or for breaking ones", max_length=8
                        ),
                    ),
                    ("reviewers", models.CharField(max_length=8)),
                    (
                        "name",
                        models.CharField(
                            blank=True, help_text="the role's or the group's; empty for owners", max_length=150
                        ),
                    ),
                    ("count", models.PositiveSmallIntegerField(default=1)),
                    (
                        "environment",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="review_rules",
                            to="promotions.environment",
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("environment", "subject_pattern", "verdict", "reviewers", "name"),
                            name="one_rule_a_kind",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("verdict__in", ("any", "breaking"))), name="known_rule_verdict"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("name", ""), ("reviewers", "owners")),
                                models.Q(("reviewers__in", ("role", "group")), models.Q(("name", ""), _negated=True)),
                                _connector="OR",
                            ),
                            name="rule_names_its_reviewers",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("count__gte", 1), ("count__lte", 20)), name="rule_asks_for_somebody"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Thread",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("subject", models.CharField(blank=True, help_text="the qualified name", max_length=1280)),
                    ("path", models.TextField(blank=True, help_text="of the field, as the diff names it")),
                    ("resolved_at", models.DateTimeField(blank=True, null=True)),
                    (
                        "request",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="threads",
                            to="promotions.promotionrequest",
                        ),
                    ),
                    (
                        "resolved_by",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                },
            ),
            migrations.CreateModel(
                name="Comment",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("text", models.TextField()),
                    ("at", models.DateTimeField(auto_now_add=True)),
                    (
                        "author",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                    (
                        "thread",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="comments", to="promotions.thread"
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("text", ""), _negated=True), name="comment_says_something"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="BoardChange",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("context_name", models.CharField(max_length=256)),
                    ("subject_name", models.CharField(max_length=1024)),
                ],
            ),
            migrations.CreateModel(
                name="BoardState",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("places", models.JSONField(default=list)),
                ],
            ),
            migrations.CreateModel(
                name="BoardSubject",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("context_name", models.CharField(db_collation="C", max_length=256)),
                    ("subject_name", models.CharField(db_collation="C", max_length=1024)),
                    ("behind", models.BigIntegerField()),
                    ("id_differs", models.BooleanField()),
                    ("other_content", models.BooleanField()),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(fields=("context_name", "subject_name"), name="one_board_subject")
                    ],
                },
            ),
            migrations.CreateModel(
                name="RecurringFreeze",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("kind", models.CharField(max_length=8)),
                    (
                        "zone",
                        models.CharField(
                            help_text="a name of the time zone database, such as Europe/Berlin", max_length=64
                        ),
                    ),
                    ("from_day", models.PositiveSmallIntegerField(blank=True, null=True)),
                    ("from_time", models.TimeField()),
                    ("to_day", models.PositiveSmallIntegerField(blank=True, null=True)),
                    ("to_time", models.TimeField()),
                    ("last_days", models.PositiveSmallIntegerField(blank=True, null=True)),
                    ("reason", models.TextField()),
                    (
                        "environment",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="recurring_freezes",
                            to="promotions.environment",
                        ),
                    ),
                    (
                        "made_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("from_day__lte", 6),
                                    ("kind", "weekly"),
                                    ("last_days", None),
                                    ("to_day__lte", 6),
                                    ("from_day__isnull", False),
                                    ("to_day__isnull", False),
                                ),
                                models.Q(
                                    ("from_day", None),
                                    ("kind", "monthly"),
                                    ("last_days__gte", 1),
                                    ("last_days__lte", 28),
                                    ("to_day", None),
                                    ("last_days__isnull", False),
                                ),
                                _connector="OR",
                            ),
                            name="freeze_recurs_weekly_or_monthly",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("from_day", models.F("to_day")),
                                ("from_time", models.F("to_time")),
                                ("kind", "weekly"),
                                _negated=True,
                            ),
                            name="recurring_freeze_ends",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("reason", ""), _negated=True), name="recurring_freeze_has_a_reason"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="SamePerson",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("reason", models.TextField()),
                    ("stated_by", models.CharField(max_length=150)),
                    ("stated_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "one",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                    (
                        "other",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                    "constraints": [
                        models.UniqueConstraint(fields=("one", "other"), name="same_person_once"),
                        models.CheckConstraint(
                            condition=models.Q(("one__lt", models.F("other"))), name="same_person_in_order"
                        ),
                    ],
                },
            ),
        ),
        audit_table("promotions_environment"),
        audit_table("promotions_reviewrule"),
        audit_table("promotions_freezewindow"),
        audit_table("promotions_recurringfreeze"),
        audit_table("promotions_breakglass"),
        audit_table("promotions_sameperson"),
        audit_table("promotions_promotionrequest"),
        audit_table("promotions_requestitem"),
        audit_table("promotions_thread"),
        audit_table("promotions_comment"),
        audit_table("promotions_review"),
        audit_table("promotions_applystep"),
        audit_table("promotions_release"),
        *(operation for table in NOTED for operation in note(table)),
        tell("promotions_environment"),
        tell("promotions_breakglass"),
    ]
