"""What a restart changes about the operator as a whole: its API, modes, neighbours and files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from registry.checkpoints.families import OPERATORS
from registry.checkpoints.logs import CHECKPOINT_FORMAT
from registry.checkpoints.model import Checkpoint, Operator
from registry.checkpoints.plans.model import APIS, SCALA_OPERATOR, Language, StatePlan
from registry.checkpoints.plans.report import Setting
from registry.checkpoints.plans.rules import RESTART_RULES
from registry.checkpoints.plans.stored import StoredState
from registry.errors import InvalidInput
from registry.formats.policies.spark_state import StateChange
from registry.formats.policies.spark_state.changes import change

SPARK_TIME_MODES: Final = {"None": "NoTime"}  # how Spark writes what applications call otherwise
_USER_MODES: Final = {spark: name for name, spark in SPARK_TIME_MODES.items()}


def language_of(operator: Operator) -> Language:
    """The language of the application that wrote the operator's state."""
    return "scala" if operator.name == SCALA_OPERATOR else "python"


def operator_changes(
    checkpoint: Checkpoint, state: StoredState, plan: StatePlan, settings: Sequence[Setting]
) -> Iterable[StateChange]:
    """What changes beside the variables. Raises InvalidInput for a format of checkpoints that is no number."""
    yield from damage_changes(checkpoint)
    for name in state.operator.missing_files:
        yield change(RESTART_RULES["SCHEMA_FILE_MISSING"], "", detail=name)
    yield from _api(state.operator, plan)
    yield from _operators(checkpoint, plan)
    time_mode = SPARK_TIME_MODES.get(plan.time_mode or "", plan.time_mode)
    yield from _mode("TIME_MODE_CHANGED", time_mode_of(state), time_mode)
    yield from _mode("OUTPUT_MODE_CHANGED", output_mode_of(state), plan.output_mode)
    yield from _format(checkpoint, settings)


def damage_changes(checkpoint: Checkpoint) -> Iterable[StateChange]:
    """The files that Spark doesn't start with, each with its own cure."""
    for stop in checkpoint.stops:
        if stop.error:
            found = change(RESTART_RULES["CHECKPOINT_DAMAGED"], "", detail=stop.problem, error=stop.error)
            yield replace(found, remedy=stop.remedy)


def unsaid(plan: StatePlan, state: StoredState, checkpoint: Checkpoint) -> Iterable[str]:
    """What the plan leaves open and Spark compares, each with its present value."""
    if plan.api is None and plan.language != "scala":
        yield f"API ({OPERATORS.get(state.operator.name, state.operator.name)})"
    if plan.time_mode is None:
        yield f"time mode ({_USER_MODES.get(time_mode_of(state) or '', time_mode_of(state))})"
    if plan.output_mode is None:
        yield f"output mode ({output_mode_of(state)})"
    if plan.operators is None:
        yield f"stateful operators ({_listed(operators_of(checkpoint))})"


def time_mode_of(state: StoredState) -> str | None:
    """The time mode by the metadata of the last committed batch."""
    return state.info.time_mode if state.info else state.operator.time_mode


def output_mode_of(state: StoredState) -> str | None:
    """The output mode by the metadata of the last committed batch."""
    return state.info.output_mode if state.info else state.operator.output_mode


def operators_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """All stateful operators in the order of their numbers, as a plan calls them."""
    return tuple(each.description for each in sorted(checkpoint.operators, key=lambda each: each.number))


def _mode(rule: str, before: str | None, after: str | None) -> Iterable[StateChange]:
    if before is not None and after is not None and before != after:
        yield change(RESTART_RULES[rule], "", before, after)


def _api(operator: Operator, plan: StatePlan) -> Iterable[StateChange]:
    planned = APIS.get(plan.api or "") if plan.language == "python" else SCALA_OPERATOR
    if planned is None and language_of(operator) == "scala":
        planned = APIS["transformWithState"]  # Python's of either name is not Scala's
    if planned is not None and planned != operator.name:
        yield change(RESTART_RULES["API_CHANGED"], "", _api_name(operator.name), _api_name(planned))


def _api_name(operator: str) -> str:
    return f"{OPERATORS.get(operator, operator)}{' (Scala)' if operator == SCALA_OPERATOR else ''}"


def _operators(checkpoint: Checkpoint, plan: StatePlan) -> Iterable[StateChange]:
    stored = operators_of(checkpoint)
    if plan.operators is not None and plan.operators != stored:
        yield change(RESTART_RULES["OPERATORS_CHANGED"], "", _listed(stored), _listed(plan.operators))


def _listed(operators: Sequence[str]) -> str:
    return ", ".join(operators) or "none"


def _format(checkpoint: Checkpoint, settings: Sequence[Setting]) -> Iterable[StateChange]:
    planned = next((each.value for each in settings if each.name == CHECKPOINT_FORMAT), None)
    if planned is None or checkpoint.format_version is None:
        return
    if not (planned.isascii() and planned.isdigit() and int(planned[:9]) > 0 and len(planned) <= 9):
        raise InvalidInput(
            f"{CHECKPOINT_FORMAT} is set to {planned[:40]!r}; a whole number above 0 is expected.",
            setting=CHECKPOINT_FORMAT,
        )
    stored = checkpoint.format_version
    if int(planned) != stored:
        rule = "CHECKPOINT_FORMAT_RAISED" if int(planned) > stored else "CHECKPOINT_FORMAT_LOWERED"
        yield change(RESTART_RULES[rule], "", str(stored), planned)
