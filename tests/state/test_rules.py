"""Rules of a restart on checkpoints without rows; what real restarts do is in matrix.yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from registry.checkpoints.plans import StateCheck, check_state, plan_as_is, read_plan
from tests.checkpoints.writing import family, struct_type, v3, write_checkpoint

# a variable in the operator's metadata, which has JSON in a text of its JSON
CARTS = json.dumps(', {"stateName": "carts", "stateVariableType": "ValueState", "ttlEnabled": false}')[1:-1]
FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"


def check(path: Path, variables: list[dict[str, Any]]) -> StateCheck:
    return check_state(str(path), [path], read_plan({"variables": variables}))


@pytest.mark.requirement("DBX-3")
@pytest.mark.parametrize(
    ("name", "ttl", "status", "rule"),
    [
        ("last_visit", False, "accepted but loses data", "TTL_TURNED_OFF"),
        ("counts", False, "accepted but loses data", "TTL_TURNED_OFF"),
        ("pages", True, "accepted but loses data", "TTL_TURNED_ON_HIDES"),
    ],
)
def test_time_to_live_that_comes_or_goes(name: str, ttl: bool, status: str, rule: str) -> None:
    path = FIXTURES / "timers_and_ttl"
    variables = json.loads(plan_as_is(str(path), [path]))["variables"]
    for each in variables:
        if each["name"] == name:
            each["ttl"] = ttl
    found = check(path, variables)
    (variable,) = (each for each in found.variables if each.name == name)
    assert (variable.status, [change.rule for change in variable.changes]) == (status, [rule])
    assert found.verdict == "loses data"


@pytest.mark.requirement("DBX-3")
def test_a_variable_that_comes_back_as_another_kind(tmp_path: Path) -> None:
    totals, carts = (family(name, struct_type(orders="long")) for name in ("totals", "carts"))
    path = write_checkpoint(tmp_path / "checkpoint", [(0, v3(carts, totals)), (1, v3(totals))], ("totals", "carts"))
    metadata = path / "state/0/_metadata/v2"
    (metadata / "0").write_text((metadata / "1").read_text())
    newest = (metadata / "1").read_text()
    (metadata / "1").write_text(newest.replace(CARTS, ""))
    assert CARTS in newest
    found = check(
        path,
        [
            {"name": "totals", "value_schema": "orders BIGINT"},
            {"name": "carts", "kind": "list", "value_schema": "orders BIGINT"},
        ],
    )
    (variable,) = (each for each in found.variables if each.name == "carts")
    assert variable.status == "accepted but fails later"
    assert [change.rule for change in variable.changes] == ["CAME_BACK_AS_OTHER_KIND", "VARIABLE_CAME_BACK"]
    assert found.verdict == "fails later"
