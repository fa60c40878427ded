"""The form of the evidence of each rule. A rule without a row in FORMS can't make a finding."""
# ruff: noqa: D101  # what a form is about stands with the rules that FORMS gives it to

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict

from registry.drift.evidence.rows import (
    ExpiredRow,
    FailureRow,
    FieldChangeRow,
    FieldDepartureRow,
    MarkRow,
    Milliseconds,
    PartitionRow,
    RegistrationRow,
    SampleRow,
    VersionRow,
)

# ---- topics -------------------------------------------------------------------------------------------------------


class Messages(TypedDict):
    """Messages of a topic's side. The counts by scan and by hour are added where findings are kept."""

    topic: str
    side: Literal["key", "value"] | None
    expected: NotRequired[str]
    messages: int
    of_messages_read: int
    first_time: NotRequired[Milliseconds]
    last_time: NotRequired[Milliseconds]
    partitions: NotRequired[list[PartitionRow]]
    samples: NotRequired[list[SampleRow]]
    ids_over_time: NotRequired[dict[str, int]]
    ids_by_hour: NotRequired[dict[str, int]]
    ids_by_hour_spread: NotRequired[int]
    ids_by_hour_earlier: NotRequired[int]


class MarkedMessages(Messages):
    """Messages that carry one mark: a schema id, a GUID or a content type."""

    framing: str
    mark: str
    schema_id: NotRequired[int]


class OwnedMessages(MarkedMessages):
    """Messages with the mark of known versions."""

    owners: str


class UnknownId(MarkedMessages):
    same_number_elsewhere: NotRequired[str]


class OtherSubject(OwnedMessages):
    undecodable_messages: int


class OtherContext(OwnedMessages):
    contexts: list[str]


class NotReleased(OwnedMessages):
    registered: list[RegistrationRow]


class Standing(OwnedMessages):
    standing: str
    since: Milliseconds
    until: Milliseconds | None
    least: NotRequired[int]


class OldVersion(Messages):
    version: int
    newer: int
    newer_in_use_since: Milliseconds
    latest_in_use: int
    days_of_grace: int


class Hints(Messages):
    looks_like: dict[str, int]


class FramedTwice(Messages):
    guid: str
    schema_ids: list[int]


class MixedFramings(Messages):
    framings: dict[str, int]
    framings_before: NotRequired[dict[str, int]]


class Undecodable(OwnedMessages):
    of_messages: int
    offsets: list[FailureRow]


class NotRead(Messages):
    """Messages whose reading was given up; without a mark where they name no schema."""

    framing: NotRequired[str]
    mark: NotRequired[str]
    schema_id: NotRequired[int]
    offsets: list[FailureRow]


class ExpiredOffsets(TypedDict):
    """`messages` is how many there were at most."""

    topic: str
    messages: int
    expired: list[ExpiredRow]


class RemadeTopic(TypedDict):
    """The ids are the cluster's own; `unread_before` is how many offsets the last scan had left, where that is known."""

    topic: str
    topic_id_before: NotRequired[str]
    topic_id: NotRequired[str]
    last_read_at: Milliseconds
    noticed_at: Milliseconds
    unread_before: NotRequired[int]


class NotJson(Messages):
    parsed: int
    offsets: list[FailureRow]


class SubjectMissing(Messages):
    marks: list[str]
    owners: str
    not_told: NotRequired[dict[str, int]]


class SubjectWithoutTopic(TypedDict):
    subject: str
    topic: str
    live_versions: int
    was_there: bool


class TooManyIds(Messages):
    groups: int


class NotDecoded(MarkedMessages):
    reason: str


class KeySchemas(Messages):
    compacted: bool
    marks: list[MarkRow]


class MessageTypes(Messages):
    types: dict[str, int]
    types_before: list[str]


# ---- fields of decoded messages -----------------------------------------------------------------------------------


class Field(Messages):
    """A field of messages; the counts are missing where no message has it."""

    field: str
    framing: str
    mark: str
    decoded: NotRequired[int]
    present: NotRequired[int]
    nulls: NotRequired[int]
    kinds: NotRequired[dict[str, int]]


