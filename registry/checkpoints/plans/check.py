"""Predicts what a restart with a plan does to a checkpoint's state; starts and writes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.log_checks import checksum_stops, source_stops
from registry.checkpoints.logs import CHECKPOINT_FORMAT, SCHEMA_FILES, VALUE_SCHEMAS
from registry.checkpoints.model import EVOLVING, UNUSED_DEFAULT, Checkpoint, StateVariable, internal_meaning
from registry.checkpoints.object_store import ObjectStore
from registry.checkpoints.plans.migration import Migration, make_migration
from registry.checkpoints.plans.model import (
    KINDS,
    STATUSES_OF,
    VERDICTS_OF,
    CheckStatus,
    OperatorCheck,
    PlannedState,
    Setting,
    StateCheck,
    StatePlan,
    VariableCheck,
    Verdict,
    to_ddl,
)
from registry.checkpoints.plans.operators import SCHEMA_CHECK
from registry.checkpoints.plans.query_check import as_described, of_other_query, with_operators, without_state
from registry.checkpoints.plans.remedies import bad_changes, ways_out
from registry.checkpoints.plans.rules import (
    RESTART_RULES,
    damage_changes,
    declared_changes,
    format_doubts,
    language_of,
    new_variables,
    operator_changes,
    removed_changes,
    unsaid,
)
from registry.checkpoints.plans.sources import source_doubts, with_folders
from registry.checkpoints.plans.stored_state import (
    StoredState,
    as_stored,
    internal_doubts,
    key_doubts,
    metadata_doubts,
    read_state,
    ttl_of,
)
from registry.checkpoints.reader import read_checkpoint
from registry.checkpoints.state_files import state_stops
from registry.errors import InvalidInput
from registry.formats.policies.spark_state import (
    RestartPlan,
    RestartSettings,
    StateChange,
    StructType,
    VariablePlan,
    plan_restart,
)
from registry.formats.policies.spark_state.rules import EFFECTS
from registry.formats.policies.spark_state.schema_changes import change

_DEFAULTS: Final[Mapping[str, str]] = {VALUE_SCHEMAS: "16", SCHEMA_FILES: "128", SCHEMA_CHECK: "true"}
_WORST_FIRST: Final[tuple[CheckStatus, ...]] = (
    "refused",
    "accepted but fails later",
    "accepted but silently wrong",
    "accepted but loses data",
    "evolves",
    "removed",
    "added",
    "unchanged",
    "not checked",
)
_VERDICTS: Final[Mapping[CheckStatus, Verdict]] = {STATUSES_OF[effect]: VERDICTS_OF[effect] for effect in VERDICTS_OF}
# Changes reported by the engine that don't concern the fields of the value.
_BESIDE_VALUES: Final = frozenset({"VARIABLE_CAME_BACK", "KEY_FIELD_RENAMED", "CHECK_DISABLED"})
#: rows with a value in a field, of all rows: (operator, variable, path) → (filled, rows); path "" counts the variable's
# rows
Filled = Mapping[tuple[int, str, str], tuple[int, int]]


def check_state(
    path: str,
    allowed_roots: Iterable[str | os.PathLike[str]],
    plan: StatePlan,
    *,
    filled: Filled | None = None,
    unread: str = "",
    store: ObjectStore | None = None,
) -> StateCheck:
    """Return what a restart of the query at `path` with the plan does to its state.

    `filled` comes from a scan of the rows. A removed field that it doesn't count makes the result "not checked", and a
    note gives the reason `unread`, if any. `store` is the object store of an address. Raises InvalidCheckpoint,
    InvalidSchema, and InvalidInput if the plan's operator is ambiguous.
    """
    roots = tuple(allowed_roots)
    files = CheckpointFiles(path, roots, store=store)
    checkpoint = with_folders(files, read_checkpoint(path, roots, store=store))
    checkpoint = replace(
        checkpoint,
        stops=(
            *checkpoint.stops,
            *checksum_stops(files, checkpoint),
            *source_stops(files, checkpoint.sources),
            *state_stops(files, checkpoint),
        ),
    )
    note = of_other_query(plan, checkpoint)
    plan = replace(plan, running=None) if note else plan
    if plan.query is not None and not checkpoint.operators and not checkpoint.is_starting:
        report = without_state(checkpoint, plan.query, plan.running)
        migration = Migration(why_not="the checkpoint has no state")
        report = replace(report, ways_out=ways_out(report, checkpoint, migration))
    else:
        state = read_state(files, checkpoint, plan.operator)
        report = check_plan(checkpoint, state, plan, filled=filled, unread=unread)
    return replace(report, notes=(*report.notes, note)) if note else report


def check_plan(
    checkpoint: Checkpoint, state: StoredState, plan: StatePlan, *, filled: Filled | None = None, unread: str = ""
) -> StateCheck:
    """Check a plan against a checkpoint that is already read."""
    plan = as_described(plan, checkpoint, tuple(_DEFAULTS))
    plan = replace(plan, language=plan.language or language_of(state.operator))
    report = _report(checkpoint, state, plan, filled=filled, unread=unread)
    migration = make_migration(checkpoint, state, plan, report) if bad_changes(report) else Migration()
    return replace(report, ways_out=ways_out(report, checkpoint, migration), script=migration.script)


def _report(
    checkpoint: Checkpoint, state: StoredState, plan: StatePlan, *, filled: Filled | None, unread: str
) -> StateCheck:
    operator = state.operator
    settings = _settings(checkpoint, plan)
    others = [item for item in checkpoint.operators if item.number != operator.number]
    is_modelled = operator.name in EVOLVING and bool(plan.query is None or plan.variables or plan.removed)
    unchecked = others if is_modelled else checkpoint.operators
    doubts = [stop.problem for stop in checkpoint.stops if not stop.error]
    if is_modelled:
        doubts += [*internal_doubts(state), *key_doubts(state), *metadata_doubts(state)]
    doubts += [
        *format_doubts(checkpoint, plan),
        *source_doubts(checkpoint.sources, plan.sources or (), plan.running_sources),
    ]
    report = StateCheck(
        path=checkpoint.path,
        query_id=checkpoint.query_id,
        last_batch=checkpoint.last_committed_batch,
        language=plan.language or "python",
        verdict="not checked",
        operator=OperatorCheck(
            operator.number, operator.name, operator.description, operator.encoding, operator.why_fixed
        ),
        variables=(),
        settings=settings,
        notes=tuple(f"The checkpoint: {item}." for item in checkpoint.problems),
        not_checked=(*(f"operator {item.number} ({item.description})" for item in unchecked), *doubts),
    )
    if not is_modelled:
        return _beside_the_model(report, checkpoint, state, plan)
    plan_ = plan_restart(
        state.stored(),
        as_stored(plan, state),
        _restart_settings(settings, operator.encoding, plan),
        operator.schema_files or None,
    )
    if plan.query is not None:
        report = with_operators(report, checkpoint, plan.query, plan)
    of_operator = (*operator_changes(checkpoint, state, plan, settings), *report.changes)
    variables = tuple(_variables(plan_, plan, state, filled))
    error, message = _first_error(of_operator, plan_, variables)
    unknown = tuple(_unknown_values(variables, operator.number, filled or {}))
    not_checked = (*report.not_checked, *unknown)
    return replace(
        report,
        verdict=_verdict(error, of_operator, variables, is_whole=not not_checked),
        not_checked=not_checked,
        variables=variables,
        changes=of_operator,
        files=plan_.files,
        error=error,
        error_message=message,
        notes=(*report.notes, *_notes(checkpoint, plan, state, variables, unread if unknown else None)),
    )


def _beside_the_model(report: StateCheck, checkpoint: Checkpoint, state: StoredState, plan: StatePlan) -> StateCheck:
    """Return the report of an operator without planned variables: of its description, else of damage alone."""
    report = replace(report, variables=tuple(_not_checked(item) for item in state.operator.variables))
    if plan.query is None:
        report = replace(report, changes=tuple(damage_changes(checkpoint)))
    else:
        changes = tuple(operator_changes(checkpoint, state, plan, report.settings))
        report = with_operators(replace(report, changes=changes), checkpoint, plan.query, plan)
    first = next((item for item in report.changes if item.effect == "refused"), None)
    error = first.error or first.message if first else ""
    return replace(
        report,
        verdict=_verdict(error, report.changes, (), is_whole=not report.not_checked),
        error=first.error if first else "",
        error_message=first.message if first else "",
    )


def _first_error(
    of_operator: Sequence[StateChange], plan_: RestartPlan, variables: Sequence[VariableCheck]
) -> tuple[str, str]:
    """Return the class and message of the error that stops Spark at start; both empty if it starts."""
    refused = next((item for item in of_operator if item.effect == "refused"), None)
    if refused is not None:
        return refused.error, refused.message
    if plan_.error:
        return plan_.error, plan_.error_message
    first = next((item for item in variables if item.error), None)
    return (first.error, f"{first.name}: {first.changes[0].message}") if first else ("", "")


def _settings(checkpoint: Checkpoint, plan: StatePlan) -> tuple[Setting, ...]:
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    settings = []
    for name, default in _DEFAULTS.items():
        if name in plan.settings:
            settings.append(Setting(name, plan.settings[name], "plan"))
        elif name in recorded:
            settings.append(Setting(name, recorded[name], "checkpoint"))
        else:
            settings.append(Setting(name, default, "default"))
    if CHECKPOINT_FORMAT in plan.settings:
        settings.append(Setting(CHECKPOINT_FORMAT, plan.settings[CHECKPOINT_FORMAT].strip(), "plan"))
    elif checkpoint.format_version is not None:
        settings.append(Setting(CHECKPOINT_FORMAT, str(checkpoint.format_version), "checkpoint"))
    return tuple(settings)


def _restart_settings(settings: Sequence[Setting], encoding: str, plan: StatePlan) -> RestartSettings:
    values = {item.name: item.value for item in settings}
    return RestartSettings(
        has_evolution=encoding == "avro",
        language=plan.language or "python",
        value_schemas=_count(values, VALUE_SCHEMAS),
        schema_files=_count(values, SCHEMA_FILES),
        is_checked=values[SCHEMA_CHECK].strip().lower() != "false",
    )


def _count(values: Mapping[str, str], name: str) -> int:
    text = values[name].strip()
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9):
        raise InvalidInput(f"{name} is set to {text[:40]!r}; a whole number above 0 is expected.", setting=name)
    return int(text)


def _variables(plan_: RestartPlan, plan: StatePlan, state: StoredState, filled: Filled | None) -> list[VariableCheck]:
    planned = {variable.name: variable for variable in plan.variables}
    begun = new_variables(plan, state)
    made = [
        _variable(variable, planned.get(variable.name), plan, state, begun, filled)
        for variable in plan_.variables
        if internal_meaning(variable.name) is None
        and (variable.name != UNUSED_DEFAULT or variable.name in planned or variable.name in state.variables)
    ]
    return sorted(made, key=lambda variable: (_WORST_FIRST.index(variable.status), variable.name))


def _variable(
    variable_plan: VariablePlan,
    planned: PlannedState | None,
    plan: StatePlan,
    state: StoredState,
    begun: Sequence[tuple[PlannedState, StructType]],
    filled: Filled | None,
) -> VariableCheck:
    stored_variable = state.variables.get(variable_plan.name)
    changes = [_unwrapped(item, stored_variable, planned, state) for item in variable_plan.changes]
    status: CheckStatus = variable_plan.status
    if planned is None:
        changes = list(removed_changes(variable_plan.name, plan, state, begun))
        status = _status(changes, status)
    elif stored_variable is None:
        changes += declared_changes(planned, plan, state)
        status = _status(changes, status)
    else:
        if state.operator.evolvable and _ttl_before(stored_variable, state) != {ttl_of(planned, state)}:
            changes = [
                *_ttl(planned, state),
                *(e for e in changes if e.effect == "refused" or e.rule in _BESIDE_VALUES),
            ]
        beyond = [
            *declared_changes(planned, plan, state),
            *_kind(stored_variable, planned, state),
            *_filled(changes, state.operator.number, variable_plan.name, filled),
        ]
        replaced = {item.path for item in beyond if item.rule == "FILLED_FIELD_REMOVED"}
        changes = [e for e in changes if not (e.rule == "FIELD_REMOVED" and e.path in replaced)] + beyond
        status = _status(changes, "evolves" if status.startswith("accepted") else status)
    changes.sort(key=lambda item: -EFFECTS.index(item.effect))
    kind = planned.kind if planned else stored_variable.kind if stored_variable else "unknown"
    return VariableCheck(
        name=variable_plan.name,
        kind=kind,
        status=status,
        changes=tuple(changes),
        error=next((item.error for item in changes if item.effect == "refused"), ""),
        has_ttl=ttl_of(planned, state) if planned else bool(stored_variable and stored_variable.ttl),
        budget=variable_plan.budget,
        stored=to_ddl(json.loads(stored_variable.newest.value_schema)) if stored_variable else None,
        planned=to_ddl(planned.value) if planned else None,
        user_key=_user_key(planned, stored_variable),
        place=planned.place if planned else "",
    )


def _user_key(planned: PlannedState | None, stored_variable: StateVariable | None) -> str | None:
    if planned is not None:
        return to_ddl(planned.user_key) if planned.user_key else None
    schema = stored_variable.newest.map_key_schema if stored_variable else None
    return to_ddl(json.loads(schema)) if schema else None


def _status(changes: Sequence[StateChange], otherwise: CheckStatus) -> CheckStatus:
    worst = max((EFFECTS.index(item.effect) for item in changes), default=0)
    return STATUSES_OF.get(EFFECTS[worst], otherwise)


def _unwrapped(
    item: StateChange, stored_variable: StateVariable | None, planned: PlannedState | None, state: StoredState
) -> StateChange:
    """Return the change with its path as the application sees it, without Spark's struct around an expiring value."""
    is_wrapped = stored_variable is not None and stored_variable.ttl and planned is not None and ttl_of(planned, state)
    if is_wrapped and item.path.startswith("value.") and not item.rule.startswith("KEY_"):
        if item.rule == "FIELD_REPLACED":
            names = ", ".join(path.removeprefix("value.") for path in (item.after or "").split(", "))
            return change(item.rule, item.path.removeprefix("value."), item.before, names)
        return replace(item, path=item.path.removeprefix("value."), message=item.message.replace("value.", "", 1))
    return item


