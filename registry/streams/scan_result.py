"""What a scan saw of a streaming query, as frozen values ready to be stored. Times are milliseconds since 1970."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from registry.checkpoints import Checkpoint, Operator, SchemaVersion, StateVariable
from registry.errors import InvalidSchema
from registry.formats.policies.spark_state import parse_struct, to_avro, why_no_avro

MAX_NAME: Final = 500
#: of a query read through Spark's own schemas alone


@dataclass(frozen=True)
class ScannedInput:
    """A topic that the query reads; `subject` is a subject of its messages, "" if unknown."""

    topic: str
    side: str = ""
    context: str = ""
    subject: str = ""


@dataclass(frozen=True)
class ScannedRows:
    """What Spark read of a variable's rows as of a batch; `problem` says why it couldn't."""

    batch: int | None = None
    rows: int | None = None
    keys: int | None = None
    bytes: int | None = None
    fields: tuple[Mapping[str, Any], ...] = ()
    expiry: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class ScannedSchema:
    """A version of a variable's schemas with the Avro schema that Spark derives from it."""

    version: SchemaVersion
    start: int | None
    avro_schema: str
    why_no_avro: str

    @property
    def content_hash(self) -> str:
        """SHA-256 of the schemas; it distinguishes versions in the same file."""
        parts = (
            self.version.schema_id,
            self.version.key_schema,
            self.version.value_schema,
            self.version.map_key_schema,
        )
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class ScannedVariable:
    """A state variable with its versions, ascending; `rows` is None if no rows were read."""

    operator: Operator
    variable: StateVariable
    schemas: tuple[ScannedSchema, ...]
    rows: ScannedRows | None = None


@dataclass(frozen=True)
class ScannedQuery:
    """A query as a scan saw it; `timers` are the registered timers by operator, if they were read."""

    checkpoint: Checkpoint
    variables: tuple[ScannedVariable, ...]
    inputs: tuple[ScannedInput, ...]
    timers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def scanned_query(
    checkpoint: Checkpoint,
    inputs: Sequence[ScannedInput],
    rows: Mapping[tuple[int, str], ScannedRows] | None = None,
    timers: Mapping[int, Mapping[str, Any]] | None = None,
) -> ScannedQuery:
    """Combine a checkpoint with what was read of its rows, by operator and variable."""
    starts = application_starts(checkpoint)
    variables = [
        ScannedVariable(
            operator,
            variable,
            tuple(_schema_seen(version, starts) for version in variable.versions),
            (rows or {}).get((operator.number, variable.name)),
        )
        for operator in checkpoint.operators
        for variable in operator.variables
    ]
    return ScannedQuery(checkpoint, tuple(variables), tuple(inputs), timers or {})


def application_starts(checkpoint: Checkpoint) -> dict[int, int]:
    """Map batches to the number of the application start that wrote schemas with them, counted from 1.

    Spark compares schemas when a query starts and writes a file only with its first batch; a start that changed no
    schema leaves no trace in a checkpoint, and neither do the ids of runs.
    """
    batches = {
        version.batch
        for operator in checkpoint.operators
        for variable in operator.variables
        for version in variable.versions
        if version.batch is not None
    }
    batches |= {
        variable.removed_at
        for operator in checkpoint.operators
        for variable in operator.variables
        if variable.removed_at is not None
    }
    return {batch: number for number, batch in enumerate(sorted(batches), start=1)}


def _schema_seen(version: SchemaVersion, starts: Mapping[int, int]) -> ScannedSchema:
    start = starts.get(version.batch) if version.batch is not None else None
    try:
        struct = parse_struct(version.value_schema)
    except InvalidSchema as error:
        return ScannedSchema(version, start, "", error.message)
    reason = why_no_avro(struct)
    if reason is not None:
        return ScannedSchema(version, start, "", f"{reason.path or 'the value'}: {reason.reason}")
    return ScannedSchema(version, start, json.dumps(to_avro(struct), ensure_ascii=False), "")
