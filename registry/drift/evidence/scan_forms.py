"""The forms of evidence for rules about topics, decoded fields, registries and queries."""
# ruff: noqa: D101  # the rules in FORMS say what a form is about

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from registry.drift.evidence import value_types

# ---- topics -------------------------------------------------------------------------------------------------------


class OfTopic(TypedDict):
    """Messages of a topic's side. Storing the finding adds the counts by scan and by hour."""

    topic: str
    side: Literal["key", "value"] | None
    expected: NotRequired[str]
    of_messages_read: int
    first_time: NotRequired[value_types.Milliseconds]
    last_time: NotRequired[value_types.Milliseconds]
    partitions: NotRequired[list[value_types.PartitionRow]]
    samples: NotRequired[list[value_types.SampleRow]]
    ids_over_time: NotRequired[dict[str, int]]
    ids_by_hour: NotRequired[dict[str, int]]
    ids_by_hour_spread: NotRequired[int]
    ids_by_hour_earlier: NotRequired[int]


class Messages(OfTopic):
    """A number of messages of a topic's side."""

    messages: int


class MarkedMessages(Messages):
    """Messages with one mark: a schema id, a GUID or a content type."""

    framing: str
    mark: str
    schema_id: NotRequired[int]


class OwnedMessages(MarkedMessages):
    """Messages with the mark of known versions; `seen_before` is set if only earlier scans read them."""

    owners: str
    seen_before: NotRequired[int]


class UnknownId(MarkedMessages):
    same_number_elsewhere: NotRequired[str]


class OtherSubject(OwnedMessages):
    """`undecodable_messages` is missing if decoding wasn't tried."""

    undecodable_messages: NotRequired[int]


class OtherContext(OwnedMessages):
    contexts: list[str]


class NotReleased(OwnedMessages):
    registered: list[value_types.RegistrationRow]


class VersionStatusEvidence(OwnedMessages):
    status: str
    since: value_types.Milliseconds
    until: value_types.Milliseconds | None
    minimum_version: NotRequired[int]


class OldVersion(Messages):
    version: int
    newer: int
    newer_in_use_since: value_types.Milliseconds
    latest_in_use: int
    days_of_grace: int


class Hints(Messages):
    """`undecodable_messages` look like JSON and aren't valid."""

    looks_like: dict[str, int]
    undecodable_messages: NotRequired[int]


class FramedTwice(Messages):
    guid: str
    schema_ids: list[int]


class MixedFramings(Messages):
    framings: dict[str, int]
    framings_before: NotRequired[dict[str, int]]


class BadMessages(Messages):
    """Messages that couldn't be read: the first ones, and the number of each reason.

    `other_reasons` counts unknown reasons and those not counted separately. Storing the finding adds those of earlier
    scans, which its count includes. Earlier releases stored no counts.
    """

    offsets: list[value_types.FailureRow]
    by_reason: NotRequired[dict[str, int]]
    other_reasons: NotRequired[int]
    by_reason_before: NotRequired[dict[str, int]]
    other_reasons_before: NotRequired[int]


class Undecodable(BadMessages):
    framing: str
    mark: str
    schema_id: NotRequired[int]
    owners: str
    of_messages: int


class ContractRuleMessages(OwnedMessages):
    """Messages that break a data contract's rule, or on which it wasn't evaluated."""

    evaluated_messages: int
    contract_rule: str
    rule_type: str
    expression: str
    rule_mode: str
    on_failure: str


class ContractRuleBroken(ContractRuleMessages):
    """`paths` are the fields that break a rule for fields, each with its messages."""

    example: list[value_types.MessageRow]
    paths: NotRequired[list[str]]


class ContractRuleNotChecked(ContractRuleMessages):
    """Storing the finding adds the reasons of earlier scans, which its count includes."""

    by_reason: dict[str, int]
    by_reason_before: NotRequired[dict[str, int]]
    other_reasons_before: NotRequired[int]


class NotRead(BadMessages):
    """Messages whose reading was given up; without a mark if they name no schema."""

    framing: NotRequired[str]
    mark: NotRequired[str]
    schema_id: NotRequired[int]


class ExpiredOffsets(TypedDict):
    """`messages` is the maximum possible number."""

    topic: str
    messages: int
    expired: list[value_types.ExpiredRow]
    expired_left_out: NotRequired[int]


class RemadeTopic(TypedDict):
    """The ids are the cluster's; `unread_before` is how many offsets the last scan left, if known."""

    topic: str
    topic_id_before: NotRequired[str]
    topic_id: NotRequired[str]
    last_read_at: value_types.Milliseconds
    noticed_at: value_types.Milliseconds
    unread_before: NotRequired[int]


class NotJson(BadMessages):
    parsed: int


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


class TopicVolumeEvidence(TypedDict):
    """`confidence` is a lower limit, from 0 to 1; `by_day` are the messages of the periods before and of the last."""

    topic: str
    change: str
    confidence: float
    periods: int
    by_day: list[value_types.DayRow]


class VersionSilent(TopicVolumeEvidence):
    """The messages are those of one version."""

    framing: str
    mark: str
    schema_id: NotRequired[int]
    owners: str


class NotDecoded(OfTopic):
    """`messages` carry the mark; missing if some of them were decoded, or may be counted twice."""

    messages: NotRequired[int]
    framing: str
    mark: str
    schema_id: NotRequired[int]
    reason: str


