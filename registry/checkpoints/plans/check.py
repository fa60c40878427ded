"""What a restart with a plan does to a checkpoint's state, said before it: nothing is started and nothing written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from registry.checkpoints.checksums import checksum_stops
from registry.checkpoints.families import EVOLVING, UNUSED_DEFAULT, internal_meaning
from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.log_checks import source_stops
from registry.checkpoints.logs import CHECKPOINT_FORMAT, SCHEMA_FILES, VALUE_SCHEMAS
from registry.checkpoints.model import Checkpoint, Operator, StateVariable
from registry.checkpoints.object_store import ObjectStore
from registry.checkpoints.plans.ddl_text import to_ddl
from registry.checkpoints.plans.model import KINDS, PlannedState, StatePlan
from registry.checkpoints.plans.operator_changes import damage_changes, language_of, operator_changes, unsaid
from registry.checkpoints.plans.report import CheckStatus, OperatorCheck, Setting, StateCheck, VariableCheck, Verdict
from registry.checkpoints.plans.rules import RESTART_RULES
from registry.checkpoints.plans.stored import (
    StoredState,
    as_stored,
    internal_doubts,
    key_doubts,
    metadata_doubts,
    read_state,
    ttl_of,
)
from registry.checkpoints.plans.variable_changes import declared_changes, removed_changes
from registry.checkpoints.read import read_checkpoint
from registry.errors import InvalidInput
from registry.formats.policies.spark_state import (
    RestartPlan,
    RestartSettings,
    StateChange,
    VariablePlan,
    VariableStatus,
    plan_restart,
)
from registry.formats.policies.spark_state.changes import change
from registry.formats.policies.spark_state.rules import EFFECTS

SCHEMA_CHECK: Final = "spark.sql.streaming.stateStore.stateSchemaCheck"
_DEFAULTS: Final[Mapping[str, str]] = {VALUE_SCHEMAS: "16", SCHEMA_FILES: "128", SCHEMA_CHECK: "true"}
_BY_EFFECT: Final[Mapping[str, VariableStatus]] = {
    "refused": "refused",
    "fails later": "accepted but fails later",
    "loses data": "accepted but loses data",
}
_WORST_FIRST: Final[tuple[CheckStatus, ...]] = (
    "refused",
    "accepted but fails later",
    "accepted but loses data",
    "evolves",
    "removed",
    "added",
    "unchanged",
    "not checked",
)
_VERDICTS: Final[Mapping[CheckStatus, Verdict]] = {
    "refused": "refused",
    "accepted but fails later": "fails later",
    "accepted but loses data": "loses data",
}
# What the engine says of a variable that has nothing to do with the fields of its value.
_BESIDE_VALUES: Final = frozenset({"VARIABLE_CAME_BACK", "KEY_FIELD_RENAMED", "CHECK_DISABLED"})
#: how many rows of a variable hold something in a field, of how many: (operator, variable, path) → (filled, rows)
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
    """What a restart of the query at `path` does with the planned state.

    `filled` is what a scan of the rows found; without it a removed field is taken for an empty one, and a note says
    so, with the reason `unread` where there is one. `store` is the object store of an address. Raises
    InvalidCheckpoint, InvalidSchema, and InvalidInput where it isn't clear which operator is meant.
    """
    roots = tuple(allowed_roots)
    checkpoint = read_checkpoint(path, roots, store=store)
    files = CheckpointFiles(path, roots, store=store)
    state = read_state(files, checkpoint, plan.operator)
    checkpoint = replace(
        checkpoint,
        stops=(*checkpoint.stops, *checksum_stops(files, checkpoint), *source_stops(files, checkpoint.sources)),
    )
    return check_plan(checkpoint, state, plan, filled=filled, unread=unread)


def check_plan(
    checkpoint: Checkpoint, state: StoredState, plan: StatePlan, *, filled: Filled | None = None, unread: str = ""
) -> StateCheck:
    """The same for a checkpoint that was read already."""
    operator = state.operator
    plan = replace(plan, language=plan.language or language_of(operator))
    settings = _settings(checkpoint, plan)
    others = [each for each in checkpoint.operators if each.number != operator.number]
    is_modelled = operator.name in EVOLVING
    unchecked = others if is_modelled else checkpoint.operators
    doubts = [stop.problem for stop in checkpoint.stops if not stop.error]
    if is_modelled:
        doubts += [*internal_doubts(state), *key_doubts(state), *metadata_doubts(state)]
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
        notes=tuple(f"The checkpoint: {each}." for each in checkpoint.problems),
        not_checked=(*(f"operator {each.number} ({each.description})" for each in unchecked), *doubts),
    )
    if not is_modelled:
        return _beside_the_model(report, checkpoint, operator)
    plan_ = plan_restart(
        state.stored(),
        as_stored(plan, state),
        _restart_settings(settings, operator.encoding, plan),
        operator.schema_files or None,
    )
    of_operator = tuple(operator_changes(checkpoint, state, plan, settings))
    variables = tuple(_variables(plan_, plan, state, filled))
    error, message = _first_error(of_operator, plan_, variables)
    return replace(
        report,
        verdict=_verdict(error, of_operator, variables, is_whole=not report.not_checked),
        variables=variables,
        changes=of_operator,
        files=plan_.files,
        error=error,
        error_message=message,
        notes=(*report.notes, *_notes(checkpoint, plan, state, variables, filled, unread)),
    )


def _beside_the_model(report: StateCheck, checkpoint: Checkpoint, operator: Operator) -> StateCheck:
    """The report of an operator whose state isn't checked: what stops any query at its start is known all the same."""
    variables = tuple(_not_checked(each) for each in operator.variables)
    changes = tuple(damage_changes(checkpoint))
    if not changes:
        return replace(report, variables=variables)
    first = changes[0]
    return replace(
        report,
        verdict="refused",
        variables=variables,
        changes=changes,
        error=first.error,
        error_message=first.message,
    )


