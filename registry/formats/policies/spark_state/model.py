"""The input and the result of a restart plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from registry.formats.policies.spark_state.schema_changes import StateChange

SchemaJson = str | Mapping[str, Any]
VariableStatus = Literal[
    "unchanged",
    "added",
    "removed",
    "evolves",
    "accepted but loses data",
    "accepted but fails later",
    "refused",
]
VALUE_SCHEMAS: Final = 16
SCHEMA_FILES: Final = 128


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A stored schema of a variable: Spark's id of the value schema, and key and value as StructType JSON."""

    schema_id: int
    key: SchemaJson
    value: SchemaJson


@dataclass(frozen=True, slots=True)
class StoredVariable:
    """A state variable (column family) of the checkpoint; its versions are in the order of the schema files.

    `is_current` is False if the newest schema file lacks it. `uncommitted` is the number of newest versions that were
    written by a start whose first batch was never committed: Spark compares with them, but no row uses them. `has_rows`
    says whether the last committed batch had the variable.
    """

    name: str
    versions: tuple[StoredVersion, ...]
    is_current: bool = True
    uncommitted: int = 0
    has_rows: bool | None = None

    @property
    def is_in_use(self) -> bool:
        """Whether the last committed batch had it; if unknown, whether the newest schema file has it."""
        return self.is_current if self.has_rows is None else self.has_rows

    @property
    def committed(self) -> StoredVariable | None:
        """The variable with only the versions of committed batches; None if there are none, or if all are committed."""
        committed_versions = self.versions[: len(self.versions) - self.uncommitted]
        return (
            replace(self, versions=committed_versions, uncommitted=0)
            if committed_versions and self.uncommitted
            else None
        )


@dataclass(frozen=True, slots=True)
class PlannedVariable:
    """A state variable as the next version of the application declares it."""

    name: str
    key: SchemaJson
    value: SchemaJson


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """Settings besides the schemas that decide; the defaults are Spark's.

    `has_evolution` means that the operator is transformWithState and its encoding is Avro. `language` is that of the
    application's state variables. `value_schemas` and `schema_files` are the query's own limits.
    """

    has_evolution: bool
    language: Literal["python", "scala"] = "python"
    value_schemas: int = VALUE_SCHEMAS
    schema_files: int = SCHEMA_FILES
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a limit is used before and after the restart."""

    before: int
    after: int
    allowed: int

    @property
    def left(self) -> int:
        """What is left after the restart, never below 0."""
        return max(0, self.allowed - self.after)

    def to_dict(self) -> dict[str, int]:
        """Return the budget as JSON values."""
        return {"before": self.before, "after": self.after, "allowed": self.allowed, "left": self.left}


@dataclass(frozen=True, slots=True)
class VariablePlan:
    """The effect on one variable if nothing else prevents the restart.

    `schema_id` is the id of its value schema afterwards, None for a removed variable. `budget` counts value schemas; it
    is None if they don't evolve.
    """

    name: str
    status: VariableStatus
    changes: tuple[StateChange, ...] = ()
    schema_id: int | None = None
    budget: Budget | None = None
    is_written: bool = field(default=False, repr=False)

    @property
    def error(self) -> str:
        """The error class that Spark stops with at the start; empty if it doesn't."""
        return next((item.error for item in self.changes if item.effect == "refused"), "")

    def to_dict(self) -> dict[str, Any]:
        """Return the variable's plan as JSON values."""
        return {
            "name": self.name,
            "status": self.status,
            "error": self.error,
            "schema_id": self.schema_id,
            "budget": self.budget.to_dict() if self.budget else None,
            "changes": [item.to_dict() for item in self.changes],
        }


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """The effect of the restart, variable by variable in the order of their names.

    `error` is the class of the first error that Spark stops with; empty if the query starts. `files` counts the schema
    files; None if the format has only one file.
    """

    variables: tuple[VariablePlan, ...]
    files: Budget | None
    error: str = ""
    error_message: str = ""

    @property
    def starts(self) -> bool:
        """Whether the query starts with these schemas."""
        return not self.error

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "starts": self.starts,
            "error": self.error,
            "error_message": self.error_message,
            "files": self.files.to_dict() if self.files else None,
            "variables": [variable.to_dict() for variable in self.variables],
        }