def _kind(stored_variable: StateVariable, planned: PlannedState, state: StoredState) -> Iterable[StateChange]:
    """Yield the effect of a changed kind. Spark compares kinds with the metadata of the last committed batch."""
    compared = state.kind_of(stored_variable.name)
    if compared and compared != planned.kind:
        yield change(RESTART_RULES["KIND_CHANGED"], "", compared, planned.kind)
        return
    if (
        compared
        or stored_variable.removed_at is None
        or stored_variable.kind not in KINDS
        or stored_variable.kind == planned.kind
    ):
        return
    if "map" not in (stored_variable.kind, planned.kind):
        yield change(RESTART_RULES["CAME_BACK_AS_OTHER_KIND"], "", stored_variable.kind, planned.kind)


def _ttl_before(stored_variable: StateVariable, state: StoredState) -> set[bool]:
    """Return whether its entries expire, by the newest schema file and by that of the last committed batch."""
    committed = state.had_ttl(stored_variable.name)
    return {stored_variable.ttl} | ({committed} if committed is not None else set())


def _ttl(planned: PlannedState, state: StoredState) -> Iterable[StateChange]:
    """Yield the effect of a new or removed TTL on existing rows, if values evolve."""
    turned_on = "TTL_TURNED_ON" if planned.kind == "value" else "TTL_TURNED_ON_HIDES"
    rule = turned_on if ttl_of(planned, state) else "TTL_TURNED_OFF"
    yield change(RESTART_RULES[rule], "", planned.kind)


