"""Sample pages: sources, scans, findings."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import FindingState, Look, ScanState, Severity, SourceBadge
from dashboard.components.diff import text_diff
from dashboard.components.translation import later
from dashboard.components.widgets import (
    Action,
    ActiveFilter,
    Choice,
    Crumb,
    Fact,
    Field,
    Filter,
    Link,
    Paging,
    Problem,
    SearchBox,
    Section,
)
from dashboard.findings.presenters import (
    Column,
    EvidenceTable,
    FindingList,
    FindingPage,
    FindingRow,
    ScanProgress,
    ScanRow,
    SourceForm,
    SourceGroup,
    SourceList,
    SourcePage,
    SourceRow,
)
from dashboard.sources.presenters import (
    Affected,
    AffectedRow,
    BeforeAfter,
    ClusterHead,
    FieldGroup,
    Suspected,
    SuspectedList,
    Unreadable,
)
from tests.site.samples.cast import DEV, HOSTILE, LONG, NOW, PROD, ago, frame

SCAN = Action(label="Scan now", url="/ui/sources/1/scan", method="post", icon="refresh-cw")
ADD = Action(label="Add a source", url="/ui/sources/add", tone="primary", icon="plus")
NO_SCAN = replace(SCAN, allowed=False, reason="A scan of it runs already.")
CHECKPOINT = "/var/lib/schemadesk/demo/checkpoints/order-totals"

CHANGE = Action(label="Change", url="/ui/clusters/1/edit")
REMOVE = Action(
    label="Remove", url="/ui/clusters/1/remove", allowed=False, reason="2 sources read it. Remove sources first."
)
ADD_HERE = Action(label="Add a source", url="/ui/sources/add?cluster=local")
CONNECT = Action(label="Connect a cluster", url="/ui/clusters/add", icon="database")
KAFKA = SourceBadge("kafka", Look("plain", "rows-3", later("Kafka topics")))
STATE = SourceBadge("state_store", Look("plain", "layers", later("Spark state store")))
DEBEZIUM = SourceBadge("debezium", Look("plain", "rows-3", later("Debezium connector")))
REGISTRY = SourceBadge("registry", Look("plain", "layers", later("Registry settings")))

LOCAL = ClusterHead(
    name="local", bootstrap="127.0.0.1:9092", security="PLAINTEXT", edit=CHANGE, remove=REMOVE, add=ADD_HERE
)
PAYMENTS = ClusterHead(
    name="payments", bootstrap="broker-1.payments.example.com:9093,broker-2.payments.example.com:9093",
    security="SASL_SSL, SCRAM-SHA-512 as schemadesk, custom CA", edit=CHANGE, remove=REMOVE, add=ADD_HERE,
)  # fmt: skip
STRANGE = replace(LOCAL, name=HOSTILE, bootstrap=f"{LONG}:9092")

TOPICS = (
    SourceRow(
        url="/gallery/source", kind=KAFKA, name="orders", environment=DEV, state=ScanState.DONE,
        scanned_at=ago(minutes=2), read="5,120 new messages in 3 of 12 topics in 4.1 s", open_findings=4, context=".shop",
        scope="orders*, without *-changelog · 12 topics found", how="since the last scan, every 5 minutes",
        findings_url="/ui/findings?source=1", next_scan_at=NOW + (NOW - ago(minutes=3)), scan=SCAN,
    ),
    SourceRow(
        url="/gallery/source", kind=DEBEZIUM, name="shop-connector", environment=DEV, state=ScanState.RUNNING,
        read="", scan=NO_SCAN, scope="shop.public.* · 4 topics found", how="since the last scan, every 5 minutes",
    ),
    SourceRow(
        url="/gallery/source", kind=KAFKA, name="returns", environment=DEV, state=ScanState.EMPTY,
        scanned_at=ago(minutes=9), read="nothing to read", scan=SCAN, scope="returns · 0 topics found",
        how="the newest 10,000 messages in each partition, on demand",
    ),
)  # fmt: skip
FAILING = (
    SourceRow(
        url="/gallery/source", kind=KAFKA, name="payments.v2", environment=PROD, state=ScanState.FAILED,
        scanned_at=ago(hours=3), error="The Kafka cluster at broker-2:9092 doesn’t answer within 8 s.", scan=SCAN,
        scope="all topics · 214 topics found", how="since the last scan, every hour",
    ),
)  # fmt: skip
STATES = (
    SourceRow(
        url="/gallery/source", kind=STATE, name=CHECKPOINT, environment=DEV, state=ScanState.DONE,
        scanned_at=ago(minutes=2), read="2 state variables, 1,204 rows in 1.2 s", open_findings=1,
        findings_url="/ui/findings?source=2", scan=SCAN, how="every 5 minutes",
    ),
    SourceRow(url="/gallery/source", kind=STATE, name=f"/data/{HOSTILE}", environment=PROD, state=ScanState.NEVER, scan=SCAN, how="on demand"),
)  # fmt: skip
SOURCE_LIST = SourceList(
    frame=frame("Sources", Section.SOURCES),
    groups=(
        SourceGroup(title="local", cluster=LOCAL, rows=TOPICS),
        SourceGroup(title="payments", cluster=PAYMENTS, rows=FAILING),
        SourceGroup(title=HOSTILE, cluster=STRANGE, rows=()),
        SourceGroup(title="State of Spark queries", rows=STATES),
        SourceGroup(title="Registries", rows=(replace(STATES[0], kind=REGISTRY, name="prod", environment=PROD, read="7 pieces of advice checked, 2 not followed in 0.1 s"),)),
    ),
    add=ADD,
    connect=CONNECT,
    coverage=f"214 of 230 topics scanned in the last 24 h; 3 unreadable: orders.dlq, {HOSTILE}, payments.audit; 1 can’t be read: payments.v2.",
)  # fmt: skip
SOURCE_LIST_EMPTY = replace(SOURCE_LIST, groups=(), coverage="", frame=frame("Sources", Section.SOURCES, busy=False))

TOPIC_FORM = SourceForm(
    frame=frame("Add a source", Section.SOURCES, Crumb(label="Sources", url="/ui/sources")),
    kind=KAFKA,
    kinds=tuple((kind, f"/gallery/source-add?kind={kind.code}") for kind in (KAFKA, STATE, DEBEZIUM, REGISTRY)),
    groups=(
        FieldGroup(title="What to read", fields=(
            Field(name="cluster", label="Cluster", kind="select", choices=(Choice(value="local", label="local"), Choice(value=HOSTILE, label=HOSTILE)), help="If the cluster uses TLS or a user, connect it first."),
            Field(name="bootstrap", label="Bootstrap servers", code=True, placeholder="broker-1:9092,broker-2:9092", help="Only for a new cluster."),
            Field(name="include", label="Topics", kind="textarea", rows=3, code=True, value="orders\npayments-*", help="A name or pattern a line; empty: all but internal ones."),
            Field(name="name", label="Name", required=True, code=True),
        )),
        FieldGroup(title="How", fields=(
            Field(name="registry", label="Compared with", required=True, kind="select", choices=(Choice(value="dev", label="dev"), Choice(value="prod", label="prod"))),
            Field(name="every_seconds", label="Scan", kind="select", choices=(Choice(value="300", label="every 5 minutes", selected=True), Choice(value="", label="only on demand"))),
        )),
        FieldGroup(title="Bounds", folded=True, fields=(Field(name="max_messages", label="Maximum messages per scan", kind="number", value="1000000"),)),
    ),
    submit=Action(label="Add and scan", url="/ui/sources/add", method="post"),
    back_url="/ui/sources",
)  # fmt: skip
STATE_FORM = replace(
    TOPIC_FORM,
    kind=STATE,
    groups=(FieldGroup(title="What to read", fields=(
        Field(name="name", label="Checkpoint", required=True, code=True, value="/etc",
              errors=("/etc is outside the allowed folders.",),
              help="A folder below one of the allowed roots: /var/lib/schemadesk."),
        *TOPIC_FORM.groups[1].fields,
    )),),
    problem=Problem(
        what="/etc is outside the allowed folders", where="field Checkpoint",
        cure="Give a path below /var/lib/schemadesk, or let an administrator add the folder to SCHEMADESK_CHECKPOINT_ROOTS.",
    ),
)  # fmt: skip
EDIT_FORM = replace(
    TOPIC_FORM, frame=frame(f"Edit {HOSTILE}", Section.SOURCES, Crumb(label="Sources", url="/ui/sources")), kinds=(),
    submit=Action(label="Save", url="", allowed=False, reason="You need the admin or steward role to add and edit scan sources."),
    lede="Patterns apply from the next scan. Excluded topics keep their findings and read positions.",
)  # fmt: skip

PARTITIONS = EvidenceTable(
    title="Read by partition",
    columns=(Column(label="Partition", kind="number"), Column(label="From offset", kind="number"), Column(label="To offset", kind="number"), Column(label="Messages", kind="number")),
    rows=(("0", "0", "1,731", "1,731"), ("1", "0", "1,702", "1,702"), ("2", "0", "1,687", "1,687")),
)  # fmt: skip
IDS = EvidenceTable(
    title="Schema ids seen",
    columns=(Column(label="Schema id", kind="number"), Column(label="Is", kind="code"), Column(label="Messages", kind="number"), Column(label="First offset", kind="code"), Column(label="Last offset", kind="code")),
    rows=(
        ("9", "orders-value version 2", "3,913", "0@0", "2@1642"),
        ("14", "orders-value version 3", "1,204", "0@402", "2@1686"),
        ("9001", "not registered", "1", "1@880", "1@880"),
        ("5", "customers-value version 1", "2", "2@77", "2@81"),
    ),
)  # fmt: skip
DONE = ScanProgress(
    scan_id=41, state=ScanState.DONE, url="/ui/scans/41/progress", running=False, finished_at=ago(minutes=2), queued_by="schedule",
    summary="5,120 messages in 3 partitions, offsets 0 to 1,731, everything there was; 4 findings.", read=(PARTITIONS, IDS),
)  # fmt: skip
RUNNING = ScanProgress(
    scan_id=42, state=ScanState.RUNNING, url="/ui/scans/42/progress", running=True, phase="Reading 3 partitions", done=2, total=5,
    started_at=ago(seconds=7), queued_by="steward",
    cancel=Action(label="Cancel the scan", url="/ui/scans/42/cancel", method="post", icon="ban"),
)  # fmt: skip
NO_CANCEL = Action(
    label="Cancel the scan",
    url="",
    allowed=False,
    reason="You need the admin or steward role to start scans.",
)
QUEUED = replace(
    RUNNING,
    cancel=NO_CANCEL,
    state=ScanState.QUEUED,
    phase="",
    done=0,
    total=0,
    started_at=None,
    queued_at=ago(seconds=1),
)
READ_NOTHING = replace(DONE, state=ScanState.EMPTY, summary="The topic is empty: there is no offset to read.", read=())
FAILED = replace(
    DONE, state=ScanState.FAILED,
    problem=Problem(
        what="The scan couldn’t read the topic", where="orders at 127.0.0.1:9092",
        cure="Check that the broker runs and that this machine reaches it, then scan again.",
        detail="Local: Broker transport failure", since=ago(minutes=2),
    ),
)  # fmt: skip


def finding(sentence: str, severity: Severity, location: str, **more: object) -> FindingRow:
    """A sample finding."""
    base = FindingRow(
        producer="all in partition 3 of 12",
        url="/gallery/finding", severity=severity, state=FindingState.OPEN, sentence=sentence, rule="UNKNOWN_SCHEMA_ID", source="orders",
        source_kind=KAFKA, source_url="/gallery/source", location=location, environment=DEV, count=1,
        first_seen=ago(days=2), last_seen=ago(minutes=2),
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


FINDINGS = (
    finding("1 message carries schema id 9001, which no subject of this registry has.", Severity.BREAK, "orders:1@880",
            rebaselined="Re-baselined: found by detector 7; earlier scans used 6."),
    finding("2 messages carry the schema of another subject, customers-value version 1.", Severity.BREAK, "orders:2@77–81",
            rule="ID_OF_OTHER_SUBJECT", count=2, resolving=(Link(label="#12", url="/gallery/promotion"), Link(label="#16", url="/gallery/promotion"))),
    finding("1 message isn’t framed with a schema id; it looks like a JSON object.", Severity.RISK, "orders:0@1203", rule="UNFRAMED"),
    finding("The field total of the state variable totals looks renamed to amount: its values are lost.", Severity.RISK,
            "operator 0, totals, value.amount", rule="STATE_RENAME_SUSPECTED", source=CHECKPOINT, source_kind=STATE,
            count=1204),
    finding("The state variable totals has used 2 of 16 value schemas.", Severity.NOTICE, "operator 0, totals", rule="STATE_EVOLUTIONS_USED",
            source=CHECKPOINT, source_kind=STATE, state=FindingState.ACKNOWLEDGED),
    finding(f"A name that others chose: {HOSTILE}", Severity.NOTICE, LONG, state=FindingState.RESOLVED, count=1_204_331, environment=PROD),
)  # fmt: skip
FINDING_SEARCH = SearchBox(
    url="/ui/findings", label="Search findings", placeholder="orders",
    filters=(
        Filter(name="severity", label="Severity", choices=(Choice(value="", label="Any severity", selected=True), Choice(value="break", label="Break", count=2))),
        Filter(name="state", label="State", choices=(Choice(value="open", label="Open", selected=True, count=4), Choice(value="", label="Any state"))),
        Filter(name="kind", label="Kind", choices=(Choice(value="", label="Any source", selected=True), Choice(value="kafka", label="Kafka topics"))),
    ),
)  # fmt: skip
FINDING_LIST = FindingList(
    frame=frame("Findings", Section.FINDINGS), search=FINDING_SEARCH, rows=FINDINGS, paging=Paging(first=1, last=6, total=6),
    coverage="2 of 6 sources were scanned in the last 24 h; 1 can’t be read.",
    unreadable=(
        Unreadable(
            name=f"orders.{HOSTILE}", url="/gallery/source", anchor="right-0",
            reason=f"The cluster's user can't describe topic {HOSTILE}. Grant it Describe and Read on that topic.",
            right=f"kafka-acls --add --allow-principal User:scan --operation Describe --operation Read --topic '{HOSTILE}'",
        ),
        Unreadable(name="payments.v2", url="/gallery/source", reason="the Kafka cluster at kafka:9092 didn't answer."),
    ),
)  # fmt: skip
NONE_YET = Paging(first=0, last=0)
FINDING_LIST_CLEAN = replace(
    FINDING_LIST, rows=(), search=SearchBox(url="/ui/findings"), paging=NONE_YET, clean="No drift in 5,120 messages in 12 partitions and 40 rows of 2 state variables, 2026-11-23 10:02–10:07 UTC.", clean_at=ago(minutes=2), next_scan_at=ago(minutes=-28)
)  # fmt: skip
FINDING_LIST_UNKNOWN = replace(
    FINDING_LIST, rows=(), search=SearchBox(url="/ui/findings"), paging=NONE_YET, coverage=""
)
FINDING_LIST_NO_MATCH = replace(
    FINDING_LIST, rows=(), paging=NONE_YET, search=replace(FINDING_SEARCH, query="zz", active=(ActiveFilter(label="severity: break", url="?"),))
)  # fmt: skip
FINDING = FindingPage(
    affected=Affected(
        clients=(
            AffectedRow(name="billing", sentence="reads version 3, the version that was seen", contact="#billing"),
            AffectedRow(name=HOSTILE, sentence="reads and writes version 2", contact=HOSTILE, seen_at=ago(days=120)),
        ),
        queries=(
            AffectedRow(name="orders-by-hour", sentence="reads orders; its state has fields of version 2, 3", url="/gallery/query"),
            AffectedRow(name=HOSTILE, sentence=f"reads {HOSTILE}", url="/gallery/query"),
        ),
        hidden=7, usage_url="/gallery/usage",
    ),
    suspected=SuspectedList(
        began=ago(days=2),
        rows=(
            Suspected(before="3 minutes before", sentence="version 3 was released by request 12", url="/gallery/promotion"),
            Suspected(before="5 minutes before", sentence="billing 4.2.0 was deployed", url="https://ci.example/runs/7", elsewhere=True),
            Suspected(before="48 minutes before", sentence=f"client {HOSTILE} was declared", url="/gallery/usage"),
        ),
    ),
    frame=frame("Unknown schema id 9001", Section.FINDINGS, Crumb(label="Findings", url="/ui/findings")),
    finding=FINDINGS[0],
    remedies=(
        "Find the producer: the partition and offset below lead to it.",
        "If it writes with another registry, point it at this one, or import that registry’s schema under its id.",
        "Skip or repair the message before a consumer stops on it.",
    ),
    evidence=(
        EvidenceTable(
            title="Where it was seen",
            columns=(Column(label="Topic", kind="code"), Column(label="Partition", kind="number"), Column(label="First offset", kind="number"), Column(label="Last offset", kind="number"), Column(label="Messages", kind="number"), Column(label="First written")),
            rows=(("orders", "1", "880", "880", "1", "2026-11-19 14:02:11 UTC"),),
            note="of 1,702 messages in partition 1",
        ),
    ),
    facts=(Fact(label="Schema id", value="9001", code=True), Fact(label="Scan", value="41")),
    related=(Link(label="orders-value", url="/gallery/subject"), Link(label="The scan", url="/gallery/source")),
    acknowledge=Action(label="Acknowledge", url="/ui/findings/1/acknowledge", method="post"),
    reason=Field(name="reason", label="Reason", kind="textarea", rows=3, required=True, help="Why it may stay for now; others read it here."),
)  # fmt: skip
FINDING_STATE = replace(
    FINDING,
    finding=FINDINGS[3],
    evidence=(
        EvidenceTable(
            title="State schemas of the variable",
            columns=(Column(label="Operator", kind="number"), Column(label="Variable", kind="code"), Column(label="Field", kind="code"), Column(label="From batch", kind="number"), Column(label="Rows", kind="number"), Column(label="Null", kind="number")),
            rows=(("0", "totals", "value.total: bigint", "0", "–", "–"), ("0", "totals", "value.amount: bigint", "5", "1,204", "1,190")),
            hidden_rows=3,
        ),
    ),
    acknowledge=Action(label="Acknowledge", url="", allowed=False, reason="Your role is reader: stewards and admins acknowledge findings."),
    reason=None,
    before_after=BeforeAfter(variable=HOSTILE, batch=5, text=text_diff("`total` BIGINT\n`status` STRING", f"`amount` BIGINT\n{HOSTILE}")),
)  # fmt: skip
FINDING_DONE = replace(
    FINDING, finding=FINDINGS[5], acknowledge=None, reason=None, acknowledged_by=HOSTILE, acknowledged_reason=HOSTILE, resolved_at=ago(hours=1), evidence=(),
)  # fmt: skip

SOURCE = SourcePage(
    frame=frame("orders", Section.SOURCES, Crumb(label="Sources", url="/ui/sources"), code=True),
    kind=KAFKA, name="orders", environment=DEV, state=ScanState.DONE,
    facts=(Fact(label="Cluster", value="127.0.0.1:9092", code=True), Fact(label="Schedule", value="every 5 minutes"), Fact(label="Added by", value="steward, 2 days ago")),
    scan=replace(SCAN, tone="primary"), progress=DONE,
    scans=(
        ScanRow(scan_id=41, state=ScanState.DONE, started_at=ago(minutes=2), queued_by="schedule", took="12 s", read="5,120 messages in 3 partitions"),
        ScanRow(scan_id=40, state=ScanState.EMPTY, started_at=ago(minutes=7), queued_by="schedule", took="4 s", read="nothing new since offset 1,731"),
        ScanRow(scan_id=39, state=ScanState.FAILED, started_at=ago(minutes=12), queued_by="steward", took="8 s", error="The Kafka cluster at 127.0.0.1:9092 doesn’t answer within 8 s."),
    ),
    findings=FINDINGS[:3], findings_url="/ui/findings?source=1", next_scan_at=NOW + (NOW - ago(minutes=3)),
)  # fmt: skip
SOURCE_RUNNING = replace(SOURCE, state=ScanState.RUNNING, progress=RUNNING, scan=replace(NO_SCAN))
SOURCE_QUEUED = replace(SOURCE, state=ScanState.QUEUED, progress=QUEUED, scans=(), findings=())
SOURCE_NEVER = replace(SOURCE, state=ScanState.NEVER, progress=None, scans=(), findings=(), next_scan_at=None)
SOURCE_EMPTY = replace(SOURCE, state=ScanState.EMPTY, progress=READ_NOTHING, findings=())
SOURCE_FAILED = replace(SOURCE, state=ScanState.FAILED, progress=FAILED, findings=())
