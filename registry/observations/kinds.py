"""All kinds of observations."""

from __future__ import annotations

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
    ChangeEvents,
    ChangeShape,
    FieldProfile,
    FramedMessages,
    FramedTwice,
    MessageIndexes,
    NullMessages,
    OffsetsExpired,
    OtherGroups,
    PartitionRead,
    Sample,
    ScanTotals,
    SchemaNotUsed,
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
    | ChangeEvents
    | ChangeShape
    | Sample
    | SchemaNotUsed
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
