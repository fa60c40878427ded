"""The rules about change events from PostgreSQL, one row each."""

from __future__ import annotations

from typing import Final

from registry.drift.rules.rule import Rule

ROWS: Final[tuple[Rule, ...]] = (
    Rule(
        "CONNECTOR_TASK_FAILED",
        "break",
        "Task {task} of connector {connector} failed, although the connector reports {state}: no changes reach the "
        "topics. {reason}",
        "Fix the cause (see the trace in the evidence), then resume with POST "
        "/connectors/{connector}/restart?includeTasks=true&onlyFailed=true. Until then, the slot retains the "
        "database's log.",
        group="Failed tasks of connector {connector}",
    ),
    Rule(
        "CONNECTOR_NOT_RUNNING",
        "risk",
        "Connector {connector} is {state}{tasks}: no changes reach the topics, and its slot retains the database's log.",
        "Resume it, or delete it together with its slot {slot} if it is no longer needed.",
    ),
    Rule(
        "CONNECTOR_REMOVED",
        "break",
        "Kafka Connect at {where} has no connector {connector}: no changes reach the topics. {slot}",
        "Create it again with the same name, topic.prefix and slot.name, or remove this source. Drop a slot that is no "
        "longer needed: SELECT pg_drop_replication_slot(…).",
    ),
    Rule(
        "CONNECTOR_NOT_UNDERSTOOD",
        "notice",
        "Parts of the configuration of connector {connector} are unknown: {doubts}. What depends on them is not "
        "checked.",
        "Check manually how these settings affect topics, keys and columns.",
    ),
    Rule(
        "SLOT_LOST",
        "break",
        "Slot {slot} of connector {connector} is lost: PostgreSQL removed log that it still needed, so changes are "
        "missing.",
        "Drop the slot and take a new snapshot (snapshot.mode=when_needed, or an ad hoc snapshot). Tell consumers "
        "that the changes in between were not delivered individually.",
    ),
    Rule(
        "SLOT_AT_RISK",
        "break",
        "At the next checkpoint, slot {slot} of connector {connector} will lose log that it needs: its lag is "
        "{lag}, more than max_slot_wal_keep_size.",
        "Let the connector catch up now, or raise max_slot_wal_keep_size until it has caught up.",
    ),
    Rule(
        "SLOT_LAGS",
        "risk",
        "The lag of slot {slot} of connector {connector} is {lag}: events arrive late, and the database retains "
        "its log.",
        "Check that the connector is running and that the broker accepts its events. If the captured tables have "
        "little traffic, set heartbeat.interval.ms.",
    ),
    Rule(
        "SLOT_UNUSED",
        "risk",
        "Slot {slot} has no reader, although connector {connector} reports {state}.",
        "Check the worker's log: another client may use the slot's name, or the database may refuse the "
        "connection. Kafka Connect reports neither.",
    ),
    Rule(
        "SLOT_MISSING",
        "risk",
        "Slot {slot} of connector {connector} is missing in database {database}.",
        "If the connector has run before, the changes since its slot was removed are lost: take a new snapshot.",
    ),
    Rule(
        "PUBLICATION_MISSING",
        "break",
        "Publication {publication} of connector {connector} is missing in database {database}.",
        "CREATE PUBLICATION {publication} FOR TABLE …, or set publication.autocreate.mode.",
    ),
    Rule(
        "TABLE_NOT_PUBLISHED",
        "risk",
        "Connector {connector} captures {table}, but publication {publication} doesn't include it: its changes "
        "never arrive.",
        "ALTER PUBLICATION {publication} ADD TABLE {table}, then snapshot the table, or remove it from "
        "table.include.list.",
    ),
    Rule(
        "PARTITIONS_PUBLISHED_SEPARATELY",
        "risk",
        "{table} is partitioned, and publication {publication} publishes its changes under the names of its partitions: "
        "{consequence}.",
        "ALTER PUBLICATION {publication} SET (publish_via_partition_root = true) if consumers read the topic of {table}; "
        "table.include.list must then include it. Otherwise remove it from table.include.list.",
        former="PARTITIONS_PUBLISHED_APART",
    ),
    Rule(
        "PARTITION_PUBLISHED_AS_ROOT",
        "risk",
        "Publication {publication} publishes the changes of partition {table} under the name of {root}, which connector "
        "{connector} doesn't capture: they never arrive.",
        "Add {root} to table.include.list, or ALTER PUBLICATION {publication} SET (publish_via_partition_root = false).",
    ),
    Rule(
        "OPERATIONS_NOT_PUBLISHED",
        "notice",
        "Publication {publication} doesn't publish {operations}: connector {connector} never receives them.",
        "ALTER PUBLICATION {publication} SET (publish = 'insert, update, delete, truncate') if consumers need them.",
    ),
    Rule(
        "TOPIC_SHARED",
        "break",
        "{names} share topic {topic}: their names differ only in characters that topic names can't contain.",
        "Rename all but one, or route them to separate topics with a RegexRouter. Consumers of {topic} get rows of "
        "different tables, whose keys overwrite each other under compaction.",
    ),
    Rule(
        "TOPIC_NAMES_COLLIDE",
        "break",
        "Topics {names} differ only in '.' and '_', and the broker rejects the second one: the task fails on the "
        "first row of its table.",
        "Rename one of the tables, or route one of the topics to another name.",
        former="TOPICS_CLASH",
    ),
    Rule(
        "SCHEMA_NAMES_COLLIDE",
        "risk",
        "The schemas of {names} have the same Avro name {becomes} (schema.name.adjustment.mode={mode}): the task "
        "fails, or consumers mistake one for the other.",
        "Set schema.name.adjustment.mode=avro_unicode, or rename one of the tables.",
        former="SCHEMA_NAMES_MEET",
    ),
    Rule(
        "FIELD_NAMES_COLLIDE",
        "break",
        "Columns {names} of {table} map to the same field, {becomes} (field.name.adjustment.mode={mode}): the task "
        "fails on the table's first row.",
        "Set field.name.adjustment.mode=avro_unicode, or rename one of the columns.",
        former="FIELDS_MEET",
    ),
    Rule(
        "COLUMNS_DIFFER_BY_CASE",
        "break",
        "Columns {names} of {table} differ only in letter case, and the connector rejects such a table: its task "
        "fails.",
        "Rename one of the columns, or remove the table from table.include.list.",
    ),
    Rule(
        "NAME_INVALID_IN_AVRO",
        "risk",
        "{becomes} is not a valid Avro name, and {connector} writes {table} as Avro: the converter fails or "
        "changes the name.",
        "Set schema.name.adjustment.mode and field.name.adjustment.mode to avro_unicode. Rename a table whose name "
        "starts with a digit.",
        former="NAME_NOT_AVRO",
    ),
    Rule(
        "REPLICA_IDENTITY_MISSING",
        "risk",
        "PostgreSQL rejects the application's own {statements} on {table}: it is published without a replica "
        "identity ({identity}).",
        "Give the table a primary key, run ALTER TABLE {table} REPLICA IDENTITY FULL, or publish only its inserts.",
        former="WRITES_REFUSED",
    ),
    Rule(
        "DELETE_KEYS_WRONG",
        "break",
        "Deletes of {table} carry wrong keys: its replica identity is the index {index} on {columns}, but the events' key is {key}.",
        "ALTER TABLE {table} REPLICA IDENTITY DEFAULT (or FULL). Consumers that applied its deletes still have "
        "deleted rows: compare their data with the table.",
        former="KEYS_WRONG",
    ),
    Rule(
        "TABLE_WITHOUT_KEY",
        "notice",
        "The events of {table} have no key: the table has neither a primary key nor a unique index.",
        "Add a primary key, or set columns in message.key.columns. Don't compact {topic} until then.",
        former="KEY_MISSING",
    ),
    Rule(
        "KEY_NOT_UNIQUE",
        "risk",
        "The key of {table} is the unique index {index} on {key}, {why}: different rows may have the same key.",
        "Give the table a primary key, or set message.key.columns to columns that identify every row.",
        former="KEY_WEAK",
    ),
    Rule(
        "COLUMN_NOT_IN_EVENTS",
        "notice",
        "Column {column} ({type}) is missing in the events of {table}: {why}.",
        "If consumers need it, compute it in the consumer, or write it to a column with a supported type.",
        former="COLUMN_NOT_CARRIED",
    ),
    Rule(
        "ARRAY_ARRIVES_AS_NULL",
        "break",
        "Column {column} of {table} is an array with {dimensions} dimensions ({type}): its values arrive as null.",
        "Store such values as jsonb, or as a one-dimensional array.",
        former="ARRAY_LOST",
    ),
    Rule(
        "EVENTS_OF_SEVERAL_TABLES",
        "break",
        "{topic} carries the events of several tables: {names}.",
        "Check which tables are routed to it. If the topic is compacted, rows with the same key have overwritten "
        "each other.",
    ),
    Rule(
        "TRUNCATE_OUT_OF_ORDER",
        "risk",
        "{table} was truncated, and its topic {topic} has {partitions} partitions: consumers may see rows from "
        "before the truncate after it.",
        "Use one partition for tables that are truncated, or have consumers compare source.lsn with the truncate's.",
    ),
    Rule(
        "VALUES_UNAVAILABLE",
        "notice",
        "__debezium_unavailable_value appears in {messages} of {topic}: the log doesn't contain a large value that "
        "an update left unchanged.",
        "Have consumers keep the value that they have, or run ALTER TABLE {table} REPLICA IDENTITY FULL.",
    ),
    Rule(
        "TOMBSTONES_NOT_WRITTEN",
        "notice",
        "{topic} is compacted, but connector {connector} writes no tombstones: deleted rows stay in it forever.",
        "Set tombstones.on.delete=true, or use time-based retention for the topic.",
        former="DELETES_STAY",
    ),
    Rule(
        "TABLE_DROPPED",
        "notice",
        "{topic} carries events of {table}, which no longer exists in database {database}.",
        "A renamed table continues in a topic with its new name: move consumers there. If the table was dropped, "
        "retire the topic.",
        former="TABLE_GONE",
    ),
    Rule(
        "SCHEMA_NOT_COMPARED",
        "notice",
        "The {what} of {topic} ({side}) couldn't be compared with {table}: {reason}.",
        "Compare it manually, or register a schema of the row.",
        former="SHAPE_UNREADABLE",
    ),
    Rule(
        "COLUMN_ADDED",
        "risk",
        "Column {column} was added to {table}. {says} {lagging}",
        "{remedy}",
        group="Changes of table {table}",
    ),
    Rule(
        "COLUMN_DROPPED",
        "risk",
        "Column {column} was dropped from {table}. {says} {lagging}",
        "{remedy} Consumers must stop using the column before it is removed.",
        group="Changes of table {table}",
    ),
    Rule(
        "COLUMN_RENAMED",
        "risk",
        "Column {column} of {table} looks renamed to {becomes}{proof}. {says} {lagging}",
        "{remedy} To consumers, a rename is one column removed and another added: provide an alias, or both "
        "columns during the transition.",
        group="Changes of table {table}",
    ),
    Rule(
        "COLUMN_REPLACED",
        "break",
        "Column {column} of {table} is now another column: {origin}. Neither its name nor the schemas show this.",
        "Give the columns names that were not in use before. If the change is meant, have consumers reload the table: "
        "in rows from before, {column} has other values.",
        group="Changes of table {table}",
    ),
    Rule(
        "COLUMN_TYPE_CHANGED",
        "risk",
        "The type of column {column} of {table} changed. {says} {lagging}",
        "{remedy} Consumers that read the old type fail or misread it.",
        group="Changes of table {table}",
        former="COLUMN_RETYPED",
    ),
    Rule(
        "COLUMN_SCALE_CHANGED",
        "risk",
        "The scale, precision or length of column {column} of {table} changed. {says} {lagging}",
        "{remedy} Consumers that assume a constant scale read wrong numbers without an error.",
        group="Changes of table {table}",
        former="COLUMN_SCALED",
    ),
    Rule(
        "COLUMN_ENUM_CHANGED",
        "notice",
        "The enum labels of column {column} of {table} changed. {says} {lagging}",
        "{remedy} A new label appears in the schema once a row uses it.",
        group="Changes of table {table}",
        former="COLUMN_RELABELLED",
    ),
    Rule(
        "COLUMN_NULLABILITY_CHANGED",
        "risk",
        "The nullability of column {column} of {table} changed. {says} {lagging}",
        "{remedy}",
        group="Changes of table {table}",
        former="COLUMN_NULLABILITY",
    ),
    Rule(
        "COLUMN_DEFAULT_CHANGED",
        "notice",
        "The default of column {column} of {table} changed. {says} {lagging}",
        "{remedy}",
        group="Changes of table {table}",
        former="COLUMN_DEFAULT",
    ),
    Rule(
        "KEY_CHANGED",
        "risk",
        "The key columns of {table} changed. {says} {lagging}",
        "{remedy} Rows written with the old key are never overwritten or deleted with the new one: consumers must "
        "reload the table.",
        group="Changes of table {table}",
    ),
    Rule(
        "KEY_REMOVED",
        "break",
        "{table} lost its key. {says} {lagging}",
        "Restore the table's primary key, or set columns in message.key.columns. Until then, events are spread "
        "over partitions without order, and compacted topics reject them.",
        group="Changes of table {table}",
        former="KEY_LOST",
    ),
    Rule(
        "NEXT_ROW_REJECTED",
        "break",
        "The next row of {table} will fail the task of {connector}: {subject} is {level}, and the new schema will "
        "be rejected. {reason}",
        "Before a row is written, make the change in a way that the level allows ({change}), or agree on it with "
        "the consumers and relax the level for this version. After a row is written, the failed task must also be "
        "restarted.",
        group="Changes of table {table}",
        former="NEXT_ROW_REFUSED",
    ),
)
RULES: Final[dict[str, Rule]] = {row.id: row for row in ROWS}