def _first_error(
    of_operator: Sequence[StateChange], plan_: RestartPlan, variables: Sequence[VariableCheck]
) -> tuple[str, str]:
    """The class and the words of the error that Spark stops with at the start; both empty where it starts."""
    refused = next((each for each in of_operator if each.effect == "refused"), None)
    if refused is not None:
        return refused.error, refused.message
    if plan_.error:
        return plan_.error, plan_.error_message
    first = next((each for each in variables if each.error), None)
    return (first.error, f"{first.name}: {first.changes[0].message}") if first else ("", "")


def _settings(checkpoint: Checkpoint, plan: StatePlan) -> tuple[Setting, ...]:
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    found = []
    for name, default in _DEFAULTS.items():
        if name in plan.settings:
            found.append(Setting(name, plan.settings[name], "plan"))
        elif name in recorded:
            found.append(Setting(name, recorded[name], "checkpoint"))
        else:
            found.append(Setting(name, default, "default"))
    if CHECKPOINT_FORMAT in plan.settings:
        found.append(Setting(CHECKPOINT_FORMAT, plan.settings[CHECKPOINT_FORMAT].strip(), "plan"))
    elif checkpoint.format_version is not None:
        found.append(Setting(CHECKPOINT_FORMAT, str(checkpoint.format_version), "checkpoint"))
    return tuple(found)


def _restart_settings(settings: Sequence[Setting], encoding: str, plan: StatePlan) -> RestartSettings:
    values = {each.name: each.value for each in settings}
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
    planned = {each.name: each for each in plan.variables}
    made = [
        _variable(each, planned.get(each.name), plan, state, filled)
        for each in plan_.variables
        if internal_meaning(each.name) is None
        and (each.name != UNUSED_DEFAULT or each.name in planned or each.name in state.variables)
    ]
    return sorted(made, key=lambda each: (_WORST_FIRST.index(each.status), each.name))


