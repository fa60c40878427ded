"""The effect of a restart with planned state schemas on a Spark query's state, by the rules of Spark 4.2. Pure.

`plan_restart` takes the stored schemas of every state variable, the planned ones, and the query's settings. It needs
neither Spark nor a checkpoint. Evolution happens only at a restart, and all changes of one restart count once.

Verified against Spark 4.2's own classes (`python -m tests.formats.policies.spark_comparison`). Three facts are
surprising. Without evolution and in keys, a nullable place may become non-nullable, but not the reverse. A change of
metadata or of a key field's name counts as an evolution. With *more* schema files than the limit, Spark no longer
checks the limit, because it tests for equality.
"""

from __future__ import annotations

from registry.formats.policies.spark_state.model import (
    Budget,
    PlannedVariable,
    RestartPlan,
    RestartSettings,
    StoredVariable,
    StoredVersion,
    VariablePlan,
    VariableStatus,
)
from registry.formats.policies.spark_state.restart_plan import plan_restart, schema_changes
from registry.formats.policies.spark_state.rules import STATE_RULES
from registry.formats.policies.spark_state.schema_changes import StateChange
from registry.formats.policies.spark_state.struct_types import StructType, parse_struct, to_avro, why_no_avro
