"""Streaming queries, the history of their state, and checks of planned state. Schemas are StructType JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final

from django.db.models import Count, F, Max, Q, QuerySet

from registry.access.permission_filters import READ, require_extent
from registry.access.roles import Actor
from registry.errors import InvalidInput, NotFound, StateCheckNotFound
from registry.frozen_rows import row_info
from registry.streams.models import CarriedVersion, QueryInput, StateCheck, StateSchema, StateVariable, StreamQuery
from registry.subjects.versions.qualified_names import SubjectName


@dataclass(frozen=True)
class StateCheckInfo:
    """A check; `report` conforms to docs/reference/state-check.schema.json, `text` and `markdown` say the same.

    `script` is the Python file that carries the state over to a new checkpoint, empty if there is none.
    """

    id: int
    created_at: datetime
    created_by: str
    checkpoint: str
    query_id: str
    verdict: str
    plan: str
    report: dict[str, Any]
    text: str
    markdown: str
    script: str


def get_state_check(check_id: int) -> StateCheckInfo:
    """Return one check. Raises StateCheckNotFound."""
    row = StateCheck.objects.filter(pk=check_id).first() if check_id < 2**63 else None
    if row is None:
        raise StateCheckNotFound(f"State check {check_id} doesn't exist.", check=check_id)
    return _info(row)


def list_state_checks(*, limit: int = 20) -> list[StateCheckInfo]:
    """List checks, newest first."""
    return [_info(row) for row in StateCheck.objects.order_by("-id")[:limit]]


def _info(row: StateCheck) -> StateCheckInfo:
    report = dict(row.report)
    texts = report.pop("texts", {})
    return row_info(
        StateCheckInfo, row, report=report, **{name: texts.get(name, "") for name in ("text", "markdown", "script")}
    )


@dataclass(frozen=True)
class BudgetInfo:
    """One of Spark's limits and how much of it is used; `variable` is empty for an operator's schema files."""

    limit: str
    operator: int
    variable: str
    used: int
    allowed: int

    @property
    def left(self) -> int:
        """How many more are allowed."""
        return max(0, self.allowed - self.used)

    @property
    def share(self) -> float:
        """The share that is used, from 0 to 1 and beyond."""
        return self.used / max(1, self.allowed)


@dataclass(frozen=True)
class InputInfo:
    """A topic that the query reads, and a subject of its messages; `subject` is None if unknown."""

    topic: str
    side: str
    subject: SubjectName | None


@dataclass(frozen=True)
class QueryInfo:
    """A query as its last scan saw it. `worst` is its fullest budget, None if nothing can evolve."""

    id: int
    source_id: int
    registry: str
    name: str
    path: str
    query_id: str
    provider: str
    encoding: str
    last_planned_batch: int | None
    last_committed_batch: int | None
    last_batch_at: datetime | None
    operators: tuple[Mapping[str, Any], ...]
    runs: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]
    allowed_value_schemas: int
    allowed_schema_files: int
    scanned_at: datetime
    variables: int
    worst: BudgetInfo | None
    inputs: tuple[InputInfo, ...] = ()


@dataclass(frozen=True)
class CarriedInfo:
    """A subject's version whose fields a schema has; `path` is the struct in the value, empty for the value itself."""

    subject: SubjectName
    version: int
    path: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class SchemaInfo:
    """A version of a state variable. `start` counts the application starts that changed the query's state, from 1."""

    version: int
    schema_id: int
    batch: int | None
    start: int | None
    written_at: datetime | None
    file: str
    key_schema: str
    value_schema: str
    map_key_schema: str
    avro_schema: str
    why_no_avro: str
    carried: tuple[CarriedInfo, ...] = ()


