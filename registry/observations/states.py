"""Observations of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from registry.observations.specification import Bound


@dataclass(frozen=True)
class StateSchemaVersion:
    """One version of a state variable's schemas (Spark's StructType JSON), from the checkpoint's files.

    `batch` is the first batch that wrote with it (None if Spark keeps no history), `written_at` its file's time.
    Internal column families aren't listed.
    """

    operator: int
    variable: str
    kind: str
    version: int
    schema_id: int
    batch: int | None
    encoding: str
    key_schema: str
    value_schema: str
    written_at: int | None = None


@dataclass(frozen=True)
class StateLimit:
    """A limit of Spark's: value schemas of a variable (its first counts), or schema files of an operator.

    Spark refuses a restart that would exceed `allowed`.
    """

    limit: Literal["value_schemas", "schema_files"]
    operator: int
    variable: str | None
    used: int
    allowed: int


@dataclass(frozen=True)
class StateRows:
    """The number of rows of a state variable as of a batch (entries, for list and map state)."""

    operator: int
    variable: str | None
    batch: int
    rows: int


@dataclass(frozen=True)
class StateFieldNulls:
    """How many of a state variable's rows are null in a field; `path` begins with `key` or `value`."""

    operator: int
    variable: str | None
    batch: int
    path: str
    rows: int
    nulls: int


@dataclass(frozen=True)
class StateKeys:
    """The number of grouping keys with a state variable as of a batch; for lists and maps an estimate within about 2 %.

    `bytes` is the size of the keys' and values' fields as they are read, None if some have no known size. Spark's files
    are smaller: they are compressed.
    """

    operator: int
    variable: str | None
    batch: int
    keys: int
    bytes: int | None


@dataclass(frozen=True)
class StateFieldRange:
    """The smallest and largest value of a field of a state variable, masked: lengths, magnitudes, years.

    `kind` is Spark's type. The range is None if nothing may be shown or there are no values.
    """

    operator: int
    variable: str | None
    batch: int
    path: str
    kind: str
    minimum: str | None
    maximum: str | None
    bytes: int | None


@dataclass(frozen=True)
class StateExpiry:
    """When entries with time to live expire, the earliest and the latest, and how many have no expiry time."""

    operator: int
    variable: str | None
    batch: int
    without: int
    earliest: int | None
    latest: int | None


@dataclass(frozen=True)
class StateTimers:
    """The timers that an operator has registered as of a batch, and when the earliest and the latest are due."""

    operator: int
    batch: int
    timers: int
    earliest: int | None
    latest: int | None


@dataclass(frozen=True)
class StateUnreadable:
    """A state variable whose rows Spark couldn't read as of a batch, and why."""

    operator: int
    variable: str | None
    batch: int | None
    reason: str


@dataclass(frozen=True)
class StateTotals:
    """The end of a state scan: what was read in total, and which bound ended it early."""

    path: str
    variables: int
    rows: int
    bound_reached: Bound | None
    seconds: float
