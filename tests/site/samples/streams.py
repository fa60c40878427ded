"""Sample pages: streaming queries with their state, the check of a restart, checkpoints that were found."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import Look
from dashboard.components.diff import text_diff
from dashboard.components.widgets import Action, Choice, Crumb, Fact, Field, Link, Paging, Problem, Section
from dashboard.sources.forms import StoreForm
from dashboard.streams.queries import (
    BudgetMeter,
    FieldRow,
    OperatorPanel,
    QueryList,
    QueryPage,
    QueryRow,
    RunRow,
    SchemaRow,
    StateComparePage,
    VariablePage,
    VariableRow,
)
from dashboard.streams.restart_check import (
    EFFECT_LOOKS,
    STATUS_LOOKS,
    VERDICT_LOOKS,
    BudgetRow,
    ReportVariable,
    StateChange,
    StateCheckForm,
    StateReport,
)
from tests.site.samples.cast import HOSTILE, LONG, PROD, ago, frame
from tests.site.samples.comparison import COMPARE

QUERIES_CRUMB = Crumb(label="Queries", url="/ui/queries")
QUERY_CRUMB = Crumb(label="order-totals", url="/gallery/query", code=True)
EVOLVES = Look("ok", "circle-check", "Can evolve")
FULL = Look("care", "triangle-alert", "Nearly full")
ROOMY = BudgetMeter(label="value schemas of totals", used=3, allowed=16, left=13, percent=19)
TIGHT = BudgetMeter(label=f"value schemas of {HOSTILE}", used=14, allowed=16, left=2, percent=88, look=FULL)
INPUTS = (Link(label="orders → orders-value", url="/gallery/subject"), Link(label=HOSTILE, url=""))
ADD = Action(label="Add a checkpoint", url="/ui/sources/add", tone="primary", icon="plus")
CHECK = Action(label="Check a restart", url="/gallery/state-check-new", icon="shield-check")

QUERY_ROW = QueryRow(
    url="/gallery/query", name="order-totals", path="/checkpoints/order_totals", environment=PROD, state=EVOLVES, variables="2 variables",
    encoding="Avro", budget=ROOMY, inputs=INPUTS[:1], last_batch_at=ago(minutes=2), scanned_at=ago(minutes=1),
)  # fmt: skip
QUERIES = QueryList(
    frame=frame("Streaming queries", Section.QUERIES, current=None),
    rows=(QUERY_ROW, replace(QUERY_ROW, name=HOSTILE, path=LONG, budget=TIGHT, inputs=INPUTS * 12), replace(QUERY_ROW, name="sessions", state=VERDICT_LOOKS["not checked"], encoding="UnsafeRow", budget=None, inputs=(), last_batch_at=None)),
    paging=Paging(first=1, last=3, total=3), add=ADD, check=CHECK,
)  # fmt: skip
QUERIES_EMPTY = replace(QUERIES, rows=(), paging=Paging(first=0, last=0, total=0))
QUERIES_READER = replace(
    QUERIES_EMPTY, add=replace(ADD, allowed=False, reason="Adding a source takes the role steward.")
)

VARIABLE_ROW = VariableRow(
    url="/gallery/variable", name="totals", kind="value state", look=EVOLVES, rows="12,040", versions=3, budget=ROOMY
)
QUERY = QueryPage(
    frame=frame("order-totals", Section.QUERIES, QUERIES_CRUMB, code=True), name="order-totals", environment=PROD, state=EVOLVES, problems=(),
    operators=(
        OperatorPanel(title="Operator 0: transformWithState", sentence="", facts=(Fact(label="schema files", value="4 of 128"),), variables=(VARIABLE_ROW, replace(VARIABLE_ROW, name=HOSTILE, kind="map state", budget=TIGHT, rows="–")), budget=BudgetMeter(label="schema files", used=4, allowed=128, left=124, percent=3)),
        OperatorPanel(title="Operator 1: dropDuplicates", sentence="Spark keeps it: nothing can be planned for it.", facts=(), variables=(), budget=None),
    ),
    facts=(Fact(label="Checkpoint", value="/checkpoints/order_totals", code=True), Fact(label="Spark", value="4.2.0")), inputs=INPUTS,
    runs=(RunRow(batches="0 to 12", provider="RocksDB", encoding="avro"),), scanned_at=ago(minutes=1),
    actions=(Action(label="Source and scans", url="/gallery/source", icon="scan-search"), Action(label="Findings", url="/gallery/findings", icon="triangle-alert")),
)  # fmt: skip
QUERY_NO_STATE = replace(QUERY, operators=(), runs=(), inputs=())
QUERY_STARTING = replace(QUERY_NO_STATE, is_starting=True)
QUERY_BROKEN = replace(
    QUERY, name=HOSTILE, operators=QUERY.operators[1:],
    problems=(Problem(what="The schema file of operator 0 can’t be read", where=HOSTILE, cure="Scan again; the query may have been writing.", since=ago(hours=2)),),
)  # fmt: skip

VERSION = SchemaRow(
    version=2, url="?version=2", selected=True, summary="1 field added", look=STATUS_LOOKS["evolves"], compare_url="/gallery/variable-compare",
    schema_id=1, batch="5", start="start 2", written_at=ago(days=2), carries=(Link(label="orders-value version 3", url="/gallery/subject"),),
)  # fmt: skip
CHOICES = (Choice(value="2", label="Version 2", selected=True), Choice(value="1", label="Version 1"))
VARIABLE = VariablePage(
    frame=frame("totals", Section.QUERIES, QUERIES_CRUMB, QUERY_CRUMB, code=True), name="totals", kind="value state", state=EVOLVES, why_fixed="",
    versions=(VERSION, replace(VERSION, version=1, selected=False, summary="first version", look=None, compare_url="", carries=(), written_at=None)), selected=2,
    schemas=(("Value, as Spark declares it", "total BIGINT,\ncount BIGINT"), ("Value, as Avro", '{"type": "record", "name": "Row", "fields": []}')), no_avro="",
    facts=(Fact(label="Operator", value="0"), Fact(label="Kind", value="value state")), budget=ROOMY, rows_facts=(Fact(label="Rows", value="12,040"),), rows_at=ago(hours=3), rows_problem="",
    fields=(FieldRow(path="total", type="bigint", filled="100 %", percent=100, range="0 to 9…", size=""), FieldRow(path=HOSTILE, type=LONG, filled="under 0.1 %", percent=0, range=HOSTILE, size="1 to 9 characters")),
    compare_url="/gallery/variable-compare", compare_from=CHOICES, compare_to=CHOICES, check=CHECK,
)  # fmt: skip
VARIABLE_FIXED = replace(
    VARIABLE, state=VERDICT_LOOKS["not checked"], why_fixed="the state is written as unsaferow, whose rows have no names", versions=(replace(VERSION, version=1, look=None, compare_url=""),),
    selected=1, schemas=VARIABLE.schemas[:1], no_avro="a field’s name is " + HOSTILE, budget=None, rows_facts=(), fields=(), rows_at=None,
)  # fmt: skip
VARIABLE_UNREAD = replace(VARIABLE, rows_facts=(), fields=(), rows_problem=f"Spark stopped: {HOSTILE}")

CHANGE = StateChange(
    look=EFFECT_LOOKS["loses data"], path="totals.state", sentence="status is gone and state is new: they look like one field renamed.", why="Spark matches fields by name.",
    remedy="Keep the name, or copy the values in code.", rule="state.renamed", reads=(("Python", "None"), ("Scala", "null")), document="not supported",
)  # fmt: skip
HOSTILE_CHANGE = replace(
    CHANGE,
    look=EFFECT_LOOKS["refused"],
    path=HOSTILE,
    sentence=HOSTILE,
    error="STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    document="",
)
COMPARED = StateComparePage(
    frame=frame("totals: version 1 to 2", Section.QUERIES, QUERIES_CRUMB, QUERY_CRUMB), look=STATUS_LOOKS["accepted but loses data"], sentence="Spark accepts it; what status held is lost.",
    changes=(CHANGE, HOSTILE_CHANGE), compare_url="/gallery/variable-compare", compare_from=CHOICES, compare_to=CHOICES, comparison=COMPARE.comparison,
    text=text_diff("total INT,\nstatus STRING", "total BIGINT,\nstate STRING"), view="unified", unified_url="/gallery/variable-compare", split_url="/gallery/variable-compare", problem=None,
)  # fmt: skip
COMPARED_NO_AVRO = replace(
    COMPARED, changes=(), look=STATUS_LOOKS["unchanged"], sentence="Nothing changed.", comparison=None, text=text_diff("a", "a"),
    problem=Problem(what="There is no Avro schema of version 1", where=HOSTILE, cure="Only what Spark declares can be compared."),
)  # fmt: skip

REPORT = StateReport(
    frame=frame("Check 4 of order-totals", Section.QUERIES, QUERIES_CRUMB, QUERY_CRUMB), look=VERDICT_LOOKS["loses data"], sentence="The restart goes through and values of status are lost.", error="", error_message="",
    checked_at=ago(minutes=1), checked_by=HOSTILE, facts=(Fact(label="Checkpoint", value="/checkpoints/order_totals", code=True),), why_fixed="", changes=(CHANGE,),
    variables=(
        ReportVariable(anchor="v-0", name="totals", kind="value state", look=STATUS_LOOKS["accepted but loses data"], sentence="one field is lost", stored="status STRING", planned="state STRING", changes=(CHANGE, HOSTILE_CHANGE), budget="3 of 16", location="line 4", hidden_changes=3),
        ReportVariable(anchor="v-1", name=HOSTILE, kind="map state", look=STATUS_LOOKS["removed"], sentence="its rows stay unread", stored="a INT", planned="", changes=(), budget=""),
        ReportVariable(anchor="v-2", name="dedup", kind="kept by Spark", look=STATUS_LOOKS["unchanged"], sentence="nothing", stored="", planned="", changes=(), is_kept=True),
    ),
    budgets=(BudgetRow(label="value schemas of totals", before=2, after=3, allowed=16, percent=19),), settings=(("spark.sql.streaming.stateStore.maxNumStateSchemaFiles", "128", "by default"), ("spark.x", HOSTILE, "by the plan")),
    notes=("The query was running while it was read.", HOSTILE), plan='{"variables": []}', exports=(Link(label="Markdown", url="/gallery/state-check"),), again=Action(label="Edit plan and check again", url="/gallery/state-check-new", icon="pencil"),
)  # fmt: skip
REPORT_REFUSED = replace(
    REPORT,
    look=VERDICT_LOOKS["refused"],
    error="STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    error_message=HOSTILE,
    why_fixed="the key of a map can’t change",
)
REPORT_NO_STATE = replace(
    REPORT,
    look=VERDICT_LOOKS["fine"],
    sentence="It keeps no state.",
    changes=(),
    variables=(),
    budgets=(),
    settings=(),
    notes=(),
)

CHECK_FORM = StateCheckForm(
    frame=frame("Check a restart", Section.QUERIES, QUERIES_CRUMB, current=None),
    known_field=Field(name="checkpoint", label="Known checkpoint", kind="select", choices=(Choice(value="", label="none of these"), Choice(value="1", label=HOSTILE))),
    path=Field(name="path", label="Path or address", code=True, placeholder="s3://bucket/checkpoints/order_totals"),
    plan=Field(name="plan", label="Plan", kind="textarea", rows=14, code=True, required=True, value='{"variables": []}'),
    submit=Action(label="Check", url="/ui/queries", method="post", tone="primary", icon="shield-check"),
    store=StoreForm(initial={"endpoint": HOSTILE}),
    recent=(Link(label=f"{HOSTILE} 3 min ago", url="/gallery/state-check"),),
)  # fmt: skip
CHECK_FORM_REFUSED = replace(
    CHECK_FORM, plan=replace(CHECK_FORM.plan, value="{", errors=("The plan is not JSON: line 1, column 2.",)),
    problem=Problem(what="There is no checkpoint", where=HOSTILE, cure="Give the folder that has the file metadata."),
)  # fmt: skip
CHECK_FORM_READER = replace(
    CHECK_FORM, submit=replace(CHECK_FORM.submit, allowed=False, reason="Checking a restart takes the role steward."), recent=()
)  # fmt: skip
