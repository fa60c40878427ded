"""File systems of checkpoints: locations, hostile paths that lead out of the allowed folders, and the cache of what was read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import ReadCache, parse_location, read_checkpoint, why_rows_are_not_readable
from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.filesystem import FILE_SYSTEMS, Entry, as_spark_opens, location_of_root
from registry.checkpoints.reader import _read
from registry.errors import InvalidCheckpoint

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "allowed/query")
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "secret/query")
    return tmp_path / "allowed"


def refused(path: str | Path, allowed: Path) -> str:
    with pytest.raises(InvalidCheckpoint) as caught:
        read_checkpoint(str(path), [allowed])
    return caught.value.message


def test_what_lies_outside_is_refused_in_the_same_words_whether_it_is_there_or_not(allowed: Path) -> None:
    there = refused(allowed.parent / "secret/query", allowed)
    assert "outside the allowed folders" in there
    assert there == refused("/nowhere/at/all", allowed) == refused("file:///nowhere", allowed)
    assert there == refused(f"{allowed}2/query", allowed) == refused("/", allowed)
    assert str(allowed) not in there
    up = refused(allowed / "../secret/query", allowed)
    assert "contains '..'" in up
    assert up == refused(allowed / "../nowhere", allowed)


def test_no_allowed_root_allows_nothing(allowed: Path) -> None:
    with pytest.raises(InvalidCheckpoint, match="outside"):
        read_checkpoint(str(allowed / "query"), [])


@pytest.mark.parametrize("inside", [".", "state", "state/0/_stateSchema", "state/0/_metadata/v2", "offsets", "commits"])
def test_a_folder_that_links_outside_is_not_followed(allowed: Path, inside: str) -> None:
    target = allowed / "query" / inside
    shutil.rmtree(target)
    target.symlink_to(allowed.parent / "secret/query" / inside)
    assert "outside" in refused(allowed / "query", allowed)


@pytest.mark.parametrize("inside", ["metadata", "offsets/4", "state/0/_metadata/v2/1"])
def test_a_file_that_links_outside_is_not_followed(allowed: Path, inside: str) -> None:
    target = allowed / "query" / inside
    target.unlink()
    target.symlink_to(allowed.parent / "secret/query" / inside)
    assert "outside" in refused(allowed / "query", allowed)


def test_a_link_that_stays_inside_is_followed(allowed: Path) -> None:
    (allowed / "current").symlink_to(allowed / "query")
    assert read_checkpoint(str(allowed / "current"), [allowed]).path == str(allowed / "query")


def test_links_in_a_circle_end(allowed: Path) -> None:
    (allowed / "a").symlink_to(allowed / "b")
    (allowed / "b").symlink_to(allowed / "a")
    assert refused(allowed / "a", allowed)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "1 to 4096 characters"),
        ("/x\0y", "1 to 4096 characters"),
        ("/" + "x" * 5_000, "1 to 4096 characters"),
        ("/" + "x" * 4_000, "can't be followed"),
        ("query", "must start with /"),
        ("../secret/query", "must start with /"),
        ("s3://bucket/query", "checkpoints at s3: addresses are not allowed (allowed: file)"),
        ("simplecache::file:///tmp", "chained"),
        ("zip://a::file:///tmp/b", "chained"),
        ("http://127.0.0.1/", "checkpoints at http: addresses are not allowed"),
    ],
)
def test_what_is_no_local_path_is_refused(allowed: Path, path: str, words: str) -> None:
    message = refused(path, allowed)
    assert words in message or "outside" in message


def test_a_folder_without_a_checkpoint_is_refused_with_what_was_found(allowed: Path) -> None:
    (allowed / "other").mkdir()
    assert "found nothing" in refused(allowed / "other", allowed)
    for name in ("notes.txt", "data"):
        (allowed / "other" / name).touch()
    message = refused(allowed / "other", allowed)
    assert "expected the file metadata and the folder offsets, found data, notes.txt;" in message
    assert "checkpointLocation" in message
    assert "doesn't exist" in refused(allowed / "missing", allowed)
    assert "doesn't exist" in refused(allowed / "query/metadata", allowed)


def test_a_file_of_two_gigabytes_is_refused_by_its_size_alone(allowed: Path) -> None:
    (schema,) = (allowed / "query/state/0/_stateSchema/default").glob("1_*")
    os.truncate(schema, 2 * 1024**3)
    message = refused(allowed / "query", allowed)
    assert f"{schema.name} has 2147483648 bytes" in message


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(allowed: Path) -> None:
    (allowed / "query/offsets/4").unlink()
    os.mkfifo(allowed / "query/offsets/4")
    assert "offsets/4 is not a regular file" in refused(allowed / "query", allowed)


CASES: dict[str, list[list[Any]]] = yaml.safe_load((Path(__file__).parent / "locations.yaml").read_text())


@pytest.mark.parametrize(("text", "protocol", "path"), CASES["means"])
def test_what_a_path_or_address_means(text: str, protocol: str, path: str) -> None:
    location = parse_location(text, FILE_SYSTEMS)
    assert (location.protocol, location.path) == (protocol, path)
    assert parse_location(location.text, FILE_SYSTEMS) == location


@pytest.mark.parametrize(("text", "words"), CASES["refused"])
def test_what_is_no_place_for_a_checkpoint_is_refused_with_the_reason(text: str, words: str) -> None:
    everything = (*FILE_SYSTEMS, "memory", "http", "https", "ftp", "sftp", "zip", "simplecache", "github")
    with pytest.raises(InvalidCheckpoint) as caught:
        parse_location(text, everything)
    assert words in caught.value.message
    assert "secret@" not in caught.value.message


def test_only_allowed_file_systems_are_read_and_local_ones_are_the_default() -> None:
    with pytest.raises(InvalidCheckpoint, match=r"allowed: file\); .*SCHEMADESK_CHECKPOINT_PROTOCOLS"):
        parse_location("s3://bucket/query")
    with pytest.raises(InvalidCheckpoint, match=r"allowed: s3\)"):
        parse_location("/data/query", ["s3"])
    with pytest.raises(InvalidCheckpoint, match=r"allowed: none\)"):
        parse_location("file:/data", [])
    assert parse_location("s3a://bucket/query", ["s3"]).protocol == "s3"


@pytest.mark.parametrize(("path", "root", "expected"), CASES["below"])
def test_roots_hold_for_every_file_system(path: str, root: str, expected: bool) -> None:
    assert parse_location(path, FILE_SYSTEMS).is_below(location_of_root(root)) is expected


@pytest.mark.parametrize(("path", "roots", "words"), CASES["rows"])
def test_rows_are_readable_where_spark_opens_the_folder(path: str, roots: list[str], words: str) -> None:
    reason = why_rows_are_not_readable(path, roots)
    if words:
        assert reason is not None
        assert reason.startswith("rows not readable on this server: ")
        assert words in reason
    else:
        assert reason is None


@pytest.mark.parametrize(
    ("path", "roots", "opened"),
    [
        ("s3://bucket/query", ["s3a://bucket"], "s3a://bucket/query"),
        ("s3a://bucket/query", ["/data", "s3://other", "s3://bucket/"], "s3://bucket/query"),
        ("s3n://bucket/query", [], "s3://bucket/query"),
        ("/data/query", ["s3a://bucket", "/data"], "/data/query"),
        ("file:/data/query", ["/data"], "file:/data/query"),
    ],
)
def test_spark_opens_an_address_with_the_protocol_of_its_own_root(path: str, roots: list[str], opened: str) -> None:
    assert as_spark_opens(path, roots) == opened


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
def test_every_file_that_is_read_is_in_a_folder_that_was_listed(name: str) -> None:
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
