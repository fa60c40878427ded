"""Rules about topics, whose schemas their messages carry and how, and about the fields of decoded messages."""

from __future__ import annotations

from typing import Final

from registry.drift.rules.rule import Rule

TOPIC_RULES: Final = (
    Rule(
        "UNKNOWN_SCHEMA_ID",
        "break",
        "{Mark} stands in {messages} of {topic} ({side}), but {registry} doesn't know it: "
        "no consumer of this registry can read that data.",
        "Find the producer by offset and time; most often it registers with another registry. Point it here, "
        "or import that schema under its id.",
    ),
    Rule(
        "ID_OF_OTHER_SUBJECT",
        "break",
        "{Mark} stands in {messages} of {topic} ({side}). It belongs to {owners}, not to {expected}: "
        "consumers decode that data as something else.",
        "Find the producer by offset and time and correct its topic or its subject name strategy. If the schema is "
        "meant for this topic too, register it under {expected}.",
    ),
    Rule(
        "ID_OF_OTHER_CONTEXT",
        "break",
        "{Mark} stands in {messages} of {topic} ({side}). Context {context} of {registry} doesn't know it; it belongs "
        "to {owners} of another context.",
        "Let producers and consumers of the topic use one context, or set the source's context to the one whose ids "
        "the messages carry.",
    ),
    Rule(
        "ID_DELETED",
        "risk",
        "{Mark} stands in {messages} of {topic} ({side}), but its version in {expected} is deleted: "
        "it is gone from the registry's lists, yet in use.",
        "Restore the version, or move its producers to a live one and delete it when the data has expired.",
    ),
    Rule(
        "ID_NOT_RELEASED",
        "risk",
        "{Mark} stands in {messages} of {topic} ({side}). It is {owners}, which was never released to {registry} by a "
        "promotion.",
        "Request the promotion of that version, so that it is reviewed; or move its producers back to a released one.",
    ),
    Rule(
        "ID_QUARANTINED",
        "risk",
        "{Mark} stands in {messages} of {topic} ({side}). It is {owners}, which is in quarantine in {registry} since "
        "{since}: {message}",
        "Stop what writes it until the version is adopted by a request or deleted; nobody reviewed what these messages "
        "mean.",
    ),
    Rule(
        "ID_BELOW_LEAST",
        "risk",
        "{Mark} stands in {messages} of {topic} ({side}) that came after {since}. It is {owners}, and since then producers "
        "may write version {least} or a later one in {registry}: {message}",
        "Find the producer by offset and time and give it version {least} or a later one; or set an older least version "
        "among the settings of the subject.",
    ),
    Rule(
        "ID_RETIRED",
        "risk",
        "{Mark} stands in {messages} of {topic} ({side}) that came after {owners} was retired in {registry} on {since}: "
        "{message}",
        "Find the producer by offset and time and move it to a version in good standing.",
    ),
    Rule(
        "ID_DEPRECATED",
        "notice",
        "{Mark} stands in {messages} of {topic} ({side}) that came after {owners} was deprecated in {registry} on "
        "{since}{until}: {message}",
        "Find the producer by offset and time and move it to a version in good standing before the end.",
    ),
    Rule(
        "OLD_VERSION_WRITTEN",
        "notice",
        "{topic} ({side}) is still written with version {version} of {subject}, in {messages} since {since}, though "
        "version {newer} is in use since {newer_since}.",
        "Find the producer by offset and time and give it version {latest}; until then version {version} can't be "
        "retired.",
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
        "FRAME_CUT",
        "break",
        "{messages} of {topic} ({side}) {begin} like a frame and {end} before the schema id is complete.",
        "Look at one of the offsets: the message was cut off, or it is a number that begins with a zero byte and no "
        "frame at all.",
    ),
    Rule(
        "FRAMED_TWICE",
        "break",
        "{messages} of {topic} ({side}) {carry} {mark} in a header and a frame with schema id {schema_id} in the body. "
        "A consumer that follows the header takes the frame for data.",
        "Let the producer write one of the two: the header with a bare body, or the frame without the header.",
    ),
    Rule(
        "FRAMING_MIXED",
        "risk",
        "{topic} ({side}) holds messages with {framings}: a consumer that knows one of them can't read the others.",
        "Agree on one framing for the topic. While producers move, consumers need a deserializer that reads both.",
    ),
    Rule(
        "UNDECODABLE",
        "break",
        "The body doesn't decode in {messages} of {topic} ({side}) with {mark} ({owners}).",
        "Read one of the offsets by hand: a body that is cut off or written with another schema points to the "
        "producer. Consumers need a way around these offsets.",
        "On a side without a subject it is this severe only once most bodies with that id decode; else a `notice`, of live "
        "versions alone, since lengths and counters in binary data may pass for ids. Includes strings that aren't UTF-8, "
        "which some clients replace and others refuse.",
    ),
    Rule(
        "SCHEMA_VIOLATED",
        "risk",
        "The value violates its schema in {messages} of {topic} ({side}) with {mark} ({owners}).",
        "Look at the keyword that the evidence names, and correct the producer: its serializer doesn't validate, or "
        "validates with another version. If the value is meant, allow it by a new version.",
    ),
    Rule(
        "MESSAGE_NOT_READ",
        "risk",
        "Reading the body was given up in {messages} of {topic} ({side}), so nothing is known of it: {reason}.",
        "Read one of the offsets by hand, with a limit on depth and memory: a consumer without one may crash on it. "
        "Then find the producer by offset and time.",
    ),
    Rule(
        "OFFSETS_EXPIRED",
        "risk",
        "The cluster deleted {offsets} of {topic} before a scan read them: nothing is known of those messages.",
        "Scan more often, or raise the bounds of the source where its scans end behind; or keep the messages of "
        "{topic} longer (retention.ms, retention.bytes).",
    ),
    Rule(
        "TOPIC_MADE_ANEW",
        "risk",
        "{topic} was deleted and made again after it was last read on {since}: {unread}, and of what came between then "
        "and its deletion nothing is known.",
        "Find out who deleted the topic and whether that was meant. Consumers and connectors that kept their offsets may "
        "skip messages of the new one, or read them twice; scans read it from its start.",
        "The cluster gives another topic id than before, or an end of a partition lies before what was read of it.",
    ),
    Rule(
        "NOT_JSON",
        "risk",
        "{messages} of {topic} ({side}) {look} like JSON and {are} none, on a topic that holds JSON otherwise.",
        "Read one of the offsets by hand: a body that is cut off or put together as text points to the producer.",
    ),
    Rule(
        "SUBJECT_MISSING",
        "notice",
        "Schemas of {owners} stand in {messages} of {topic} ({side}), but {registry} has no subject for this side "
        "of the topic.",
        "Register the schema under the topic's own subject, or let its producers use a subject name strategy that "
        "leads to an existing one.",
        "At least one message carries the id of a registered schema. Its evidence counts what couldn't be told beside it: "
        "unknown ids, bodies that don't decode, and frames that are cut off. Without a known id they may be any binary "
        "data, and nothing is said of them.",
    ),
    Rule(
        "TOPIC_WITHOUT_SUBJECT",
        "notice",
        "{topic} ({side}) has no subject in {registry}: {looks}, and nothing says what they mean.",
        "Register a schema for the topic, or leave it out of the source by a pattern.",
    ),
    Rule(
        "SUBJECT_WITHOUT_TOPIC",
        "notice",
        "Subject {subject} has {live} in {registry}, but its topic {topic} {gone}.",
        "If the topic is gone for good, delete the subject; if it has another name or cluster, connect that one.",
    ),
    Rule(
        "TOO_MANY_IDS",
        "risk",
        "More different ids than a scan tells apart ({groups} further ones in one partition) stand in {messages} of "
        "{topic}: most likely bytes that only look framed.",
        "Look at what writes to this topic: numbers or identifiers that begin with a zero byte look like schema ids.",
    ),
    Rule(
        "SCHEMA_NOT_DECODED",
        "notice",
        "Bodies of {topic} with {mark} weren't checked: {reason}.",
        "Nothing is known of these messages beyond their id. Simplify the schema, or decode some of them by hand.",
    ),
    Rule(
        "KEY_SCHEMA_CHANGED",
        "risk",
        "The keys of {topic}, which is compacted, are written with {marks}. One key then has several forms in bytes: "
        "compaction keeps each of them, and they may lie in different partitions.",
        "Write all keys with one schema. To clean up, copy the topic with one key schema, or send a tombstone for "
        "every old key in its old form.",
    ),
    Rule(
        "MESSAGE_TYPE_CHANGED",
        "risk",
        "{topic} ({side}) holds several Protobuf message types of {subject}: {types}. A consumer of one of them "
        "misreads the others.",
        "Give each message type a topic or a subject of its own; if consumers tell the types apart, use the subject "
        "name strategy TopicRecordName.",
    ),
)


