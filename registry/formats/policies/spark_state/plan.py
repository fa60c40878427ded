"""The algorithm of Spark's own check, with all fields named instead of the first schema refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from registry.formats.policies.spark_state.changes import (
    StateChange,
    against,
    by_name,
    change,
    not_read_back,
    value_changes,
)
from registry.formats.policies.spark_state.conversion import (
    NoAvroForm,
    names_differing_in_case,
    shared_names,
    why_no_avro,
)
from registry.formats.policies.spark_state.model import (
    Budget,
    PlannedVariable,
    RestartPlan,
    RestartSettings,
    SchemaJson,
    StoredVariable,
    VariablePlan,
    VariableStatus,
)
from registry.formats.policies.spark_state.positions import mismatches, moved_names
from registry.formats.policies.spark_state.rules import EFFECTS, FILES_ERROR, Effect
from registry.formats.policies.spark_state.types import StructType, as_nullable, parse_struct

_STATUSES: Final[dict[Effect, VariableStatus]] = {
    "loses data": "accepted but loses data",
    "fails later": "accepted but fails later",
    "refused": "refused",
}
# What says nothing of a change in the fields of the value.
_BESIDE_THE_FIELDS: Final = frozenset(
    {
        "VARIABLE_CAME_BACK",
        "TYPE_NOT_READ_BACK",
        "NAMES_DIFFER_IN_CASE",
        "NAME_SHARED",
        "KEY_FIELD_RENAMED",
    }
)


def plan_restart(
    stored: Sequence[StoredVariable],
    planned: Sequence[PlannedVariable],
    settings: RestartSettings,
    schema_files: int | None = None,
) -> RestartPlan:
    """What happens to each variable when the query restarts with the planned schemas.

    `schema_files` is how many the operator has (format v3), None where the format keeps one. Raises InvalidSchema for
    a schema that is no StructType of Spark.
    """
    known = {each.name: each for each in stored}
    plans = {each.name: _plan(known.get(each.name), each, settings) for each in planned}
    for name, each in known.items():
        if name not in plans and (each.is_current or each.is_in_use):
            plans[name] = VariablePlan(name, "removed", (change("VARIABLE_REMOVED", ""),))
    ordered = tuple(plans[name] for name in sorted(plans))
    come_and_gone = {each.name for each in planned} ^ {each.name for each in stored if each.is_current}
    error = next(((each.error, _first_refusal(each)) for each in ordered if each.error), ("", ""))
    # Spark compares for equality: with more files than allowed it lets everything pass.
    if not error[0] and settings.is_checked and come_and_gone and stored and schema_files == settings.schema_files:
        listed = ", ".join(sorted(come_and_gone))
        error = (
            FILES_ERROR,
            f"{listed} come or go while all {schema_files} schema files are used: raise "
            "spark.sql.streaming.stateStore.maxNumStateSchemaFiles, or take a new checkpoint",
        )
    is_written = not error[0] and (bool(come_and_gone) or any(each.is_written for each in ordered))
    if settings.has_evolution and not is_written:  # a new schema file would name the variable's schema again
        ordered = tuple(_never_committed(each, known.get(each.name)) for each in ordered)
    return RestartPlan(ordered, _files(schema_files, settings, is_written), *error)


def schema_changes(old: SchemaJson, new: SchemaJson, *, has_evolution: bool) -> tuple[StateChange, ...]:
    """What differs between two versions of a value schema: by name where values evolve, else by position.

    Raises InvalidSchema for what is no StructType of Spark.
    """
    before, after = parse_struct(old), parse_struct(new)
    return tuple(value_changes(before, after) if has_evolution else _by_position(before, after))


def _never_committed(plan: VariablePlan, stored: StoredVariable | None) -> VariablePlan:
    if stored is None or plan.status == "removed" or stored.uncommitted < len(stored.versions):
        return plan
    changes = (*plan.changes, change("NEVER_COMMITTED", ""))
    return replace(plan, status=_status(changes, plan.status), changes=changes)


def _first_refusal(plan: VariablePlan) -> str:
    message = next(each.message for each in plan.changes if each.effect == "refused")
    return f"{plan.name}: {message}"


def _files(schema_files: int | None, settings: RestartSettings, is_written: bool) -> Budget | None:
    if schema_files is None:
        return None
    return Budget(schema_files, schema_files + is_written, settings.schema_files)


def _plan(stored: StoredVariable | None, planned: PlannedVariable, settings: RestartSettings) -> VariablePlan:
    key, declared = parse_struct(planned.key), parse_struct(planned.value)
    value = declared
    found: list[StateChange] = []
    if settings.has_evolution:
        if settings.language == "python":
            found += [change("MUST_BE_NULLABLE", each.name) for each in value.fields if not each.nullable]
        else:
            value = _nullable(value)
        found += not_read_back(value)
        found += [change("NAMES_DIFFER_IN_CASE", path, first) for path, first in names_differing_in_case(key)]
        found += [change("NAMES_DIFFER_IN_CASE", path, first) for path, first in names_differing_in_case(value)]
        if why_no_avro(value) is None:
            found += [change("NAME_SHARED", path, known, path) for path, known in shared_names(value)]
    if stored is None or not stored.versions:
        return _new(planned.name, key, value, found, settings)
    newest = stored.versions[-1]
    old_key, old_value = parse_struct(newest.key), parse_struct(newest.value)
    is_equal = (old_key, old_value) == (key, value)
    if not stored.is_current:
        found.append(change("VARIABLE_CAME_BACK", ""))
    if is_equal:
        found += _no_form(value, "fails later") if settings.has_evolution else ()
    else:
        found += _checked(stored, key, declared, settings)
    found += _since_commit(stored, key, declared, settings, found)
    return _concluded(stored, found, settings, is_equal=is_equal)


def _nullable(struct: StructType) -> StructType:
    made = as_nullable(struct)
    assert isinstance(made, StructType)
    return made


def _new(
    name: str, key: StructType, value: StructType, found: list[StateChange], settings: RestartSettings
) -> VariablePlan:
    found = [change("VARIABLE_ADDED", ""), *found]
    # Spark converts a new variable's schemas to Avro, whatever the encoding; keys are encoded as values are.
    found += [*_no_form(key, "fails later"), *_no_form(value, "fails later")]
    if settings.has_evolution:
        found += not_read_back(key)
    budget = Budget(0, 1, settings.value_schemas) if settings.has_evolution else None
    return VariablePlan(name, _status(found, "added"), tuple(found), 0, budget, is_written=True)


def _concluded(
    stored: StoredVariable, found: list[StateChange], settings: RestartSettings, *, is_equal: bool
) -> VariablePlan:
    newest = stored.versions[-1].schema_id
    is_refused = any(each.effect == "refused" for each in found)
    is_hidden = any(each.rule == "CHECK_DISABLED" for each in found)
    is_written = not (is_equal or is_refused or is_hidden)
    schema_id = newest + 1 if is_written and settings.has_evolution else newest
    if is_written and settings.has_evolution and all(each.rule in _BESIDE_THE_FIELDS for each in found):
        found = [*found, change("SCHEMA_ATTRIBUTES_CHANGED", "")]
    budget = Budget(newest + 1, schema_id + 1, settings.value_schemas) if settings.has_evolution else None
    status = _status(found, "unchanged" if is_equal else "evolves")
    return VariablePlan(stored.name, status, tuple(found), schema_id, budget, is_written=is_written)


def _status(found: Sequence[StateChange], otherwise: VariableStatus) -> VariableStatus:
    worst = max((EFFECTS.index(each.effect) for each in found), default=0)
    return _STATUSES.get(EFFECTS[worst], otherwise)


def _checked(
    stored: StoredVariable, key: StructType, value: StructType, settings: RestartSettings
) -> list[StateChange]:
    """What Spark's check says; with the check turned off its refusals are hidden, and the query fails later."""
    found = list(_changes(stored, key, value, settings))
    if settings.is_checked or not any(each.effect == "refused" for each in found):
        return found
    hidden = [each for each in found if each.effect == "refused"]
    detail = f"{hidden[0].error}, {hidden[0].message}"
    return [change("CHECK_DISABLED", hidden[0].path, detail=detail), *(replace(e, effect="note") for e in found)]


