"""What the lists in evidence hold. Times are milliseconds since 1970 in UTC."""

from __future__ import annotations

from typing import NewType, NotRequired, TypedDict

Milliseconds = NewType("Milliseconds", int)


class PartitionRow(TypedDict):
    """Messages of one partition; `hours` are counts by the hour since 1970, as a text; they are there until a scan is kept.

    Earlier releases kept some without their times.
    """

    partition: int
    messages: int
    first_offset: int
    last_offset: int
    first_time: NotRequired[Milliseconds]
    last_time: NotRequired[Milliseconds]
    hours: NotRequired[dict[str, int]]


class SampleRow(TypedDict):
    """A message, masked."""

    partition: int
    offset: int
    time: Milliseconds
    value: str


class FailureRow(TypedDict):
    """The first messages of a partition that couldn't be read, and why."""

    partition: int
    offsets: list[int]
    reason: str


class ExpiredRow(TypedDict):
    """Offsets of a partition that were deleted unread, from `start` up to, not including, `end`."""

    partition: int
    start: int
    end: int


class MarkRow(TypedDict):
    """A schema by how messages name it, and when a message first did."""

    mark: str
    first_time: Milliseconds


class RegistrationRow(TypedDict):
    """Who registered a version, and when."""

    version: int
    by: str
    at: Milliseconds


class VersionRow(TypedDict):
    """A registered version."""

    subject: str
    version: int
    schema_id: int
    registered_at: Milliseconds
    registered_by: str
    door: str


class FieldChangeRow(TypedDict):
    """A field of a state variable: its type before and after; None where it isn't there."""

    field: str
    before: str | None
    after: str | None


class FieldDepartureRow(TypedDict):
    """A field of a state variable that isn't what a subject declares: `before` is declared, `after` is in the state."""

    field: str
    before: str | None
    after: str | None
