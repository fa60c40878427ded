"""Damaged and hostile checkpoints and descriptions: never safe, never an error of the server, never without end.

What Spark 4.2 does with each of these checkpoints was tried: it fails, if not said otherwise.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from registry.checkpoints.plans import StateCheck, check_state, read_plan
from registry.errors import InvalidCheckpoint, InvalidSchema
from tests.state.test_query_check import FIXTURES, described
from tests.waiting import costs_little

pytestmark = pytest.mark.requirement("DBX-4")

NAME = "aggregation_hdfs"
RUNNING = described(NAME)
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a checkpoint without the checksums that would give every change away."""
    shutil.copytree(FIXTURES / NAME, tmp_path / NAME, ignore=shutil.ignore_patterns("*.crc"))
    return tmp_path / NAME


def checked(folder: Path, query: Any = RUNNING, running: Any = RUNNING) -> StateCheck:
    return check_state(str(folder), [folder], read_plan({"query": query, "running": running}))


def replace_in(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def newest(folder: Path) -> Path:
    return max((folder / "offsets").iterdir(), key=lambda path: int(path.name))


def metadata(folder: Path) -> Path:
    return folder / "state/0/_metadata/metadata"


def test_the_copy_itself_is_safe(folder: Path) -> None:
    assert checked(folder).verdict == "safe"


@pytest.mark.parametrize("partitions", ["1000000000", "-7"])
def test_partitions_that_no_query_has_end_soon_and_are_not_safe(folder: Path, partitions: str) -> None:
    replace_in(metadata(folder), '"numPartitions":1', f'"numPartitions":{partitions}')
    with costs_little(5):
        check = checked(folder)
    assert check.verdict != "safe"
    assert f"operator 0 has {int(partitions):,}" in " ".join(check.not_checked)
    assert len(check.changes) <= 20


def test_a_folder_with_a_huge_number_ends_soon(folder: Path) -> None:
    (folder / "state/0/99999999999").mkdir()
    (folder / "state/0/²").mkdir()  # a digit, but no number
    with costs_little(5):
        assert checked(folder).verdict == "fails at start"


def test_a_partition_without_its_folder_is_missing(folder: Path) -> None:
    replace_in(metadata(folder), '"numPartitions":1', '"numPartitions":2')
    replace_in(newest(folder), '"spark.sql.shuffle.partitions":"1"', '"spark.sql.shuffle.partitions":"2"')
    check = checked(folder)
    assert (check.verdict, check.error) == ("fails at start", "CANNOT_LOAD_STATE_STORE")
    assert "state/0/1 has no file" in check.error_message


@pytest.mark.parametrize(
    ("before", "after", "doubt"),
    [
        ('"spark.sql.shuffle.partitions":"1"', '"spark.sql.shuffle.partitions":"3"', "records 3 partitions"),
        ('"spark.sql.shuffle.partitions":"1"', '"spark.sql.shuffle.partitions":"x"', "records x partitions"),
        (':"unsaferow"', ':"protobuf"', "the encoding of the state (protobuf)"),
        ('"batchTimestampMs":', '"batchTimestampMs":"soon","x":', "a time or a watermark that is not a whole number"),
        ('"batchWatermarkMs":', '"batchWatermarkMs":1e400,"x":', "a time or a watermark that is not a whole number"),
    ],
)
def test_values_that_spark_does_not_read_are_not_checked(folder: Path, before: str, after: str, doubt: str) -> None:
    replace_in(newest(folder), before, after)
    check = checked(folder)
    assert check.verdict == "not checked"
    assert doubt in " ".join(check.not_checked)


@pytest.mark.parametrize("name", ["9223372036854775807", "٣"])
def test_a_name_that_java_reads_as_a_number_is_not_ignored(folder: Path, name: str) -> None:
    shutil.copy(newest(folder), folder / "offsets" / name)
    assert checked(folder).verdict != "safe"


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_numbers_that_only_python_reads_are_damage(folder: Path, number: str) -> None:
    replace_in(newest(folder), '"batchTimestampMs":', f'"batchTimestampMs":{number},"x":')
    with pytest.raises(InvalidCheckpoint, match=r"has invalid JSON$"):
        checked(folder)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"conf":' + "9" * 5_000 + "}"])
def test_json_of_any_depth_is_reported_without_pythons_words(folder: Path, content: str) -> None:
    newest(folder).write_text(f"v1\n{content}\n0")
    with pytest.raises(InvalidCheckpoint, match=r"has invalid JSON$"):
        checked(folder)


def test_a_million_sources_are_refused_soon(folder: Path) -> None:
    lines = newest(folder).read_text().split("\n")[:2]
    newest(folder).write_text("\n".join([*lines, *['{"logOffset":0}'] * 900_000]))
    with costs_little(3), pytest.raises(InvalidCheckpoint, match="more than 10,000 lines"):
        checked(folder)


def test_a_folder_in_the_place_of_a_file_is_no_error_of_the_server(folder: Path) -> None:
    (folder / "state/0/0/_metadata/schema").unlink()
    (folder / "state/0/0/_metadata/schema").mkdir()
    with pytest.raises(InvalidCheckpoint, match="is not a regular file"):
        checked(folder)


FILE_LINE = '{"path":"file:///data/orders/a.json","timestamp":1,"batchId":0}'


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        (FILE_LINE, "safe"),
        (FILE_LINE[:-9], "not checked"),
        (f"{FILE_LINE}\n\0\0", "not checked"),
        ("[" * 100_000, "not checked"),
        ("7", "not checked"),
    ],
)
def test_a_log_of_files_that_is_cut_off_is_not_checked(folder: Path, log: str, verdict: str) -> None:
    """Spark 4.2 starts with bytes after the last line."""
    lines = newest(folder).read_text().split("\n")[:2]
    for path in (folder / "offsets").iterdir():
        path.write_text("\n".join([*lines, '{"logOffset":0}']))
    (folder / "sources/0").mkdir(parents=True)
    (folder / "sources/0/0").write_text(f"v1\n{log}")
    query = {**RUNNING, "sources": [{"provider": "json", "path": "/data/orders"}]}
    assert checked(folder, query, query).verdict == verdict


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (lambda each: each["operators"][0].update(stores={}), "its state default, which the description lacks"),
        (lambda each: each.update(output_mode=None), "the output mode, which the description lacks"),
        (lambda each: each.pop("spark"), "the version of Spark, which the description lacks"),
        (lambda each: each.update(spark="5.0.0"), "Spark 5.0.0 (the rules of 4.0 to 4.2 are known)"),
        (lambda each: each.update(spark="3.5.9"), "Spark 3.5.9"),
        (lambda each: each.update(sink=""), "the sink, which the description lacks (it was parquet[/data/totals])"),
    ],
)
def test_what_a_description_leaves_out_is_not_checked(folder: Path, change: Change, doubt: str) -> None:
    running = {**RUNNING, "sink": "parquet[/data/totals]"}
    query = copy.deepcopy(running)
    change(query)
    check = checked(folder, query, running)
    assert check.verdict == "not checked"
    assert doubt in " ".join(check.not_checked)


