"""Which Spark's form a checkpoint has, and what an operator is where its metadata doesn't say.

A checkpoint records no version. What each version began to write is known: the tables below.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

SETTING: Final = "spark.sql.streaming."


@dataclass(frozen=True)
class Marks:
    """What tells the version: the offset log's format, its newest settings, the operators' metadata formats, 0 for an
    operator without any, and their names.
    """

    offsets_format: int
    settings: Mapping[str, str]
    metadata_formats: tuple[int, ...]
    operators: tuple[str, ...] = ()


# what only that version and later ones write; the first that fits counts
FORMS: Final[tuple[tuple[str, Callable[[Marks], bool]], ...]] = (
    ("Databricks Runtime", lambda marks: any("databricks" in f"{k}{v}" for k, v in marks.settings.items())),
    ("Spark 4.2 or later", lambda marks: marks.offsets_format == 2),
    ("Spark 4.2 or later", lambda marks: f"{SETTING}queryEvolution.enableSourceEvolution" in marks.settings),
    ("Spark 4.2 or later", lambda marks: f"{SETTING}stateStore.rowChecksum.enabled" in marks.settings),
    # 4.1 records what 4.0 does: only what is new in its operators tells them apart.
    ("Spark 4.1 or later", lambda marks: "transformWithStateInPySparkExec" in marks.operators),
    ("Spark 4.0 or later", lambda marks: f"{SETTING}stateStore.encodingFormat" in marks.settings),
    ("Spark 4.0 or later", lambda marks: any(marks.metadata_formats)),
    ("Spark 3.5 or earlier", lambda marks: bool(marks.metadata_formats)),
)


def written_by(marks: Marks) -> str:
    """The newest version whose form is recognised; "any Spark" for a stateless query that leaves no mark."""
    return next((version for version, fits in FORMS if fits(marks)), "any Spark")


Columns = Mapping[str, Any]  # name → type as StructType JSON has it, in their order


def _columns(schema: str) -> Columns:
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    return {str(field["name"]): field["type"] for field in fields}


def _is_session_window(key: Columns, value: Columns) -> bool:
    return list(key)[-1:] == ["sessionStartTime"] or "session_window" in (*value, *list(key)[-1:])


def _is_group_state(_: Columns, value: Columns) -> bool:
    """Format 2 has the user's state as one column; format 1 has its columns, and with a time-out that column too."""
    return list(value) in (["groupState", "timeoutTimestamp"], ["groupState"]) or list(value)[-1:] == [
        "timeoutTimestamp"
    ]


# operators by what their default store holds, for queries from before Spark 4.0; the first that fits counts
SHAPES: Final[tuple[tuple[str, Callable[[Columns, Columns], bool]], ...]] = (
    ("sessionWindowStateStoreSaveExec", _is_session_window),
    ("groupsWithState", _is_group_state),
    ("dedupe", lambda _, value: list(value) == ["__dummy__"]),
    ("dedupeWithinWatermark", lambda _, value: list(value) == ["expiresAtMicros"]),
    ("globalLimit", lambda key, value: (key, value) == ({"key": "void"}, {"value": "long"})),
)
GROUPS_FORMAT: Final = f"{SETTING}flatMapGroupsWithState.stateFormatVersion"


def operator_by_form(stores: Iterable[str], schemas: Mapping[str, tuple[str, str]], settings: Mapping[str, str]) -> str:
    """The operator's name, told by its stores' names and its schemas (key, value), and by the newest settings.

    An aggregation's state has any columns. So have groups with state in their format 1; where the settings rule that
    out, whatever has no form of its own is an aggregation, else it is left unnamed: the empty text.
    """
    if any(store.startswith(("left-", "right-")) for store in stores):
        return "symmetricHashJoin"
    default = schemas.get("default")
    if default is None:
        return ""
    key, value = _columns(default[0]), _columns(default[1])
    otherwise = "stateStoreSave" if settings.get(GROUPS_FORMAT) == "2" else ""
    return next((name for name, fits in SHAPES if fits(key, value)), otherwise)