class FieldUndeclared(Field):
    """`names` is how many different names an object has that is used as a map."""

    names: NotRequired[int]


class FieldMissing(Field):
    missing: int


class FieldKindWrong(Field):
    declared: list[str]


class EnumValues(Field):
    different_values: int
    lengths: list[int]


class FieldKindNew(Field):
    kind: str
    before: list[str]
    days: int


class FieldShare(Field):
    share: float
    share_before: list[float]
    days: int
    z: float


class EnumShare(FieldShare):
    value: str


# ---- the registry itself ------------------------------------------------------------------------------------------


class OfRegistry(TypedDict):
    registry: str


class RegisteredVersion(OfRegistry):
    subject: str
    version: int
    schema_id: int
    registered_at: Milliseconds
    registered_by: str
    door: str


class DifferingVersion(RegisteredVersion):
    other: str
    fingerprint: str


class Relaxed(OfRegistry):
    scope: str
    before: str
    after: str
    now: str
    at: Milliseconds
    by: str


class AutoRegistration(OfRegistry):
    by: str
    versions: list[VersionRow]
    first_message_after_ms: list[int]
    kind: str


class Level(OfRegistry):
    scope: str
    level: str


class Mode(OfRegistry):
    scope: str
    mode: str


class Accounts(OfRegistry):
    accounts: list[str]
    number: int


class ConnectorSetting(OfRegistry):
    connector: str
    setting: str
    value: str


class LevelNotTransitive(OfRegistry):
    subject: str
    level: str
    versions: list[int]


# ---- state of streaming queries -----------------------------------------------------------------------------------


class Operator(TypedDict):
    """A state variable of an operator; `rows_unread_since` is added while no scan can open its rows."""

    operator: int
    variable: str
    rows_unread_since: NotRequired[str]


class BeforeAndAfter(Operator):
    """`versions` are the numbers of two schemas of a variable, the others Spark's JSON of their values' structs."""

    batch: int | None
    versions: list[int]
    old_schema: str
    new_schema: str


class VariableVersion(BeforeAndAfter):
    kind: str
    encoding: str


class StateEvolved(VariableVersion):
    changes: list[FieldChangeRow]


class StateFieldGone(VariableVersion):
    field: str
    type: str | None
    rows_before: NotRequired[int]
    filled_before: NotRequired[int]
    batch_before: NotRequired[int]


class RenameSuspected(StateFieldGone):
    added: str
    rows_now: NotRequired[int]
    null_now: NotRequired[int]
    batch_now: NotRequired[int]


class StateValuesChanged(BeforeAndAfter):
    kind: str
    path: str
    field: str
    before: str | None
    after: str | None


class StateTypeNotRead(Operator):
    batch: int | None
    field: str
    type: str | None


class StateBudget(Operator):
    used: int
    allowed: int
    share: float


class StateUnreadable(Operator):
    reason: str
    batch: int | None


class StateEvolvedUnreleased(BeforeAndAfter):
    began: str
    changes: list[FieldChangeRow]
    subjects: list[str]


class StateDeparts(Operator):
    batch: NotRequired[int | None]
    subject: str
    version: int
    fields: list[FieldDepartureRow]


class StateKeyAtRisk(Operator):
    path: str
    before: str
    after: str
    subject: str
    version: int


class StateCannotEvolve(Operator):
    encoding: str


class OfQuery(TypedDict):
    """`path` is the checkpoint's folder."""

    path: str
    rows_unread_since: NotRequired[str]


class StateFilesDamaged(OfQuery):
    problem: str


class QueryBatch(OfQuery):
    batch: int | None


class StateSetting(QueryBatch):
    setting: str
    before: str
    after: str


class NotAdvancing(QueryBatch):
    why: str


# ---- change events from PostgreSQL --------------------------------------------------------------------------------


class ConnectorTask(TypedDict):
    connector: str
    task: int
    state: str
    trace: str


class ConnectorState(TypedDict):
    connector: str
    state: str
    trace: NotRequired[str]


class ConnectorDoubts(TypedDict):
    connector: str
    not_understood: list[str]


