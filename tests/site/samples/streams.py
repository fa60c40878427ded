"""Sample pages: streaming queries with their state, the check of a restart, checkpoints that were found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from dashboard.components.diff import text_diff
from dashboard.components.widgets import Action, Crumb, Paging, Problem, Section
from dashboard.streams.progress import LOOKS, ProgressPanel, RangeLink, progress_charts, setup_lines
from dashboard.streams.queries import OperatorPanel, QueryList, QueryPage, QueryRow, VariableRow, meter
from dashboard.streams.restart_check import (
    STATUS_LOOKS,
    BudgetRow,
    CheckForm,
    RecentCheck,
    ReportedChange,
    ReportVariable,
    StateCheckPage,
    StateReport,
)
from dashboard.streams.variables import FieldRow, SchemaRow, StateComparePage, VariablePage
from registry.errors import InvalidInput
from registry.streams.descriptions import RunningInfo
from registry.streams.progress_history import OperatorProgress, PointInfo, QueryProgress, RunInfo
from registry.streams.selectors import (
    BudgetInfo,
    CarriedInfo,
    FieldInfo,
    InputInfo,
    QueryInfo,
    SchemaInfo,
    StateCheckInfo,
    VariableInfo,
)
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.samples.cast import HOSTILE, LONG, NOW, ago, frame
from tests.site.samples.comparison import COMPARE

QUERIES_CRUMB = Crumb(label="Queries", url="/ui/queries")
QUERY_CRUMB = Crumb(label="order-totals", url="/gallery/query", code=True)
CHECK = Action(label="Check a restart", url="/gallery/state-check-new", icon="shield-check")

ROOMY = BudgetInfo("value_schemas", 0, "totals", 3, 16)
TIGHT = BudgetInfo("value_schemas", 0, HOSTILE, 14, 16)
INPUTS = (InputInfo("orders", "value", SubjectName(".", "orders-value")), InputInfo(HOSTILE, "value", None))
OPERATORS = (
    {"number": 0, "description": "transformWithState", "why_fixed": "", "partitions": 4, "time_mode": "", "timers": None, "schema_files": 4},
    {"number": 1, "description": "dropDuplicates", "why_fixed": "Spark keeps it", "partitions": 4, "time_mode": "", "timers": None, "schema_files": 0},
)  # fmt: skip
INFO = QueryInfo(
    id=1, source_id=2, registry="prod", name="order-totals", path="/checkpoints/order_totals", query_id="6f1a2b3c", provider="", encoding="avro",
    last_planned_batch=13, last_committed_batch=12, last_batch_at=ago(minutes=2), operators=OPERATORS,
    runs=({"first_batch": 0, "last_batch": 12, "provider": "RocksDB", "encoding": "avro"},), problems=(),
    allowed_value_schemas=16, allowed_schema_files=128, scanned_at=ago(minutes=1), variables=2, worst=ROOMY, inputs=INPUTS[:1],
)  # fmt: skip
QUERY_ROW = QueryRow(INFO)
QUERIES = QueryList(
    frame=frame("Streaming queries", Section.QUERIES, current=None),
    rows=(
        QUERY_ROW,
        QueryRow(replace(INFO, name=HOSTILE, path=LONG, worst=TIGHT, inputs=INPUTS * 12)),
        QueryRow(replace(INFO, name="sessions", last_committed_batch=None, encoding="unsaferow", worst=None, inputs=(), last_batch_at=None)),
    ),
    paging=Paging(first=1, last=3, total=3), refused="", check=CHECK,
)  # fmt: skip
QUERIES_EMPTY = replace(QUERIES, rows=(), paging=Paging(first=0, last=0, total=0))
QUERIES_READER = replace(QUERIES_EMPTY, refused="Adding a source takes the role steward.")

SCHEMAS = tuple(
    SchemaInfo(
        version=number, schema_id=number - 1, batch=5, start=2, written_at=ago(days=2), file="", key_schema='{"type": "struct", "fields": []}',
        value_schema="total BIGINT", map_key_schema="", avro_schema="{}", why_no_avro="",
        carried=(CarriedInfo(SubjectName(".", "orders-value"), 3, "", ("total",)),) if number > 1 else (),
    )
    for number in (1, 2)
)  # fmt: skip
TOTALS = VariableInfo(
    id=3, operator=0, name="totals", label="totals", kind="value", ttl=False, encoding="avro", why_fixed="", removed_at=None, budget=ROOMY, versions=3,
    rows=12_040, keys=12_040, bytes=80_000, rows_batch=12, rows_at=ago(hours=3), rows_problem="",
    fields=(FieldInfo("total", "bigint", 12_040, 0, "0", "9…", None), FieldInfo(HOSTILE, LONG, 12_040, 12_000, HOSTILE, HOSTILE, 90)), expiry={"earliest": 1_790_000_000_000, "latest": None, "without": 4}, schemas=SCHEMAS,
)  # fmt: skip
RUN = RunInfo(UUID(int=1), "totals", True, ago(hours=5), ago(seconds=20), None, "", 41, 0)
CRASHED = replace(
    RUN, run_id=UUID(int=2), is_restart=False, started_at=ago(hours=23), ended_at=ago(hours=6), error=HOSTILE
)
POINTS = tuple(
    PointInfo(
        at=ago(minutes=15 * n), seconds=60, batches=4, rows=90_000 - 500 * (n % 9), duration_ms=900 + 40 * (n % 7), watermark_delay_ms=61_000, lag=40 * (n % 30),
        operators=(OperatorProgress("transformWithStateExec", 12_040 - 90 * n, 4_000_000 - 30_000 * n, 4), OperatorProgress(HOSTILE, 5_000, 1_000_000, 4)),
    )
    for n in range(95) if not 20 < n < 24
)  # fmt: skip
NOT_REPORTED = ProgressPanel(
    look=None,
    status="none",
    since=None,
    run=None,
    restarts=0,
    ranges=(),
    charts=(),
    setup=setup_lines("https://schemadesk.example.com"),
)
PROGRESS = replace(
    NOT_REPORTED, look=LOOKS["running"], status="running", since=ago(hours=5), run=RUN, restarts=1, setup="",
    ranges=tuple(RangeLink(label, "/gallery/query", label == "Last day") for label in ("Last hour", "Last day", "Last 90 days")),
    charts=progress_charts(QueryProgress("running", None, (RUN, CRASHED), POINTS), "day", "/gallery/query?as=csv", now=NOW),
)  # fmt: skip
SILENT = replace(
    PROGRESS, look=LOOKS["silent"], status="silent", since=ago(hours=2), charts=(), run=replace(RUN, dropped=1_200)
)
FAILED = replace(SILENT, look=LOOKS["failed"], status="failed", run=replace(RUN, error=HOSTILE))
SENT = RunningInfo(2, ago(hours=5), "pipeline", '{"schemadesk_spark": 1, "sink": "a file", "operators": []}')
QUERY = QueryPage(
    frame=frame("order-totals", Section.QUERIES, QUERIES_CRUMB, code=True), query=QueryRow(replace(INFO, inputs=INPUTS)),
    operators=(
        OperatorPanel(info=OPERATORS[0], variables=(VariableRow(TOTALS), VariableRow(replace(TOTALS, label=HOSTILE, kind="map", budget=TIGHT, rows=None))), budget=meter(BudgetInfo("schema_files", 0, "", 4, 128))),
        OperatorPanel(info=OPERATORS[1], variables=(), budget=None),
    ),
    actions=(Action(label="Source and scans", url="/gallery/source", icon="scan-search"), Action(label="Findings", url="/gallery/findings", icon="triangle-alert")),
    progress=PROGRESS, running=SENT, earlier=(replace(SENT, sent_by=HOSTILE),),
)  # fmt: skip
NO_STATE = replace(INFO, operators=(), runs=(), inputs=())
QUERY_NO_STATE = replace(QUERY, operators=(), running=None, earlier=(), query=QueryRow(NO_STATE), progress=SILENT)
QUERY_STARTING = replace(
    QUERY_NO_STATE, query=QueryRow(replace(NO_STATE, last_committed_batch=None)), progress=NOT_REPORTED
)
QUERY_BROKEN = replace(
    QUERY, progress=FAILED, query=QueryRow(replace(INFO, name=HOSTILE, problems=(f"The schema file of operator 0 can’t be read: {HOSTILE}",))), operators=QUERY.operators[1:],
)  # fmt: skip

VERSIONS = (
    SchemaRow(info=SCHEMAS[1], before=1, summary="1 field added", look=STATUS_LOOKS["evolves"]),
    SchemaRow(info=replace(SCHEMAS[0], written_at=None), before=None, summary="first version", look=None),
)
VARIABLE = VariablePage(
    frame=frame("totals", Section.QUERIES, QUERIES_CRUMB, QUERY_CRUMB, code=True), query=INFO, variable=VariableRow(TOTALS), versions=VERSIONS, selected=SCHEMAS[1],
    schemas=(("Value, as Spark declares it", "total BIGINT,\ncount BIGINT"), ("Value, as Avro", '{"type": "record", "name": "Row", "fields": []}')),
    fields=tuple(map(FieldRow, TOTALS.fields)), old=1, new=2, check=CHECK,
)  # fmt: skip
VARIABLE_FIXED = replace(
    VARIABLE, variable=VariableRow(replace(TOTALS, why_fixed="the state is written as unsaferow, whose rows have no names", budget=None, rows_at=None, rows=None)),
    versions=VERSIONS[1:], selected=replace(SCHEMAS[0], why_no_avro="a field’s name is " + HOSTILE), schemas=VARIABLE.schemas[:1], fields=(),
)  # fmt: skip
VARIABLE_UNREAD = replace(
    VARIABLE,
    fields=(),
    variable=VariableRow(replace(TOTALS, rows_problem=f"Spark stopped: {HOSTILE}", rows=None)),
)

CHANGED = {
    "effect": "loses data", "path": "totals.state", "message": "status is gone and state is new: they look like one field renamed.", "why": "Spark matches fields by name.",
    "remedy": "Keep the name, or copy the values in code.", "rule": "state.renamed", "reads": {"Python": "None", "Scala": "null"}, "document": "not supported", "error": "",
}  # fmt: skip
REFUSED_CHANGE = {
    **CHANGED, "effect": "refused", "path": HOSTILE, "message": HOSTILE, "error": "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "document": "",
}  # fmt: skip
CHANGES = (ReportedChange(CHANGED), ReportedChange(REFUSED_CHANGE))
COMPARED = StateComparePage(
    frame=frame("totals: version 1 to 2", Section.QUERIES, QUERIES_CRUMB, QUERY_CRUMB), look=STATUS_LOOKS["accepted but loses data"], sentence="Spark accepts it; what status held is lost.",
    query=INFO, variable=VariableRow(TOTALS), old=1, new=2, changes=CHANGES, comparison=COMPARE.comparison,
    text=text_diff("total INT,\nstatus STRING", "total BIGINT,\nstate STRING"), view="unified", unified_url="/gallery/variable-compare", split_url="/gallery/variable-compare", problem=None,
)  # fmt: skip
COMPARED_NO_AVRO = replace(
    COMPARED, changes=(), look=STATUS_LOOKS["unchanged"], sentence="Nothing changed.", comparison=None, text=text_diff("a", "a"),
    problem=Problem(what="There is no Avro schema of version 1", where=HOSTILE, cure="Only what Spark declares can be compared."),
)  # fmt: skip


def entry(name: str, kind: str, status: str, **more: Any) -> dict[str, Any]:
    """A variable as reports have it."""
    return {
        "name": name, "kind": kind, "ttl": False, "user_key": "", "status": status, "sentence": "one field is lost", "stored": None, "planned": None,
        "changes": [], "budget": None, "place": "", **more,
    }  # fmt: skip


FINISHED = {
    "verdict": "loses data", "sentence": "The restart goes through and values of status are lost.", "error": "", "error_message": "", "last_batch": 41, "language": "scala",
    "operator": {"why_fixed": "", "number": 0, "description": "transformWithState", "encoding": "avro"}, "changes": [CHANGED],
    "ways_out": [
        {"way": "undo", "label": "Undo the change", "text": HOSTILE, "has_script": False},
        {"way": "state migration", "label": "Migrate the state", "text": "Stop the query and run the generated script.", "has_script": True},
    ], "notes": ["The query was running while it was read.", HOSTILE],
    "settings": [{"name": "spark.sql.streaming.stateStore.maxNumStateSchemaFiles", "value": "128", "said_by": "by default"}, {"name": "spark.x", "value": HOSTILE, "said_by": "by the plan"}],
}  # fmt: skip
CHECKED = StateCheckInfo(
    id=4, created_at=ago(minutes=1), created_by=HOSTILE, checkpoint="/checkpoints/order_totals", query_id="6f1a2b3c", verdict="loses data",
    plan='{"variables": []}', report=FINISHED, text="", markdown="", script="",
)  # fmt: skip
REPORT = StateReport(
    frame=frame("Check 4 of order-totals", Section.QUERIES, QUERIES_CRUMB, QUERY_CRUMB), info=CHECKED,
    variables=(
        ReportVariable(1, entry("totals", "value", "accepted but loses data", stored="status STRING", planned="state STRING", changes=[CHANGED, REFUSED_CHANGE] * 2, budget={"before": 2, "after": 3, "allowed": 16}, place="line 4"), drawn=2),
        ReportVariable(2, entry(HOSTILE, "map", "removed", stored="a INT", user_key=HOSTILE, ttl=True)),
        ReportVariable(3, entry("dedup", "kept by Spark", "not checked")),
    ),
    budgets=(BudgetRow(label="value schemas of totals", before=2, after=3, allowed=16, percent=19),),
)  # fmt: skip
REFUSAL = {"verdict": "fails at start", "error": "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "error_message": HOSTILE, "operator": {"why_fixed": "the key of a map can’t change"}}  # fmt: skip
REPORT_REFUSED = replace(REPORT, info=replace(CHECKED, report=FINISHED | REFUSAL))
NOTHING = {"verdict": "safe", "sentence": "It keeps no state.", "changes": [], "settings": [], "notes": []}
REPORT_NO_STATE = replace(REPORT, info=replace(CHECKED, report=FINISHED | NOTHING), variables=(), budgets=())

CHECK_FORM = StateCheckPage(
    frame=frame("Check a restart", Section.QUERIES, QUERIES_CRUMB, current=None),
    form=CheckForm(known=[HOSTILE], initial={"endpoint": HOSTILE, "path": "s3://bucket/checkpoints/order_totals", "plan": '{"variables": []}'}),
    back_url="",
    recent=(RecentCheck(HOSTILE, "/gallery/state-check", ago(minutes=3), HOSTILE),),
    running=replace(SENT, sent_by=HOSTILE),
)  # fmt: skip


def refused_check() -> CheckForm:
    """The form of a plan that isn't one."""
    form = CheckForm({"path": "/checkpoints/totals", "plan": "{"}, known=[])
    form.is_valid()
    form.add_service_error(InvalidInput(f"The plan is not JSON: line 1, column 2. {HOSTILE}"))
    return form


CHECK_FORM_REFUSED = replace(CHECK_FORM, form=refused_check())
CHECK_FORM_READER = replace(CHECK_FORM, refused="Checking a restart takes the role steward.", recent=(), running=None)
