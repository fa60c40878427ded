"""Findings about a streaming query and its state. Pure; times are milliseconds since 1970 in UTC.

About the state: how it evolved, what was lost, and what is left of Spark's limits. About the whole query: its settings,
files and progress, and how its state differs from its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from registry.drift.judge.finding_builder import both, change_words, moment, span_of_time
from registry.drift.judge.model import JudgedFinding, listing, make_finding
from registry.drift.rules import BUDGET_SEVERITIES, Severity
from registry.errors import InvalidSchema
from registry.formats.policies.spark_state import StateChange, parse_struct, schema_changes
from registry.formats.policies.spark_state.schema_changes import not_read_back
from registry.formats.policies.spark_state.struct_types import StructType
from registry.observations import (
    Observation,
    StateFieldNulls,
    StateLimit,
    StateRows,
    StateSchemaVersion,
    StateUnreadable,
)
from registry.streams.spark_shapes import departures, names_and_types, structs_of

#: changes that lose or change values silently → the drift rule
SILENT_CHANGES: Final = {
    "MEANING_CHANGED": "STATE_FIELD_TYPE_CHANGED",
    "DECIMAL_RESCALED": "STATE_DECIMAL_RESCALED",
}
# Changes that don't affect how a field reads.
_NO_FIELD_CHANGE: Final = frozenset({"FIELDS_REORDERED", "RENAME_SUSPECTED"})


def field_changes(changes: Iterable[StateChange]) -> list[StateChange]:
    """Return the changes that affect how a field reads, changed and removed fields first."""
    return sorted(
        (change for change in changes if change.rule not in _NO_FIELD_CHANGE), key=lambda change: change.before is None
    )


def judge_state(observations: Sequence[Observation]) -> Iterable[JudgedFinding]:
    """Yield the findings of a checkpoint; none if the observations are of something else."""
    history: dict[tuple[int, str], list[StateSchemaVersion]] = {}
    for observation in observations:
        if isinstance(observation, StateSchemaVersion):
            history.setdefault((observation.operator, observation.variable), []).append(observation)
    nulls = [observation for observation in observations if isinstance(observation, StateFieldNulls)]
    for versions in history.values():
        versions.sort(key=lambda version: version.version)
        yield from _not_read_back(versions[-1])
        for old, new in pairwise(versions):
            yield from _evolution(old, new, nulls, newest=new is versions[-1])
    yield from _budgets(observations)
    yield from _unreadable(observations)


def _unreadable(observations: Sequence[Observation]) -> Iterable[JudgedFinding]:
    """Yield a finding per variable without a batch that was read, with the reason for each batch that was tried.

    A batch that Spark has cleaned up is no finding if a newer one was read.
    """
    readable = {
        (observation.operator, observation.variable)
        for observation in observations
        if isinstance(observation, StateRows)
    }
    failures: dict[tuple[int, str | None], list[StateUnreadable]] = {}
    for observation in observations:
        if isinstance(observation, StateUnreadable):
            variable_key = (observation.operator, observation.variable)
            if variable_key not in readable:
                failures.setdefault(variable_key, []).append(observation)
    for (operator, variable), of_variable in failures.items():
        batches = sorted(of_variable, key=lambda failure: (failure.batch is None, failure.batch or 0, failure.reason))
        reasons = list(dict.fromkeys(failure.reason.rstrip(".") for failure in batches))
        if len(reasons) > 1:
            reasons = list(dict.fromkeys(f"{_batch(failure)}: {failure.reason.rstrip('.')}" for failure in batches))
        newest = max((failure.batch for failure in batches if failure.batch is not None), default=None)
        names = {"operator": operator, "variable": variable or "", "reason": "; ".join(reasons)}
        evidence = {**names, "batch": newest}
        yield _state_finding("STATE_UNREADABLE", names, (str(operator), variable or ""), evidence)


def _batch(failure: StateUnreadable) -> str:
    return "the newest batch" if failure.batch is None else f"batch {failure.batch}"


def _evolution(
    old: StateSchemaVersion, new: StateSchemaVersion, nulls: Sequence[StateFieldNulls], *, newest: bool
) -> Iterable[JudgedFinding]:
    all_changes = schema_changes(old.value_schema, new.value_schema, has_evolution=new.encoding == "avro")
    changes = field_changes(all_changes)
    if not changes:
        return
    yield from _values_changed(old, new, changes)
    # Pairs of a removed and an added field of one type, most similar names first; none for POSITION changes.
    renames = [
        (_dropped(state_change), state_change.path)
        for state_change in all_changes
        if state_change.rule == "RENAME_SUSPECTED"
    ]
    renamed = {dropped for dropped, _ in renames}
    types = {state_change.path: state_change.after or "" for state_change in all_changes if state_change.before is None}
    names = {"operator": new.operator, "variable": new.variable, "batch": new.batch}
    identity = (str(new.operator), new.variable, str(new.version))
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
            "STATE_SCHEMA_EVOLVED", {**names, "changes": listed}, identity, {**evidence, "changes": fields}
        )
    for dropped, added in renames:
        lost, shares = _loss(new, dropped, nulls)
        filled = {**names, "dropped": dropped, "added": added, "loss": lost or "read as null"}
        now = _nulls_now(new, added, nulls)
        details = {**evidence, "field": dropped, "added": added, "type": types.get(added, ""), **shares, **now}
        yield _state_finding("RENAME_SUSPECTED", filled, (*identity, dropped, added), details)
    for change in changes:
        lost, shares = _loss(new, change.path, nulls)
        if change.after is None and change.path not in renamed and lost:
            filled = {**names, "dropped": change.path, "loss": lost}
            details = {**evidence, "field": change.path, "type": change.before, **shares}
            yield _state_finding("STATE_FIELD_DROPPED", filled, (*identity, change.path), details)


def _dropped(rename: StateChange) -> str:
    """Return the path of the field that a rename dropped, next to the added one."""
    return f"{rename.path.removesuffix(rename.after or '')}{rename.before}"


def _values_changed(
    old: StateSchemaVersion, new: StateSchemaVersion, changes: Iterable[StateChange]
) -> Iterable[JudgedFinding]:
    """Yield changes that Spark accepts but that make older rows read as something else."""
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
    """Yield fields of types that Spark writes with the Avro encoding but can't read."""
    if newest.encoding != "avro":
        return
    for change in not_read_back(parse_struct(newest.value_schema)):
        names = {"operator": newest.operator, "variable": newest.variable, "batch": newest.batch}
        evidence = {**names, "field": change.path, "type": change.after}
        names |= {"path": change.path or "the value", "after": change.after}
        yield _state_finding(
            "STATE_TYPE_UNREADABLE", names, (str(newest.operator), newest.variable, change.path), evidence
        )


