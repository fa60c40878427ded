"""Which tables and columns a connector captures, and which columns make its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.drift.debezium.filters import ColumnFilter, KeyColumns, TableFilter

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "filter_cases.yaml").read_text("utf-8"))
pytestmark = pytest.mark.requirement("DEB-7")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_filter(case: dict[str, Any]) -> None:
    tables, columns = TableFilter.read(case["config"]), ColumnFilter.read(case["config"])
    for name, verdict in case.get("tables", {}).items():
        assert tables.takes(*name.split(".")) is verdict, name
    for name, verdict in case.get("columns", {}).items():
        assert columns.takes(*name.split(".")) is verdict, name
    assert [*tables.doubts, *columns.doubts] == case.get("doubts", [])


def keys(setting: str) -> KeyColumns:
    return KeyColumns.read({"message.key.columns": setting})


def test_key_columns() -> None:
    columns = ["id", "code", "part"]
    assert keys("").of("public", "t", columns, ("id",)) == ("id",)
    assert keys("public.t:part,code").of("public", "t", columns, ("id",)) == ("part", "code")
    assert keys("public.x:code;(.*).t:code").of("public", "t", columns, ("id",)) == ("code",)
    assert keys("public.other:code").of("public", "t", columns, ()) == ()
    assert keys(r"(a)\1:code").of("public", "t", columns, ("id",)) is None
    assert keys(r"(a)\1:code").doubts


def test_a_list_of_too_many_patterns_is_said() -> None:
    tables = TableFilter.read({"table.include.list": ",".join(f"s.t{number}" for number in range(3000))})
    assert tables.takes("s", "t1") is None
    assert "more than" in tables.doubts[0]
