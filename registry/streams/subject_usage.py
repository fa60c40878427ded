"""Streaming queries that use a subject: those that read it, and those whose state carries one of its versions.

A check of promotions says whether that state can follow: what a restart built on the new version meets. Another says
whether queries that are released with a version can be restarted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final

from django.db.models import F, Max, Q

from registry.access.roles import Actor, require
from registry.checkpoints.model import EVOLVING
from registry.checkpoints.plans import StateCheck, StatePlan, read_plan
from registry.checkpoints.plans.model import LABELS, VERDICTS, VERDICTS_OF
from registry.errors import InvalidSchema, SchemadeskError
from registry.formats import format_of
from registry.formats.policies.spark_state import StateChange, schema_changes
from registry.formats.policies.spark_state.rules import EFFECTS
from registry.formats.policies.spark_state.struct_types import StructType, spark_json
from registry.promotions.hook_points import JobRelease
from registry.promotions.plan.types import FAIL, PASS, SKIPPED, WARN, Check, PlanStep
from registry.streams.descriptions import find_query
from registry.streams.models import CarriedVersion, QueryInput, StreamQuery
from registry.streams.services import release_restart
from registry.streams.spark_shapes import spark_shape, structs_of
from registry.subjects.models import Registry
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: queries that are listed
MOST: Final = 20


@dataclass(frozen=True)
class QueryReader:
    """A query, the requested topics that it reads, and the versions whose fields its state has, ascending."""

    id: int
    path: str
    topics: tuple[str, ...]
    versions: tuple[int, ...]

    @property
    def name(self) -> str:
        """The last part of its checkpoint's path."""
        return PurePosixPath(self.path).name or self.path


def readers_of(
    registry: Registry, subject: SubjectName | None, *, topic: str = "", most: int | None = MOST
) -> list[QueryReader]:
    """Return queries that read the topic or the subject, or whose state carries it, by path, 20 at most by default.

    Two queries of the database.
    """
    topics: dict[tuple[str, int], set[str]] = {}
    versions: dict[tuple[str, int], set[int]] = {}
    condition = Q(topic=topic) if topic else Q(pk__in=())
    if subject is not None:
        condition |= Q(context=subject.context, subject=subject.subject)
        carried = CarriedVersion.objects.filter(
            schema__variable__query__registry=registry,
            schema__variable__removed_at=None,
            context=subject.context,
            subject=subject.subject,
        )
        at = "schema__variable__query"
        for path, number, version in carried.values_list(f"{at}__path", f"{at}_id", "version").distinct():
            versions.setdefault((path, number), set()).add(version)
    inputs = QueryInput.objects.filter(condition, query__registry=registry)
    for path, number, name in inputs.values_list("query__path", "query_id", "topic").distinct():
        topics.setdefault((path, number), set()).add(name)
    return [
        QueryReader(
            number, path, tuple(sorted(topics.get((path, number), ()))), tuple(sorted(versions.get((path, number), ())))
        )
        for path, number in sorted({*topics, *versions})[:most]
    ]


MAX_NAMED: Final = 20


def state_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> dict[int, list[Evidence]]:
    """Return what the state of scanned queries says about versions; nothing for one that no state carries; one query.

    The schema that a variable is written with now is certain. For a schema before it evolved, rows that weren't
    rewritten since are still stored with it; Spark's reader doesn't report whether there are any.
    """
    rows = (
        CarriedVersion.objects.filter(
            schema__variable__query__registry=registry,
            schema__variable__removed_at=None,
            context=subject.context,
            subject=subject.subject,
            version__in=list(versions),
        )
        .select_related("schema__variable__query")
        .annotate(newest=Max("schema__variable__schemas__version"))
        .order_by("version", "schema__variable__query__path", "schema__variable__name", "-schema__version")
    )
    by_version: dict[int, list[Evidence]] = {}
    for row in rows:
        listed = by_version.setdefault(row.version, [])
        if len(listed) < MAX_NAMED:
            listed.append(_evidence(row, is_current=row.schema.version == row.newest))
    return by_version


