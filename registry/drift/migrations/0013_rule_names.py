"""Rules, keys of evidence and help texts get names that an engineer would search for."""

import json

from django.db import migrations, models

#: a rule's former id → its present id; fingerprints of findings keep the former one
NAMES = {
    "ID_BELOW_LEAST": "ID_BELOW_MINIMUM_VERSION",
    "FRAME_CUT": "FRAME_TRUNCATED",
    "FIELD_KIND_WRONG": "FIELD_TYPE_WRONG",
    "FIELD_KIND_NEW": "FIELD_TYPE_NEW",
    "NULL_SHARE_ROSE": "NULL_SHARE_INCREASED",
    "VALUE_RANGE_LEFT": "VALUES_OUT_OF_RANGE",
    "STATE_DEPARTS": "STATE_DIFFERS_FROM_SUBJECT",
    "STATE_FIELDS_MEANING_CHANGED": "STATE_FIELD_TYPE_CHANGED",
    "STATE_TYPE_NOT_READ_BACK": "STATE_TYPE_UNREADABLE",
    "TOPICS_CLASH": "TOPIC_NAMES_COLLIDE",
    "SCHEMA_NAMES_MEET": "SCHEMA_NAMES_COLLIDE",
    "FIELDS_MEET": "FIELD_NAMES_COLLIDE",
    "NAME_NOT_AVRO": "NAME_INVALID_IN_AVRO",
    "WRITES_REFUSED": "REPLICA_IDENTITY_MISSING",
    "KEYS_WRONG": "DELETE_KEYS_WRONG",
    "KEY_MISSING": "TABLE_WITHOUT_KEY",
    "KEY_WEAK": "KEY_NOT_UNIQUE",
    "COLUMN_NOT_CARRIED": "COLUMN_NOT_IN_EVENTS",
    "ARRAY_LOST": "ARRAY_ARRIVES_AS_NULL",
    "DELETES_STAY": "TOMBSTONES_NOT_WRITTEN",
    "TABLE_GONE": "TABLE_DROPPED",
    "SHAPE_UNREADABLE": "SCHEMA_NOT_COMPARED",
    "PARTITIONS_PUBLISHED_APART": "PARTITIONS_PUBLISHED_SEPARATELY",
    "COLUMN_RETYPED": "COLUMN_TYPE_CHANGED",
    "COLUMN_SCALED": "COLUMN_SCALE_CHANGED",
    "COLUMN_RELABELLED": "COLUMN_ENUM_CHANGED",
    "COLUMN_NULLABILITY": "COLUMN_NULLABILITY_CHANGED",
    "COLUMN_DEFAULT": "COLUMN_DEFAULT_CHANGED",
    "KEY_LOST": "KEY_REMOVED",
    "NEXT_ROW_REFUSED": "NEXT_ROW_REJECTED",
}
RULES = "UPDATE drift_finding SET rule = value FROM jsonb_each_text(%s::jsonb) WHERE rule = key"
RULES_IN_EVIDENCE = """
UPDATE drift_finding SET evidence = jsonb_set(evidence, '{rule}', to_jsonb(value))
FROM jsonb_each_text(%s::jsonb) WHERE evidence->>'rule' = key
"""
MUTES = "UPDATE drift_mute SET rule = value FROM jsonb_each_text(%s::jsonb) WHERE rule = key"
#: a pattern that no longer matches a renamed rule mutes it by a row of its own
MUTES_BY_PATTERN = r"""
WITH pattern AS (
    SELECT *, translate(regexp_replace(rule, '([\\%%_])', '\\\1', 'g'), '*?', '%%_') AS matching
    FROM drift_mute WHERE rule ~ '[*?]')
INSERT INTO drift_mute (registry_id, rule, subject, location, reason, until, created_at, created_by)
SELECT registry_id, value, subject, location, reason, until, created_at, created_by
FROM pattern JOIN jsonb_each_text(%s::jsonb) ON key LIKE matching AND value NOT LIKE matching
"""
EVIDENCE = """
UPDATE drift_finding SET evidence = evidence - 'standing' - 'least'
    || jsonb_build_object('status', replace(evidence->>'standing', 'the least version', 'the minimum version'))
    || CASE WHEN evidence ? 'least' THEN jsonb_build_object('minimum_version', evidence->'least') ELSE '{}' END
WHERE evidence ? 'standing'
"""
SQL = [
    *((statement, [json.dumps(NAMES)]) for statement in (RULES, RULES_IN_EVIDENCE, MUTES, MUTES_BY_PATTERN)),
    EVIDENCE,
]


