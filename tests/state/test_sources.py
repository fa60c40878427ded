"""The check of a plan's sources, of the checkpoint format and of the encoding against checkpoints as they are on disk."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from registry.checkpoints.plans import StateCheck, check_state, plan_as_is, read_plan
from tests.state.test_query_check import described

FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"
STORE = "spark.sql.streaming.stateStore."
FILES = '{"path":"file:///data/orders/1.json","timestamp":1,"batchId":0}'


def checked(path: Path, **changed: Any) -> StateCheck:
    """The check of a checkpoint's state as it is, but for what is changed in the plan."""
    plan = json.loads(plan_as_is(str(path), [path])) | changed
    return check_state(str(path), [path], read_plan(plan))


@pytest.fixture
def reads_files(tmp_path: Path) -> Path:
    """A checkpoint whose source is a folder of files."""
    path = tmp_path / "checkpoint"
    shutil.copytree(FIXTURES / "customer_totals", path)
    (path / "sources/0/0").write_text(f"v1\n{FILES}")
    for offsets in (path / "offsets").iterdir():
        lines = offsets.read_text().split("\n")
        offsets.write_text("\n".join([*lines[:2], f'{{"logOffset":{offsets.name}}}']))
    return path


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("sources", "verdict", "error", "rule"),
    [
        ([{"kind": "files", "path": "/data/orders"}], "safe", "", None),
        ([{"kind": "files", "path": "file:/data/"}], "not checked", "", None),
        (
            [{"kind": "files", "path": "/data/orders2"}],
            "fails at start",
            "IllegalArgumentException",
            "SOURCE_FOLDER_CHANGED",
        ),
        (
            [{"kind": "files", "path": "/data/orders"}] * 2,
            "fails at start",
            "AssertionError",
            "SOURCES_ADDED_OR_REMOVED",
        ),
        ([], "fails at start", "AssertionError", "SOURCES_ADDED_OR_REMOVED"),
        ([{"kind": "files", "path": "/data/*"}], "not checked", "", None),
        (
            [{"kind": "kafka", "topics": ["orders"]}],
            "fails at start",
            "IllegalArgumentException",
            "SOURCE_KIND_CHANGED",
        ),
        ([{"kind": "delta"}], "not checked", "", None),
    ],
)
def test_a_restart_keeps_its_sources(
    reads_files: Path, sources: list[Any], verdict: str, error: str, rule: str | None
) -> None:
    check = checked(reads_files, sources=sources)
    assert (check.verdict, check.error) == (verdict, error)
    assert [each.rule for each in check.changes] == ([rule] if rule else [])


@pytest.mark.requirement("DBX-4")
def test_a_folder_is_only_compared_if_the_last_batch_had_files_of_it(reads_files: Path) -> None:
    for offsets in (reads_files / "offsets").iterdir():
        offsets.write_text("\n".join([*offsets.read_text().split("\n")[:2], '{"logOffset":0}']))
    check = checked(reads_files, sources=[{"kind": "files", "path": "/data/orders2"}])
    assert (check.verdict, [each.rule for each in check.changes]) == ("silently wrong", ["SOURCE_FOLDER_READ_AGAIN"])


@pytest.mark.requirement("DBX-4")
def test_a_folder_of_partitions_and_a_pattern_that_stays_are_the_same_source(reads_files: Path) -> None:
    log = reads_files / "sources/0/0"
    log.write_text(log.read_text().replace("/data/orders/", "/data/orders/day=1/hour=2/"))
    assert checked(reads_files, sources=[{"kind": "files", "path": "/data/orders"}]).verdict == "safe"
    shutil.rmtree(reads_files / "state")
    query = {
        "schemadesk_spark": 1,
        "spark": "4.2.0",
        "refused": None,
        "operators": [],
        "watermarks": [],
        "sources": [{"provider": "json", "path": "/data/o*"}],
    }
    same = check_state(str(reads_files), [reads_files], read_plan({"query": query, "running": query}))
    alone = check_state(str(reads_files), [reads_files], read_plan(query))
    assert (same.verdict, alone.verdict) == ("safe", "not checked")