def _evidence(row: CarriedVersion, *, is_current: bool) -> Evidence:
    variable = row.schema.variable
    where = f"state variable {variable.label} of the query at {variable.query.path}"
    fields = ", ".join(row.fields[:8]) + (" …" if len(row.fields) > 8 else "")
    seen_at: datetime = variable.query.scanned_at
    if is_current:
        return Evidence(
            "state", "yes", f"The {where} holds its fields ({fields}).", as_of=seen_at, names=f"The {where}"
        )
    return Evidence(
        "state",
        "unknown",
        f"The {where} was written with its fields ({fields}) until it evolved. Rows not rewritten since are still "
        "stored that way, and Spark doesn't report which.",
        as_of=seen_at,
        names=f"The {where}",
    )


CODE: Final = "evidence.state"
MAX_NAMED_STATES: Final = 5
NOT_CHECKED: Final = "not checked"


def state_checks(target: Registry, steps: Sequence[PlanStep], answers: int | None = None) -> list[Check]:
    """Return a check for every subject that the plan registers and whose fields some query's state has; one query.

    The check compares with the newest schema of each variable: its fields that came from the subject get the promoted
    version's types, or are removed if the version no longer has them. An application may do otherwise, so the check
    only warns; it also warns if they can't be compared.
    """
    steps_by_subject = {parse_subject(step.subject): step for step in steps if step.adds}
    rows = state_carriers(target, list(steps_by_subject))
    checks = []
    for name, step in steps_by_subject.items():
        mine = [row for row in rows if (row.context, row.subject) == (name.context, name.subject)]
        if mine:
            checks.append(
                _check(name, spark_shape(step.text) if format_of(step.schema_type).has_spark_rows else None, mine)
            )
    return checks


def state_carriers(target: Registry, names: Sequence[SubjectName]) -> list[CarriedVersion]:
    """Return the structs with the subjects' fields in the newest schema of each state variable; one query."""
    if not names:
        return []
    condition = Q()
    for name in names:
        condition |= Q(context=name.context, subject=name.subject)
    return list(
        CarriedVersion.objects.filter(
            condition, schema__variable__query__registry=target, schema__variable__removed_at=None
        )
        .annotate(newest=Max("schema__variable__schemas__version"))
        .filter(newest=F("schema__version"))
        .select_related("schema__variable__query")
        .order_by("schema__variable__query__path", "schema__variable__name", "path")
    )


def _check(name: SubjectName, shape: StructType | None, rows: Sequence[CarriedVersion]) -> Check:
    label = f"Spark state that carries {name.qualified}"
    subject = name.qualified
    sentences = [sentence for row in rows if (sentence := restart_effect(row, shape)[1])]
    if not sentences:
        text = f"Queries with its fields in their state: {len(rows)}. All can be restarted with the new version."
        return Check(CODE, label, PASS, text, subject=subject)
    more = f" And {len(sentences) - MAX_NAMED_STATES} more." if len(sentences) > MAX_NAMED_STATES else ""
    cure = "Restart those queries with a compatible plan, or from a new checkpoint."
    return Check(CODE, label, WARN, " ".join(sentences[:MAX_NAMED_STATES]) + more, cure, subject=subject)


def restart_effect(row: CarriedVersion, shape: StructType | None) -> tuple[str, str]:
    """Return the worst effect of a restart with the version's fields, with a sentence; ("", "") if it can follow.

    The effect is one of EFFECTS, or NOT_CHECKED.
    """
    variable = row.schema.variable
    where = f"State variable {variable.label} ({variable.query.path})"
    operator: dict[str, Any] = next(
        (item for item in variable.query.operators if item["number"] == variable.operator), {}
    )
    if operator.get("name") not in EVOLVING:
        return NOT_CHECKED, f"{where} is not checked: only transformWithState state is checked."
    changes = changes_to_follow(row, shape) if shape is not None else None
    if changes is None:
        return NOT_CHECKED, f"{where} is not checked: Spark's types of the new version are not known."
    effects = [item for item in changes if item.effect != "note"]
    if not effects:
        return "", ""
    worst = max(effects, key=lambda item: EFFECTS.index(item.effect))
    if worst.effect == "refused":
        sentence = f"can't change to the new version: {worst.message}. Spark refuses the restart ({worst.error})."
    else:
        sentence = f"can change to the new version but {worst.effect}: {worst.message}."
    return worst.effect, f"{where} {sentence}"


