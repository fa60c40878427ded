"""What a checkpoint's state is now, as a plan to start from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.logs import CHECKPOINT_FORMAT
from registry.checkpoints.model import Checkpoint, StateVariable
from registry.checkpoints.object_store import ObjectStore
from registry.checkpoints.plans.ddl_text import to_ddl
from registry.checkpoints.plans.model import APIS, KINDS, OUTPUT_MODES, TIME_MODES
from registry.checkpoints.plans.operator_changes import (
    SPARK_TIME_MODES,
    language_of,
    operators_of,
    output_mode_of,
    time_mode_of,
)
from registry.checkpoints.plans.stored import StoredState, read_state
from registry.checkpoints.read import read_checkpoint
from registry.errors import InvalidCheckpoint


def plan_as_is(
    path: str,
    allowed_roots: Iterable[str | os.PathLike[str]],
    operator: int | None = None,
    *,
    store: ObjectStore | None = None,
) -> str:
    """A plan document, as JSON text, that declares the state variables of a checkpoint as they are.

    Raises InvalidCheckpoint, also where the operator keeps no state variables of the user's; InvalidInput where it
    isn't clear which operator is meant.
    """
    roots = tuple(allowed_roots)
    checkpoint = read_checkpoint(path, roots, store=store)
    state = read_state(CheckpointFiles(path, roots, store=store), checkpoint, operator)
    listed = [_variable(each) for each in state.operator.variables if each.removed_at is None and each.kind in KINDS]
    if not listed:
        raise InvalidCheckpoint(
            f"operator {state.operator.number} ({state.operator.description}) has no state variables that a plan names"
        )
    return json.dumps(_whole(checkpoint, state) | {"variables": listed}, indent=2, ensure_ascii=False)


def _whole(checkpoint: Checkpoint, state: StoredState) -> dict[str, Any]:
    """What Spark compares beside the variables, as the plan calls it."""
    operator = state.operator
    document: dict[str, Any] = {"operator": operator.number} if len(checkpoint.operators) > 1 else {}
    document["operators"] = list(operators_of(checkpoint))
    document["language"] = language_of(operator)
    api = next((name for name, spark_name in APIS.items() if spark_name == operator.name), None)
    if api is not None:
        document["api"] = api
    mode = time_mode_of(state)
    time_mode = next((name for name in TIME_MODES if SPARK_TIME_MODES.get(name, name) == mode), None)
    if time_mode is not None:
        document["time_mode"] = time_mode
    if output_mode_of(state) in OUTPUT_MODES:
        document["output_mode"] = output_mode_of(state)
    if checkpoint.format_version not in (None, 1):
        document["settings"] = {CHECKPOINT_FORMAT: checkpoint.format_version}
    return document


def _variable(variable: StateVariable) -> dict[str, Any]:
    newest = variable.newest
    made: dict[str, Any] = {"name": variable.name, "kind": variable.kind}
    if newest.map_key_schema is not None:
        made["user_key_schema"] = to_ddl(json.loads(newest.map_key_schema))
    made["value_schema"] = to_ddl(json.loads(newest.value_schema))
    return made | ({"ttl": True} if variable.ttl else {})
