"""What was observed in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from registry.observations.specification import Bound


@dataclass(frozen=True)
class StateSchemaVersion:
    """One version of a state variable's schemas (Spark's StructType JSON), from the checkpoint's files.

    `batch` is the first batch that wrote with it (None where Spark keeps no history), `written_at` its file's time. Internal families aren't listed.
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
    """A limit of Spark's on state schemas: value schemas of a variable (its first counts), or schema files of an operator.

    Spark refuses the restart that would go beyond `allowed`.
    """

    limit: Literal["value_schemas", "schema_files"]
    operator: int
    variable: str | None
    used: int
    allowed: int


@dataclass(frozen=True)
class StateRows:
    """How many rows a state variable holds as of a batch (entries, for list and map state)."""

    operator: int
    variable: str | None
    batch: int
    rows: int


@dataclass(frozen=True)
class StateFieldNulls:
    """How many of a state variable's rows hold null in a field; `path` begins with `key` or `value`."""

    operator: int
    variable: str | None
    batch: int
    path: str
    rows: int
    nulls: int


@dataclass(frozen=True)
class StateKeys:
    """How many grouping keys hold a state variable as of a batch; of lists and maps an estimate within some 2 %.

    `bytes` is the size of the keys' and values' fields as they are read, None where some have no known size. Spark's
    files are smaller: they are compressed.
    """

    operator: int
    variable: str | None
    batch: int
    keys: int
    bytes: int | None


@dataclass(frozen=True)
class StateFieldRange:
    """The least and the largest value of a field of a state variable, masked: lengths, magnitudes, years; `kind` is
    Spark's type. None where nothing may be told or nothing is there.
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
    """When entries with time to live expire: the earliest and the last, and how many have no such time."""

    operator: int
    variable: str | None
    batch: int
    without: int
    earliest: int | None
    latest: int | None


@dataclass(frozen=True)
class StateTimers:
    """The timers that an operator has registered as of a batch, with the earliest and the last that is due."""

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
    """The end of a state scan: what was read in all, and which bound stopped it early."""

    path: str
    variables: int
    rows: int
    bound_reached: Bound | None
    seconds: float
