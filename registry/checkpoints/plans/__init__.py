"""Plans of an application's next version for a checkpoint's state, and their check before a restart."""

from registry.checkpoints.plans.check import check_state
from registry.checkpoints.plans.document import parse_plan, plan_as_is, read_plan
from registry.checkpoints.plans.model import (
    PlannedState,
    StateCheck,
    StatePlan,
    VariableCheck,
    check_markdown,
    check_text,
)
from registry.checkpoints.plans.python_source import parse_python

__all__ = [
    "PlannedState",
    "StateCheck",
    "StatePlan",
    "VariableCheck",
    "check_markdown",
    "check_state",
    "check_text",
    "parse_plan",
    "parse_python",
    "plan_as_is",
    "read_plan",
]
