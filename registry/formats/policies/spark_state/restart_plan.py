"""The plan of a restart: Spark's own check, by name or by position, extended to all fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

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
from registry.formats.policies.spark_state.rules import EFFECTS, FILES_ERROR, Effect
from registry.formats.policies.spark_state.schema_changes import (
    StateChange,
    against,
    by_name,
    change,
    not_read_back,
    value_changes,
)
from registry.formats.policies.spark_state.struct_types import (
    ArrayType,
    MapType,
    NoAvroForm,
    SparkType,
    StructType,
    as_nullable,
    below,
    label,
    names_differing_in_case,
    parse_struct,
    shared_names,
    why_no_avro,
)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two types at one position that Spark doesn't accept for each other."""

    path: str
    before: str
    after: str


def _number_of_fields(struct: StructType) -> str:
    number = len(struct.fields)
    return f"{number} field{'' if number == 1 else 's'}"


def mismatches(stored: SparkType, planned: SparkType, path: str = "") -> Iterator[Mismatch]:
    """Yield differences of two schemas by position; names don't matter, and nullable may become non-nullable."""
    if isinstance(stored, StructType) and isinstance(planned, StructType):
        if len(stored.fields) != len(planned.fields):
            yield Mismatch(path, _number_of_fields(stored), _number_of_fields(planned))
            return
        for old, new in zip(stored.fields, planned.fields, strict=True):
            here = below(path, new.name)
            if new.nullable and not old.nullable:
                yield Mismatch(here, "not nullable", "nullable")
            yield from mismatches(old.type, new.type, here)
    elif isinstance(stored, ArrayType) and isinstance(planned, ArrayType):
        if planned.contains_null and not stored.contains_null:
            yield Mismatch(f"{path}[]", "not nullable", "nullable")
        yield from mismatches(stored.element, planned.element, f"{path}[]")
    elif isinstance(stored, MapType) and isinstance(planned, MapType):
        if planned.value_contains_null and not stored.value_contains_null:
            yield Mismatch(f"{path}{{}}", "not nullable", "nullable")
        yield from mismatches(stored.key, planned.key, f"{path}{{key}}")
        yield from mismatches(stored.value, planned.value, f"{path}{{}}")
    elif stored != planned:
        yield Mismatch(path, label(stored), label(planned))


def moved_names(stored: SparkType, planned: SparkType, path: str = "") -> Iterator[tuple[str, str, str, bool]]:
    """Yield (path, old name, new name, whether names were swapped) of positions with the same type and another name."""
    if isinstance(stored, StructType) and isinstance(planned, StructType):
        before, after = {field.name for field in stored.fields}, {field.name for field in planned.fields}
        for old, new in zip(stored.fields, planned.fields, strict=False):
            here = below(path, new.name)
            if old.name != new.name:
                yield here, old.name, new.name, old.name in after or new.name in before
            yield from moved_names(old.type, new.type, here)
    elif isinstance(stored, ArrayType) and isinstance(planned, ArrayType):
        yield from moved_names(stored.element, planned.element, f"{path}[]")
    elif isinstance(stored, MapType) and isinstance(planned, MapType):
        yield from moved_names(stored.key, planned.key, f"{path}{{key}}")
        yield from moved_names(stored.value, planned.value, f"{path}{{}}")


_STATUSES: Final[dict[Effect, VariableStatus]] = {
    "loses data": "accepted but loses data",
    "fails later": "accepted but fails later",
    "refused": "refused",
}
# Rules that don't describe a change of the value's fields.
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
    """Return the effect on each variable if the query restarts with the planned schemas.

    `schema_files` is the operator's number of schema files (format v3); None if the format has only one. Raises
    InvalidSchema for a schema that isn't a StructType of Spark.
    """
    stored_by_name = {variable.name: variable for variable in stored}
    plans = {variable.name: _plan(stored_by_name.get(variable.name), variable, settings) for variable in planned}
    for name, variable in stored_by_name.items():
        if name not in plans and (variable.is_current or variable.is_in_use):
            plans[name] = VariablePlan(name, "removed", (change("VARIABLE_REMOVED", ""),))
    ordered = tuple(plans[name] for name in sorted(plans))
    come_and_gone = {variable.name for variable in planned} ^ {
        variable.name for variable in stored if variable.is_current
    }
    error = next(((variable.error, _first_refusal(variable)) for variable in ordered if variable.error), ("", ""))
    # Spark tests for equality: with more files than allowed, it accepts everything.
    if not error[0] and settings.is_checked and come_and_gone and stored and schema_files == settings.schema_files:
        listed = ", ".join(sorted(come_and_gone))
        error = (
            FILES_ERROR,
            f"{listed} are added or removed while all {schema_files} schema files are used: raise "
            "spark.sql.streaming.stateStore.maxNumStateSchemaFiles, or use a new checkpoint",
        )
    is_written = not error[0] and (bool(come_and_gone) or any(variable.is_written for variable in ordered))
    if settings.has_evolution and not is_written:  # a new schema file would name the variable's schema again
        ordered = tuple(_never_committed(variable, stored_by_name.get(variable.name)) for variable in ordered)
    return RestartPlan(ordered, _files(schema_files, settings, is_written), *error)


