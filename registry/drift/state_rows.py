"""What Spark read of a query's rows, by state variable. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from registry.checkpoints import Checkpoint, Operator, StateVariable
from registry.observations import (
    Observation,
    StateExpiry,
    StateFieldNulls,
    StateFieldRange,
    StateKeys,
    StateRows,
    StateTimers,
    StateUnreadable,
    StateVariableRead,
)
from registry.streams.seen import RowsSeen

NO_ROWS = "The rows weren't read: "


def timers_to_read(checkpoint: Checkpoint) -> tuple[StateVariableRead, ...]:
    """The reads that show the registered timers of operators that have any kind of them."""
    return tuple(
        StateVariableRead(operator.number, None, "timers", checkpoint.last_committed_batch)
        for operator in checkpoint.operators
        if any("Timers_" in family.name for family in operator.internal)
    )


def rows_by_variable(
    checkpoint: Checkpoint, observations: Sequence[Observation], problem: str = ""
) -> dict[tuple[int, str], RowsSeen]:
    """The newest rows of each variable that is still there; `problem` says why none were read."""
    found = {}
    for operator in checkpoint.operators:
        for variable in operator.variables:
            if variable.removed_at is None:
                rows = RowsSeen(problem=problem) if problem else _rows(operator, variable, observations)
                if rows is not None:
                    found[operator.number, variable.name] = rows
    return found


def timers_by_operator(observations: Iterable[Observation]) -> dict[int, dict[str, Any]]:
    """The registered timers of each operator that was asked for them; times are milliseconds since 1970."""
    return {
        each.operator: {"timers": each.timers, "earliest": each.earliest, "latest": each.latest}
        for each in observations
        if isinstance(each, StateTimers)
    }


def _rows(operator: Operator, variable: StateVariable, observations: Sequence[Observation]) -> RowsSeen | None:
    mine = [each for each in observations if _is_of(each, operator, variable)]
    counts = [each for each in mine if isinstance(each, StateRows)]
    if not counts:
        reason = next((each.reason for each in mine if isinstance(each, StateUnreadable)), "")
        return RowsSeen(problem=f"{NO_ROWS}{reason}") if reason else None
    newest = max(counts, key=lambda each: each.batch)
    at = [each for each in mine if getattr(each, "batch", None) == newest.batch]
    keys = next((each for each in at if isinstance(each, StateKeys)), None)
    expiry = next((each for each in at if isinstance(each, StateExpiry)), None)
    ranges = {each.path: each for each in at if isinstance(each, StateFieldRange)}
    fields = []
    for each in at:
        if isinstance(each, StateFieldNulls):
            told = ranges.get(each.path)
            fields.append(
                {
                    "path": each.path,
                    "type": told.kind if told else "",
                    "rows": each.rows,
                    "nulls": each.nulls,
                    "minimum": told.minimum if told else None,
                    "maximum": told.maximum if told else None,
                    "bytes": told.bytes if told else None,
                }
            )
    return RowsSeen(
        batch=newest.batch,
        rows=newest.rows,
        keys=keys.keys if keys else None,
        bytes=keys.bytes if keys else None,
        fields=tuple(fields),
        expiry={"without": expiry.without, "earliest": expiry.earliest, "latest": expiry.latest} if expiry else {},
    )


def _is_of(each: Observation, operator: Operator, variable: StateVariable) -> bool:
    if getattr(each, "operator", None) != operator.number or isinstance(each, StateTimers):
        return False
    named = getattr(each, "variable", None)
    # Built-in operators have one store, which Spark reads without a name; a join's two stores are read by side.
    return named == variable.name or (named is None and len(operator.variables) == 1)