ASYNC = {"asyncProgressTrackingEnabled": "true"}
KAFKA: dict[str, Any] = {"provider": "kafka", "topics": ["orders"], "options": {}, "topic_ids": {"orders": "one"}}


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("changed", "verdict", "rule"),
    [
        ({}, "not checked", None),  # the plan lacks the state variables
        ({"topics": ["returns"]}, "fails at start", "TOPICS_REMOVED"),
        ({"topics": ["returns"], "options": {"failondataloss": "false"}}, "silently wrong", "TOPICS_REMOVED_SILENTLY"),
        ({"topics": [], "options": {"subscribepattern": "ret.*"}}, "fails at start", "TOPICS_REMOVED"),
        ({"topics": [], "options": {"subscribepattern": "ord.*"}}, "not checked", None),
        ({"topics": [], "options": {"assign": "{}"}}, "not checked", None),
        ({"topic_ids": {"orders": "two"}}, "loses data", "TOPIC_RECREATED"),
    ],
)  # fmt: skip
def test_described_topics(changed: dict[str, Any], verdict: str, rule: str | None) -> None:
    operators = [{"number": 0, "name": "transformWithStateInPySparkExec", "properties": {}, "stores": {}, "keys": [],
                  "values": [], "input": []}]  # fmt: skip
    running = {
        "schemadesk_spark": 1,
        "spark": "4.2.0",
        "refused": None,
        "operators": operators,
        "watermarks": [],
        "sources": [KAFKA],
    }
    query = {**running, "sources": [{**KAFKA, **changed}]}
    path = FIXTURES / "customer_totals"
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert (check.verdict, [each.rule for each in check.changes]) == (verdict, [rule] if rule else [])


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("changed", "verdict", "rule"),
    [
        ({}, "safe", None),
        ({"sink": "parquet[/data/b]"}, "silently wrong", "SINK_FOLDER_CHANGED"),
        ({"sink": "FileSink[/data/a]"}, "safe", None),
        ({"sink": "json[/data/a]"}, "silently wrong", "SINK_FORMAT_CHANGED"),
        ({"columns": "k STRING,v INT"}, "not checked", None),
        ({"trigger": "continuous"}, "not checked", None),
        ({"sink": "ForeachBatchSink"}, "not checked", None),
        ({"sink": "MemorySink", "output_mode": "Append"}, "fails at start", "SINK_NOT_RECOVERED"),
        ({"sink": "memory", "output_mode": "Complete"}, "not checked", None),
        ({"sink_options": ASYNC}, "fails at start", "ASYNC_PROGRESS_REFUSED"),
        ({"sink_options": ASYNC, "sink": "KafkaTable", "trigger": "availableNow"}, "fails at start", "ASYNC_PROGRESS_REFUSED"),
        ({"sink_options": ASYNC, "sink": "KafkaTable"}, "not checked", None),
        ({"refused": "[STREAMING_OUTPUT_MODE.INVALID] no"}, "fails at start", "QUERY_REFUSED"),
        ({"sources": [{"provider": "json", "path": "/data"}]}, "not checked", None),
        ({"sources": [{"provider": "csv", "path": "/data/orders"}]}, "not checked", None),
        ({"sources": [{"provider": "json", "path": "/data/orders", "options": {"mode": "FAILFAST"}}]}, "not checked", None),
    ],
)  # fmt: skip
def test_described_sinks_and_formats(
    reads_files: Path, changed: dict[str, Any], verdict: str, rule: str | None
) -> None:
    shutil.rmtree(reads_files / "state")
    files = [{"provider": "json", "path": "/data/orders"}]
    running = {
        "schemadesk_spark": 1,
        "spark": "4.2.0",
        "refused": None,
        "operators": [],
        "watermarks": [],
        "sources": files,
        "sink": "parquet[/data/a]",
        "columns": "k STRING",
    }
    check = check_state(
        str(reads_files), [reads_files], read_plan({"query": {**running, **changed}, "running": running})
    )
    assert (check.verdict, [each.rule for each in check.changes]) == (verdict, [rule] if rule else [])


@pytest.mark.requirement("DBX-4")
def test_asynchronous_progress_repeats_batches(reads_files: Path) -> None:
    shutil.rmtree(reads_files / "state")
    files = [{"provider": "json", "path": "/data/orders"}]
    query = {
        "schemadesk_spark": 1,
        "spark": "4.2.0",
        "refused": None,
        "operators": [],
        "watermarks": [],
        "sources": files,
        "sink": "KafkaTable",
    }
    for now in ({}, ASYNC):
        plan = {"query": {**query, "sink_options": now}, "running": {**query, "sink_options": ASYNC}}
        check = check_state(str(reads_files), [reads_files], read_plan(plan))
        assert (check.verdict, [each.rule for each in check.changes]) == ("silently wrong", ["ASYNC_PROGRESS_REPEATS"])


