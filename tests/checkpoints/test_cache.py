"""A checkpoint in which nothing was written isn't read again, and one in which anything was is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.checkpoints import ReadCache, read_checkpoint
from registry.checkpoints.entries import Entry
from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.read import _read

FIXTURES = Path(__file__).parent / "fixtures"
ALL = sorted(path.name for path in FIXTURES.iterdir())


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "c")
    return tmp_path / "c"


def test_what_did_not_change_is_not_read_again(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ReadCache()
    first = read_checkpoint(str(copied), [copied.parent], cache=cache)
    monkeypatch.setattr(CheckpointFiles, "read", lambda *_, **__: pytest.fail("a file was read"))
    assert read_checkpoint(str(copied), [copied.parent], cache=cache) is first


@pytest.mark.parametrize("name", ALL)
def test_every_file_that_is_read_stands_in_a_folder_that_was_listed(name: str) -> None:
    files = CheckpointFiles(str(FIXTURES / name), [FIXTURES])
    read: list[tuple[str, ...]] = []
    real = files.read
    files.read = lambda *parts, limit: (read.append(parts), real(*parts, limit=limit))[1]  # type: ignore[method-assign]
    _read(files, name)
    assert len(read) > 3
    assert [parts for parts in read if parts[:-1] not in files.listings] == []


def rewrite(path: Path) -> None:
    status = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


CHANGES: dict[str, Callable[[Path], object]] = {
    "a batch was planned": lambda c: shutil.copyfile(c / "offsets/4", c / "offsets/5"),
    "a batch was committed": lambda c: shutil.copyfile(c / "commits/4", c / "commits/5"),
    "an old batch was removed": lambda c: (c / "offsets/0").unlink(),
    "a schema file was written": lambda c: shutil.copyfile(
        next((c / "state/0/_stateSchema/default").glob("1_*")), c / "state/0/_stateSchema/default/5_a"
    ),
    "operator metadata was written": lambda c: shutil.copyfile(
        c / "state/0/_metadata/v2/1", c / "state/0/_metadata/v2/5"
    ),
    "a file was written again in the same size": lambda c: rewrite(c / "metadata"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_read_again(copied: Path, change: str) -> None:
    cache = ReadCache()
    first = read_checkpoint(str(copied), [copied.parent], cache=cache)
    CHANGES[change](copied)
    again = read_checkpoint(str(copied), [copied.parent], cache=cache)
    assert again is not first
    assert again == read_checkpoint(str(copied), [copied.parent])


def test_a_cache_opens_no_folder_that_is_not_allowed_any_more(copied: Path, tmp_path: Path) -> None:
    cache = ReadCache()
    read_checkpoint(str(copied), [tmp_path], cache=cache)
    with pytest.raises(Exception, match="outside"):
        read_checkpoint(str(copied), [tmp_path / "other"], cache=cache)


def test_a_cache_is_bounded() -> None:
    cache = ReadCache(checkpoints=1, total_bytes=10)
    entries = [Entry(f"{number}", False, 0, 6, "s") for number in range(3)]
    for entry in entries:
        cache.keep_content("p", (entry.name,), entry, b"123456")
    assert [cache.content("p", (entry.name,), entry) for entry in entries] == [None, None, b"123456"]
    cache.keep_content("p", ("2",), entries[2], b"654321")
    assert cache.content("p", ("2",), entries[2]) == b"654321"
    kept = read_checkpoint(str(FIXTURES / "limit"), [FIXTURES])
    for path in ("a", "b"):
        cache.keep_checkpoint(path, path, {}, kept)
    assert (cache.checkpoint("a", "a"), cache.checkpoint("b", "b")) == (None, ({}, kept))