def _filled(
    changes: Sequence[StateChange], operator: int, variable: str, filled: Filled | None
) -> Iterable[StateChange]:
    for item in changes:
        filled_rows, rows = (filled or {}).get((operator, variable, item.path), (0, 0))
        if item.rule == "FIELD_REMOVED" and filled_rows:
            detail = f"it is filled in {_share(filled_rows, rows)} ({filled_rows:,} of {rows:,} rows)"
            yield change(RESTART_RULES["FILLED_FIELD_REMOVED"], item.path, item.before, detail=detail)


def _unknown_values(variables: Sequence[VariableCheck], operator: int, filled: Filled) -> Iterable[str]:
    """Yield the removed fields whose values no scan counted: whether the restart loses data is unknown."""
    for variable in variables:
        if filled.get((operator, variable.name, ""), (0, 1))[1] == 0:
            continue
        paths = [item.path for item in variable.changes if item.rule == "FIELD_REMOVED"]
        unknown = [path for path in paths if (operator, variable.name, path) not in filled]
        if unknown:
            yield f"whether removed fields of {variable.name} hold values ({', '.join(unknown)[:200]})"


def _share(part: int, whole: int) -> str:
    """Return `81 %`; never `0 %` for more than nothing, nor `100 %` for less than all."""
    percent = 100 * part / whole
    if percent < 1:
        return "under 1 %"
    return "over 99 %" if part < whole and percent > 99 else f"{percent:.0f} %"


