"""One account of a name ignoring case, as at the sign-in."""

import logging
from typing import Any

import django.db.models.functions.text
from django.db import migrations, models

CONSTRAINT = models.UniqueConstraint(
    django.db.models.functions.text.Lower("username"), name="one_username_ignoring_case"
)
PAIRS = """
SELECT id, username FROM access_user
WHERE lower(username) IN (SELECT lower(username) FROM access_user GROUP BY 1 HAVING count(*) > 1)
ORDER BY lower(username), username
"""
logger = logging.getLogger(__name__)


def make_index(apps: Any, schema_editor: Any) -> None:
    """Make the unique index; accounts whose names differ only in case stay, outside of it."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(PAIRS)
        pairs = cursor.fetchall()
    without = ""
    if pairs:
        without = f" WHERE id NOT IN ({', '.join(str(number) for number, _ in pairs)})"
        names = ", ".join(name for _, name in pairs)
        logger.warning("These usernames differ only in case: %s. Deactivate those that nobody needs.", names)
    schema_editor.execute(f"CREATE UNIQUE INDEX one_username_ignoring_case ON access_user (lower(username)){without}")


def drop_index(apps: Any, schema_editor: Any) -> None:
    """Drop the index, however many accounts it has."""
    schema_editor.execute("DROP INDEX one_username_ignoring_case")


class Migration(migrations.Migration):
    """An index that also copes with existing pairs."""

    dependencies = [("access", "0004_session_epoch")]
    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(make_index, drop_index)],
            [migrations.AddConstraint("user", CONSTRAINT)],
        ),
    ]
