"""How a query's state evolved, what that lost, and how much of Spark's limits is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from registry.drift.judge.model import JudgedFinding, make_finding
from registry.drift.judge.words import change_words
from registry.drift.rules import BUDGET_SEVERITIES, Severity
from registry.formats.policies.spark_state import StateChange, parse_struct, schema_changes
from registry.formats.policies.spark_state.changes import not_read_back
from registry.observations import (
    Observation,
    StateFieldNulls,
    StateLimit,
    StateRows,
    StateSchemaVersion,
    StateUnreadable,
)

#: changes of the engine that lose or change values in silence → the rule of drift
SILENT_CHANGES: Final = {
    "MEANING_CHANGED": "STATE_FIELDS_MEANING_CHANGED",
    "DECIMAL_RESCALED": "STATE_DECIMAL_RESCALED",
}
# What changes nothing of what a field reads as.
_NO_FIELD_CHANGE: Final = frozenset({"FIELDS_REORDERED", "RENAME_SUSPECTED"})


def field_changes(changes: Iterable[StateChange]) -> list[StateChange]:
    """Those that change what a field reads as, what was there first."""
    return sorted((each for each in changes if each.rule not in _NO_FIELD_CHANGE), key=lambda each: each.before is None)


def judge_state(seen: Sequence[Observation]) -> Iterable[JudgedFinding]:
    """The findings of a checkpoint; none when the observations are of something else."""
    history: dict[tuple[int, str], list[StateSchemaVersion]] = {}
    for each in seen:
        if isinstance(each, StateSchemaVersion):
            history.setdefault((each.operator, each.variable), []).append(each)
    nulls = [each for each in seen if isinstance(each, StateFieldNulls)]
    for versions in history.values():
        versions.sort(key=lambda version: version.version)
        yield from _not_read_back(versions[-1])
        for old, new in pairwise(versions):
            yield from _evolution(old, new, nulls, newest=new is versions[-1])
    yield from _budgets(seen)
    latest = {(each.operator, each.variable): each.batch for each in seen if isinstance(each, StateRows)}
    for each in seen:
        # A batch that Spark has cleaned up is no finding as long as a newer one was read.
        if isinstance(each, StateUnreadable) and (each.operator, each.variable) not in latest:
            names = {"operator": each.operator, "variable": each.variable or "", "reason": each.reason.rstrip(".")}
            evidence = {**names, "batch": each.batch}
            yield _state_finding("STATE_UNREADABLE", names, (str(each.operator), each.variable or ""), evidence)


def _evolution(
    old: StateSchemaVersion, new: StateSchemaVersion, nulls: Sequence[StateFieldNulls], *, newest: bool
) -> Iterable[JudgedFinding]:
    found = schema_changes(old.value_schema, new.value_schema, has_evolution=new.encoding == "avro")
    changes = field_changes(found)
    if not changes:
        return
    yield from _values_changed(old, new, changes)
    # Pairs of a removed and an added field of one type, the most alike names first; none by position.
    renames = [(_dropped(each), each.path) for each in found if each.rule == "RENAME_SUSPECTED"]
    renamed = {dropped for dropped, _ in renames}
    types = {each.path: each.after or "" for each in found if each.before is None}
    names = {"operator": new.operator, "variable": new.variable, "batch": new.batch}
    place = (str(new.operator), new.variable, str(new.version))
    evidence = {
        **names,
        "kind": new.kind,
        "encoding": new.encoding,
        "versions": [old.version, new.version],
        "old_schema": old.value_schema,
        "new_schema": new.value_schema,
    }
    if newest:
        listed = "; ".join(map(change_words, changes))
        fields = [{"field": change.path, "before": change.before, "after": change.after} for change in changes]
        yield _state_finding(
            "STATE_SCHEMA_EVOLVED", {**names, "changes": listed}, place, {**evidence, "changes": fields}
        )
    for dropped, added in renames:
        lost, shares = _loss(new, dropped, nulls)
        filled = {**names, "dropped": dropped, "added": added, "loss": lost or "read as null"}
        now = _nulls_now(new, added, nulls)
        details = {**evidence, "field": dropped, "added": added, "type": types.get(added, ""), **shares, **now}
        yield _state_finding("RENAME_SUSPECTED", filled, (*place, dropped, added), details)
    for change in changes:
        lost, shares = _loss(new, change.path, nulls)
        if change.after is None and change.path not in renamed and lost:
            filled = {**names, "dropped": change.path, "loss": lost}
            details = {**evidence, "field": change.path, "type": change.before, **shares}
            yield _state_finding("STATE_FIELD_DROPPED", filled, (*place, change.path), details)


def _dropped(rename: StateChange) -> str:
    """The path of the field that a rename dropped, which stood beside the one that it added."""
    return f"{rename.path.removesuffix(rename.after or '')}{rename.before}"


def _values_changed(
    old: StateSchemaVersion, new: StateSchemaVersion, changes: Iterable[StateChange]
) -> Iterable[JudgedFinding]:
    """Changes that Spark takes and that make older rows read as something else."""
    for change in changes:
        rule = SILENT_CHANGES.get(change.rule)
        if rule is not None:
            named = {"path": change.path or "the value", "before": change.before, "after": change.after}
            names = {"operator": new.operator, "variable": new.variable, "batch": new.batch, **named, "why": change.why}
            evidence: dict[str, Any] = {key: value for key, value in names.items() if key != "why"}
            evidence |= {"field": change.path, "kind": new.kind, "versions": [old.version, new.version]}
            evidence |= {"old_schema": old.value_schema, "new_schema": new.value_schema}
            yield _state_finding(
                rule, names, (str(new.operator), new.variable, str(new.version), change.path), evidence
            )


def _not_read_back(newest: StateSchemaVersion) -> Iterable[JudgedFinding]:
    """Fields of types that Spark writes with the Avro encoding and can't read."""
    if newest.encoding != "avro":
        return
    for change in not_read_back(parse_struct(newest.value_schema)):
        names = {"operator": newest.operator, "variable": newest.variable, "batch": newest.batch}
        evidence = {**names, "field": change.path, "type": change.after}
        names |= {"path": change.path or "the value", "after": change.after}
        yield _state_finding(
            "STATE_TYPE_NOT_READ_BACK", names, (str(newest.operator), newest.variable, change.path), evidence
        )