def _since_commit(
    stored: StoredVariable, key: StructType, value: StructType, settings: RestartSettings, known: Sequence[StateChange]
) -> Iterator[StateChange]:
    """What rows lose since the last committed batch, where a start that failed has written newer schemas.

    Spark compares with the newest schemas, but no row was ever written with these.
    """
    committed = stored.committed
    if committed is None:
        return
    said = {(each.rule, each.path) for each in known}
    for each in _changes(committed, key, value, settings):
        if each.effect in ("loses data", "fails later") and (each.rule, each.path) not in said:
            yield each


def _changes(
    stored: StoredVariable, key: StructType, value: StructType, settings: RestartSettings
) -> Iterator[StateChange]:
    newest = stored.versions[-1]
    old_key = parse_struct(newest.key)
    broken = [change("KEY_CHANGED", each.path, each.before, each.after) for each in mismatches(old_key, key)]
    yield from broken
    if broken:
        return
    for path, before, after, is_swapped in moved_names(old_key, key):
        yield change("KEY_FIELDS_SWAPPED" if is_swapped else "KEY_FIELD_RENAMED", path, before, after)
    if settings.has_evolution:
        yield from _evolution(stored, value, settings)
    else:
        yield from _by_position(parse_struct(newest.value), value)


def _by_position(old: StructType, new: StructType) -> Iterator[StateChange]:
    broken = [change("VALUE_CHANGED", each.path, each.before, each.after) for each in mismatches(old, new)]
    yield from broken
    if not broken:
        for path, before, after, is_swapped in moved_names(old, new):
            yield change("POSITIONS_SWAPPED" if is_swapped else "POSITION_RENAMED", path, before, after)


