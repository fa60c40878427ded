"""Streaming queries and the history of their state as values. Schemas are StructType JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class BudgetInfo:
    """One of Spark's limits and how much of it is used; `variable` is empty for an operator's schema files."""

    limit: str
    operator: int
    variable: str
    used: int
    allowed: int

    @property
    def left(self) -> int:
        """How many more there may be."""
        return max(0, self.allowed - self.used)

    @property
    def share(self) -> float:
        """How much is used, from 0 to 1 and beyond."""
        return self.used / max(1, self.allowed)


@dataclass(frozen=True)
class InputInfo:
    """A topic that the query reads, and a subject of its messages; `subject` is None where none is known."""

    topic: str
    side: str
    subject: SubjectName | None


@dataclass(frozen=True)
class QueryInfo:
    """A query as its last scan saw it. `worst` is its fullest budget, None where nothing can evolve."""

    id: int
    source_id: int
    registry: str
    name: str
    path: str
    query_id: str
    provider: str
    encoding: str
    last_planned_batch: int | None
    last_committed_batch: int | None
    last_batch_at: datetime | None
    operators: tuple[Mapping[str, Any], ...]
    runs: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]
    allowed_value_schemas: int
    allowed_schema_files: int
    scanned_at: datetime
    variables: int
    worst: BudgetInfo | None
    inputs: tuple[InputInfo, ...] = ()


@dataclass(frozen=True)
class CarriedInfo:
    """A subject's version whose fields a schema has; `path` is the struct in the value, empty for the value itself."""

    subject: SubjectName
    version: int
    path: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class SchemaInfo:
    """A version of a state variable. `start` counts the application starts that changed the query's state, from 1."""

    version: int
    schema_id: int
    batch: int | None
    start: int | None
    written_at: datetime | None
    file: str
    key_schema: str
    value_schema: str
    map_key_schema: str
    avro_schema: str
    why_no_avro: str
    carried: tuple[CarriedInfo, ...] = ()


@dataclass(frozen=True)
class FieldInfo:
    """A field of a variable's rows: nulls of rows, and a masked range. `path` begins with `key`, `map_key` or `value`."""

    path: str
    type: str
    rows: int
    nulls: int
    minimum: str | None
    maximum: str | None
    bytes: int | None

    @property
    def filled(self) -> float:
        """The share of rows that hold a value, from 0 to 1."""
        return (self.rows - self.nulls) / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class VariableInfo:
    """A state variable; rows and fields are of the last reading of rows (`rows` None: never)."""

    id: int
    operator: int
    name: str
    label: str
    kind: str
    ttl: bool
    encoding: str
    why_fixed: str
    removed_at: int | None
    budget: BudgetInfo | None
    versions: int
    rows: int | None
    keys: int | None
    bytes: int | None
    rows_batch: int | None
    rows_at: datetime | None
    rows_problem: str
    fields: tuple[FieldInfo, ...]
    expiry: Mapping[str, Any]
    schemas: tuple[SchemaInfo, ...] = ()