def _loss(new: StateSchemaVersion, field_path: str, nulls: Sequence[StateFieldNulls]) -> tuple[str, dict[str, int]]:
    """Return what a dropped field held in the last batch before `new`, as text and as numbers; empty if unknown."""
    for counts in nulls:
        before = new.batch is not None and 0 <= counts.batch < new.batch
        if before and (counts.operator, counts.variable, counts.path) == (
            new.operator,
            new.variable,
            f"value.{field_path}",
        ):
            filled = counts.rows - counts.nulls
            if filled:
                share = {"rows_before": counts.rows, "filled_before": filled, "batch_before": counts.batch}
                return f"were filled in {filled:,} of {counts.rows:,} rows as of batch {counts.batch}", share
    return "", {}


def _nulls_now(new: StateSchemaVersion, field_path: str, nulls: Sequence[StateFieldNulls]) -> dict[str, int]:
    """Return how many rows have no value in an added field as of the last batch that was read."""
    same = [
        counts
        for counts in nulls
        if (counts.operator, counts.variable, counts.path) == (new.operator, new.variable, f"value.{field_path}")
    ]
    latest = max(same, key=lambda counts: counts.batch, default=None)
    return {} if latest is None else {"rows_now": latest.rows, "null_now": latest.nulls, "batch_now": latest.batch}


def _budgets(observations: Sequence[Observation]) -> Iterable[JudgedFinding]:
    rules = {"value_schemas": "EVOLUTION_BUDGET", "schema_files": "SCHEMA_FILE_BUDGET"}
    for limit in observations:
        if not isinstance(limit, StateLimit):
            continue
        share = limit.used / limit.allowed
        severity = next((severity for least, severity in BUDGET_SEVERITIES if share >= least), None)
        if severity is not None:
            variable = limit.variable or ""
            names = {"operator": limit.operator, "variable": variable, "used": limit.used, "allowed": limit.allowed}
            evidence = {**names, "share": round(share, 4)}
            yield _state_finding(rules[limit.limit], names, (str(limit.operator), variable), evidence, severity)


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


