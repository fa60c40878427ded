"""Sample pages of findings with decisions, and of mutes."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import Severity
from dashboard.components.widgets import (
    Action,
    Choice,
    Crumb,
    Field,
    Link,
    Problem,
    Section,
)
from dashboard.findings.presenters import Bar, BarTable, Bulk, Command, HistoryRow, MutePage, MuteRow, Tally
from tests.site.samples import drift
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, ago, frame
from tests.site.samples.comparison import AGAINST_LATEST
from tests.site.samples.environments import DRAFTS
from tests.site.samples.promotions import REQUESTS

FINDINGS = Crumb(label="Findings", url="/ui/findings")
END = Action(label="Remove mute", url="/ui/mutes/1/end", method="post")
MUTES = MutePage(
    frame=frame("Mutes", Section.FINDINGS, FINDINGS),
    rows=(
        MuteRow(number=1, environment=DEV, patterns=(("Rule", "UNFRAMED_DATA"), ("Place", "load-test-*")), reason="The load test writes plain JSON.", by="steward", since=ago(days=2), until=None, end=END),
        MuteRow(number=2, environment=PROD, patterns=(("Subject", HOSTILE),), reason=HOSTILE, by=HOSTILE, since=ago(days=9), until=ago(days=-5), end=replace(END, allowed=False, reason="You need the admin, approver or steward role in prod to mute findings.")),
    ),
    fields=(
        Field(name="registry", label="Registry", kind="select", required=True, choices=(Choice(value="dev", label="dev"),)),
        Field(name="rule", label="Rule", code=True, placeholder="UNKNOWN_SCHEMA_ID"),
        Field(name="subject", label="Subject", code=True, placeholder="test-*"),
        Field(name="location", label="Place", code=True, value="orders:*"),
        Field(name="reason", label="Reason to mute them", kind="textarea", rows=2, required=True),
        Field(name="until", label="Until", kind="date", help="Empty: until the mute is removed."),
    ),
    submit=Action(label="Mute", url="/ui/mutes", method="post", tone="primary"),
    preview_url="/ui/mutes",
    preview="Matches 3 of 6 findings, and future ones.",
    covered=(Link(label="1 message carries schema id 9001, which no subject of this registry has.", url="/gallery/finding"), Link(label=HOSTILE, url="/gallery/finding")),
)  # fmt: skip
MUTES_EMPTY = replace(
    MUTES, rows=(), preview="", covered=(), problem=Problem(what="Say why these findings can be muted."),
    submit=replace(MUTES.submit, allowed=False, reason="You need the admin, approver or steward role to mute findings."),
)  # fmt: skip

BULK = Bulk(url="/ui/findings/decide", allowed=True, reason="", back="/ui/findings")
FINDING_LIST = replace(
    drift.FINDING_LIST,
    rows=tuple(replace(row, number=number, subject="orders-value", subject_url="/gallery/subject", assignee="steward" if number == 2 else "", hint="Began with version 3, registered 4 minutes before." if number == 1 else "", muted=number == 5) for number, row in enumerate(drift.FINDINGS, start=1)),
    by_severity=tuple(Tally(look=look, count=count, url=f"/ui/findings?severity={look.code}", current=count == 2) for look, count in zip(Severity, (2, 2, 0), strict=True)),
    by_kind=(Tally(look=drift.KAFKA, count=3, url="/ui/findings?kind=kafka"), Tally(look=drift.STATE, count=1, url="/ui/findings?kind=state_store")),
    muted=7, muted_url="/ui/findings?muted=only", mutes_url="/ui/mutes", bulk=BULK,
)  # fmt: skip
FINDING_LIST_READER = replace(
    FINDING_LIST,
    bulk=replace(BULK, allowed=False, reason="You need the admin, approver or steward role to decide on findings."),
)

ASSIGN = Action(label="Assign", url="/ui/findings/1/assign", method="post")
PLACES = replace(
    drift.FINDING.evidence[0],
    rows=(
        ("orders", "0", "402", "1642", "41", "2026-11-19 14:02:11 UTC"),
        ("orders", "1", "880", "880", "1", "2026-11-21 14:02:11 UTC"),
    ),
    spans=((0, 62), (97, 3)),
    spans_label="When",
)
FINDING = replace(
    drift.FINDING,
    evidence=(PLACES,),
    bars=(
        BarTable(title="Messages by timestamp", label="Hour (UTC)", note="Based on scanned messages.", bars=(Bar(label="2026-11-21 08:00", count=0, percent=0, marks=("08:57 billing 4.2.0", f"08:58 {HOSTILE}")), Bar(label="2026-11-21 09:00", count=31, percent=100), Bar(label="2026-11-21 10:00", count=10, percent=32, marks=("10:40 billing 4.1.9",)))),
        BarTable(title="Types seen", label="Type", bars=(Bar(label="string", count=4959, percent=100), Bar(label="long", count=41, percent=1), Bar(label=HOSTILE, count=2, percent=1))),
    ),
    cause="Most likely version 3 of orders-value: it was registered 4 minutes before the first of these messages.",
    commands=(Command(label="Partition 0, from offset 402", text="kcat -C -b 127.0.0.1:9092 -t orders -p 0 -o 402 -c 100 -e -f '%p@%o %T %k %s\\n'", anchor="command-0"),),
    until=Field(name="until", label="Until", kind="date", help="The finding reopens after that day (UTC). Empty: acknowledged as long as it is seen."),
    assign=ASSIGN, assignee=Field(name="to", label="Assigned to", value="steward", help="Account name. Empty: nobody."),
    observed=replace(AGAINST_LATEST, text=None, extras=()), observed_note="coupon (in 25%): seen in 10 of 40 messages.",
    drafts=DRAFTS.drafts, requests=(*REQUESTS[2:3], *REQUESTS[5:7]),
    released=(Link(label="orders-value version 3 in dev", url="/gallery/subject"), Link(label=f"{LONG} version 12 in prod", url="/gallery/subject")),
    mute=Action(label="Mute similar findings", url="/ui/mutes"), scan=replace(drift.SCAN, label="Scan source again"),
    history=(
        HistoryRow(at=ago(hours=1), who="steward", what=("state: acknowledged", "reason: known since May"), why="acknowledge finding 1"),
        HistoryRow(at=ago(days=2), who=HOSTILE, what=("found",), why="scan 41"),
    ),
    reopened=1, clean_scans="0 of 2",
)  # fmt: skip
FINDING_ACKNOWLEDGED = replace(
    FINDING, acknowledge=None, acknowledged_by="steward", acknowledged_reason="The old producer is switched off on Friday.", acknowledged_until=ago(days=-5),
    reopen=Action(label="Reopen finding", url="/ui/findings/1/reopen", method="post"),
    assign=replace(ASSIGN, allowed=False, reason="You need the admin, approver or steward role to decide on findings."),
)  # fmt: skip
