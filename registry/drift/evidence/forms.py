"""The form of each rule's evidence. A rule without a row in FORMS can't make a finding."""
# ruff: noqa: D101  # the rules in FORMS say what a form is about

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict

from registry.drift.evidence.scan_forms import (
    Accounts,
    AutoRegistration,
    CheckLimited,
    ConnectorSetting,
    ContractRuleBroken,
    ContractRuleNotChecked,
    DifferingVersion,
    EnumShare,
    EnumValues,
    ExpiredOffsets,
    FieldKindNew,
    FieldKindWrong,
    FieldMissing,
    FieldShare,
    FieldsSwapped,
    FieldUndeclared,
    FieldValues,
    FramedTwice,
    Hints,
    KeySchemas,
    Level,
    LevelNotTransitive,
    Messages,
    MessageTypes,
    MixedFramings,
    ModeEvidence,
    NotAdvancing,
    NotDecoded,
    NotJson,
    NotRead,
    NotReleased,
    OldVersion,
    OtherContext,
    OtherSubject,
    OwnedMessages,
    QueryBatch,
    RegisteredVersionEvidence,
    RelaxedSetting,
    RemadeTopic,
    RenameSuspected,
    StateBudget,
    StateCannotEvolve,
    StateDeparts,
    StateEvolved,
    StateEvolvedUnreleased,
    StateFieldGone,
    StateFilesDamaged,
    StateKeyAtRisk,
    StateSetting,
    StateTypeNotRead,
    StateUnreadable,
    StateValuesChanged,
    SubjectMissing,
    SubjectWithoutTopic,
    TooManyIds,
    TopicVolumeEvidence,
    Undecodable,
    UnknownId,
    VersionStatusEvidence,
)
from registry.drift.evidence.value_types import PartitionRow

# ---- change events from PostgreSQL --------------------------------------------------------------------------------


class ConnectorTask(TypedDict):
    connector: str
    task: int
    state: str
    trace: str


class ConnectorRemoved(TypedDict):
    connector: str
    slot: str


class ConnectorState(TypedDict):
    connector: str
    state: str
    trace: NotRequired[str]


class ConnectorDoubts(TypedDict):
    connector: str
    not_understood: list[str]
    not_listed: NotRequired[int]


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
    not_listed: NotRequired[int]


class NamesNotAvro(TypedDict):
    names: list[str]
    table: str
    not_listed: NotRequired[int]


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
    not_listed: NotRequired[int]


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
    """`says` is the column's type on each side: table, registered, events."""

    table: str
    column: str
    becomes: str
    says: dict[str, str]
    behind: list[str]
    topic: str


class ColumnReplaced(TypedDict):
    """`before` is the name that the column with these values had, empty if there was none."""

    table: str
    column: str
    before: str
    topic: str


class KeyChange(TypedDict):
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
    "ID_QUARANTINED": VersionStatusEvidence,
    "ID_BELOW_LEAST": VersionStatusEvidence,
    "ID_RETIRED": VersionStatusEvidence,
    "ID_DEPRECATED": VersionStatusEvidence,
    "OLD_VERSION_WRITTEN": OldVersion,
    "UNFRAMED_DATA": Hints,
    "FRAME_CUT": Messages,
    "KEYS_MISSING": Messages,
    "TOMBSTONES_NOT_COMPACTED": Messages,
    "FRAMED_TWICE": FramedTwice,
    "FRAMING_MIXED": MixedFramings,
    "UNDECODABLE": Undecodable,
    "SCHEMA_VIOLATED": Undecodable,
    "CONTRACT_RULE_BROKEN": ContractRuleBroken,
    "CONTRACT_RULE_NOT_CHECKED": ContractRuleNotChecked,
    "MESSAGE_NOT_READ": NotRead,
    "OFFSETS_EXPIRED": ExpiredOffsets,
    "TOPIC_RECREATED": RemadeTopic,
    "NOT_JSON": NotJson,
    "SUBJECT_MISSING": SubjectMissing,
    "TOPIC_WITHOUT_SUBJECT": Hints,
    "SUBJECT_WITHOUT_TOPIC": SubjectWithoutTopic,
    "TOO_MANY_IDS": TooManyIds,
    "SCHEMA_NOT_DECODED": NotDecoded,
    "CHECK_LIMITED": CheckLimited,
    "KEY_SCHEMA_CHANGED": KeySchemas,
    "MESSAGE_TYPE_CHANGED": MessageTypes,
    "TOPIC_SILENT": TopicVolumeEvidence,
    "VOLUME_CHANGED": TopicVolumeEvidence,
    "FIELD_UNDECLARED": FieldUndeclared,
    "FIELD_MISSING": FieldMissing,
    "FIELD_KIND_WRONG": FieldKindWrong,
    "ENUM_VALUE_UNDECLARED": EnumValues,
    "FIELD_KIND_NEW": FieldKindNew,
    "NULL_SHARE_ROSE": FieldShare,
    "ENUM_SHARE_SHIFTED": EnumShare,
    "FIELD_NEVER_FILLED": FieldShare,
    "UNIT_CHANGED": FieldValues,
    "DISTINCT_VALUES_CHANGED": FieldValues,
    "VALUE_RANGE_LEFT": FieldValues,
    "FIELDS_SWAPPED": FieldsSwapped,
    "REGISTERED_WITHOUT_PROMOTION": RegisteredVersionEvidence,
    "LEVEL_RELAXED": RelaxedSetting,
    "MODE_RELAXED": RelaxedSetting,
    "ENVIRONMENTS_DIFFER": DifferingVersion,
    "AUTO_REGISTRATION": AutoRegistration,
    "LEVEL_NONE": Level,
    "PRODUCTION_WRITABLE": ModeEvidence,
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
    "CONNECTOR_REMOVED": ConnectorRemoved,
    "CONNECTOR_NOT_UNDERSTOOD": ConnectorDoubts,
    "SLOT_LOST": Slot,
    "SLOT_AT_RISK": Slot,
    "SLOT_LAGS": Slot,
    "SLOT_UNUSED": Slot,
    "SLOT_MISSING": Slot,
    "PUBLICATION_MISSING": Publication,
    "TABLE_NOT_PUBLISHED": PublicationTable,
    "PARTITIONS_PUBLISHED_APART": PublicationTable,
    "PARTITION_PUBLISHED_AS_ROOT": PublicationTable,
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
    "COLUMN_REPLACED": ColumnReplaced,
    "COLUMN_RETYPED": ColumnDeparture,
    "COLUMN_SCALED": ColumnDeparture,
    "COLUMN_RELABELLED": ColumnDeparture,
    "COLUMN_NULLABILITY": ColumnDeparture,
    "COLUMN_DEFAULT": ColumnDeparture,
    "KEY_CHANGED": KeyChange,
    "KEY_LOST": KeyChange,
    "NEXT_ROW_REFUSED": NextRow,
}
