"""The restart rules beyond the schemas of keys and values, and the changes they report for operators and variables.

Each rule is a row of the table, as observed in real restarts of Spark 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from registry.checkpoints.logs import CHECKPOINT_FORMAT, ENCODING
from registry.checkpoints.model import OPERATORS, UNUSED_DEFAULT, Checkpoint, Operator
from registry.checkpoints.plans.model import APIS, SCALA_OPERATOR, Language, PlannedState, Setting, StatePlan
from registry.checkpoints.plans.source_rules import SOURCE_RULES
from registry.checkpoints.plans.sources import source_changes
from registry.checkpoints.plans.stored_state import StoredState, ttl_of
from registry.errors import InvalidInput, first_few
from registry.formats.name_similarity import name_likeness
from registry.formats.policies.spark_state import StateChange, StructType, parse_struct
from registry.formats.policies.spark_state.rules import StateRule
from registry.formats.policies.spark_state.schema_changes import LIKELY, MAX_CANDIDATES, change

TIME_MODE_ERROR: Final = "STATE_STORE_INVALID_CONFIG_AFTER_RESTART"
KIND_ERROR: Final = "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE"
OPERATOR_ERROR: Final = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
TTL_ERROR: Final = "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL"
NAME_ERROR: Final = "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME"

_ROWS: Final = (
    StateRule(
        "KIND_CHANGED",
        "a {before} state becomes a {after} state",
        "Spark stores the kind of every variable with the operator and compares it at the start.",
        "keep the kind, or declare the new kind under another name",
        "DBX-3",
        "refused",
        "",
        KIND_ERROR,
    ),
    StateRule(
        "CAME_BACK_AS_OTHER_KIND",
        "a removed {before} state is declared again as a {after} state",
        "Spark no longer compares the kinds, but the old rows still exist and are read in the wrong layout. In a "
        "real restart, this killed the executor's JVM.",
        "use another name; only deleteIfExists removes the old rows",
        "DBX-3",
        "fails later",
        "",
        "",
    ),
    StateRule(
        "TTL_TURNED_ON",
        "entries of this value state now expire",
        "Spark accepts this because it wraps the value in a struct with its expiry time and matches fields by "
        "name. Existing rows have no such struct: the query fails as soon as it reads one.",
        "declare a new variable with a time to live, and fill it from this one",
        "DBX-3",
        "fails later",
        "",
        "EXPRESSION_DECODING_FAILED",
    ),
    StateRule(
        "TTL_TURNED_ON_HIDES",
        "entries of this {before} state now expire",
        "Spark accepts this because it wraps values in a struct with their expiry time and matches fields by name. "
        "Existing entries have no expiry time and count as expired: the {before} reads as empty, without an error.",
        "declare a new variable with a time to live, and fill it from this one",
        "DBX-3",
        "loses data",
        "",
        "",
    ),
    StateRule(
        "TTL_TURNED_OFF",
        "entries of this {before} state no longer expire",
        "Spark accepts this because it no longer wraps the value in a struct with its expiry time and matches "
        "fields by name: every field of an existing entry reads as null, without an error.",
        "keep a time to live of any length, or declare a new variable and fill it from this one",
        "DBX-3",
        "loses data",
        "",
        "",
    ),
    StateRule(
        "TIME_MODE_CHANGED",
        "the time mode changes from {before} to {after}",
        "A checkpoint keeps its time mode.",
        "keep {before}, or use a new checkpoint",
        "DBX-3",
        "refused",
        "",
        TIME_MODE_ERROR,
    ),
    StateRule(
        "OUTPUT_MODE_CHANGED",
        "the output mode changes from {before} to {after}",
        "Spark stores the output mode with the operator and compares it at the start.",
        "keep {before}, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        TIME_MODE_ERROR,
    ),
    StateRule(
        "API_CHANGED",
        "{before} becomes {after}",
        "Spark treats these as different operators and compares the operator's name with the checkpoint at the start.",
        "keep {before}, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        OPERATOR_ERROR,
    ),
    StateRule(
        "OPERATORS_CHANGED",
        "the stateful operators change from {before} to {after}",
        "Spark numbers a query's stateful operators and compares each name with the checkpoint at the start.",
        "keep the stateful operators and their order, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        OPERATOR_ERROR,
    ),
    StateRule(
        "CHECKPOINT_FORMAT_RAISED",
        "spark.sql.streaming.stateStore.checkpointFormatVersion changes from {before} to {after}",
        "A checkpoint keeps its format. The query starts, but fails when it commits the first batch.",
        "keep {before}, or use a new checkpoint",
        "DBX-4",
        "fails later",
        "",
        "CANNOT_WRITE_STATE_STORE",
    ),
    StateRule(
        "CHECKPOINT_FORMAT_LOWERED",
        "spark.sql.streaming.stateStore.checkpointFormatVersion changes from {before} to {after}",
        "A checkpoint keeps its format. The query starts, but fails when it loads the state for the first batch.",
        "keep {before}, or use a new checkpoint",
        "DBX-4",
        "fails later",
        "",
        "CANNOT_LOAD_STATE_STORE",
    ),
    StateRule(
        "ENCODING_NOT_SUPPORTED",
        "the state is encoded as Avro, but {detail} doesn't support that",
        "Only transformWithState supports Avro. Spark rejects a query with any other stateful operator at the start.",
        "leave out the other operator, or run it in a query of its own",
        "DBX-4",
        "refused",
        "",
        "AnalysisException",
    ),
    StateRule(
        "SCHEMA_FILE_MISSING",
        "the schema file {detail} is missing",
        "The operator's metadata names it, and Spark reads all schema files at the start. Its content can't be "
        "compared here.",
        "restore the file from a copy, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "FileNotFoundException",
    ),
    StateRule(
        "CHECKPOINT_DAMAGED",
        "{detail}",
        "Before the first batch, Spark reads the newest log files, the operator's metadata and its schema files.",
        "restore the file from a copy, or use a new checkpoint",
        "DBX-4",
        "refused",
        "",
        "",
    ),
    StateRule(
        "TTL_NEEDS_PROCESSING_TIME",
        "its entries expire, but the time mode is {after}",
        "Spark accepts a time to live only in time mode ProcessingTime. A checkpoint keeps its time mode.",
        "remove the time to live, or use a new checkpoint with time mode ProcessingTime",
        "DBX-4",
        "refused",
        "",
        TTL_ERROR,
    ),
    StateRule(
        "VARIABLE_NAME_REFUSED",
        "Spark doesn't accept this variable name: {detail}",
        "A state variable is a column family in the state store, and Spark checks the name when it creates one.",
        "choose another name",
        "DBX-4",
        "refused",
        "",
        NAME_ERROR,
    ),
    StateRule(
        "VARIABLE_REPLACED",
        "{before} is {detail}, and {after} starts empty",
        "Spark identifies state variables by their case-sensitive name. If {after} is {before} renamed, its old "
        "state becomes unreachable, without an error.",
        "keep {before} and copy it to {after} first; if they are unrelated, use two restarts",
        "DBX-3",
        "loses data",
        "unsupported",
        "",
    ),
    StateRule(
        "ROWS_STAY",
        "the code no longer declares the state variable",
        "Its rows stay in the state, unread: they take up space, and reappear if the name is declared again.",
        "call deleteIfExists if the rows should be deleted; otherwise add the variable to the plan",
        "DBX-2",
        "note",
        "",
        "",
    ),
    StateRule(
        "ROWS_DELETED",
        "the state variable is deleted with deleteIfExists",
        "All its rows are removed at the restart. Its old schemas still apply: if the name is declared again, the "
        "variable starts empty but is still compared with them.",
        "copy the rows that are still needed before the restart",
        "DBX-2",
        "note",
        "supported",
        "",
    ),
    StateRule(
        "FILLED_FIELD_REMOVED",
        "{path} is removed, and {detail}",
        "These values are no longer read, and a row loses them once it is rewritten.",
        "keep the field, or copy its values before the restart",
        "DBX-2",
        "loses data",
        "supported",
        "",
    ),
)
RESTART_RULES: Final[Mapping[str, StateRule]] = {rule.id: rule for rule in (*_ROWS, *SOURCE_RULES.values())}


SPARK_TIME_MODES: Final = {"None": "NoTime"}  # application's name → Spark's name, if they differ
_USER_MODES: Final = {spark: name for name, spark in SPARK_TIME_MODES.items()}


def language_of(operator: Operator) -> Language:
    """Return the language of the application that wrote the operator's state."""
    return "scala" if operator.name == SCALA_OPERATOR else "python"


