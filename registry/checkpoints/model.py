"""What a checkpoint says of itself, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class SchemaVersion:
    """One version of a state variable's schemas, as Spark's StructType JSON.

    `value_schema` and `key_schema` are the user's own: Spark's wrapping for time to live and for map keys is taken
    off (`map_key_schema` holds a map's key). `batch` is the first batch written with it, None where Spark keeps no
    history; `written_at` the file's time in milliseconds since 1970.
    """

    version: int
    schema_id: int
    batch: int | None
    written_at: int | None
    key_schema: str
    value_schema: str
    map_key_schema: str | None
    key_encoding: str
    file: str


@dataclass(frozen=True)
class StateVariable:
    """A state variable, or what a built-in operator keeps; `removed_at` is the first batch without it."""

    name: str
    label: str
    kind: str
    ttl: bool
    versions: tuple[SchemaVersion, ...]
    removed_at: int | None = None

    @property
    def newest(self) -> SchemaVersion:
        """The version that the last batch wrote with."""
        return self.versions[-1]

    @property
    def value_schemas_used(self) -> int:
        """Value schemas that Spark counts against its limit: the ids given so far, which begin with 0."""
        return self.newest.schema_id + 1


@dataclass(frozen=True)
class InternalFamily:
    """A column family of Spark's own, with what it means to the user."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Operator:
    """A stateful operator: its variables, and whether their schemas can evolve (`why_fixed` when they can't)."""

    number: int
    name: str
    description: str
    partitions: int
    time_mode: str | None
    variables: tuple[StateVariable, ...]
    internal: tuple[InternalFamily, ...]
    schema_files: int
    encoding: str
    why_fixed: str | None

    @property
    def evolvable(self) -> bool:
        """Whether Spark lets value schemas of this operator evolve."""
        return self.why_fixed is None


@dataclass(frozen=True)
class SettingsRun:
    """Settings that the query recorded, unchanged from one batch to another (both inclusive)."""

    first_batch: int
    last_batch: int
    provider: str
    encoding: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Limits:
    """Spark's limits for this query: as recorded in its settings, else Spark's defaults."""

    value_schemas: int
    schema_files: int


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint. Times are milliseconds since 1970; batches count from 0.

    `problems` names what was found wrong without making the rest unreadable.
    """

    path: str
    query_id: str
    operators: tuple[Operator, ...]
    settings: tuple[SettingsRun, ...]
    last_planned_batch: int | None
    last_committed_batch: int | None
    last_batch_time: int | None
    limits: Limits
    problems: tuple[str, ...]
