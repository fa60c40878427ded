"""What a restart does to aggregations, joins, deduplications and limits: rows of a table.

`spark_file` is the source file of Spark 4.2 that decides, below `sql/core/src/main/scala/org/apache/spark/sql/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.policies.spark_state.rules import KEY_ERROR, NO_ACTION, VALUE_ERROR, StateRule

_STREAMING: Final = "execution/streaming/"
_SCHEMAS: Final = f"{_STREAMING}state/StateSchemaCompatibilityChecker.scala"
_METADATA: Final = f"{_STREAMING}runtime/IncrementalExecution.scala"
_STATEFUL: Final = f"{_STREAMING}operators/stateful/"
_OPERATORS: Final = f"{_STATEFUL}statefulOperators.scala"
_LIMIT: Final = f"{_STATEFUL}streamingLimits.scala"
_TRACKER: Final = f"{_STREAMING}runtime/WatermarkTracker.scala"
_JOIN: Final = f"{_STATEFUL}join/StreamingSymmetricHashJoinExec.scala"
_WINDOWS: Final = "catalyst/analysis/ResolveTimeWindows.scala"
_NEW: Final = "keep the old expression, or use a new checkpoint"
_ROWS: Final = (
    StateRule(
        "STATE_ADDED",
        "the query has stateful operators, but its checkpoint has no state",
        "Spark expects the state folder of every stateful operator in a checkpoint that has committed batches.",
        "leave out the stateful operators, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
        spark_file=_METADATA,
    ),
    StateRule(
        "STATE_KEY_CHANGED",
        "the key of {detail} changes at {path} from {before} to {after}",
        "Spark compares the number, the types and the nullability of a key's fields by position.",
        "keep the keys and their order, or use a new checkpoint",
        "DBX-1",
        "refused",
        "",
        KEY_ERROR,
        spark_file=_SCHEMAS,
    ),
    StateRule(
        "STATE_VALUE_CHANGED",
        "the state of {detail} changes at {path} from {before} to {after}",
        "Spark compares the number, the types and the nullability of a state's fields by position.",
        "keep what the operator computes, or use a new checkpoint",
        "DBX-1",
        "refused",
        "",
        VALUE_ERROR,
        spark_file=_SCHEMAS,
    ),
    StateRule(
        "KEY_MEANING_CHANGED",
        "{detail} has the key {after} in the place of {before}",
        "The types are the same, so Spark accepts it. It then looks up state under another value, without an error.",
        _NEW,
        "DBX-3",
        "silently wrong",
        spark_file=_SCHEMAS,
    ),
    StateRule(
        "VALUE_MEANING_CHANGED",
        "{detail} keeps {after} in the place of {before}",
        "The types are the same, so Spark accepts it. It silently treats the stored values as values of the "
        "new expression.",
        _NEW,
        "DBX-3",
        "silently wrong",
        spark_file=_SCHEMAS,
    ),
    StateRule(
        "ROWS_OF_STATE_CHANGED",
        "the rows that reach {detail} change: {after} in the place of {before}",
        "The state was made of other rows. Spark doesn't compare what is before an operator.",
        "filter after the operator, or use a new checkpoint",
        "DBX-3",
        "silently wrong",
        spark_file=_OPERATORS,
    ),
    StateRule(
        "KEYS_FILTERED",
        "rows with some keys no longer reach {detail}: {after}",
        "The state of these keys stays, and is no longer written. State of all other keys is right.",
        NO_ACTION,
        "DBX-1",
        spark_file=_OPERATORS,
    ),
    StateRule(
        "STATE_READ_OTHERWISE",
        "{detail} computes {after} in the place of {before}",
        "Both keep the same state.",
        NO_ACTION,
        "DBX-1",
        spark_file=_SCHEMAS,
    ),
    StateRule(
        "LIMIT_CHANGED",
        "the limit changes from {before} to {after}",
        "The state counts the rows so far, and the query continues up to the new limit.",
        NO_ACTION,
        "DBX-1",
        spark_file=_LIMIT,
    ),
    StateRule(
        "SESSION_CHANGED",
        "the sessions of {detail} change from {before} to {after}",
        "Sessions in the state end where the old gap or column put their end, and are merged with later rows by that.",
        _NEW,
        "DBX-3",
        "silently wrong",
        spark_file=_OPERATORS,
    ),
    StateRule(
        "WATERMARK_CHANGED",
        "the watermark of {detail} changes from {before} to {after}",
        "It decides from now on which late rows count. The checkpoint's watermark never goes back.",
        NO_ACTION,
        "DBX-1",
        spark_file=_TRACKER,
    ),
    StateRule(
        "WATERMARK_REMOVED",
        "{detail} no longer has the watermark {before} in its keys",
        "The old watermark has removed groups from the state. Their late rows now count, in groups that start empty.",
        "keep the watermark, or use a new checkpoint",
        "DBX-3",
        "silently wrong",
        spark_file=_OPERATORS,
    ),
    StateRule(
        "OTHER_GROUPS_KEPT",
        "the output mode of {detail} changes from {before} to {after}",
        "Complete mode keeps all groups. The other modes remove the groups that the watermark has passed, and append "
        "mode writes them then.",
        "keep the output mode, or use a new checkpoint",
        "DBX-3",
        "silently wrong",
        spark_file=_OPERATORS,
    ),
    StateRule(
        "TIME_ZONE_UNUSED",
        "the session's time zone changes from {before} to {after}, and {detail} doesn't depend on it",
        "Windows are cut in UTC, and the sources have times with an offset.",
        NO_ACTION,
        "DBX-1",
        spark_file=_WINDOWS,
    ),
    StateRule(
        "QUERY_REFUSED",
        "Spark starts no such query: {detail}",
        "Spark checks the operators and the output mode of a query before it opens the checkpoint.",
        "change the query",
        "DBX-4",
        "refused",
        "",
        "AnalysisException",
        "catalyst/analysis/UnsupportedOperationChecker.scala",
    ),
    StateRule(
        "JOIN_NARROWED",
        "the join changes from {before} to {after}",
        "The buffered rows serve both.",
        NO_ACTION,
        "DBX-1",
        spark_file=_JOIN,
    ),
)
OPERATOR_RULES: Final[Mapping[str, StateRule]] = {rule.id: rule for rule in _ROWS}