def test_a_running_description_without_state_says_nothing(folder: Path) -> None:
    running = copy.deepcopy(RUNNING)
    running["operators"][0]["stores"] = {}
    check = checked(folder, RUNNING, running)
    assert check.verdict == "not checked"
    assert "isn't that of this checkpoint" in " ".join(check.not_checked)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda each: each.update(refused=True), "/query/refused"),
        (lambda each: each.update(sink=["parquet[/b]"]), "/query/sink"),
        (lambda each: each.update(output_mode="x"), "/query/output_mode"),
        (lambda each: each.update(settings={"a": ["b"]}), "/query/settings"),
        (lambda each: each.update(sink_options="async"), "/query/sink_options"),
        (lambda each: each.update(watermarks=["x"]), "/query/watermarks"),
        (lambda each: each.update(watermarks=[{"column": "t", "delay": "1"}] * 1_001), "/query/watermarks"),
        (lambda each: each["sources"][0].update(options=[["a", "b"]]), "/query/sources/0/options"),
        (lambda each: each["operators"].append(each["operators"][0]), "/query/operators"),
        (lambda each: each["operators"][0].update(number=True), "/query/operators/0"),
        (lambda each: each["operators"][0]["values"][0].pop("expression"), "/query/operators/0/values/0"),
        (lambda each: each["operators"][0]["values"][0].update(fields=-1), "/query/operators/0/values/0"),
        (lambda each: each["operators"][0].update(input=["filter a"] * 9_999 + ["x" * 30_000]), "/query/operators/0"),
    ],
)
def test_a_description_of_another_form_is_refused_with_its_place(change: Change, place: str) -> None:
    query = copy.deepcopy(RUNNING)
    change(query)
    with pytest.raises(InvalidSchema) as caught:
        read_plan({"query": query})
    assert caught.value.message.startswith(f"{place}:")


@pytest.mark.parametrize(
    ("pattern", "verdict"),
    [
        ("ord.*", "safe"),
        ("(a+)+b", "fails at start"),
        ("(?<x>o)\\k<x>.*", "not checked"),
        ("a)|(.*", "not checked"),
    ],
)
def test_a_pattern_of_topics_takes_no_time(folder: Path, pattern: str, verdict: str) -> None:
    topic = "orders" if verdict == "safe" else "a" * 200
    lines = newest(folder).read_text().split("\n")[:2]
    for path in (folder / "offsets").iterdir():
        path.write_text("\n".join([*lines, json.dumps({topic: {"0": 1}})]))
    query = {**RUNNING, "sources": [{"provider": "kafka", "options": {"subscribepattern": pattern}}]}
    with costs_little(3):
        assert checked(folder, query, query).verdict == verdict


@pytest.mark.parametrize("text", ["cast(" * 15_000, "f(" + ", " * 40_000])
def test_long_expressions_take_no_time(folder: Path, text: str) -> None:
    query = copy.deepcopy(RUNNING)
    query["operators"][0]["values"] = [{"expression": text, "fields": 2}]
    with costs_little(3):
        assert checked(folder, query).verdict == "silently wrong"
