"""Rules about a registry's own tables, including advice for production, and about the state of streaming queries."""

from __future__ import annotations

from typing import Final

from registry.drift.rules.rule import Rule

REGISTRY_RULES: Final = (
    Rule(
        "REGISTERED_WITHOUT_PROMOTION",
        "risk",
        "Version {version} of {subject} was registered in {registry} by {by} through {door}, without a promotion.",
        "Request its adoption to have it reviewed afterwards, quarantine it, or delete it while nothing uses it. "
        "Keep {registry} closed.",
    ),
    Rule(
        "LEVEL_RELAXED",
        "risk",
        "In {registry}, {by} relaxed the compatibility of {scope} from {before} to {after} at {at}.",
        "Set it back to {before} once the change that needed it is done. Versions registered in the meantime "
        "passed a weaker check.",
    ),
    Rule(
        "MODE_RELAXED",
        "risk",
        "In {registry}, {by} opened the mode of {scope} from {before} to {after} at {at}.",
        "Set it back to {before} once the change that needed it is done.",
    ),
    Rule(
        "ENVIRONMENTS_DIFFER",
        "risk",
        "Version {version} of {subject} has a different schema in {registry} than in {other}.",
        "Compare the two. Promote the newer one as a new version: a version number can't be reused.",
    ),
    Rule(
        "AUTO_REGISTRATION",
        "notice",
        "Clients register versions automatically in {registry}: {count} by {by}, {evidence}.",
        "Set auto.register.schemas=false in the producers, and register schemas in their deployment pipeline.",
    ),
    Rule(
        "LEVEL_NONE",
        "risk",
        "In {registry}, {scope} {have} compatibility NONE: any schema is accepted.",
        "Set BACKWARD or stricter. Use NONE only for the duration of a single change.",
    ),
    Rule(
        "PRODUCTION_WRITABLE",
        "risk",
        "{registry} is the last environment, and {scope} {have} mode {mode}: versions can be added without a "
        "promotion.",
        "Set {registry} to READONLY. Promotions can still release versions to it.",
    ),
    Rule(
        "CLIENTS_MAY_REGISTER",
        "notice",
        "{count} with API tokens may create versions in {registry}: {names}.",
        "Give the reader role to programs that only produce or consume, and keep the right to register for the "
        "deployment pipeline.",
    ),
    Rule(
        "CONNECTOR_AUTO_REGISTERS",
        "risk",
        "Connector {connector} registers schemas automatically: {setting} is {value}.",
        "Set {setting}=false, and register the schemas before the connector starts.",
    ),
    Rule(
        "CONNECTOR_NOT_ON_LATEST",
        "notice",
        "Connector {connector} neither registers schemas nor uses the latest version: {setting} is {value}.",
        "Set {setting}=true to make it write with the registered schema. Otherwise it fails where its own schema "
        "isn't registered.",
    ),
    Rule(
        "LEVEL_NOT_TRANSITIVE",
        "notice",
        "{count} versions of {subject} are live in data ({versions}), and its compatibility {level} checks only "
        "the latest one.",
        "Set {level}_TRANSITIVE to check a new version against every version that still has data.",
    ),
)


