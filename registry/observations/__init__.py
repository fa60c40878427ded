"""The data exchanged with Spark: the specification of a scan, and the facts that it observed.

A fact isn't a judgement. Offsets count from 0, `end` is exclusive, times are milliseconds since 1970 in UTC, sizes
are bytes.
"""

from registry.observations.specification import (
    FIRST_SLICE,
    BodyProblem,
    Bound,
    Bounds,
    ContractRule,
    Framing,
    Hint,
    KafkaConnection,
    Limit,
    MessageGroup,
    PartitionRange,
    Profile,
    ScanSpec,
    Side,
    StateScan,
    StateVariableRead,
    TopicRead,
    TopicScan,
    WriterSchema,
)
from registry.observations.states import (
    StateExpiry,
    StateFieldNulls,
    StateFieldRange,
    StateKeys,
    StateLimit,
    StateRows,
    StateSchemaVersion,
    StateTimers,
    StateTotals,
    StateUnreadable,
)
from registry.observations.topics import (
    BEGINS_AS_OBJECT,
    EXTENSION,
    UNKNOWN_KIND,
    UNLISTED,
    ChangeEvents,
    ConnectSchema,
    ContractRuleResult,
    FieldProfile,
    FramedMessages,
    FramedTwice,
    LimitExceeded,
    MessageIndexes,
    NullMessages,
    OffsetsExpired,
    OtherGroups,
    PartitionRead,
    RankedMessages,
    Sample,
    ScanTotals,
    SchemaNotUsed,
    Span,
    TopicLost,
    TopicRemade,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
)

Observation = (
    PartitionRead
    | FramedMessages
    | FramedTwice
    | UnframedMessages
    | NullMessages
    | UndecodableMessages
    | MessageIndexes
    | FieldProfile
    | RankedMessages
    | ContractRuleResult
    | ChangeEvents
    | ConnectSchema
    | Sample
    | SchemaNotUsed
    | LimitExceeded
    | OtherGroups
    | OffsetsExpired
    | TopicRemade
    | TopicLost
    | TopicTotals
    | ScanTotals
    | StateSchemaVersion
    | StateLimit
    | StateRows
    | StateKeys
    | StateFieldNulls
    | StateFieldRange
    | StateExpiry
    | StateTimers
    | StateUnreadable
    | StateTotals
)
