"""Rules about a registry's own tables, with the advice for production, and about the state of streaming queries."""

from __future__ import annotations

from typing import Final

from registry.drift.rules.rule import Rule

REGISTRY_RULES: Final = (
    Rule(
        "REGISTERED_WITHOUT_PROMOTION",
        "risk",
        "Version {version} of {subject} was registered in {registry} by {by} through {door}, without a promotion.",
        "Ask for its adoption, so that it is reviewed after the fact; or quarantine it, or delete it while nothing uses "
        "it. Keep {registry} closed.",
    ),
    Rule(
        "LEVEL_RELAXED",
        "risk",
        "The compatibility of {scope} in {registry} was relaxed from {before} to {after} by {by} at {at}.",
        "Set it back to {before} once the change that needed it is done; versions registered meanwhile were checked "
        "less.",
    ),
    Rule(
        "MODE_RELAXED",
        "risk",
        "The mode of {scope} in {registry} was opened from {before} to {after} by {by} at {at}.",
        "Set it back to {before} once the change that needed it is done.",
    ),
    Rule(
        "ENVIRONMENTS_DIFFER",
        "risk",
        "Version {version} of {subject} is one schema in {registry} and another one in {other}.",
        "Compare the two. Bring the newer one over as a new version by a promotion; a version's number can't be "
        "used again.",
    ),
    Rule(
        "AUTO_REGISTRATION",
        "notice",
        "Clients register versions by themselves in {registry}: {count} by {by}, {evidence}.",
        "Set auto.register.schemas=false in the producers, and register in the pipeline that ships them.",
    ),
    Rule(
        "LEVEL_NONE",
        "risk",
        "{scope} of {registry} {have} compatibility NONE: any schema is accepted.",
        "Set BACKWARD or stricter; use NONE for the time of one change only.",
    ),
    Rule(
        "PRODUCTION_WRITABLE",
        "risk",
        "{registry} is the last environment, and {scope} {have} mode {mode}: versions can be added without a "
        "promotion.",
        "Set {registry} READONLY; releases still get in.",
    ),
    Rule(
        "CLIENTS_MAY_REGISTER",
        "notice",
        "{count} with API tokens may create versions in {registry}: {names}.",
        "Give programs that only produce or consume the role reader; keep the right to register for the pipeline "
        "that ships them.",
    ),
    Rule(
        "CONNECTOR_AUTO_REGISTERS",
        "risk",
        "Connector {connector} registers schemas by itself: {setting} is {value}.",
        "Set {setting}=false, and register the schemas before the connector starts.",
    ),
    Rule(
        "CONNECTOR_NOT_ON_LATEST",
        "notice",
        "Connector {connector} doesn't register schemas and doesn't take the latest one either: {setting} is {value}.",
        "Set {setting}=true, so that it writes with the registered schema; otherwise it stops where its own one "
        "isn't registered.",
    ),
    Rule(
        "LEVEL_NOT_TRANSITIVE",
        "notice",
        "{count} versions of {subject} are live in data ({versions}), and its compatibility {level} asks the latest "
        "one only.",
        "Set {level}_TRANSITIVE, so that a new version is compared with every version whose data is still there.",
    ),
)


STATE_RULES: Final = (
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
        "STATE_FIELDS_MEANING_CHANGED",
        "risk",
        "In state variable {variable} (operator {operator}) {path} changed from {before} to {after} with batch "
        "{batch}. {why}",
        "Give the field its old type back before more rows are written, and add one of the new type under a new name.",
    ),
    Rule(
        "STATE_DECIMAL_RESCALED",
        "risk",
        "In state variable {variable} (operator {operator}) {path} changed from {before} to {after} with batch "
        "{batch}. {why}",
        "Give the field its old scale back before more rows are written, and add one of the new scale under a new "
        "name.",
    ),
    Rule(
        "STATE_TYPE_NOT_READ_BACK",
        "break",
        "In state variable {variable} (operator {operator}) {path} is {after}, which Spark writes as Avro's int and "
        "can't read back: the query stops as soon as a task opens this state.",
        "Take integer in place of {after}, and begin with a new checkpoint.",
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
    Rule(
        "STATE_FILES_DAMAGED",
        "break",
        "The checkpoint's files are damaged: {problem}.",
        "Bring the file back from a copy of the checkpoint. A query that can't read its schema files doesn't start.",
    ),
    Rule(
        "STATE_EVOLVED_UNRELEASED",
        "risk",
        "State variable {variable} (operator {operator}) changed with batch {batch} ({began}): {changes}. No version of "
        "{subjects}, which the query reads, was registered or released for it.",
        "Find out which build of the application changed its state, and register what it was built on.",
    ),
    Rule(
        "STATE_DEPARTS",
        "risk",
        "State variable {variable} (operator {operator}) departs from {subject} version {version}: {fields}.",
        "Build the application on the newest version; check the restart before, as not every type can follow.",
    ),
    Rule(
        "STATE_KEY_AT_RISK",
        "risk",
        "The key of state variable {variable} (operator {operator}) has {path} as {before}; {subject} version {version} "
        "has it as {after}. Keys never evolve: Spark refuses an application that takes the new type.",
        "Cast {path} to {before} before the query groups by it, or begin with a new checkpoint.",
    ),
    Rule(
        "STATE_CANNOT_EVOLVE",
        "risk",
        "A change of state variable {variable} (operator {operator}) is planned, and its state is encoded as {encoding}: "
        "only transformWithState's Avro-encoded values can evolve.",
        "Begin with a new checkpoint and set spark.sql.streaming.stateStore.encodingFormat to avro, or leave the schema.",
    ),
    Rule(
        "STATE_CHECK_OFF",
        "risk",
        "Since batch {batch} the query runs without Spark's check of its state schemas: a change that can't be read "
        "fails later, with rows that were written meanwhile.",
        "Take spark.sql.streaming.stateStore.stateSchemaCheck off the query's settings.",
    ),
    Rule(
        "STATE_SETTING_CHANGED",
        "risk",
        "The {setting} of the query changed from {before} to {after} with batch {batch}; what was written before has "
        "the other form.",
        "Make sure that the state was made anew with it; else go back to a checkpoint of before.",
    ),
    Rule(
        "CHECKPOINT_NOT_ADVANCING",
        "risk",
        "The query isn't getting on: {why}.",
        "Look at the query's last error; a query that was ended for good can be taken off the sources.",
    ),
)
