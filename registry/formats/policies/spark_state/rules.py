"""What a restart can do to a state variable, one row each: what Spark does, what the source document says, the cure.

`effect` is the worst that comes of it: `refused` stops the query at its start, `fails later` while it reads or writes
rows, `loses data` changes or drops values in silence, `note` is good to know. `document` is the word of the source
document on that change: supported, unsupported, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.formats.policies.base import PolicyRule

Effect = Literal["note", "loses data", "fails later", "refused"]
Opinion = Literal["supported", "unsupported", ""]
EFFECTS: Final[tuple[Effect, ...]] = ("note", "loses data", "fails later", "refused")

KEY_ERROR: Final = "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
VALUE_ERROR: Final = "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
EVOLUTION_ERROR: Final = "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION"
THRESHOLD_ERROR: Final = "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED"
FILES_ERROR: Final = "STATE_STORE_STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED"
NULLABLE_ERROR: Final = "TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE"


@dataclass(frozen=True, slots=True)
class StateRule(PolicyRule):
    """A rule with its effect, the document's opinion, and the error class that Spark stops with."""

    effect: Effect = "note"
    document: Opinion = ""
    error: str = ""


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
    return StateRule(id, sentence, why, remedy, requirement, effect, document, error)


_NEW_NAME: Final = "add a field with the new type under a new name, and fill it from {path}"
_BY_NAME: Final = "keep the order of the fields, or take a new checkpoint"

