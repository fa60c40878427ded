"""The form of each rule's evidence. A rule without a row in FORMS can't make a finding."""
# ruff: noqa: D101  # the rules in FORMS say what a form is about

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict

from registry.drift.evidence import scan_forms
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
    "UNKNOWN_SCHEMA_ID": scan_forms.UnknownId,
    "ID_OF_OTHER_SUBJECT": scan_forms.OtherSubject,
    "ID_OF_OTHER_CONTEXT": scan_forms.OtherContext,
    "ID_DELETED": scan_forms.OwnedMessages,
    "ID_NOT_RELEASED": scan_forms.NotReleased,
    "ID_QUARANTINED": scan_forms.VersionStatusEvidence,
    "ID_BELOW_MINIMUM_VERSION": scan_forms.VersionStatusEvidence,
    "ID_RETIRED": scan_forms.VersionStatusEvidence,
    "ID_DEPRECATED": scan_forms.VersionStatusEvidence,
    "OLD_VERSION_WRITTEN": scan_forms.OldVersion,
    "UNFRAMED_DATA": scan_forms.Hints,
    "FRAME_TRUNCATED": scan_forms.Messages,
    "KEYS_MISSING": scan_forms.Messages,
    "TOMBSTONES_NOT_COMPACTED": scan_forms.Messages,
    "FRAMED_TWICE": scan_forms.FramedTwice,
    "FRAMING_MIXED": scan_forms.MixedFramings,
    "UNDECODABLE": scan_forms.Undecodable,
    "SCHEMA_VIOLATED": scan_forms.Undecodable,
    "CONTRACT_RULE_BROKEN": scan_forms.ContractRuleBroken,
    "CONTRACT_RULE_NOT_CHECKED": scan_forms.ContractRuleNotChecked,
    "MESSAGE_NOT_READ": scan_forms.NotRead,
    "OFFSETS_EXPIRED": scan_forms.ExpiredOffsets,
    "TOPIC_RECREATED": scan_forms.RemadeTopic,
    "NOT_JSON": scan_forms.NotJson,
    "SUBJECT_MISSING": scan_forms.SubjectMissing,
    "TOPIC_WITHOUT_SUBJECT": scan_forms.Hints,
    "SUBJECT_WITHOUT_TOPIC": scan_forms.SubjectWithoutTopic,
    "TOO_MANY_IDS": scan_forms.TooManyIds,
    "SCHEMA_NOT_DECODED": scan_forms.NotDecoded,
    "CHECK_LIMITED": scan_forms.CheckLimited,
    "KEY_SCHEMA_CHANGED": scan_forms.KeySchemas,
    "MESSAGE_TYPE_CHANGED": scan_forms.MessageTypes,
    "TOPIC_SILENT": scan_forms.TopicVolumeEvidence,
    "VOLUME_CHANGED": scan_forms.TopicVolumeEvidence,
    "VERSION_SILENT": scan_forms.VersionSilent,
    "FIELD_UNDECLARED": scan_forms.FieldUndeclared,
    "FIELD_MISSING": scan_forms.FieldMissing,
    "FIELD_TYPE_WRONG": scan_forms.FieldKindWrong,
    "ENUM_VALUE_UNDECLARED": scan_forms.EnumValues,
    "FIELD_TYPE_NEW": scan_forms.FieldKindNew,
    "NULL_SHARE_INCREASED": scan_forms.FieldShare,
    "ENUM_SHARE_SHIFTED": scan_forms.EnumShare,
    "FIELD_NEVER_FILLED": scan_forms.FieldShare,
    "UNIT_CHANGED": scan_forms.FieldValues,
    "DISTINCT_VALUES_CHANGED": scan_forms.FieldValues,
    "VALUES_OUT_OF_RANGE": scan_forms.FieldValues,
    "FIELDS_SWAPPED": scan_forms.FieldsSwapped,
    "REGISTERED_WITHOUT_PROMOTION": scan_forms.RegisteredVersionEvidence,
    "LEVEL_RELAXED": scan_forms.RelaxedSetting,
    "MODE_RELAXED": scan_forms.RelaxedSetting,
    "ENVIRONMENTS_DIFFER": scan_forms.DifferingVersion,
    "AUTO_REGISTRATION": scan_forms.AutoRegistration,
    "LEVEL_NONE": scan_forms.Level,
    "PRODUCTION_WRITABLE": scan_forms.ModeEvidence,
    "CLIENTS_MAY_REGISTER": scan_forms.Accounts,
    "CONNECTOR_AUTO_REGISTERS": scan_forms.ConnectorSetting,
    "CONNECTOR_NOT_ON_LATEST": scan_forms.ConnectorSetting,
    "LEVEL_NOT_TRANSITIVE": scan_forms.LevelNotTransitive,
    "STATE_SCHEMA_EVOLVED": scan_forms.StateEvolved,
    "RENAME_SUSPECTED": scan_forms.RenameSuspected,
    "STATE_FIELD_DROPPED": scan_forms.StateFieldGone,
    "STATE_FIELD_TYPE_CHANGED": scan_forms.StateValuesChanged,
    "STATE_DECIMAL_RESCALED": scan_forms.StateValuesChanged,
    "STATE_TYPE_UNREADABLE": scan_forms.StateTypeNotRead,
    "EVOLUTION_BUDGET": scan_forms.StateBudget,
    "SCHEMA_FILE_BUDGET": scan_forms.StateBudget,
    "STATE_UNREADABLE": scan_forms.StateUnreadable,
    "STATE_FILES_DAMAGED": scan_forms.StateFilesDamaged,
    "STATE_EVOLVED_UNRELEASED": scan_forms.StateEvolvedUnreleased,
    "STATE_DIFFERS_FROM_SUBJECT": scan_forms.StateDeparts,
    "STATE_KEY_AT_RISK": scan_forms.StateKeyAtRisk,
    "STATE_CANNOT_EVOLVE": scan_forms.StateCannotEvolve,
    "STATE_CHECK_OFF": scan_forms.QueryBatch,
    "STATE_SETTING_CHANGED": scan_forms.StateSetting,
    "CHECKPOINT_NOT_ADVANCING": scan_forms.NotAdvancing,
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
    "PARTITIONS_PUBLISHED_SEPARATELY": PublicationTable,
    "PARTITION_PUBLISHED_AS_ROOT": PublicationTable,
    "OPERATIONS_NOT_PUBLISHED": PublicationOperations,
    "TOPIC_SHARED": NamesMeet,
    "TOPIC_NAMES_COLLIDE": NamesMeet,
    "SCHEMA_NAMES_COLLIDE": NamesMeet,
    "FIELD_NAMES_COLLIDE": NamesMeet,
    "COLUMNS_DIFFER_BY_CASE": NamesMeet,
    "NAME_INVALID_IN_AVRO": NamesNotAvro,
    "REPLICA_IDENTITY_MISSING": WritesRefused,
    "DELETE_KEYS_WRONG": KeysWrong,
    "TABLE_WITHOUT_KEY": TableKey,
    "KEY_NOT_UNIQUE": KeyWeak,
    "COLUMN_NOT_IN_EVENTS": ColumnNotCarried,
    "ARRAY_ARRIVES_AS_NULL": ArrayLost,
    "EVENTS_OF_SEVERAL_TABLES": TopicTables,
    "TRUNCATE_OUT_OF_ORDER": Truncate,
    "VALUES_UNAVAILABLE": ValuesUnavailable,
    "TOMBSTONES_NOT_WRITTEN": Deletes,
    "TABLE_DROPPED": TableGone,
    "SCHEMA_NOT_COMPARED": ShapeUnreadable,
    "COLUMN_ADDED": ColumnDeparture,
    "COLUMN_DROPPED": ColumnDeparture,
    "COLUMN_RENAMED": ColumnDeparture,
    "COLUMN_REPLACED": ColumnReplaced,
    "COLUMN_TYPE_CHANGED": ColumnDeparture,
    "COLUMN_SCALE_CHANGED": ColumnDeparture,
    "COLUMN_ENUM_CHANGED": ColumnDeparture,
    "COLUMN_NULLABILITY_CHANGED": ColumnDeparture,
    "COLUMN_DEFAULT_CHANGED": ColumnDeparture,
    "KEY_CHANGED": KeyChange,
    "KEY_REMOVED": KeyChange,
    "NEXT_ROW_REJECTED": NextRow,
}
