"""Column families that Spark keeps beside the user's variables, and what each means to the user."""

from __future__ import annotations

from typing import Final

# prefix of a family's name → what it is for; {0} is the rest of the name
INTERNAL: Final = (
    ("$rowCounter_", "the number of entries of list {0}"),
    ("$procTimers_keyToTimestamp", "processing-time timers by key"),
    ("$procTimers_timestampToKey", "processing-time timers by time"),
    ("$eventTimers_keyToTimestamp", "event-time timers by key"),
    ("$eventTimers_timestampToKey", "event-time timers by time"),
    ("$ttl_", "when entries of {0} expire"),
    ("$min_", "the earliest expiry in list {0}"),
    ("$count_", "the number of entries of list {0}"),
    ("$", "kept by Spark itself"),
    ("left-keyToNumValues", "the number of buffered rows by key, left side of the join"),
    ("right-keyToNumValues", "the number of buffered rows by key, right side of the join"),
)

# families and stores of built-in operators → (user-facing label, kind)
STORES: Final = {
    "left-keyWithIndexToValue": ("buffered rows, left side of the join", "join_rows"),
    "right-keyWithIndexToValue": ("buffered rows, right side of the join", "join_rows"),
    "default": ("the operator's state", "operator"),
}

# stateVariableType in the operator's metadata → kind
KINDS: Final = {"ValueState": "value", "ListState": "list", "MapState": "map", "TimerState": "timer"}

# operatorName in the metadata → what it is in the user's words
OPERATORS: Final = {
    "transformWithStateExec": "transformWithState",
    "transformWithStateInPySparkExec": "transformWithState (Python)",
    "transformWithStateInPandasExec": "transformWithStateInPandas",
    "stateStoreSave": "streaming aggregation",
    "sessionWindowStateStoreSaveExec": "session windows",
    "dedupe": "dropDuplicates",
    "dedupeWithinWatermark": "dropDuplicatesWithinWatermark",
    "symmetricHashJoin": "stream-stream join",
    "flatMapGroupsWithState": "flatMapGroupsWithState",
    "applyInPandasWithState": "applyInPandasWithState",
    "globalLimit": "limit",
    # told by its state's form, which is the same for both
    "groupsWithState": "flatMapGroupsWithState or applyInPandasWithState",
}
#: the family that transformWithState of Scala writes down beside its variables and keeps nothing in
UNUSED_DEFAULT: Final = "default"
EVOLVING: Final = frozenset(name for name in OPERATORS if name.startswith("transformWithState"))


def internal_meaning(family: str) -> str | None:
    """What a family of Spark's own means to the user; None for a user's variable."""
    for prefix, meaning in INTERNAL:
        if family.startswith(prefix):
            return meaning.format(family.removeprefix(prefix))
    return None
