"""How long the groups of tests take that go to a worker together, so that the longest begin first.

`weights.json` has seconds by group, measured by `manage.py test --weigh`; a group that isn't there weighs what so many
tests usually do. Only the order depends on it: a wrong weight costs time and nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "weights.json"
USUAL = 0.2  # seconds of a test
LIGHTEST = 5  # seconds of a group that is written down


def group_of(item: pytest.Item) -> str:
    """The group that the test goes to a worker with."""
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker else item.nodeid


def longest_first(items: list[pytest.Item], weights: dict[str, float]) -> list[pytest.Item]:
    """The tests by the weight of their groups; those of a group stay together and in their order."""
    counts = Counter(map(group_of, items))
    weight = {group: weights.get(group, USUAL * count) for group, count in counts.items()}
    return sorted(items, key=lambda item: (-weight[group_of(item)], group_of(item)))


def read() -> dict[str, float]:
    """The weights that were measured last."""
    found: dict[str, float] = json.loads(FILE.read_text())
    return found


class Weigher:
    """A plugin of the process that shares out the tests: writes `weights.json` when all have passed."""

    def __init__(self, path: Path = FILE) -> None:
        self.path = path
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds a test's setup, call or teardown to its group."""
        self.seconds[report.nodeid.rpartition("@")[2]] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Writes the groups that weigh something, the heaviest first."""
        if exitstatus == pytest.ExitCode.OK:
            heavy = {group: round(took) for group, took in self.seconds.most_common() if took >= LIGHTEST}
            self.path.write_text(json.dumps(heavy, indent=1, ensure_ascii=False) + "\n")
