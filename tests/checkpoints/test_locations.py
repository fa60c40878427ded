"""Where checkpoints may lie: by the words of a path or an address alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import parse_location, why_rows_are_not_readable
from registry.checkpoints.locations import FILE_SYSTEMS, as_spark_opens, location_of_root
from registry.errors import InvalidCheckpoint

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
        assert reason.startswith("rows not readable here: ")
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