class Slot(TypedDict):
    connector: str
    slot: str
    active: NotRequired[bool]
    wal_status: NotRequired[str]
    lag_bytes: NotRequired[int | None]
    safe_bytes: NotRequired[int | None]
    plugin: NotRequired[str]


class Publication(TypedDict):
    connector: str
    publication: str


class PublicationTable(Publication):
    table: str


class PublicationOperations(Publication):
    operations: list[str]


class NamesMeet(TypedDict):
    names: list[str]
    becomes: str
    mode: str


class NamesNotAvro(TypedDict):
    names: list[str]
    table: str


class TableKey(TypedDict):
    table: str
    identity: str
    key: list[str]
    meaning: str


class WritesRefused(TableKey):
    refused: list[str]
    publications: list[str]


class KeysWrong(TableKey):
    index: str
    index_columns: list[str]


class KeyWeak(TableKey):
    index: str
    why: str


class ColumnNotCarried(TypedDict):
    table: str
    column: str
    why: str


class ArrayLost(TypedDict):
    table: str
    column: str
    dimensions: int


class TopicTables(TypedDict):
    topic: str
    tables: list[str]


class Truncate(TypedDict):
    topic: str
    topic_partitions: int
    partitions: list[PartitionRow]


class ValuesUnavailable(TypedDict):
    topic: str
    messages: int
    events: list[PartitionRow]


class Deletes(TypedDict):
    topic: str
    deletes: int


class TableGone(TypedDict):
    topic: str
    table: str
    database: str


class ShapeUnreadable(TypedDict):
    what: str
    topic: str
    side: str
    table: str
    reason: str


class ColumnDeparture(TypedDict):
    """`says` is the column's type by who says it: table, registered, events."""

    table: str
    column: str
    becomes: str
    says: dict[str, str]
    behind: list[str]
    topic: str


class KeyDeparture(TypedDict):
    table: str
    says: dict[str, list[str]]
    behind: list[str]
    topic: str


class NextRow(TypedDict):
    table: str
    side: NotRequired[Literal["key", "value"]]
    reasons: list[str]
    schema: str


