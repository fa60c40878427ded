"""Streaming queries and the history of their state, for pages and programs. Schemas are StructType JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from django.db.models import Count, F, Max, Q

from registry.access.extent import Extent, extent_of, require_extent
from registry.access.roles import Actor
from registry.errors import NotFound
from registry.streams.infos import (
    BudgetInfo,
    CarriedInfo,
    FieldInfo,
    InputInfo,
    QueryInfo,
    SchemaInfo,
    VariableInfo,
)
from registry.streams.models import CarriedVersion, QueryInput, StateSchema, StateVariable, StreamQuery
from registry.subjects.names import SubjectName

LARGEST: Final = 2**63 - 1
PAGE: Final = 50
READ: Final = "schema.read"


def list_queries(*, by: Actor | None = None, offset: int = 0, limit: int = PAGE) -> list[QueryInfo]:
    """Queries with their inputs and fullest budgets, fullest first; three queries.

    For `by` those of registries that they may read wholly: what a query holds is of no subject alone.
    """
    rows = StreamQuery.objects.select_related("registry")
    if by is not None:
        rows = rows.filter(extent_of(by, READ).registries("registry__name"))
    used = Max("variables__value_schemas_used", filter=Q(variables__why_fixed="", variables__removed_at=None))
    rows = rows.annotate(fullest=used).order_by(F("fullest").desc(nulls_last=True), "path", "id")
    page = list(rows[offset : offset + limit])
    variables = _variables_of(page)
    inputs = _inputs_of(page)
    return [_query(row, variables.get(row.pk, []), inputs.get(row.pk, ())) for row in page]


def get_query(query_id: int, *, by: Actor) -> QueryInfo:
    """One query; one that they may not read is as one that isn't there; three queries.

    Raises NotSignedIn, NotAllowed, NotFound.
    """
    row = _query_row(query_id, require_extent(by, READ))
    return _query(row, _variables_of([row]).get(row.pk, []), _inputs_of([row]).get(row.pk, ()))


def query_of_source(source_id: int) -> int | None:
    """The number of the query that a source's scans saw last; None before a scan; one query."""
    return StreamQuery.objects.filter(source_id=source_id).order_by("-pk").values_list("pk", flat=True).first()


def list_variables(query_id: int) -> list[VariableInfo]:
    """The state variables of a query without their schemas, by operator and name. Raises NotFound."""
    row = _query_row(query_id)
    found = row.variables.annotate(versions=Count("schemas")).order_by("operator", "name")
    return [_variable(each, row, each.versions) for each in found]


def variables_with_schemas(query_id: int) -> list[VariableInfo]:
    """The state variables of a query with all their schemas; four queries. Raises NotFound."""
    row = _query_row(query_id)
    variables = list(row.variables.order_by("operator", "name"))
    schemas = _schemas_of(variables)
    return [_variable(each, row, len(schemas[each.pk]), schemas[each.pk]) for each in variables]


def get_variable(query_id: int, variable_id: int) -> VariableInfo:
    """A variable with all its schemas; four queries. Raises NotFound."""
    row = _query_row(query_id)
    variable = row.variables.filter(pk=variable_id).first() if 0 < variable_id <= LARGEST else None
    if variable is None:
        raise NotFound(f"Query {query_id} has no state variable {variable_id}.", query=query_id)
    schemas = _schemas_of([variable])[variable.pk]
    return _variable(variable, row, len(schemas), schemas)


def filled_of(checkpoint: str) -> dict[tuple[int, str, str], tuple[int, int]] | None:
    """How many rows hold something in a field, of how many, by operator, variable and path; None where no rows were
    read. Operators of one query may call their variables the same.
    """
    path = checkpoint.strip().rstrip("/")
    rows = StateVariable.objects.filter(query__path=path, removed_at=None, rows__isnull=False)
    found = list(rows.values_list("operator", "name", "fields"))
    if not found:
        return None
    return {
        (operator, name, str(each["path"]).removeprefix("value.")): (each["rows"] - each["nulls"], each["rows"])
        for operator, name, fields in found
        for each in fields
        if str(each["path"]).startswith("value.")
    }


def _query_row(query_id: int, extent: Extent | None = None) -> StreamQuery:
    row = None
    if 0 < query_id <= LARGEST:
        row = StreamQuery.objects.select_related("registry").filter(pk=query_id).first()
    if row is None or (extent is not None and not extent.has_all_of(row.registry.name)):
        raise NotFound(f"There is no query {query_id}.", query=query_id)
    return row


