"""What a query reads, as its offsets tell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import read_checkpoint
from registry.errors import InvalidCheckpoint

HERE = Path(__file__).parent
CASES: list[list[Any]] = yaml.safe_load((HERE / "sources.yaml").read_text())


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "fixtures/customer_totals", tmp_path / "c")
    return tmp_path / "c"


def write_offsets(folder: Path, *lines: str, version: str = "v1") -> None:
    """Give every batch of a checkpoint these sources."""
    for path in (folder / "offsets").iterdir():
        path.write_text("\n".join([version, '{"conf":{}}', *lines]))


@pytest.mark.parametrize(("offset", "kind", "topics"), CASES)
def test_a_source_is_known_by_the_form_of_its_offsets(copied: Path, offset: str, kind: str, topics: list[str]) -> None:
    write_offsets(copied, offset)
    (source,) = read_checkpoint(str(copied), [copied.parent]).sources
    assert (source.name, source.kind, list(source.topics)) == ("0", kind, topics)


def test_a_real_query_names_its_topics() -> None:
    checkpoint = read_checkpoint(str(HERE / "fixtures/customer_totals"), [HERE])
    assert [(source.kind, source.topics) for source in checkpoint.sources] == [("kafka", ("orders",))]
    assert checkpoint.topics == ("orders",)


def test_named_sources_are_told_by_their_names(copied: Path) -> None:
    write_offsets(copied, 'orders_in:{"orders":{"0":1}}', 'files_in:{"logOffset":3}', version="v2")
    checkpoint = read_checkpoint(str(copied), [copied.parent])
    assert [(source.name, source.kind) for source in checkpoint.sources] == [
        ("orders_in", "kafka"),
        ("files_in", "files"),
    ]


def test_a_source_without_news_is_known_from_an_earlier_batch_or_from_its_beginning(copied: Path) -> None:
    write_offsets(copied, "-", "-")
    (copied / "offsets/1").write_text('v1\n{"conf":{}}\n-\n{"clicks":{"0":1}}')
    first, second = read_checkpoint(str(copied), [copied.parent]).sources
    assert (first.kind, first.topics) == ("kafka", ("orders",))  # from sources/0/0
    assert (second.kind, second.topics) == ("kafka", ("clicks",))
    shutil.rmtree(copied / "sources")
    assert read_checkpoint(str(copied), [copied.parent]).sources[0].kind == "unknown"


@pytest.mark.parametrize("name", ["../../other", "..", "a/b", "/etc"])
def test_names_inside_a_checkpoint_are_no_paths(copied: Path, name: str) -> None:
    write_offsets(copied, f"{name}:-", version="v2")
    with pytest.raises(InvalidCheckpoint, match="as a file or folder of its own"):
        read_checkpoint(str(copied), [copied.parent])


def test_a_stores_name_is_no_path(copied: Path) -> None:
    path = copied / "state/0/_metadata/v2/1"
    version, text = path.read_text().split("\n", 1)
    metadata = json.loads(text)
    metadata["stateStoreInfo"][0]["storeName"] = "../../../../secret"
    path.write_text(f"{version}\n{json.dumps(metadata)}")
    with pytest.raises(InvalidCheckpoint, match="as a file or folder of its own"):
        read_checkpoint(str(copied), [copied.parent])
