"""The history of a query's state: each scan adds what is new, in a fixed number of queries.

Versions of subjects are read as Spark reads them, with one query, to find which of them the state was taken from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.checkpoints import Operator
from registry.formats import FORMATS
from registry.streams.models import CarriedVersion, QueryInput, StateSchema, StateVariable, StreamQuery
from registry.streams.scan_result import MAX_NAME, ScannedQuery, ScannedSchema, ScannedVariable
from registry.streams.spark_shapes import MatchedStruct, SparkVersionSchema, carried_versions, spark_shape
from registry.subjects.models import Registry, SchemaVersion


def shapes_of(registry: Registry, subjects: Collection[tuple[str, str]]) -> list[SparkVersionSchema]:
    """Return all versions of those subjects (context, name) that Spark's `from_avro` reads, oldest first.

    Soft-deleted ones are included. JSON Schema and Protobuf are left out: what a state has of them is unknown.
    """
    if not subjects:
        return []
    condition = Q()
    for context in sorted({context for context, _ in subjects}):
        names = [name for subject_context, name in subjects if subject_context == context]
        condition |= Q(subject__context__name=context, subject__name__in=names)
    kinds = [name for name, item in FORMATS.items() if item.has_spark_rows]
    rows = (
        SchemaVersion.objects.filter(condition, subject__context__registry=registry, schema__schema_type__in=kinds)
        .order_by("subject_id", "version")
        .values_list("subject__context__name", "subject__name", "version", "created_at", "schema__canonical")
    )
    shapes: list[SparkVersionSchema] = []
    for context, name, version, created_at, text in rows:
        shape = spark_shape(text)
        if shape is not None:
            shapes.append(SparkVersionSchema(context, name, version, int(created_at.timestamp() * 1000), shape))
    return shapes


_UNSTORABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_VARIABLE: Final = ("label", "kind", "ttl", "encoding", "why_fixed", "value_schemas_used", "removed_at")
_ROWS: Final = ("rows", "keys", "bytes", "rows_batch", "rows_at", "rows_problem", "fields", "expiry")
BATCH: Final = 2000
VariableKey = tuple[int, str]


@transaction.atomic
def keep_query(*, source_id: int, registry: Registry, scanned: ScannedQuery) -> int:
    """Store a query as a scan of `source_id` saw it; return its id. Idempotent.

    Versions that the checkpoint's files no longer have stay in the history. A checkpoint that was created again under
    its old path is another query, whose history is empty. Variables whose rows weren't scanned keep what was read
    before.
    """
    query = _keep_query(source_id, registry, scanned)
    variables = _keep_variables(query, scanned)
    schemas = _keep_schemas(variables, scanned)
    _keep_inputs(query, scanned)
    _keep_carried(query, registry, schemas)
    return query.pk


def _keep_query(source_id: int, registry: Registry, scanned: ScannedQuery) -> StreamQuery:
    checkpoint = scanned.checkpoint
    path = clean(checkpoint.path, 4096)
    query = StreamQuery.objects.select_for_update().filter(source_id=source_id, path=path).first()
    query_id = clean(checkpoint.query_id, 200)
    if query is not None and query.query_id != query_id:
        query.delete()
        query = None
    query = query or StreamQuery(source_id=source_id, path=path, query_id=query_id)
    query.registry = registry
    newest = checkpoint.settings[-1] if checkpoint.settings else None
    query.provider = clean(newest.provider, 200) if newest else ""
    query.encoding = clean(newest.encoding, 64) if newest else ""
    query.last_planned_batch, query.last_committed_batch = (
        checkpoint.last_planned_batch,
        checkpoint.last_committed_batch,
    )
    query.last_batch_at = moment_of(checkpoint.last_batch_time)
    query.allowed_value_schemas, query.allowed_schema_files = (
        checkpoint.limits.value_schemas,
        checkpoint.limits.schema_files,
    )
    query.operators = [_operator(item, scanned.timers.get(item.number)) for item in checkpoint.operators]
    query.runs = [
        cleaned({key: value for key, value in asdict(run).items() if key != "settings"} | {"settings": run.settings})
        for run in checkpoint.settings[-20:]
    ]
    query.problems = [clean(item, 1000) for item in checkpoint.problems[:50]]
    query.scanned_at = timezone.now()
    query.save()
    return query


def _operator(operator: Operator, timers: Mapping[str, Any] | None) -> dict[str, Any]:
    described: dict[str, Any] = cleaned(
        {
            "number": operator.number,
            "name": operator.name,
            "description": operator.description,
            "partitions": operator.partitions,
            "time_mode": operator.time_mode,
            "encoding": operator.encoding,
            "why_fixed": operator.why_fixed or "",
            "schema_files": operator.schema_files,
            "internal": [column_family.meaning for column_family in operator.internal[:50]],
            "timers": dict(timers) if timers is not None else None,
        }
    )
    return described


def _keep_variables(
    query: StreamQuery, scanned: ScannedQuery
) -> dict[VariableKey, tuple[StateVariable, ScannedVariable]]:
    stored = {(row.operator, row.name): row for row in query.variables.all()}
    rows_by_key: dict[VariableKey, tuple[StateVariable, ScannedVariable]] = {}
    for scanned_variable in scanned.variables:
        key = (scanned_variable.operator.number, clean(scanned_variable.variable.name, MAX_NAME))
        row = stored.get(key) or StateVariable(query=query, operator=key[0], name=key[1])
        _describe(row, scanned_variable)
        rows_by_key[key] = (row, scanned_variable)
    rows = [row for row, _ in rows_by_key.values()]
    StateVariable.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=("query", "operator", "name"),
        update_fields=(*_VARIABLE, *_ROWS),
    )
    return rows_by_key


def _describe(row: StateVariable, scanned: ScannedVariable) -> None:
    state_variable, operator = scanned.variable, scanned.operator
    row.label, row.kind, row.ttl = clean(state_variable.label, MAX_NAME), state_variable.kind[:32], state_variable.ttl
    row.encoding, row.why_fixed = clean(operator.encoding, 64), clean(operator.why_fixed or "", 1000)
    row.value_schemas_used, row.removed_at = max(0, state_variable.value_schemas_used), state_variable.removed_at
    if state_variable.removed_at is not None:  # its rows are gone, or out of reach
        row.rows = row.keys = row.bytes = row.rows_batch = None
        row.fields, row.expiry, row.rows_problem = [], {}, ""
    if scanned.rows is None:
        return
    row.rows_problem, row.rows_at = clean(scanned.rows.problem, 1000), timezone.now()
    if not scanned.rows.problem:
        row.rows, row.keys, row.bytes = scanned.rows.rows, scanned.rows.keys, scanned.rows.bytes
        row.rows_batch, row.fields = scanned.rows.batch, cleaned(list(scanned.rows.fields))
        row.expiry = cleaned(dict(scanned.rows.expiry))


def _keep_schemas(
    variables: Mapping[VariableKey, tuple[StateVariable, ScannedVariable]], scanned: ScannedQuery
) -> list[StateSchema]:
    """Store new versions; return all of the query. A new one gets the next number of its variable."""
    owners = [row.pk for row, _ in variables.values()]
    stored = list(StateSchema.objects.filter(variable__in=owners))
    by_variable: dict[int, dict[tuple[str, str], StateSchema]] = {}
    for row in stored:
        by_variable.setdefault(row.variable_id, {})[row.file, row.content_hash] = row
    new: list[StateSchema] = []
    for variable, scanned_variable in variables.values():
        there = by_variable.setdefault(variable.pk, {})
        number = max((row.version for row in there.values()), default=0)
        for schema in scanned_variable.schemas:
            key = (clean(schema.version.file, 500), schema.content_hash)
            if key in there:
                continue
            number += 1
            there[key] = _schema(variable, number, key, schema)
            new.append(there[key])
    StateSchema.objects.bulk_create(new, batch_size=BATCH)
    return stored + new


def _schema(variable: StateVariable, number: int, key: tuple[str, str], scanned: ScannedSchema) -> StateSchema:
    version = scanned.version
    return StateSchema(
        variable=variable,
        version=number,
        schema_id=version.schema_id,
        batch=version.batch,
        start=scanned.start,
        written_at=moment_of(version.written_at),
        file=key[0],
        content_hash=key[1],
        key_schema=clean(version.key_schema),
        value_schema=clean(version.value_schema),
        map_key_schema=clean(version.map_key_schema or ""),
        avro_schema=clean(scanned.avro_schema),
        why_no_avro=clean(scanned.why_no_avro, 1000),
    )


def _keep_inputs(query: StreamQuery, scanned: ScannedQuery) -> None:
    inputs = {
        (clean(item.topic, 249), item.side, clean(item.context, 255), clean(item.subject, 1024))
        for item in scanned.inputs
    }
    stored = {(row.topic, row.side, row.context, row.subject): row.pk for row in query.inputs.all()}
    QueryInput.objects.filter(pk__in=[number for key, number in stored.items() if key not in inputs]).delete()
    QueryInput.objects.bulk_create(
        [
            QueryInput(query=query, topic=topic, side=side, context=context, subject=subject)
            for topic, side, context, subject in sorted(inputs - stored.keys())
        ],
        batch_size=BATCH,
    )


def _keep_carried(query: StreamQuery, registry: Registry, schemas: Sequence[StateSchema]) -> None:
    """Find again which versions the state schemas carry: subjects get versions, topics get subjects."""
    names = {(row.context, row.subject) for row in query.inputs.all() if row.subject}
    versions = shapes_of(registry, names)
    rows = []
    for schema in schemas:
        written_at = int(schema.written_at.timestamp() * 1000) if schema.written_at else None
        rows += [_carried(schema, carried) for carried in carried_versions(schema.value_schema, written_at, versions)]
    CarriedVersion.objects.filter(schema__variable__query=query).delete()
    CarriedVersion.objects.bulk_create(rows, batch_size=BATCH)


def _carried(schema: StateSchema, carried: MatchedStruct) -> CarriedVersion:
    version: SparkVersionSchema = carried.version
    return CarriedVersion(
        schema=schema,
        context=version.context,
        subject=version.subject,
        version=version.version,
        path=clean(carried.path, 1000),
        fields=list(carried.fields)[:200],
    )


def moment_of(milliseconds: int | None) -> datetime | None:
    """Return a number of milliseconds as a time; None for None, and for one before 1970 or after 9999."""
    if milliseconds is None or not 0 <= milliseconds < 253_402_300_800_000:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def clean(text: str, limit: int = 0) -> str:
    """Make a text storable in PostgreSQL; one that is too long ends in its hash, so that two stay different."""
    made = _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    if not limit or len(made) <= limit:
        return made
    if limit < 40:
        return made[:limit]
    return f"{made[: limit - 18]}…{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def cleaned(value: Any) -> Any:
    """Make all texts in a JSON value storable in PostgreSQL."""
    if isinstance(value, str):
        return clean(value, 4096)
    if isinstance(value, Mapping):
        return {clean(str(key), 1000): cleaned(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [cleaned(item) for item in value]
    return value