STATE_RULES: Final = (
    Rule(
        "STATE_SCHEMA_EVOLVED",
        "notice",
        "State variable {variable} (operator {operator}) changed with batch {batch}: {changes}. Older rows are "
        "read with the new schema.",
        "Check that the change was intended and that consumers know about it. Fields missing in older rows read as "
        "null.",
        group="State changes with batch {batch}",
    ),
    Rule(
        "RENAME_SUSPECTED",
        "risk",
        "State variable {variable} (operator {operator}) lost {dropped} and gained {added} of the same type with "
        "batch {batch}. Spark treats a rename as a removal and an addition, without an error: old values {loss}.",
        "If it was a rename, restore the field's old name before more rows are written, or fill {added} from the "
        "source again.",
        group="State changes with batch {batch}",
    ),
    Rule(
        "STATE_FIELD_DROPPED",
        "risk",
        "State variable {variable} (operator {operator}) lost {dropped} with batch {batch}. Its values {loss}.",
        "If the values are still needed, add the field again: rows that haven't been rewritten still hold them.",
        group="State changes with batch {batch}",
    ),
    Rule(
        "STATE_FIELD_TYPE_CHANGED",
        "risk",
        "In state variable {variable} (operator {operator}), {path} changed from {before} to {after} with batch "
        "{batch}. {why}",
        "Restore the field's old type before more rows are written, and add a field of the new type under a new name.",
        group="State changes with batch {batch}",
        former="STATE_FIELDS_MEANING_CHANGED",
    ),
    Rule(
        "STATE_DECIMAL_RESCALED",
        "risk",
        "In state variable {variable} (operator {operator}), {path} changed from {before} to {after} with batch "
        "{batch}. {why}",
        "Restore the field's old scale before more rows are written, and add a field with the new scale under a "
        "new name.",
        group="State changes with batch {batch}",
    ),
    Rule(
        "STATE_TYPE_UNREADABLE",
        "break",
        "In state variable {variable} (operator {operator}), {path} is {after}, which Spark writes as Avro int and "
        "can't read back: the query fails as soon as a task opens this state.",
        "Use integer instead of {after}, and start with a new checkpoint.",
        former="STATE_TYPE_NOT_READ_BACK",
    ),
    Rule(
        "EVOLUTION_BUDGET",
        "risk",
        "State variable {variable} (operator {operator}) has used {used} of {allowed} value schemas. Spark refuses "
        "a restart that would exceed the limit.",
        "Combine several changes in one restart, which counts once, raise "
        "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold, or plan a new checkpoint.",
    ),
    Rule(
        "SCHEMA_FILE_BUDGET",
        "risk",
        "Operator {operator} has used {used} of {allowed} schema files. Once all are used, Spark refuses to add or "
        "remove state variables.",
        "Raise spark.sql.streaming.stateStore.maxNumStateSchemaFiles, or plan a new checkpoint.",
    ),
    Rule(
        "STATE_UNREADABLE",
        "notice",
        "The rows of state variable {variable} (operator {operator}) couldn't be read: {reason}.",
        "Check that the Spark server can open the checkpoint's path and has the state store provider's jars.",
    ),
    Rule(
        "STATE_FILES_DAMAGED",
        "break",
        "The checkpoint's files are damaged: {problem}.",
        "Restore the file from a copy of the checkpoint. A query that can't read its schema files doesn't start.",
    ),
    Rule(
        "STATE_EVOLVED_UNRELEASED",
        "risk",
        "State variable {variable} (operator {operator}) changed with batch {batch} ({began}): {changes}. The "
        "query reads {subjects}, and no version of it was registered or released for this change.",
        "Find the application build that changed the state, and register the schema that it was built against.",
        group="State changes with batch {batch}",
    ),
    Rule(
        "STATE_DIFFERS_FROM_SUBJECT",
        "risk",
        "State variable {variable} (operator {operator}) differs from {subject} version {version}: {fields}.",
        "Build the application against the newest version. Check the restart first: not every type can be changed.",
        former="STATE_DEPARTS",
    ),
    Rule(
        "STATE_KEY_AT_RISK",
        "risk",
        "The key of state variable {variable} (operator {operator}) has {path} as {before}; {subject} version "
        "{version} has it as {after}. Keys never evolve: Spark refuses an application that uses the new type.",
        "Cast {path} to {before} before the query groups by it, or start with a new checkpoint.",
    ),
    Rule(
        "STATE_CANNOT_EVOLVE",
        "risk",
        "A change to state variable {variable} (operator {operator}) is planned, but its state is encoded as "
        "{encoding}: only Avro-encoded values of transformWithState can evolve.",
        "Start with a new checkpoint and set spark.sql.streaming.stateStore.encodingFormat to avro, or keep the "
        "schema.",
    ),
    Rule(
        "STATE_CHECK_OFF",
        "risk",
        "Since batch {batch}, the query has run without Spark's state schema check: an unreadable change fails "
        "later, after rows have been written with it.",
        "Remove spark.sql.streaming.stateStore.stateSchemaCheck from the query's settings.",
    ),
    Rule(
        "STATE_SETTING_CHANGED",
        "risk",
        "The query's {setting} changed from {before} to {after} with batch {batch}. State written before still has "
        "the old form.",
        "Check that the state was rebuilt with the new setting. Otherwise go back to a checkpoint from before the "
        "change.",
    ),
    Rule(
        "CHECKPOINT_NOT_ADVANCING",
        "risk",
        "The query isn't advancing: {why}.",
        "Check the query's last error. If the query was stopped permanently, remove its source.",
    ),
)
