"""Paths as an enemy gives them: nothing outside the allowed folders is read, and nothing is waited for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from registry.checkpoints import read_checkpoint
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
    assert "outside the folders that may be read" in there
    assert there == refused("/nowhere/at/all", allowed) == refused("file:///nowhere", allowed)
    assert there == refused(f"{allowed}2/query", allowed) == refused("/", allowed)
    assert str(allowed) not in there
    up = refused(allowed / "../secret/query", allowed)
    assert "goes up with '..'" in up
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
        ("query", "begins with /"),
        ("../secret/query", "begins with /"),
        ("s3://bucket/query", "aren't read from s3: addresses here (allowed: file)"),
        ("simplecache::file:///tmp", "chained"),
        ("zip://a::file:///tmp/b", "chained"),
        ("http://127.0.0.1/", "aren't read from http: addresses"),
    ],
)
def test_what_is_no_local_path_is_refused(allowed: Path, path: str, words: str) -> None:
    message = refused(path, allowed)
    assert words in message or "outside" in message


def test_a_folder_without_a_checkpoint_is_told_what_was_looked_for_and_found(allowed: Path) -> None:
    (allowed / "other").mkdir()
    assert "found nothing" in refused(allowed / "other", allowed)
    for name in ("notes.txt", "data"):
        (allowed / "other" / name).touch()
    message = refused(allowed / "other", allowed)
    assert "looked for the file metadata and the folder offsets, found data, notes.txt;" in message
    assert "checkpointLocation" in message
    assert "there is no folder" in refused(allowed / "missing", allowed)
    assert "there is no folder" in refused(allowed / "query/metadata", allowed)


def test_a_file_of_two_gigabytes_is_refused_by_its_size_alone(allowed: Path) -> None:
    (schema,) = (allowed / "query/state/0/_stateSchema/default").glob("1_*")
    os.truncate(schema, 2 * 1024**3)
    message = refused(allowed / "query", allowed)
    assert f"{schema.name} has 2147483648 bytes" in message


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(allowed: Path) -> None:
    (allowed / "query/offsets/4").unlink()
    os.mkfifo(allowed / "query/offsets/4")
    assert "offsets/4 is no regular file" in refused(allowed / "query", allowed)