def _verdict(
    error: str, of_operator: Sequence[StateChange], variables: Sequence[VariableCheck], *, is_whole: bool
) -> Verdict:
    """Return the worst verdict; never "safe" if the query has state that the check doesn't cover."""
    if error:
        return "fails at start"
    statuses = [item.status for item in variables]
    statuses += [STATUSES_OF[item.effect] for item in of_operator if item.effect in STATUSES_OF]
    worst = min((_WORST_FIRST.index(item) for item in statuses), default=len(_WORST_FIRST) - 1)
    return _VERDICTS.get(_WORST_FIRST[worst], "safe" if is_whole else "not checked")


def _notes(
    checkpoint: Checkpoint,
    plan: StatePlan,
    state: StoredState,
    variables: Sequence[VariableCheck],
    unread: str | None,
) -> Iterable[str]:
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    stays = list(unsaid(plan, state, checkpoint))
    if stays:
        yield (
            f"Assumed unchanged because the plan doesn't set it: {'; '.join(stays)}. Otherwise Spark refuses to start."
        )
    if plan.variables and all(item.key is None for item in plan.variables):
        yield (
            "The grouping key is assumed unchanged because the plan doesn't set it. With another key, Spark refuses to "
            "start or finds none of the stored values."
        )
    if any(item.key is not None for item in plan.variables):
        yield (
            "The key's nullability is assumed to be as stored. Spark refuses to start if a non-null column of the "
            "grouping key becomes nullable."
        )
    for name, value in plan.settings.items():
        if name in _DEFAULTS or name == CHECKPOINT_FORMAT:
            continue
        if name not in recorded:
            yield f"The plan sets {name[:200]}, which this check ignores."
        elif value != recorded[name]:
            yield f"{name} stays {recorded[name]}: Spark takes it from the checkpoint, not from the next start."
    for name in plan.removed:
        if name not in state.variables:
            yield f"deleteIfExists({name[:80]!r}) has no effect: the checkpoint never had this variable."
    if unread is not None:
        reason = f" ({unread})" if unread else ""
        yield f"Rows not read{reason}: it is not known whether removed fields hold values."
    if state.operator.why_fixed is not None:
        yield f"Values can't evolve: {state.operator.why_fixed}. State variables can still be added and removed."
    written_paths = {item.checkpoint for item in state.info.stores if item.checkpoint} if state.info else set()
    for written_path in sorted(
        written_path for written_path in written_paths if _plain(written_path) != _plain(checkpoint.path)
    ):
        yield (
            f"The checkpoint was written at {written_path[:300]}, and Spark reads its schema files there: a "
            "restart from a folder that it was moved or copied to fails with FileNotFoundException."
        )
    if not state.history:
        yield "The operator has no schema file yet: every variable is treated as new."


def _plain(path: str) -> str:
    """Normalise the spelling of a folder or address."""
    scheme, sign, rest = path.rstrip("/").partition(":")
    if not sign:
        return path.rstrip("/")
    return "/" + rest.lstrip("/") if scheme == "file" else f"{'s3' if scheme in ('s3a', 's3n') else scheme}:{rest}"


def _not_checked(variable: StateVariable) -> VariableCheck:
    """Return the state of a built-in operator as it is stored; the effect of a restart on it isn't modelled."""
    return VariableCheck(
        name=variable.label,
        kind=variable.kind,
        status="not checked",
        changes=(),
        stored=to_ddl(json.loads(variable.newest.value_schema)),
    )
