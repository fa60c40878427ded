"""Finding the checkpoints of one query or of many, within bounds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from registry.checkpoints import Bounds, find_checkpoints
from registry.errors import InvalidCheckpoint

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for place, name in (
        ("a/orders", "customer_totals"),
        ("a/clicks", "dedup_rocksdb"),
        ("b/2026/joined", "join_rocksdb"),
    ):
        shutil.copytree(FIXTURES / name, tmp_path / "lake" / place)
    (tmp_path / "lake/tables/orders/day=1").mkdir(parents=True)
    (tmp_path / "lake/tables/orders/day=1/part-0.parquet").touch()
    return tmp_path / "lake"


def names(lake: Path, bounds: Bounds | None = None) -> list[str]:
    discovery = find_checkpoints(str(lake), [lake], bounds=bounds)
    return [str(Path(each.path).relative_to(lake)) for each in discovery.found]


def test_every_checkpoint_below_a_folder_is_found_and_read(lake: Path) -> None:
    discovery = find_checkpoints(str(lake), [lake])
    assert names(lake) == ["a/clicks", "a/orders", "b/2026/joined"]
    assert (discovery.ended_early, discovery.passed_over) == (None, ())
    assert all(each.checkpoint is not None and each.refused is None for each in discovery.found)
    orders = discovery.found[1].checkpoint
    assert orders is not None
    assert (orders.topics, orders.last_committed_batch) == (("orders",), 4)


def test_one_query_is_found_at_the_path_itself_and_nothing_inside_it(lake: Path) -> None:
    shutil.copytree(FIXTURES / "limit", lake / "a/orders/state/inner")
    (only,) = find_checkpoints(str(lake / "a/orders"), [lake]).found
    assert only.path == str(lake / "a/orders")


def test_a_damaged_checkpoint_is_beside_the_good_ones_with_its_reason(lake: Path) -> None:
    (lake / "a/clicks/offsets/0").write_text("v9\n")
    found = find_checkpoints(str(lake), [lake]).found
    assert [each.checkpoint is None for each in found] == [True, False, False]
    assert "offsets/0 starts with 'v9'" in (found[0].refused or "")


@pytest.mark.parametrize(
    ("bounds", "found", "words"),
    [
        (Bounds(checkpoints=2), 2, "more than 2 checkpoints"),
        (Bounds(depth=2), 2, "folders more than 2 levels deep"),
        (Bounds(folders=1), 0, "more than 1 folders"),
        (Bounds(seconds=0), 0, "more than 0 s"),
    ],
)
def test_a_bound_ends_the_search_and_is_named(lake: Path, bounds: Bounds, found: int, words: str) -> None:
    discovery = find_checkpoints(str(lake), [lake], bounds=bounds)
    assert len(discovery.found) == found
    assert discovery.ended_early == words


def test_links_lead_neither_in_circles_nor_outside(lake: Path) -> None:
    shutil.copytree(FIXTURES / "limit", lake.parent / "secret/query")
    (lake / "a/again").symlink_to(lake)
    (lake / "a/also").symlink_to(lake / "a/orders")
    (lake / "b/out").symlink_to(lake.parent / "secret")
    discovery = find_checkpoints(str(lake), [lake])
    resolved = {Path(each.path).resolve() for each in discovery.found}
    assert len(discovery.found) == len(resolved) == 3
    assert discovery.passed_over == (f"b/out: {_outside(lake)}",)


def _outside(lake: Path) -> str:
    with pytest.raises(InvalidCheckpoint) as caught:
        find_checkpoints(str(lake.parent / "secret"), [lake])
    return caught.value.message


def test_a_folder_that_is_not_there_is_an_error(lake: Path) -> None:
    with pytest.raises(InvalidCheckpoint, match="doesn't exist"):
        find_checkpoints(str(lake / "missing"), [lake])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_may_not_be_listed_is_passed_over(lake: Path) -> None:
    (lake / "b").chmod(0)
    try:
        assert "can't be listed" in find_checkpoints(str(lake), [lake]).passed_over[0]
    finally:
        (lake / "b").chmod(0o755)