def operator_changes(
    checkpoint: Checkpoint, state: StoredState, plan: StatePlan, settings: Sequence[Setting]
) -> Iterable[StateChange]:
    """Yield changes besides those of variables. Raises InvalidInput if the checkpoint format isn't a number."""
    yield from damage_changes(checkpoint)
    for name in state.operator.missing_files:
        yield change(RESTART_RULES["SCHEMA_FILE_MISSING"], "", detail=name)
    yield from _encoding(checkpoint, plan)
    yield from _api(state.operator, plan)
    yield from _operators(checkpoint, plan)
    # Of a checkpoint with logs that can't be read, the sources aren't known; a doubt says so.
    if plan.sources is not None and all(stop.error for stop in checkpoint.stops):
        yield from source_changes(checkpoint.sources, plan.sources, plan.running_sources)
    time_mode = SPARK_TIME_MODES.get(plan.time_mode or "", plan.time_mode)
    yield from _mode("TIME_MODE_CHANGED", time_mode_of(state), time_mode)
    yield from _mode("OUTPUT_MODE_CHANGED", output_mode_of(state), plan.output_mode)
    yield from _format(checkpoint, settings)


def damage_changes(checkpoint: Checkpoint) -> Iterable[StateChange]:
    """Yield the files that keep Spark from starting, each with its own remedy."""
    for stop in checkpoint.stops:
        if stop.error:
            damage = change(RESTART_RULES["CHECKPOINT_DAMAGED"], "", detail=stop.problem, error=stop.error)
            yield replace(damage, remedy=stop.remedy)


