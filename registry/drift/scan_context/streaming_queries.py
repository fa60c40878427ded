"""Loads the context of a streaming query: the subjects of its topics, and planned changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Max, Q

from registry.checkpoints import Checkpoint
from registry.drift.judge.streaming_queries import QueryFacts, RunFacts, SchemaFacts, SubjectVersion, VariableFacts
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import SIDES, SchemaUse, Source, Topic
from registry.drift.scan_context.versions import version_rows
from registry.streams.models import StateCheck
from registry.streams.scan_result import ScannedInput
from registry.streams.state_history import shapes_of
from registry.subjects.models import Subject
from registry.subjects.policy.change_guard import unrequested
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject

SCHEMA_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"


def inputs_of(source: Source, topics: Collection[str]) -> tuple[ScannedInput, ...]:
    """Return the topics with the subjects of their messages; two queries.

    Topic scans of the same registry know the subjects of the messages. Without such a scan, a subject named after the
    topic is used.
    """
    context = source.context or DEFAULT_CONTEXT
    subjects_by_side: dict[tuple[str, str], set[SubjectName]] = {}
    rows = Topic.objects.filter(source__registry=source.registry, name__in=list(topics), gone_at=None)
    for name, subjects in rows.values_list("name", "subjects"):
        for side, listed in subjects.items():
            subject_set = subjects_by_side.setdefault((name, side), set())
            subject_set.update(parse_subject(item, context=context) for item in listed)
    called = {f"{topic}-{side}" for topic in topics for side in SIDES}
    named = Subject.objects.filter(
        context__registry=source.registry, context__name=context, name__in=called, versions__isnull=False
    )
    there = set(named.values_list("name", flat=True))
    inputs = []
    for topic in topics:
        made = []
        for side in SIDES:
            subjects_ = subjects_by_side.get((topic, side)) or {
                SubjectName(context, name) for name in (f"{topic}-{side}",) if name in there
            }
            made += [ScannedInput(topic, side, item.context, item.subject) for item in sorted(subjects_, key=str)]
        inputs += made or [ScannedInput(topic)]
    return tuple(inputs)


def facts_of(source: Source, checkpoint: Checkpoint, inputs: Sequence[ScannedInput], observed_at: int) -> QueryFacts:
    """Return the facts about a query as a whole; about five queries in total."""
    last_message, topic = _last_message(source, {item.topic for item in inputs})
    return QueryFacts(
        path=checkpoint.path,
        observed_at=observed_at,
        last_planned_batch=checkpoint.last_planned_batch,
        last_committed_batch=checkpoint.last_committed_batch,
        last_batch_time=checkpoint.last_batch_time,
        runs=tuple(
            RunFacts(
                run.first_batch,
                run.last_batch,
                run.provider,
                run.encoding,
                run.settings.get(SCHEMA_CHECK, "true").strip().lower() != "false",
            )
            for run in checkpoint.settings
        ),
        variables=tuple(_variables(checkpoint)),
        subjects=_subject_versions(source, inputs),
        planned=_planned(checkpoint.path),
        problems=checkpoint.problems,
        last_message=last_message,
        last_message_topic=topic,
    )


def _variables(checkpoint: Checkpoint) -> list[VariableFacts]:
    return [
        VariableFacts(
            operator.number,
            variable.name,
            operator.encoding,
            operator.evolvable,
            tuple(
                SchemaFacts(
                    schema.version,
                    schema.batch,
                    schema.written_at,
                    schema.value_schema,
                    schema.key_schema,
                    schema.map_key_schema or "",
                )
                for schema in variable.versions
            ),
        )
        for operator in checkpoint.operators
        for variable in operator.variables
        if variable.removed_at is None and variable.versions
    ]


def _subject_versions(source: Source, inputs: Sequence[ScannedInput]) -> tuple[SubjectVersion, ...]:
    """Return the versions of the subjects that are read, ascending within a subject."""
    names = {(item.context, item.subject) for item in inputs if item.subject}
    if not names:
        return ()
    shapes = {(item.context, item.subject, item.version): item.shape for item in shapes_of(source.registry, names)}
    condition = Q()
    for context, name in sorted(names):
        condition |= Q(subject__context__name=context, subject__name=name)
    rows = version_rows(source.registry, condition, unapproved=unrequested(source.registry))
    return tuple(
        SubjectVersion(
            row.version.subject,
            row.version.version,
            row.version.registered_at,
            row.version.released,
            shapes.get((row.context, row.name, row.version.version)),
        )
        for row in rows
        if not row.version.deleted
    )


def _planned(path: str) -> tuple[str, ...]:
    """Return the variables that the newest check of a plan for this checkpoint would change."""
    newest = StateCheck.objects.filter(checkpoint=path).order_by("-id").values_list("report", flat=True).first()
    variables = (newest or {}).get("variables", ())
    return tuple(
        str(variable["name"])
        for variable in variables
        if variable.get("status") not in ("unchanged", "added", "not checked")
    )


def _last_message(source: Source, topics: Collection[str]) -> tuple[int | None, str]:
    """Return the newest message time that topic scans saw in those topics, and its topic."""
    newest = (
        SchemaUse.objects.filter(topic__source__registry=source.registry, topic__name__in=list(topics))
        .values_list("topic__name")
        .annotate(last=Max("last_time"))
        .order_by("-last")
        .first()
    )
    return (None, "") if newest is None else (milliseconds(newest[1]), str(newest[0]))
