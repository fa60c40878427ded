"""Registries and what is registered in them, what must hold between their rows, and how active a subject is."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.text
import django.db.models.lookups
from django.db import migrations, models

from registry.audit.triggers import CreateTables, audit_table, tell
from registry.subjects.models.triggers import keep_invariants

#: what people decide of a registry; the rest changes with every sync
DECIDED = 'project, location, name, kind, url, "user", secret, every_seconds'
#: the same for those who listen: a mirror's bookkeeping changes no answer
REGISTRY = (
    "id", "project", "location", "name", "kind", "url", "user", "secret", "every_seconds", "created_at",
)  # fmt: skip

#: event → the rows of the statement; an update doesn't move a version to another subject
EVENTS = {"insert": "NEW", "update": "NEW", "delete": "OLD"}

# The subjects are locked first, in the order of everybody: what is counted then is what the last writer left.
KEEP_ACTIVITY = """
CREATE FUNCTION subjects_keep_activity() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM subjects_subject WHERE id IN (SELECT subject_id FROM changed) ORDER BY id FOR UPDATE;
    INSERT INTO subjects_subjectactivity AS kept (subject_id, registry_id, live_versions, changed_at)
    SELECT v.subject_id, c.registry_id, count(*), max(v.created_at)
    FROM subjects_schemaversion v
    JOIN subjects_subject s ON s.id = v.subject_id
    JOIN subjects_context c ON c.id = s.context_id
    WHERE v.deleted_at IS NULL AND v.subject_id IN (SELECT subject_id FROM changed)
    GROUP BY v.subject_id, c.registry_id
    ON CONFLICT (subject_id) DO UPDATE
    SET live_versions = excluded.live_versions, changed_at = excluded.changed_at
    WHERE (kept.live_versions, kept.changed_at) IS DISTINCT FROM (excluded.live_versions, excluded.changed_at);
    DELETE FROM subjects_subjectactivity a
    WHERE a.subject_id IN (SELECT subject_id FROM changed) AND NOT EXISTS (
        SELECT FROM subjects_schemaversion v WHERE v.subject_id = a.subject_id AND v.deleted_at IS NULL
    );
    RETURN NULL;