def _variable(
    found: VariablePlan, planned: PlannedState | None, plan: StatePlan, state: StoredState, filled: Filled | None
) -> VariableCheck:
    known = state.variables.get(found.name)
    changes = [_unwrapped(each, known, planned, state) for each in found.changes]
    status: CheckStatus = found.status
    if planned is None:
        changes = list(removed_changes(found.name, plan, state))
        status = _status(changes, status)
    elif known is None:
        changes += declared_changes(planned, plan, state)
        status = _status(changes, status)
    else:
        if state.operator.evolvable and _ttl_before(known, state) != {ttl_of(planned, state)}:
            changes = [
                *_ttl(planned, state),
                *(e for e in changes if e.effect == "refused" or e.rule in _BESIDE_VALUES),
            ]
        beyond = [
            *declared_changes(planned, plan, state),
            *_kind(known, planned, state),
            *_filled(changes, state.operator.number, found.name, filled),
        ]
        replaced = {each.path for each in beyond if each.rule == "FILLED_FIELD_REMOVED"}
        changes = [e for e in changes if not (e.rule == "FIELD_REMOVED" and e.path in replaced)] + beyond
        status = _status(changes, "evolves" if status.startswith("accepted") else status)
    changes.sort(key=lambda each: -EFFECTS.index(each.effect))
    kind = planned.kind if planned else known.kind if known else "unknown"
    return VariableCheck(
        name=found.name,
        kind=kind,
        status=status,
        changes=tuple(changes),
        error=next((each.error for each in changes if each.effect == "refused"), ""),
        has_ttl=ttl_of(planned, state) if planned else bool(known and known.ttl),
        budget=found.budget,
        stored=to_ddl(json.loads(known.newest.value_schema)) if known else None,
        planned=to_ddl(planned.value) if planned else None,
        user_key=_user_key(planned, known),
        place=planned.place if planned else "",
    )


def _user_key(planned: PlannedState | None, known: StateVariable | None) -> str | None:
    if planned is not None:
        return to_ddl(planned.user_key) if planned.user_key else None
    schema = known.newest.map_key_schema if known else None
    return to_ddl(json.loads(schema)) if schema else None


def _status(changes: Sequence[StateChange], otherwise: CheckStatus) -> CheckStatus:
    worst = max((EFFECTS.index(each.effect) for each in changes), default=0)
    return _BY_EFFECT.get(EFFECTS[worst], otherwise)


def _unwrapped(
    found: StateChange, known: StateVariable | None, planned: PlannedState | None, state: StoredState
) -> StateChange:
    """The change with its path as the application sees it, without Spark's struct around a value that expires."""
    is_wrapped = known is not None and known.ttl and planned is not None and ttl_of(planned, state)
    if is_wrapped and found.path.startswith("value.") and not found.rule.startswith("KEY_"):
        if found.rule == "FIELD_REPLACED":
            names = ", ".join(each.removeprefix("value.") for each in (found.after or "").split(", "))
            return change(found.rule, found.path.removeprefix("value."), found.before, names)
        return replace(found, path=found.path.removeprefix("value."), message=found.message.replace("value.", "", 1))
    return found


def _kind(known: StateVariable, planned: PlannedState, state: StoredState) -> Iterable[StateChange]:
    """What a variable of another kind comes to. Spark compares kinds with the metadata of the last committed batch."""
    compared = state.kind_of(known.name)
    if compared and compared != planned.kind:
        yield change(RESTART_RULES["KIND_CHANGED"], "", compared, planned.kind)
        return
    if compared or known.removed_at is None or known.kind not in KINDS or known.kind == planned.kind:
        return
    if "map" not in (known.kind, planned.kind):
        yield change(RESTART_RULES["CAME_BACK_AS_OTHER_KIND"], "", known.kind, planned.kind)


def _ttl_before(known: StateVariable, state: StoredState) -> set[bool]:
    """Whether its entries expire, by the newest schema file and by that of the last committed batch."""
    committed = state.had_ttl(known.name)
    return {known.ttl} | ({committed} if committed is not None else set())


def _ttl(planned: PlannedState, state: StoredState) -> Iterable[StateChange]:
    """What a time to live that comes or goes does to rows written before, where values evolve."""
    turned_on = "TTL_TURNED_ON" if planned.kind == "value" else "TTL_TURNED_ON_HIDES"
    rule = turned_on if ttl_of(planned, state) else "TTL_TURNED_OFF"
    yield change(RESTART_RULES[rule], "", planned.kind)