def _evolution(stored: StoredVariable, value: StructType, settings: RestartSettings) -> Iterator[StateChange]:
    """The planned value must read every stored one, the newest first; then one more schema must be allowed."""
    versions = {each.schema_id: parse_struct(each.value) for each in stored.versions}
    newest = stored.versions[-1].schema_id
    newest_first = sorted(versions, key=lambda schema_id: -schema_id)
    no_form = [found for each in newest_first for found in _no_form(versions[each], "refused")]
    no_form += _no_form(value, "refused")
    if no_form:
        yield no_form[0]
        return
    told: set[tuple[str, str]] = set()
    is_refused = False
    for schema_id in newest_first:
        known = _known_before(versions, schema_id, newest)
        is_scala = settings.language == "scala"
        # Fields that came and went in different restarts don't replace each other: the newest schema alone tells.
        listed = value_changes if schema_id == newest else by_name
        for found in listed(versions[schema_id], value, is_scala=is_scala):
            # Of older schemas only what breaks or changes values matters, once, and not what is so already.
            if (found.rule, found.path) in told or (schema_id != newest and found.effect == "note"):
                continue
            if found.effect != "refused" and (found.rule, found.path, found.before, found.after) in known:
                continue
            told.add((found.rule, found.path))
            is_refused |= found.effect == "refused"
            yield against(found, schema_id)
    if not is_refused and newest + 1 >= settings.value_schemas:
        yield change("THRESHOLD_EXCEEDED", "", str(newest), str(newest + 1), detail=str(settings.value_schemas))


def _known_before(
    versions: Mapping[int, StructType], schema_id: int, newest: int
) -> set[tuple[str, str, str | None, str | None]]:
    """What reading an older schema's rows with the newest stored one changes already, before any restart."""
    if schema_id == newest:
        return set()
    return {(each.rule, each.path, each.before, each.after) for each in by_name(versions[schema_id], versions[newest])}


def _no_form(value: StructType, effect: Effect) -> Iterator[StateChange]:
    found: NoAvroForm | None = why_no_avro(value)
    if found is not None:
        yield change("NO_AVRO_FORM", found.path, effect=effect, detail=found.reason, error=found.error)