def unsaid(plan: StatePlan, state: StoredState, checkpoint: Checkpoint) -> Iterable[str]:
    """Yield what the plan leaves open although Spark compares it, each with its current value."""
    if plan.api is None and plan.language != "scala":
        yield f"API ({OPERATORS.get(state.operator.name, state.operator.name)})"
    if plan.time_mode is None:
        yield f"time mode ({_USER_MODES.get(time_mode_of(state) or '', time_mode_of(state))})"
    if plan.output_mode is None:
        yield f"output mode ({output_mode_of(state)})"
    if plan.operators is None:
        yield f"stateful operators ({_listed(operators_of(checkpoint))})"
    if plan.sources is None:
        yield f"sources ({_listed([source.description for source in checkpoint.sources])})"


def time_mode_of(state: StoredState) -> str | None:
    """Return the time mode in the metadata of the last committed batch."""
    return state.info.time_mode if state.info else state.operator.time_mode


def output_mode_of(state: StoredState) -> str | None:
    """Return the output mode in the metadata of the last committed batch."""
    return state.info.output_mode if state.info else state.operator.output_mode


def operators_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the descriptions of all stateful operators in the order of their numbers, as in a plan."""
    return tuple(
        operator.description for operator in sorted(checkpoint.operators, key=lambda operator: operator.number)
    )


def _mode(rule: str, before: str | None, after: str | None) -> Iterable[StateChange]:
    if before is not None and after is not None and before != after:
        yield change(RESTART_RULES[rule], "", before, after)


def _api(operator: Operator, plan: StatePlan) -> Iterable[StateChange]:
    planned = APIS.get(plan.api or "") if plan.language == "python" else SCALA_OPERATOR
    if planned is None and language_of(operator) == "scala":
        planned = APIS["transformWithState"]  # neither of Python's is Scala's
    if planned is not None and planned != operator.name:
        yield change(RESTART_RULES["API_CHANGED"], "", _api_name(operator.name), _api_name(planned))


def _api_name(operator: str) -> str:
    return f"{OPERATORS.get(operator, operator)}{' (Scala)' if operator == SCALA_OPERATOR else ''}"


def _operators(checkpoint: Checkpoint, plan: StatePlan) -> Iterable[StateChange]:
    stored = operators_of(checkpoint)
    if plan.operators is not None and plan.operators != stored:
        yield change(RESTART_RULES["OPERATORS_CHANGED"], "", _listed(stored), _listed(plan.operators))


def _encoding(checkpoint: Checkpoint, plan: StatePlan) -> Iterable[StateChange]:
    """Yield the operator that rejects Avro. Spark looks at the setting of the start, else assumed to be as stored."""
    stored = operators_of(checkpoint)
    operators = plan.operators if plan.operators is not None else stored
    others = [name for name in operators if not name.startswith("transformWithState")]
    usual = checkpoint.settings[-1].encoding if checkpoint.settings and operators != stored else ""
    if others and plan.settings.get(ENCODING, usual).strip().lower() == "avro":
        yield change(RESTART_RULES["ENCODING_NOT_SUPPORTED"], "", detail=others[0])


def _listed(operators: Sequence[str]) -> str:
    return ", ".join(operators) or "none"


def _format(checkpoint: Checkpoint, settings: Sequence[Setting]) -> Iterable[StateChange]:
    planned = next((setting.value for setting in settings if setting.name == CHECKPOINT_FORMAT), None)
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


def format_doubts(checkpoint: Checkpoint, plan: StatePlan) -> Iterable[str]:
    """Describe a checkpoint format that the next start may not have."""
    stored = checkpoint.format_version
    if stored is None and CHECKPOINT_FORMAT in plan.settings:
        yield f"whether {CHECKPOINT_FORMAT} is unchanged (the checkpoint's isn't known)"
    elif stored not in (None, 1) and CHECKPOINT_FORMAT not in plan.settings:
        yield f"whether the next start sets {CHECKPOINT_FORMAT} to {stored} (the plan doesn't, and Spark's default is 1)"


_PROCESSING_TIME: Final = "ProcessingTime"


def declared_changes(planned: PlannedState, plan: StatePlan, state: StoredState) -> Iterable[StateChange]:
    """Yield what Spark rejects in a declaration before it compares schemas: the name, and the TTL."""
    if planned.name == UNUSED_DEFAULT:
        yield change(RESTART_RULES["VARIABLE_NAME_REFUSED"], "", detail="it is reserved for Spark")
    elif planned.name != planned.name.strip():
        yield change(RESTART_RULES["VARIABLE_NAME_REFUSED"], "", detail="it starts or ends with a space")
    time_mode = plan.time_mode or time_mode_of(state)
    if ttl_of(planned, state) and time_mode is not None and time_mode != _PROCESSING_TIME:
        yield change(RESTART_RULES["TTL_NEEDS_PROCESSING_TIME"], "", None, plan.time_mode or time_mode)


def new_variables(plan: StatePlan, state: StoredState) -> list[tuple[PlannedState, StructType]]:
    """Return the planned variables that no committed batch has, each with the schema of its value."""
    return [(item, parse_struct(item.value)) for item in plan.variables if item.name not in state.committed]


def removed_changes(
    name: str, plan: StatePlan, state: StoredState, begun: Sequence[tuple[PlannedState, StructType]]
) -> Iterable[StateChange]:
    """Yield what happens to a variable that the plan doesn't declare: its rows stay or go, and another may replace it.

    `begun` is the result of `new_variables`.
    """
    is_deleted = name in plan.removed
    yield change(RESTART_RULES["ROWS_DELETED" if is_deleted else "ROWS_STAY"], "")
    # Deleted on purpose: a loss only if it looks like a rename. With too many candidates, any may be the rename.
    if is_deleted and len(begun) <= MAX_CANDIDATES:
        begun = _like(name, begun, state)
    if begun:
        names = first_few([variable.name for variable, _ in begun])
        detail = "deleted" if is_deleted else "no longer declared"
        yield change(RESTART_RULES["VARIABLE_REPLACED"], "", name, names, detail=detail)


def _like(
    name: str, begun: Sequence[tuple[PlannedState, StructType]], state: StoredState
) -> list[tuple[PlannedState, StructType]]:
    stored_variable = state.variables.get(name)
    if stored_variable is None:
        return []
    stored = parse_struct(stored_variable.newest.value_schema)
    return [
        (planned, value)
        for planned, value in begun
        if planned.kind == stored_variable.kind and (value == stored or name_likeness(name, planned.name) >= LIKELY)
    ]