FORMS: Final[dict[str, type]] = {
    "UNKNOWN_SCHEMA_ID": UnknownId,
    "ID_OF_OTHER_SUBJECT": OtherSubject,
    "ID_OF_OTHER_CONTEXT": OtherContext,
    "ID_DELETED": OwnedMessages,
    "ID_NOT_RELEASED": NotReleased,
    "ID_QUARANTINED": Standing,
    "ID_BELOW_LEAST": Standing,
    "ID_RETIRED": Standing,
    "ID_DEPRECATED": Standing,
    "OLD_VERSION_WRITTEN": OldVersion,
    "UNFRAMED_DATA": Hints,
    "FRAME_CUT": Messages,
    "FRAMED_TWICE": FramedTwice,
    "FRAMING_MIXED": MixedFramings,
    "UNDECODABLE": Undecodable,
    "SCHEMA_VIOLATED": Undecodable,
    "MESSAGE_NOT_READ": NotRead,
    "OFFSETS_EXPIRED": ExpiredOffsets,
    "TOPIC_MADE_ANEW": RemadeTopic,
    "NOT_JSON": NotJson,
    "SUBJECT_MISSING": SubjectMissing,
    "TOPIC_WITHOUT_SUBJECT": Hints,
    "SUBJECT_WITHOUT_TOPIC": SubjectWithoutTopic,
    "TOO_MANY_IDS": TooManyIds,
    "SCHEMA_NOT_DECODED": NotDecoded,
    "KEY_SCHEMA_CHANGED": KeySchemas,
    "MESSAGE_TYPE_CHANGED": MessageTypes,
    "FIELD_UNDECLARED": FieldUndeclared,
    "FIELD_MISSING": FieldMissing,
    "FIELD_KIND_WRONG": FieldKindWrong,
    "ENUM_VALUE_UNDECLARED": EnumValues,
    "FIELD_KIND_NEW": FieldKindNew,
    "NULL_SHARE_ROSE": FieldShare,
    "ENUM_SHARE_SHIFTED": EnumShare,
    "FIELD_NEVER_FILLED": FieldShare,
    "REGISTERED_WITHOUT_PROMOTION": RegisteredVersion,
    "LEVEL_RELAXED": Relaxed,
    "MODE_RELAXED": Relaxed,
    "ENVIRONMENTS_DIFFER": DifferingVersion,
    "AUTO_REGISTRATION": AutoRegistration,
    "LEVEL_NONE": Level,
    "PRODUCTION_WRITABLE": Mode,
    "CLIENTS_MAY_REGISTER": Accounts,
    "CONNECTOR_AUTO_REGISTERS": ConnectorSetting,
    "CONNECTOR_NOT_ON_LATEST": ConnectorSetting,
    "LEVEL_NOT_TRANSITIVE": LevelNotTransitive,
    "STATE_SCHEMA_EVOLVED": StateEvolved,
    "RENAME_SUSPECTED": RenameSuspected,
    "STATE_FIELD_DROPPED": StateFieldGone,
    "STATE_FIELDS_MEANING_CHANGED": StateValuesChanged,
    "STATE_DECIMAL_RESCALED": StateValuesChanged,
    "STATE_TYPE_NOT_READ_BACK": StateTypeNotRead,
    "EVOLUTION_BUDGET": StateBudget,
    "SCHEMA_FILE_BUDGET": StateBudget,
    "STATE_UNREADABLE": StateUnreadable,
    "STATE_FILES_DAMAGED": StateFilesDamaged,
    "STATE_EVOLVED_UNRELEASED": StateEvolvedUnreleased,
    "STATE_DEPARTS": StateDeparts,
    "STATE_KEY_AT_RISK": StateKeyAtRisk,
    "STATE_CANNOT_EVOLVE": StateCannotEvolve,
    "STATE_CHECK_OFF": QueryBatch,
    "STATE_SETTING_CHANGED": StateSetting,
    "CHECKPOINT_NOT_ADVANCING": NotAdvancing,
    "CONNECTOR_TASK_FAILED": ConnectorTask,
    "CONNECTOR_NOT_RUNNING": ConnectorState,
    "CONNECTOR_NOT_UNDERSTOOD": ConnectorDoubts,
    "SLOT_LOST": Slot,
    "SLOT_AT_RISK": Slot,
    "SLOT_LAGS": Slot,
    "SLOT_UNUSED": Slot,
    "SLOT_MISSING": Slot,
    "PUBLICATION_MISSING": Publication,
    "TABLE_NOT_PUBLISHED": PublicationTable,
    "OPERATIONS_NOT_PUBLISHED": PublicationOperations,
    "TOPIC_SHARED": NamesMeet,
    "TOPICS_CLASH": NamesMeet,
    "SCHEMA_NAMES_MEET": NamesMeet,
    "FIELDS_MEET": NamesMeet,
    "COLUMNS_DIFFER_BY_CASE": NamesMeet,
    "NAME_NOT_AVRO": NamesNotAvro,
    "WRITES_REFUSED": WritesRefused,
    "KEYS_WRONG": KeysWrong,
    "KEY_MISSING": TableKey,
    "KEY_WEAK": KeyWeak,
    "COLUMN_NOT_CARRIED": ColumnNotCarried,
    "ARRAY_LOST": ArrayLost,
    "EVENTS_OF_SEVERAL_TABLES": TopicTables,
    "TRUNCATE_OUT_OF_ORDER": Truncate,
    "VALUES_UNAVAILABLE": ValuesUnavailable,
    "DELETES_STAY": Deletes,
    "TABLE_GONE": TableGone,
    "SHAPE_UNREADABLE": ShapeUnreadable,
    "COLUMN_ADDED": ColumnDeparture,
    "COLUMN_DROPPED": ColumnDeparture,
    "COLUMN_RENAMED": ColumnDeparture,
    "COLUMN_RETYPED": ColumnDeparture,
    "COLUMN_SCALED": ColumnDeparture,
    "COLUMN_RELABELLED": ColumnDeparture,
    "COLUMN_NULLABILITY": ColumnDeparture,
    "COLUMN_DEFAULT": ColumnDeparture,
    "KEY_CHANGED": KeyDeparture,
    "KEY_LOST": KeyDeparture,
    "NEXT_ROW_REFUSED": NextRow,
}
