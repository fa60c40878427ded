"""A streaming query as a whole: its settings, its files, its progress, and how its state stands to what it reads.

Pure. Times are milliseconds since 1970 in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from registry.drift.judge.model import JudgedFinding, make_finding
from registry.drift.judge.states import field_changes
from registry.drift.judge.words import change_words, moment, span_of_time
from registry.errors import InvalidSchema
from registry.formats.policies.spark_state import schema_changes
from registry.formats.policies.spark_state.types import StructType
from registry.streams.shapes import departures, names_and_types, structs_of

HOUR: Final = 60 * 60 * 1000
STUCK: Final = HOUR  # a batch that was planned so long ago should be committed
BEHIND: Final = 24 * HOUR  # messages that were there so long should be read
COPIED: Final = 5_000  # files whose times lie so near were copied: their times tell nothing of the application
SETTINGS: Final = (("encoding", "encoding"), ("provider", "state store provider"))


@dataclass(frozen=True)
class RunFacts:
    """Batches in a row with the same settings; `is_checked` is False where the check of state schemas is turned off."""

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
    """A state variable that is still there, its versions ascending."""

    operator: int
    name: str
    encoding: str
    evolvable: bool
    versions: tuple[SchemaFacts, ...]


@dataclass(frozen=True)
class SubjectVersion:
    """A version of a subject that the query reads; `released` None where the registry is no target of promotions.

    `shape` is what Spark reads of it, None where that isn't known.
    """

    subject: str
    version: int
    registered_at: int
    released: bool | None = None
    shape: StructType | None = None


@dataclass(frozen=True)
class QueryFacts:
    """All that is judged of a query. `planned` are variables that the newest check of a plan would change."""

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
    """The findings of a query as a whole; those of single variables' schemas and rows are `judge_state`'s."""
    for problem in facts.problems:
        yield _of_query("STATE_FILES_DAMAGED", facts, {"problem": problem.rstrip(".")}, (problem,))
    yield from _settings(facts)
    yield from _progress(facts)
    latest = {each.subject: each for each in facts.subjects}
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
    """A batch that is planned and not committed for long; else messages that nobody reads."""
    at, planned = facts.last_batch_time, facts.last_planned_batch
    if at is None or planned is None:
        return
    since = facts.observed_at - at
    committed = facts.last_committed_batch
    if (committed is None or committed < planned) and since >= STUCK:
        why = f"batch {planned} was planned {moment(at)} and isn't committed since {span_of_time(since)}"
        yield _of_query("CHECKPOINT_NOT_ADVANCING", facts, {"why": why, "batch": planned}, ())
    elif facts.last_message is not None and facts.last_message - at >= BEHIND:
        why = (
            f"its last batch {planned} is of {moment(at)}, and topic {facts.last_message_topic} has messages of "
            f"{moment(facts.last_message)}"
        )
        yield _of_query("CHECKPOINT_NOT_ADVANCING", facts, {"why": why, "batch": planned}, ())


def _unreleased(facts: QueryFacts, variable: VariableFacts) -> Iterable[JudgedFinding]:
    """The newest evolution, where nothing that the query reads got a version while the schema before it was in use."""
    if len(variable.versions) < 2 or not facts.subjects:
        return
    old, new = variable.versions[-2:]
    if old.written_at is None or new.written_at is None or new.written_at - old.written_at < COPIED:
        return
    try:
        found = schema_changes(old.value, new.value, has_evolution=variable.encoding == "avro")
    except InvalidSchema:
        return
    changes = field_changes(found)
    came = [
        each
        for each in facts.subjects
        if old.written_at < each.registered_at <= new.written_at and each.released is not False
    ]
    if changes and not came:
        subjects = sorted({each.subject for each in facts.subjects})
        names = {
            "batch": new.batch,
            "changes": "; ".join(map(change_words, changes)),
            "subjects": ", ".join(subjects[:5]),
        }
        names["began"] = moment(new.written_at)
        more = {
            "versions": [old.version, new.version],
            "subjects": subjects[:50],
            "changes": [{"field": each.path, "before": each.before, "after": each.after} for each in changes],
            "old_schema": old.value,
            "new_schema": new.value,
        }
        yield _of_variable("STATE_EVOLVED_UNRELEASED", variable, names, (str(new.version),), more, subjects[0])


def _departures(variable: VariableFacts, subject: SubjectVersion) -> Iterable[JudgedFinding]:
    if subject.shape is None:
        return
    found = departures(variable.versions[-1].value, subject.shape)
    if found:
        told = "; ".join(f"{path} is {held}, not {declared}" for path, held, declared in found[:10])
        names = {"subject": subject.subject, "version": subject.version, "fields": told}
        more = {
            "fields": [{"field": path, "before": declared, "after": held} for path, held, declared in found[:200]],
            "version": subject.version,
        }
        yield _of_variable("STATE_DEPARTS", variable, names, (subject.subject,), more, subject.subject)


def _keys(variable: VariableFacts, subject: SubjectVersion) -> Iterable[JudgedFinding]:
    """Fields of a key that the subject declares as another type: an application built on that can't be started."""
    if subject.shape is None:
        return
    declared = names_and_types(subject.shape)
    newest = variable.versions[-1]
    for schema in (newest.key, newest.map_key):
        for path, struct in structs_of(schema)[:1] if schema else ():
            for name, held in names_and_types(struct).items():
                wanted = declared.get(name, held)
                if wanted != held and "unknown" not in wanted:
                    names: dict[str, Any] = {"path": name, "before": held, "after": wanted}
                    names |= {"subject": subject.subject, "version": subject.version}
                    key = (subject.subject, path, name)
                    yield _of_variable("STATE_KEY_AT_RISK", variable, names, key, None, subject.subject)


def _of_query(rule: str, facts: QueryFacts, names: Mapping[str, Any], key: Sequence[str]) -> JudgedFinding:
    known = {"path": facts.path, **names}
    location = "the query" if names.get("batch") is None else f"the query, batch {names['batch']}"
    return make_finding(rule, known, key, location=location, count=1, evidence=dict(known))


def _of_variable(
    rule: str,
    variable: VariableFacts,
    names: Mapping[str, Any],
    key: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
    subject: str = "",
) -> JudgedFinding:
    known = {"operator": variable.operator, "variable": variable.name, **names}
    location = f"operator {variable.operator}, state variable {variable.name}"
    if names.get("batch") is not None:
        location += f", batch {names['batch']}"
    identity = (str(variable.operator), variable.name, *key)
    evidence = {**known, **(more or {})}
    return make_finding(rule, known, identity, location=location, count=1, evidence=evidence, subject=subject)