def _variables_of(queries: Sequence[StreamQuery]) -> dict[int, list[StateVariable]]:
    found: dict[int, list[StateVariable]] = {}
    for row in StateVariable.objects.filter(query__in=queries).defer("fields", "expiry"):
        found.setdefault(row.query_id, []).append(row)
    return found


def _inputs_of(queries: Sequence[StreamQuery]) -> dict[int, tuple[InputInfo, ...]]:
    found: dict[int, list[InputInfo]] = {}
    for row in QueryInput.objects.filter(query__in=queries):
        subject = SubjectName(row.context, row.subject) if row.subject else None
        found.setdefault(row.query_id, []).append(InputInfo(row.topic, row.side, subject))
    return {number: tuple(listed) for number, listed in found.items()}


def _query(row: StreamQuery, variables: Sequence[StateVariable], inputs: tuple[InputInfo, ...]) -> QueryInfo:
    return QueryInfo(
        id=row.pk,
        source_id=row.source_id,
        registry=row.registry.name,
        name=PurePosixPath(row.path).name or row.path,
        path=row.path,
        query_id=row.query_id,
        provider=row.provider,
        encoding=row.encoding,
        last_planned_batch=row.last_planned_batch,
        last_committed_batch=row.last_committed_batch,
        last_batch_at=row.last_batch_at,
        operators=tuple(row.operators),
        runs=tuple(row.runs),
        problems=tuple(row.problems),
        allowed_value_schemas=row.allowed_value_schemas,
        allowed_schema_files=row.allowed_schema_files,
        scanned_at=row.scanned_at,
        variables=len([each for each in variables if each.removed_at is None]),
        worst=max(budgets_of(row, variables), key=lambda each: each.share, default=None),
        inputs=inputs,
    )


def budgets_of(row: StreamQuery, variables: Sequence[StateVariable]) -> list[BudgetInfo]:
    """The limits that count for a query: value schemas by variable, schema files by operator."""
    found = [budget for each in variables if (budget := _budget(each, row)) is not None]
    found += [
        BudgetInfo("schema_files", operator["number"], "", operator["schema_files"], row.allowed_schema_files)
        for operator in row.operators
        if operator["schema_files"]
    ]
    return found


def _budget(variable: StateVariable, row: StreamQuery) -> BudgetInfo | None:
    if variable.why_fixed or variable.removed_at is not None:
        return None
    used = variable.value_schemas_used
    return BudgetInfo("value_schemas", variable.operator, variable.name, used, row.allowed_value_schemas)


def _schemas_of(variables: Sequence[StateVariable]) -> dict[int, tuple[SchemaInfo, ...]]:
    carried: dict[int, list[CarriedInfo]] = {}
    for row in CarriedVersion.objects.filter(schema__variable__in=variables).order_by("path", "context", "subject"):
        name = SubjectName(row.context, row.subject)
        carried.setdefault(row.schema_id, []).append(CarriedInfo(name, row.version, row.path, tuple(row.fields)))
    found: dict[int, list[SchemaInfo]] = {each.pk: [] for each in variables}
    for schema in StateSchema.objects.filter(variable__in=variables).order_by("version"):
        found[schema.variable_id].append(_schema(schema, tuple(carried.get(schema.pk, ()))))
    return {number: tuple(listed) for number, listed in found.items()}


def _schema(row: StateSchema, carried: tuple[CarriedInfo, ...]) -> SchemaInfo:
    return SchemaInfo(
        version=row.version,
        schema_id=row.schema_id,
        batch=row.batch,
        start=row.start,
        written_at=row.written_at,
        file=row.file,
        key_schema=row.key_schema,
        value_schema=row.value_schema,
        map_key_schema=row.map_key_schema,
        avro_schema=row.avro_schema,
        why_no_avro=row.why_no_avro,
        carried=carried,
    )


def _variable(
    row: StateVariable, query: StreamQuery, versions: int, schemas: tuple[SchemaInfo, ...] = ()
) -> VariableInfo:
    return VariableInfo(
        id=row.pk,
        operator=row.operator,
        name=row.name,
        label=row.label,
        kind=row.kind,
        ttl=row.ttl,
        encoding=row.encoding,
        why_fixed=row.why_fixed,
        removed_at=row.removed_at,
        budget=_budget(row, query),
        versions=versions,
        rows=row.rows,
        keys=row.keys,
        bytes=row.bytes,
        rows_batch=row.rows_batch,
        rows_at=row.rows_at,
        rows_problem=row.rows_problem,
        fields=tuple(FieldInfo(**each) for each in row.fields),
        expiry=row.expiry,
        schemas=schemas,
    )