def changes_to_follow(row: CarriedVersion, shape: StructType) -> tuple[StateChange, ...] | None:
    """Return what changes in the struct that carries the subject when it is built on the promoted version.

    None if that can't be compared. A field of the subject that the version no longer has may now be one of its other
    fields.
    """
    struct = dict(structs_of(row.schema.value_schema)).get(row.path)
    if struct is None:
        return None
    after = {field.name: field.type for field in shape.fields}
    planned = {
        field.name: after.get(field.name, field.type)
        for field in struct.fields
        if field.name in after or field.name not in row.fields
    }
    if any(name not in after for name in row.fields):
        planned = after | planned
    fields = [
        {"name": name, "type": spark_json(kind), "nullable": True, "metadata": {}} for name, kind in planned.items()
    ]
    before = json.dumps(spark_json(struct))
    is_avro = row.schema.variable.encoding == "avro"
    try:
        return schema_changes(before, {"type": "struct", "fields": fields}, has_evolution=is_avro)
    except InvalidSchema:
        return None  # a type that Spark itself has no name for


RESTART: Final = "restart"
#: changes that a sentence names, the worst ones
MAX_CHANGES: Final = 3
_UNSURE: Final = "Run the restart check for the whole report, and decide before the release."


def restart_checks(target: Registry, releases: Sequence[JobRelease], by: Actor) -> list[Check]:
    """Return a check for each release of a query of the target; its checkpoint is read.

    One that can't be read isn't checked. Raises NotSignedIn, NotAllowed, NotFound, InvalidInput, InvalidSchema.
    """
    require(by, "state.check", registry=target.name)
    planned = [(find_query(release.query, by=by, registry=target.name), _plan(release)) for release in releases]
    return [_restart_check(query, plan) for query, plan in planned]


def _plan(release: JobRelease) -> StatePlan:
    try:
        return read_plan(release.description)
    except InvalidSchema as error:
        raise InvalidSchema(f"The description of {release.query[:200]}: {error.placed}") from None


def _restart_check(query: StreamQuery, plan: StatePlan) -> Check:
    name = f"restart of {query.path}"
    try:
        report = release_restart(query, plan)
    except SchemadeskError as error:
        return Check(RESTART, name, SKIPPED, f"{query.path}: Not checked. {error.placed}", _UNSURE)
    compared = [note for note in report.notes[:1] if plan.query and "running query" in note]
    sentence = " ".join([f"{query.path}: {LABELS[report.verdict]}.", *_sentences(report), *compared])
    if report.is_safe:
        return Check(RESTART, name, PASS, sentence)
    if report.verdict == "not checked":
        return Check(RESTART, name, SKIPPED, sentence, _UNSURE)
    cures = dict.fromkeys(_capital(item.remedy) for item in _worst(report))
    return Check(RESTART, name, FAIL, sentence, " ".join(cures) or _UNSURE)


def _sentences(report: StateCheck) -> Iterator[str]:
    """Yield the verdict, the worst changes and the error class."""
    yield report.sentence if report.verdict == "not checked" else VERDICTS[report.verdict]
    yield from (_capital(item.message) for item in _worst(report))
    if report.error:
        yield f"Spark's error: {report.error}."


def _worst(report: StateCheck) -> list[StateChange]:
    """Return the changes that decide the verdict."""
    return [change for change in report.all_changes if VERDICTS_OF.get(change.effect) == report.verdict][:MAX_CHANGES]


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
