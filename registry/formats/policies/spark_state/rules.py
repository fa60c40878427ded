"""The effects of a restart on a state variable: what Spark does, what the source document says, and the cure.

`effect` is the worst result: `refused` stops the query at its start, `fails later` stops it when it reads or writes
rows, `silently wrong` goes on with state that now means something else, `loses data` silently changes or drops
values, `note` is only information. `document` is what the source document
says about the change: supported, unsupported, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.formats.policies.base import PolicyRule

Effect = Literal["note", "loses data", "silently wrong", "fails later", "refused"]
Opinion = Literal["supported", "unsupported", ""]
EFFECTS: Final[tuple[Effect, ...]] = ("note", "loses data", "silently wrong", "fails later", "refused")

KEY_ERROR: Final = "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
VALUE_ERROR: Final = "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
EVOLUTION_ERROR: Final = "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION"
THRESHOLD_ERROR: Final = "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED"
FILES_ERROR: Final = "STATE_STORE_STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED"
#: the remedy if nothing needs to be done
NO_ACTION: Final = "no action needed"
#: NO_ACTION, and its text in stored reports of earlier releases
NO_ACTIONS: Final = frozenset({NO_ACTION, "nothing is to be done"})
NULLABLE_ERROR: Final = "TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE"
_SCHEMAS: Final = "execution/streaming/state/StateSchemaCompatibilityChecker.scala"
_TRANSFORM: Final = "execution/streaming/operators/stateful/transformwithstate/"
#: Spark's error → the source file of Spark 4.2 that raises it, for rules that don't name one
SPARK_FILES: Final[Mapping[str, str]] = {
    KEY_ERROR: _SCHEMAS,
    VALUE_ERROR: _SCHEMAS,
    EVOLUTION_ERROR: _SCHEMAS,
    THRESHOLD_ERROR: _SCHEMAS,
    FILES_ERROR: _SCHEMAS,
    NULLABLE_ERROR: f"{_TRANSFORM}statefulprocessor/StatefulProcessorHandleImpl.scala",
    "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL": (
        f"{_TRANSFORM}statefulprocessor/StatefulProcessorHandleImpl.scala"
    ),
    "STATE_STORE_INVALID_CONFIG_AFTER_RESTART": f"{_TRANSFORM}TransformWithStateVariableUtils.scala",
    "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE": f"{_TRANSFORM}TransformWithStateVariableUtils.scala",
    "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME": (
        "execution/streaming/state/RocksDBStateStoreProvider.scala"
    ),
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA": (
        "execution/streaming/runtime/IncrementalExecution.scala"
    ),
}


@dataclass(frozen=True, slots=True)
class StateRule(PolicyRule):
    """A rule with its effect, the document's opinion, the error class that Spark stops with, and where Spark decides.

    `spark_file` is the file of Spark's sources; `versions` are those of Spark that real restarts showed it for.
    """

    effect: Effect = "note"
    document: Opinion = ""
    error: str = ""
    spark_file: str = ""
    versions: str = "4.2"


def _row(
    id: str,
    requirement: str,
    effect: Effect,
    document: Opinion,
    sentence: str,
    why: str,
    remedy: str,
    error: str = "",
) -> StateRule:
    return StateRule(id, sentence, why, remedy, requirement, effect, document, error, versions="4.0 to 4.2")


_NEW_NAME: Final = "add a field with the new type under a new name, and fill it from {path}"
_BY_NAME: Final = "keep the order of the fields, or use a new checkpoint"

_ROWS: Final = (
    _row(
        "FIELD_ADDED",
        "DBX-2",
        "note",
        "supported",
        "{path} is added ({after})",
        "Older rows don't have it. They read as {reads}.",
        "handle the missing value; in Scala, use Option[…] for primitive types",
    ),
    _row(
        "FIELD_ADDED_NOT_NULL",
        "DBX-2",
        "note",
        "supported",
        "{path} is added ({after}) and is not nullable",
        "Older rows don't have it, and Spark reports no error: they read as {reads}.",
        "declare {path} nullable, so that a missing value can be distinguished from {detail}",
    ),
    _row(
        "FIELD_ADDED_UNREADABLE",
        "DBX-2",
        "fails later",
        "",
        "{path} is added ({after}) and is not nullable",
        "Older rows don't have it. The query fails as soon as it reads one of them.",
        "declare {path} nullable",
        "NullPointerException",
    ),
    _row(
        "FIELD_REMOVED",
        "DBX-2",
        "note",
        "supported",
        "{path} is removed ({before})",
        "Its values are no longer read, and they are lost when a row is written again.",
        "copy the values that you still need before the restart",
    ),
    _row(
        "RENAME_SUSPECTED",
        "DBX-3",
        "loses data",
        "unsupported",
        "removing {before} and adding {after} looks like a rename (score {score})",
        "Spark matches fields by name: the old values are dropped and the new field reads as null, without an error.",
        "keep the name {before}, or write a version that copies {before} to {after} first",
    ),
    _row(
        "FIELD_REPLACED",
        "DBX-3",
        "loses data",
        "unsupported",
        "{path} is removed while {after} is added",
        "Spark matches fields by name and path. If {path} was moved or split, or if its type changed, its values "
        "in older rows can't be read, and the new fields read as null, without an error.",
        "keep {path} and copy it to the new fields first; if they are unrelated, add and remove in two restarts",
    ),
    _row(
        "NAMES_DIFFER_IN_CASE",
        "DBX-3",
        "fails later",
        "",
        "{before} and {path} differ only in upper and lower case",
        "With the Avro encoding, Spark looks up fields case-insensitively and finds two. The query starts, but "
        "fails as soon as a task opens the state. spark.sql.caseSensitive makes no difference.",
        "give the two fields different names",
        "IncompatibleSchemaException",
    ),
    _row(
        "FIELDS_REORDERED",
        "DBX-2",
        "note",
        "supported",
        "the order of the fields of {path} changes",
        "With the Avro encoding, fields are matched by name.",
        NO_ACTION,
    ),
    _row(
        "TYPE_WIDENED",
        "DBX-2",
        "note",
        "supported",
        "{path} is widened from {before} to {after}",
        "Older rows are read as the wider type.",
        NO_ACTION,
    ),
    _row(
        "TYPE_WIDENED_INEXACTLY",
        "DBX-3",
        "loses data",
        "supported",
        "{path} is widened from {before} to {after}, which is exact only up to {detail}",
        "Spark accepts this. Numbers of older rows beyond {detail} are rounded when they are read, without an error.",
        "use long, or double for integer; if all values are smaller, nothing changes",
    ),
    _row(
        "TYPE_EXCHANGED",
        "DBX-2",
        "note",
        "supported",
        "{path} changes from {before} to {after}",
        "The bytes stay the same{detail}.",
        "make sure that the bytes are UTF-8 wherever they are read as text",
    ),
    _row(
        "MEANING_CHANGED",
        "DBX-3",
        "loses data",
        "",
        "{path} changes from {before} to {after}",
        "Spark accepts this because both are the same Avro type, but the same number gets another meaning: {detail}.",
        _NEW_NAME,
    ),
    _row(
        "DECIMAL_RESCALED",
        "DBX-3",
        "loses data",
        "",
        "{path} changes from {before} to {after}",
        "Both have the same number of bytes, so Spark accepts this, but reads the digits with the new scale: {detail}.",
        _NEW_NAME,
    ),
    _row(
        "DECIMAL_NARROWED",
        "DBX-3",
        "fails later",
        "",
        "{path} changes from {before} to {after}",
        "Both have the same number of bytes, so Spark accepts this. The query fails when it reads a value with "
        "more digits than the new type has. All other values are unchanged.",
        _NEW_NAME,
        "NUMERIC_VALUE_OUT_OF_RANGE",
    ),
    _row(
        "TYPE_NOT_READ_BACK",
        "DBX-3",
        "fails later",
        "",
        "{path} is {after}, which Spark writes as an Avro int and can't read back",
        "The query starts, but fails with IncompatibleSchemaException as soon as a task opens the state.",
        "use integer instead of {after}",
        "IncompatibleSchemaException",
    ),
    _row(
        "NAME_SHARED",
        "DBX-3",
        "note",
        "",
        "{before} and {after} are different types with the same field name",
        "Spark names the Avro type after the field and sends schemas to its tasks as text, in which a name has "
        "only one definition. The second type is mistaken for the first, and rows may be misread.",
        "give the two fields different names",
    ),
    _row(
        "TYPE_NARROWED",
        "DBX-3",
        "refused",
        "unsupported",
        "{path} is narrowed from {before} to {after}",
        "A value may not fit, so Avro can't read it.",
        _NEW_NAME,
        EVOLUTION_ERROR,
    ),
    _row(
        "TYPE_CHANGED",
        "DBX-3",
        "refused",
        "unsupported",
        "{path} changes from {before} to {after}",
        "Avro can't read one type as the other.",
        _NEW_NAME,
        EVOLUTION_ERROR,
    ),
    _row(
        "NO_AVRO_FORM",
        "DBX-3",
        "refused",
        "",
        "{path} can't be converted to Avro: {detail}",
        "Values can evolve only in their Avro form, and Spark converts the schemas of a new variable for every "
        "encoding.",
        "use a type that Avro supports: the key of a map must be a string",
    ),
    _row(
        "KEY_CHANGED",
        "DBX-3",
        "refused",
        "unsupported",
        "the key changes at {path} from {before} to {after}",
        "Keys never evolve: rows are found by the bytes of their key.",
        "keep the key, and use a new state variable",
        KEY_ERROR,
    ),
    _row(
        "KEY_FIELD_RENAMED",
        "DBX-3",
        "note",
        "unsupported",
        "the key's field {before} is renamed to {after}",
        "Spark compares keys by position and accepts this, but the documentation calls it unsupported. Rows keep "
        "their keys as long as {after} has the same values as {before}.",
        "keep the name, to be on the safe side",
    ),
    _row(
        "KEY_FIELDS_SWAPPED",
        "DBX-3",
        "loses data",
        "unsupported",
        "the key's field {after} takes the position of {before}",
        "Spark compares keys by position and accepts this because the types are the same. State is found by the "
        "key values in their order: it reads as empty or under another key, without an error.",
        "keep the order of the key's fields, or use a new checkpoint",
    ),
    _row(
        "VALUE_CHANGED",
        "DBX-1",
        "refused",
        "unsupported",
        "{path} changes from {before} to {after}, and the value can't evolve",
        "Evolution needs transformWithState and the Avro encoding. Without them, the types of a value are fixed "
        "by position.",
        "keep the schema, or use a new checkpoint with spark.sql.streaming.stateStore.encodingFormat=avro",
        VALUE_ERROR,
    ),
    _row(
        "POSITIONS_SWAPPED",
        "DBX-3",
        "loses data",
        "",
        "{path} takes the position of {before}",
        "Without Avro, fields are matched by position: {path} reads the values of {before}, without an error.",
        _BY_NAME,
    ),
    _row(
        "POSITION_RENAMED",
        "DBX-3",
        "note",
        "",
        "{before} is renamed to {after}",
        "Without Avro, fields are matched by position: {after} reads the values of {before}.",
        "check that it is the same field under another name",
    ),
    _row(
        "MUST_BE_NULLABLE",
        "DBX-2",
        "refused",
        "",
        "{path} is not nullable",
        "With the Avro encoding, the columns of a value must be nullable. Spark makes them nullable in Scala, "
        "but not in Python.",
        "declare {path} nullable",
        NULLABLE_ERROR,
    ),
    _row(
        "THRESHOLD_EXCEEDED",
        "DBX-5",
        "refused",
        "",
        "the value schema with id {after} would exceed the limit: {detail} are allowed",
        "Each restart that changes a variable's schema counts once, no matter how many fields change.",
        "raise spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold, or use a new checkpoint",
        THRESHOLD_ERROR,
    ),
    _row(
        "VARIABLE_ADDED",
        "DBX-2",
        "note",
        "supported",
        "the state variable is new",
        "It starts empty. The Avro encoding isn't needed.",
        NO_ACTION,
    ),
    _row(
        "VARIABLE_REMOVED",
        "DBX-2",
        "note",
        "supported",
        "the state variable is no longer defined",
        "deleteIfExists removes its rows. If it is only removed from the code, its schema is missing in the "
        "newest schema file, but the stored schemas still apply: if the variable returns, it is checked against "
        "them.",
        "call deleteIfExists to remove the rows",
    ),
    _row(
        "VARIABLE_CAME_BACK",
        "DBX-2",
        "note",
        "",
        "the state variable existed before and returns",
        "Spark checks it against its old schemas and continues its schema count.",
        "use another name if the variable is unrelated to the old one",
    ),
    _row(
        "NEVER_COMMITTED",
        "DBX-4",
        "fails later",
        "",
        "the state variable was declared first by a start that committed no batch",
        "With the Avro encoding, Spark looks for its schema in committed batches, or in the schema file that a "
        "start writes when any schema changes. Neither exists here: the query starts, but fails as soon as it "
        "looks up a row of the variable.",
        "if the query is in its first batch with this variable, check again later; otherwise declare it under "
        "another name, or change any schema in the same restart",
        "UnsupportedOperationException",
    ),
    _row(
        "SCHEMA_ATTRIBUTES_CHANGED",
        "DBX-5",
        "note",
        "",
        "only nullability, metadata or names of keys change",
        "Rows are read as before, but this counts as a schema evolution.",
        "avoid it, or combine it with other changes",
    ),
    _row(
        "CHECK_DISABLED",
        "DBX-4",
        "fails later",
        "",
        "Spark's own check is off, but it would reject this: {detail}",
        "spark.sql.streaming.stateStore.stateSchemaCheck=false hides the error. Rows are then read with the "
        "wrong schema.",
        "turn the check on again",
    ),
)
STATE_RULES: Final[Mapping[str, StateRule]] = {rule.id: rule for rule in _ROWS}