END $$"""


def keep_activity(event: str, rows: str) -> migrations.RunSQL:
    """The trigger of one kind of change, once a statement."""
    return migrations.RunSQL(
        f"CREATE TRIGGER keep_activity_{event} AFTER {event.upper()} ON subjects_schemaversion"
        f" REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION subjects_keep_activity()",
        f"DROP TRIGGER IF EXISTS keep_activity_{event} ON subjects_schemaversion",
    )


class Migration(migrations.Migration):
    """Registries and what is registered in them, what must hold between their rows, and how active a subject is."""

    initial = True
    replaces = [
        ("subjects", "0001_initial"),
        ("subjects", "0002_audit"),
        ("subjects", "0003_policy"),
        ("subjects", "0004_contracts"),
        ("subjects", "0005_remote"),
        ("subjects", "0006_associations"),
        ("subjects", "0007_standing"),
        ("subjects", "0008_audit_standing"),
        ("subjects", "0009_covering_indexes"),
        ("subjects", "0010_notes"),
        ("subjects", "0011_activity"),
        ("subjects", "0012_fewer_indexes"),
        ("subjects", "0013_identity_index"),
    ]
    dependencies = [("audit", "0001_tables")]
    operations = [
        CreateTables(
            migrations.CreateModel(
                name="Registry",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("project", models.CharField(max_length=63)),
                    ("location", models.CharField(max_length=63)),
                    ("name", models.CharField(max_length=255)),
                    (
                        "kind",
                        models.CharField(
                            choices=[("local", "local"), ("remote", "remote")], default="local", max_length=6
                        ),
                    ),
                    (
                        "url",
                        models.URLField(blank=True, help_text="base address of a remote registry", max_length=2048),
                    ),
                    (
                        "synced_at",
                        models.DateTimeField(blank=True, help_text="when it was last read as a whole", null=True),
                    ),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    ("user", models.CharField(blank=True, help_text="who signs in there", max_length=255)),
                    (
                        "secret",
                        models.CharField(
                            blank=True, help_text="name of the secret that signs in, not the secret", max_length=64
                        ),
                    ),
                    (
                        "every_seconds",
                        models.PositiveIntegerField(blank=True, help_text="how often it is mirrored", null=True),
                    ),
                    ("next_sync_at", models.DateTimeField(blank=True, null=True)),
                    ("sync_tag", models.CharField(blank=True, help_text="whose the sync is that runs", max_length=32)),
                    ("sync_lease_until", models.DateTimeField(blank=True, null=True)),
                    ("sync_error", models.TextField(blank=True)),
                    ("failing_since", models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(fields=("project", "location", "name"), name="one_registry"),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("kind", "local"), ("url", "")),
                                models.Q(("kind", "remote"), models.Q(("url", ""), _negated=True)),
                                _connector="OR",
                            ),
                            name="remote_registry_has_url",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("name", ""), _negated=True), name="registry_has_name"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("failing_since", None), ("sync_error", "")),
                                models.Q(models.Q(("sync_error", ""), _negated=True), ("failing_since__isnull", False)),
                                _connector="OR",
                            ),
                            name="failing_since_its_error",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Context",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("name", models.CharField(max_length=256)),
                    (
                        "next_schema_id",
                        models.PositiveIntegerField(default=1, help_text="ids are given once and never reused"),
                    ),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="contexts", to="subjects.registry"
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(fields=("registry", "name"), name="one_context"),
                        models.CheckConstraint(
                            condition=models.Q(("name__startswith", ".")), name="context_begins_with_dot"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("next_schema_id__gte", 1)), name="schema_ids_from_one"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Config",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("subject_name", models.CharField(blank=True, db_collation="C", max_length=1024, null=True)),
                    ("compatibility_level", models.CharField(blank=True, max_length=20, null=True)),
                    ("normalize", models.BooleanField(blank=True, null=True)),
                    (
                        "alias",
                        models.TextField(blank=True, help_text="the subject that calls for this one mean", null=True),
                    ),
                    ("compatibility_group", models.TextField(blank=True, null=True)),
                    ("default_metadata", models.JSONField(blank=True, null=True)),
                    ("override_metadata", models.JSONField(blank=True, null=True)),
                    ("default_rule_set", models.JSONField(blank=True, null=True)),
                    ("override_rule_set", models.JSONField(blank=True, null=True)),
                    (
                        "profile",
                        models.CharField(blank=True, help_text="whose verdict counts", max_length=16, null=True),
                    ),
                    (
                        "context",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="subjects.context",
                        ),
                    ),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to="subjects.registry"
                        ),
                    ),
                    (
                        "policy",
                        models.CharField(
                            blank=True, help_text="rules that hold beside the level", max_length=32, null=True
                        ),
                    ),
                    ("alias_for_deks", models.TextField(blank=True, null=True)),
                    (
                        "validate_fields",
                        models.BooleanField(
                            blank=True, help_text="reserved fields stay reserved and unused", null=True
                        ),
                    ),
                    ("validate_new_schemas", models.BooleanField(blank=True, null=True)),
                    ("validate_rules", models.BooleanField(blank=True, null=True)),
                    ("compatibility_policy", models.CharField(blank=True, max_length=16, null=True)),
                ],
                options={
                    "abstract": False,
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("registry", "context", "subject_name"),
                            name="one_config_a_scope",
                            nulls_distinct=False,
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("subject_name", None), ("context__isnull", False), _connector="OR"),
                            name="config_of_a_subject_has_a_context",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("compatibility_level", None),
                                (
                                    "compatibility_level__in",
                                    (
                                        "NONE",
                                        "BACKWARD",
                                        "BACKWARD_TRANSITIVE",
                                        "FORWARD",
                                        "FORWARD_TRANSITIVE",
                                        "FULL",
                                        "FULL_TRANSITIVE",
                                    ),
                                ),
                                _connector="OR",
                            ),
                            name="known_level",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("profile", None), ("profile__in", ("confluent", "semantic")), _connector="OR"
                            ),
                            name="known_profile",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("policy", None),
                                ("policy__in", ("none", "oracle_nosql", "oracle_nosql_lenient")),
                                _connector="OR",
                            ),
                            name="known_policy",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Schema",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("schema_id", models.PositiveIntegerField()),
                    (
                        "schema_type",
                        models.CharField(
                            choices=[("AVRO", "AVRO"), ("PROTOBUF", "PROTOBUF"), ("JSON", "JSON")], max_length=8
                        ),
                    ),
                    ("canonical", models.TextField()),
                    ("identity", models.CharField(max_length=64)),
                    (
                        "fingerprint",
                        models.CharField(help_text="equal in every registry that has the schema", max_length=64),
                    ),
                    ("guid", models.UUIDField(db_index=True)),
                    ("metadata", models.JSONField(blank=True, null=True)),
                    ("rule_set", models.JSONField(blank=True, null=True)),
                    ("imported", models.BooleanField(default=False, help_text="its id was given by an import")),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "context",
                        models.ForeignKey(
                            db_index=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="schemas",
                            to="subjects.context",
                        ),
                    ),
                ],
                options={
                    "indexes": [
                        models.Index(fields=["id"], include=("fingerprint", "schema_id"), name="schema_without_text"),
                        models.Index(fields=["fingerprint"], name="schema_by_fingerprint"),
                        models.Index(fields=["identity"], name="schema_by_identity"),
                    ],
                    "constraints": [
                        models.UniqueConstraint(fields=("context", "schema_id"), name="one_schema_id"),
                        models.UniqueConstraint(
                            condition=models.Q(("imported", False)),
                            fields=("context", "identity"),
                            name="one_id_a_definition",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("schema_type__in", ("AVRO", "PROTOBUF", "JSON"))),
                            name="known_schema_type",
                        ),
                        models.CheckConstraint(condition=models.Q(("schema_id__gte", 1)), name="schema_id_from_one"),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Subject",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("name", models.CharField(db_collation="C", max_length=1024)),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "context",
                        models.ForeignKey(
                            db_index=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="subjects",
                            to="subjects.context",
                        ),
                    ),
                ],
                options={
                    "constraints": [models.UniqueConstraint(fields=("context", "name"), name="one_subject")],
                },
            ),
            migrations.CreateModel(
                name="SchemaVersion",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("version", models.PositiveIntegerField()),
                    ("submitted", models.TextField()),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    ("created_by", models.TextField()),
                    ("door", models.CharField(max_length=16)),
                    ("deleted_at", models.DateTimeField(blank=True, null=True)),
                    (
                        "schema",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="subjects.schema"
                        ),
                    ),
                    (
                        "subject",
                        models.ForeignKey(
                            db_index=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="versions",
                            to="subjects.subject",
                        ),
                    ),
                    (
                        "imported",
                        models.BooleanField(
                            db_default=False, default=False, help_text="its number was given by an import"
                        ),
                    ),
                ],
                options={
                    "indexes": [
                        models.Index(
                            condition=models.Q(("deleted_at", None)),
                            fields=["subject", "-version"],
                            include=("schema", "id"),
                            name="newest_live_version",
                        )
                    ],
                    "constraints": [
                        models.UniqueConstraint(fields=("subject", "version"), name="one_version"),
                        models.CheckConstraint(condition=models.Q(("version__gte", 1)), name="versions_from_one"),
                        models.UniqueConstraint(
                            condition=models.Q(("deleted_at", None), ("imported", False)),
                            fields=("subject", "schema"),
                            name="one_live_version_a_schema",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="SchemaReference",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("position", models.PositiveSmallIntegerField()),
                    ("name", models.TextField()),
                    ("subject_name", models.TextField(help_text="as it was written, which may name another context")),
                    (
                        "schema",
                        models.ForeignKey(
                            db_index=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="references",
                            to="subjects.schema",
                        ),
                    ),
                    (
                        "target",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="referrers",
                            to="subjects.schemaversion",
                        ),
                    ),
                ],
                options={
                    "ordering": ["position"],
                    "constraints": [
                        models.UniqueConstraint(fields=("schema", "position"), name="one_reference_a_position")
                    ],
                },
            ),
            migrations.CreateModel(
                name="Mode",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("subject_name", models.CharField(blank=True, db_collation="C", max_length=1024, null=True)),
                    ("mode", models.CharField(max_length=20)),
                    (
                        "context",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="subjects.context",
                        ),
                    ),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="+", to="subjects.registry"
                        ),
                    ),
                ],
                options={
                    "abstract": False,
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("registry", "context", "subject_name"),
                            name="one_mode_a_scope",
                            nulls_distinct=False,
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("subject_name", None), ("context__isnull", False), _connector="OR"),
                            name="mode_of_a_subject_has_a_context",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("mode__in", ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"))),
                            name="known_mode",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Association",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("guid", models.UUIDField(unique=True)),
                    ("resource_namespace", models.CharField(db_collation="C", max_length=256)),
                    ("resource_name", models.CharField(db_collation="C", max_length=256)),
                    ("resource_id", models.CharField(db_collation="C", max_length=1024)),
                    ("resource_type", models.CharField(choices=[("topic", "topic")], max_length=16)),
                    ("association_type", models.CharField(choices=[("key", "key"), ("value", "value")], max_length=8)),
                    ("lifecycle", models.CharField(choices=[("STRONG", "STRONG"), ("WEAK", "WEAK")], max_length=6)),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    ("updated_at", models.DateTimeField(auto_now=True)),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="associations",
                            to="subjects.registry",
                        ),
                    ),
                    (
                        "subject",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.RESTRICT,
                            related_name="associations",
                            to="subjects.subject",
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("registry", "resource_id", "resource_type", "association_type"),
                            name="one_association_a_resource_id",
                        ),
                        models.UniqueConstraint(
                            fields=(
                                "registry",
                                "resource_namespace",
                                "resource_name",
                                "resource_type",
                                "association_type",
                                "subject",
                            ),
                            name="one_association_a_name",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("lifecycle", "STRONG")), fields=("subject",), name="one_owner_a_subject"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("lifecycle__in", ("STRONG", "WEAK"))), name="known_lifecycle"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("association_type__in", ("key", "value"))),
                            name="known_association_type",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("resource_id", ""), _negated=True), name="association_has_resource_id"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="VersionStanding",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("standing", models.CharField(max_length=16)),
                    ("message", models.TextField()),
                    ("ends_at", models.DateTimeField(blank=True, null=True)),
                    ("decided_by", models.TextField()),
                    ("decided_at", models.DateTimeField(auto_now=True)),
                    (
                        "version",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="standing",
                            to="subjects.schemaversion",
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("standing__in", ("deprecated", "retired", "quarantined"))),
                            name="known_standing",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("message", ""), _negated=True), name="standing_says_why"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="SubjectNote",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "tags",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                        ),
                    ),
                    ("doc", models.TextField(blank=True)),
                    ("updated_at", models.DateTimeField(auto_now=True)),
                    ("updated_by", models.TextField()),
                    (
                        "subject",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE, related_name="note", to="subjects.subject"
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.CheckConstraint(condition=models.Q(("tags__len__lte", 32)), name="note_has_few_tags"),
                        models.CheckConstraint(
                            condition=django.db.models.lookups.LessThanOrEqual(
                                django.db.models.functions.text.Length("doc"), 20000
                            ),
                            name="note_is_short",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("doc", ""), ("tags", []), _negated=True), name="note_says_something"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="SubjectActivity",
                fields=[
                    (
                        "subject",
                        models.OneToOneField(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.DO_NOTHING,
                            primary_key=True,
                            related_name="activity",
                            serialize=False,
                            to="subjects.subject",
                        ),
                    ),
                    ("registry_id", models.BigIntegerField()),
                    ("live_versions", models.PositiveIntegerField()),
                    ("changed_at", models.DateTimeField()),
                ],
                options={
                    "indexes": [
                        models.Index(fields=["registry_id", "-changed_at", "subject"], name="subjects_by_change")
                    ],
                },
            ),
        ),
        *keep_invariants(),
        migrations.RunSQL(KEEP_ACTIVITY, "DROP FUNCTION IF EXISTS subjects_keep_activity()"),
        *(keep_activity(event, rows) for event, rows in EVENTS.items()),
        audit_table("subjects_registry", events=f"INSERT OR UPDATE OF {DECIDED} OR DELETE"),
        audit_table("subjects_context", events="INSERT OR UPDATE OF registry_id, name OR DELETE"),
        audit_table("subjects_subject"),
        audit_table("subjects_schema"),
        audit_table("subjects_schemaversion"),
        audit_table("subjects_schemareference"),
        audit_table("subjects_config"),
        audit_table("subjects_mode"),
        audit_table("subjects_association"),
        audit_table("subjects_versionstanding"),
        audit_table("subjects_subjectnote"),
        tell("subjects_registry", REGISTRY),
        tell("subjects_context"),
        tell("subjects_subject"),
        tell("subjects_schema"),
        tell("subjects_schemaversion"),
        tell("subjects_schemareference"),
        tell("subjects_config"),
        tell("subjects_mode"),
        tell("subjects_association"),
        tell("subjects_versionstanding"),
    ]
