"""What is replayed for tests leaves what the product's own services leave."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import connection, transaction

from registry.access.roles import Actor
from tests.conftest import made_registries
from tests.replaying import Replayed
from tests.services_plugin import KEPT

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\"]*")


def contents() -> dict[str, list[Any]]:
    """Table → its rows without their moments, and without the numbers of what the audit says, of all tables."""
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(set(connection.introspection.table_names(cursor)) - KEPT):
            cursor.execute(f"SELECT to_jsonb(t) FROM {connection.ops.quote_name(table)} t")
            rows = [json.loads(MOMENT.sub("then", row)) for (row,) in cursor.fetchall()]
            if table == "audit_auditevent":
                rows = [{name: value for name, value in row.items() if name != "id"} for row in rows]
            found[table] = sorted(rows, key=str)
    return found


@pytest.mark.django_db
def test_the_registries_are_those_that_the_service_makes(system: Actor) -> None:
    made = Replayed(lambda: made_registries(system))
    found = []
    for _ in range(2):
        with transaction.atomic():
            made()
            found.append(contents())
            transaction.set_rollback(True)
    assert made.statements, "the second time they were replayed"
    assert sum(map(len, found[0].values())) > 10
    assert found[0] == found[1]
