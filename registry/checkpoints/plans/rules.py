"""What a restart does beyond the schemas of keys and values, one row each, as real restarts of Spark 4.2 showed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.policies.spark_state.rules import StateRule

TIME_MODE_ERROR: Final = "STATE_STORE_INVALID_CONFIG_AFTER_RESTART"
KIND_ERROR: Final = "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE"
OPERATOR_ERROR: Final = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
TTL_ERROR: Final = "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL"
NAME_ERROR: Final = "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME"

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
        "OUTPUT_MODE_CHANGED",
        "the output mode changes from {before} to {after}",
        "Spark keeps the output mode with the operator and compares it at the start.",
        "keep {before}, or take a new checkpoint",
        "DBX-4",
        "refused",
        "",
        TIME_MODE_ERROR,
    ),
    StateRule(
        "API_CHANGED",
        "{before} becomes {after}",
        "To Spark these are different operators, and it compares the operator's name with the checkpoint's at the start.",
        "keep {before}, or take a new checkpoint",
        "DBX-4",
        "refused",
        "",
        OPERATOR_ERROR,
    ),
    StateRule(
        "OPERATORS_CHANGED",
        "the stateful operators change from {before} to {after}",
        "Spark numbers the stateful operators of a query and compares each one's name with the checkpoint's at the start.",
        "keep the stateful operators and their order, or take a new checkpoint",
        "DBX-4",
        "refused",
        "",
        OPERATOR_ERROR,
    ),
    StateRule(
        "CHECKPOINT_FORMAT_RAISED",
        "spark.sql.streaming.stateStore.checkpointFormatVersion goes from {before} to {after}",
        "A checkpoint keeps its format. The query starts, and stops when it commits the first batch.",
        "keep {before}, or take a new checkpoint",
        "DBX-4",
        "fails later",
        "",
        "CANNOT_WRITE_STATE_STORE",
    ),
    StateRule(
        "CHECKPOINT_FORMAT_LOWERED",
        "spark.sql.streaming.stateStore.checkpointFormatVersion goes from {before} to {after}",
        "A checkpoint keeps its format. The query starts, and stops when it loads the state for the first batch.",
        "keep {before}, or take a new checkpoint",
        "DBX-4",
        "fails later",
        "",
        "CANNOT_LOAD_STATE_STORE",
    ),
    StateRule(
        "SCHEMA_FILE_MISSING",
        "the schema file {detail} is missing",
        "The operator's metadata names it, and Spark reads all of them at the start. What it held can't be compared here.",
        "restore the file from a copy, or take a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "FileNotFoundException",
    ),
    StateRule(
        "CHECKPOINT_DAMAGED",
        "{detail}",
        "Spark reads the newest files of the logs, the operator's metadata and its schema files before the first batch.",
        "restore the file from a copy, or take a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "",
    ),
    StateRule(
        "TTL_NEEDS_PROCESSING_TIME",
        "its entries expire, and the time mode is {after}",
        "Spark accepts a time to live in the time mode ProcessingTime alone. A checkpoint keeps its time mode.",
        "leave out the time to live, or take a new checkpoint with the time mode ProcessingTime",
        "DBX-4",
        "refused",
        "",
        TTL_ERROR,
    ),
    StateRule(
        "VARIABLE_NAME_REFUSED",
        "Spark accepts no variable of that name: {detail}",
        "A state variable is a column family of the state store, and Spark checks the name when it creates one.",
        "choose another name",
        "DBX-4",
        "refused",
        "",
        NAME_ERROR,
    ),
    StateRule(
        "VARIABLE_REPLACED",
        "{before} is {detail} while {after} begins empty",
        "Spark finds state variables by name, upper and lower case included. If {after} is {before} under another name, its "
        "old state is out of reach, without an error.",
        "keep {before} and copy it to {after} first; if they are unrelated, make two restarts of it",
        "DBX-3",
        "loses data",
        "unsupported",
        "",
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
