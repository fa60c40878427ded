"""Rules about topics, the schemas and framing of their messages, and the fields of decoded messages."""

from __future__ import annotations

from typing import Final

from registry.drift.rules.rule import Rule

TOPIC_RULES: Final = (
    Rule(
        "UNKNOWN_SCHEMA_ID",
        "break",
        "{Mark} appears in {messages} of {topic} ({side}) but isn't registered in {registry}: consumers of this "
        "registry can't decode that data.",
        "Find the producer by offset and time. Most often it registers with another registry: point it at this "
        "one, or import the schema under its id.",
        group="{Mark} isn't registered in {registry}",
    ),
    Rule(
        "ID_OF_OTHER_SUBJECT",
        "break",
        "{Mark} appears in {messages} of {topic} ({side}). It belongs to {owners}, not to {expected}: consumers "
        "decode that data with the wrong schema.",
        "Find the producer by offset and time, and correct its topic or its subject name strategy. If the schema "
        "belongs on this topic too, register it under {expected}.",
    ),
    Rule(
        "ID_OF_OTHER_CONTEXT",
        "break",
        "{Mark} appears in {messages} of {topic} ({side}). It isn't registered in context {context} of {registry}; "
        "it belongs to {owners} in another context.",
        "Use one context for the topic's producers and consumers, or set the source's context to the one that the "
        "messages' ids come from.",
    ),
    Rule(
        "ID_DELETED",
        "risk",
        "{Mark} appears in {messages} of {topic} ({side}), but its version in {expected} is deleted: the registry "
        "no longer lists it, and it is still in use.",
        "Restore the version, or move its producers to a live version and delete this one after its data has expired.",
    ),
    Rule(
        "ID_NOT_RELEASED",
        "risk",
        "{Mark} appears in {messages} of {topic} ({side}). It is {owners}, which no promotion released to {registry}.",
        "Request the promotion of that version to have it reviewed, or move its producers back to a released version.",
    ),
    Rule(
        "ID_QUARANTINED",
        "risk",
        "{Mark} appears in {messages} of {topic} ({side}). It is {owners}, which has been quarantined in "
        "{registry} since {since}: {message}",
        "Stop its producers until the version is adopted by a request or deleted. The version has not been reviewed.",
    ),
    Rule(
        "ID_BELOW_MINIMUM_VERSION",
        "risk",
        "{Mark} appears in {messages} of {topic} ({side}) written after {since}. It is {owners}, and since then "
        "the minimum version in {registry} is {minimum}: {message}",
        "Find the producer by offset and time and move it to version {minimum} or later, or lower the minimum "
        "version in the subject's settings.",
        former="ID_BELOW_LEAST",
    ),
    Rule(
        "ID_RETIRED",
        "risk",
        "{Mark} appears in {messages} of {topic} ({side}) written after {owners} was retired in {registry} on "
        "{since}: {message}",
        "Find the producer by offset and time and move it to an active version.",
    ),
    Rule(
        "ID_DEPRECATED",
        "notice",
        "{Mark} appears in {messages} of {topic} ({side}) written after {owners} was deprecated in {registry} on "
        "{since}{until}: {message}",
        "Find the producer by offset and time and move it to an active version before the deadline.",
    ),
    Rule(
        "OLD_VERSION_WRITTEN",
        "notice",
        "{topic} ({side}) is still written with version {version} of {subject}, in {messages} since {since}, "
        "although version {newer} has been in use since {newer_since}.",
        "Find the producer by offset and time and move it to version {latest}. Until then, version {version} can't "
        "be retired.",
    ),
    Rule(
        "UNFRAMED_DATA",
        "break",
        "{messages} of {topic} ({side}) {have} no schema id, although {expected} is registered for it. The bytes "
        "look like {hints}.",
        "Find the producer by offset and time and have it use the registry's serializer. Consumers must skip these "
        "offsets until the messages expire. If no producer writes schema ids and the subject only documents the "
        "topic, mute this rule for the subject.",
    ),
    Rule(
        "FRAME_TRUNCATED",
        "break",
        "{messages} of {topic} ({side}) {begin} like a frame but {end} before the schema id is complete.",
        "Look at one of the offsets: either the message was cut off, or it isn't framed and only starts with a "
        "zero byte, such as a number.",
        former="FRAME_CUT",
    ),
    Rule(
        "FRAMED_TWICE",
        "break",
        "{messages} of {topic} ({side}) {carry} {mark} in a header and a frame with schema id {schema_id} in the "
        "body. A consumer that follows the header decodes the frame as data.",
        "Have the producer write only one of them: the header with an unframed body, or the frame without the header.",
    ),
    Rule(
        "FRAMING_MIXED",
        "risk",
        "{messages} of {topic} ({side}) {carry} {framings}, others {usual}: a consumer that supports only one of them "
        "can't decode the others.",
        "Use one framing for the topic. During the migration, consumers need a deserializer that reads both.",
    ),
    Rule(
        "UNDECODABLE",
        "break",
        "Decoding fails for {messages} of {topic} ({side}) with {mark} ({owners}).",
        "Inspect one of the offsets: the producer may have cut off the body or written it with another schema. "
        "Consumers must skip these offsets.",
        "On a side without a subject, it has this severity only once most bodies with that id decode; until then "
        "it is a `notice`, for live versions only, because lengths and counters in binary data can look like ids. "
        "Includes strings that aren't UTF-8, which some clients replace and others reject.",
    ),
    Rule(
        "SCHEMA_VIOLATED",
        "risk",
        "The value violates its schema in {messages} of {topic} ({side}) with {mark} ({owners}).",
        "Check the keyword named in the evidence and correct the producer: its serializer doesn't validate, or "
        "validates against another version. If the value is intended, allow it in a new version.",
    ),
    Rule(
        "CONTRACT_RULE_BROKEN",
        "risk",
        "The data contract rule {rule} is broken in {share} of {topic} ({side}) with {mark} ({owners}). {effect}.",
        "Look at one of the offsets and find the producer: its serializer has no executor for rules, or the rule was off. "
        "If the value is right, correct the rule in a new version.",
        "An enabled condition of type CEL or CEL_FIELD is false. `break` if clients refuse the message when they read it "
        "(mode READ or WRITEREAD, onFailure ERROR), `notice` with onFailure NONE.",
    ),
    Rule(
        "CONTRACT_RULE_NOT_CHECKED",
        "notice",
        "The data contract rule {rule} was not checked in {share} of {topic} ({side}) with {mark} ({owners}): {reason}.",
        "Correct the expression in a new version and try it on recent messages first. Until then, these messages may "
        "break the rule. Clients that check rules refuse messages on which an expression fails.",
    ),
    Rule(
        "MESSAGE_NOT_READ",
        "risk",
        "Schemadesk did not decode {messages} of {topic} ({side}), so the content is unknown: {reason}.",
        "Inspect one of the offsets with limits on depth and memory: a consumer without such limits may crash on "
        "it. Then find the producer by offset and time.",
    ),
    Rule(
        "OFFSETS_EXPIRED",
        "risk",
        "The cluster deleted {offsets} of {topic} before a scan read them: the content of those messages is unknown.",
        "Scan more often, raise the source's limits if its scans fall behind, or keep the messages of {topic} "
        "longer (retention.ms, retention.bytes).",
    ),
    Rule(
        "TOPIC_RECREATED",
        "risk",
        "{topic} was deleted and recreated after it was last read on {since}: {unread}, and messages written "
        "between then and its deletion are unknown.",
        "Find out who deleted the topic and whether that was intended. Consumers and connectors that kept their "
        "offsets may skip messages of the new topic or read them twice. Scans read it from its start.",
        "The cluster reports a different topic id than before, or the end of a partition is before the position "
        "already read.",
    ),
    Rule(
        "KEYS_MISSING",
        "risk",
        "{messages} of {topic} {have} no key, although {expected} is registered for its keys.",
        "Have the producer set the key. Messages without one go to any partition, so consumers don't get an object's "
        "messages in order, and a compacted topic rejects them.",
    ),
    Rule(
        "TOMBSTONES_NOT_COMPACTED",
        "notice",
        "{messages} of {topic} {are} (no value), but the topic isn't compacted: older messages with the same key stay.",
        "If the topic holds the latest value of each key, set cleanup.policy=compact. If not, have the producer write "
        "deletions as messages of their own: deserializers return null for a tombstone.",
        "Neither rule applies to change events: Debezium writes tombstones by default, and a table may have no key.",
    ),
    Rule(
        "NOT_JSON",
        "risk",
        "{messages} of {topic} ({side}) {look} like JSON but {are} not valid JSON, although {expected}.",
        "Inspect one of the offsets: the producer may have cut off the body or assembled the JSON as text.",
    ),
    Rule(
        "SUBJECT_MISSING",
        "notice",
        "Schemas of {owners} appear in {messages} of {topic} ({side}), but {registry} has no subject for the "
        "topic's {side}.",
        "Register the schema under the topic's own subject, or have its producers use a subject name strategy that "
        "matches an existing subject.",
        "At least one message carries the id of a registered schema. The evidence also counts the messages that "
        "couldn't be identified: unknown ids, bodies that don't decode, and frames that are cut off. Without a "
        "known id they may be any binary data and aren't reported.",
    ),
    Rule(
        "TOPIC_WITHOUT_SUBJECT",
        "notice",
        "{topic} ({side}) has no subject in {registry}: {looks}, and no schema describes them.",
        "Have the producers use a serializer that writes schema ids, and register a schema for the topic. If they "
        "can't, the subject only documents the topic: mute UNFRAMED_DATA for it before you register, because that "
        "rule reports messages without a schema id as a break. Or exclude the topic from the source with a pattern.",
        group="Topics without a subject in {registry}",
    ),
    Rule(
        "SUBJECT_WITHOUT_TOPIC",
        "notice",
        "Subject {subject} has {live} in {registry}, but its topic {topic} {gone}.",
        "If the topic was removed permanently, delete the subject. If it was renamed or moved to another cluster, "
        "add that topic or cluster as a source.",
        group="Subjects of {registry} without a topic",
    ),
    Rule(
        "TOO_MANY_IDS",
        "risk",
        "{messages} of {topic}: more distinct schema ids than a scan counts separately ({groups} more in one "
        "partition). Most likely, these bytes only look framed.",
        "Check what writes to this topic: numbers or identifiers that start with a zero byte look like schema ids.",
    ),
    Rule(
        "SCHEMA_NOT_DECODED",
        "notice",
        "Bodies of {topic} with {mark} were not checked: {reason}.",
        "Only the id of these messages is known. Simplify the schema, or decode some of the messages manually.",
    ),
    Rule(
        "CHECK_LIMITED",
        "notice",
        "{place} was not checked in full: {reason}.",
        "Treat what was left out as unknown, not as clean. Correct the findings that are listed: the next scan then "
        "lists others. Split a schema that has too many fields, symbols or levels.",
        "A limit keeps a scan of hostile or very large data short. The evidence has the limit, and how much was left "
        "out if that is known.",
    ),
    Rule(
        "KEY_SCHEMA_CHANGED",
        "risk",
        "The keys of {topic}, a compacted topic, are written with {marks}. The same key then has several byte "
        "encodings: compaction keeps each of them, and they may be in different partitions.",
        "Write all keys with one schema. To clean up, copy the topic with one key schema, or write a tombstone for "
        "every old key in its old encoding.",
    ),
    Rule(
        "MESSAGE_TYPE_CHANGED",
        "risk",
        "{topic} ({side}) holds several Protobuf message types of {subject}: {types}. A consumer that expects one "
        "of them misreads the others.",
        "Use a separate topic or subject for each message type. If consumers can distinguish the types, use the "
        "subject name strategy TopicRecordName.",
    ),
    Rule(
        "TOPIC_SILENT",
        "risk",
        "{topic} has {change} in the {periods} before. Confidence: {sure}.",
        "Check that the producer runs and reaches the cluster, and that the job that writes the topic has started. The "
        "finding resolves after messages have come again. Acknowledge it without an end if the topic is no longer written.",
        "The same hours of the last weeks always had at least 10 messages. Also found where a batch is late.",
    ),
    Rule(
        "VOLUME_CHANGED",
        "risk",
        "The volume of {topic} changed: {change} in the {periods} before. Confidence: {sure}.",
        "Ask the producer's team whether the change was intended. A filter, a lost partition or a producer that is "
        "missing writes less; a loop, a replay or a second producer writes more. Acknowledge the finding without an end "
        "if the change is right.",
        "At most 0.4 times the usual, or as a `notice` at least twice of it, in two periods in a row, and not what most "
        "topics of the source do at the same time.",
    ),
    Rule(
        "VERSION_SILENT",
        "notice",
        "{topic} has no message with {mark} ({owners}) since {last}. Each of {days} before had {usual}. The messages of "
        "the other versions go on and don't replace them. Confidence: {sure}.",
        "Check that the producers of this version run and reach the cluster. If they were switched off on purpose, mark "
        "the version as deprecated, or acknowledge the finding without an end.",
        "On at least 7 days, each with at least 50 messages of the version, and none on a whole day since. Only where "
        "producers write different versions, and fields are scanned.",
    ),
)