def schema_changes(old: SchemaJson, new: SchemaJson, *, has_evolution: bool) -> tuple[StateChange, ...]:
    """Return the differences between two versions of a value schema: by name if values evolve, otherwise by position.

    Raises InvalidSchema for anything that isn't a StructType of Spark.
    """
    before, after = parse_struct(old), parse_struct(new)
    return tuple(value_changes(before, after) if has_evolution else _by_position(before, after))


def _never_committed(plan: VariablePlan, stored: StoredVariable | None) -> VariablePlan:
    if stored is None or plan.status == "removed" or stored.uncommitted < len(stored.versions):
        return plan
    changes = (*plan.changes, change("NEVER_COMMITTED", ""))
    return replace(plan, status=_status(changes, plan.status), changes=changes)


def _first_refusal(plan: VariablePlan) -> str:
    message = next(item.message for item in plan.changes if item.effect == "refused")
    return f"{plan.name}: {message}"


def _files(schema_files: int | None, settings: RestartSettings, is_written: bool) -> Budget | None:
    if schema_files is None:
        return None
    return Budget(schema_files, schema_files + is_written, settings.schema_files)


def _plan(stored: StoredVariable | None, planned: PlannedVariable, settings: RestartSettings) -> VariablePlan:
    key, declared = parse_struct(planned.key), parse_struct(planned.value)
    value = declared
    changes: list[StateChange] = []
    if settings.has_evolution:
        if settings.language == "python":
            changes += [change("MUST_BE_NULLABLE", field.name) for field in value.fields if not field.nullable]
        else:
            value = _nullable(value)
        changes += not_read_back(value)
        changes += [change("NAMES_DIFFER_IN_CASE", path, first) for path, first in names_differing_in_case(key)]
        changes += [change("NAMES_DIFFER_IN_CASE", path, first) for path, first in names_differing_in_case(value)]
        if why_no_avro(value) is None:
            changes += [change("NAME_SHARED", path, first_path, path) for path, first_path in shared_names(value)]
    if stored is None or not stored.versions:
        return _new(planned.name, key, value, changes, settings)
    newest = stored.versions[-1]
    old_key, old_value = parse_struct(newest.key), parse_struct(newest.value)
    is_equal = (old_key, old_value) == (key, value)
    if not stored.is_current:
        changes.append(change("VARIABLE_CAME_BACK", ""))
    if is_equal:
        changes += _no_form(value, "fails later") if settings.has_evolution else ()
    else:
        changes += _checked(stored, key, declared, settings)
    changes += _since_commit(stored, key, declared, settings, changes)
    return _concluded(stored, changes, settings, is_equal=is_equal)


def _nullable(struct: StructType) -> StructType:
    made = as_nullable(struct)
    assert isinstance(made, StructType)
    return made


def _new(
    name: str, key: StructType, value: StructType, changes: list[StateChange], settings: RestartSettings
) -> VariablePlan:
    changes = [change("VARIABLE_ADDED", ""), *changes]
    # Spark converts a new variable's schemas to Avro whatever the encoding; keys are encoded like values.
    changes += [*_no_form(key, "fails later"), *_no_form(value, "fails later")]
    if settings.has_evolution:
        changes += not_read_back(key)
    budget = Budget(0, 1, settings.value_schemas) if settings.has_evolution else None
    return VariablePlan(name, _status(changes, "added"), tuple(changes), 0, budget, is_written=True)


def _concluded(
    stored: StoredVariable, changes: list[StateChange], settings: RestartSettings, *, is_equal: bool
) -> VariablePlan:
    newest = stored.versions[-1].schema_id
    is_refused = any(item.effect == "refused" for item in changes)
    is_hidden = any(item.rule == "CHECK_DISABLED" for item in changes)
    is_written = not (is_equal or is_refused or is_hidden)
    schema_id = newest + 1 if is_written and settings.has_evolution else newest
    if is_written and settings.has_evolution and all(item.rule in _BESIDE_THE_FIELDS for item in changes):
        changes = [*changes, change("SCHEMA_ATTRIBUTES_CHANGED", "")]
    budget = Budget(newest + 1, schema_id + 1, settings.value_schemas) if settings.has_evolution else None
    status = _status(changes, "unchanged" if is_equal else "evolves")
    return VariablePlan(stored.name, status, tuple(changes), schema_id, budget, is_written=is_written)


