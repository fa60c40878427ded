"""What a restart does to a state variable as a whole: its name, its time to live, and whether it is declared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from registry.checkpoints.families import UNUSED_DEFAULT
from registry.checkpoints.plans.model import PlannedState, StatePlan
from registry.checkpoints.plans.operator_changes import time_mode_of
from registry.checkpoints.plans.rules import RESTART_RULES
from registry.checkpoints.plans.stored import StoredState, ttl_of
from registry.formats.likeness import name_likeness
from registry.formats.policies.spark_state import StateChange, parse_struct
from registry.formats.policies.spark_state.changes import LIKELY, change

_PROCESSING_TIME: Final = "ProcessingTime"
MAX_NAMED: Final = 5


def declared_changes(planned: PlannedState, plan: StatePlan, state: StoredState) -> Iterable[StateChange]:
    """What Spark says of a declaration before it compares schemas: the name, and the time to live."""
    if planned.name == UNUSED_DEFAULT:
        yield change(RESTART_RULES["VARIABLE_NAME_REFUSED"], "", detail="it is reserved for Spark")
    elif planned.name != planned.name.strip():
        yield change(RESTART_RULES["VARIABLE_NAME_REFUSED"], "", detail="it begins or ends with a space")
    time_mode = plan.time_mode or time_mode_of(state)
    if ttl_of(planned, state) and time_mode is not None and time_mode != _PROCESSING_TIME:
        yield change(RESTART_RULES["TTL_NEEDS_PROCESSING_TIME"], "", None, plan.time_mode or time_mode)


def removed_changes(name: str, plan: StatePlan, state: StoredState) -> Iterable[StateChange]:
    """What happens to a variable that the plan doesn't declare: its rows stay or go, and another may take its place."""
    is_deleted = name in plan.removed
    yield change(RESTART_RULES["ROWS_DELETED" if is_deleted else "ROWS_STAY"], "")
    begun = [each for each in plan.variables if each.name not in state.committed]
    if is_deleted:  # said on purpose: a loss only where it looks like a rename
        begun = [each for each in begun if _looks_like(name, each, state)]
    if begun:
        more = f" and {len(begun) - MAX_NAMED} more" if len(begun) > MAX_NAMED else ""
        names = ", ".join(each.name for each in begun[:MAX_NAMED]) + more
        detail = "deleted" if is_deleted else "left out"
        yield change(RESTART_RULES["VARIABLE_REPLACED"], "", name, names, detail=detail)


def _looks_like(name: str, planned: PlannedState, state: StoredState) -> bool:
    known = state.variables.get(name)
    if known is None or known.kind != planned.kind:
        return False
    is_same = parse_struct(json.loads(known.newest.value_schema)) == parse_struct(planned.value)
    return is_same or name_likeness(name, planned.name) >= LIKELY
