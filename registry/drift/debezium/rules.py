"""The rules of change events from PostgreSQL, one row each."""

from __future__ import annotations

from typing import Final

from registry.drift.rules.rule import Rule

ROWS: Final[tuple[Rule, ...]] = (
    Rule(
        "CONNECTOR_TASK_FAILED",
        "break",
        "Task {task} of connector {connector} failed, though the connector says {state}: no change reaches the topics. {reason}",
        "Remove the cause (its trace is in the evidence), then resume with POST /connectors/{connector}/restart"
        "?includeTasks=true&onlyFailed=true. Until then the slot retains the database's log.",
    ),
    Rule(
        "CONNECTOR_NOT_RUNNING",
        "risk",
        "Connector {connector} is {state}: no change reaches the topics, while its slot retains the database's log.",
        "Resume it, or delete it together with its slot {slot} if it isn't needed any more.",
    ),
    Rule(
        "CONNECTOR_NOT_UNDERSTOOD",
        "notice",
        "Of connector {connector} this is not understood: {doubts}. What depends on it isn't judged.",
        "Check by hand what these settings do to topics, keys and columns.",
    ),
    Rule(
        "SLOT_LOST",
        "break",
        "Slot {slot} of connector {connector} is lost: PostgreSQL removed the log that it still needed, so changes are missing.",
        "Drop the slot and make a new snapshot (snapshot.mode=when_needed, or an ad hoc snapshot); tell consumers that"
        " changes between were not delivered one by one.",
    ),
    Rule(
        "SLOT_AT_RISK",
        "break",
        "Slot {slot} of connector {connector} will lose log that it needs at the next checkpoint: its lag is {lag}, more than"
        " max_slot_wal_keep_size.",
        "Let the connector catch up now, or raise max_slot_wal_keep_size until it has.",
    ),
    Rule(
        "SLOT_LAGS",
        "risk",
        "Slot {slot} of connector {connector} is {lag} behind: the events are old, and the database keeps its log for them.",
        "See whether the connector runs and the broker takes its events. With little traffic in the captured tables, set"
        " heartbeat.interval.ms.",
    ),
    Rule(
        "SLOT_UNUSED",
        "risk",
        "Nobody reads slot {slot}, though connector {connector} says {state}.",
        "Read the worker's log: another client may hold the slot's name, or the database may refuse the connection."
        " Kafka Connect shows neither.",
    ),
    Rule(
        "SLOT_MISSING",
        "risk",
        "Slot {slot} of connector {connector} isn't in the database {database}.",
        "If the connector has run before, changes since its slot went are lost: make a new snapshot.",
    ),
    Rule(
        "PUBLICATION_MISSING",
        "break",
        "Publication {publication} of connector {connector} isn't in the database {database}.",
        "CREATE PUBLICATION {publication} FOR TABLE …, or set publication.autocreate.mode.",
    ),
    Rule(
        "TABLE_NOT_PUBLISHED",
        "risk",
        "{table} is captured by connector {connector}, but publication {publication} doesn't have it: its changes never arrive.",
        "ALTER PUBLICATION {publication} ADD TABLE {table}, then snapshot the table; or take it out of table.include.list.",
    ),
    Rule(
        "OPERATIONS_NOT_PUBLISHED",
        "notice",
        "Publication {publication} doesn't publish {operations}: connector {connector} never sees them.",
        "ALTER PUBLICATION {publication} SET (publish = 'insert, update, delete, truncate') if consumers need them.",
    ),
    Rule(
        "TOPIC_SHARED",
        "break",
        "{names} share the topic {topic}: their names differ in characters that a topic can't have.",
        "Rename all but one, or give them topics of their own with a RegexRouter. Consumers of {topic} get rows of"
        " different tables, whose keys overwrite each other under compaction.",
    ),
    Rule(
        "TOPICS_CLASH",
        "break",
        "The topics {names} differ in '.' and '_' alone, and the broker refuses the second of them: the task fails"
        " with the first row of its table.",
        "Rename one of the tables, or route one of the topics to another name.",
    ),
    Rule(
        "SCHEMA_NAMES_MEET",
        "risk",
        "The schemas of {names} have the same Avro name {becomes} (schema.name.adjustment.mode={mode}): the task fails,"
        " or consumers take one for the other.",
        "Set schema.name.adjustment.mode=avro_unicode, or rename one of the tables.",
    ),
    Rule(
        "FIELDS_MEET",
        "break",
        "The columns {names} of {table} become one field, {becomes} (field.name.adjustment.mode={mode}): the task fails"
        " with the table's first row.",
        "Set field.name.adjustment.mode=avro_unicode, or rename one of the columns.",
    ),
    Rule(
        "COLUMNS_DIFFER_BY_CASE",
        "break",
        "The columns {names} of {table} differ in letter case alone, and the connector refuses such a table: its task fails.",
        "Rename one of the columns, or take the table out of table.include.list.",
    ),
    Rule(
        "NAME_NOT_AVRO",
        "risk",
        "{becomes} is no Avro name, and {connector} writes {table} as Avro: the converter fails or changes the name by itself.",
        "Set schema.name.adjustment.mode and field.name.adjustment.mode to avro_unicode; a table's name that begins with a digit"
        " needs another name.",
    ),
    Rule(
        "WRITES_REFUSED",
        "risk",
        "PostgreSQL refuses the application's own {statements} on {table}: it is published without a replica identity"
        " ({identity}).",
        "Give the table a primary key, or ALTER TABLE {table} REPLICA IDENTITY FULL; or publish its inserts alone.",
    ),
    Rule(
        "KEYS_WRONG",
        "break",
        "Deletes of {table} carry wrong keys: its replica identity is the index {index} on {columns}, but the events' key is {key}.",
        "ALTER TABLE {table} REPLICA IDENTITY DEFAULT (or FULL). Consumers that applied its deletes have rows left over:"
        " compare them with the table.",
    ),
    Rule(
        "KEY_MISSING",
        "notice",
        "The events of {table} have no key: the table has neither a primary key nor a unique index.",
        "Add a primary key, or name columns in message.key.columns. Don't compact {topic} before.",
    ),
    Rule(
        "KEY_WEAK",
        "risk",
        "The key of {table} is the unique index {index} on {key}, {why}: different rows may have the same key.",
        "Give the table a primary key, or name columns that tell every row apart in message.key.columns.",
    ),
    Rule(
        "COLUMN_NOT_CARRIED",
        "notice",
        "The events of {table} don't have the column {column} ({type}): {why}.",
        "If consumers need it, compute it there, or write it to a column of a plain type.",
    ),
    Rule(
        "ARRAY_LOST",
        "break",
        "Column {column} of {table} is an array of {dimensions} dimensions ({type}): its values arrive as nulls.",
        "Keep such values as jsonb, or as an array of one dimension.",
    ),
    Rule(
        "EVENTS_OF_SEVERAL_TABLES",
        "break",
        "{topic} carries the events of several tables: {names}.",
        "See which names meet there. Rows with the same key have overwritten each other where the topic is compacted.",
    ),
    Rule(
        "TRUNCATE_OUT_OF_ORDER",
        "risk",
        "{table} was truncated, and its topic {topic} has {partitions} partitions: consumers may see rows from before after it.",
        "Use one partition for tables that are truncated, or let consumers compare source.lsn with the truncate's.",
    ),
    Rule(
        "VALUES_UNAVAILABLE",
        "notice",
        "{messages} of {topic} hold __debezium_unavailable_value: a large value that the update left as it was isn't in the log.",
        "Let consumers keep the value that they have; or ALTER TABLE {table} REPLICA IDENTITY FULL.",
    ),
    Rule(
        "DELETES_STAY",
        "notice",
        "{topic} is compacted, but connector {connector} writes no tombstones: deleted rows stay there for ever.",
        "Set tombstones.on.delete=true, or keep the topic by time instead.",
    ),
    Rule(
        "TABLE_GONE",
        "notice",
        "{topic} carries events of {table}, which the database {database} doesn't have any more.",
        "A renamed table goes on in a topic of its new name: move the consumers there. If it was dropped, retire the topic.",
    ),
    Rule(
        "SHAPE_UNREADABLE",
        "notice",
        "The {what} of {topic} ({side}) couldn't be compared with {table}: {reason}.",
        "Compare it by hand, or register a schema of the row.",
    ),
    Rule(
        "COLUMN_ADDED",
        "risk",
        "Column {column} was added to {table}. {says} {lagging}",
        "{remedy}",
    ),
    Rule(
        "COLUMN_DROPPED",
        "risk",
        "Column {column} was dropped from {table}. {says} {lagging}",
        "{remedy} Consumers that need it have to stop before it goes.",
    ),
    Rule(
        "COLUMN_RENAMED",
        "risk",
        "Column {column} of {table} looks renamed to {becomes}{proof}. {says} {lagging}",
        "{remedy} To consumers a rename is a column that goes and another one that comes: give them an alias, or both columns"
        " for a while.",
    ),
    Rule(
        "COLUMN_RETYPED",
        "risk",
        "Column {column} of {table} has another type. {says} {lagging}",
        "{remedy} Consumers that read the old type fail or misread it.",
    ),
    Rule(
        "COLUMN_SCALED",
        "risk",
        "Column {column} of {table} has another scale, precision or length. {says} {lagging}",
        "{remedy} Consumers that took the scale for constant read wrong numbers, without an error.",
    ),
    Rule(
        "COLUMN_RELABELLED",
        "notice",
        "The enum of column {column} of {table} has other labels. {says} {lagging}",
        "{remedy} A new label shows in the schema when a row uses it.",
    ),
    Rule(
        "COLUMN_NULLABILITY",
        "risk",
        "Column {column} of {table} changed in whether it may be null. {says} {lagging}",
        "{remedy}",
    ),
    Rule(
        "COLUMN_DEFAULT",
        "notice",
        "Column {column} of {table} has another default. {says} {lagging}",
        "{remedy}",
    ),
    Rule(
        "KEY_CHANGED",
        "risk",
        "The key of {table} has other columns. {says} {lagging}",
        "{remedy} Rows that were written under the old key are never overwritten or deleted under the new one:"
        " consumers have to load the table again.",
    ),
    Rule(
        "KEY_LOST",
        "break",
        "{table} lost its key. {says} {lagging}",
        "Give the table a primary key again, or name columns in message.key.columns. Until then events are spread over"
        " partitions without order, and compaction refuses them.",
    ),
    Rule(
        "NEXT_ROW_REFUSED",
        "break",
        "The next row of {table} will fail the task of {connector}: {subject} is {level}, and the schema that comes with it is"
        " refused. {reason}",
        "Before a row is written: make the change in a way that the level allows ({change}), or agree on it with the consumers"
        " and relax the level for this version. Afterwards the failed task has to be restarted.",
    ),
)
RULES: Final[dict[str, Rule]] = {row.id: row for row in ROWS}
