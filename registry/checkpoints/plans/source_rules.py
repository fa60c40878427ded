"""What a restart does with other sources, another sink and other ways to write its progress: rows of a table.

`spark_file` is the source file of Spark 4.2 that decides, below `sql/core/src/main/scala/org/apache/spark/sql/`, else
its path in Spark's repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.policies.spark_state.rules import StateRule

_BATCHES: Final = "execution/streaming/runtime/MicroBatchExecution.scala"
_OFFSETS: Final = "execution/streaming/checkpointing/OffsetSeq.scala"
_FILES: Final = "execution/streaming/runtime/FileStreamSource.scala"
_KAFKA: Final = "connector/kafka-0-10-sql/src/main/scala/org/apache/spark/sql/kafka010/KafkaMicroBatchStream.scala"
_ASYNC: Final = "execution/streaming/runtime/AsyncProgressTrackingMicroBatchExecution.scala"
_SINK_LOG: Final = "execution/streaming/sinks/FileStreamSink.scala"
_START: Final = "execution/streaming/runtime/ResolveWriteToStream.scala"
_NEW_CHECKPOINT: Final = "use a new checkpoint"

_ROWS: Final = (
    StateRule(
        "SOURCES_ADDED_OR_REMOVED",
        "the number of sources changes from {before} to {after}",
        "Spark assigns the checkpoint's offsets to sources by position and compares their number at the start.",
        "keep the sources and their order, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "AssertionError",
        _OFFSETS,
    ),
    StateRule(
        "SOURCE_FOLDER_CHANGED",
        "source {detail} reads {after} instead of {before}",
        "The source's log names files of the old folder. Spark lists the files of the last batch again at the start, "
        "and rejects files outside of the source's folder.",
        "keep the folder, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "IllegalArgumentException",
        _FILES,
    ),
    StateRule(
        "SOURCE_FOLDER_READ_AGAIN",
        "source {detail} reads {after} instead of {before}",
        "The last batch had no file of this source, so Spark compares nothing. It reads all files of the new folder, "
        "and the state has what came from the old one.",
        "keep the folder, or use a new checkpoint",
        "DBX-4",
        "silently wrong",
        "",
        "",
        _FILES,
    ),
    StateRule(
        "SOURCE_KIND_CHANGED",
        "source {detail} changes from {before} to {after}",
        "The source reads the checkpoint's offsets, which another kind of source wrote.",
        "keep the kind of the source, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "",
        _BATCHES,
    ),
    StateRule(
        "TOPICS_REMOVED",
        "source {detail} no longer reads {before}",
        "The checkpoint has offsets of partitions that the source doesn't read. With failOnDataLoss, which is the "
        "default, it stops.",
        "keep the topics, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "KafkaIllegalStateException",
        _KAFKA,
    ),
    StateRule(
        "TOPICS_REMOVED_SILENTLY",
        "source {detail} no longer reads {before}, and failOnDataLoss is false",
        "Rows that weren't read yet are left out, and the state has what came from these topics.",
        "keep the topics, or use a new checkpoint",
        "DBX-4",
        "silently wrong",
        "",
        "",
        _KAFKA,
    ),
    StateRule(
        "TOPIC_RECREATED",
        "the topic {before} was deleted and recreated",
        "Offsets have no id of their topic. The source continues at the old offset, so the first rows of the new "
        "topic are never read.",
        _NEW_CHECKPOINT,
        "DBX-4",
        "loses data",
        "",
        "",
        _KAFKA,
    ),
    StateRule(
        "SINK_FOLDER_CHANGED",
        "the sink changes from {before} to {after}",
        "A sink of files keeps a log of its batches in its folder. The new folder's log lacks the batches before the "
        "restart, so readers miss them, or Spark can't read the folder at all.",
        "keep the folder, or use a new checkpoint with it",
        "DBX-4",
        "silently wrong",
        "",
        "",
        _SINK_LOG,
    ),
    StateRule(
        "SINK_FORMAT_CHANGED",
        "the sink changes from {before} to {after}",
        "Spark writes files of the new format into the same folder. A reader of the old format fails or reads them "
        "wrongly, and one of the new format the old files.",
        "keep the format, or use a new checkpoint and another folder",
        "DBX-4",
        "silently wrong",
        "",
        "",
        _SINK_LOG,
    ),
    StateRule(
        "SINK_NOT_RECOVERED",
        "the memory sink can't continue a checkpoint",
        "The memory sink loses its rows with the process. With output mode {after}, Spark therefore doesn't start a query "
        "that has committed batches.",
        "use output mode Complete, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "AnalysisException",
        _START,
    ),
    StateRule(
        "ASYNC_PROGRESS_REFUSED",
        "asynchronous progress tracking isn't supported here",
        "Spark supports it only without state, with a trigger that repeats, and for a few sinks; files aren't one.",
        "leave asyncProgressTrackingEnabled out",
        "DBX-4",
        "refused",
        "",
        "IllegalArgumentException",
        _ASYNC,
    ),
    StateRule(
        "ASYNC_PROGRESS_REPEATS",
        "the running query tracks its progress asynchronously",
        "The checkpoint lacks its last batches. Spark processes them again at the restart, so that their rows are "
        "written twice.",
        "use a sink that ignores rows it already has",
        "DBX-4",
        "silently wrong",
        "",
        "",
        _ASYNC,
    ),
)
SOURCE_RULES: Final[Mapping[str, StateRule]] = {rule.id: rule for rule in _ROWS}