class CheckLimited(TypedDict):
    """At most `most` items were checked; `left_out` more exist, in `messages` messages, if known.

    `rule` is the rule of findings that aren't listed. Without a topic, it is about a registry.
    """

    topic: NotRequired[str]
    side: NotRequired[Literal["key", "value"]]
    framing: NotRequired[str]
    mark: NotRequired[str]
    limit: str
    most: int
    left_out: NotRequired[int]
    messages: NotRequired[int]
    rule: NotRequired[str]


class KeySchemas(Messages):
    compacted: bool
    marks: list[value_types.MarkRow]


class MessageTypes(Messages):
    types: dict[str, int]
    types_before: list[str]


# ---- fields of decoded messages -----------------------------------------------------------------------------------


class FieldEvidence(Messages):
    """A field of messages; counts are missing if no message has it. `owners` declare it; earlier releases kept none."""

    owners: NotRequired[str]
    field: str
    framing: str
    mark: str
    decoded: NotRequired[int]
    present: NotRequired[int]
    nulls: NotRequired[int]
    kinds: NotRequired[dict[str, int]]


class FieldUndeclared(FieldEvidence):
    """`names` is the number of different names in an object that is used as a map.

    `field_number` and `encodings` are those of a rejected Protobuf field; `example` is a message with the field.
    """

    names: NotRequired[int]
    field_number: NotRequired[int]
    encodings: NotRequired[list[str]]
    example: NotRequired[list[value_types.MessageRow]]


class FieldMissing(FieldEvidence):
    missing: int
    example: NotRequired[list[value_types.MessageRow]]


class FieldKindWrong(FieldEvidence):
    declared: list[str]
    field_number: NotRequired[int]
    encodings: NotRequired[list[str]]
    example: NotRequired[list[value_types.MessageRow]]


class EnumValues(FieldEvidence):
    """The number of values and their lengths are missing if the decoder merges all of them."""

    different_values: NotRequired[int]
    lengths: NotRequired[list[int]]
    example: NotRequired[list[value_types.MessageRow]]


class FieldKindNew(FieldEvidence):
    kind: str
    before: list[str]
    days: int


class FieldShare(FieldEvidence):
    share: float
    share_before: list[float]
    days: int
    z: float


class EnumShare(FieldShare):
    value: str


class FieldValues(FieldEvidence):
    """`confidence` is a lower limit, from 0 to 1; `by_day` are the values of the days before and of the scan."""

    change: str
    confidence: float
    days: int
    by_day: list[value_types.DayRow]


class FieldsSwapped(FieldEvidence):
    """`usual` are the values of the two fields in the other messages; `fits` has the versions that fit the bytes."""

    other_field: str
    usual: str
    usual_other: str
    compared_messages: int
    swapped_messages: int
    schemas: list[str]
    fits: list[str]
    confidence: float
    example: list[value_types.MessageRow]


# ---- the registry itself ------------------------------------------------------------------------------------------


class OfRegistry(TypedDict):
    registry: str


class RegisteredVersionEvidence(OfRegistry):
    subject: str
    version: int
    schema_id: int
    registered_at: value_types.Milliseconds
    registered_by: str
    door: str


class DifferingVersion(RegisteredVersionEvidence):
    other: str
    fingerprint: str


class RelaxedSetting(OfRegistry):
    scope: str
    before: str
    after: str
    now: str
    at: value_types.Milliseconds
    by: str


class AutoRegistration(OfRegistry):
    by: str
    versions: list[value_types.VersionEntry]
    first_message_after_ms: list[int]
    kind: str
    not_listed: NotRequired[int]


class Level(OfRegistry):
    scope: str
    level: str


class ModeEvidence(OfRegistry):
    scope: str
    mode: str


class Accounts(OfRegistry):
    accounts: list[str]
    number: int
    not_listed: NotRequired[int]


class ConnectorSetting(OfRegistry):
    connector: str
    setting: str
    value: str


class LevelNotTransitive(OfRegistry):
    subject: str
    level: str
    versions: list[int]


# ---- state of streaming queries -----------------------------------------------------------------------------------


class OperatorEvidence(TypedDict):
    """A state variable of an operator; `rows_unread_since` is added while no scan can open its rows."""

    operator: int
    variable: str
    rows_unread_since: NotRequired[str]


class BeforeAndAfter(OperatorEvidence):
    """`versions` are the numbers of two schemas of a variable; the schemas are Spark's JSON of their value structs."""

    batch: int | None
    versions: list[int]
    old_schema: str
    new_schema: str


class VariableVersion(BeforeAndAfter):
    kind: str
    encoding: str


class StateEvolved(VariableVersion):
    changes: list[value_types.FieldChangeRow]


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


class StateTypeNotRead(OperatorEvidence):
    batch: int | None
    field: str
    type: str | None


class StateBudget(OperatorEvidence):
    used: int
    allowed: int
    share: float


class StateUnreadable(OperatorEvidence):
    reason: str
    batch: int | None


class StateEvolvedUnreleased(BeforeAndAfter):
    began: str
    changes: list[value_types.FieldChangeRow]
    subjects: list[str]
    not_listed: NotRequired[int]


class StateDeparts(OperatorEvidence):
    batch: NotRequired[int | None]
    subject: str
    version: int
    fields: list[value_types.FieldDepartureRow]
    not_listed: NotRequired[int]


class StateKeyAtRisk(OperatorEvidence):
    path: str
    before: str
    after: str
    subject: str
    version: int


class StateCannotEvolve(OperatorEvidence):
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
