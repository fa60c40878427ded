"""Schema files byte by byte, with every way in which one can be damaged; and what a query reads, from its offsets."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import read_checkpoint
from registry.checkpoints.schema_files import parse_schema_file
from registry.errors import InvalidCheckpoint
from tests.checkpoints.checkpoint_writer import ENCODER, chunked, family, struct_type, utf, v3

KEY, VALUE = struct_type(id="long"), struct_type(name="string", total="long")
FIXTURES = Path(__file__).parent / "fixtures"
REAL = sorted(
    path for path in FIXTURES.rglob("*") if path.is_file() and ("_stateSchema" in path.parts or path.name == "schema")
)


@pytest.mark.parametrize("content", [utf("v1") + utf(KEY) + utf(VALUE), utf("v2") + chunked(KEY) + chunked(VALUE)])
def test_v1_and_v2_hold_one_pair(content: bytes) -> None:
    (only,) = parse_schema_file(content, "schema").families
    assert (only.key_schema, only.value_schema, only.value_id) == (KEY, VALUE, 0)


def test_v3_holds_every_family_with_its_ids() -> None:
    parsed = parse_schema_file(v3(family("a", VALUE, 3), family("b", KEY)), "f")
    assert parsed.format == 3
    assert [(each.name, each.value_id, each.user_key) for each in parsed.families] == [("a", 3, None), ("b", 0, None)]
    assert parsed.families[0].key_encoder == "NoPrefixKeyStateEncoderSpec"


def test_a_schema_longer_than_a_chunk_is_put_together() -> None:
    wide = struct_type(**{f"field_{number:05d}": "string" for number in range(3_000)})
    assert len(wide) > 2 * 65_535
    assert parse_schema_file(utf("v2") + chunked(KEY) + chunked(wide), "f").families[0].value_schema == wide


def test_javas_modified_utf8_is_understood() -> None:
    raw = b'{"type":"struct","fields":[{"name":"' + "größe".encode() + b"\xed\xa0\xbd\xed\xb8\x80"
    raw += b'","type":"long","nullable":true,"metadata":{}}]}'
    content = utf("v1") + utf(KEY) + struct.pack(">H", len(raw)) + raw
    assert "größe😀" in parse_schema_file(content, "f").families[0].value_schema
    with pytest.raises(InvalidCheckpoint, match="not UTF-8 text"):
        parse_schema_file(content.replace(b"\xed\xb8\x80", b"abc"), "f")


@pytest.mark.parametrize("path", REAL, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_a_real_file_parses_and_none_of_its_beginnings_does(path: Path) -> None:
    content = path.read_bytes()
    assert parse_schema_file(content, "f").families
    for end in range(len(content)):
        with pytest.raises(InvalidCheckpoint, match=r"damaged at byte|format ''"):
            parse_schema_file(content[:end], "f")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the format's version"),
        (utf("v4") + b"rest", "the supported formats are v1, v2 and v3"),
        (b"PK\x03\x04 a zip file of another kind altogether", "damaged at byte 2"),
        (v3(family("a", VALUE)) + b"more", "4 more bytes"),
        (utf("v3") + struct.pack(">i", -1), "-1, which is not between 0 and"),
        (utf("v3") + struct.pack(">i", 2**31 - 1), "2147483647, which is not between 0 and"),
        (utf("v2") + struct.pack(">i", 2**31 - 1) + utf("x"), "2147483647, which is not between 0 and"),
        (utf("v2") + struct.pack(">i", -5), "-5, which is not between 0 and"),
        (utf("v3") + struct.pack(">i", 1) + utf("a") + struct.pack(">h", -1), "a key schema's id, found -1"),
        (v3(family("a", VALUE), family("a", VALUE)), "has column family 'a' twice"),
        (utf("v1") + utf(KEY) + utf("no json"), "not a Spark StructType"),
        (utf("v1") + utf(KEY) + utf('{"type":"array"}'), "not a Spark StructType"),
        (utf("v1") + utf(KEY) + utf('{"type":"struct","fields":[{"type":"long"}]}'), "not a Spark StructType"),
        (utf("v2") + chunked(KEY) + chunked("[" * 200_000), "not a Spark StructType"),
        (v3(family("a", VALUE).replace(utf(ENCODER), utf("{" + ENCODER[1:-1] + "!"))), "key encoder that is not JSON"),
    ],
)
def test_damage_is_named_with_its_place(content: bytes, words: str) -> None:
    with pytest.raises(InvalidCheckpoint) as caught:
        parse_schema_file(content, "state/0/_stateSchema/default/0_x")
    assert caught.value.message.startswith("state/0/_stateSchema/default/0_x ")
    assert words in caught.value.message


def test_schemas_nested_without_end_are_refused() -> None:
    nested = '{"type":"struct","fields":[{"name":"a","type":' * 300 + '"long"' + "}]}" * 300
    with pytest.raises(InvalidCheckpoint, match="not a Spark StructType"):
        parse_schema_file(utf("v2") + chunked(KEY) + chunked(nested), "f")


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


def test_named_sources_are_reported_by_their_names(copied: Path) -> None:
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
    with pytest.raises(InvalidCheckpoint, match="which is not one of its files or folders"):
        read_checkpoint(str(copied), [copied.parent])


def test_a_stores_name_is_no_path(copied: Path) -> None:
    path = copied / "state/0/_metadata/v2/1"
    version, text = path.read_text().split("\n", 1)
    metadata = json.loads(text)
    metadata["stateStoreInfo"][0]["storeName"] = "../../../../secret"
    path.write_text(f"{version}\n{json.dumps(metadata)}")
    with pytest.raises(InvalidCheckpoint, match="which is not one of its files or folders"):
        read_checkpoint(str(copied), [copied.parent])