HOUR: Final = 60 * 60 * 1000
STUCK: Final = HOUR  # a batch planned this long ago should be committed
BEHIND: Final = 24 * HOUR  # messages this old should be read
COPIED: Final = 5_000  # files with times this close were copied: their times say nothing about the application
SETTINGS: Final = (("encoding", "encoding"), ("provider", "state store provider"))


@dataclass(frozen=True)
class RunFacts:
    """Consecutive batches with the same settings; `is_checked` is False if Spark's state schema check is off."""

    first_batch: int
    last_batch: int
    provider: str
    encoding: str
    is_checked: bool = True


@dataclass(frozen=True)
class SchemaFacts:
    """A version of a state variable; schemas are StructType JSON."""

    version: int
    batch: int | None
    written_at: int | None
    value: str
    key: str = ""
    map_key: str = ""


@dataclass(frozen=True)
class VariableFacts:
    """An existing state variable, its versions ascending."""

    operator: int
    name: str
    encoding: str
    evolvable: bool
    versions: tuple[SchemaFacts, ...]


@dataclass(frozen=True)
class SubjectVersion:
    """A version of a subject that the query reads; `released` is None if the registry isn't a target of promotions.

    `shape` is what Spark reads for it, None if unknown.
    """

    subject: str
    version: int
    registered_at: int
    released: bool | None = None
    shape: StructType | None = None


@dataclass(frozen=True)
class QueryFacts:
    """The facts for judging a query. `planned` are variables that the newest check of a plan would change."""

    path: str
    observed_at: int
    last_planned_batch: int | None = None
    last_committed_batch: int | None = None
    last_batch_time: int | None = None
    runs: tuple[RunFacts, ...] = ()
    variables: tuple[VariableFacts, ...] = ()
    subjects: tuple[SubjectVersion, ...] = ()
    planned: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    last_message: int | None = None
    last_message_topic: str = ""


def judge_query(facts: QueryFacts) -> Iterable[JudgedFinding]:
    """Yield the findings of a query as a whole; `judge_state` has those of single variables' schemas and rows."""
    for problem in facts.problems:
        yield _of_query("STATE_FILES_DAMAGED", facts, {"problem": problem.rstrip(".")}, (problem,))
    yield from _settings(facts)
    yield from _progress(facts)
    latest = {subject.subject: subject for subject in facts.subjects}
    for variable in facts.variables:
        if not variable.evolvable and variable.name in facts.planned:
            names = {"encoding": variable.encoding}
            yield _of_variable("STATE_CANNOT_EVOLVE", variable, names)
        yield from _unreleased(facts, variable)
        for version in latest.values():
            yield from _departures(variable, version)
            yield from _keys(variable, version)


def _settings(facts: QueryFacts) -> Iterable[JudgedFinding]:
    for before, after in pairwise(facts.runs):
        for attribute, what in SETTINGS:
            old, new = getattr(before, attribute), getattr(after, attribute)
            if old != new:
                names = {"setting": what, "before": old, "after": new, "batch": after.first_batch}
                yield _of_query("STATE_SETTING_CHANGED", facts, names, (attribute, str(after.first_batch)))
    if facts.runs and not facts.runs[-1].is_checked:
        yield _of_query("STATE_CHECK_OFF", facts, {"batch": facts.runs[-1].first_batch}, ())


def _progress(facts: QueryFacts) -> Iterable[JudgedFinding]:
    """Yield a batch that has long been planned but not committed; else messages that the query doesn't read."""
    at, planned = facts.last_batch_time, facts.last_planned_batch
    if at is None or planned is None:
        return
    since = facts.observed_at - at
    committed = facts.last_committed_batch
    if (committed is None or committed < planned) and since >= STUCK:
        why = f"batch {planned} was planned at {moment(at)} and hasn't been committed for {span_of_time(since)}"
        yield _of_query("CHECKPOINT_NOT_ADVANCING", facts, {"why": why, "batch": planned}, ())
    elif facts.last_message is not None and facts.last_message - at >= BEHIND:
        why = (
            f"its last batch {planned} ran at {moment(at)}, and topic {facts.last_message_topic} has messages from "
            f"{moment(facts.last_message)}"
        )
        yield _of_query("CHECKPOINT_NOT_ADVANCING", facts, {"why": why, "batch": planned}, ())


