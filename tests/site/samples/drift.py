"""Sample pages: findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.components.diff import text_diff
from dashboard.components.widgets import ActiveFilter, Choice, Crumb, Fact, Filter, Link, Paging, SearchBox, Section
from dashboard.findings.decisions import AcknowledgeForm, AssignForm
from dashboard.findings.evidence_tables import Column, EvidenceTable
from dashboard.findings.finding_list import FindingList, FindingRow
from dashboard.findings.page import FindingPage
from dashboard.findings.related import Affected, AffectedRow, BeforeAfter, Suspected, SuspectedList
from dashboard.sources.coverage import Unreadable
from registry.drift.selectors import FindingInfo
from registry.drift.selectors.findings import OnePartition
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, ago, frame

CHECKPOINT = "/var/lib/schemadesk/demo/checkpoints/order-totals"
REMEDY = """Find the producer: the partition and offset below lead to it.
If it writes with another registry, point it at this one, or import that registry’s schema under its id.
Skip or repair the message before a consumer stops on it."""


def finding(
    sentence: str,
    severity: str,
    location: str,
    *,
    requests: tuple[int, ...] = (),
    numbers: tuple[int, ...] = (),
    **more: Any,
) -> FindingRow:
    """A sample finding."""
    base = FindingInfo(
        id=1, source_id=1, source_name="orders", source_kind="kafka", registry="dev", topic="orders", rule="UNKNOWN_SCHEMA_ID",
        severity=severity, sentence=sentence, remedy=REMEDY, location=location, subject="", evidence={}, cause="", cause_group="", state="open", count=1,
        first_seen=ago(days=2), last_seen=ago(minutes=2), acknowledged_by="", acknowledged_reason="", acknowledged_until=None, assigned_to="",
        muted=False, clean_scans=0, reopened=0, resolved_at=None, producer_hint=OnePartition(3, 12, 40),
    )  # fmt: skip
    info = replace(base, **more)
    return FindingRow(
        info=info, environment=PROD if info.registry == "prod" else DEV, requests=requests, numbers=numbers
    )


FINDINGS = (
    finding("1 message carries schema id 9001, which no subject of this registry has.", "break", "orders:1@880", detector=7, rebaselined_from=6),
    finding("2 messages carry the schema of another subject, customers-value version 1.", "break", "orders:2@77–81",
            rule="ID_OF_OTHER_SUBJECT", count=2, requests=(12, 16)),
    finding("1 message isn’t framed with a schema id; it looks like a JSON object.", "risk", "orders:0@1203", rule="UNFRAMED"),
    finding("topic clicks has no subject in dev: its messages look like JSON objects, and no schema describes them.", "notice", "clicks",
            rule="TOPIC_WITHOUT_SUBJECT", numbers=tuple(range(100, 160)), cause_group="Topics without a subject in dev"),
    finding("The field total of the state variable totals looks renamed to amount: its values are lost.", "risk",
            "operator 0, totals, value.amount", rule="STATE_RENAME_SUSPECTED", source_name=CHECKPOINT, source_kind="state_store", count=1204),
    finding("The state variable totals has used 2 of 16 value schemas.", "notice", "operator 0, totals", rule="STATE_EVOLUTIONS_USED",
            source_name=CHECKPOINT, source_kind="state_store", state="acknowledged"),
    finding(f"A name that others chose: {HOSTILE}", "notice", LONG, state="resolved", count=1_204_331, registry="prod", acknowledged_by=HOSTILE,
            acknowledged_reason=HOSTILE, resolved_at=ago(hours=1)),
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
        hidden=7, usage_url="/gallery/usage", channels=(Link(label="#orders", url=""), Link(label="https://chat.example/orders", url="https://chat.example/orders")),
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
    acknowledge=AcknowledgeForm(), assign=AssignForm(initial={"to": "steward"}), decide_refused="", mute_refused="", scan_refused="", needed_scans=2,
    mute_url="/ui/mutes",
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
    decide_refused="Your role is reader: stewards and admins acknowledge findings.",
    before_after=BeforeAfter(variable=HOSTILE, batch=5, text=text_diff("`total` BIGINT\n`status` STRING", f"`amount` BIGINT\n{HOSTILE}")),
)  # fmt: skip
FINDING_DONE = replace(
    FINDING, finding=FINDINGS[5], evidence=(), facts=(),
)  # fmt: skip
