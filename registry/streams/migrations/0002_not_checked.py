"""The verdict on operators whose restarts aren't modelled is "not checked", and whether they start isn't known."""

from django.db import migrations, models

RENAME = """
UPDATE streams_statecheck SET verdict = 'not checked', report = report || jsonb_build_object(
    'verdict', 'not checked',
    'starts', NULL,
    'sentence', 'Not everything that the restart touches was checked: whether it is safe is not known.',
    'not_checked', jsonb_build_array(
        format('operator %s (%s)', report->'operator'->>'number', report->'operator'->>'description')),
    'variables', (
        SELECT coalesce(jsonb_agg(variable || jsonb_build_object(
            'status', 'not checked', 'sentence', 'Not checked: only state of transformWithState is.')), '[]')
        FROM jsonb_array_elements(report->'variables') AS variable),
    'texts', replace(replace(coalesce(report->'texts', '{}')::text,
        'no evolution possible: No evolution is possible here: this operator''s state keeps its schema.', 'not checked'),
        'no evolution possible', 'not checked')::jsonb)
WHERE verdict = 'no evolution possible'
"""
COMPLETE = """
UPDATE streams_statecheck SET report = report || jsonb_build_object('not_checked', jsonb_build_array())
WHERE NOT report ? 'not_checked'
"""


class Migration(migrations.Migration):
    """Reports that are kept say the same as new ones; there is nothing to take back."""

    dependencies = [("streams", "0001_tables")]

    operations = [
        migrations.RemoveConstraint(model_name="statecheck", name="known_state_verdict"),
        migrations.RunSQL(RENAME, migrations.RunSQL.noop),
        migrations.RunSQL(COMPLETE, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="statecheck",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ("fine", "loses data", "fails later", "refused", "not checked"))),
                name="known_state_verdict",
            ),
        ),
    ]