def _unreleased(facts: QueryFacts, variable: VariableFacts) -> Iterable[JudgedFinding]:
    """Yield the newest evolution if no input got a new version while the previous schema was in use."""
    if len(variable.versions) < 2 or not facts.subjects:
        return
    old, new = variable.versions[-2:]
    if old.written_at is None or new.written_at is None or new.written_at - old.written_at < COPIED:
        return
    try:
        all_changes = schema_changes(old.value, new.value, has_evolution=variable.encoding == "avro")
    except InvalidSchema:
        return
    changes = field_changes(all_changes)
    came = [
        version
        for version in facts.subjects
        if old.written_at < version.registered_at <= new.written_at and version.released is not False
    ]
    if changes and not came:
        subjects = sorted({version.subject for version in facts.subjects})
        names = {"batch": new.batch, "changes": "; ".join(map(change_words, changes)), "subjects": both(subjects)}
        names["began"] = moment(new.written_at)
        more = {
            "versions": [old.version, new.version],
            **listing("subjects", subjects),
            "changes": [
                {"field": version.path, "before": version.before, "after": version.after} for version in changes
            ],
            "old_schema": old.value,
            "new_schema": new.value,
        }
        yield _of_variable("STATE_EVOLVED_UNRELEASED", variable, names, (str(new.version),), more, subjects[0])


def _departures(variable: VariableFacts, subject: SubjectVersion) -> Iterable[JudgedFinding]:
    if subject.shape is None:
        return
    fields = departures(variable.versions[-1].value, subject.shape)
    if fields:
        departing = [f"{path} is {state_type}, not {declared}" for path, state_type, declared in fields]
        listed = both(departing)
        names = {"subject": subject.subject, "version": subject.version, "fields": listed}
        rows = [{"field": path, "before": declared, "after": state_type} for path, state_type, declared in fields]
        more = {"version": subject.version, **listing("fields", rows)}
        yield _of_variable("STATE_DIFFERS_FROM_SUBJECT", variable, names, (subject.subject,), more, subject.subject)


def _keys(variable: VariableFacts, subject: SubjectVersion) -> Iterable[JudgedFinding]:
    """Yield fields of a key that the subject declares as another type: an application with that type can't start."""
    if subject.shape is None:
        return
    declared = names_and_types(subject.shape)
    newest = variable.versions[-1]
    for schema in (newest.key, newest.map_key):
        for path, struct in structs_of(schema)[:1] if schema else ():
            for name, state_type in names_and_types(struct).items():
                declared_type = declared.get(name, state_type)
                if declared_type != state_type and "unknown" not in declared_type:
                    names: dict[str, Any] = {"path": name, "before": state_type, "after": declared_type}
                    names |= {"subject": subject.subject, "version": subject.version}
                    key = (subject.subject, path, name)
                    yield _of_variable("STATE_KEY_AT_RISK", variable, names, key, None, subject.subject)


def _of_query(rule: str, facts: QueryFacts, names: Mapping[str, Any], key: Sequence[str]) -> JudgedFinding:
    values = {"path": facts.path, **names}
    location = "the query" if names.get("batch") is None else f"the query, batch {names['batch']}"
    return make_finding(rule, values, key, location=location, count=1, evidence=dict(values))


def _of_variable(
    rule: str,
    variable: VariableFacts,
    names: Mapping[str, Any],
    key: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
    subject: str = "",
) -> JudgedFinding:
    values = {"operator": variable.operator, "variable": variable.name, **names}
    location = f"operator {variable.operator}, state variable {variable.name}"
    if names.get("batch") is not None:
        location += f", batch {names['batch']}"
    identity = (str(variable.operator), variable.name, *key)
    evidence = {**values, **(more or {})}
    return make_finding(rule, values, identity, location=location, count=1, evidence=evidence, subject=subject)