class Migration(migrations.Migration):
    dependencies = [
        ("drift", "0012_last_rows"),
    ]

    operations = [
        migrations.RunSQL(SQL, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="cluster",
            name="secret",
            field=models.CharField(blank=True, help_text="the name of the stored password", max_length=64),
        ),
        migrations.AlterField(
            model_name="finding",
            name="acknowledged_until",
            field=models.DateTimeField(blank=True, help_text="when it reopens", null=True),
        ),
        migrations.AlterField(
            model_name="finding",
            name="cause",
            field=models.TextField(blank=True, help_text="the likely cause, from the evidence"),
        ),
        migrations.AlterField(
            model_name="finding",
            name="detector",
            field=models.PositiveSmallIntegerField(blank=True, help_text="the detector that found it first", null=True),
        ),
        migrations.AlterField(
            model_name="finding",
            name="muted",
            field=models.BooleanField(
                default=False, help_text="a mute hides it: stored and counted, but not listed as open"
            ),
        ),
        migrations.AlterField(
            model_name="finding",
            name="rebaselined_from",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="the detector of the scans before, if a newer detector caused the finding",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="finding",
            name="subject_name",
            field=models.TextField(blank=True, db_index=True, help_text="the affected subject, if there is one"),
        ),
        migrations.AlterField(
            model_name="minimumversion",
            name="set_at",
            field=models.DateTimeField(help_text="when the minimum was set"),
        ),
        migrations.AlterField(
            model_name="scan",
            name="detector",
            field=models.PositiveSmallIntegerField(
                blank=True, help_text="the version of the detector; null: versions were not stored yet", null=True
            ),
        ),
        migrations.AlterField(
            model_name="scan",
            name="postponed",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="attempts that ended because a server was unavailable"
            ),
        ),
        migrations.AlterField(
            model_name="scan",
            name="retry_at",
            field=models.DateTimeField(
                blank=True, help_text="no attempt before then: a server was unavailable", null=True
            ),
        ),
        migrations.AlterField(
            model_name="scan",
            name="tag",
            field=models.CharField(blank=True, help_text="the Spark tag that interrupts its work", max_length=64),
        ),
        migrations.AlterField(
            model_name="schemause",
            name="schema_id",
            field=models.BigIntegerField(
                db_index=True, help_text="the schema id that the mark means, if known", null=True
            ),
        ),
        migrations.AlterField(
            model_name="source",
            name="clean_scans",
            field=models.PositiveSmallIntegerField(default=2, help_text="clean scans in a row that resolve a finding"),
        ),
        migrations.AlterField(
            model_name="source",
            name="context",
            field=models.CharField(
                blank=True, help_text="the context of the schema ids in the messages", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="source",
            name="name",
            field=models.CharField(help_text="the name that people see; for a checkpoint its path", max_length=1024),
        ),
        migrations.AlterField(
            model_name="source",
            name="tail_messages",
            field=models.PositiveIntegerField(default=10000, help_text="mode tail: messages per partition"),
        ),
        migrations.AlterField(
            model_name="source",
            name="window_seconds",
            field=models.PositiveIntegerField(default=86400, help_text="mode window: how far back"),
        ),
        migrations.AlterField(
            model_name="topic",
            name="cluster_id",
            field=models.CharField(
                blank=True, help_text="the cluster's id of the topic; a recreated topic has another", max_length=36
            ),
        ),
        migrations.AlterField(
            model_name="topic",
            name="gone_at",
            field=models.DateTimeField(help_text="since when the cluster no longer has it", null=True),
        ),
        migrations.AlterField(
            model_name="topic",
            name="last_rows",
            field=models.JSONField(default=dict, help_text="fields and table of its newest change events"),
        ),
        migrations.AlterField(
            model_name="topic",
            name="read_from",
            field=models.JSONField(default=dict, help_text="partition → the offset since which every message was read"),
        ),
        migrations.AlterField(
            model_name="topic",
            name="retention_ms",
            field=models.BigIntegerField(help_text="-1: unlimited; null: unknown", null=True),
        ),
    ]
