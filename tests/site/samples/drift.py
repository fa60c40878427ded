"""Sample pages: findings."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import FindingState, Look, Severity, SourceBadge
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
    SearchBox,
    Section,
)
from dashboard.findings.presenters import (
    Affected,
    AffectedRow,
    BeforeAfter,
    Column,
    EvidenceTable,
    FindingList,
    FindingPage,
    FindingRow,
    Suspected,
    SuspectedList,
)
from dashboard.sources.coverage import Unreadable
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, ago, frame

SCAN = Action(label="Scan now", url="/ui/sources/1/scan", method="post", icon="refresh-cw")
CHECKPOINT = "/var/lib/schemadesk/demo/checkpoints/order-totals"

KAFKA = SourceBadge("kafka", Look("plain", "rows-3", later("Kafka topics")))
STATE = SourceBadge("state_store", Look("plain", "layers", later("Spark state store")))
DEBEZIUM = SourceBadge("debezium", Look("plain", "rows-3", later("Debezium connector")))
REGISTRY = SourceBadge("registry", Look("plain", "layers", later("Registry settings")))


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
