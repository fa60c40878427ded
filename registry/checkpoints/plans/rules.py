"""What a restart does beyond the schemas of keys and values, one row each, as real restarts of Spark 4.2 showed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.policies.spark_state.rules import StateRule

TIME_MODE_ERROR: Final = "STATE_STORE_INVALID_CONFIG_AFTER_RESTART"
KIND_ERROR: Final = "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE"

_ROWS: Final = (
    StateRule(
        "KIND_CHANGED",
        "a {before} state becomes a {after} state",
        "Spark keeps the kind of every variable with the operator and compares it at the start.",
        "keep the kind, or declare the new kind under another name",
        "DBX-3",
        "refused",
        "",
        KIND_ERROR,
    ),
    StateRule(
        "CAME_BACK_AS_OTHER_KIND",
        "a {before} state that was left out comes back as a {after} state",
        "Spark no longer compares the kinds, and its old rows are still there: they are read in the wrong layout. A real "
        "restart killed the executor's JVM.",
        "take another name; the old rows only go with deleteIfExists",
        "DBX-3",
        "fails later",
        "",
        "",
    ),
    StateRule(
        "TTL_TURNED_ON",
        "entries of this value state expire from now on",
        "Spark takes it, as it wraps the value into a struct with its time of expiry, and matches fields by name. A row "
        "written before has no such struct: the query stops as soon as it is read.",
        "declare a new variable with time to live, and fill it from this one",
        "DBX-3",
        "fails later",
        "",
        "EXPRESSION_DECODING_FAILED",
    ),
    StateRule(
        "TTL_TURNED_ON_HIDES",
        "entries of this {before} state expire from now on",
        "Spark takes it, as it wraps values into a struct with their time of expiry, and matches fields by name. Entries "
        "written before have none and count as expired: the {before} reads as empty, without an error.",
        "declare a new variable with time to live, and fill it from this one",
        "DBX-3",
        "loses data",
        "",
        "",
    ),
    StateRule(
        "TTL_TURNED_OFF",
        "entries of this {before} state no longer expire",
        "Spark takes it, as it takes the value out of a struct with its time of expiry, and matches fields by name: every "
        "field of an entry written before reads as null, without an error.",
        "keep the time to live, as long as one likes, or declare a new variable and fill it from this one",
        "DBX-3",
        "loses data",
        "",
        "",
    ),
    StateRule(
        "TIME_MODE_CHANGED",
        "the time mode changes from {before} to {after}",
        "Spark keeps the time mode of a checkpoint.",
        "keep {before}, or take a new checkpoint",
        "DBX-3",
        "refused",
        "",
        TIME_MODE_ERROR,
    ),
    StateRule(
        "ROWS_STAY",
        "the state variable is left out of the code",
        "Its rows stay in the state, unread: they take space, and are back when the name is declared again.",
        "call deleteIfExists if they are meant to go; else add the variable to the plan",
        "DBX-2",
        "note",
        "",
        "",
    ),
    StateRule(
        "ROWS_DELETED",
        "the state variable is deleted with deleteIfExists",
        "All its rows are removed at the restart. Its old schemas keep binding: should the name come back, it begins "
        "empty and is still held against them.",
        "copy what is still needed before the restart",
        "DBX-2",
        "note",
        "supported",
        "",
    ),
    StateRule(
        "FILLED_FIELD_REMOVED",
        "{path} is removed, and {detail}",
        "These values are not read any more, and are gone from a row once it is written again.",
        "keep the field, or copy its values before the restart",
        "DBX-2",
        "loses data",
        "supported",
        "",
    ),
)
RESTART_RULES: Final[Mapping[str, StateRule]] = {rule.id: rule for rule in _ROWS}