FIELD_RULES: Final = (
    Rule(
        "FIELD_UNDECLARED",
        "risk",
        "Field {path} appears in {share} of {topic} ({side}), but {declared_by} {doesnt} declare it.",
        "Add the field to the schema in a new version, or remove it from the producer.",
    ),
    Rule(
        "FIELD_MISSING",
        "risk",
        "Field {path} is missing in {share} of {topic} ({side}), although {declared_by} {requires} it.",
        "Have the producer fill the field, or make it optional in a new version, with a default for consumers.",
    ),
    Rule(
        "FIELD_TYPE_WRONG",
        "risk",
        "Field {path} is {observed} in {share} of {topic} ({side}); {declared_by} {declares} {declared}.",
        "Correct the producer. If the new type is intended, add a field of that type under a new name.",
        former="FIELD_KIND_WRONG",
    ),
    Rule(
        "ENUM_VALUE_UNDECLARED",
        "risk",
        "Field {path} holds a value in {share} of {topic} ({side}) that {declared_by} {doesnt} list.",
        "Add the value to the enum in a new version and upgrade consumers first, or correct the producer.",
    ),
    Rule(
        "FIELD_TYPE_NEW",
        "risk",
        "Field {path} is {observed} in {share} of {topic} ({side}); in the {days} days before, it was always {before}.",
        "Ask the producer's team whether the change was intended. Register a schema for the topic so that such a "
        "change is rejected.",
        former="FIELD_KIND_NEW",
    ),
    Rule(
        "NULL_SHARE_INCREASED",
        "risk",
        "Field {path} is empty in {now} of {messages} of {topic} ({side}); in the {days} days before, it was "
        "{least} to {most}.",
        "Ask the producer's team what changed at that time: a renamed field, a source that is no longer read, a "
        "new kind of record.",
        former="NULL_SHARE_ROSE",
    ),
    Rule(
        "ENUM_SHARE_SHIFTED",
        "notice",
        "The value {value} of field {path} appears in {now} of {messages} of {topic} ({side}); in the {days} days "
        "before, it was {least} to {most}.",
        "Check whether the change was intended. A default written instead of the real value looks like this.",
    ),
    Rule(
        "FIELD_NEVER_FILLED",
        "risk",
        "Field {path} is no longer filled in {messages} of {topic} ({side}); in the {days} days before, it was "
        "filled in {least} to {most}.",
        "Ask the producer's team whether the field was dropped or renamed. If it is no longer needed, deprecate it "
        "in a new version.",
    ),
    Rule(
        "UNIT_CHANGED",
        "risk",
        "Field {path} seems to be in another unit or form in {messages} of {topic} ({side}): {change}, compared with the "
        "{days} days before. Confidence: {sure}.",
        "Ask the producer's team whether the unit or the form was changed. Consumers calculate with the old one: restore "
        "it, or add a field under a new name. Acknowledge the finding without an end if the change is right.",
        "The least and the greatest value both moved by 2, 3, 6 or 9 powers of ten, dates moved by more than 10 years, or "
        "all texts got one other length.",
    ),
    Rule(
        "DISTINCT_VALUES_CHANGED",
        "risk",
        "The number of different values of field {path} changed in {messages} of {topic} ({side}): {change} in the {days} "
        "days before. Confidence: {sure}.",
        "Ask the producer's team what changed at that time. A default in place of the real value, a lost join and a free "
        "text in place of a code look like this. Acknowledge the finding without an end if the change is right.",
        "At least 4 times more or fewer than the volume explains. As a `notice`: a new value of a field that had the "
        "same 2 to 50 values every day, in two scans in a row.",
    ),
    Rule(
        "VALUES_OUT_OF_RANGE",
        "risk",
        "The values of field {path} left their usual range in {messages} of {topic} ({side}): {change} in the {days} days "
        "before. Confidence: {sure}.",
        "Fetch some of the messages and look at the field. Then ask the producer's team what changed at that time. "
        "Acknowledge the finding without an end if the change is right.",
        "In two scans in a row: a sign, empty texts or only empty lists that no day had, or an end that is outside of all "
        "days by 2 powers of ten, 4 times the length, or 10 years.",
        former="VALUE_RANGE_LEFT",
    ),
    Rule(
        "FIELDS_SWAPPED",
        "risk",
        "The values of the fields {path} and {other} are swapped in {share} of {topic} ({side}){marks}: {path} is usually "
        "{usual} and {other} {usual_other}, and there it is the other way round. {why} Confidence: {sure}.",
        "Look at one of the offsets and find the producer by offset and time: it most likely wrote the bytes with another "
        "schema than the id says, or it assigns the two fields wrongly. Correct it, and write the messages again: consumers "
        "read them without an error, with wrong values.",
        "The usual values of the two fields don't overlap, and a version of the subject has them in each other's place, or "
        "their ranges never met in at least 7 days. At most 1,000 messages of a schema, chosen at random, are compared.",
    ),
)
