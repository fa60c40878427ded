"""Patterns have no sets of characters (`[ab]`) any more; stored ones are written anew, and never match more than before.

What a set allows becomes one pattern for each character. Where that isn't possible (`[!a]`, long sets, a token), the pattern
stays as it is and matches nothing: it gives no right, and the pages still list it. A review rule is the exception: it
restricts, so its sets become `?`, and it applies to more subjects than before.
"""

import re
from itertools import product
from typing import Any

from django.db import migrations

from registry.access.roles import system_actor
from registry.audit.context import record

MOST = 64
SET = re.compile(r"\[([^\]!^\[*?%,-]+)\]")
ANY_SET = re.compile(r"\[!?+\]?+[^\]]*\]")
#: tables whose rows are independent of one another, and the columns with patterns
COPIED = [
    ("access", "RoleGrant", ("subject_pattern",)),
    ("access", "GroupGrant", ("subject_pattern",)),
    ("access", "Ownership", ("subject_pattern",)),
    ("notifications", "Subscription", ("registry_pattern", "subject_pattern")),
    ("drift", "Mute", ("rule", "subject", "location")),
]


def without_sets(pattern: str) -> list[str]:
    """The patterns that together match the same names; none if there are too many, or if that isn't certain."""
    parts = SET.split(re.sub(r"\[([A-Za-z0-9])-([A-Za-z0-9])\]", _letters, pattern))
    if any("[" in part for part in parts[::2]):
        return []
    choices = [sorted(set(part)) if index % 2 else [part] for index, part in enumerate(parts)]
    count = 1
    for choice in choices:
        count *= len(choice)
    return ["".join(chosen) for chosen in product(*choices)] if count <= MOST else []


def _letters(match: re.Match[str]) -> str:
    """A range as its characters."""
    return f"[{''.join(map(chr, range(ord(match[1]), ord(match[2]) + 1)))}]"


def replace_sets(apps: Any, schema_editor: Any) -> None:
    """Write the stored patterns anew."""
    record(by=system_actor("migrate", "command"), why="replace sets of characters in patterns")
    for app, model, columns in COPIED:
        for column in columns:
            rows = apps.get_model(app, model)
            for row in rows.objects.filter(**{f"{column}__contains": "["}):
                _copy(rows, row, column, without_sets(getattr(row, column)))
    rules = apps.get_model("promotions", "ReviewRule")
    for rule in rules.objects.filter(subject_pattern__contains="["):
        wider = ANY_SET.sub("?", rule.subject_pattern).replace("[", "?")
        same = rules.objects.filter(subject_pattern=wider).filter(
            environment=rule.environment, verdict=rule.verdict, reviewers=rule.reviewers, name=rule.name
        )
        if other := same.first():
            rule.count = max(rule.count, other.count)
            other.delete()
        rule.subject_pattern = wider
        rule.save()


def _copy(rows: Any, row: Any, column: str, patterns: list[str]) -> None:
    if not patterns:
        return
    key = row.pk
    copies = []
    for pattern in patterns:
        row.pk, row._state.adding = None, True
        setattr(row, column, pattern)
        copies.append(rows(**{field.attname: getattr(row, field.attname) for field in rows._meta.concrete_fields}))
    rows.objects.bulk_create(copies, ignore_conflicts=True)
    rows.objects.filter(pk=key).delete()


class Migration(migrations.Migration):
    """Of all apps with patterns at once, so that the rule is in one place."""

    dependencies = [
        ("access", "0002_identities"),
        ("notifications", "0004_job_runs"),
        ("drift", "0006_scans_that_go_on"),
        ("promotions", "0008_environment_changes"),
    ]
    operations = [migrations.RunPython(replace_sets, migrations.RunPython.noop, elidable=True)]
