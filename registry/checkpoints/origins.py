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
    """What tells the version: the offset log's format, its newest settings, and the operators' metadata formats, 0 for
    an operator without any.
    """

    offsets_format: int
    settings: Mapping[str, str]
    metadata_formats: tuple[int, ...]


# what only that version and later ones write; the first that fits counts
FORMS: Final[tuple[tuple[str, Callable[[Marks], bool]], ...]] = (
    ("Databricks Runtime", lambda marks: any("databricks" in f"{k}{v}" for k, v in marks.settings.items())),
    ("Spark 4.2 or later", lambda marks: marks.offsets_format == 2),
    ("Spark 4.2 or later", lambda marks: f"{SETTING}queryEvolution.enableSourceEvolution" in marks.settings),
    ("Spark 4.1 or later", lambda marks: f"{SETTING}stateStore.rowChecksum.enabled" in marks.settings),
    ("Spark 4.0 or later", lambda marks: f"{SETTING}stateStore.encodingFormat" in marks.settings),
    ("Spark 4.0 or later", lambda marks: any(marks.metadata_formats)),
    ("Spark 3.5 or earlier", lambda marks: bool(marks.metadata_formats)),
)


def written_by(marks: Marks) -> str:
    """The newest version whose form is recognised; "any Spark" for a stateless query that leaves no mark."""
    return next((version for version, fits in FORMS if fits(marks)), "any Spark")


def _columns(schema: str) -> tuple[str, ...]:
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    return tuple(str(field["name"]) for field in fields)


def _session_key(key: tuple[str, ...], value: tuple[str, ...]) -> bool:
    return (bool(key) and key[-1] in ("sessionStartTime", "session_window")) or "session_window" in value


# operators by what their default store holds, for queries from before Spark 4.0; the first that fits counts
SHAPES: Final[tuple[tuple[str, Callable[[tuple[str, ...], tuple[str, ...]], bool]], ...]] = (
    ("sessionWindowStateStoreSaveExec", _session_key),
    ("groupsWithState", lambda _, value: value in (("groupState", "timeoutTimestamp"), ("groupState",))),
    ("dedupe", lambda _, value: value == ("__dummy__",)),
    ("dedupeWithinWatermark", lambda _, value: value == ("expiresAtMicros",)),
)


def operator_by_form(stores: Iterable[str], schemas: Mapping[str, tuple[str, str]]) -> str:
    """The operator's name, told by its stores' names and its schemas (key, value).

    An aggregation's state has any columns, so whatever has no form of its own is left unnamed: the empty text.
    """
    if any(store.startswith(("left-", "right-")) for store in stores):
        return "symmetricHashJoin"
    default = schemas.get("default")
    if default is None:
        return ""
    key, value = _columns(default[0]), _columns(default[1])
    return next((name for name, fits in SHAPES if fits(key, value)), "")
