"""The rules of drift, one row each: what is said of it, how bad it is, and what to do.

Severities are those of findings: `break` (data is lost or unreadable now), `risk` (it will be, or it may already
be in silence), `notice` (somebody should know). Sentences and remedies are templates; `judge` fills in the names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["break", "risk", "notice"]


@dataclass(frozen=True)
class Rule:
    """A row of RULES."""

    id: str
    severity: Severity
    sentence: str
    remedy: str


_ROWS: Final = (
    Rule(
        "UNKNOWN_SCHEMA_ID",
        "break",
        "Schema id {schema_id} stands in {messages} of {topic} ({side}), but {registry} doesn't know it: "
        "no consumer of this registry can read that data.",
        "Find the producer by offset and time; most often it registers with another registry. Point it here, "
        "or import that schema under its id.",
    ),
    Rule(
        "ID_OF_OTHER_SUBJECT",
        "break",
        "Schema id {schema_id} stands in {messages} of {topic} ({side}). It belongs to {owners}, not to {expected}: "
        "consumers decode that data as something else.",
        "Find the producer by offset and time and correct its topic or its subject name strategy. If the schema is "
        "meant for this topic too, register it under {expected}.",
    ),
    Rule(
        "ID_DELETED",
        "risk",
        "Schema id {schema_id} stands in {messages} of {topic} ({side}), but its version in {expected} is deleted: "
        "it is gone from the registry's lists, yet in use.",
        "Restore the version, or move its producers to a live one and delete it when the data has expired.",
    ),
    Rule(
        "UNFRAMED_DATA",
        "break",
        "No schema id stands in {messages} of {topic} ({side}), though {expected} is registered for it; "
        "the bytes look like {hints}.",
        "Find the producer by offset and time and let it write with the registry's serializer. Consumers need a way "
        "around these offsets until they expire.",
    ),
    Rule(
        "UNDECODABLE",
        "break",
        "The body doesn't decode in {messages} of {topic} ({side}) with schema id {schema_id} ({owners}).",
        "Read one of the offsets by hand: a body that is cut off or written with another schema points to the "
        "producer. Consumers need a way around these offsets.",
    ),
    Rule(
        "SUBJECT_MISSING",
        "notice",
        "Schema ids of {owners} stand in {messages} of {topic} ({side}), but {registry} has no subject for this side "
        "of the topic.",
        "Register the schema under the topic's own subject, or say in the source which subject name strategy its "
        "producers use.",
    ),
    Rule(
        "TOO_MANY_IDS",
        "risk",
        "More different ids than a scan tells apart ({groups} further ones in one partition) stand in {messages} of {topic}: "
        "most likely bytes that only look framed.",
        "Look at what writes to this topic: numbers or identifiers that begin with a zero byte look like schema ids.",
    ),
    Rule(
        "SCHEMA_NOT_DECODED",
        "notice",
        "Bodies of {topic} with schema id {schema_id} weren't checked: {reason}.",
        "Nothing is known of these messages beyond their id. Simplify the schema, or decode some of them by hand.",
    ),
    Rule(
        "STATE_SCHEMA_EVOLVED",
        "notice",
        "State variable {variable} (operator {operator}) changed with batch {batch}: {changes}. "
        "Rows written before read as the new schema says.",
        "Check that the change was meant and that its consumers know; what was not filled before reads as null.",
    ),
    Rule(
        "RENAME_SUSPECTED",
        "risk",
        "State variable {variable} (operator {operator}) lost {dropped} and gained {added} of the same type with batch "
        "{batch}. Spark takes a rename for that, without an error: old values {loss}.",
        "If it was a rename, give the field its old name back before more rows are written, or fill {added} again "
        "from the source.",
    ),
    Rule(
        "STATE_FIELD_DROPPED",
        "risk",
        "State variable {variable} (operator {operator}) lost {dropped} with batch {batch}, which {loss}.",
        "If the values are still needed, add the field again: rows that weren't rewritten since still hold them.",
    ),
    Rule(
        "EVOLUTION_BUDGET",
        "risk",
        "State variable {variable} (operator {operator}) has used {used} of {allowed} value schemas; "
        "Spark refuses the restart that needs one more than that.",
        "Put several changes into one restart, which counts once; raise "
        "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold, or plan a new checkpoint.",
    ),
    Rule(
        "SCHEMA_FILE_BUDGET",
        "risk",
        "Operator {operator} has {used} of {allowed} schema files; "
        "Spark refuses to add or remove state variables when they are used up.",
        "Raise spark.sql.streaming.stateStore.maxNumStateSchemaFiles, or plan a new checkpoint.",
    ),
    Rule(
        "STATE_UNREADABLE",
        "notice",
        "The rows of state variable {variable} (operator {operator}) couldn't be read: {reason}.",
        "Make sure that the Spark server can open the checkpoint's path and has the state store provider's jars.",
    ),
)
RULES: Final[dict[str, Rule]] = {rule.id: rule for rule in _ROWS}

# Of a budget, from the highest share down: the first that is reached gives the severity.
BUDGET_SEVERITIES: Final[tuple[tuple[float, Severity], ...]] = ((0.90, "break"), (0.75, "risk"))
