"""A checkpoint's files as observations, and what there is to read of its rows."""

from __future__ import annotations

from typing import Literal

from registry.checkpoints.model import Checkpoint, Operator, StateVariable
from registry.observations import Observation, StateLimit, StateSchemaVersion, StateVariableRead


def observe_schemas(checkpoint: Checkpoint) -> list[Observation]:
    """Every schema version of every state variable, and how much of Spark's limits is used."""
    observed: list[Observation] = []
    for operator in checkpoint.operators:
        for variable in operator.variables:
            observed += _versions(operator, variable)
    observed += [
        StateLimit(each.limit, each.operator, each.variable, each.used, each.allowed) for each in checkpoint.budgets
    ]
    return observed


def _versions(operator: Operator, variable: StateVariable) -> list[StateSchemaVersion]:
    return [
        StateSchemaVersion(
            operator=operator.number,
            variable=variable.name,
            kind=variable.kind,
            version=version.version,
            schema_id=version.schema_id,
            batch=version.batch,
            encoding=operator.encoding,
            key_schema=version.key_schema,
            value_schema=version.value_schema,
            written_at=version.written_at,
        )
        for version in variable.versions
    ]


def rows_to_read(checkpoint: Checkpoint) -> tuple[StateVariableRead, ...]:
    """The reads that show a checkpoint's rows: each variable as of the last committed batch, and an evolved one also
    as of the last batch before it evolved, which shows how much the fields held that it lost.
    """
    reads = []
    for operator in checkpoint.operators:
        for variable in operator.variables:
            if variable.removed_at is not None:
                continue
            name = variable.name if operator.name.startswith("transformWithState") else None
            side = _join_side(variable.name)
            last = checkpoint.last_committed_batch
            reads.append(StateVariableRead(operator.number, name, variable.kind, last, side))
            evolved_in = variable.newest.batch
            if len(variable.versions) > 1 and evolved_in:
                reads.append(StateVariableRead(operator.number, name, variable.kind, evolved_in - 1, side))
    return tuple(reads)


def _join_side(store: str) -> Literal["left", "right"] | None:
    return "left" if store.startswith("left-") else "right" if store.startswith("right-") else None