FIELD_RULES: Final = (
    Rule(
        "FIELD_UNDECLARED",
        "risk",
        "Field {path} stands in {share} of {topic} ({side}), but {declared_by} {doesnt} declare it.",
        "Add the field to the schema by a new version, or take it out of the producer.",
    ),
    Rule(
        "FIELD_MISSING",
        "risk",
        "Field {path} is missing in {share} of {topic} ({side}), though {declared_by} {requires} it.",
        "Let the producer fill the field, or make it optional by a new version, with a default for consumers.",
    ),
    Rule(
        "FIELD_KIND_WRONG",
        "risk",
        "Field {path} is {observed} in {share} of {topic} ({side}); {declared_by} {declares} {declared}.",
        "Correct the producer. If the new kind is meant, add a field of that kind under a new name.",
    ),
    Rule(
        "ENUM_VALUE_UNDECLARED",
        "risk",
        "Field {path} holds a value in {share} of {topic} ({side}) that {declared_by} {doesnt} list.",
        "Add the value to the enum by a new version, consumers first; or correct the producer.",
    ),
    Rule(
        "FIELD_KIND_NEW",
        "risk",
        "Field {path} is {observed} in {share} of {topic} ({side}); in the {days} days before it was {before} alone.",
        "Ask the producer whether the change was meant. Register a schema for the topic, so that it is refused next "
        "time.",
    ),
    Rule(
        "NULL_SHARE_ROSE",
        "risk",
        "Field {path} is empty in {now} of {messages} of {topic} ({side}); in the {days} days before it was {least} to "
        "{most}.",
        "Ask the producer what changed at that time: a field renamed, a source not read any more, a new kind of "
        "record.",
    ),
    Rule(
        "ENUM_SHARE_SHIFTED",
        "notice",
        "The value {value} of field {path} stands in {now} of {messages} of {topic} ({side}); in the {days} days "
        "before it was {least} to {most}.",
        "Check whether the change was meant; a default in place of the real value looks like this.",
    ),
    Rule(
        "FIELD_NEVER_FILLED",
        "risk",
        "Field {path} is never filled any more in {messages} of {topic} ({side}); in the {days} days before it was "
        "filled in {least} to {most}.",
        "Ask the producer whether the field was dropped or renamed. If it is not needed any more, deprecate it in a "
        "new version.",
    ),
)
