"""The groups of tests that take longest begin first."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import weights
from tests.conftest import SHARED


def item(group: str, name: str) -> Any:
    return SimpleNamespace(nodeid=f"{name}@{group}", get_closest_marker=lambda _: SimpleNamespace(args=(group,)))


def test_the_heaviest_group_is_first_and_each_stays_together_in_its_order() -> None:
    given = [
        item("light", "a"),
        item("many", "b"),
        item("spark", "c"),
        *(item("many", str(at)) for at in range(99)),
        item("spark", "d"),
    ]
    found = [each.nodeid for each in weights.longest_first(given, {"spark": 900.0, "light": 1.0})]
    assert found[:3] == ["c@spark", "d@spark", "b@many"]
    assert found[-1] == "a@light"
    assert len(found) == len(given)


def test_what_is_weighed_is_there() -> None:
    here = Path(__file__).parent
    gone = [group for group in weights.read() if group not in (*SHARED, "whole") and not (here / group).is_file()]
    assert gone == [], "run manage.py test --weigh, or take them off tests/weights.json"


@pytest.mark.parametrize("status", [pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED])
def test_weights_are_written_when_all_have_passed(tmp_path: Path, status: pytest.ExitCode) -> None:
    path = tmp_path / "weights.json"
    weigher = weights.Weigher(path)
    for nodeid, took in (("x.py::a[q@z]@spark", 7.0), ("x.py::b@light", 1.0), ("x.py::c@spark", 4.4)):
        weigher.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, duration=took))  # type: ignore[arg-type]
    weigher.pytest_sessionfinish(status)
    assert path.exists() is (status == pytest.ExitCode.OK)
    if path.exists():
        assert json.loads(path.read_text()) == {"spark": 11}