def _status(changes: Sequence[StateChange], otherwise: VariableStatus) -> VariableStatus:
    worst = max((EFFECTS.index(item.effect) for item in changes), default=0)
    return _STATUSES.get(EFFECTS[worst], otherwise)


def _checked(
    stored: StoredVariable, key: StructType, value: StructType, settings: RestartSettings
) -> list[StateChange]:
    """Return the result of Spark's check; if the check is off, its errors are hidden and the query fails later."""
    changes = list(_changes(stored, key, value, settings))
    if settings.is_checked or not any(item.effect == "refused" for item in changes):
        return changes
    hidden = [item for item in changes if item.effect == "refused"]
    detail = f"{hidden[0].error}, {hidden[0].message}"
    return [change("CHECK_DISABLED", hidden[0].path, detail=detail), *(replace(e, effect="note") for e in changes)]


def _since_commit(
    stored: StoredVariable,
    key: StructType,
    value: StructType,
    settings: RestartSettings,
    reported: Sequence[StateChange],
) -> Iterator[StateChange]:
    """Yield what rows lose since the last committed batch, if a failed start wrote newer schemas.

    Spark compares with the newest schemas, but no row was written with them.
    """
    committed = stored.committed
    if committed is None:
        return
    reported_keys = {(item.rule, item.path) for item in reported}
    for item in _changes(committed, key, value, settings):
        if item.effect in ("loses data", "fails later") and (item.rule, item.path) not in reported_keys:
            yield item


def _changes(
    stored: StoredVariable, key: StructType, value: StructType, settings: RestartSettings
) -> Iterator[StateChange]:
    newest = stored.versions[-1]
    old_key = parse_struct(newest.key)
    broken = [
        change("KEY_CHANGED", mismatch.path, mismatch.before, mismatch.after) for mismatch in mismatches(old_key, key)
    ]
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
    broken = [
        change("VALUE_CHANGED", mismatch.path, mismatch.before, mismatch.after) for mismatch in mismatches(old, new)
    ]
    yield from broken
    if not broken:
        for path, before, after, is_swapped in moved_names(old, new):
            yield change("POSITIONS_SWAPPED" if is_swapped else "POSITION_RENAMED", path, before, after)


def _evolution(stored: StoredVariable, value: StructType, settings: RestartSettings) -> Iterator[StateChange]:
    """Check that the planned value reads every stored one, newest first, and that one more schema is allowed."""
    versions = {version.schema_id: parse_struct(version.value) for version in stored.versions}
    newest = stored.versions[-1].schema_id
    newest_first = sorted(versions, key=lambda schema_id: -schema_id)
    no_form = [item for version in newest_first for item in _no_form(versions[version], "refused")]
    no_form += _no_form(value, "refused")
    if no_form:
        yield no_form[0]
        return
    reported: set[tuple[str, str]] = set()
    is_refused = False
    for schema_id in newest_first:
        earlier_changes = _known_before(versions, schema_id, newest)
        is_scala = settings.language == "scala"
        # Fields added and removed in different restarts don't replace each other, so only the newest schema is
        # decisive.
        listed = value_changes if schema_id == newest else by_name
        for item in listed(versions[schema_id], value, is_scala=is_scala):
            # For older schemas, report only new breaks and value changes, once each.
            if (item.rule, item.path) in reported or (schema_id != newest and item.effect == "note"):
                continue
            if item.effect != "refused" and (item.rule, item.path, item.before, item.after) in earlier_changes:
                continue
            reported.add((item.rule, item.path))
            is_refused |= item.effect == "refused"
            yield against(item, schema_id)
    if not is_refused and newest + 1 >= settings.value_schemas:
        yield change("THRESHOLD_EXCEEDED", "", str(newest), str(newest + 1), detail=str(settings.value_schemas))


def _known_before(
    versions: Mapping[int, StructType], schema_id: int, newest: int
) -> set[tuple[str, str, str | None, str | None]]:
    """Return what already changes when an older schema's rows are read with the newest stored one."""
    if schema_id == newest:
        return set()
    return {(item.rule, item.path, item.before, item.after) for item in by_name(versions[schema_id], versions[newest])}


def _no_form(value: StructType, effect: Effect) -> Iterator[StateChange]:
    obstacle: NoAvroForm | None = why_no_avro(value)
    if obstacle is not None:
        yield change("NO_AVRO_FORM", obstacle.path, effect=effect, detail=obstacle.reason, error=obstacle.error)