def _loss(new: StateSchemaVersion, field_path: str, nulls: Sequence[StateFieldNulls]) -> tuple[str, dict[str, int]]:
    """How much a dropped field held in the last batch before `new`, in words and in numbers; nothing if unknown."""
    for seen in nulls:
        before = new.batch is not None and 0 <= seen.batch < new.batch
        if before and (seen.operator, seen.variable, seen.path) == (new.operator, new.variable, f"value.{field_path}"):
            held = seen.rows - seen.nulls
            if held:
                share = {"rows_before": seen.rows, "filled_before": held, "batch_before": seen.batch}
                return f"were filled in {held:,} of {seen.rows:,} rows as of batch {seen.batch}", share
    return "", {}


def _nulls_now(new: StateSchemaVersion, field_path: str, nulls: Sequence[StateFieldNulls]) -> dict[str, int]:
    """How many rows have no value in an added field as of the last batch that was read."""
    same = [
        seen
        for seen in nulls
        if (seen.operator, seen.variable, seen.path) == (new.operator, new.variable, f"value.{field_path}")
    ]
    latest = max(same, key=lambda seen: seen.batch, default=None)
    return {} if latest is None else {"rows_now": latest.rows, "null_now": latest.nulls, "batch_now": latest.batch}


def _budgets(seen: Sequence[Observation]) -> Iterable[JudgedFinding]:
    rules = {"value_schemas": "EVOLUTION_BUDGET", "schema_files": "SCHEMA_FILE_BUDGET"}
    for each in seen:
        if not isinstance(each, StateLimit):
            continue
        share = each.used / each.allowed
        severity = next((severity for least, severity in BUDGET_SEVERITIES if share >= least), None)
        if severity is not None:
            variable = each.variable or ""
            names = {"operator": each.operator, "variable": variable, "used": each.used, "allowed": each.allowed}
            evidence = {**names, "share": round(share, 4)}
            yield _state_finding(rules[each.limit], names, (str(each.operator), variable), evidence, severity)


def _state_finding(
    rule: str,
    names: Mapping[str, Any],
    identity: Sequence[str],
    evidence: dict[str, Any],
    severity: Severity | None = None,
) -> JudgedFinding:
    variable = names.get("variable")
    location = f"operator {names['operator']}" + (f", state variable {variable}" if variable else "")
    if names.get("batch") is not None:
        location += f", batch {names['batch']}"
    return make_finding(rule, names, identity, location=location, count=1, evidence=evidence, severity=severity)
