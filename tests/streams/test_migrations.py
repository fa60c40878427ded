"""What migrations make of checks that were kept before."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.db import connection

from registry.streams.models import StateCheck
from registry.streams.selectors import get_state_check
from tests.services_plugin import as_owner

ROOT = Path(__file__).parents[2]
DOCUMENTED = jsonschema_rs.validator_for(json.loads((ROOT / "docs/reference/state-check.schema.json").read_text()))
OLD: dict[str, Any] = {
    "checkpoint": "/c", "query_id": "q", "last_batch": 3, "language": "python", "verdict": "no evolution possible",
    "sentence": "No evolution is possible here: this operator's state keeps its schema.", "starts": True, "error": "",
    "error_message": "", "files": None, "changes": [], "settings": [], "notes": [],
    "operator": {"number": 2, "name": "dedupe", "description": "dropDuplicates", "encoding": "unsaferow", "why_fixed": "x"},
    "variables": [
        {"name": "the state", "kind": "operator", "ttl": False, "status": "unchanged", "sentence": "Nothing changes.",
         "error": "", "stored": "a INT", "planned": None, "user_key": None, "place": "", "budget": None, "changes": []},
    ],
    "texts": {"text": "no evolution possible: No evolution is possible here: this operator's state keeps its schema."},
}  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_reports_of_other_operators_become_not_checked() -> None:
    module = importlib.import_module("registry.streams.migrations.0002_not_checked")
    fine = StateCheck.objects.create(
        checkpoint="/f", query_id="q", verdict="fine", plan="{}", report={"verdict": "fine"}
    )
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE streams_statecheck DROP CONSTRAINT known_state_verdict")
        row = StateCheck.objects.create(checkpoint="/c", query_id="q", verdict=OLD["verdict"], plan="{}", report=OLD)
        cursor.execute(module.RENAME)
        cursor.execute(module.COMPLETE)
        cursor.execute(
            "ALTER TABLE streams_statecheck ADD CONSTRAINT known_state_verdict CHECK (verdict IN"
            " ('fine', 'loses data', 'fails later', 'refused', 'not checked'))"
        )
    info = get_state_check(row.pk)
    DOCUMENTED.validate(info.report)
    assert (info.verdict, info.report["verdict"], info.report["starts"]) == ("not checked", "not checked", None)
    assert info.report["not_checked"] == ["operator 2 (dropDuplicates)"]
    assert [each["status"] for each in info.report["variables"]] == ["not checked"]
    assert info.text == "not checked"
    fine.refresh_from_db()
    assert fine.report == {"verdict": "fine", "not_checked": []}