@dataclass(frozen=True)
class FieldInfo:
    """A field of a variable's rows: numbers of rows and nulls, and a masked range.

    `path` begins with `key`, `map_key` or `value`.
    """

    path: str
    type: str
    rows: int
    nulls: int
    minimum: str | None
    maximum: str | None
    bytes: int | None

    @property
    def filled(self) -> float:
        """The share of rows that hold a value, from 0 to 1."""
        return (self.rows - self.nulls) / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class VariableInfo:
    """A state variable; rows and fields are from the last scan of its rows (`rows` None: never)."""

    id: int
    operator: int
    name: str
    label: str
    kind: str
    ttl: bool
    encoding: str
    why_fixed: str
    removed_at: int | None
    budget: BudgetInfo | None
    versions: int
    rows: int | None
    keys: int | None
    bytes: int | None
    rows_batch: int | None
    rows_at: datetime | None
    rows_problem: str
    fields: tuple[FieldInfo, ...]
    expiry: Mapping[str, Any]
    schemas: tuple[SchemaInfo, ...] = ()


LARGEST: Final = 2**63 - 1
PAGE: Final = 50


def list_queries(
    *, by: Actor | None = None, offset: int = 0, after: int | None = None, limit: int = PAGE
) -> list[QueryInfo]:
    """List queries with their inputs and fullest budgets, fullest first; three queries, and one for `after`.

    `after` is the id of the last query on the previous page: then no query is left out because others disappeared.
    Raises InvalidInput if that query is no longer readable. `by` limits the list to registries that the actor may read
    completely, since a query's state isn't of a single subject.
    """
    rows = StreamQuery.objects.select_related("registry")
    if by is not None:
        rows = rows.visible_to(by)
    used = Max("variables__value_schemas_used", filter=Q(variables__why_fixed="", variables__removed_at=None))
    rows = rows.annotate(fullest=used).order_by(F("fullest").desc(nulls_last=True), "path", "id")
    if after is not None:
        rows = rows.filter(_behind(rows, after))
    page = list(rows[offset : offset + limit])
    variables = _variables_of(page)
    inputs = _inputs_of(page)
    return [_query(row, variables.get(row.pk, []), inputs.get(row.pk, ())) for row in page]


def _behind(rows: QuerySet[Any], after: int) -> Q:
    edge = rows.filter(pk=after).values_list("fullest", "path").first()
    if edge is None:
        raise InvalidInput(f"There is no query {after} to go on after. Begin with the first page.", field="after")
    fullest, path = edge
    next_to = Q(path__gt=path) | Q(path=path, pk__gt=after)
    if fullest is None:
        return Q(fullest=None) & next_to
    return Q(fullest__lt=fullest) | Q(fullest=None) | Q(fullest=fullest) & next_to


def get_query(query_id: int, *, by: Actor) -> QueryInfo:
    """Return one query; one that the actor may not read counts as missing. Takes three queries.

    Raises NotSignedIn, NotAllowed, NotFound.
    """
    require_extent(by, READ)
    row = _query_row(query_id, by)
    return _query(row, _variables_of([row]).get(row.pk, []), _inputs_of([row]).get(row.pk, ()))


def query_of_source(source_id: int) -> int | None:
    """Return the id of the query that a source's scans saw last; None before a scan; one query."""
    return StreamQuery.objects.filter(source_id=source_id).order_by("-pk").values_list("pk", flat=True).first()


def list_variables(query_id: int) -> list[VariableInfo]:
    """List the state variables of a query without their schemas, by operator and name. Raises NotFound."""
    row = _query_row(query_id)
    variables = row.variables.annotate(versions=Count("schemas")).order_by("operator", "name")
    return [_variable(variable, row, variable.versions) for variable in variables]


def variables_with_schemas(query_id: int) -> list[VariableInfo]:
    """List the state variables of a query with all their schemas; four queries. Raises NotFound."""
    row = _query_row(query_id)
    variables = list(row.variables.order_by("operator", "name"))
    schemas = _schemas_of(variables)
    return [_variable(variable, row, len(schemas[variable.pk]), schemas[variable.pk]) for variable in variables]


def get_variable(query_id: int, variable_id: int) -> VariableInfo:
    """Return a variable with all its schemas; four queries. Raises NotFound."""
    row = _query_row(query_id)
    variable = row.variables.filter(pk=variable_id).first() if 0 < variable_id <= LARGEST else None
    if variable is None:
        raise NotFound(f"Query {query_id} has no state variable {variable_id}.", query=query_id)
    schemas = _schemas_of([variable])[variable.pk]
    return _variable(variable, row, len(schemas), schemas)


