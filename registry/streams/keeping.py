"""Keeping what a scan saw of a query: the history of its state grows by what is new, in a fixed number of queries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from registry.checkpoints import Operator
from registry.streams.models import CarriedVersion, QueryInput, StateSchema, StateVariable, StreamQuery
from registry.streams.seen import MAX_NAME, QuerySeen, SchemaSeen, VariableSeen
from registry.streams.shapes import Carried, VersionShape, carried_versions
from registry.streams.subject_shapes import shapes_of
from registry.subjects.models import Registry

_UNSTORABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_VARIABLE: Final = ("label", "kind", "ttl", "encoding", "why_fixed", "value_schemas_used", "removed_at")
_ROWS: Final = ("rows", "keys", "bytes", "rows_batch", "rows_at", "rows_problem", "fields", "expiry")
BATCH: Final = 2000
VariableKey = tuple[int, str]


@transaction.atomic
def keep_query(*, source_id: int, registry: Registry, seen: QuerySeen) -> int:
    """Keep a query as a scan of `source_id` saw it; gives its number. Kept twice, it is there once.

    Versions that the checkpoint's files no longer have stay: they were there. A checkpoint that was made anew under its
    old path is another query, which begins with nothing. Variables whose rows weren't asked for keep what was read.
    """
    query = _keep_query(source_id, registry, seen)
    variables = _keep_variables(query, seen)
    schemas = _keep_schemas(variables, seen)
    _keep_inputs(query, seen)
    _keep_carried(query, registry, schemas)
    return query.pk


def _keep_query(source_id: int, registry: Registry, seen: QuerySeen) -> StreamQuery:
    found = seen.checkpoint
    path = clean(found.path, 4096)
    query = StreamQuery.objects.select_for_update().filter(source_id=source_id, path=path).first()
    query_id = clean(found.query_id, 200)
    if query is not None and query.query_id != query_id:
        query.delete()
        query = None
    query = query or StreamQuery(source_id=source_id, path=path, query_id=query_id)
    query.registry = registry
    newest = found.settings[-1] if found.settings else None
    query.provider = clean(newest.provider, 200) if newest else ""
    query.encoding = clean(newest.encoding, 64) if newest else ""
    query.last_planned_batch, query.last_committed_batch = found.last_planned_batch, found.last_committed_batch
    query.last_batch_at = moment_of(found.last_batch_time)
    query.allowed_value_schemas, query.allowed_schema_files = found.limits.value_schemas, found.limits.schema_files
    query.operators = [_operator(each, seen.timers.get(each.number)) for each in found.operators]
    query.runs = [
        cleaned({key: value for key, value in asdict(run).items() if key != "settings"} | {"settings": run.settings})
        for run in found.settings[-20:]
    ]
    query.problems = [clean(each, 1000) for each in found.problems[:50]]
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
            "internal": [each.meaning for each in operator.internal[:50]],
            "timers": dict(timers) if timers is not None else None,
        }
    )
    return described


def _keep_variables(query: StreamQuery, seen: QuerySeen) -> dict[VariableKey, tuple[StateVariable, VariableSeen]]:
    known = {(row.operator, row.name): row for row in query.variables.all()}
    kept: dict[VariableKey, tuple[StateVariable, VariableSeen]] = {}
    for each in seen.variables:
        key = (each.operator.number, clean(each.known.name, MAX_NAME))
        row = known.get(key) or StateVariable(query=query, operator=key[0], name=key[1])
        _describe(row, each)
        kept[key] = (row, each)
    rows = [row for row, _ in kept.values()]
    StateVariable.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=("query", "operator", "name"),
        update_fields=(*_VARIABLE, *_ROWS),
    )
    return kept


def _describe(row: StateVariable, seen: VariableSeen) -> None:
    known, operator = seen.known, seen.operator
    row.label, row.kind, row.ttl = clean(known.label, MAX_NAME), known.kind[:32], known.ttl
    row.encoding, row.why_fixed = clean(operator.encoding, 64), clean(operator.why_fixed or "", 1000)
    row.value_schemas_used, row.removed_at = max(0, known.value_schemas_used), known.removed_at
    if known.removed_at is not None:  # its rows are gone, or out of reach
        row.rows = row.keys = row.bytes = row.rows_batch = None
        row.fields, row.expiry, row.rows_problem = [], {}, ""
    if seen.rows is None:
        return
    row.rows_problem, row.rows_at = clean(seen.rows.problem, 1000), timezone.now()
    if not seen.rows.problem:
        row.rows, row.keys, row.bytes = seen.rows.rows, seen.rows.keys, seen.rows.bytes
        row.rows_batch, row.fields = seen.rows.batch, cleaned(list(seen.rows.fields))
        row.expiry = cleaned(dict(seen.rows.expiry))


def _keep_schemas(kept: Mapping[VariableKey, tuple[StateVariable, VariableSeen]], seen: QuerySeen) -> list[StateSchema]:
    """All versions of the query, old and new; a new one gets the next number of its variable."""
    owners = [row.pk for row, _ in kept.values()]
    stored = list(StateSchema.objects.filter(variable__in=owners))
    by_variable: dict[int, dict[tuple[str, str], StateSchema]] = {}
    for row in stored:
        by_variable.setdefault(row.variable_id, {})[row.file, row.content_hash] = row
    new: list[StateSchema] = []
    for variable, each in kept.values():
        there = by_variable.setdefault(variable.pk, {})
        number = max((row.version for row in there.values()), default=0)
        for schema in each.schemas:
            key = (clean(schema.known.file, 500), schema.content_hash)
            if key in there:
                continue
            number += 1
            there[key] = _schema(variable, number, key, schema)
            new.append(there[key])
    StateSchema.objects.bulk_create(new, batch_size=BATCH)
    return stored + new


def _schema(variable: StateVariable, number: int, key: tuple[str, str], seen: SchemaSeen) -> StateSchema:
    known = seen.known
    return StateSchema(
        variable=variable,
        version=number,
        schema_id=known.schema_id,
        batch=known.batch,
        start=seen.start,
        written_at=moment_of(known.written_at),
        file=key[0],
        content_hash=key[1],
        key_schema=clean(known.key_schema),
        value_schema=clean(known.value_schema),
        map_key_schema=clean(known.map_key_schema or ""),
        avro_schema=clean(seen.avro_schema),
        why_no_avro=clean(seen.why_no_avro, 1000),
    )


def _keep_inputs(query: StreamQuery, seen: QuerySeen) -> None:
    wanted = {
        (clean(each.topic, 249), each.side, clean(each.context, 255), clean(each.subject, 1024)) for each in seen.inputs
    }
    known = {(row.topic, row.side, row.context, row.subject): row.pk for row in query.inputs.all()}
    QueryInput.objects.filter(pk__in=[number for key, number in known.items() if key not in wanted]).delete()
    QueryInput.objects.bulk_create(
        [
            QueryInput(query=query, topic=topic, side=side, context=context, subject=subject)
            for topic, side, context, subject in sorted(wanted - known.keys())
        ],
        batch_size=BATCH,
    )


def _keep_carried(query: StreamQuery, registry: Registry, schemas: Sequence[StateSchema]) -> None:
    """Which versions the state schemas carry is found anew each time: subjects get versions, topics get subjects."""
    names = {(row.context, row.subject) for row in query.inputs.all() if row.subject}
    versions = shapes_of(registry, names)
    rows = []
    for schema in schemas:
        written_at = int(schema.written_at.timestamp() * 1000) if schema.written_at else None
        rows += [_carried(schema, each) for each in carried_versions(schema.value_schema, written_at, versions)]
    CarriedVersion.objects.filter(schema__variable__query=query).delete()
    CarriedVersion.objects.bulk_create(rows, batch_size=BATCH)


def _carried(schema: StateSchema, found: Carried) -> CarriedVersion:
    version: VersionShape = found.version
    return CarriedVersion(
        schema=schema,
        context=version.context,
        subject=version.subject,
        version=version.version,
        path=clean(found.path, 1000),
        fields=list(found.fields)[:200],
    )


def moment_of(milliseconds: int | None) -> datetime | None:
    """A time; None for none, and for a number that is no time of this era."""
    if milliseconds is None or not 0 <= milliseconds < 253_402_300_800_000:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def clean(text: str, limit: int = 0) -> str:
    """A text that PostgreSQL can hold; one that is too long ends in its hash, so that two stay two."""
    made = _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    if not limit or len(made) <= limit:
        return made
    if limit < 40:
        return made[:limit]
    return f"{made[: limit - 18]}…{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def cleaned(value: Any) -> Any:
    """A JSON value in whose texts nothing stands that PostgreSQL can't hold."""
    if isinstance(value, str):
        return clean(value, 4096)
    if isinstance(value, Mapping):
        return {clean(str(key), 1000): cleaned(held) for key, held in value.items()}
    if isinstance(value, Iterable):
        return [cleaned(held) for held in value]
    return value