def _filled(
    changes: Sequence[StateChange], operator: int, variable: str, filled: Filled | None
) -> Iterable[StateChange]:
    for each in changes:
        held, rows = (filled or {}).get((operator, variable, each.path), (0, 0))
        if each.rule == "FIELD_REMOVED" and held:
            detail = f"it is filled in {_share(held, rows)} ({held:,} of {rows:,} rows)"
            yield change(RESTART_RULES["FILLED_FIELD_REMOVED"], each.path, each.before, detail=detail)


def _share(part: int, whole: int) -> str:
    """`81 %`; never `0 %` for more than nothing, nor `100 %` for less than all."""
    percent = 100 * part / whole
    if percent < 1:
        return "under 1 %"
    return "over 99 %" if part < whole and percent > 99 else f"{percent:.0f} %"


def _verdict(
    error: str, of_operator: Sequence[StateChange], variables: Sequence[VariableCheck], *, is_whole: bool
) -> Verdict:
    """The worst of everything; never "fine" where the query has state that the check doesn't cover."""
    if error:
        return "refused"
    statuses = [each.status for each in variables]
    statuses += [_BY_EFFECT[each.effect] for each in of_operator if each.effect in _BY_EFFECT]
    worst = min((_WORST_FIRST.index(each) for each in statuses), default=len(_WORST_FIRST) - 1)
    return _VERDICTS.get(_WORST_FIRST[worst], "fine" if is_whole else "not checked")


def _notes(
    checkpoint: Checkpoint,
    plan: StatePlan,
    state: StoredState,
    variables: Sequence[VariableCheck],
    filled: Filled | None,
    unread: str,
) -> Iterable[str]:
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    stays = list(unsaid(plan, state, checkpoint))
    if stays:
        yield f"Taken as unchanged, because the plan doesn't say: {'; '.join(stays)}. Spark refuses to start otherwise."
    if any(each.key is not None for each in plan.variables):
        yield (
            "The key's nullability is taken from what is stored. Spark refuses to start where a column of the grouping "
            "key becomes nullable that was not."
        )
    for name, value in plan.settings.items():
        if name in _DEFAULTS or name == CHECKPOINT_FORMAT:
            continue
        if name not in recorded:
            yield f"{name[:200]} is set by the plan, and this check doesn't look at it."
        elif value != recorded[name]:
            yield f"{name} stays {recorded[name]}: Spark takes it from the checkpoint, not from the next start."
    for name in plan.removed:
        if name not in state.variables:
            yield f"deleteIfExists({name[:80]!r}) finds nothing: the checkpoint never had such a variable."
    if filled is None and any(c.rule == "FIELD_REMOVED" for each in variables for c in each.changes):
        reason = f" ({unread})" if unread else ""
        yield f"Rows weren't read{reason}: whether removed fields hold values isn't known to this check."
    if state.operator.why_fixed is not None:
        yield f"Values can't evolve: {state.operator.why_fixed}. State variables can still be added and removed."
    places = {each.checkpoint for each in state.info.stores if each.checkpoint} if state.info else set()
    for place in sorted(place for place in places if _plain(place) != _plain(checkpoint.path)):
        yield (
            f"The checkpoint was written at {place[:300]}, and Spark reads its schema files there: a restart on a folder "
            "that it was moved or copied to stops with FileNotFoundException."
        )
    if not state.history:
        yield "The operator has no schema file yet: every variable is taken for a new one."


def _plain(place: str) -> str:
    """A folder or address in the one form for all its spellings."""
    scheme, sign, rest = place.rstrip("/").partition(":")
    if not sign:
        return place.rstrip("/")
    return "/" + rest.lstrip("/") if scheme == "file" else f"{'s3' if scheme in ('s3a', 's3n') else scheme}:{rest}"


def _not_checked(variable: StateVariable) -> VariableCheck:
    """What a built-in operator keeps, as it is stored: what a restart does to it isn't modelled."""
    return VariableCheck(
        name=variable.label,
        kind=variable.kind,
        status="not checked",
        changes=(),
        stored=to_ddl(json.loads(variable.newest.value_schema)),
    )