def non_null_counts(checkpoint: str) -> dict[tuple[int, str, str], tuple[int, int]] | None:
    """Map (operator, variable, path) to the numbers of rows with a value in that field and of all rows.

    The path "" is the variable itself. None if no rows were read. Operators of one query may have variables of the same
    name.
    """
    path = checkpoint.strip().rstrip("/")
    read = StateVariable.objects.filter(query__path=path, removed_at=None, rows__isnull=False)
    variables = list(read.values_list("operator", "name", "rows", "fields"))
    if not variables:
        return None
    counted = {(operator, name, ""): (rows, rows) for operator, name, rows, _ in variables}
    return counted | {
        (operator, name, str(field["path"]).removeprefix("value.")): (field["rows"] - field["nulls"], field["rows"])
        for operator, name, _, fields in variables
        for field in fields
        if str(field["path"]).startswith("value.")
    }


def _query_row(query_id: int, by: Actor | None = None) -> StreamQuery:
    rows = StreamQuery.objects.all() if by is None else StreamQuery.objects.visible_to(by)
    row = rows.select_related("registry").filter(pk=query_id).first() if 0 < query_id <= LARGEST else None
    if row is None:
        raise NotFound(f"Query {query_id} doesn't exist.", query=query_id)
    return row


def _variables_of(queries: Sequence[StreamQuery]) -> dict[int, list[StateVariable]]:
    by_query: dict[int, list[StateVariable]] = {}
    for row in StateVariable.objects.filter(query__in=queries).defer("fields", "expiry"):
        by_query.setdefault(row.query_id, []).append(row)
    return by_query


def _inputs_of(queries: Sequence[StreamQuery]) -> dict[int, tuple[InputInfo, ...]]:
    by_query: dict[int, list[InputInfo]] = {}
    for row in QueryInput.objects.filter(query__in=queries):
        subject = SubjectName(row.context, row.subject) if row.subject else None
        by_query.setdefault(row.query_id, []).append(InputInfo(row.topic, row.side, subject))
    return {number: tuple(listed) for number, listed in by_query.items()}


def _query(row: StreamQuery, variables: Sequence[StateVariable], inputs: tuple[InputInfo, ...]) -> QueryInfo:
    return row_info(
        QueryInfo,
        row,
        registry=row.registry.name,
        name=PurePosixPath(row.path).name or row.path,
        operators=tuple(row.operators),
        runs=tuple(row.runs),
        problems=tuple(row.problems),
        variables=len([item for item in variables if item.removed_at is None]),
        worst=max(budgets_of(row, variables), key=lambda item: item.share, default=None),
        inputs=inputs,
    )


def budgets_of(row: StreamQuery, variables: Sequence[StateVariable]) -> list[BudgetInfo]:
    """Return the limits that apply to a query: value schemas by variable, schema files by operator."""
    budgets = [budget for variable in variables if (budget := _budget(variable, row)) is not None]
    budgets += [
        BudgetInfo("schema_files", operator["number"], "", operator["schema_files"], row.allowed_schema_files)
        for operator in row.operators
        if operator["schema_files"]
    ]
    return budgets


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
    by_variable: dict[int, list[SchemaInfo]] = {variable.pk: [] for variable in variables}
    for schema in StateSchema.objects.filter(variable__in=variables).order_by("version"):
        by_variable[schema.variable_id].append(_schema(schema, tuple(carried.get(schema.pk, ()))))
    return {number: tuple(listed) for number, listed in by_variable.items()}


def _schema(row: StateSchema, carried: tuple[CarriedInfo, ...]) -> SchemaInfo:
    return row_info(SchemaInfo, row, carried=carried)


def _variable(
    row: StateVariable, query: StreamQuery, versions: int, schemas: tuple[SchemaInfo, ...] = ()
) -> VariableInfo:
    return row_info(
        VariableInfo,
        row,
        budget=_budget(row, query),
        versions=versions,
        fields=tuple(FieldInfo(**field) for field in row.fields),
        schemas=schemas,
    )