@pytest.mark.requirement("DBX-4")
def test_state_files_must_be_there_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    shutil.copytree(FIXTURES / "aggregation_hdfs", path)
    store = path / "state/0/0"
    running = described("aggregation_hdfs")

    def verdict() -> tuple[str, str]:
        check = check_state(str(path), [path], read_plan({"query": running, "running": running}))
        return check.verdict, check.error

    lost = ("fails at start", "CANNOT_LOAD_STATE_STORE")
    (store / "SSTs").mkdir()  # of RocksDB
    assert verdict() == ("safe", "")
    (store / "1.delta").write_bytes(b"")
    assert verdict() == lost
    (store / "1.delta").write_bytes(b"LZ4Block" + bytes(40))  # cut off before its end
    assert verdict() == lost
    (store / "1.delta").write_bytes(b"LZ4Block" + bytes(20) + b"LZ4Block" + bytes(13))
    assert verdict() == ("safe", "")
    (store / ".1.delta.crc").write_bytes(b"crc\0" + bytes((0, 0, 2, 0)) + bytes(4))  # of other content
    assert verdict() == lost
    (store / ".1.delta.crc").unlink()
    (path / "state/0/2").mkdir()
    assert verdict() == lost  # partition 1 has no folder
    (store / "1.delta").unlink()
    assert verdict()[0] == "not checked"
    (store / "1.snapshot").write_bytes(b"rows")
    (path / "state/0/2").rmdir()
    assert verdict() == ("safe", "")
    (store / "1.snapshot").unlink()
    for name, expected in (("1.sst", lost), ("", ("safe", ""))):
        named = [{"dfsSstFileName": name}] if name else []
        with zipfile.ZipFile(store / "1.zip", "w") as archive:
            archive.writestr("metadata", f"v1\n{json.dumps({'sstFiles': named})}")
        assert verdict() == expected
    content = (store / "1.zip").read_bytes()
    (store / "1.zip").write_bytes(content.replace(b"sstFiles", b"sstfiles", 1))
    assert verdict() == lost
    (store / "1.zip").write_bytes(content[:-30])
    assert verdict() == lost


@pytest.mark.requirement("DBX-4")
def test_topics_can_be_added() -> None:
    now = json.loads(plan_as_is(str(FIXTURES / "customer_totals"), [FIXTURES]))["sources"]
    assert now == [{"kind": "kafka", "topics": ["orders"]}]
    more = [{"kind": "kafka", "topics": ["orders", "returns"]}]
    assert checked(FIXTURES / "customer_totals", sources=more).verdict == "safe"
    other = [{"kind": "kafka", "topics": ["returns"]}]
    assert checked(FIXTURES / "customer_totals", sources=other).verdict == "not checked"


@pytest.mark.requirement("DBX-4")
def test_the_checkpoint_format_must_be_set_again(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    shutil.copytree(FIXTURES / "customer_totals", path)
    newest = max((path / "commits").iterdir(), key=lambda each: int(each.name))
    newest.write_text('v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[[["id"]]]}}')
    plan = json.loads(plan_as_is(str(path), [path]))
    assert plan["settings"] == {f"{STORE}checkpointFormatVersion": 2}
    silent = checked(path, settings={})
    assert silent.verdict == "not checked"
    assert "Spark's default is 1" in silent.sentence
    assert checked(path).verdict == "safe"


@pytest.mark.requirement("DBX-4")
def test_avro_is_for_transform_with_state_alone() -> None:
    check = checked(FIXTURES / "customer_totals", operators=["transformWithState (Python)", "streaming aggregation"])
    assert check.verdict == "fails at start"
    assert [each.rule for each in check.changes] == ["ENCODING_NOT_SUPPORTED", "OPERATORS_CHANGED"]
    path = FIXTURES / "timers_unsaferow"
    both = ["transformWithState (Python)", "dropDuplicates"]
    unset = checked(path, operators=both)
    assert [each.rule for each in unset.changes] == ["OPERATORS_CHANGED"]


@pytest.mark.requirement("DBX-4")
def test_a_query_without_state_keeps_its_sources_and_can_gain_no_operator(reads_files: Path) -> None:
    shutil.rmtree(reads_files / "state")
    query = {
        "schemadesk_spark": 1,
        "spark": "4.2.0",
        "refused": None,
        "operators": [],
        "watermarks": [],
        "settings": {},
    }
    files = {"provider": "json", "path": "/data/orders"}
    same = check_state(str(reads_files), [reads_files], read_plan({**query, "sources": [files]}))
    assert (same.verdict, same.operator.description) == ("safe", "no stateful operator")
    more = check_state(str(reads_files), [reads_files], read_plan({**query, "sources": [files, files]}))
    assert (more.verdict, more.error) == ("fails at start", "AssertionError")
    limit = {"number": 0, "name": "globalLimit", "properties": {}, "stores": {}, "keys": [], "values": [], "input": []}
    added = check_state(str(reads_files), [reads_files], read_plan({**query, "operators": [limit], "sources": [files]}))
    assert [each.rule for each in added.changes] == ["STATE_ADDED"]
    assert added.error == "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY"