_ROWS: Final = (
    _row(
        "FIELD_ADDED",
        "DBX-2",
        "note",
        "supported",
        "{path} is added ({after})",
        "Rows written before don't have it: they read as {reads}.",
        "handle the missing value; in Scala take Option[…] where the type is a primitive",
    ),
    _row(
        "FIELD_ADDED_NOT_NULL",
        "DBX-2",
        "note",
        "supported",
        "{path} is added ({after}) and is not nullable",
        "Rows written before don't have it, and Spark doesn't tell: they read as {reads}.",
        "declare {path} nullable, so that a missing value can be told from a {detail}",
    ),
    _row(
        "FIELD_ADDED_UNREADABLE",
        "DBX-2",
        "fails later",
        "",
        "{path} is added ({after}) and is not nullable",
        "Rows written before don't have it: the query stops as soon as one of them is read.",
        "declare {path} nullable",
        "NullPointerException",
    ),
    _row(
        "FIELD_REMOVED",
        "DBX-2",
        "note",
        "supported",
        "{path} is removed ({before})",
        "Its values are not read any more, and are gone from a row once it is written again.",
        "copy what is still needed before the restart",
    ),
    _row(
        "RENAME_SUSPECTED",
        "DBX-3",
        "loses data",
        "unsupported",
        "{before} removed and {after} added look like one field renamed (score {score})",
        "Spark matches fields by name: the old values are dropped and the new field reads as null, without an error.",
        "keep the name {before}, or write a version that copies {before} to {after} first",
    ),
    _row(
        "FIELD_REPLACED",
        "DBX-3",
        "loses data",
        "unsupported",
        "{path} is removed while {after} is added",
        "Spark matches fields by name and path: whether {path} was moved, split or changed its type, rows written before "
        "keep its values out of reach and the new fields read as null, without an error.",
        "keep {path} and copy it to the new fields first; if they are unrelated, add and remove in two restarts",
    ),
    _row(
        "NAMES_DIFFER_IN_CASE",
        "DBX-3",
        "fails later",
        "",
        "{before} and {path} differ in upper and lower case alone",
        "With the Avro encoding Spark looks fields up without regard to case and finds two: the query starts, and stops "
        "as soon as a task opens the state. spark.sql.caseSensitive makes no difference.",
        "give the two fields different names",
        "IncompatibleSchemaException",
    ),
    _row(
        "FIELDS_REORDERED",
        "DBX-2",
        "note",
        "supported",
        "the fields of {path} are in another order",
        "With the Avro encoding fields are found by name.",
        "nothing is to be done",
    ),
    _row(
        "TYPE_WIDENED",
        "DBX-2",
        "note",
        "supported",
        "{path} is widened from {before} to {after}",
        "Rows written before read as the wider type{detail}.",
        "nothing is to be done",
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
        "Spark takes it, as both are one Avro type, and reads the same number as something else: {detail}.",
        _NEW_NAME,
    ),
    _row(
        "DECIMAL_RESCALED",
        "DBX-3",
        "loses data",
        "",
        "{path} changes from {before} to {after}",
        "Both have as many bytes, so Spark takes it, and reads the digits with the new scale: {detail}.",
        _NEW_NAME,
    ),
    _row(
        "DECIMAL_NARROWED",
        "DBX-3",
        "fails later",
        "",
        "{path} changes from {before} to {after}",
        "Both have as many bytes, so Spark takes it. Values with more digits than the new type has stop the query when "
        "they are read; all others stay what they are.",
        _NEW_NAME,
        "NUMERIC_VALUE_OUT_OF_RANGE",
    ),
    _row(
        "TYPE_NOT_READ_BACK",
        "DBX-3",
        "fails later",
        "",
        "{path} is {after}, which Spark writes as Avro's int and can't read back",
        "The query starts, and stops with IncompatibleSchemaException as soon as a task opens the state.",
        "take integer in place of {after}",
        "IncompatibleSchemaException",
    ),
    _row(
        "NAME_SHARED",
        "DBX-3",
        "note",
        "",
        "{before} and {after} are different types under one field name",
        "Spark names the Avro type after the field and hands schemas to its tasks as text, in which a name has one "
        "definition: the second is taken for the first, and rows may be read wrong.",
        "give the two fields different names",
    ),
    _row(
        "TYPE_NARROWED",
        "DBX-3",
        "refused",
        "unsupported",
        "{path} is narrowed from {before} to {after}",
        "A value may not fit, so Avro doesn't read it.",
        _NEW_NAME,
        EVOLUTION_ERROR,
    ),
    _row(
        "TYPE_CHANGED",
        "DBX-3",
        "refused",
        "unsupported",
        "{path} changes from {before} to {after}",
        "Avro can't read the one as the other.",
        _NEW_NAME,
        EVOLUTION_ERROR,
    ),
    _row(
        "NO_AVRO_FORM",
        "DBX-3",
        "refused",
        "",
        "{path} can't be converted to Avro: {detail}",
        "A value evolves in its Avro form alone, and Spark converts the schemas of a new variable whatever the encoding.",
        "take a type that has one: a map's key must be string",
    ),
    _row(
        "KEY_CHANGED",
        "DBX-3",
        "refused",
        "unsupported",
        "the key changes at {path} from {before} to {after}",
        "Keys never evolve: rows are found by the bytes of their key.",
        "keep the key, and begin with a new state variable",
        KEY_ERROR,
    ),
    _row(
        "KEY_FIELD_RENAMED",
        "DBX-3",
        "note",
        "unsupported",
        "the key's field {before} is renamed to {after}",
        "Spark compares keys by position and accepts it; the document calls it unsupported. Rows keep their keys as long "
        "as {after} holds the same values as {before}.",
        "keep the name, to be on the safe side",
    ),
    _row(
        "KEY_FIELDS_SWAPPED",
        "DBX-3",
        "loses data",
        "unsupported",
        "the key's field {after} takes the position of {before}",
        "Spark compares keys by position and accepts it, as the types are the same. State is found by the key's values in "
        "their order: it reads as empty, or under another key, without an error.",
        "keep the order of the key's fields, or take a new checkpoint",
    ),
    _row(
        "VALUE_CHANGED",
        "DBX-1",
        "refused",
        "unsupported",
        "{path} changes from {before} to {after}, and the value can't evolve",
        "Evolution needs transformWithState and the Avro encoding; without them a value keeps its types by position.",
        "take a new checkpoint with spark.sql.streaming.stateStore.encodingFormat=avro",
        VALUE_ERROR,
    ),
    _row(
        "POSITIONS_SWAPPED",
        "DBX-3",
        "loses data",
        "",
        "{path} now stands where {before} stood",
        "Without Avro fields are found by position: {path} reads the values of {before}, without an error.",
        _BY_NAME,
    ),
    _row(
        "POSITION_RENAMED",
        "DBX-3",
        "note",
        "",
        "{before} is renamed to {after}",
        "Without Avro fields are found by position: {after} reads the values of {before}.",
        "check that it is the same field under another name",
    ),
    _row(
        "MUST_BE_NULLABLE",
        "DBX-2",
        "refused",
        "",
        "{path} is not nullable",
        "With the Avro encoding a value's columns must be nullable; Spark makes them so in Scala, not in Python.",
        "declare {path} nullable",
        NULLABLE_ERROR,
    ),
    _row(
        "THRESHOLD_EXCEEDED",
        "DBX-5",
        "refused",
        "",
        "the value schema with id {after} would be one too many: {detail} are allowed",
        "Each restart that changes a variable's schema counts once, however many fields change.",
        "raise spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold, or take a new checkpoint",
        THRESHOLD_ERROR,
    ),
    _row(
        "VARIABLE_ADDED",
        "DBX-2",
        "note",
        "supported",
        "the state variable is new",
        "It begins empty; no Avro encoding is needed.",
        "nothing is to be done",
    ),
    _row(
        "VARIABLE_REMOVED",
        "DBX-2",
        "note",
        "supported",
        "the state variable is no longer defined",
        "With deleteIfExists its rows go. Merely left out of the code, its schema leaves the newest schema file and the "
        "stored schemas keep binding: should it come back, it is held against them.",
        "call deleteIfExists to be rid of the rows",
    ),
    _row(
        "VARIABLE_CAME_BACK",
        "DBX-2",
        "note",
        "",
        "the state variable was there before and comes back",
        "Spark holds it against its old schemas, and goes on counting where it stopped.",
        "take another name for a variable that has nothing to do with the old one",
    ),
    _row(
        "NEVER_COMMITTED",
        "DBX-4",
        "fails later",
        "",
        "the state variable was declared first by a start that committed no batch",
        "With the Avro encoding Spark looks for its schema among those of committed batches, or in the schema file that a "
        "start writes when any schema changes. Here is neither: the query starts, and stops as soon as a row of the "
        "variable is looked for.",
        "check again if the query is in its first batch with it; else declare it under another name, or change any "
        "schema in the same restart",
        "UnsupportedOperationException",
    ),
    _row(
        "SCHEMA_ATTRIBUTES_CHANGED",
        "DBX-5",
        "note",
        "",
        "nullability, metadata or names of keys alone change",
        "No row reads otherwise, yet with evolution it counts as one.",
        "leave it out, or bring it together with other changes",
    ),
    _row(
        "CHECK_DISABLED",
        "DBX-4",
        "fails later",
        "",
        "Spark's own check is off and would refuse this: {detail}",
        "spark.sql.streaming.stateStore.stateSchemaCheck=false hides the error; rows are then read with the wrong schema.",
        "turn the check on again",
    ),
)
STATE_RULES: Final[Mapping[str, StateRule]] = {rule.id: rule for rule in _ROWS}
